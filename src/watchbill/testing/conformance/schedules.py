"""Schedules: announced by code, decided by turns, ordered by people; a slot starts once, whatever happens."""

import msgspec
import pytest

from watchbill.clock import SECOND, Micros
from watchbill.model.logbook import LogEntry
from watchbill.model.recurrence import Catchup, Overlap, ScheduleSpec
from watchbill.model.run import NewRun, shard_number
from watchbill.model.schedule import CreatedSchedule, NewSchedule, ScheduleChange, ScheduleOrder, ScheduleRow, slot_id
from watchbill.model.states import RunState
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import KNOWN, LIMIT, ME, NOON, Scene, a_change

SCHEDULED = ("order",)
MINUTE: Micros = 60 * SECOND
EVERY_MINUTE = ScheduleSpec(every=MINUTE)
LARGE = b'["' + b"x" * 300_000 + b'"]'


def a_schedule(scene: Scene, spec: ScheduleSpec = EVERY_MINUTE, name: str = "order", **changes) -> NewSchedule:
    new = NewSchedule(name, min(scene.terms), 1, spec, b"[]")
    return msgspec.structs.replace(new, **changes)


async def announced(scene: Scene, spec: ScheduleSpec = EVERY_MINUTE, **changes) -> ScheduleRow:
    await scene.store.scheduler.announce("default", [a_schedule(scene, spec, **changes)], [])
    return await the_schedule(scene)


async def the_schedule(scene: Scene) -> ScheduleRow:
    [row] = (await scene.store.client.schedules("default")).rows
    return row


async def due(scene: Scene, scheduled=SCHEDULED) -> tuple[ScheduleRow, ...]:
    return (await scene.store.scheduler.look(list(scene.terms), KNOWN, LIMIT, scheduled)).schedules


def a_decision(
    row: ScheduleRow, *slots: Micros, num: int = 1, waiting: tuple[Micros, ...] = (), **changes
) -> ScheduleChange:
    runs = [
        NewRun(
            num + n,
            row.namespace,
            slot_id(row.name, slot),
            row.workflow,
            row.version,
            row.input,
            shard=row.shard,
            slot=slot,
        )
        for n, slot in enumerate(slots)
    ]
    last = max([row.last_slot, *slots, *waiting])
    change = ScheduleChange(row.namespace, row.name, row.rev, last, last + MINUTE, waiting=waiting, starts=tuple(runs))
    return msgspec.structs.replace(change, **changes)


def an_order(row: ScheduleRow, **changes) -> ScheduleOrder:
    order = ScheduleOrder(row.namespace, row.name, row.rev, row.waiting, row.paused_by, row.paused_why)
    return msgspec.structs.replace(order, **changes)


async def ids(scene: Scene) -> list[str]:
    return sorted(run.id for run in await scene.store.client.runs("default"))


# --- announcing


async def test_a_new_schedule_begins_now_and_is_looked_at_at_once(scene):
    spec = ScheduleSpec(cron="0 2 * * *", tz="Europe/Berlin", overlap=Overlap.QUEUE, catchup=Catchup.ALL)
    row = await announced(scene, spec, version=3, input=LARGE)
    assert (row.name, row.version, row.spec, row.input) == ("order", 3, spec, LARGE)
    assert (row.last_slot, row.wake_at, row.waiting, row.live, row.paused_by) == (NOON, NOON, (), False, None)
    assert await due(scene) == (row,)


async def test_announcing_again_changes_nothing(scene):
    row = await announced(scene)
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE)])
    before = await the_schedule(scene)
    scene.clock.pass_by(SECOND)
    assert await announced(scene) == before


async def test_another_timing_begins_anew_but_another_policy_does_not(scene):
    first = await announced(scene)
    scene.clock.pass_by(MINUTE)
    patient = await announced(scene, msgspec.structs.replace(EVERY_MINUTE, overlap=Overlap.QUEUE))
    assert (patient.last_slot, patient.wake_at, patient.spec.overlap) == (NOON, NOON + MINUTE, Overlap.QUEUE)
    assert patient.rev > first.rev
    slower = await announced(scene, ScheduleSpec(every=2 * MINUTE))
    assert (slower.last_slot, slower.wake_at) == (NOON + MINUTE, NOON + MINUTE)


async def test_a_schedule_ends_with_its_option_and_begins_anew_when_it_is_back(scene):
    await announced(scene)
    await scene.store.scheduler.announce("default", [], ["order", "nobody"])
    assert (await the_schedule(scene)).wake_at is None
    assert await due(scene) == ()
    scene.clock.pass_by(10 * MINUTE)
    back = await announced(scene)
    assert (back.last_slot, back.wake_at) == (NOON + 10 * MINUTE, NOON + 10 * MINUTE)


