"""Wardroom: the part of the supervisor that deals with people: incidents about calls that wait for one, about runs that
nothing moves, and about runs that ended because a step failed for good; what people want for all members of an
incident; who is told outside that they are asked something; and reminders of what they have a time for.

It looks when the supervisor is hinted at, but not at every hint: those come with all trouble, and people are slow.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.alert import Route
from watchbill.model.decision import Decision
from watchbill.model.incident import IncidentRow, Told, told_by
from watchbill.model.member import Muster
from watchbill.model.resolution import paced
from watchbill.store.protocol import SupervisorStore
from watchbill.supervisor.failed import failed_alike
from watchbill.supervisor.gathering import asked, gathered
from watchbill.supervisor.roster import STANDBY_EVERY, Roster
from watchbill.supervisor.second_chance import Successors, obey
from watchbill.supervisor.standstill import standing_still

LOOKS_APART: Final[Micros] = SECOND // 4
ASKS_APART: Final[Micros] = SECOND  # of questions nothing is wrong, and there may be many: these looks are fewer
UNTOLD_APART: Final[Micros] = 600 * SECOND  # fewer still with nobody to tell: another program may have told somebody
POLL: Final[Micros] = 5 * SECOND  # where others write to the store, too, a lost hint costs at most this
STILL_EVERY: Final[Micros] = SECOND  # while an incident is about runs: that one of them moves again gives no hint
LIMIT: Final = 1_000  # calls, or runs, in one look

_encode = msgspec.json.Encoder().encode
_decode_told = msgspec.json.Decoder(Told).decode

REMINDED: Final = _encode(
    Decision(rule="half of its time is over", chosen="remind", message="nobody has answered yet, or decided")
)


class Wardroom(Loop):
    """Keeps incidents about calls that wait for a person: one for one cause, open as long as one of them waits."""

    name = "wardroom"

    def __init__(  # noqa: PLR0913 - a part of a room, by name
        self,
        env: Env,
        events: Events,
        *,
        store: SupervisorStore,
        polls: bool,
        routes: Sequence[Route] = (),
        roster: Roster | None = None,
        successors: Successors,
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._roster = roster  # one of those who divide the work does this for all; None: nobody divides it
        self._routes = routes  # whom to tell of incidents
        self._polls = polls  # others write to the store, too, and their hints may be lost
        self._successors = successors  # of runs that have ended: what they take over of a journal is not ours to know
        self._asked = True
        self._look_at: Micros = 0  # not before; in boot time
        self._asks_at: Micros = 0  # likewise, at questions
        self._due_at: Micros | None = None  # by itself

    def hint(self) -> None:
        """Something may have begun or ceased to wait for a person."""
        if not self._asked:
            self._asked = True
            self.wake()

    async def turn(self) -> Micros | None:
        """Look, if there may be something to see."""
        if self._roster is not None and not self._roster.leads:
            return STANDBY_EVERY
        boot = self.env.clock.boot()
        if not self._asked and (self._due_at is None or boot < self._due_at):
            return None if self._due_at is None else self._due_at - boot
        if boot < self._look_at:
            return self._look_at - boot
        self._asked = False
        try:
            wish = await self._look()
        except BaseException:
            self._asked = True
            raise
        boot = self.env.clock.boot()
        self._look_at = boot + LOOKS_APART
        if self._polls:
            wish = POLL if wish is None else min(wish, POLL)
        self._due_at = None if wish is None else boot + wish
        return wish if not self._asked else LOOKS_APART

    async def _look(self) -> Micros | None:
        """Look once; gives when to look again."""
        boot = self.env.clock.boot()
        asks = boot >= self._asks_at
        muster = await self._store.muster(LIMIT, asks=asks)
        if not self._routes:
            muster = msgspec.structs.replace(muster, asking=())
        await self._gather_all(muster)
        if muster.healed:
            await self._resolve(muster)
        if muster.reminders:
            await self._remind(muster)
        wishes = [await self._feed(muster)] if muster.orders else []
        if muster.asking:
            await self._store.attach_questions(asked(muster.asking, self._routes))
        wishes += self._asks_again(boot, asked=asks)
        if LIMIT in map(len, (muster.waiting, muster.reminders, muster.stuck, muster.failed, muster.asking)):
            wishes.append(0)
        if muster.watched or muster.stuck:
            wishes.append(STILL_EVERY)
        if muster.next_at is not None:
            wishes.append(max(muster.next_at - muster.now, 0))
        return min(wishes) if wishes else None

    def _asks_again(self, boot: Micros, *, asked: bool) -> list[Micros]:
        """Say when to look at questions, if somebody is to be told of them and they were not looked at this time."""
        if asked:
            self._asks_at = boot + (ASKS_APART if self._routes else UNTOLD_APART)
            return []
        return [self._asks_at - boot] if self._routes else []

    async def _gather_all(self, muster: Muster) -> None:
        """Let whatever waits for a person, and belongs to no incident, belong to one."""
        if muster.waiting:
            await self._gather(muster)
        if muster.stuck:
            await self._gather_runs(muster)
        if muster.failed:
            await self._gather_failed(muster)

    async def _gather(self, muster: Muster) -> None:
        """Let calls belong to the incident of their cause."""
        gatherings = gathered(muster.waiting, self.env.new_id, self._routes)
        attached = await self._store.attach(gatherings)
        opened = [one.incident for one, became in zip(gatherings, attached, strict=True) if became.new]
        self.tell([_event(happened.INCIDENT_OPENED, muster.now, one.cause, _decode_told(one.body)) for one in opened])

    async def _gather_runs(self, muster: Muster) -> None:
        """Let runs that nothing moves belong to the incident of their cause."""
        gatherings = standing_still(muster.stuck, self.env.new_id, self._routes)
        attached = await self._store.attach_runs(gatherings)
        opened = [one.incident for one, became in zip(gatherings, attached, strict=True) if became.new]
        self.tell([_event(happened.INCIDENT_OPENED, muster.now, one.cause, _decode_told(one.body)) for one in opened])

    async def _gather_failed(self, muster: Muster) -> None:
        """Let runs that have ended because a step failed for good belong to the incident of their cause."""
        gatherings = failed_alike(muster.failed, self.env.new_id, self._routes)
        attached = await self._store.attach_failed(gatherings)
        opened = [one.incident for one, became in zip(gatherings, attached, strict=True) if became.new]
        self.tell([_event(happened.INCIDENT_OPENED, muster.now, one.cause, _decode_told(one.body)) for one in opened])

    async def _resolve(self, muster: Muster) -> None:
        healed = await self._store.heal(muster.healed)
        self.tell(
            [
                _event(happened.INCIDENT_RESOLVED, muster.now, row.cause, Told(told_by(row).said, _unseen(row)))
                for row, done in zip(muster.healed, healed, strict=True)
                if done and not row.asks  # what becomes of a question its run tells
            ]
        )

    async def _feed(self, muster: Muster) -> Micros:
        """Tell members of incidents what somebody wants for all of them: no herd, a few at a time."""
        waits = []
        for order in muster.orders:
            count, wait = paced(order.per_second, order.fed_at, muster.now)
            if order.failed:
                wait = await obey(self.env, self._store, order, count, self._successors) or wait
            elif count:
                await self._store.feed(order, count)
            waits.append(wait)
        return min(waits)

    async def _remind(self, muster: Muster) -> None:
        decisions = [(self.env.new_id(), REMINDED) for _ in muster.reminders]
        reminded = await self._store.remind(muster.reminders, decisions)
        self.tell(
            [
                Event(happened.QUESTION_REMINDED, muster.now, "supervisor", one.run, call=one.call, note="half way")
                for one, done in zip(muster.reminders, reminded, strict=True)
                if done
            ]
        )


def _unseen(row: IncidentRow) -> str:
    """Say that runs were left as they ended, because nothing has failed like that for long."""
    return f"not seen again; runs that nobody has seen to: {row.waiting:,}" if row.failed and row.waiting else ""


def _event(kind: str, now: Micros, cause: str, told: Told) -> Event:
    note = f"{told.said}; {told.remedy}" if told.remedy else told.said
    return Event(kind, now, "supervisor", cause=cause, note=note)
