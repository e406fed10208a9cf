"""Policy: what the author wants on trouble. `Retry` is how it is written, `Policy` the fact that travels with a row."""

import functools
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError
from watchbill.model.duration import Duration, to_micros
from watchbill.model.failure import Cause, kind_name
from watchbill.model.limit import Allowance
from watchbill.model.override import Override
from watchbill.model.usual import OBSERVE, Usual

DEFAULT_RETRIES: Final = 3  # most transient faults are gone after the fourth try; more only hides the others
DEFAULT_TIMEOUT: Final[Micros] = 3_600 * SECOND  # every step has a deadline: no zombie lives for ever
SEEN_WITHIN: Final[Micros] = SECOND  # of what a step says: until then, that it said nothing tells nothing
OWN_CHILD_FROM: Final = (
    2  # losses: from here on the attempt runs in a child of its own, so that its death names it alone
)
OWN_CHILD_AFTER: Final = frozenset({Cause.STARVED})  # at once after these: it keeps the others there from running
QUARANTINE_AT: Final = 5  # losses: whatever kills its process five times waits for a person

# Whose word counts, the first who says something: that of a rung, of a call, of its step, of its workflow.
ORIGINS: Final = {"r": "its rung", "c": "its call", "s": "its step", "w": "its workflow", "d": "the default"}
ASKED: Final = ("retry", "timeout", "stall")
DEFAULTS: Final = "ddd"

ErrorTypes = tuple[type[BaseException], ...]


class Retry(msgspec.Struct, frozen=True):
    """How often and how soon to try again: `Retry(2)` makes at most three attempts."""

    times: int
    backoff: Duration = "1s"
    factor: float = 2
    cap: Duration = "5m"
    on: ErrorTypes = ()
    never: ErrorTypes = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if isinstance(self.times, bool) or not isinstance(self.times, int) or not 0 <= self.times <= 1_000_000:
            raise InvalidOptionError(f"Retry(times) must be a whole number from 0 to 1,000,000, got {self.times!r}")
        if isinstance(self.factor, bool) or not isinstance(self.factor, int | float) or not 1 <= self.factor <= 1_000:
            raise InvalidOptionError(f"Retry(factor) must be a number from 1 to 1,000, got {self.factor!r}")
        to_micros(self.backoff, what="Retry(backoff)")
        to_micros(self.cap, what="Retry(cap)")
        for name in ("on", "never"):
            kinds = getattr(self, name)
            if isinstance(kinds, type):
                kinds = (kinds,)
            if not isinstance(kinds, tuple | list | set | frozenset) or not all(
                isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds
            ):
                raise InvalidOptionError(f"Retry({name}) must be exception classes, got {kinds!r}")
            msgspec.structs.force_setattr(self, name, tuple(kinds))


# How a policy says, as it is stored, that an attempt must not be repeated blindly, or one on a rung of its ladder.
# Stores look for it without reading the whole; within a text its quotes would be escaped.
UNREPEATABLE: Final = b'"idempotent":false'


class Change(NamedTuple):
    """An argument that a rung gives instead of the workflow's: where it stands among the stored ones, and its JSON."""

    place: int | str
    body: msgspec.Raw