async def test_namespaces_have_their_own_schedules(scene):
    await scene.store.scheduler.announce("other", [a_schedule(scene)], [])
    assert (await scene.store.client.schedules("default")).rows == ()
    [row] = (await scene.store.client.schedules("other")).rows
    assert row.namespace == "other"


# --- looking


async def test_a_schedule_is_due_at_its_slot_and_says_when_that_will_be(scene):
    row = await announced(scene)
    await scene.turn(schedules=[a_decision(row)])
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, LIMIT, SCHEDULED)
    assert (look.schedules, look.next_due) == ((), NOON + MINUTE)
    scene.clock.pass_by(MINUTE - 1)
    assert await due(scene) == ()
    scene.clock.pass_by(1)
    assert [found.name for found in await due(scene)] == ["order"]


async def test_what_the_code_does_not_know_or_others_hold_is_not_due(scene):
    row = await announced(scene)
    assert await due(scene, ["refund"]) == ()
    others = [shard for shard in scene.terms if shard != row.shard]
    assert (await scene.store.scheduler.look(others, KNOWN, LIMIT, SCHEDULED)).schedules == ()


async def test_a_limit_leaves_some_for_the_next_look(scene):
    names = [f"order-{n}" for n in range(5)]
    await scene.store.scheduler.announce("default", [a_schedule(scene, name=name) for name in names], [])
    shards = [min(scene.terms)]
    look = await scene.store.scheduler.look(shards, KNOWN, 3, names)
    assert look.more
    assert 3 <= len(look.schedules) <= 4
    assert len((await scene.store.scheduler.look(shards, KNOWN, LIMIT, names)).schedules) == 5


async def test_a_slot_that_waits_is_due_when_the_run_before_it_has_ended(scene):
    row = await announced(scene)
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE, waiting=(NOON + 2 * MINUTE,))])
    waits = await the_schedule(scene)
    assert (waits.live, waits.waiting) == (True, (NOON + 2 * MINUTE,))
    assert await due(scene) == ()
    run = await scene.run_row(slot_id("order", NOON + MINUTE))
    await scene.turn(runs=[a_change(run, RunState.COMPLETED)])
    [ready] = await due(scene)
    assert (ready.live, ready.waiting) == (False, (NOON + 2 * MINUTE,))


# --- deciding


async def test_a_turn_starts_the_runs_of_slots_in_the_schedules_shard(scene):
    row = await announced(scene, input=LARGE)
    slots = [NOON + n * MINUTE for n in (1, 2)]
    assert (await scene.turn(schedules=[a_decision(row, *slots)])).applied
    decided = await the_schedule(scene)
    assert (decided.last_slot, decided.wake_at, decided.live) == (slots[1], slots[1] + MINUTE, True)
    assert await ids(scene) == [slot_id("order", slot) for slot in slots]
    run = await scene.run_row(slot_id("order", slots[0]))
    assert (run.workflow, run.version, run.input, run.shard) == ("order", 1, LARGE, row.shard)
    assert (run.status, run.wake_at, run.root) == (RunState.SCHEDULED, NOON, run.num)


async def test_who_has_read_an_older_state_decides_nothing(scene):
    row = await announced(scene)
    slot = NOON + MINUTE
    await scene.turn(schedules=[a_decision(row, slot)])
    decided = await the_schedule(scene)
    late = a_decision(row, slot + MINUTE, num=50)
    assert (await scene.turn(schedules=[late])).applied, "the rest of a turn is not refused for it"
    assert await the_schedule(scene) == decided
    assert await ids(scene) == [slot_id("order", slot)]


async def test_a_resent_turn_starts_nothing_twice(scene):
    row = await announced(scene)
    turn = scene.a_turn(schedules=[a_decision(row, NOON + MINUTE)])
    await scene.store.scheduler.turn(turn)
    decided = await the_schedule(scene)
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert await the_schedule(scene) == decided
    assert len(await ids(scene)) == 1


async def test_a_refused_turn_decides_nothing(scene):
    row = await announced(scene)
    lost = {shard: term + 1 for shard, term in scene.terms.items()}
    turn = msgspec.structs.replace(scene.a_turn(schedules=[a_decision(row, NOON + MINUTE)]), terms=lost)
    assert not (await scene.store.scheduler.turn(turn)).applied
    assert await the_schedule(scene) == row
    assert await ids(scene) == []


async def test_what_was_decided_never_goes_back(scene):
    row = await announced(scene)
    await scene.turn(schedules=[a_decision(row, NOON + 5 * MINUTE)])
    decided = await the_schedule(scene)
    await scene.turn(schedules=[a_decision(decided, num=50, last_slot=NOON + MINUTE)])
    assert await the_schedule(scene) == decided


