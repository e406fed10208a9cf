"""Schedules as people see them: which there are, when they run next, and what can be asked of them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from watchbill.app.redrawing import submit_redrawn
from watchbill.app.status import ScheduleStatus
from watchbill.clock import EPOCH, SECOND, Micros, micros, to_datetime
from watchbill.env import Env
from watchbill.errors import IdTakenError, InvalidOptionError, WatchbillError
from watchbill.flow.names import did_you_mean
from watchbill.flow.workflows import Workflow
from watchbill.model.logbook import LogEntry
from watchbill.model.recurrence import ScheduleSpec
from watchbill.model.resolution import check_name, check_reason
from watchbill.model.run import NewRun, unique_text
from watchbill.model.schedule import MOST_SLOTS, CreatedSchedule, ScheduleOrder, ScheduleRow, slot_id
from watchbill.model.slots import newest_slots, reached, slots_after, zone_of
from watchbill.store.protocol import ClientStore
from watchbill.store.protocol import Schedules as StoredSchedules

T = TypeVar("T")

NEXT_SLOTS: Final = 3  # are shown: enough to see a mistake in an expression
TRIES: Final = 10  # somebody else changes a schedule in the very moment we do: nobody does that ten times


class Started(NamedTuple):
    """Runs of a schedule that were started, or will be when the runs before them have ended."""

    workflow: str
    ids: "Sequence[str]"


class Doors(Protocol):
    """The client's doors of a namespace, opened for as long as somebody stands in them."""

    env: Env
    namespace: str

    async def read(self, work: Callable[[ClientStore], Awaitable[T]]) -> T:
        """Do what only reads."""
        ...

    async def write(self, work: Callable[[ClientStore], Awaitable[T]]) -> T:
        """Do what may be repeated safely, until the store answers."""
        ...


