"""Supervisors that divide the work: who stands watch, over what, and what a self-audit finds when all is well."""

from watchbill.clock import SECOND
from watchbill.model.agent import Act
from watchbill.model.orphan import AuditPlace
from watchbill.model.states import AttemptState, RunState
from watchbill.model.watcher import Supervision, Watcher
from watchbill.testing.conformance.scene import AGENT, LIMIT, NOON, a_change, a_run, a_verdict

LASTING = 6 * SECOND


def a_watcher(id, way=Supervision.DISTRIBUTED, region="", *, lag=0):
    return Watcher(id, way, region, b'{"pid":1}', lag)


async def test_who_stands_watch_hears_who_else_does_and_over_what(scene):
    stand = scene.store.supervisor.stand
    alone = await stand(a_watcher(2), LASTING)
    assert alone.watchers == (a_watcher(2),)
    assert alone.shards == tuple(sorted(scene.terms))
    assert alone.now == NOON
    both = await stand(a_watcher(1, lag=5), LASTING)
    assert both.watchers == (a_watcher(1, lag=5), a_watcher(2))
    assert (await stand(a_watcher(2, lag=7), LASTING)).watchers == (a_watcher(1, lag=5), a_watcher(2, lag=7))


async def test_those_of_another_way_or_region_share_nothing(scene):
    stand = scene.store.supervisor.stand
    for watcher in (a_watcher(1), a_watcher(2, Supervision.CENTRALIZED), a_watcher(3, region="eu")):
        assert (await stand(watcher, LASTING)).watchers == (watcher,)
    checkup = await scene.store.client.checkup("default", 10)
    assert [watcher.id for watcher in checkup.watchers] == [1, 2, 3]
    assert checkup.shards == tuple(sorted(scene.terms))


async def test_who_does_not_say_so_in_time_is_forgotten_and_welcome_back(scene, clock):
    stand = scene.store.supervisor.stand
    await stand(a_watcher(1), LASTING)
    clock.pass_by(LASTING - 1)
    assert len((await stand(a_watcher(2), LASTING)).watchers) == 2
    clock.pass_by(1)
    assert (await stand(a_watcher(2), LASTING)).watchers == (a_watcher(2),)
    assert len((await stand(a_watcher(1), LASTING)).watchers) == 2


async def test_who_stands_down_or_is_buried_is_gone_at_once(scene):
    supervisor = scene.store.supervisor
    for id in (1, 2, 3):
        await supervisor.stand(a_watcher(id), LASTING)
    assert [(id, info) for id, info in (await supervisor.watch(1)).processes if id in (1, 2, 3)] == [
        (id, b'{"pid":1}') for id in (1, 2, 3)
    ]
    await supervisor.stand_down(1)
    await supervisor.stand_down(1)
    await supervisor.bury([2])
    assert (await supervisor.stand(a_watcher(3), LASTING)).watchers == (a_watcher(3),)


async def test_one_without_end_stands_until_it_stands_down(scene, clock):
    await scene.store.supervisor.stand(a_watcher(1), None)
    clock.pass_by(1_000 * SECOND)
    assert len((await scene.store.supervisor.stand(a_watcher(2), LASTING)).watchers) == 2


async def test_what_is_due_is_seen_by_those_who_watch_its_shard(scene, clock):
    runs = await scene.submit(*(a_run(n) for n in range(1, 9)))
    rows = [await scene.row_in(AttemptState.RUNNING, run, span=5_000) for run in runs]
    await scene.store.agent.join(71, "default", "", "b", b"{}", SECOND)
    await scene.turn(attempts=[scene.a_row(run, call="ship") for run in runs])
    held = await scene.lease(71)
    clock.pass_by(5 * SECOND)
    seen_due, seen_orphans = [], []
    for shard in sorted(scene.terms):
        watch = await scene.store.supervisor.watch(LIMIT, shards=[shard])
        assert {row.shard for row in (*watch.due, *watch.orphans)} <= {shard}
        seen_due += [row.id for row in watch.due]
        seen_orphans += [row.id for row in watch.orphans]
    assert sorted(seen_due) == sorted(row.id for row in rows)
    assert sorted(seen_orphans) == sorted(row.id for row in held)
    nothing = await scene.store.supervisor.watch(LIMIT, shards=[])
    assert (nothing.due, nothing.orphans) == ((), ())
    everything = await scene.store.supervisor.watch(LIMIT)
    assert (len(everything.due), len(everything.orphans)) == (len(rows), len(held))


