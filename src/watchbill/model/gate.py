"""Gate: what stands before the start of limited attempts, and how many it lets through. Pure: facts and time in.

How many run is counted each time and never kept, so nothing leaks when an owner dies. What a rate allows is a bucket:
tokens come steadily, up to a second's worth, and each start takes one.

The rows behind one gate of a limit are a line. Lines take turns (`admitted`), so a long line delays no other one.
"""

import heapq
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model import budget as budgeting
from watchbill.model.breaker import (
    UNLIMITED,
    USES,
    Breaker,
    BreakerState,
    closing,
    gate_of,
    may_retry,
    may_start,
    next_start_at,
    opened,
    read_breaker,
)
from watchbill.model.limit import LIMIT, Allowance
from watchbill.model.logbook import LogEntry
from watchbill.model.policy import decode_policy

WHOLE: Final = 1 - 1e-6  # of a token: what is missing was lost by rounding


class GateKey(NamedTuple):
    """Which gate: counted over all queues of its namespace, wherever they are served."""

    namespace: str
    name: str


class Gate(msgspec.Struct, frozen=True):
    """A gate as it stands; one that nobody has met yet lets everybody try, and whoever leases writes it down."""

    allowed: Allowance = Allowance()
    paused: bool = False
    tokens: float = 0.0
    tokens_at: Micros = 0
    said: int = 0  # the id of the row whose policy said what is allowed
    running: int = 0


class GateRow(msgspec.Struct, frozen=True):
    """A gate, for people."""

    name: str
    at_once: int | None
    rate: str | None
    running: int
    waiting: int  # counted up to a limit
    tokens: float | None
    paused: bool
    paused_by: str | None = None
    paused_why: str | None = None
    paused_at: datetime | None = None
    breaker: str | None = None  # of a dependency: closed, open, half-open or closing
    failures: int | None = None  # that it has counted
    why: str | None = None  # it opened
    opened_at: datetime | None = None
    next_try_at: datetime | None = None
    pace: float | None = None  # what may leave in a second while it is closing
    retries: int | None = None  # that have started of late, while it is closed
    budget: int | None = None  # how many may: those beyond wait, and let first tries pass
    next_retry_at: datetime | None = None  # if none may start now


class Standing(NamedTuple):
    """What is stored about a gate beside its limit: its breaker, and who has paused it."""

    paused: bool = False
    breaker: bytes | None = None
    paused_by: str | None = None
    paused_why: str | None = None
    paused_at: Micros | None = None


class GateAct(StrEnum):
    """What a person wants of a gate."""

    PAUSE = "pause"  # nothing starts behind it until it is opened
    OPEN = "open"  # whatever kept it is over
    CLOSE = "close"  # of a dependency: it is down, and only a canary tries now and then


class GateOrder(msgspec.Struct, frozen=True):
    """An order, as it is given."""

    name: str
    act: GateAct
    by: str
    reason: str

    @property
    def entry(self) -> LogEntry:
        """As the logbook has it."""
        return LogEntry("gate", self.name, self.act.value, self.by, self.reason)


class Dependency(NamedTuple):
    """The gate of a dependency as it stands."""

    key: GateKey
    paused: bool
    breaker: Breaker
    canary_runs: bool

    def room(self, now: Micros) -> int:
        """Give how many more may start now."""
        return 0 if self.paused else may_start(self.breaker, now, canary_runs=self.canary_runs)

    def budget(self, now: Micros) -> int:
        """Give how many of those may have failed before."""
        return may_retry(self.breaker, now)


class Candidate(NamedTuple):
    """A row that waits behind gates: of its limit, of its dependency, or both."""

    gates: tuple[GateKey, ...]
    id: int
    rank: Micros
    lonely: bool  # it needs a process of its own
    retry: bool = False  # it has failed before
    ahead: Micros = 0  # its head start by priority: its rank is that much earlier than the time it was inserted at


def tokens(gate: Gate, now: Micros) -> float:
    """Give how many may start by the rate alone."""
    rate = gate.allowed.rate
    if rate is None:
        return float(UNLIMITED)
    come = max(0, now - gate.tokens_at) * rate / SECOND
    return min(gate.allowed.burst, gate.tokens + come)


def room(gate: Gate, now: Micros) -> int:
    """Give how many more may start now."""
    if gate.paused:
        return 0
    free = UNLIMITED if gate.allowed.at_once is None else max(0, gate.allowed.at_once - gate.running)
    return min(free, int(tokens(gate, now) + 1 - WHOLE))