class Schedules:
    """What can be asked of the schedules of a namespace."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._namespace = doors.namespace

    async def list(self) -> "Sequence[ScheduleStatus]":
        """Give all schedules, by name."""
        return statuses_of(await self._doors.read(lambda doors: doors.schedules(self._namespace)))

    async def pause(self, name: str, reason: str, by: str) -> None:
        """Start no slot until it is resumed."""
        if not by:
            raise InvalidOptionError(f"schedule {name!r} cannot be paused by nobody: say who wants it")
        entry = _entry(name, "pause", by, reason)
        await self._order(name, lambda row: _order(row, paused_by=by, paused_why=reason, entry=entry))

    async def resume(self, name: str, reason: str, by: str) -> None:
        """Let it run again; the slots of the meantime were missed, and its catch-up says which are made up for."""
        entry = _entry(name, "resume", by, reason)
        await self._order(name, lambda row: _order(row, paused_by=None, paused_why=None, entry=entry))

    async def create(
        self, name: str, workflow: Workflow[..., Any], spec: ScheduleSpec, input: bytes, reason: str, by: str
    ) -> ScheduleStatus:
        """Create a schedule, or change it; when it is there already just like that, nothing is written."""

        async def once(doors: ClientStore) -> bool:
            row = next((row for row in (await doors.schedules(self._namespace)).rows if row.name == name), None)
            if row is not None and not row.created and row.wake_at is not None:
                raise InvalidOptionError(
                    f"schedule {name!r} is in the code of its workflow: change it there, or give this one another id"
                )
            if row is not None and row.created and (row.workflow, row.spec, row.input) == (workflow.name, spec, input):
                return True
            entry = _entry(name, "create" if row is None else "change", by, reason, f"{workflow.name}, {_shown(spec)}")
            return await doors.create_schedule(
                CreatedSchedule(
                    namespace=self._namespace,
                    name=name,
                    workflow=workflow.name,
                    version=workflow.version,
                    spec=spec,
                    input=input,
                    region=workflow.region,
                    rev=None if row is None else row.rev,
                    entry=entry,
                )
            )

        await self._insist(name, once)
        [created] = [found for found in await self.list() if found.name == name]
        return created

    async def delete(self, name: str, reason: str, by: str) -> None:
        """Delete a schedule that was created at run time, or has ended; its runs stay."""
        entry, seen = _entry(name, "delete", by, reason), False

        async def once(doors: ClientStore) -> bool:
            nonlocal seen
            rows = (await doors.schedules(self._namespace)).rows
            if seen and all(row.name != name for row in rows):
                return True  # it was deleted, and the answer was lost
            row, seen = _named(name, rows), True
            if not row.created and row.wake_at is not None:
                raise InvalidOptionError(
                    f"schedule {name!r} is in the code of its workflow: remove its cron= or every= there, or pause it"
                )
            return await doors.delete_schedule(self._namespace, name, row.rev, entry)

        await self._insist(name, once)

    async def run(self, name: str) -> Started:
        """Start a run of it now, beside its slots."""
        row = await self._found(name)
        env = self._doors.env
        id = f"{name}@now-{unique_text(env)}"
        run = NewRun(env.new_id(), self._namespace, id, row.workflow, row.version, row.input, shard=row.shard)
        try:
            [submitted] = await self._doors.write(lambda client: client.submit([run]))
        except IdTakenError:
            [submitted] = await submit_redrawn(env, [run], self._doors.write)
        return Started(row.workflow, [submitted.run.id])

    async def backfill(self, name: str, since: datetime, until: datetime, reason: str, by: str) -> Started:
        """Start the slots from `since` up to, and without, `until`, as its overlap allows.

        Times without a zone are in the schedule's own. A slot whose run is there is not started again.
        """
        chosen: list[Micros] = []
        workflow = ""

        def order(row: ScheduleRow, now: Micros) -> ScheduleOrder:
            nonlocal workflow
            first, end = _instant(since, row.spec), _instant(until, row.spec)
            if first >= end:
                raise InvalidOptionError(f"a backfill goes from a time to a later one, got {since} to {until}")
            if end > now:
                raise InvalidOptionError(f"slots after now come by themselves: let the backfill end before {until}")
            chosen[:] = newest_slots(row.spec, after=first - 1, upto=end - 1, limit=MOST_SLOTS + 1)
            waiting = sorted({*row.waiting, *chosen})
            if len(waiting) > MOST_SLOTS:
                raise InvalidOptionError(
                    f"schedule {name!r} would have more than {MOST_SLOTS:,} slots waiting: fill in fewer at once"
                )
            workflow = row.workflow
            span = f"{to_datetime(first):%Y-%m-%dT%H:%M}Z to {to_datetime(end):%Y-%m-%dT%H:%M}Z"
            return _order(row, waiting=tuple(waiting), entry=_entry(name, "backfill", by, reason, span))

        await self._order_at(name, order)
        return Started(workflow, [slot_id(name, slot) for slot in chosen])

    async def _order(self, name: str, order: Callable[[ScheduleRow], ScheduleOrder]) -> None:
        await self._order_at(name, lambda row, _: order(row))

    async def _order_at(self, name: str, order: Callable[[ScheduleRow, Micros], ScheduleOrder]) -> None:
        """Read it, say what is wanted, and begin again if it has changed in between."""

        async def once(doors: ClientStore) -> bool:
            found = await doors.schedules(self._namespace)
            return await doors.order_schedule(order(_named(name, found.rows), found.now))

        await self._insist(name, once)

    async def _insist(self, name: str, once: Callable[[ClientStore], Awaitable[bool]]) -> None:
        """Try until the schedule has not changed between reading and writing."""
        for _ in range(TRIES):
            if await self._doors.write(once):
                return
        raise WatchbillError(f"schedule {name!r} changes all the time, and the order did not get in: try again")

    async def _found(self, name: str) -> ScheduleRow:
        return _named(name, (await self._doors.read(lambda doors: doors.schedules(self._namespace))).rows)


def statuses_of(found: StoredSchedules) -> "Sequence[ScheduleStatus]":
    """Say how schedules stand, by name."""
    return [status_of(row, found.now) for row in found.rows]


def status_of(row: ScheduleRow, now: Micros) -> ScheduleStatus:
    """Say how a schedule stands."""
    spec = row.spec
    runs = row.wake_at is not None and row.paused_by is None and row.known
    return ScheduleStatus(
        name=row.name,
        workflow=row.workflow,
        created=row.created,
        cron=spec.cron,
        every=None if spec.every is None else spec.every / 1_000_000,
        tz=spec.tz,
        overlap=spec.overlap,
        catchup=spec.catchup,
        next=tuple([to_datetime(slot) for slot in islice(slots_after(spec, now), NEXT_SLOTS)]) if runs else (),
        last_slot=to_datetime(row.last_slot),
        waiting=len(row.waiting),
        running=row.live,
        known=row.known,
        ended=row.wake_at is None,
        paused_by=row.paused_by,
        paused_why=row.paused_why,
        paused_at=None if row.paused_at is None else to_datetime(row.paused_at),
    )


def _entry(name: str, act: str, by: str, reason: str, detail: str = "") -> LogEntry:
    return LogEntry("schedule", name, act, check_name(by), reason and check_reason(reason), detail)


def _order(row: ScheduleRow, **changes: object) -> ScheduleOrder:
    as_it_is = ScheduleOrder(row.namespace, row.name, row.rev, row.waiting, row.paused_by, row.paused_why)
    return msgspec.structs.replace(as_it_is, **changes)


def _named(name: str, rows: Sequence[ScheduleRow]) -> ScheduleRow:
    for row in rows:
        if row.name == name:
            return row
    known = did_you_mean(name, [row.name for row in rows])
    raise InvalidOptionError(f"there is no schedule {name!r} in this store{known}")


def _instant(at: datetime, spec: ScheduleSpec) -> Micros:
    """Read a time of a backfill; one without a zone is what a clock of the schedule's zone shows."""
    return micros(at - EPOCH) if at.tzinfo is not None else reached(at, zone_of(spec.tz))


def _shown(spec: ScheduleSpec) -> str:
    timing = f"cron {spec.cron!r} in {spec.tz}" if spec.every is None else f"every {spec.every / SECOND:g} s"
    return f"{timing}, overlap {spec.overlap}, catchup {spec.catchup}"
