"""Gatehouse: the gates of a file, and who may pass them. A look reads; whoever takes rows counts again, and writes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from watchbill.clock import Micros
from watchbill.model.agent import Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.breaker import UNLIMITED, BreakerState, read_breaker, started
from watchbill.model.gate import Candidate, Dependency, Gate, GateKey, admitted, offered, room, tokens_after
from watchbill.model.policy import UNREPEATABLE
from watchbill.model.stop import NONE_STOPPED, Stops
from watchbill.store.sqlite.breakers import write_breaker
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.sqlite.quotas import attempts_quota
from watchbill.store.sqlite.rows import queue_rows
from watchbill.store.tour import HEAD, MOST_GATES, Met, Opening, Passing, Which, lines_of, read_gate

Take = Callable[[Writer, Sequence[int], Sequence[int]], list[AttemptRow]]  # rows; and which of them are canaries


class MetQuota(Protocol):
    """Hears whether the namespace of an agent that leases has a quota of attempts."""

    def __call__(self, agent: int, *, there: bool) -> None:
        """Take note of it."""
        ...


_WELL: Final = (0, None, 0)  # a dependency of which nothing is remembered
_STATEMENTS: Final = {
    (True, Which.ALL): "limited_rows",
    (True, Which.FIRSTS): "limited_rows",
    (False, Which.ALL): "dependent_rows",
    (False, Which.FIRSTS): "dependent_rows",
    (False, Which.RETRIES): "retrying_rows",
}


class SqliteGatehouse:
    """What one request of an agent needs of the file."""

    def __init__(  # noqa: PLR0913 - what a request has
        self,
        lanes: Lanes,
        agent: int,
        room: Room,
        take: Take,
        taken: Callable[[list[AttemptRow]], None],
        met: MetQuota,
    ) -> None:
        self._met = met
        self._lanes = lanes
        self._agent = agent
        self._room = room
        self._take = take
        self._taken = taken
        self._bounded = False  # the agent's namespace has a quota of attempts

    async def look(self, afters: Mapping[int, str]) -> tuple[Micros, list[Met]]:
        """Find gates behind which rows wait in these queues."""
        return await self._lanes.read(lambda db: (db.now(), look(db, afters)))

    async def waiting(self, openings: Sequence[Opening], slots: int, alone: int) -> list[Candidate]:
        """Find the most urgent rows behind gates that have room."""
        asked = self._room._replace(slots=slots, alone=alone)
        found, self._bounded = await self._lanes.read(lambda db: waiting(db, openings, self._agent, asked))
        self._met(self._agent, there=self._bounded)
        return found

    async def passing(self, queues: Sequence[int]) -> tuple[Micros, list[Passing]]:
        """Find which of these queues use a dependency that lets some start, or have retries."""
        return await self._lanes.read(lambda db: (db.now(), passing(db, queues)))

    async def take(
        self, chosen: Sequence[Candidate], gates: Mapping[GateKey, Gate], dependencies: Sequence[GateKey]
    ) -> list[AttemptRow]:
        """Lease rows, as many of them as their gates let through now."""
        bounded = self._agent if self._bounded else None
        return await self._lanes.write(
            lambda db: take(db, chosen, gates, dependencies, self._take, bounded=bounded), self._taken
        )


def look(db: Database, afters: Mapping[int, str]) -> list[Met]:
    """Find gates, queue by queue."""
    found = []
    for queue, after in afters.items():
        values: Named = {"queue": queue, "after": after, "most": MOST_GATES, "head": HEAD}
        for id, leapt, namespace, name, *gate, newest, policy, uses, paused, breaker, runs in db.run(
            "limited_gates", values
        ):
            dependency = None if uses is None else read_dependency(GateKey(namespace, uses), paused, breaker, runs)
            met = Met(id, leapt, GateKey(namespace, name), offered(read_gate(*gate), newest, policy), dependency)
            found.append(met)
    return found


def passing(db: Database, queues: Sequence[int]) -> list[Passing]:
    """Find dependencies that let some start, or before which retries wait."""
    return [
        Passing(queue, read_dependency(GateKey(namespace, name), *columns))
        for queue, namespace, name, *columns in db.run("passing", {"queues": json_text(queues)})
    ]


def waiting(db: Database, openings: Sequence[Opening], agent: int, asked: Room) -> tuple[list[Candidate], bool]:
    """Find rows, gate by gate; says whether a quota of attempts bounds them, too."""
    found, now = [], db.now()
    stops = stops_of(db, agent)
    if stops.bounded and attempts_left(db, agent) <= 0:
        return [], True
    open_to = unstopped(db, stops, [opening.queue for opening in openings])
    steps, workflows = leasable(stops, asked)
    for opening in openings:
        if opening.queue not in open_to:
            continue
        statement = _STATEMENTS[opening.limited, opening.which]
        for lonely, most in ((0, asked.slots), (1, asked.alone)):
            values: Named = {"agent": agent, "steps": steps, "workflows": workflows, "now": now}
            values |= {
                "trial": asked.trial,
                "unrepeatable": UNREPEATABLE,
                "queue": opening.queue,
                "gate": opening.gates[0].name,
            }
            values |= {"lonely": lonely, "limit": min(most, opening.room), "retries": opening.which != Which.FIRSTS}
            found += [Candidate(opening.gates, *row) for row in db.run(statement, values)]
    return found, stops.bounded


def attempts_left(db: Database, agent: int) -> int:
    """Give how many more attempts may start by the quota of the agent's namespace."""
    row = db.run("namespace_of_agent", {"agent": agent}).fetchone()
    quota = None if row is None else attempts_quota(db, row[0])
    return UNLIMITED if quota is None else max(0, quota.most - quota.running)


