"""The agent's doors: join, beat, lease, report, leave."""

import asyncio

import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act, Answer, ProgressMark, Report, Room
from watchbill.model.attempt import first_fence
from watchbill.model.policy import OWN_CHILD_FROM
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.scene import AGENT, NOON, STEPS, a_run, a_verdict

FAILURE = b'{"type":"ValueError","message":"no"}'


@pytest.fixture
async def run(scene):
    [run] = await scene.submit(a_run(1))
    return run


# --- join and beat


async def test_a_beat_prolongs(scene, run, clock):
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    clock.pass_by(5 * SECOND)
    orders = await scene.store.agent.beat(71, 8 * SECOND, [])
    assert (orders.alive, orders.cancel, orders.lost, orders.now) == (True, (), (), NOON + 5 * SECOND)
    clock.pass_by(5 * SECOND)
    await scene.turn(attempts=[scene.a_row(run)])
    assert len(await scene.lease(71)) == 1


async def test_joining_twice_is_joining_once(scene, clock):
    for _ in range(2):
        await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    assert (await scene.store.agent.beat(71, 8 * SECOND, [])).alive


async def test_an_agent_that_left_or_never_joined_must_join_under_a_new_id(scene, run):
    await scene.store.agent.leave(AGENT)
    for agent in (AGENT, 12345):
        assert not (await scene.store.agent.beat(agent, None, [])).alive
    await scene.store.agent.join(AGENT, "default", "", "a", b"{}", None)
    assert not (await scene.store.agent.beat(AGENT, None, [])).alive
    await scene.turn(attempts=[scene.a_row(run)])
    assert await scene.lease() == []


async def test_a_beat_hears_what_to_stop(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(4)])
    await scene.store.agent.join(71, "default", "", "b", b"{}", None)
    [theirs] = await scene.lease(71, limit=1)
    wanted, unwanted, ended = await scene.lease()
    await scene.turn(dropped=[unwanted.id, ended.id, theirs.id])
    await scene.report(ended, Act.FAILED, FAILURE)
    assert (await scene.store.agent.beat(AGENT, None, [])).cancel == (unwanted.id,)
    assert (await scene.row(wanted.id)).cancel is False


async def test_a_beat_hears_what_it_holds_no_more(scene, run):
    mine = await scene.row_in(AttemptState.RUNNING, run)
    judged = await scene.row_in(AttemptState.RUNNING, run)
    again = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(again, Act.HAND_BACK)
    await scene.lease()  # somebody runs it, under a new fence
    assert await scene.judge(a_verdict(judged, AttemptState.FAILED, watch_in=0))
    held = [(row.id, row.fence) for row in (mine, judged, again)] + [(999_999, 1)]
    assert (await scene.store.agent.beat(AGENT, None, [], held)).lost == (judged.id, again.id, 999_999)


async def test_only_an_increase_moves_the_time_of_progress(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.agent.beat(AGENT, None, [ProgressMark(row.id, row.fence, b'{"done":1}', increased=True)])
    clock.pass_by(9)
    await scene.store.agent.beat(
        AGENT, None, [ProgressMark(row.id, row.fence, b'{"done":1,"note":"?"}', increased=False)]
    )
    found = await scene.row(row.id)
    assert (found.progress, found.progress_at) == (b'{"done":1,"note":"?"}', NOON)


async def test_progress_is_written_to_the_running_row_under_its_fence_only(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(4)])
    mine, other, old, ended = await scene.lease()
    await scene.report(ended, Act.DONE, b"1")
    assert mine.fence == other.fence == ended.fence
    marks = [(mine.id, mine.fence), (old.id, old.fence - 1), (ended.id, ended.fence)]
    await scene.store.agent.beat(AGENT, None, [ProgressMark(*mark, b'{"done":1}', increased=True) for mark in marks])
    rows = await scene.rows()
    assert [rows[row.id].progress for row in (mine, other, old, ended)] == [b'{"done":1}', None, None, None]


# --- queues and leases


async def test_an_agent_serves_the_queues_whose_needs_it_meets(store):
    queue = store.scheduler.queue
    plain, gpu = await queue("default", "", [], ""), await queue("default", "", ["gpu"], "")
    both, us = await queue("default", "", ["gpu", "eu"], ""), await queue("default", "", ["us"], "")
    await queue("other", "", [], "")
    queues = store.agent.queues
    assert await queues("default", "", []) == [plain]
    assert await queues("default", "", ["eu", "gpu"]) == [plain, gpu, both]
    assert await queues("default", "", ["us"]) == [plain, us]
    assert await queues("default", "eu", ["us"]) == []