def next_token_at(gate: Gate, now: Micros) -> Micros | None:
    """Give when the rate lets the next one start; None when it is not the rate that keeps it back."""
    rate, there = gate.allowed.rate, tokens(gate, now)
    if gate.paused or rate is None or there >= WHOLE:
        return None
    if gate.allowed.at_once is not None and gate.running >= gate.allowed.at_once:
        return None  # whoever ends will say so
    return now + max(1, int((1 - there) * SECOND / rate) + 1)


def tokens_after(gate: Gate, started: int, now: Micros) -> float:
    """Give what is left in the bucket when so many have started."""
    return gate.tokens if gate.allowed.rate is None else max(0.0, tokens(gate, now) - started)


def shown_gate(name: str, gate: Gate, waiting: int, now: Micros) -> GateRow:
    """Give a gate as people see it."""
    there = None if gate.allowed.rate is None else round(tokens(gate, now), 3)
    return GateRow(name, gate.allowed.at_once, gate.allowed.rate_text, gate.running, waiting, there, gate.paused)


def shown_standing(row: GateRow, standing: Standing, now: Micros) -> GateRow:
    """Give a gate with how it stands: its breaker and budget if it is of a dependency, and who has paused it."""
    paused_at = None if standing.paused_at is None else to_datetime(standing.paused_at)
    row = msgspec.structs.replace(
        row,
        paused=standing.paused,
        paused_by=standing.paused_by if standing.paused else None,
        paused_why=standing.paused_why if standing.paused else None,
        paused_at=paused_at if standing.paused else None,
    )
    if not row.name.startswith(USES):
        return row
    breaker = read_breaker(standing.breaker)
    if breaker.state is BreakerState.CLOSED:
        next_at = next_start_at(breaker, now)
        return msgspec.structs.replace(
            row,
            breaker=breaker.state.word,
            failures=breaker.failed,
            retries=budgeting.used(breaker.budget, now),
            budget=budgeting.allowed(breaker.budget, now),
            next_retry_at=None if next_at is None else to_datetime(next_at),
        )
    return msgspec.structs.replace(
        row,
        breaker=breaker.state.word,
        failures=breaker.failed,
        why=f"{breaker.why}, the last with {breaker.error}" if breaker.error else breaker.why,
        opened_at=to_datetime(breaker.opened_at),
        next_try_at=to_datetime(breaker.next_at) if breaker.state is BreakerState.OPEN else None,
        pace=round(breaker.rate, 3) if breaker.state is BreakerState.CLOSING else None,
    )


def paused_by(order: GateOrder) -> bool | None:
    """Say whether a gate is paused after an order; None: as before."""
    return None if order.act is GateAct.CLOSE else order.act is GateAct.PAUSE


def is_made_by(order: GateOrder) -> bool:
    """Say whether an order makes its gate: only those of limits are there before, or cannot be ordered about."""
    return order.act is not GateAct.OPEN and not order.name.startswith(LIMIT)


def is_forgotten_by(order: GateOrder) -> bool:
    """Say whether nothing is left of a gate after an order: a name that is no longer paused is no gate."""
    return order.act is GateAct.OPEN and not order.name.startswith((LIMIT, USES))


def with_dependencies(
    gates: Iterable[GateRow],
    dependencies: Iterable[tuple[str, int, int]],
    standings: Mapping[str, Standing],
    now: Micros,
) -> list[GateRow]:
    """Give all gates as people see them, by name: also dependencies that were never in trouble."""
    rows = {gate.name: gate for gate in gates}
    rows |= {gate_of(uses): bare_gate(gate_of(uses), running, waiting) for uses, running, waiting in dependencies}
    return [shown_standing(rows[name], standings.get(name, Standing()), now) for name in sorted(rows)]


def with_names(gates: Iterable[GateRow], counts: Iterable[tuple[str, int, int]]) -> list[GateRow]:
    """Give gates with how many run and wait behind names that are paused."""
    found = {name: (running, waiting) for name, running, waiting in counts}
    return [
        msgspec.structs.replace(gate, running=found[gate.name][0], waiting=found[gate.name][1])
        if gate.name in found
        else gate
        for gate in gates
    ]


def bare_gate(name: str, running: int = 0, waiting: int = 0) -> GateRow:
    """Give a gate without a limit as people see it."""
    return GateRow(name, None, None, running, waiting, None, False)


