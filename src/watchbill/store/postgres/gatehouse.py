"""Gatehouse: the gates of a store, and who may pass them. Looks lock nothing; who takes rows locks their gates.

Gates are locked in the order of their names, after the agent's own row and before any attempt; attempts that somebody
else has locked are passed over. So whoever waits here waits for nobody who waits for him.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.agent import Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.gate import Candidate, Gate, GateKey, admitted, offered, room, tokens_after
from watchbill.model.states import AttemptState
from watchbill.store.postgres.connections import Connections, Session
from watchbill.store.postgres.rows import attempt_rows
from watchbill.store.tour import HEAD, MOST_GATES, Met, Opening, read_gate

SPARE = 100  # rows that are read beside those there is room for: some are behind a gate that has none left for them


class PostgresGatehouse:
    """What one request of an agent needs of the store."""

    def __init__(
        self,
        lines: Connections,
        agent: int,
        lease_no: int,
        room: Room,
        taken: Callable[[list[AttemptRow]], None],
    ) -> None:
        self._lines = lines
        self._me = {"agent": agent, "lease_no": lease_no}
        self._steps = list(room.steps)
        self._taken = taken

    async def look(self, afters: Mapping[int, str]) -> tuple[Micros, list[Met]]:
        """Find gates behind which rows wait in these queues."""
        values = {"queues": list(afters), "afters": list(afters.values()), "most": MOST_GATES, "head": HEAD}
        found = cast(Sequence[Any], await self._lines.rows(self._lines.others, "limited_gates", values))
        met = [
            Met(queue, leapt, GateKey(namespace, name), offered(read_gate(*gate), newest, policy))
            for _, queue, leapt, namespace, name, *gate, newest, policy in found
        ]
        return (found[0][0] if found else 0), met

    async def waiting(self, openings: Sequence[Opening], slots: int, alone: int) -> list[Candidate]:
        """Find the most urgent rows behind gates that have room."""
        values = {
            **self._me,
            "places": list(range(len(openings))),
            "queues": [opening.queue for opening in openings],
            "gates": [opening.key.name for opening in openings],
            "rooms": [opening.room for opening in openings],
            "slots": slots,
            "alone": alone,
            "steps": self._steps,
            "limit": 2 * slots + SPARE,
        }
        found = cast(Sequence[Any], await self._lines.rows(self._lines.others, "limited_rows", values))
        return [Candidate(openings[place].key, *row) for place, *row in found]

    async def take(self, chosen: Sequence[Candidate], gates: Mapping[GateKey, Gate]) -> list[AttemptRow]:
        """Lease rows, as many of them as their gates let through now."""
        rows = await self._lines.transact(lambda db: self._take(db, chosen, gates))
        self._taken(rows)
        return rows

    async def _take(self, db: Session, chosen: Sequence[Candidate], seen: Mapping[GateKey, Gate]) -> list[AttemptRow]:
        values = _columns(seen)
        [alive] = await db.row("lock_gates", {**self._me, **values})
        if not alive:
            return []
        keys, gates, now = list(seen), dict[GateKey, Gate](), 0
        for at, place, *gate in cast(Sequence[Any], await db.rows("gates_locked", values)):
            gates[keys[place - 1]], now = read_gate(*gate), at
        rooms = {key: room(gate, now) for key, gate in gates.items()}
        fitting = admitted(chosen, rooms, slots=len(chosen), alone=len(chosen))
        if not fitting:
            return []
        fitting.sort(key=lambda one: one.id)
        passed = sorted({one.gate for one in fitting})
        places = {key: place for place, key in enumerate(passed, start=1)}
        values = {
            **self._me,
            **_columns({key: seen[key] for key in passed}),
            "ids": [one.id for one in fitting],
            "places": [places[one.gate] for one in fitting],
            "ready": AttemptState.READY,
            # Not yet less by those who start: of these rows some may be somebody else's by now.
            "tokens": [tokens_after(gates[key], 0, now) for key in passed],
            "tokens_at": now,
        }
        return attempt_rows(await db.rows("lease_limited", values))


def _columns(seen: Mapping[GateKey, Gate]) -> dict[str, object]:
    return {
        "namespaces": [key.namespace for key in seen],
        "names": [key.name for key in seen],
        "at_onces": [gate.allowed.at_once for gate in seen.values()],
        "starts": [gate.allowed.starts for gate in seen.values()],
        "pers": [gate.allowed.per for gate in seen.values()],
        "bursts": [gate.allowed.burst for gate in seen.values()],
        "saids": [gate.said for gate in seen.values()],
    }