async def test_a_lease_gives_a_new_fence_and_puts_a_loss_on_account(scene, run, clock):
    new = scene.a_row(run, span=2_000)
    await scene.turn(attempts=[new])
    clock.pass_by(10)
    [row] = await scene.lease(lease_no=3)
    assert (row.id, row.state, row.fence, row.losses, row.agent) == (
        new.id, AttemptState.RUNNING, first_fence(scene.terms[run.shard]) + 1, 1, AGENT,
    )  # fmt: skip
    assert (row.started_at, row.watch_at) == (NOON + 10, NOON + 10 + 2 * SECOND)
    assert row == await scene.row(new.id)


async def test_the_most_urgent_come_first_from_all_queues(scene, run, clock):
    other = await scene.store.scheduler.queue("default", "", ["gpu"], "")
    rows = []
    for queue in (scene.queue, other, scene.queue, other):
        rows.append(scene.a_row(run, queue=queue))
        await scene.turn(attempts=[rows[-1]])
        clock.pass_by(1)
    lease = scene.store.agent.lease
    assert [row.id for row in await lease(AGENT, 1, [scene.queue, other], Room(3, 3, STEPS))] == [
        row.id for row in rows[:3]
    ]
    assert [row.id for row in await lease(AGENT, 2, [scene.queue], Room(3, 3, STEPS))] == []
    assert [row.id for row in await lease(AGENT, 3, [other], Room(3, 3, STEPS))] == [rows[3].id]


async def test_few_that_need_a_process_of_their_own_and_the_others_are_not_hidden(scene, run, clock):
    other = await scene.store.scheduler.queue("default", "", ["gpu"], "")
    wanted = [scene.a_row(run, alone=True, queue=queue) for queue in (scene.queue, other, scene.queue)]
    lost_twice = scene.a_row(run, losses=OWN_CHILD_FROM)
    plain = [scene.a_row(run, losses=OWN_CHILD_FROM - 1), scene.a_row(run)]
    for row in (*wanted, lost_twice, *plain):
        await scene.turn(attempts=[row])
        clock.pass_by(1)
    lease, both = scene.store.agent.lease, [scene.queue, other]
    assert [row.id for row in await lease(AGENT, 1, both, Room(9, 0, STEPS))] == [row.id for row in plain]
    assert [row.id for row in await lease(AGENT, 2, both, Room(9, 2, STEPS))] == [row.id for row in wanted[:2]]
    assert [row.id for row in await lease(AGENT, 3, both, Room(1, 2, STEPS))] == [wanted[2].id]
    assert [row.id for row in await lease(AGENT, 4, both, Room(9, 9, STEPS))] == [lost_twice.id]


async def test_those_that_need_their_own_process_wait_in_the_same_line(scene, run, clock):
    rows = []
    for alone in (True, False, True, False):
        rows.append(scene.a_row(run, alone=alone))
        await scene.turn(attempts=[rows[-1]])
        clock.pass_by(1)
    assert [row.id for row in await scene.lease()] == [row.id for row in rows]


async def test_agents_do_not_get_each_others_rows_leases_or_ends(scene, run, clock):
    for agent in (71, 72):
        await scene.store.agent.join(agent, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    [mine] = await scene.lease(71, lease_no=1, limit=1)
    [theirs] = await scene.lease(72, lease_no=1, limit=1)
    assert [row.id for row in await scene.lease(71, lease_no=1)] == [mine.id]
    assert [row.id for row in await scene.lease(72, lease_no=1)] == [theirs.id]
    clock.pass_by(5 * SECOND)
    await scene.store.agent.beat(71, 8 * SECOND, [])
    clock.pass_by(5 * SECOND)
    assert [row.id for row in (await scene.store.supervisor.watch(9)).orphans] == [theirs.id], "72 did not beat"
    await scene.store.agent.leave(72)
    assert await scene.state_of(theirs.id) is AttemptState.READY
    assert await scene.state_of(mine.id) is AttemptState.RUNNING
    assert (await scene.store.agent.beat(71, 8 * SECOND, [])).alive


async def test_a_lost_answer_to_a_lease_is_asked_for_again(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(5)])
    first = await scene.lease(lease_no=1, limit=3)
    assert await scene.lease(lease_no=1, limit=3) == first
    second = await scene.lease(lease_no=2, limit=3)
    assert len(second) == 2
    assert await scene.lease(lease_no=1, limit=3) == first


