"""Lookout: the part of the supervisor that looks for what nobody can do, and keeps incidents about it.

It looks now and then. On a store of one process it looks only while something waits: a hint that something is ready, or
was submitted, makes it look once; whatever waits then makes it look again. So an idle house has no timer of it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.alert import Route, marks_for
from watchbill.model.complement import LOST_AGENTS
from watchbill.model.incident import IncidentRow, NewIncident, Told, told_by
from watchbill.model.wait import NO_AGENT
from watchbill.store.protocol import SupervisorStore
from watchbill.supervisor.missing import could_do, missing
from watchbill.supervisor.roster import STANDBY_EVERY, Roster
from watchbill.supervisor.unable import NO_CODE, NO_SCHEDULER, Trouble, unknown, unserved

LOOK_EVERY: Final[Micros] = 10 * SECOND
GRACE: Final[Micros] = 60 * SECOND  # an agent or scheduler that is started anew is back long before
CODES: Final = 5_000  # runs in one look, by one read, however many there are; the next look goes on
FORGET_EVERY: Final[Micros] = 3_600 * SECOND  # incidents are kept for weeks: an hour more does no harm
INCIDENTS_FORGOTTEN: Final = 1_000  # in one look
GATES: Final = 1_000  # that are looked at, in one look, whether anybody uses them

Cause = tuple[str, str]  # with its namespace

_encode = msgspec.json.Encoder().encode


class Lookout(Loop):
    """Opens an incident when something waits for a minute that nobody can do, and resolves it when somebody can."""

    name = "lookout"

    def __init__(  # noqa: PLR0913 - a part of a room, by name
        self,
        env: Env,
        events: Events,
        *,
        store: SupervisorStore,
        polls: bool,
        routes: Sequence[Route] = (),
        roster: Roster | None = None,
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._roster = roster  # one of those who divide the work does this for all; None: nobody divides it
        self._marks = marks_for(routes, "")  # whom to tell of incidents
        self._polls = polls  # others write to the store, too, and their hints may be lost
        self._asked = True
        self._look_at: Micros | None = None
        self._seen: dict[Cause, Micros] = {}  # since when
        self._codes: dict[Cause, Trouble] = {}  # found in this round through all open runs
        self._unknown: dict[Cause, Trouble] = {}  # and in the one before
        self._run_place: tuple[int, int] | None = None
        self._been_round = False  # through all open runs, once
        self._gate_place: tuple[str, str] | None = None
        self._forget_at: Micros = 0

    def hint(self) -> None:
        """Something may wait."""
        if not self._asked:
            self._asked = True
            self.wake()

    async def turn(self) -> Micros | None:
        """Look, if it is time."""
        if self._roster is not None and not self._roster.leads:
            return STANDBY_EVERY
        boot = self.env.clock.boot()
        if self._look_at is None:
            self._look_at = boot + LOOK_EVERY  # what has only just begun finds its way
        if not self._asked and not self._polls:
            return None
        if boot < self._look_at:
            return self._look_at - boot
        self._asked = False
        try:
            waits = await self._look()
        except BaseException:
            self._asked = True
            raise
        self._look_at = boot + LOOK_EVERY
        self._asked = self._asked or waits
        return LOOK_EVERY if self._asked or self._polls else None

    async def _look(self) -> bool:
        """Look once; says whether there is something to look at again."""
        self._gate_place = await self._store.forget_gates(self._gate_place, GATES)
        await self._forget()
        backlog = [queue for queue in await self._store.backlog() if queue.depth]
        troubles = unserved(backlog, await self._store.able()) if backlog else []
        now = await self._look_for_code()
        found = {(one.namespace, one.cause): one for one in (*troubles, *self._codes.values(), *self._unknown.values())}
        self._seen = {cause: self._seen.get(cause, now) for cause in found}
        incidents = await self._store.incidents()
        there = [row for row in incidents if row.cause.startswith((NO_AGENT, NO_CODE, NO_SCHEDULER))]
        ripe = [one for cause, one in found.items() if self._is_ripe(one, now - self._seen[cause])]
        ripe = await self._unexplained(ripe, {row.namespace for row in incidents if row.cause == LOST_AGENTS})
        await self._open(ripe, {(row.namespace, row.cause) for row in there}, found, now)
        healed = [row for row in there if (row.namespace, row.cause) not in found and self._can_tell(row)]
        await self._resolve(healed, now)
        return bool(backlog or found or there or self._run_place or self._gate_place)

    async def _unexplained(self, ripe: list[Trouble], lost: set[str]) -> list[Trouble]:
        """Leave out what those would do who were lost: somebody was told of that, and one cause is one incident."""
        if not any(one.needs is not None and one.namespace in lost for one in ripe):
            return ripe
        away = missing(await self._store.complement())
        return [one for one in ripe if one.needs is None or not could_do(away, one.namespace, one.region, one.needs)]

    async def _forget(self) -> None:
        """Forget old incidents, now and then."""
        boot = self.env.clock.boot()
        if boot >= self._forget_at and await self._store.forget_incidents(INCIDENTS_FORGOTTEN) < INCIDENTS_FORGOTTEN:
            self._forget_at = boot + FORGET_EVERY

    async def _look_for_code(self) -> Micros:
        """Look at the next open runs; what was found in the last whole round counts until the next one is through."""
        look = await self._store.codes(self._run_place, CODES)
        self._codes.update({(one.namespace, one.cause): one for one in unknown(look)})
        self._run_place = look.place
        if look.place is None:
            self._unknown, self._codes = self._codes, {}
            self._been_round = True
        return look.now

    def _can_tell(self, row: IncidentRow) -> bool:
        """Whether what was not found is not there: about code and schedulers, only after a whole round."""
        return self._been_round or not row.cause.startswith((NO_CODE, NO_SCHEDULER))

    @staticmethod
    def _is_ripe(trouble: Trouble, seen_for: Micros) -> bool:
        return seen_for >= GRACE - LOOK_EVERY and (trouble.age is None or trouble.age >= GRACE)

    async def _open(self, ripe: Iterable[Trouble], there: set[Cause], found: dict[Cause, Trouble], now: Micros) -> None:
        """Open what is new, and let what is open say what is so now."""
        troubles = {(one.namespace, one.cause): one for one in ripe}
        troubles |= {cause: found[cause] for cause in there if cause in found}
        if not troubles:
            return
        new = [
            NewIncident(
                self.env.new_id(),
                one.namespace,
                one.cause,
                one.members,
                _encode(Told(one.said, one.remedy)),
                routes=self._marks,
            )
            for one in troubles.values()
        ]
        opened = await self._store.open_incidents(new)
        self.tell(
            [
                Event(happened.INCIDENT_OPENED, now, "supervisor", cause=one.cause, note=f"{one.said}; {one.remedy}")
                for one, done in zip(troubles.values(), opened, strict=True)
                if done
            ]
        )

    async def _resolve(self, healed: Sequence[IncidentRow], now: Micros) -> None:
        if not healed:
            return
        resolved = await self._store.resolve_incidents([row.id for row in healed])
        self.tell(
            [
                Event(happened.INCIDENT_RESOLVED, now, "supervisor", cause=row.cause, note=told_by(row).said)
                for row, done in zip(healed, resolved, strict=True)
                if done
            ]
        )
