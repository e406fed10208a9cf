"""Tour: how an agent goes round the gates behind which rows wait, and leases those that a gate lets through.

A look finds the gates of the most urgent rows, and some of the others in the order of their names; where more wait than
that, the next look goes on from there. So a crowd behind one gate hides nobody, and each gate has its turn. Where all
have room, gates take turns too (`model/gate.py`, `admitted`), and a request that has filled the agent's room leaves the
next one to begin at the gates behind those that it has looked at. Looks lock
nothing and decide nothing: whoever takes rows counts again, under the locks of their gates.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from watchbill.clock import SECOND, Micros
from watchbill.model.agent import Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.breaker import BreakerState, next_start_at
from watchbill.model.gate import Candidate, Dependency, Gate, GateKey, admitted, next_token_at, room
from watchbill.model.limit import Allowance
from watchbill.model.policy import OWN_CHILD_FROM, decode_policy
from watchbill.store.protocol import Limited

MOST_GATES: Final = 200  # of each queue in one look: some milliseconds
HEAD: Final = 100  # of the most urgent rows of each queue: their gates are looked at in any case
LOOKS: Final = 25  # in one request that find nothing
LOOK_ON: Final[Micros] = SECOND  # after so many: the agent has other things to do
TRIES: Final = 20  # to take rows: others may be quicker, or a gate that is new turns out to be narrow


class Met(NamedTuple):
    """A gate as a look found it before one queue."""

    queue: int
    leapt: int  # the how-manieth it is by name; 0: it was found among the most urgent only
    key: GateKey
    gate: Gate
    dependency: Dependency | None = None  # that the rows of the queue use


class Passing(NamedTuple):
    """A dependency before a queue whose rows have no limit: troubled, it lets some start; well, retries wait there."""

    queue: int
    dependency: Dependency


def read_gate(*columns: Any) -> Gate:  # noqa: ANN401 - as the statements of both stores give them
    """Read a gate."""
    at_once, starts, per, paused, there, tokens_at, said, running = columns
    return Gate(Allowance(at_once, starts, per), bool(paused), there, tokens_at, said, running)


class Which(StrEnum):
    """Of the rows behind a gate, those that may start."""

    ALL = "all"
    FIRSTS = "firsts"  # the budget for the others is spent
    RETRIES = "retries"  # the others pass no gate


class Opening(NamedTuple):
    """Gates that have room, before one queue; of those with a limit that gate is the first."""

    queue: int
    gates: tuple[GateKey, ...]
    room: int
    limited: bool = True
    which: Which = Which.ALL
    last: Micros = 0  # of the first gate: when a row behind it was started last


class Gatehouse(Protocol):
    """What a tour needs of a store."""

    async def look(self, afters: Mapping[int, str]) -> tuple[Micros, list[Met]]:
        """Find gates behind which rows wait in these queues, by name from a place on; and the time, if there are."""
        ...

    async def passing(self, queues: Sequence[int]) -> tuple[Micros, list[Passing]]:
        """Find which of these queues use a dependency that lets some start, or have retries; and the time, if any."""
        ...

    async def waiting(self, openings: Sequence[Opening], slots: int, alone: int) -> list[Candidate]:
        """Find the most urgent rows behind gates that have room."""
        ...

    async def take(
        self, chosen: Sequence[Candidate], gates: Mapping[GateKey, Gate], dependencies: Sequence[GateKey]
    ) -> list[AttemptRow]:
        """Lease rows, as many of them as their gates let through now; these say what is allowed, in order of names."""
        ...


class Tour:
    """One request of one agent; `places` is where it goes on the next time. Pure: what was found goes in."""

    def __init__(self, places: dict[int, str], queues: Sequence[int], room: Room) -> None:
        self._places = places
        self._begun_at_first = {queue: not places.get(queue) for queue in queues}
        self._left = [] if room.slots <= 0 else list(queues)
        self._slots = room.slots
        self._alone = room.alone
        self._looks = LOOKS
        self._tries = TRIES
        self._more_at: dict[GateKey, Micros | None] = {}
        self._gates: dict[GateKey, Gate] = {}
        self._rooms: dict[GateKey, int] = {}
        self._dependencies: dict[GateKey, Dependency] = {}
        self._budgets: dict[GateKey, int] = {}
        self._later: Micros | None = None
        self._ends: dict[int, str] = {}  # by queue: the last gate of the last look, where there may be more
        self._now: Micros = 0

    @property
    def over(self) -> bool:
        """True when there is nothing more to look for, or no room for it."""
        return not self._left or self._slots <= 0 or self._tries <= 0 or self._looks <= 0

    @property
    def afters(self) -> dict[int, str]:
        """Where to begin in the queues that are left."""
        return {queue: self._places.get(queue, "") for queue in self._left}

    @property
    def slots(self) -> int:
        """How many attempts there is room for."""
        return self._slots

    @property
    def alone(self) -> int:
        """How many of these may need a process of their own."""
        return max(0, min(self._alone, self._slots))

    @property
    def next_at(self) -> Micros | None:
        """When time alone will let somebody start."""
        times = [at for at in (*self._more_at.values(), self._later) if at is not None]
        return min(times, default=None)

    def met(self, found: Sequence[Met], now: Micros) -> list[Opening]:
        """Take in what a look has found; gives the gates that have room."""
        self._gates, self._now = {}, now
        self._ends = {met.queue: met.key.name for met in found if met.leapt >= MOST_GATES}
        for met in found:  # one gate may stand before several queues: the newest row of all of them counts
            before = self._gates.get(met.key)
            if before is None or met.gate.said > before.said:
                self._gates[met.key] = met.gate
        self._more_at.update({key: next_token_at(gate, now) for key, gate in self._gates.items()})
        self._rooms = {key: free for key, gate in self._gates.items() if (free := room(gate, now)) > 0}
        self._depend_on([met.dependency for met in found if met.dependency is not None], now)
        openings = []
        for met in found:
            gates = (met.key,) if met.dependency is None else (met.key, met.dependency.key)
            if all(key in self._rooms for key in gates):
                which = Which.ALL if self._budgets.get(gates[-1], 1) > 0 else Which.FIRSTS
                free, last = min(self._rooms[key] for key in gates), self._gates[met.key].tokens_at
                openings.append(Opening(met.queue, gates, free, which=which, last=last))
        return openings

    def met_passing(self, found: Sequence[Passing], now: Micros) -> list[Opening]:
        """Take in which dependencies let some start; gives those that have room."""
        self._gates, self._rooms = {}, {}
        self._depend_on([passing.dependency for passing in found], now)
        openings = []
        for queue, dependency in found:
            key, budget = dependency.key, self._budgets[dependency.key]
            room, which = self._rooms.get(key, 0), Which.ALL if budget > 0 else Which.FIRSTS
            if dependency.breaker.state is BreakerState.CLOSED:
                room, which = min(room, budget), Which.RETRIES
            if room > 0:
                openings.append(Opening(queue, (key,), room, limited=False, which=which))
        return openings

    def _depend_on(self, dependencies: Sequence[Dependency], now: Micros) -> None:
        self._dependencies = {dependency.key: dependency for dependency in dependencies}
        self._budgets = {key: dependency.budget(now) for key, dependency in self._dependencies.items()}
        for key, dependency in self._dependencies.items():
            self._more_at[key] = next_start_at(dependency.breaker, now)
            if (free := dependency.room(now)) > 0:
                self._rooms[key] = free

    def chosen(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Choose whom to take."""
        return admitted(
            candidates,
            self._rooms,
            slots=self._slots,
            alone=self._alone,
            budgets=self._budgets,
            lines=lines_of(self._gates),
            now=self._now,
        )

    def before(self, chosen: Iterable[Candidate]) -> dict[GateKey, Gate]:
        """Give the gates of limits that these must pass, in order of their names."""
        keys = {key for one in chosen for key in one.gates if key in self._gates}
        return {key: self._gates[key] for key in sorted(keys)}

    def depended_on(self, chosen: Iterable[Candidate]) -> list[GateKey]:
        """Give the gates of dependencies that these must pass, in order of their names."""
        return sorted({key for one in chosen for key in one.gates if key in self._dependencies})

    def took(self, rows: Sequence[AttemptRow], chosen: Sequence[Candidate]) -> None:
        """Take note of what was leased; the same gates are looked at again, others may come behind those."""
        ids = {row.id for row in rows}
        self._slots -= len(rows)
        self._alone -= sum(one.lonely for one in chosen if one.id in ids)
        self._tries -= 1

    def filled(self) -> None:
        """Take note that there is no more room: the next request begins behind the gates of the last look."""
        if self._slots <= 0:
            self._places.update({queue: self._ends.get(queue, "") for queue in self._left})

    def passed(self, now: Micros) -> None:
        """Take note that nobody can start here: go on to the gates that were not looked at yet, once round."""
        for queue in list(self._left):
            self._places[queue] = self._ends.get(queue, "")
            if queue in self._ends:
                continue
            if self._begun_at_first[queue]:
                self._left.remove(queue)
            self._begun_at_first[queue] = True
        self._looks -= 1
        if self._left and self._looks <= 0:
            self._later = now + LOOK_ON


