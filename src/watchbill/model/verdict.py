"""Verdict: what the Supervisor decides; applied by one conditional statement that repeats its evidence."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from watchbill.clock import Micros
from watchbill.model.decision import SUPERVISOR
from watchbill.model.failure import Doubt, Failure
from watchbill.model.parked import People


@dataclass(frozen=True, slots=True)
class MarkFailed:
    """The running attempt has ended, as far as anybody will believe it; what follows is judged next."""

    chosen: ClassVar[str] = "mark failed"
    failure: Failure
    failures: int  # added: what is late counts as a failure,
    losses: int  # not as a loss; of a dead agent the loss stands, unless the attempt had a process of its own
    last: bool = False  # it goes to the end of the line


@dataclass(frozen=True, slots=True)
class TryNow:
    """Ready again, at once."""

    chosen: ClassVar[str] = "retry"
    rule: str
    alone: bool = False  # from now on in a process of its own


@dataclass(frozen=True, slots=True)
class TryLater:
    """Parked until the backoff is over."""

    chosen: ClassVar[str] = "retry later"
    rule: str
    delay: Micros
    free: bool = False  # it costs no failure


@dataclass(frozen=True, slots=True)
class Climb:
    """Ready again at once, another way, with a fresh budget."""

    chosen: ClassVar[str] = "switch"
    rule: str
    rung: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Parked until whoever had it can no longer act: to ask before would be too soon."""

    chosen: ClassVar[str] = "wait until it can be asked"
    rule: str
    delay: Micros
    doubt: Doubt


@dataclass(frozen=True, slots=True)
class Ask:
    """Ready, to ask the outside world whether the last attempt took effect."""

    chosen: ClassVar[str] = "probe"
    rule: str
    doubt: Doubt


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Parked until a person decides, or the time is over that people have for it."""

    chosen: ClassVar[str] = "ask a person"
    rule: str
    why: str  # ESCALATE or DOUBT
    rung: int
    people: People
    failure: Failure | None  # that the person should know of; None: as those before knew it
    doubt: Doubt | None = None  # likewise


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The call fails for good."""

    chosen: ClassVar[str] = "give up"
    rule: str
    failure: Failure | None = None  # if not with what its last attempt reported


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Parked until a person decides: it keeps killing whoever runs it."""

    chosen: ClassVar[str] = "quarantine"
    rule: str


@dataclass(frozen=True, slots=True)
class LetEnd:
    """Running on: it was asked to stop and cannot be made to, so whoever needs its end has to wait until it is late."""

    chosen: ClassVar[str] = "let it end"
    rule: str
    delay: Micros | None = None  # None: it has all the time in the world


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Running on, and looked at again: nothing was decided, so nothing is written down; but once that it is slow."""

    chosen: ClassVar[str] = "leave alone"
    delay: Micros


Verdict = MarkFailed | TryNow | TryLater | Climb | Settle | Ask | AskPerson | GiveUp | Quarantine | LetEnd | LookAgain


class Recast(NamedTuple):
    """What a row is about from now on."""

    kind: int
    step: str
    rung: int
    policy: bytes
    span: int | None  # milliseconds from a lease to the first look; None: as before
    alone: bool
    earlier: int  # added
    doubt: bytes | None
    restart: bool = False  # without the checkpoint
    queue: int | None = None  # and then with this gate; None: both stay
    gate: str | None = None


class Judgement(NamedTuple):
    """A verdict as the store applies it: the evidence in front, the change behind."""

    id: int
    fence: int
    state: int
    progress_at: Micros | None
    dead_agent: int | None  # evidence: this agent's lease has ended, looked at again in the same statement
    after: int
    failures: int  # added
    losses: int  # added
    watch_in: Micros | None  # from the store's time on; None: no look needed
    why: str | None
    result: bytes | None
    run: int
    call: str
    body: bytes | None  # the Decision; None when nothing was decided
    unmoved: bool = False  # evidence: what it says about itself is still `progress`, and not only its time
    progress: bytes | None = None
    recast: Recast | None = None
    policy: bytes | None = None  # evidence: what it was judged by; None: that does not matter
    watch_at: Micros | None = None  # evidence, of what is parked: until when it was
    cancel: bool = False  # evidence: whether it was asked to stop, or unwanted
    actor: str = SUPERVISOR  # of the Decision
    last: bool = False  # from now on it stands at the end of the line
    unsure: bool | None = None  # whether an attempt that is over may have taken effect; None: as it was known before
    acts_in: Micros | None = None  # one that was taken away may act for so long; None: none was, by this verdict
    tried: bool = False  # a dependency, for all the others that use it: with its end another one may