async def test_an_agent_that_is_out_of_time_is_no_stranger_and_one_that_never_was_there_is(scene, clock):
    [run] = await scene.submit(a_run(1))
    await scene.store.agent.join(71, "default", "", "b", b"{}", SECOND)
    await scene.turn(attempts=[scene.a_row(run)])
    await scene.lease(71)
    clock.pass_by(SECOND)
    watch = await scene.store.supervisor.watch(LIMIT)
    assert (len(watch.orphans), watch.strangers) == (1, ())
    await scene.turn(attempts=[scene.a_row(run, AttemptState.RUNNING, call="ship", agent=4_711)])
    assert (await scene.store.supervisor.watch(LIMIT)).strangers == (4_711,)


async def test_a_doctor_hears_how_long_the_oldest_waits_for_its_look(scene, clock):
    [run] = await scene.submit(a_run(1))
    await scene.row_in(AttemptState.RUNNING, run, span=5_000)
    assert (await scene.store.client.checkup("default", 10)).overdue == 0
    clock.pass_by(12 * SECOND)
    assert (await scene.store.client.checkup("default", 10)).overdue == 7 * SECOND


async def test_an_audit_finds_nothing_where_only_doors_were_used(scene, clock):
    supervisor = scene.store.supervisor
    runs = await scene.submit(*(a_run(n) for n in range(1, 9)))
    await scene.turn(runs=[a_change(run, RunState.RUNNING) for run in runs[:6]])
    states = (AttemptState.DONE, AttemptState.RUNNING, AttemptState.READY)
    rows = [await scene.row_in(state, run) for state, run in zip(states, runs[:3], strict=True)]
    await scene.turn(attempts=[scene.a_row(runs[3], AttemptState.FAILED, watch_in=0)])
    [parked] = (row for row in (await scene.rows()).values() if row.run == runs[3].num)
    assert await scene.judge(a_verdict(parked, AttemptState.PARKED, why="backoff", watch_in=SECOND))
    asked = await scene.row_in(AttemptState.FAILED, runs[4], watch_in=0)
    assert await scene.judge(a_verdict(asked, AttemptState.PARKED, why="escalate"))
    # One that was asked to stop is left to itself, also by the end of its run.
    await scene.turn(attempts=[scene.a_row(runs[5])])
    [stopping] = [row for row in await scene.lease() if row.run == runs[5].num]
    await scene.turn(dropped=[stopping.id], runs=[a_change(runs[5], RunState.COMPLETED)])
    clock.pass_by(60 * SECOND)
    look = await supervisor.audit(AuditPlace(), LIMIT)
    assert (look.orphans, look.place) == ((), None)
    await scene.report(rows[1], Act.DONE, b"1")
    await scene.store.agent.leave(AGENT)
    assert (await supervisor.audit(AuditPlace(), LIMIT)).orphans == ()


async def test_an_audit_goes_round_page_by_page(scene):
    runs = await scene.submit(*(a_run(n) for n in range(1, 6)))
    await scene.turn(attempts=[scene.a_row(run) for run in runs[:2]])
    place, looks = AuditPlace(), 0
    while place is not None:
        look = await scene.store.supervisor.audit(place, 2)
        assert look.orphans == ()
        place, looks = look.place, looks + 1
    assert looks == 3


async def test_what_was_cured_as_other_trouble_is_is_counted_too(scene):
    await scene.store.supervisor.count_orphans("row that nobody runs", 2)
    await scene.store.supervisor.count_orphans("row that nobody runs", 1)
    [count] = (await scene.store.client.checkup("default", 10)).orphans
    assert (count.kind, count.found, count.last_at) == ("row that nobody runs", 3, NOON)