def ordered(breaker: Breaker, order: GateOrder, now: Micros) -> Breaker:
    """Give what an order makes of the breaker of a dependency."""
    if order.act is GateAct.CLOSE and breaker.state is not BreakerState.OPEN:
        why = f"closed by {order.by}" + (f" ({order.reason})" if order.reason else "")
        return opened(breaker, why, now)
    if order.act is GateAct.OPEN and breaker.state in (BreakerState.OPEN, BreakerState.HALF_OPEN):
        return closing(breaker, now)
    return breaker


def admitted(  # noqa: PLR0913 - what a lease knows
    candidates: Iterable[Candidate],
    rooms: Mapping[GateKey, int],
    *,
    slots: int,
    alone: int,
    budgets: Mapping[GateKey, int] = MappingProxyType({}),
    lines: Mapping[GateKey, Micros] = MappingProxyType({}),
    now: Micros = 0,
) -> list[Candidate]:
    """Choose the most urgent rows that their gates and the agent have room for; of retries, what budgets allow.

    `lines` has the gates whose rows take turns, each with the time of the last start behind it.
    """
    left, retries = dict(rooms), dict(budgets)
    chosen: list[Candidate] = []
    waiting = _Lines(candidates, lines, now)
    while len(chosen) < slots and (candidate := waiting.next()) is not None:
        if any(left.get(gate, 0) <= 0 for gate in candidate.gates) or (candidate.lonely and alone <= 0):
            continue
        if candidate.retry and any(retries.get(gate, UNLIMITED) <= 0 for gate in candidate.gates):
            continue
        for gate in candidate.gates:
            left[gate] -= 1
            retries[gate] = retries.get(gate, UNLIMITED) - candidate.retry
        alone -= candidate.lonely
        chosen.append(candidate)
        waiting.started(candidate)
    return chosen


def turn_of(candidate: Candidate, last: Micros) -> Micros:
    """Give the rank at which a line's first row competes with other lines, by the time of the line's last start.

    A line counts as one caller that submits its next row when the last one starts. So only the wait since then counts,
    and the head start by priority.
    """
    return max(candidate.rank, last - candidate.ahead)


class _Lines:
    """Candidates by line; gives the next one of the line whose turn it is. Rows without a line compete by rank."""

    def __init__(self, candidates: Iterable[Candidate], lines: Mapping[GateKey, Micros], now: Micros) -> None:
        self._now = now
        self._last = dict(lines)
        self._before = lines  # the order of the first round is that of all rounds
        self._starts: dict[GateKey, int] = {}  # in this lease: they are all at the same time
        self._rows: dict[GateKey | None, list[Candidate]] = {}  # the most urgent one last
        for one in sorted(candidates, key=lambda one: (one.rank, one.id), reverse=True):
            self._rows.setdefault(self._line_of(one), []).append(one)
        self._heads = [self._place(rows[-1]) for rows in self._rows.values()]
        heapq.heapify(self._heads)
        self._given: GateKey | None = None
        self._open = False  # the line of the last one has not been put back yet

    def next(self) -> Candidate | None:
        """Give the next candidate; None when there is none left."""
        if self._open and (rows := self._rows[self._given]):
            heapq.heappush(self._heads, self._place(rows[-1]))
        self._open = bool(self._heads)
        if not self._heads:
            return None
        *_, candidate = heapq.heappop(self._heads)
        self._given = self._line_of(candidate)
        self._rows[self._given].pop()
        return candidate

    def started(self, candidate: Candidate) -> None:
        """Take note that the last candidate starts: its line has had its turn."""
        line = self._line_of(candidate)
        if line is not None:
            self._last[line] = self._now
            self._starts[line] = self._starts.get(line, 0) + 1

    def _line_of(self, candidate: Candidate) -> GateKey | None:
        first = candidate.gates[0]
        return first if first in self._last else None

    def _place(self, head: Candidate) -> tuple[Micros, int, Micros, Micros, int, Candidate]:
        line = self._line_of(head)
        if line is None:
            return head.rank, 0, head.rank, head.rank, head.id, head
        turn, first_turn = turn_of(head, self._last[line]), turn_of(head, self._before[line])
        return turn, self._starts.get(line, 0), first_turn, head.rank, head.id, head


def offered(gate: Gate, id: int, policy: bytes) -> Gate:
    """Give a gate with the numbers that a row says, if it is newer than the one that said the last ones."""
    if id <= gate.said:
        return gate
    allowed = decode_policy(policy).limit or Allowance()
    known = gate.said > 0
    return msgspec.structs.replace(gate, allowed=allowed, said=id, tokens=gate.tokens if known else allowed.burst)
