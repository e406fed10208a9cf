"""Schedules: what this scheduler's code starts by itself: written down when it is new, decided about when it is due."""

from collections.abc import Iterable, Mapping
from typing import Final

from watchbill import events as happened
from watchbill.clock import Micros, to_datetime
from watchbill.env import Env
from watchbill.errors import StoreError
from watchbill.events import Event
from watchbill.flow.registry import Registry
from watchbill.model.run import NewRun, shard_number
from watchbill.model.schedule import NewSchedule, ScheduleChange, ScheduleRow, slot_id
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.calendar import decide
from watchbill.scheduler.refusals import Refusals
from watchbill.store.protocol import SchedulerStore
from watchbill.store.refused import words_of

TAKEN: Final = (
    "a schedule that was created at run time has this name, and stays: `watchbill schedules delete` it, and start this"
    " program again, or give the workflow another name="
)


class Schedules:
    """The schedules of one registry, and of the shards that this scheduler holds."""

    def __init__(self, env: Env, store: SchedulerStore, registry: Registry, namespace: str, region: str) -> None:
        self._env = env
        self._store = store
        self._registry = registry
        self._namespace = namespace
        self._region = region
        self.stale = True  # the store may not know what the code has
        self.names: tuple[str, ...] = ()  # of the workflows whose schedules we can serve
        self._announced: tuple[str, ...] = ()  # the code that they were found among

    async def announce(self, region: list[int], now: Micros) -> list[Event]:
        """Write down what the code has, if the store does not know it yet; gives what cannot be."""
        names = self._registry.names()
        refused: list[Event] = []
        if names != self._announced:
            found: list[NewSchedule] = []
            workflows = sorted(self._registry.workflows)
            for name in workflows:
                try:
                    found += self._schedule(name, region)
                except Exception as error:  # an annotation or a default of theirs: no reason to stop all others
                    refused.append(_refused(name, str(error), now))
            scheduled = {schedule.name for schedule in found}
            without = [name for name in workflows if name not in scheduled and not self._is_elsewhere(name)]
            refused += await self._announce(found, without, now)
            self.names, self._announced = tuple(workflows), names
        self.stale = False
        return refused

    async def _announce(self, found: list[NewSchedule], without: list[str], now: Micros) -> list[Event]:
        """Write schedules, all at once; if the store refuses that, each alone. Gives those that it refuses."""
        versions = [(name, workflow.version) for name, workflow in sorted(self._registry.workflows.items())]
        try:
            taken = await self._store.announce(self._namespace, found, without, versions)
        except StoreError:
            raise
        except Exception:
            await self._store.announce(self._namespace, [], without, versions)
            return [event for schedule in found for event in await self._announce_one(schedule, now)]
        return [_refused(name, TAKEN, now) for name in taken]

    async def _announce_one(self, schedule: NewSchedule, now: Micros) -> list[Event]:
        try:
            taken = await self._store.announce(self._namespace, [schedule], [])
        except StoreError:
            raise
        except Exception as error:
            return [_refused(schedule.name, f"the store refuses to write it: {words_of(error)}", now)]
        return [_refused(name, TAKEN, now) for name in taken]

    def _schedule(self, name: str, region: list[int]) -> list[NewSchedule]:
        workflow = self._registry.workflow(name)
        if workflow.schedule is None or self._is_elsewhere(name):
            return []
        shard = region[shard_number(name)]
        return [NewSchedule(name, shard, workflow.version, workflow.schedule, workflow.scheduled_input())]

    def _is_elsewhere(self, name: str) -> bool:
        """True when it is for the schedulers of another region to start a workflow by itself."""
        workflow = self._registry.workflow(name)
        return workflow.schedule is not None and workflow.region != self._region

    def take_in(self, rows: Iterable[ScheduleRow], terms: Mapping[int, int], batch: Batch, refusals: Refusals) -> None:
        """Decide about schedules that are due: their slots start with this turn, or not at all."""
        for row in rows:
            term = terms.get(row.shard)
            if term is None or refusals.is_left_alone(row.name):
                continue
            batch.turn.terms[row.shard] = term
            batch.turn.schedules.append(self._decided(row, batch))

    def _decided(self, row: ScheduleRow, batch: Batch) -> ScheduleChange:
        decided = decide(row, batch.now)
        runs = tuple(self._run(row, slot) for slot in decided.starts)
        if decided.skipped:
            note = f"{decided.skipped} up to {to_datetime(decided.last_slot).isoformat()}"
            cause = f"overlap {row.spec.overlap}, catchup {row.spec.catchup}"
            batch.events.append(Event(happened.SLOTS_SKIPPED, batch.now, "scheduler", row.name, cause=cause, note=note))
        return ScheduleChange(
            namespace=row.namespace,
            name=row.name,
            rev=row.rev,
            last_slot=decided.last_slot,
            wake_at=decided.wake_at,
            waiting=decided.waiting,
            starts=runs,
        )

    def _run(self, row: ScheduleRow, slot: Micros) -> NewRun:
        # In the schedule's shard, not in that of its own id: who ends it can start what waits for its end.
        id = slot_id(row.name, slot)
        return NewRun(
            self._env.new_id(), row.namespace, id, row.workflow, row.version, row.input, shard=row.shard, slot=slot
        )


def _refused(name: str, why: str, now: Micros) -> Event:
    return Event(happened.SCHEDULE_REFUSED, now, "scheduler", name, note=why)
