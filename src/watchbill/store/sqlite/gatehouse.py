"""Gatehouse: the gates of a file, and who may pass them. A look reads; whoever takes rows counts again, and writes."""

from collections.abc import Callable, Mapping, Sequence

from watchbill.clock import Micros
from watchbill.model.agent import Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.gate import Candidate, Gate, GateKey, admitted, offered, room, tokens_after
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.lanes import Lanes
from watchbill.store.tour import HEAD, MOST_GATES, Met, Opening, read_gate

Take = Callable[[Writer, Sequence[int]], list[AttemptRow]]  # leases rows, if their agent may


class SqliteGatehouse:
    """What one request of an agent needs of the file."""

    def __init__(
        self, lanes: Lanes, agent: int, room: Room, take: Take, taken: Callable[[list[AttemptRow]], None]
    ) -> None:
        self._lanes = lanes
        self._whose: Named = {"agent": agent, "steps": json_text(room.steps)}
        self._take = take
        self._taken = taken

    async def look(self, afters: Mapping[int, str]) -> tuple[Micros, list[Met]]:
        """Find gates behind which rows wait in these queues."""
        return await self._lanes.read(lambda db: (db.now(), look(db, afters)))

    async def waiting(self, openings: Sequence[Opening], slots: int, alone: int) -> list[Candidate]:
        """Find the most urgent rows behind gates that have room."""
        return await self._lanes.read(lambda db: waiting(db, openings, self._whose, slots, alone))

    async def take(self, chosen: Sequence[Candidate], gates: Mapping[GateKey, Gate]) -> list[AttemptRow]:
        """Lease rows, as many of them as their gates let through now."""
        return await self._lanes.write(lambda db: take(db, chosen, gates, self._take), self._taken)


def look(db: Database, afters: Mapping[int, str]) -> list[Met]:
    """Find gates, queue by queue."""
    found = []
    for queue, after in afters.items():
        values: Named = {"queue": queue, "after": after, "most": MOST_GATES, "head": HEAD}
        for id, leapt, namespace, name, *gate, newest, policy in db.run("limited_gates", values):
            found.append(Met(id, leapt, GateKey(namespace, name), offered(read_gate(*gate), newest, policy)))
    return found


def waiting(db: Database, openings: Sequence[Opening], whose: Named, slots: int, alone: int) -> list[Candidate]:
    """Find rows, gate by gate."""
    found, now = [], db.now()
    for opening in openings:
        for lonely, most in ((0, slots), (1, alone)):
            values: Named = {**whose, "now": now, "queue": opening.queue, "gate": opening.key.name}
            values |= {"lonely": lonely, "limit": min(most, opening.room)}
            found += [Candidate(opening.key, *row) for row in db.run("limited_rows", values)]
    return found


def take(db: Writer, chosen: Sequence[Candidate], seen: Mapping[GateKey, Gate], lease: Take) -> list[AttemptRow]:
    """Lease what its gates let through; nobody else can let anyone through meanwhile."""
    now = db.now()
    db.run_many(
        "meet_gate",
        [
            (*key, gate.allowed.at_once, gate.allowed.starts, gate.allowed.per, gate.allowed.burst, now, gate.said)
            for key, gate in seen.items()
        ],
    )
    gates = {key: read_gate(*db.run("gate_stands", key._asdict()).fetchone()) for key in seen}
    rooms = {key: room(gate, now) for key, gate in gates.items()}
    fitting = {one.id: one.gate for one in admitted(chosen, rooms, slots=len(chosen), alone=len(chosen))}
    rows = lease(db, list(fitting)) if fitting else []
    for key, gate in gates.items():
        started = sum(fitting[row.id] == key for row in rows)
        if started:
            db.run("spend_tokens", (*key, tokens_after(gate, started, now), now, seen[key].said))
    return rows