async def go_round(
    house: Gatehouse, places: dict[int, str], queues: Sequence[int], room: Room, troubled: Sequence[int] = ()
) -> Limited:
    """Lease the most urgent rows that gates let through, as many as there is room for.

    `troubled`: queues without limits of which some use what is troubled; those come first, since they are few.
    """
    tour = Tour(places, queues, room)
    rows: list[AttemptRow] = []
    now, tries = 0, TRIES if troubled else 0
    while tries > 0 and tour.slots > 0:
        at, passing = await house.passing(troubled)
        now = at or now
        openings = tour.met_passing(passing, now)
        chosen = tour.chosen(await house.waiting(openings, tour.slots, tour.alone)) if openings else []
        if not chosen:
            break
        taken = await house.take(chosen, {}, tour.depended_on(chosen))
        tour.took(taken, chosen)
        rows += taken
        tries = tries - 1 if taken else 0  # others were quicker: they will be asked for again
    while not tour.over:
        at, found = await house.look(tour.afters)
        now = at or now
        openings = tour.met(found, now)
        chosen = tour.chosen(await house.waiting(openings, tour.slots, tour.alone)) if openings else []
        if chosen:
            taken = await house.take(chosen, tour.before(chosen), tour.depended_on(chosen))
            tour.took(taken, chosen)
            rows += taken
        else:
            tour.passed(now)
    tour.filled()
    return Limited(rows, tour.next_at, now)