async def test_a_lease_number_that_got_nothing_may_be_used_again(scene, run):
    assert await scene.lease(lease_no=0) == []
    await scene.turn(attempts=[scene.a_row(run)])
    assert len(await scene.lease(lease_no=0)) == 1


async def test_a_repeated_lease_leaves_out_what_has_ended(scene, run):
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    one, two = await scene.lease(lease_no=1)
    await scene.report(one, Act.DONE, b"1")
    assert await scene.lease(lease_no=1) == [two]


async def test_an_agent_out_of_time_leases_nothing(scene, run, clock):
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run)])
    clock.pass_by(8 * SECOND)
    assert await scene.lease(71) == []
    await scene.store.agent.beat(71, 8 * SECOND, [])
    assert len(await scene.lease(71)) == 1


async def test_an_agent_out_of_time_hears_what_a_lost_answer_gave_it(scene, run, clock):
    """It holds these rows: it could never hand back what it has not heard of, and nobody else would find them."""
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    first = await scene.lease(71, lease_no=1, limit=1)
    clock.pass_by(8 * SECOND)
    assert await scene.lease(71, lease_no=1, limit=1) == first
    assert await scene.lease(71, lease_no=2, limit=1) == []


async def test_a_new_attempt_finds_nothing_of_the_one_before_but_its_checkpoint(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.CHECKPOINT, b'"half"')
    await scene.store.agent.beat(AGENT, None, [ProgressMark(row.id, row.fence, b'{"done":1}', increased=True)])
    await scene.report(row, Act.FAILED, FAILURE)
    await scene.judge(a_verdict(await scene.row(row.id), AttemptState.READY, why="retry"))
    [again] = await scene.lease()
    assert (again.id, again.fence, again.checkpoint) == (row.id, row.fence + 1, b'"half"')
    assert (again.result, again.why, again.progress, again.progress_at, again.ended_at) == (None,) * 5
    assert (again.failures, again.losses, again.number) == (1, 1, 2)


async def test_no_row_is_leased_twice_and_none_is_missed(scene, run):
    rows = [scene.a_row(run) for _ in range(2_000)]
    await scene.turn(attempts=rows)
    agents = range(100, 108)
    for agent in agents:
        await scene.store.agent.join(agent, "default", "", "a", b"{}", None)

    async def claim(agent: int) -> list[int]:
        got: list[int] = []
        while leased := await scene.lease(agent, limit=7):
            got += [row.id for row in leased]
        return got

    claimed = await asyncio.gather(*(claim(agent) for agent in agents))
    together = [id for got in claimed for id in got]
    assert sorted(together) == [row.id for row in rows]
    assert all(claimed), "every agent got some"


# --- reports


async def test_done_takes_the_loss_back(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(4)
    assert await scene.report(row, Act.DONE, b"42") is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.result, found.losses, found.failures) == (AttemptState.DONE, b"42", 0, 0)
    assert (found.ended_at, found.watch_at) == (NOON + 4, None)


async def test_a_failure_counts_instead_of_the_loss_and_is_due_at_once(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(4)
    assert await scene.report(row, Act.FAILED, FAILURE) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.result, found.losses, found.failures) == (AttemptState.FAILED, FAILURE, 0, 1)
    assert (found.ended_at, found.watch_at) == (NOON + 4, NOON + 4)


async def test_the_loss_of_a_dead_child_stands(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    assert await scene.report(row, Act.DIED, FAILURE) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.losses, found.failures, found.watch_at) == (AttemptState.FAILED, 1, 0, NOON)


async def test_handing_back_costs_nothing_and_keeps_the_place(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(1)
    later = await scene.row_in(AttemptState.READY, run)
    assert await scene.report(row, Act.HAND_BACK) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.losses, found.failures, found.watch_at) == (AttemptState.READY, 0, 0, None)
    assert [leased.id for leased in await scene.lease()] == [row.id, later.id]


async def test_a_cancelled_row_that_is_handed_back_is_not_started_again(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.turn(dropped=[row.id])
    assert await scene.report(row, Act.HAND_BACK) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.losses, found.failures, found.cancel) == (AttemptState.FAILED, 0, 0, True)
    assert b'"cancelled"' in (found.result or b"")
    assert await scene.lease() == []
    assert await scene.report(row, Act.HAND_BACK) is Answer.ALREADY