async def test_slot_stays_decided_when_retention_has_deleted_its_run(scene):
    row = await announced(scene)
    scene.clock.pass_by(MINUTE)
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE)])
    [run] = await scene.store.client.runs("default")
    await scene.turn(runs=[a_change(run, RunState.COMPLETED)])
    before = await the_schedule(scene)
    assert (await scene.store.scheduler.sweep("default", ("order", 1), 0, (0, 0), 10)).deleted == 1
    assert await ids(scene) == []
    after = await announced(scene)
    assert (after.last_slot, after.wake_at, after.rev) == (before.last_slot, before.wake_at, before.rev)
    assert await due(scene) == ()
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE, num=2)])
    assert await ids(scene) == [], "a scheduler that read the older state starts nothing"


async def test_a_slot_whose_run_is_there_is_decided_without_another_one(scene):
    row = await announced(scene)
    slot = NOON + MINUTE
    [there] = await scene.submit(NewRun(99, "default", slot_id("order", slot), "order", 1, b"[]"))
    await scene.turn(schedules=[a_decision(row, slot)])
    decided = await the_schedule(scene)
    assert (decided.last_slot, decided.live) == (slot, False)
    assert (await scene.run_row(there.id)).num == 99


# --- orders


async def test_a_paused_schedule_is_not_due_and_a_turn_cannot_start_it(scene):
    row = await announced(scene)
    assert await scene.store.client.order_schedule(an_order(row, paused_by="ada", paused_why="holidays"))
    paused = await the_schedule(scene)
    assert (paused.paused_by, paused.paused_why, paused.paused_at) == ("ada", "holidays", NOON)
    scene.clock.pass_by(MINUTE)
    assert await due(scene) == ()
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, LIMIT, SCHEDULED)
    assert look.next_due is None
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE)])
    assert (await the_schedule(scene), await ids(scene)) == (paused, [])


async def test_a_resumed_schedule_is_looked_at_at_once_from_where_it_was(scene):
    row = await announced(scene)
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE)])
    await scene.store.client.order_schedule(an_order(await the_schedule(scene), paused_by="ada"))
    scene.clock.pass_by(30 * SECOND)
    await scene.store.client.order_schedule(an_order(await the_schedule(scene), paused_by=None))
    [resumed] = await due(scene)
    assert (resumed.paused_by, resumed.paused_at, resumed.last_slot) == (None, None, NOON + MINUTE)


async def test_an_order_of_who_has_read_an_older_state_is_refused(scene):
    row = await announced(scene)
    assert await scene.store.client.order_schedule(an_order(row, paused_by="ada"))
    assert not await scene.store.client.order_schedule(an_order(row, paused_by="bob"))
    assert (await the_schedule(scene)).paused_by == "ada"
    assert not await scene.store.client.order_schedule(an_order(row, name="nobody"))


async def test_slots_that_a_person_wants_wait_for_their_run(scene):
    row = await announced(scene)
    await scene.turn(schedules=[a_decision(row)])
    slots = (NOON - 2 * MINUTE, NOON - MINUTE)
    assert await scene.store.client.order_schedule(an_order(await the_schedule(scene), waiting=slots))
    [found] = await due(scene)
    assert found.waiting == slots
    await scene.turn(schedules=[a_decision(found, num=5, waiting=(), last_slot=found.last_slot)])
    assert (await the_schedule(scene)).waiting == ()


async def test_the_order_of_a_person_concerns_schedulers_and_so_does_a_new_schedule(scene):
    heard = []
    deaf = scene.store.listen(Hint.SCHEDULER, lambda: heard.append(1))
    row = await announced(scene)
    assert heard
    heard.clear()
    await scene.store.client.order_schedule(an_order(row, paused_by="ada"))
    assert heard
    deaf()


@pytest.mark.parametrize(("knows", "known"), [(("order@3", "order@1"), True), (("refund",), False)])
async def test_whether_its_code_is_there(scene, knows, known):
    assert (await announced(scene)).known, "nobody attends"
    await scene.store.scheduler.attend(ME, "default", "", knows, b"{}", None)
    assert (await the_schedule(scene)).known is known


# --- created at run time


def an_entry(act: str = "create") -> LogEntry:
    return LogEntry("schedule", "eu", act, "ada", "", "")


def to_create(**changes) -> CreatedSchedule:
    asked = CreatedSchedule(
        namespace="default", name="eu", workflow="order", version=1, spec=EVERY_MINUTE, input=b'["eu"]', region="",
        rev=None, entry=an_entry(),
    )  # fmt: skip
    return msgspec.structs.replace(asked, **changes)


