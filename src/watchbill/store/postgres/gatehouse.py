"""Gatehouse: the gates of a store, and who may pass them. Looks lock nothing; who takes rows locks their gates.

Gates are locked in the order of their names, after the agent's own row and before any attempt; attempts that somebody
else has locked are passed over. So whoever waits here waits for nobody who waits for him.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from watchbill.clock import Micros
from watchbill.model.agent import Room
from watchbill.model.attempt import AttemptRow
from watchbill.model.breaker import UNLIMITED, BreakerState, read_breaker, started
from watchbill.model.gate import Candidate, Dependency, Gate, GateKey, admitted, offered, room, tokens_after
from watchbill.model.policy import UNREPEATABLE
from watchbill.model.states import AttemptState
from watchbill.store.postgres.breakers import write_breakers
from watchbill.store.postgres.connections import Connections, Session
from watchbill.store.postgres.quotas import attempts_left
from watchbill.store.postgres.rows import attempt_rows
from watchbill.store.tour import HEAD, MOST_GATES, Met, Opening, Passing, Which, lines_of, read_gate

SPARE = 100  # rows that are read beside those there is room for: some are behind a gate that has none left for them
_STATEMENTS: Final = {
    (True, Which.ALL): "limited_rows",
    (True, Which.FIRSTS): "limited_rows",
    (False, Which.ALL): "dependent_rows",
    (False, Which.FIRSTS): "dependent_rows",
    (False, Which.RETRIES): "retrying_rows",
}


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
        self._me = {"agent": agent, "lease_no": lease_no, "suspended": room.trial or room.sole}
        self._trial = room.trial
        self._steps = list(room.steps)
        self._taken = taken
        self._full = False  # the quota of attempts of the agent's namespace was found to be used up

    async def look(self, afters: Mapping[int, str]) -> tuple[Micros, list[Met]]:
        """Find gates behind which rows wait in these queues."""
        values = {
            "queues": list(afters),
            "afters": list(afters.values()),
            "most": MOST_GATES,
            "head": HEAD,
            "running": AttemptState.RUNNING,
            "failed": AttemptState.FAILED,
        }
        found = cast(Sequence[Any], await self._lines.rows(self._lines.others, "limited_gates", values))
        met = [
            Met(
                queue,
                leapt,
                GateKey(namespace, name),
                offered(read_gate(*gate), newest, policy),
                None if uses is None else read_dependency(namespace, uses, *dependency),
            )
            for _, queue, leapt, namespace, name, *gate, newest, policy, uses, paused, breaker, runs in found
            for dependency in [(paused, breaker, runs)]
        ]
        return (found[0][0] if found else 0), met

    async def passing(self, queues: Sequence[int]) -> tuple[Micros, list[Passing]]:
        """Find which of these queues use a dependency that lets some start, or have retries."""
        passing_states = [BreakerState.HALF_OPEN, BreakerState.CLOSING]
        values = {
            "queues": list(queues),
            "running": AttemptState.RUNNING,
            "failed": AttemptState.FAILED,
            "passing": passing_states,
        }
        found = cast(Sequence[Any], await self._lines.rows(self._lines.others, "passing", values))
        passing = [Passing(queue, read_dependency(*dependency)) for _, queue, *dependency in found]
        return (found[0][0] if found else 0), passing

    async def waiting(self, openings: Sequence[Opening], slots: int, alone: int) -> list[Candidate]:
        """Find the most urgent rows behind gates that have room."""
        found: list[Candidate] = []
        if self._full:
            return found
        for statement in dict.fromkeys(_STATEMENTS.values()):
            asked = [one for one in openings if _STATEMENTS[one.limited, one.which] == statement]
            if asked:
                found += await self._waiting(statement, asked, slots, alone)
        return found

    async def _waiting(self, statement: str, openings: Sequence[Opening], slots: int, alone: int) -> list[Candidate]:
        values = {
            **self._me,
            "places": list(range(len(openings))),
            "queues": [opening.queue for opening in openings],
            "gates": [opening.gates[0].name for opening in openings],
            "rooms": [opening.room for opening in openings],
            "lasts": [opening.last for opening in openings],
            "retries": [opening.which is not Which.FIRSTS for opening in openings],
            "slots": slots,
            "alone": alone,
            "steps": self._steps,
            "trial": self._trial,
            "unrepeatable": UNREPEATABLE,
            "limit": 2 * slots + SPARE,
        }
        found = cast(Sequence[Any], await self._lines.rows(self._lines.others, statement, values))
        return [Candidate(openings[place].gates, *row) for place, *row in found]

    async def take(
        self, chosen: Sequence[Candidate], gates: Mapping[GateKey, Gate], dependencies: Sequence[GateKey]
    ) -> list[AttemptRow]:
        """Lease rows, as many of them as their gates let through now."""
        rows = await self._lines.transact(lambda db: self._take(db, chosen, gates, dependencies))
        self._taken(rows)
        return rows

    async def _take(
        self, db: Session, chosen: Sequence[Candidate], seen: Mapping[GateKey, Gate], depended_on: Sequence[GateKey]
    ) -> list[AttemptRow]:
        values = _columns(seen)
        [alive, bounded] = await db.row("lock_gates", {**self._me, **values})
        if not alive:
            return []
        # Its gate is locked here, behind those of limits and before those of dependencies: by the order of their names.
        left = await attempts_left(db, self._me["agent"]) if bounded else None
        if left is not None and left <= 0:
            self._full = True
            return []
        keys, gates, now = list(seen), dict[GateKey, Gate](), 0
        for at, place, *gate in cast(Sequence[Any], await db.rows("gates_locked", values)):
            gates[keys[place - 1]], now = read_gate(*gate), at
        rooms = {key: room(gate, now) for key, gate in gates.items()}
        retries = any(one.retry for one in chosen)
        dependencies = await self._lock(db, depended_on, counting=retries) if depended_on else {}
        now = next((at for at, _ in dependencies.values()), now)
        rooms |= dict.fromkeys(depended_on, UNLIMITED)  # of whom nothing is remembered is well
        rooms |= {key: dependency.room(now) for key, (_, dependency) in dependencies.items()}
        budgets = {key: dependency.budget(now) for key, (_, dependency) in dependencies.items()}
        most, lines = len(chosen), lines_of(seen)
        slots = most if left is None else min(most, left)
        fitting = admitted(chosen, rooms, slots=slots, alone=most, budgets=budgets, lines=lines, now=now)
        if not fitting:
            return []
        fitting.sort(key=lambda one: one.id)
        passed = sorted({key for one in fitting for key in one.gates if key in gates})
        places = {key: place for place, key in enumerate(passed, start=1)}
        trying = [key for key, (_, one) in dependencies.items() if one.breaker.state is BreakerState.HALF_OPEN]
        values = {
            **self._me,
            **_columns({key: seen[key] for key in passed}),
            "ids": [one.id for one in fitting],
            "places": [next((places[key] for key in one.gates if key in places), None) for one in fitting],
            "ready": AttemptState.READY,
            # Not yet less by those who start: of these rows some may be somebody else's by now.
            "tokens": [tokens_after(gates[key], 0, now) for key in passed],
            "tokens_at": now,
            "canaries": sorted(one.id for one in fitting if any(key in trying for key in one.gates)),
            "passing_namespaces": [key.namespace for key in dependencies],
            "passing_names": [key.name for key in dependencies],
        }
        rows = attempt_rows(await db.rows("lease_limited", values))
        behind = {one.id: one.gates for one in fitting}
        moved = {}
        for key, (_, dependency) in dependencies.items():
            mine = [row for row in rows if key in behind[row.id]]
            fences, again = {row.id: row.fence for row in mine}, sum(row.failures > 0 for row in mine)
            moved[key] = dependency.breaker, started(dependency.breaker, fences, now, retries=again)
        await write_breakers(db, moved)
        return rows

    @staticmethod
    async def _lock(
        db: Session, keys: Sequence[GateKey], *, counting: bool
    ) -> dict[GateKey, tuple[Micros, Dependency]]:
        """Lock the gates of dependencies, and read them, those that are there; for who counts, all are."""
        values: dict[str, object] = {
            "namespaces": [key.namespace for key in keys],
            "names": [key.name for key in keys],
            "running": AttemptState.RUNNING,
            "failed": AttemptState.FAILED,
        }
        if counting:
            await db.rows("meet_dependencies", values)
        await db.rows("lock_breakers", values)
        found = cast(Sequence[Any], await db.rows("breakers_locked", values))
        return {keys[place - 1]: (now, read_dependency(*keys[place - 1], *columns)) for now, place, *columns in found}


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


def read_dependency(namespace: str, name: str, paused: bool, breaker: bytes | None, canary_runs: bool) -> Dependency:
    """Read the gate of a dependency."""
    return Dependency(GateKey(namespace, name), paused, read_breaker(breaker), canary_runs)