def lines_of(gates: Mapping[GateKey, Gate]) -> dict[GateKey, Micros]:
    """Give when a row was started last behind each of these gates."""
    return {key: gate.tokens_at for key, gate in gates.items()}


Take = Callable[[Room], Awaitable[tuple[list[AttemptRow], bool]]]  # rows; and whether some of their queues are shut
Round = Callable[[Room, Sequence[int]], Awaitable[Limited]]


async def lease_both(  # noqa: PLR0913 - what the two stores have in common
    troubled: set[int], agent: int, room: Room, free: Sequence[int], take: Take, go: Round
) -> Limited:
    """Lease from queues without limits, whose rows use dependencies, and from those with limits.

    Of a dependency that is well first tries are taken at once, as from any queue. Only when one was found to be in
    trouble, or something that has failed waits, its gate is asked; the next time it is asked first, so that the others
    leave room for the canary, and for the retries that its budget allows: those are few.
    """
    found = Limited([], None)
    known = agent in troubled
    if known:
        found = await go(room, free)
        room = less(room, found.rows)
    rows, shut = (await take(room)) if free and room.slots > 0 else (list[AttemptRow](), known)
    room = less(room, rows)
    (troubled.add if shut else troubled.discard)(agent)
    if not known:
        found = await go(room, free if shut else ())
    return Limited([*found.rows, *rows], found.next_at, found.now)


def less(room: Room, rows: Sequence[AttemptRow]) -> Room:
    """Give what room is left beside rows that were leased."""
    alone = sum(row.losses > OWN_CHILD_FROM or decode_policy(row.policy).own for row in rows)
    return room._replace(slots=max(0, room.slots - len(rows)), alone=max(0, room.alone - alone))
