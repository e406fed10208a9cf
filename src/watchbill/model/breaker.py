"""Breaker: whether a dependency is well, as its gate remembers it. Pure: how attempts end, and the time, go in.

Closed: everything starts. Open: nothing starts, and nothing is charged. Half-open: one attempt may try, the canary.
Closing: the canary was done, and those who wait leave at a pace. Only failures are written down while all is well, and
of the successes after one no more than can matter: a dependency that is well costs no write. While it is closed, or
closing, retries start by their budget (`model/budget.py`).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, assert_never

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model import budget as budgeting
from watchbill.model.budget import Budget
from watchbill.model.failure import Cause, Failure, Remedy

IN_A_ROW: Final = 5  # failures: chance alone rarely makes five of a dependency that is well
WINDOW: Final[Micros] = 30 * SECOND  # in which the others are counted: long enough for slow ones to be many
SLICE: Final[Micros] = WINDOW // 10  # by which the window moves on: to remember every end would cost with the traffic
AT_LEAST: Final = 20  # attempts: half of fewer says little
SHARE: Final = 0.5  # of them: as many fail as do not
ENOUGH: Final = 20  # successes that are counted beyond the failures of a slice: more would be a write for each
FIRST_WAIT: Final[Micros] = 5 * SECOND  # before the first canary: a restart takes that long
LONGEST_WAIT: Final[Micros] = 60 * SECOND  # what comes back is found within a minute
SPREAD: Final[Micros] = 5 * SECOND  # in which those who wait leave, if the pace allows it
PACE_EVERY: Final[Micros] = SECOND  # so often those who still wait are counted
TWICE: Final = 1.8  # times the steady rate: with what leaves together, never more than twice in any second
TOGETHER: Final = 0.1  # of a second's worth may leave together: a lease for each would cost more than the work
AGAIN: Final = 0.5  # of those who leave: what is under way when it breaks down fails, and that may be many
UNUSED: Final = 0.75  # of the pace: where less is used, it is not the pace that keeps those who wait
UNASKED: Final = 12  # times longer that is waited for while nobody leaves at all: perhaps nobody asks
SLOWEST: Final = 1.0  # a second: fewer storm nobody, and somebody waits for them
LONGEST_ERROR: Final = 200  # characters of the last failure, to be shown
MOST_PACES: Final = 1_000  # agents whose pace is remembered
USES: Final = "uses:"  # how the names of the gates of dependencies begin
CANARY: Final = "canary"  # as the reason of a running row: that it tries for all the others
UNLIMITED: Final = 1 << 40

ILL: Final = frozenset({Cause.RAISED, Cause.LATE, Cause.STALLED, Cause.REJECTED})

_WHOLE: Final = 1 - 1e-6  # of a token: what is missing was lost by rounding


class BreakerState(IntEnum):
    """How a dependency is."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2
    CLOSING = 3

    @property
    def word(self) -> str:
        """As people say it."""
        return self.name.lower().replace("_", "-")