def stops_of(db: Database, agent: int) -> Stops:
    """Read what must not start in an agent's namespace."""
    found = db.run("stopped").fetchall()
    if not found:
        return NONE_STOPPED
    row = db.run("namespace_of_agent", {"agent": agent}).fetchone()
    return Stops(frozenset([name for namespace, name in found if row is not None and namespace == row[0]]))


def unstopped(db: Database, stops: Stops, queues: Sequence[int], *, troubled: bool = True) -> list[int]:
    """Give those of these queues that are not paused, by what they need or use; with those that are only troubled."""
    if not stops:
        return list(queues)
    rows = queue_rows(db.run("queues_by_id", {"queues": json_text(queues)}))
    return [row.id for row in rows if stops.of_queue(row.needs, "" if troubled else row.uses) is None]


def leasable(stops: Stops, room: Room) -> tuple[str, str | None]:
    """Give the steps that may be leased, and the workflows of which nothing may be, as statements want them."""
    if not stops:
        return json_text(room.steps), None
    steps = [step for step in room.steps if stops.of_step(step) is None]
    return json_text(steps), json_text(stops.workflows) if stops.workflows else None


def take(  # noqa: PLR0913 - what one request has found
    db: Writer,
    chosen: Sequence[Candidate],
    seen: Mapping[GateKey, Gate],
    depended_on: Sequence[GateKey],
    lease: Take,
    *,
    bounded: int | None = None,
) -> list[AttemptRow]:
    """Lease what its gates let through; nobody else can let anyone through meanwhile.

    `bounded` is the agent, if its namespace has a quota of attempts.
    """
    now = db.now()
    db.run_many(
        "meet_gate",
        [
            (*key, gate.allowed.at_once, gate.allowed.starts, gate.allowed.per, gate.allowed.burst, now, gate.said)
            for key, gate in seen.items()
        ],
    )
    gates = {key: read_gate(*db.run("gate_stands", key._asdict()).fetchone()) for key in seen}
    dependencies = {
        key: read_dependency(key, *(db.run("breaker_stands", key._asdict()).fetchone() or _WELL)) for key in depended_on
    }
    rooms = {key: room(gate, now) for key, gate in gates.items()}
    rooms |= {key: dependency.room(now) for key, dependency in dependencies.items()}
    budgets = {key: dependency.budget(now) for key, dependency in dependencies.items()}
    most, lines = len(chosen), lines_of(seen)
    slots = most if bounded is None else min(most, attempts_left(db, bounded))
    starting = admitted(chosen, rooms, slots=slots, alone=most, budgets=budgets, lines=lines, now=now)
    fitting = {one.id: one.gates for one in starting}
    trying = [key for key, one in dependencies.items() if one.breaker.state is BreakerState.HALF_OPEN]
    canaries = [id for id, behind in fitting.items() if any(key in trying for key in behind)]
    rows = lease(db, list(fitting), canaries) if fitting else []
    for key, gate in gates.items():
        count = sum(key in fitting[row.id] for row in rows)
        if count:
            db.run("spend_tokens", (*key, tokens_after(gate, count, now), now, seen[key].said))
    for key, dependency in dependencies.items():
        mine = [row for row in rows if key in fitting[row.id]]
        fences, retries = {row.id: row.fence for row in mine}, sum(row.failures > 0 for row in mine)
        write_breaker(db, key, dependency.breaker, started(dependency.breaker, fences, now, retries=retries), now)
    return rows


def read_dependency(key: GateKey, paused: int, breaker: bytes | None, canary_runs: int) -> Dependency:
    """Read the gate of a dependency."""
    return Dependency(key, bool(paused), read_breaker(breaker), bool(canary_runs))
