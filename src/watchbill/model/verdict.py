"""Verdict: what the Supervisor decides; applied by one conditional statement that repeats its evidence."""

from dataclasses import dataclass
from typing import NamedTuple

from watchbill.clock import Micros
from watchbill.model.failure import Failure


@dataclass(frozen=True, slots=True)
class MarkFailed:
    """The running attempt has ended, as far as anybody will believe it; what follows is judged next."""

    failure: Failure
    failures: int  # added: what is late counts as a failure,
    losses: int  # not as a loss; of a dead agent the loss stands, unless the attempt had a process of its own


@dataclass(frozen=True, slots=True)
class TryNow:
    """Ready again, at once."""

    rule: str
    alone: bool = False  # from now on in a process of its own


@dataclass(frozen=True, slots=True)
class TryLater:
    """Parked until the backoff is over."""

    rule: str
    delay: Micros


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The call fails for good."""

    rule: str


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Parked until a person decides: it keeps killing whoever runs it."""

    rule: str


@dataclass(frozen=True, slots=True)
class LetEnd:
    """Running on: it was asked to stop and cannot be made to, so whoever needs its end has to wait for it."""

    rule: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Running on, and looked at again: nothing was decided, so nothing is written down."""

    delay: Micros


Verdict = MarkFailed | TryNow | TryLater | GiveUp | Quarantine | LetEnd | LookAgain


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
    alone: bytes | None = None  # its policy, when from now on it runs in a process of its own