class Breaker(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the gate of a dependency remembers."""

    state: BreakerState = BreakerState.CLOSED
    since: Micros = 0  # of this state
    window: tuple[tuple[int, int, int], ...] = ()  # the number of a slice of time, failures, successes that matter
    in_a_row: int = 0
    wait: Micros = 0  # before the next canary
    opened_at: Micros = 0  # the first time in this trouble
    why: str = ""  # it opened
    error: str = ""  # the last failure
    canary: tuple[int, int] | None = None  # id and fence of the row that tries; whether it still runs, the row says
    paces: dict[str, float] = {}  # by agent: what it started in a second before the trouble
    steady: float = 0.0  # what was started in a second, in all, before or by now
    rate: float = 0.0  # what may leave in a second, while it is closing
    tokens: float = 0.0
    tokens_at: Micros = 0
    waiting: int = 0  # when they were last counted
    paced_at: Micros = 0  # that was then
    left: int = 0  # those who have left since
    left_at: Micros = 0  # the last of them all
    unused: Micros = 0  # for how long the pace has kept nobody, as far as can be seen
    told: bool = True  # the supervisor has told how it is
    budget: Budget = Budget()  # for retries
    again: Budget = Budget()  # of those who leave, beside it: when it is closed they are nobody's business any more

    @property
    def failed(self) -> int:
        """Failures in the window."""
        return sum(failed for _, failed, _ in self.window)

    @property
    def done(self) -> int:
        """Successes in the window, as far as they matter."""
        return sum(done for _, _, done in self.window)

    @property
    def next_at(self) -> Micros:
        """When the next canary may start, while it is open."""
        return self.since + self.wait


class Ended(NamedTuple):
    """What the end of an attempt says of the dependency that it uses."""

    queue: int  # in which its row is: it says which dependency
    id: int
    fence: int
    well: bool
    error: str = ""
    agent: int | None = None
    pace: float = 0.0  # what that agent has started in a second of late
    firsts: int | None = None  # of these, first tries, in all; None: nothing is said of it


class BreakerRow(NamedTuple):
    """A dependency that is not simply well, as supervisors read it."""

    namespace: str
    name: str
    breaker: bytes  # as it is stored: the evidence of whoever moves it
    waiting: int  # rows that are ready, counted up to a limit
    now: Micros


class Move(NamedTuple):
    """What a supervisor makes of a breaker, if it is still what it saw."""

    namespace: str
    name: str
    seen: bytes
    after: bytes
    state: int
    watch_at: Micros | None


encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Breaker).decode

WELL: Final = Breaker()


def read_breaker(body: bytes | None) -> Breaker:
    """Read what a gate remembers."""
    return WELL if not body else _decode(body)


def gate_of(uses: str) -> str:
    """Name the gate of a dependency."""
    return USES + uses


def is_ill(failure: Failure) -> bool:
    """Say whether a failure tells against the dependency.

    Not a loss, which is the agent's; and nothing that its author, or the service itself, calls hopeless: that a card is
    refused or an argument invalid is an answer, and whoever answers is there. Nor what a probe has found.
    """
    return failure.cause in ILL and failure.remedy is Remedy.RETRY and not has_answered(failure)


def has_answered(failure: Failure) -> bool:
    """Say whether a failure tells that the dependency is well: a probe has heard that something is not done."""
    return failure.probed is not None


def shown_error(failure: Failure) -> str:
    """Give a failure in a line, to be shown with the dependency."""
    return f"{failure.type}: {failure.message}"[:LONGEST_ERROR]


# --- what attempts tell


def heard(breaker: Breaker, ended: Ended, now: Micros) -> Breaker:
    """Take in how an attempt has ended; gives the same breaker when that changes nothing."""
    match breaker.state:
        case BreakerState.HALF_OPEN if breaker.canary == (ended.id, ended.fence):
            return closing(breaker, now) if ended.well else opened(_noted(breaker, ended), "the canary failed", now)
        case BreakerState.OPEN | BreakerState.HALF_OPEN:
            return breaker if ended.well else _noted(breaker, ended)  # it began before
        case _:
            breaker = _told_of_firsts(breaker, ended, now)
            return _counted_done(breaker, now) if ended.well else _counted_failed(breaker, ended, now)


def _told_of_firsts(breaker: Breaker, ended: Ended, now: Micros) -> Breaker:
    if ended.firsts is None or ended.agent is None:
        return breaker
    budget = budgeting.told(breaker.budget, ended.agent, ended.firsts, now)
    return breaker if budget is breaker.budget else msgspec.structs.replace(breaker, budget=budget)


def _noted(breaker: Breaker, ended: Ended) -> Breaker:
    """Remember the last failure, and how much its agent started before the trouble."""
    paces, agent = breaker.paces, str(ended.agent)
    if ended.agent is not None and ended.pace > paces.get(agent, 0.0) and len(paces) < MOST_PACES:
        paces = {**paces, agent: ended.pace}
    return msgspec.structs.replace(breaker, error=ended.error or breaker.error, paces=paces)


def _counted_done(breaker: Breaker, now: Micros) -> Breaker:
    recent = _recent(breaker, now)
    counts = recent.failed > 0 and _matters(recent, now)
    if not counts and not breaker.in_a_row:
        return breaker
    return _added(msgspec.structs.replace(recent, in_a_row=0), now, 0, int(counts))


def _matters(recent: Breaker, now: Micros) -> bool:
    """Say whether one more success does: in each slice as many count, since those before it leave the window first."""
    number, failed, done = recent.window[-1]
    return number < now // SLICE or done < failed + ENOUGH


def _counted_failed(breaker: Breaker, ended: Ended, now: Micros) -> Breaker:
    breaker = _recent(breaker, now)
    if not breaker.failed and breaker.state is BreakerState.CLOSED:
        breaker = msgspec.structs.replace(breaker, window=(), paces={})
    breaker = _added(_noted(breaker, ended), now, 1, 0)
    failed, in_a_row = breaker.failed, breaker.in_a_row + 1
    breaker = msgspec.structs.replace(breaker, in_a_row=in_a_row)
    if in_a_row >= IN_A_ROW:
        return opened(breaker, f"{in_a_row} failures in a row", now)
    ends = failed + breaker.done
    if ends >= AT_LEAST and failed >= SHARE * ends:
        return opened(breaker, f"{failed} of {ends} attempts failed within {WINDOW // SECOND} s", now)
    return breaker


def _recent(breaker: Breaker, now: Micros) -> Breaker:
    """Leave out what ended before the window: of what is left all ended within it."""
    if not breaker.window or breaker.window[0][0] * SLICE > now - WINDOW:
        return breaker
    return msgspec.structs.replace(
        breaker, window=tuple([part for part in breaker.window if part[0] * SLICE > now - WINDOW])
    )


def _added(breaker: Breaker, now: Micros, failed: int, done: int) -> Breaker:
    """Count an end in the slice of its time; who tells of it later than others counts it in the last one."""
    number = now // SLICE
    *before, last = breaker.window or ((number, 0, 0),)
    if last[0] < number:
        before, last = [*before, last], (number, 0, 0)
    return msgspec.structs.replace(breaker, window=(*before, (last[0], last[1] + failed, last[2] + done)))


# --- from state to state


def opened(breaker: Breaker, why: str, now: Micros) -> Breaker:
    """Let nothing start until the next canary; after each that fails for twice as long."""
    first = breaker.state is BreakerState.CLOSED
    return msgspec.structs.replace(
        breaker,
        state=BreakerState.OPEN,
        since=now,
        wait=FIRST_WAIT if first else min(LONGEST_WAIT, max(FIRST_WAIT, 2 * breaker.wait)),
        opened_at=now if first else breaker.opened_at,
        why=why if first or not breaker.why else breaker.why,
        canary=None,
        told=False,
    )


def half_opened(breaker: Breaker, now: Micros) -> Breaker:
    """Let one try."""
    return msgspec.structs.replace(breaker, state=BreakerState.HALF_OPEN, since=now, canary=None, told=True)


def closing(breaker: Breaker, now: Micros) -> Breaker:
    """Let those who wait leave, as soon as somebody has counted them."""
    return msgspec.structs.replace(
        breaker,
        state=BreakerState.CLOSING,
        since=now,
        window=(),
        in_a_row=0,
        canary=None,
        rate=0.0,
        tokens=0.0,
        tokens_at=now,
        left=0,
        left_at=0,
        unused=0,
        again=Budget(),
        told=False,
    )


def paced(breaker: Breaker, waiting: int, now: Micros) -> Breaker:
    """Say at which pace those who wait may leave, now that they are counted; closed when nobody waits for it any more.

    Never at more than twice the steady rate: what agents started before the trouble, or what has come during it, if
    that is more. So a crowd that is small for this dependency leaves within seconds, another no faster than it bore.
    """
    unused = _unused(breaker, now) if breaker.told else 0
    if not waiting or unused >= SPREAD:
        return WELL if breaker.budget == WELL.budget else Breaker(budget=breaker.budget)
    if not breaker.told:
        came = waiting * SECOND / max(SECOND, now - breaker.opened_at)
        steady, rate = max(sum(breaker.paces.values()), came), 0.0
    else:
        steady, rate = max(breaker.steady, _come(breaker, waiting, now)), breaker.rate
    rate = max(SLOWEST, min(max(rate, waiting * SECOND / SPREAD), TWICE * steady))
    there = tokens(breaker, now) if breaker.told else 1.0
    return msgspec.structs.replace(
        breaker,
        steady=steady,
        rate=rate,
        tokens=there,
        tokens_at=now,
        waiting=waiting,
        paced_at=now,
        left=0,
        unused=unused,
        told=True,
    )


def _come(breaker: Breaker, waiting: int, now: Micros) -> float:
    """Give how many came in a second since the last look, if more came than may leave: that is what is steady now."""
    grown = waiting - breaker.waiting
    return (grown + breaker.left) * SECOND / max(1, now - breaker.paced_at) if grown > 0 else 0.0


def _unused(breaker: Breaker, now: Micros) -> Micros:
    """Give for how long those who wait have not left though they might: something else keeps them, and no pace helps.

    A pause, a limit, needs that nobody has. Where nobody has left for long, perhaps nobody asks, and they would all
    leave at once when somebody does: that counts little.
    """
    span = now - breaker.paced_at
    if not breaker.left and now - breaker.left_at > SPREAD:
        return breaker.unused + span // UNASKED
    used = breaker.left * SECOND / max(1.0, UNUSED * breaker.rate * span)
    return max(0, breaker.unused + round(span * max(-1.0, 1 - used)))


def tended(breaker: Breaker, waiting: int, now: Micros) -> Breaker:
    """Give what a supervisor makes of a breaker that is due for a look, and of those who wait behind it."""
    match breaker.state:
        case BreakerState.OPEN if not breaker.told:
            return msgspec.structs.replace(breaker, told=True)
        case BreakerState.OPEN if now >= breaker.next_at:
            return half_opened(breaker, now)
        case BreakerState.CLOSING:
            return paced(breaker, waiting, now)
        case _:
            return breaker


def watch_at(breaker: Breaker) -> Micros | None:
    """Say when a supervisor has to look at it."""
    match breaker.state:
        case BreakerState.OPEN:
            return breaker.next_at if breaker.told else 0
        case BreakerState.CLOSING:
            return breaker.paced_at + PACE_EVERY if breaker.told else 0
        case _:
            return None  # whoever starts the canary, or ends it, moves it on


# --- who may start


def tokens(breaker: Breaker, now: Micros) -> float:
    """Give how many may leave by the pace."""
    come = max(0, now - breaker.tokens_at) * breaker.rate / SECOND
    return min(max(1.0, breaker.rate * TOGETHER), breaker.tokens + come)


def may_start(breaker: Breaker, now: Micros, *, canary_runs: bool) -> int:
    """Say how many may start now."""
    match breaker.state:
        case BreakerState.CLOSED:
            return UNLIMITED
        case BreakerState.OPEN:
            return 0
        case BreakerState.HALF_OPEN:
            return 0 if canary_runs else 1
        case BreakerState.CLOSING:
            return int(tokens(breaker, now) + 1 - _WHOLE)
        case _:
            assert_never(breaker.state)


def may_retry(breaker: Breaker, now: Micros) -> int:
    """Say how many of those may be retries: while all may start, as many as the budget allows.

    A canary tries for all the others. Of those who leave when it is done half may have failed before, beside the
    budget: a crowd leaves all the same, and what goes on failing gets no more than that.
    """
    match breaker.state:
        case BreakerState.CLOSED | BreakerState.CLOSING:
            return budgeting.left(_spent(breaker), now, _again(breaker))
        case _:
            return UNLIMITED


def _spent(breaker: Breaker) -> Budget:
    """Give the budget with all that was taken of it, and of what there is beside it while those who waited leave."""
    return budgeting.together(breaker.budget, breaker.again) if breaker.again.retried else breaker.budget


def _again(breaker: Breaker) -> int:
    """Give how many of those who leave within the budget's window may have failed before."""
    leaving = breaker.state is BreakerState.CLOSING
    return int(AGAIN * breaker.rate * budgeting.WINDOW / SECOND) if leaving else 0


def next_start_at(breaker: Breaker, now: Micros) -> Micros | None:
    """Say when to ask again, when budget or pace keeps somebody back: not for each that may leave, if they are many."""
    if breaker.state is BreakerState.CLOSED:
        return budgeting.next_at(breaker.budget, now)
    if breaker.state is not BreakerState.CLOSING or breaker.rate <= 0:
        return None
    if (there := tokens(breaker, now)) >= _WHOLE:
        return budgeting.next_at(_spent(breaker), now, _again(breaker))
    wanted = max(1.0, breaker.rate * TOGETHER / 2)
    return now + max(1, int((wanted - there) * SECOND / breaker.rate) + 1)


def started(breaker: Breaker, rows: Mapping[int, int], now: Micros, *, retries: int = 0) -> Breaker:
    """Take note of rows (with their fences) that have started, and how many of them are retries."""
    if not rows:
        return breaker
    if breaker.state is BreakerState.CLOSED:
        budget = budgeting.retried(breaker.budget, retries, now)
        return breaker if budget is breaker.budget else msgspec.structs.replace(breaker, budget=budget)
    if breaker.state is BreakerState.HALF_OPEN:
        [(id, fence)] = rows.items()
        return msgspec.structs.replace(breaker, canary=(id, fence))
    return msgspec.structs.replace(
        breaker,
        tokens=max(0.0, tokens(breaker, now) - len(rows)),
        tokens_at=now,
        left=breaker.left + len(rows),
        left_at=now,
        again=budgeting.retried(breaker.again, retries, now),
        unused=breaker.unused if now - breaker.left_at <= SPREAD else 0,
    )