async def created(scene: Scene, **changes) -> ScheduleRow:
    assert await scene.store.client.create_schedule(to_create(**changes))
    return await the_schedule(scene)


async def test_created_schedule_begins_now_in_the_shard_of_its_name(scene):
    row = await created(scene, input=LARGE)
    assert (row.name, row.workflow, row.version, row.spec, row.input) == ("eu", "order", 1, EVERY_MINUTE, LARGE)
    assert (row.last_slot, row.wake_at, row.created) == (NOON, NOON, True)
    shards = await scene.store.scheduler.shards("default", "")
    assert row.shard == shards[shard_number("eu")]
    assert [entry.act for entry in await scene.store.client.logbook("default", 10)] == ["create"]


async def test_created_schedule_is_due_for_those_who_know_its_workflow(scene):
    row = await created(scene)
    assert await due(scene, ["eu"]) == ()
    assert [found.name for found in await due(scene, ["order"])] == ["eu"]
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE)])
    [run] = await scene.store.client.runs("default")
    assert (run.id, run.workflow, run.input, run.slot) == (
        slot_id("eu", NOON + MINUTE),
        "order",
        b'["eu"]',
        NOON + MINUTE,
    )
    assert (await the_schedule(scene)).live


async def test_created_schedule_is_changed_only_as_it_was_read(scene):
    row = await created(scene)
    scene.clock.pass_by(MINUTE)
    assert not await scene.store.client.create_schedule(to_create(input=b'["us"]')), "its name is taken"
    assert not await scene.store.client.create_schedule(to_create(input=b'["us"]', rev=row.rev + 1))
    assert await the_schedule(scene) == row
    changed = await created(scene, input=b'["us"]', workflow="refund", rev=row.rev)
    assert (changed.input, changed.workflow, changed.last_slot) == (b'["us"]', "refund", NOON)
    slower = await created(scene, spec=ScheduleSpec(every=2 * MINUTE), rev=changed.rev)
    assert slower.last_slot == NOON + MINUTE, "another timing begins anew"
    assert len(await scene.store.client.logbook("default", 10)) == 3


async def test_created_schedule_stays_when_code_is_announced(scene):
    row = await created(scene)
    taken = await scene.store.scheduler.announce("default", [], ["order", "eu"], [("order", 1), ("refund", 2)])
    assert (taken, await the_schedule(scene)) == ((), row)
    await scene.store.scheduler.announce("default", [], ["order"], [("order", 2)])
    assert (await the_schedule(scene)).version == 2
    await scene.store.scheduler.announce("other", [], ["order"], [("order", 3)])
    assert (await the_schedule(scene)).version == 2


async def test_schedules_of_code_and_created_ones_do_not_take_each_others_names(scene):
    row = await created(scene)
    taken = await scene.store.scheduler.announce("default", [a_schedule(scene, name="eu")], [])
    assert (taken, await the_schedule(scene)) == (("eu",), row)
    assert await scene.store.client.delete_schedule("default", "eu", row.rev, an_entry("delete"))
    in_code = await announced(scene)
    assert not in_code.created
    assert not await scene.store.client.create_schedule(to_create(name="order", rev=in_code.rev))
    assert not await scene.store.client.delete_schedule("default", "order", in_code.rev, an_entry("delete"))
    assert await the_schedule(scene) == in_code
    await scene.store.scheduler.announce("default", [], ["order"])
    ended = await the_schedule(scene)
    assert await scene.store.client.create_schedule(to_create(name="order", rev=ended.rev)), "it has ended"
    assert (await the_schedule(scene)).created


async def test_deleted_schedule_starts_nothing_and_leaves_its_runs(scene):
    row = await created(scene)
    await scene.turn(schedules=[a_decision(row, NOON + MINUTE)])
    decided = await the_schedule(scene)
    delete = scene.store.client.delete_schedule
    assert not await delete("default", "eu", row.rev, an_entry("delete")), "it has changed"
    assert not await delete("other", "eu", decided.rev, an_entry("delete"))
    assert await delete("default", "eu", decided.rev, an_entry("delete"))
    assert (await scene.store.client.schedules("default")).rows == ()
    await scene.turn(schedules=[a_decision(decided, NOON + 2 * MINUTE, num=2)])
    assert await ids(scene) == [slot_id("eu", NOON + MINUTE)]
    acts = [entry.act for entry in await scene.store.client.logbook("default", 10)]
    assert acts == ["delete", "create"]


async def test_creating_a_schedule_concerns_schedulers(scene):
    heard = []
    deaf = scene.store.listen(Hint.SCHEDULER, lambda: heard.append(1))
    await created(scene)
    assert heard
    deaf()
