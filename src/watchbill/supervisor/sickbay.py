"""Sickbay: the part of the supervisor that compares agents, suspends who fails where others succeed, and lets it back.

It looks while there is something to see: after failures that one agent has made many of, and while somebody is
suspended. Else once a minute, because whoever has suspended somebody may be gone. What it decides repeats its evidence:
an agent is moved by whoever finds it as it was read. That somebody is suspended is the incident: it is opened while it
is so, and resolved when it no longer is, whoever has changed it.
"""

from collections.abc import Sequence
from shlex import quote
from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event
from watchbill.model.alert import Route, marks_for
from watchbill.model.attempt import AttemptRow
from watchbill.model.breaker import IN_A_ROW
from watchbill.model.doings import REMEMBERED, Doer, Roll, Suspending, read_doings, tells_against
from watchbill.model.failure import Failure
from watchbill.model.incident import NewIncident, Told, told_by
from watchbill.model.needs import nobody_else
from watchbill.model.suspension import Suspension, encode, first_wait, read_suspension, tried_in_vain
from watchbill.model.wait import in_region
from watchbill.store.protocol import SupervisorStore
from watchbill.supervisor.black_holes import BlackHole, black_holes

LOOK_EVERY: Final[Micros] = 2 * SECOND  # while there is something to see: agents say so often what they did
LOOK_ANYWAY: Final[Micros] = 60 * SECOND  # else
MOST_AGENTS: Final = 1_000  # whose failures are remembered
MOST_EXAMPLES: Final = 3  # runs that an incident names
ILL: Final = "ill agent"  # how the causes of these incidents begin

_encode: Final = msgspec.json.Encoder().encode