class Rung(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is tried when the retries before it are used up: other arguments, another step or agent; or a person."""

    to: str | None = None  # a group of people, "" is everybody: nothing is tried until one of them decides
    within: Micros | None = None  # so long they have; then the next rung comes
    step: str = ""  # that is called instead
    changes: tuple[Change, ...] = ()
    policy: "Policy | None" = None  # of its attempts, without the ladder
    gate: str | None = None
    said: str = ""  # what is different there, for people


class Cures(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an author says about trouble beside trying again."""

    ladder: tuple[Rung, ...] = ()
    idempotent: bool = True  # False: what may have taken effect is not simply tried again
    probe: bool = False  # the step can ask whether an attempt took effect
    asked: int = 0  # the rung of the people whom a doubt is left to


class Policy(msgspec.Struct, frozen=True, gc=False):
    """The resolved policy of one call, stored with its row: no code is needed to judge by it."""

    retries: int = DEFAULT_RETRIES
    backoff: Micros = SECOND
    factor: float = 2.0
    cap: Micros = 300 * SECOND
    timeout: Micros = DEFAULT_TIMEOUT
    own: bool = False  # isolation="own"
    on: tuple[str, ...] = ()  # names of the exception classes of Retry(on=), so that no code is needed to match them
    never: tuple[str, ...] = ()
    stall: Micros | None = None  # no increase of progress for this long is a failure
    priority: int = 0  # added to the run's
    needs: tuple[str, ...] = ()  # what an agent must have, as queues write it
    limit: Allowance | None = None  # of the gate that its row names
    learned: str = OBSERVE  # or suggest, or enforce: what is usual is a limit; as Modes has it
    usual: tuple[Usual, ...] = ()  # by step and rung, as it was known when the row was made
    uses: str = ""  # the dependency behind whose breaker it waits
    cures: Cures | None = None
    origin: str = DEFAULTS  # who said how often, how long and how still: a letter of ORIGINS for each of ASKED
    extended: Micros = 0  # what an operator has added to the time of this very call
    override: Override | None = None  # what an operator has changed

    @property
    def ladder(self) -> tuple[Rung, ...]:
        """What is tried after the retries, in order."""
        return () if self.cures is None else self.cures.ladder

    @property
    def idempotent(self) -> bool:
        """True when an attempt may be tried again although it may have taken effect."""
        return self.cures is None or self.cures.idempotent

    @property
    def probes(self) -> bool:
        """True when the outside world can be asked whether an attempt took effect."""
        return self.cures is not None and self.cures.probe

    @property
    def first_look(self) -> Micros:
        """The time from an attempt's start to the moment at which something may be wrong with it."""
        timeout = self.timeout + self.extended
        first = timeout if self.stall is None else min(timeout, self.stall + SEEN_WITHIN)
        for usual in self.usual:
            first = min(first, usual.timeout if usual.stall is None else usual.stall + SEEN_WITHIN)
        return first

    def usual_for(self, step: str, rung: int) -> Usual | None:
        """Give what is usual for a step on a rung, if that is known."""
        return next((usual for usual in self.usual if usual.rung == rung and usual.step == step), None)

    def delay_before(self, retry: int, chance: float) -> Micros:
        """Give the pause before the k-th retry: exponential up to the cap, plus 0-25 %, never less."""
        # Beyond 64 doublings every cap is reached, and the power would overflow.
        plain = min(self.cap, round(self.backoff * self.factor ** min(retry - 1, 64)))
        return plain + round(plain * 0.25 * chance)


# A row brings its policy along, and there are as many as a program has steps: each is read once.
decode_policy: Final = functools.lru_cache(maxsize=1_024)(msgspec.json.Decoder(Policy).decode)


def policy_of(  # noqa: PLR0913 - what an author may say
    retry: Retry,
    timeout: Duration,
    *,
    own: bool,
    stall: Duration | None = None,
    priority: int = 0,
    needs: tuple[str, ...] = (),
    limit: Allowance | None = None,
    uses: str = "",
    cures: Cures | None = None,
    learned: str = OBSERVE,
    origin: str = DEFAULTS,
) -> Policy:
    """Resolve what the author wrote to what is stored."""
    return Policy(
        retries=retry.times,
        backoff=to_micros(retry.backoff, what="Retry(backoff)"),
        factor=float(retry.factor),
        cap=to_micros(retry.cap, what="Retry(cap)"),
        timeout=to_micros(timeout, what="timeout", at_least=1),
        own=own,
        on=tuple(kind_name(kind) for kind in retry.on),
        never=tuple(kind_name(kind) for kind in retry.never),
        stall=None if stall is None else to_micros(stall, what="stall", at_least=1),
        priority=priority,
        needs=needs,
        limit=limit,
        uses=uses,
        cures=cures,
        learned=learned,
        origin=origin,
    )