async def test_a_checkpoint_is_kept_while_it_runs(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    for body in (b"1", b"2"):
        assert await scene.report(row, Act.CHECKPOINT, body) is Answer.ACCEPTED
    assert (await scene.row(row.id)).checkpoint == b"2"
    await scene.report(row, Act.DONE, b"42")
    assert await scene.report(row, Act.CHECKPOINT, b"3") is Answer.LATE


@pytest.mark.parametrize("act", [Act.DONE, Act.FAILED, Act.DIED, Act.HAND_BACK])
async def test_a_repeated_report_hears_that_it_is_known(scene, run, act):
    row = await scene.row_in(AttemptState.RUNNING, run)
    assert await scene.report(row, act, FAILURE) is Answer.ACCEPTED
    before = await scene.row(row.id)
    assert await scene.report(row, act, FAILURE) is Answer.ALREADY
    assert await scene.row(row.id) == before


@pytest.mark.parametrize("act", list(Act))
async def test_a_report_changes_its_own_row_only(scene, run, act):
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    mine, other = await scene.lease()
    assert mine.fence == other.fence
    assert await scene.report(mine, act, FAILURE) is Answer.ACCEPTED
    assert await scene.row(other.id) == other


@pytest.mark.parametrize("act", list(Act))
async def test_whoever_lost_the_row_comes_too_late(scene, run, act):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.HAND_BACK)
    [again] = await scene.lease()
    assert await scene.report(row, act, FAILURE) is Answer.LATE
    assert await scene.row(row.id) == again


async def test_done_after_a_verdict_comes_too_late(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, failures=1, losses=-1, watch_in=0, result=FAILURE))
    assert await scene.report(row, Act.DONE, b"42") is Answer.LATE
    assert (await scene.row(row.id)).result == FAILURE


async def test_of_a_row_that_is_gone_nothing_is_known(scene, run):
    row = await scene.row_in(AttemptState.DONE, run)
    await scene.turn(finals_done=[row.id])
    assert await scene.report(row, Act.DONE, b"42") is Answer.LATE


async def test_many_reports_are_answered_one_by_one(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(4)])
    one, two, three, four = await scene.lease()
    await scene.report(three, Act.DONE, b"3")
    reports = [
        Report(one.id, one.fence, Act.DONE, b"1"),
        Report(two.id, two.fence + 1, Act.DONE, b"2"),
        Report(three.id, three.fence, Act.DONE, b"3"),
        Report(four.id, four.fence, Act.FAILED, FAILURE),
    ]
    answers = await scene.store.agent.report(AGENT, reports)
    assert answers == [Answer.ACCEPTED, Answer.LATE, Answer.ALREADY, Answer.ACCEPTED]


async def test_reports_about_one_row_count_in_their_order(scene, run):
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    one, two = await scene.lease()
    reports = [
        Report(one.id, one.fence, Act.CHECKPOINT, b'"a"'),
        Report(one.id, one.fence, Act.CHECKPOINT, b'"b"'),
        Report(one.id, one.fence, Act.DONE, b"1"),
        Report(one.id, one.fence, Act.DONE, b"1"),
        Report(one.id, one.fence, Act.CHECKPOINT, b'"c"'),
        Report(two.id, two.fence, Act.HAND_BACK),
        Report(two.id, two.fence, Act.DONE, b"2"),
    ]
    answers = await scene.store.agent.report(AGENT, reports)
    accepted, already, late = Answer
    assert answers == [accepted, accepted, accepted, already, late, accepted, late]
    rows = await scene.rows()
    assert (rows[one.id].state, rows[one.id].checkpoint, rows[one.id].result) == (AttemptState.DONE, b'"b"', b"1")
    assert (rows[two.id].state, rows[two.id].result) == (AttemptState.READY, None)


async def test_an_agent_that_leaves_hands_everything_back(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(3)])
    one, two, _ = await scene.lease()
    await scene.report(one, Act.DONE, b"1")
    await scene.turn(dropped=[two.id])
    for _ in range(2):
        await scene.store.agent.leave(AGENT)
    rows = sorted((await scene.rows()).values(), key=lambda row: row.id)
    assert [row.state for row in rows] == [AttemptState.DONE, AttemptState.FAILED, AttemptState.READY]
    assert [row.losses for row in rows] == [0, 0, 0]
    assert await scene.lease() == []


async def test_nobody_leases_a_step_that_its_code_does_not_know(scene):
    [run] = await scene.submit(a_run())
    await scene.turn(attempts=[scene.a_row(run)])
    stranger = Room(slots=5, alone=5, steps=("refund",))
    assert await scene.store.agent.lease(AGENT, 7, [scene.queue], stranger) == []
    assert len(await scene.lease()) == 1