class Sickbay:
    """Who fails where others succeed."""

    def __init__(self, env: Env, store: SupervisorStore, routes: Sequence[Route] = ()) -> None:
        self._env = env
        self._store = store
        self._marks = marks_for(routes, "")  # whom to tell of incidents
        self._failed: dict[int, list[Micros]] = {}  # by agent: the last failures that were judged here, in boot time
        self._lifted: dict[int, tuple[Micros, Micros]] = {}  # how long agents waited last, and when they were let back
        self._watched = True  # somebody is suspended, or has just been; or we have not looked yet
        self._look_at = env.clock.boot() + LOOK_ANYWAY

    def note(self, row: AttemptRow, failure: Failure) -> None:
        """Take note of a failure that was judged: when one agent makes many, agents are compared."""
        if row.agent is None or not tells_against(failure):
            return
        if row.agent not in self._failed and len(self._failed) >= MOST_AGENTS:
            self._failed.clear()
        boot = self._env.clock.boot()
        self._failed.setdefault(row.agent, []).append(boot)
        del self._failed[row.agent][:-IN_A_ROW]
        if self._suspects(row.agent, boot) and self.due_in > LOOK_EVERY:
            self._look_at = boot + LOOK_EVERY

    @property
    def watches(self) -> bool:
        """True when somebody was suspended at the last look, or there was none yet."""
        return self._watched

    @property
    def is_due(self) -> bool:
        """True when it is time to look."""
        return self.due_in == 0

    @property
    def due_in(self) -> Micros:
        """Say how long it is until then."""
        return max(0, self._look_at - self._env.clock.boot())

    def _suspects(self, agent: int, boot: Micros) -> bool:
        times = self._failed[agent]
        return len(times) >= IN_A_ROW and boot - times[0] < REMEMBERED

    async def tend(self) -> list[Event]:
        """Look once: suspend, try for longer, let back, and let the incidents say so; gives what has happened."""
        roll = await self._store.doings()
        told = list[Event]()
        for doer in roll.doers:
            if doer.suspension is not None:
                told += await self._tend(doer, roll.now) or await self._spare(doer, roll)
        holes = black_holes(roll.doers, roll.now)
        needs = {queue.id: queue.needs for queue in await self._store.backlog()} if holes else {}
        for hole in holes:
            told += await self._suspend(hole, needs.get(hole.work.queue, ()), roll.now)
        moved = bool(told)
        suspended = moved or any(doer.suspension is not None for doer in roll.doers)
        if suspended or self._watched:
            told += await self._say(await self._store.doings() if moved else roll)
        self._watched = suspended
        boot = self._env.clock.boot()
        self._failed = {agent: times for agent, times in self._failed.items() if boot - times[-1] < REMEMBERED}
        busy = suspended or any(self._suspects(agent, boot) for agent in self._failed)
        self._look_at = boot + (LOOK_EVERY if busy else LOOK_ANYWAY)
        return told

    async def _suspend(self, hole: BlackHole, needs: tuple[str, ...], now: Micros) -> list[Event]:
        doer, wait = hole.doer, first_wait(self._lifted.get(hole.doer.id), now)
        runs = hole.runs[:MOST_EXAMPLES]
        suspension = Suspension(now, now, wait, hole.why, (hole.work.step,), hole.error, runs=runs, needs=needs)
        move = Suspending(doer.id, None, doer.doings, encode(suspension), hole.compared)
        if not await self._store.suspend(move):
            return []
        note = f"{hole.why}; it is tried again in {_seconds(wait)}"
        return [_event(happened.AGENT_SUSPENDED, doer, now, note)]

    async def _tend(self, doer: Doer, now: Micros) -> list[Event]:
        """Decide about a suspended agent, if it was tried."""
        suspension, trial = read_suspension(doer.suspension), read_doings(doer.doings).trial
        if suspension is None or trial is None or trial.since != suspension.since:
            return []
        after = None if trial.well else tried_in_vain(suspension, trial.error, now)
        body = None if after is None else encode(after)
        if not await self._store.suspend(Suspending(doer.id, doer.suspension, doer.doings, body)):
            return []
        if after is None:
            self._remember(doer, suspension, now)
            note = f"what it was tried with was done; it was suspended for {_seconds(now - suspension.opened_at)}"
            return [_event(happened.AGENT_REINSTATED, doer, now, note)]
        error = f" with {after.error}" if after.error else ""
        note = f"what it was tried with failed{error}: it is tried again in {_seconds(after.wait)}"
        return [_event(happened.AGENT_SUSPENDED, doer, now, note)]

    async def _spare(self, doer: Doer, roll: Roll) -> list[Event]:
        """Let a suspended agent back when nobody else is left who could do what it failed: better ill than nobody."""
        suspension = read_suspension(doer.suspension)
        unable = unable_beside(doer, suspension.needs, roll.doers) if suspension is not None and doer.wanted else None
        if suspension is None or unable is None:
            return []
        move = Suspending(doer.id, doer.suspension, doer.doings, None, unable, alone=True)
        if not await self._store.suspend(move):
            return []
        self._remember(doer, suspension, roll.now)
        what = f" for {', '.join(suspension.needs)}" if suspension.needs else ""
        note = (
            f"nobody else is left{what}{in_region(doer.region)} who could do what it failed: it works again, ill as it"
            f" may be, after {_seconds(roll.now - suspension.opened_at)}; look at its host, or start another agent"
        )
        return [_event(happened.AGENT_REINSTATED, doer, roll.now, note)]

    def _remember(self, doer: Doer, suspension: Suspension, now: Micros) -> None:
        """Remember whom we let back: who is suspended again soon waits longer."""
        if len(self._lifted) >= MOST_AGENTS:
            self._lifted.clear()
        self._lifted[doer.id] = suspension.wait, now

    async def _say(self, roll: Roll) -> list[Event]:
        """Open the incidents of those who are suspended, and resolve those of all others."""
        there = [row for row in await self._store.incidents() if row.cause.startswith(ILL)]
        ill = {
            (doer.namespace, _cause(doer)): doer
            for doer in roll.doers
            if doer.suspension is not None and doer.wanted  # else an operator has seen to it
        }
        new = [
            self._incident(doer)
            for key, doer in ill.items()
            if key not in {(one.namespace, one.cause) for one in there}
        ]
        told = list[Event]()
        for one, opened in zip(new, await self._store.open_incidents(new) if new else (), strict=True):
            if opened:
                said = msgspec.json.decode(one.body, type=Told)
                note = f"{said.said}; {said.remedy}"
                told.append(Event(happened.INCIDENT_OPENED, roll.now, "supervisor", cause=one.cause, note=note))
        well = [one for one in there if (one.namespace, one.cause) not in ill]
        for row, resolved in zip(
            well, await self._store.resolve_incidents([one.id for one in well]) if well else (), strict=True
        ):
            if resolved:
                note = told_by(row).said
                told.append(Event(happened.INCIDENT_RESOLVED, roll.now, "supervisor", cause=row.cause, note=note))
        return told

    def _incident(self, doer: Doer) -> NewIncident:
        suspension = read_suspension(doer.suspension)
        assert suspension is not None  # noqa: S101 - it is one of those who are
        cause, name = _cause(doer), quote(doer.name)
        # By needs alone: which code an agent knows is not asked.
        said = (
            f"{cause} fails where others succeed, and gets only what nobody else can do, by its needs: {suspension.why}"
        )
        remedy = (
            f"look at its host; it is tried again by itself, `watchbill agents release {name}` lets it work now,"
            f" `watchbill agents quarantine {name}` keeps it out"
        )
        body = _encode(Told(said, remedy, suspension.runs))
        return NewIncident(self._env.new_id(), doer.namespace, cause, len(suspension.runs), body, routes=self._marks)


def unable_beside(doer: Doer, needs: Sequence[str], doers: Sequence[Doer]) -> tuple[int, ...] | None:
    """Give those beside an agent who get work and cannot do what asks for this; None: one of them can."""
    beside = [
        other
        for other in doers
        if other.id != doer.id
        and (other.namespace, other.region) == (doer.namespace, doer.region)
        and other.wanted
        and other.suspension is None
    ]
    return tuple([other.id for other in beside]) if nobody_else(needs, [other.needs for other in beside]) else None


def _cause(doer: Doer) -> str:
    return f"{ILL} {doer.name!r}"


def _event(kind: str, doer: Doer, now: Micros, note: str) -> Event:
    return Event(kind, now, "supervisor", agent=doer.id, cause=doer.name, note=note)


def _seconds(span: Micros) -> str:
    return f"{span / SECOND:g} s"
