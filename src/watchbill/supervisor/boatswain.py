"""Boatswain: the part of the supervisor that keeps account of agents: who was lost, and whose threads run on.

Whoever is lost is told of once, by whoever writes it down. Of those who are missed and not replaced each namespace has
one incident, which says what is so now, and which is resolved when nobody is missed any more. All of it is read from
the store: so whoever goes on after a crash knows as much. While nobody is missed it looks once a minute, because
whoever has opened an incident may be gone.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event
from watchbill.model.alert import Route, marks_for
from watchbill.model.complement import ABANDONED, LOST_AGENTS, Complement
from watchbill.model.incident import IncidentRow, NewIncident, Told, told_by
from watchbill.store.protocol import SupervisorStore
from watchbill.supervisor.missing import abandoned_by, abandoned_cause, missing, note_of, told_of_lost, told_of_threads

LOOK_EVERY: Final[Micros] = 5 * SECOND  # while somebody is missed, or a thread runs on
LOOK_ANYWAY: Final[Micros] = 60 * SECOND  # else

_encode: Final = msgspec.json.Encoder().encode

Cause = tuple[str, str]  # with its namespace


class Boatswain:
    """Who is missed, and what runs on."""

    def __init__(self, env: Env, store: SupervisorStore, routes: Sequence[Route] = ()) -> None:
        self._env = env
        self._store = store
        self._marks = marks_for(routes, "")  # whom to tell of incidents
        self._look_at: Micros = 0  # at once: an incident may be open that nobody looks after
        self.is_watching = False  # somebody is missed, or a thread runs on, or an incident says so

    @property
    def due_in(self) -> Micros:
        """Say how long it is until the next look."""
        return max(0, self._look_at - self._env.clock.boot())

    def hear(self, *, abandoned: bool) -> None:
        """Hear whether an agent says that threads of it run on: then there is something to look at."""
        if abandoned and not self.is_watching:
            self._look_at = 0

    async def miss(self, agents: Sequence[int], now: Micros) -> list[Event]:
        """Write down that these agents are missed; gives an event for each whom nobody has missed before."""
        lost = await self._store.miss(agents)
        if lost:
            self._look_at = 0
        return [
            Event(happened.AGENT_LOST, now, "supervisor", agent=one.id, cause=one.found, note=note_of(one))
            for one in lost
        ]

    async def tend(self) -> list[Event]:
        """Look once: let the incidents say what is so; gives what has happened."""
        complement = await self._store.complement()
        there = [row for row in await self._store.incidents() if _is_ours(row)] if complement.incidents else []
        held = {(row.namespace, row.cause): row for row in there}
        wanted, ripe_at = self._wanted(complement, held)
        told = await self._open(wanted, held, complement.now)
        told += await self._resolve([row for cause, row in held.items() if cause not in wanted], complement.now)
        self.is_watching = bool(wanted) or ripe_at is not None
        wait = LOOK_EVERY if self.is_watching else LOOK_ANYWAY
        if ripe_at is not None:
            wait = min(wait, max(0, ripe_at - complement.now))
        self._look_at = self._env.clock.boot() + wait
        return told

    @staticmethod
    def _wanted(
        complement: Complement, held: dict[Cause, IncidentRow]
    ) -> tuple[dict[Cause, tuple[int, Told]], Micros | None]:
        """Give the incidents that there should be, with their members; and when a thread will have run on for long."""
        wanted: dict[Cause, tuple[int, Told]] = {}
        # Who has just come keeps an incident from being opened, but resolves none before it has stayed.
        away, steady = missing(complement), missing(complement, steady=True)
        for namespace in sorted({one.namespace for one in steady}):
            cause = namespace, LOST_AGENTS
            lost = [one for one in (steady if cause in held else away) if one.namespace == namespace]
            if lost:
                wanted[cause] = len(lost), told_of_lost(lost, complement)
        ripe_at: list[Micros] = []
        for one in complement.hands:
            if one.here and one.said:
                threads, count, next_at = abandoned_by(one, complement.now)
                if threads:
                    wanted[one.namespace, abandoned_cause(one)] = count, told_of_threads(one, threads, count)
                if next_at is not None:
                    ripe_at.append(next_at)
        return wanted, min(ripe_at, default=None)

    async def _open(
        self, wanted: dict[Cause, tuple[int, Told]], held: dict[Cause, IncidentRow], now: Micros
    ) -> list[Event]:
        """Open what is new, and let what is open say what is so now."""
        new = [
            NewIncident(self._env.new_id(), *cause, members, _encode(told), routes=self._marks)
            for cause, (members, told) in wanted.items()
            if cause not in held or told_by(held[cause]) != told
        ]
        opened = await self._store.open_incidents(new) if new else []
        said = {cause: f"{told.said}; {told.remedy}" for cause, (_, told) in wanted.items()}
        return [
            Event(happened.INCIDENT_OPENED, now, "supervisor", cause=one.cause, note=said[one.namespace, one.cause])
            for one, is_new in zip(new, opened, strict=True)
            if is_new
        ]

    async def _resolve(self, rows: Sequence[IncidentRow], now: Micros) -> list[Event]:
        resolved = await self._store.resolve_incidents([row.id for row in rows]) if rows else []
        return [
            Event(happened.INCIDENT_RESOLVED, now, "supervisor", cause=row.cause, note=told_by(row).said)
            for row, done in zip(rows, resolved, strict=True)
            if done
        ]


def _is_ours(row: IncidentRow) -> bool:
    return row.cause == LOST_AGENTS or row.cause.startswith(ABANDONED)
