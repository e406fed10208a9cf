"""The supervisor's doors: what is due for a look, and verdicts that repeat their evidence."""

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act, ProgressMark, Room, Wish
from watchbill.model.attempt import AttemptRow, RowKind, first_fence
from watchbill.model.decision import OF_A_RECOVERY, DecisionRow
from watchbill.model.lease import GONE
from watchbill.model.queue import QueueDepth
from watchbill.model.states import AttemptState
from watchbill.model.verdict import Recast
from watchbill.store.protocol import AVOID_FOR
from watchbill.testing.conformance.scene import (
    AGENT,
    KNOWN,
    NOON,
    STEPS,
    a_reason,
    a_recast,
    a_run,
    a_verdict,
    to_judge,
)

DAY = 24 * 60 * 60 * SECOND

FAILURE = b'{"type":"Late","message":"too slow"}'
OTHER_AGENT = 71


@pytest.fixture
async def run(scene):
    [run] = await scene.submit(a_run(1))
    return run


@pytest.fixture
async def held_by_other(scene, run):
    """A row that runs under an agent whose lease lasts 8 s."""
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run)])
    [row] = await scene.lease(OTHER_AGENT)
    return row


async def test_nothing_to_watch(scene):
    watch = await scene.store.supervisor.watch(10)
    assert (watch.due, watch.orphans, watch.next_at, watch.more, watch.now) == ((), (), None, False, NOON)


async def test_a_row_is_due_when_its_time_has_come(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run, span=5_000)
    watch = await scene.store.supervisor.watch(10)
    assert (watch.due, watch.next_at) == ((), NOON + 5 * SECOND)
    clock.pass_by(5 * SECOND)
    watch = await scene.store.supervisor.watch(10)
    assert (watch.due, watch.next_at, watch.orphans) == ((to_judge(row),), None, ())


async def test_the_longest_overdue_come_first_and_the_rest_is_announced(scene, run, clock):
    rows = [scene.a_row(run, AttemptState.RUNNING, watch_in=span) for span in (30, 10, 20)]
    await scene.turn(attempts=rows)
    clock.pass_by(100)
    watch = await scene.store.supervisor.watch(2)
    assert [row.id for row in watch.due] == [rows[1].id, rows[2].id]
    assert watch.more
    assert not (await scene.store.supervisor.watch(3)).more


async def test_rows_of_an_agent_out_of_time_are_orphans(scene, held_by_other, clock):
    clock.pass_by(8 * SECOND - 1)
    watch = await scene.store.supervisor.watch(10)
    assert (watch.orphans, watch.next_at) == ((), NOON + 8 * SECOND)
    clock.pass_by(1)
    watch = await scene.store.supervisor.watch(10)
    assert watch.orphans == (to_judge(held_by_other),)
    assert watch.next_at == held_by_other.watch_at


async def test_what_steps_were_given_and_have_kept_is_not_read_to_judge_them(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run, args=b'["what nobody else should know"]')
    await scene.report(row, Act.CHECKPOINT, b'"nor this"')
    await scene.report(row, Act.FAILED, FAILURE)
    [found] = (await scene.store.supervisor.watch(10)).due
    assert (found.id, found.args, found.checkpoint, found.result) == (row.id, b"", None, FAILURE)


async def test_rows_of_an_agent_that_never_joined_are_orphans(scene, run):
    row = scene.a_row(run, AttemptState.RUNNING, agent=4_711)
    await scene.turn(attempts=[row])
    assert [found.id for found in (await scene.store.supervisor.watch(10)).orphans] == [row.id]


async def test_many_orphans_are_cut_and_announced(scene, run, clock):
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run) for _ in range(3)])
    await scene.lease(OTHER_AGENT)
    await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(9 * SECOND)
    watch = await scene.store.supervisor.watch(2)
    assert (len(watch.orphans), watch.more) == (2, True)


async def test_an_idle_agents_end_is_not_waited_for(scene):
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", 8 * SECOND)
    assert (await scene.store.supervisor.watch(10)).next_at is None


async def test_a_verdict_changes_the_row_and_leaves_its_reason(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(3)
    verdict = a_verdict(row, AttemptState.FAILED, failures=1, losses=-1, watch_in=0, result=FAILURE, message="late")
    assert await scene.store.supervisor.judge([verdict]) == [True]
    found = await scene.row(row.id)
    assert (found.state, found.failures, found.losses, found.result) == (AttemptState.FAILED, 1, 0, FAILURE)
    assert (found.watch_at, found.ended_at) == (NOON + 3, NOON + 3)
    [decision] = await scene.decisions("o-1")
    assert (decision.run, decision.call, decision.fence, decision.n, decision.actor, decision.body) == (
        1, "charge", row.fence, 1, "supervisor", verdict.body,
    )  # fmt: skip


async def test_what_only_was_looked_at_runs_on_and_may_be_written_down_by_who_only_looks(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    seen = a_verdict(row, AttemptState.RUNNING, watch_in=SECOND, why="slow", message="slow")._replace(actor="observer")
    assert await scene.judge(seen)
    found = await scene.row(row.id)
    assert (found.state, found.why, found.watch_at) == (AttemptState.RUNNING, "slow", NOON + SECOND)
    [decision] = await scene.decisions("o-1")
    assert (decision.actor, decision.n, decision.body) == ("observer", 1, seen.body)
    assert not await scene.judge(a_verdict(found, AttemptState.RUNNING)), "only what was asked to stop is left alone"
    await scene.turn(dropped=[row.id])
    assert not await scene.judge(a_verdict(found, AttemptState.RUNNING, watch_in=SECOND)), "it was asked to stop"
    assert not await scene.judge(a_verdict(found, AttemptState.RUNNING)), "and nobody has seen that"
    asked = await scene.row(row.id)
    assert await scene.judge(a_verdict(asked, AttemptState.RUNNING, watch_in=SECOND))
    assert (await scene.row(row.id)).watch_at == NOON + SECOND
    assert await scene.judge(a_verdict(asked, AttemptState.RUNNING))


async def test_how_trouble_began_is_read_by_call_up_to_the_fence_under_which_it_is_done(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    seen = a_verdict(row, AttemptState.RUNNING, watch_in=SECOND, message="slow")._replace(actor="observer")
    assert await scene.judge(seen)
    clock.pass_by(SECOND)
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, watch_in=0, message="late"))
    clock.pass_by(SECOND)
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.READY, message="again"))
    [again] = await scene.lease()
    own = DecisionRow(run.num, "charge", again.fence, 1, "scheduler", a_reason("its own"))
    well = DecisionRow(run.num, "charge", again.fence, OF_A_RECOVERY, "agent", a_reason("done"))
    await scene.turn(decisions=[own, well])
    doors = scene.store.scheduler
    found = await doors.onsets([(run.num, "charge", again.fence), (run.num, "ship", again.fence)])
    assert [(one.fence, one.n, one.actor, one.body, at) for one, at in found] == [
        (row.fence, 1, "observer", a_reason("slow"), NOON),
        (row.fence, 2, "supervisor", a_reason("late"), NOON + SECOND),
    ]
    assert await doors.onsets([(run.num, "charge", again.fence + 1)]) == [], "by then it had been well"
    assert await doors.onsets([(run.num, "charge", row.fence - 1)]) == []


async def test_decisions_about_one_attempt_are_numbered(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    for after in (AttemptState.FAILED, AttemptState.PARKED, AttemptState.READY):
        assert await scene.judge(a_verdict(await scene.row(row.id), after, watch_in=0))
    assert [decision.n for decision in await scene.decisions("o-1")] == [1, 2, 3]


async def test_each_call_of_each_run_has_its_own_numbers(scene, run):
    [other_run] = await scene.submit(a_run(2))
    rows = [
        await scene.row_in(AttemptState.FAILED, run),
        await scene.row_in(AttemptState.FAILED, run, call="ship"),
        await scene.row_in(AttemptState.FAILED, other_run, fence=first_fence(scene.terms[run.shard])),
    ]
    assert len({row.fence for row in rows}) == 1
    assert await scene.judge(*(a_verdict(row, AttemptState.GAVE_UP) for row in rows))
    assert [decision.n for id in ("o-1", "o-2") for decision in await scene.decisions(id)] == [1, 1, 1]


async def test_a_backoff_is_due_when_it_is_over(scene, run, clock):
    row = await scene.row_in(AttemptState.FAILED, run)
    assert await scene.judge(a_verdict(row, AttemptState.PARKED, watch_in=2 * SECOND, why="backoff"))
    parked = await scene.row(row.id)
    assert (parked.why, parked.watch_at, parked.result) == ("backoff", NOON + 2 * SECOND, row.result)
    assert not await scene.judge(a_verdict(parked, AttemptState.READY)), "not before"
    clock.pass_by(2 * SECOND)
    for after in (AttemptState.PARKED, AttemptState.GAVE_UP):
        assert not await scene.judge(a_verdict(parked, after)), "it waits for nobody"
    assert await scene.judge(a_verdict(parked, AttemptState.READY))
    assert (await scene.row(row.id)).watch_at is None


async def test_a_repeated_verdict_is_not_applied_twice(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    verdict = a_verdict(row, AttemptState.FAILED, failures=1, losses=-1)
    assert await scene.store.supervisor.judge([verdict]) == [True]
    assert await scene.store.supervisor.judge([verdict]) == [False]
    assert (await scene.row(row.id)).failures == 1
    assert len(await scene.decisions("o-1")) == 1


async def test_a_verdict_on_an_old_fence_is_refused(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.HAND_BACK)
    await scene.lease()
    assert not await scene.judge(a_verdict(row, AttemptState.FAILED))
    assert await scene.decisions("o-1") == []


async def test_a_verdict_on_an_old_state_is_refused(scene, run):
    seen = await scene.row_in(AttemptState.FAILED, run)
    assert await scene.judge(a_verdict(seen, AttemptState.PARKED, watch_in=5))
    assert not await scene.judge(a_verdict(seen, AttemptState.READY)), "a pause was decided meanwhile"
    assert await scene.state_of(seen.id) is AttemptState.PARKED


async def test_a_verdict_on_old_progress_is_refused(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    mark = ProgressMark(row.id, row.fence, b'{"done":1}', increased=True)
    await scene.store.agent.beat(AGENT, None, [mark])
    assert not await scene.judge(a_verdict(row, AttemptState.FAILED)), "it has moved since"
    seen = await scene.row(row.id)
    clock.pass_by(5)
    await scene.store.agent.beat(AGENT, None, [mark])
    assert not await scene.judge(a_verdict(seen, AttemptState.FAILED)), "it has moved again"
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.FAILED))


async def test_what_is_well_is_looked_at_again_and_leaves_no_reason(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run, span=5_000)
    clock.pass_by(5 * SECOND)
    assert await scene.judge(a_verdict(row, AttemptState.RUNNING, watch_in=7 * SECOND, message=None))
    assert await scene.row(row.id) == msgspec.structs.replace(row, watch_at=NOON + 12 * SECOND)
    assert await scene.decisions("o-1") == []
    assert (await scene.store.supervisor.watch(10)).next_at == NOON + 12 * SECOND


async def test_what_was_asked_to_stop_is_not_looked_at_later_for_that(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.turn(dropped=[row.id])
    stopping = await scene.row(row.id)
    assert not await scene.judge(a_verdict(row, AttemptState.RUNNING, watch_in=9 * SECOND, message=None))
    assert await scene.row(row.id) == stopping
    assert await scene.judge(a_verdict(stopping, AttemptState.RUNNING, message="left to end")), "it does not stop"
    assert (await scene.row(row.id)).watch_at is None


async def test_what_it_said_meanwhile_wins_where_that_is_evidence(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    for said in (b'{"done":0,"extended":1}', b'{"done":0,"extended":2}'):
        await scene.store.agent.beat(AGENT, None, [ProgressMark(row.id, row.fence, said, increased=False)])
        assert not await scene.judge(a_verdict(row, AttemptState.FAILED, unmoved=True)), "it needs longer"
        row = await scene.row(row.id)
        assert row.progress == said
        assert row.progress_at is None
    assert await scene.decisions("o-1") == []
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, unmoved=True))


async def test_a_note_does_not_save_anybody_where_what_it_said_is_no_evidence(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.agent.beat(AGENT, None, [ProgressMark(row.id, row.fence, b'{"done":0}', increased=False)])
    assert await scene.judge(a_verdict(row, AttemptState.FAILED))


async def test_what_shall_run_alone_waits_for_room_of_its_own_and_says_so(scene, run):
    row = await scene.row_in(AttemptState.FAILED, run)
    recast = a_recast(row, policy=b'{"own":true}', alone=True)
    assert await scene.judge(a_verdict(row, AttemptState.READY, recast=recast))
    assert (await scene.row(row.id)).policy == b'{"own":true}'
    shared = Room(slots=5, alone=0, steps=STEPS)
    assert await scene.store.agent.lease(AGENT, 901, [scene.queue], shared) == []
    [leased] = await scene.store.agent.lease(AGENT, 902, [scene.queue], Room(slots=5, alone=1, steps=STEPS))
    assert (leased.id, leased.policy) == (row.id, b'{"own":true}')


async def test_a_row_that_climbs_is_about_something_else_from_then_on(scene, run):
    row = await scene.row_in(AttemptState.FAILED, run)
    other = await scene.store.supervisor.queue_beside(scene.queue, ("slow",), "", False)
    recast = Recast(
        RowKind.STEP, "charge_slowly", 2, b'{"retries":1}', 5, alone=False, earlier=3, doubt=None, restart=True,
        queue=other, gate=None,
    )  # fmt: skip
    assert await scene.judge(a_verdict(row, AttemptState.READY, failures=-row.failures, recast=recast))
    now = await scene.row(row.id)
    assert (now.step, now.rung, now.queue, now.policy) == ("charge_slowly", 2, other, b'{"retries":1}')
    assert (now.failures, now.earlier, now.checkpoint, now.doubt) == (0, 3, None, None)
    assert await scene.store.agent.lease(AGENT, 901, [scene.queue], Room(5, 5, ("charge", "charge_slowly"))) == []
    [leased] = await scene.store.agent.lease(AGENT, 902, [other], Room(5, 5, ("charge", "charge_slowly")))
    assert (leased.id, leased.step, leased.rung, leased.args) == (row.id, "charge_slowly", 2, row.args)


async def test_a_row_may_climb_to_where_it_has_two_months(scene, run):
    row = await scene.row_in(AttemptState.FAILED, run)
    recast = a_recast(row, rung=1, span=60 * DAY // 1_000)
    assert await scene.judge(a_verdict(row, AttemptState.READY, recast=recast))
    [leased] = await scene.store.agent.lease(AGENT, 901, [scene.queue], Room(slots=5, alone=5, steps=STEPS))
    assert leased.watch_at == NOON + 60 * DAY


async def test_a_doubt_is_kept_until_it_is_settled(scene, run):
    row = await scene.row_in(AttemptState.FAILED, run)
    recast = a_recast(row, kind=RowKind.PROBE, doubt=b'{"failure":{}}')
    assert await scene.judge(a_verdict(row, AttemptState.READY, recast=recast))
    [leased] = await scene.store.agent.lease(AGENT, 901, [scene.queue], Room(slots=5, alone=5, steps=STEPS))
    assert (leased.kind, leased.doubt, leased.number) == (RowKind.PROBE, b'{"failure":{}}', row.number)


async def test_a_verdict_that_is_refused_changes_nothing_of_what_a_row_is_about(scene, run):
    row = await scene.row_in(AttemptState.FAILED, run)
    late = msgspec.structs.replace(row, fence=row.fence - 1)
    assert not await scene.judge(a_verdict(late, AttemptState.READY, recast=a_recast(row, step="other", rung=1)))
    assert await scene.row(row.id) == row


async def test_the_queue_beside_another_is_the_same_each_time_and_in_the_same_place(scene):
    queues = {
        await scene.store.supervisor.queue_beside(scene.queue, ("slow",), "", limited) for limited in (True, False)
    }
    assert len(queues | {scene.queue}) == 3
    assert await scene.store.supervisor.queue_beside(scene.queue, ("slow",), "", False) in queues
    assert await scene.store.scheduler.queue("default", "", ("slow",), "") in queues


async def test_what_ran_alone_stays_alone(scene, run):
    row = await scene.row_in(AttemptState.FAILED, run, alone=True)
    assert await scene.judge(a_verdict(row, AttemptState.READY))
    assert (await scene.row(row.id)).policy == row.policy
    assert await scene.store.agent.lease(AGENT, 901, [scene.queue], Room(slots=5, alone=0, steps=STEPS)) == []


async def test_nobody_is_pronounced_dead_who_has_come_back(scene, held_by_other, clock):
    clock.pass_by(9 * SECOND)
    await scene.store.agent.beat(OTHER_AGENT, 8 * SECOND, [])
    verdict = a_verdict(held_by_other, AttemptState.FAILED, dead_agent=OTHER_AGENT)
    assert not await scene.judge(verdict)
    clock.pass_by(9 * SECOND)
    assert await scene.judge(verdict)


async def test_a_dead_agents_verdict_does_not_touch_another_agents_row(scene, held_by_other, clock):
    clock.pass_by(9 * SECOND)
    assert not await scene.judge(a_verdict(held_by_other, AttemptState.FAILED, dead_agent=AGENT))
    assert not await scene.judge(a_verdict(held_by_other, AttemptState.FAILED, dead_agent=4_711))


async def test_each_verdict_stands_on_its_own(scene, run):
    good, bad = await scene.row_in(AttemptState.RUNNING, run), await scene.row_in(AttemptState.FAILED, run)
    verdicts = [
        a_verdict(good, AttemptState.FAILED),
        a_verdict(bad, AttemptState.READY)._replace(fence=1),
        a_verdict(bad, AttemptState.READY),
    ]
    assert await scene.store.supervisor.judge(verdicts) == [True, False, True]


@pytest.mark.parametrize("why", [None, "settle"])
async def test_a_verdict_on_a_row_that_is_not_wanted_any_more_is_refused_unless_it_knew_that(scene, run, why):
    row = await scene.row_in(AttemptState.FAILED, run)
    if why is not None:
        assert await scene.judge(a_verdict(row, AttemptState.PARKED, why=why, watch_in=0))
        row = await scene.row(row.id)
    known = await scene.decisions("o-1")
    await scene.turn(dropped=[row.id])
    assert not await scene.judge(a_verdict(row, AttemptState.READY))
    assert await scene.decisions("o-1") == known
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.GAVE_UP))


async def test_an_agent_at_work_beside_the_supervisor_is_never_silent_whatever_the_time(scene, held_by_other, clock):
    for _ in range(4):
        watch = await scene.store.supervisor.watch(10)
        assert (watch.silent, watch.silent_at) == ((), None)
        clock.pass_by(5 * SECOND)


async def test_who_was_heard_is_not_buried_for_its_silence(scene, held_by_other):
    await scene.store.agent.beat(OTHER_AGENT, 8 * SECOND, [])
    await scene.store.supervisor.bury([OTHER_AGENT], unheard=True)
    assert (await scene.store.agent.beat(OTHER_AGENT, 8 * SECOND, [])).alive
    await scene.store.supervisor.bury([OTHER_AGENT])
    assert not (await scene.store.agent.beat(OTHER_AGENT, 8 * SECOND, [])).alive


# --- until when whoever had it may act


async def leased_until(scene, row: AttemptRow, *, dead: bool = True) -> int | None:
    """Have an attempt called failed, and read what comes with it when it is judged."""
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, dead_agent=row.agent if dead else None, watch_in=0))
    [found] = [one for one in (await scene.store.supervisor.watch(10)).due if one.id == row.id]
    return found.leased_until


async def test_what_failed_comes_with_the_end_of_the_lease_of_who_had_it(scene, held_by_other, clock):
    clock.pass_by(3 * SECOND)
    await scene.store.agent.beat(OTHER_AGENT, 90 * SECOND, [])
    assert await leased_until(scene, held_by_other, dead=False) == NOON + 93 * SECOND


async def test_who_is_provably_dead_acts_no_longer(scene, held_by_other):
    await scene.store.supervisor.bury([OTHER_AGENT])
    assert await leased_until(scene, held_by_other) == GONE


async def test_who_has_left_acts_no_longer(scene, run):
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", 8 * SECOND)
    await scene.store.agent.leave(OTHER_AGENT)
    await scene.turn(attempts=[scene.a_row(run, AttemptState.FAILED, agent=OTHER_AGENT)])
    [found] = (await scene.store.supervisor.watch(10)).due
    assert found.leased_until == GONE


async def test_until_when_it_may_act_is_written_down_with_the_verdict_and_stays(scene, run):
    row = await scene.row_in(AttemptState.FAILED, run)
    assert await scene.judge(a_verdict(row, AttemptState.READY)._replace(acts_in=70 * SECOND))
    for acts_in in (None, 5 * SECOND):  # a later attempt raised, or can act for a shorter time
        [again] = await scene.lease()
        await scene.report(again, Act.FAILED, FAILURE)
        [due] = (await scene.store.supervisor.watch(10)).due
        assert due.acts_until == NOON + 70 * SECOND
        assert await scene.judge(a_verdict(due, AttemptState.READY)._replace(acts_in=acts_in))
    [again] = await scene.lease()
    await scene.report(again, Act.FAILED, FAILURE)
    verdict = a_verdict(await scene.row(row.id), AttemptState.GAVE_UP)
    assert await scene.judge(verdict._replace(acts_in=90 * SECOND))
    [final] = (await scene.store.scheduler.look(sorted(scene.terms), KNOWN, 10)).finals
    assert (await scene.row(row.id)).acts_until == final.acts_until == NOON + 90 * SECOND


async def test_of_who_never_was_there_nobody_knows_until_when_it_acts(scene, run):
    row = scene.a_row(run, AttemptState.RUNNING, agent=4_711)
    await scene.turn(attempts=[row])
    assert await leased_until(scene, await scene.row(row.id)) is None


# --- with another agent, if one can


async def leased_by(scene, *agents: int) -> list[bool]:
    """Say which of these agents get something, each on its own; whoever does hands it back."""
    got = []
    for agent in agents:
        rows = await scene.lease(agent)
        got.append(bool(rows))
        for row in rows:
            await scene.report(row, Act.HAND_BACK)
    return got


async def failed_with_the_agent(scene, run, queue: int | None = None) -> AttemptRow:
    await scene.turn(attempts=[scene.a_row(run, queue=queue or scene.queue)])
    [row] = await scene.store.agent.lease(AGENT, 1, [queue or scene.queue], Room(1, 1, STEPS))
    await scene.report(row, Act.FAILED, FAILURE)
    return await scene.row(row.id)


async def test_what_failed_is_tried_with_another_agent(scene, run, clock):
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", None)
    assert await scene.judge(a_verdict(await failed_with_the_agent(scene, run), AttemptState.READY))
    assert await leased_by(scene, AGENT, OTHER_AGENT, AGENT) == [False, True, False]
    clock.pass_by(AVOID_FOR - 1)
    assert await leased_by(scene, AGENT, OTHER_AGENT) == [False, True]
    clock.pass_by(1)
    assert await leased_by(scene, AGENT) == [True], "after a while anybody may have it"


async def test_what_was_lost_is_tried_with_another_agent(scene, held_by_other, clock):
    clock.pass_by(9 * SECOND)
    assert await scene.judge(a_verdict(held_by_other, AttemptState.FAILED, dead_agent=OTHER_AGENT, watch_in=0))
    assert await scene.judge(a_verdict(await scene.row(held_by_other.id), AttemptState.READY))
    await scene.store.agent.beat(OTHER_AGENT, 60 * SECOND, [])  # it was only silent
    assert await leased_by(scene, OTHER_AGENT, AGENT) == [False, True]


async def test_after_a_backoff_it_is_tried_with_another_agent(scene, run, clock):
    row = await failed_with_the_agent(scene, run)
    assert await scene.judge(a_verdict(row, AttemptState.PARKED, watch_in=60 * SECOND))
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", None)
    clock.pass_by(60 * SECOND)
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.READY))
    assert await leased_by(scene, AGENT, OTHER_AGENT) == [False, True]
    clock.pass_by(AVOID_FOR)
    assert await leased_by(scene, AGENT) == [True]


@pytest.mark.parametrize("how", ["dies", "leaves"])
async def test_who_had_it_need_not_wait_when_the_other_one_is_gone(scene, run, how):
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", 8 * SECOND)
    assert await scene.judge(a_verdict(await failed_with_the_agent(scene, run), AttemptState.READY))
    assert await leased_by(scene, AGENT) == [False]
    if how == "dies":
        await scene.store.supervisor.bury([OTHER_AGENT])
    else:
        await scene.store.agent.leave(OTHER_AGENT)
    assert await leased_by(scene, AGENT) == [True]


async def test_who_is_alone_tries_again(scene, run):
    assert await scene.judge(a_verdict(await failed_with_the_agent(scene, run), AttemptState.READY))
    assert await leased_by(scene, AGENT) == [True]


@pytest.mark.parametrize("why", ["namespace", "region", "time", "gone", "wish", "needs"])
async def test_who_could_not_do_it_is_no_other_agent(scene, run, clock, why):
    queue = await scene.store.scheduler.queue("default", "", ["eu", "gpu=2"], "")
    row = await failed_with_the_agent(scene, run, queue)
    await scene.store.agent.join(
        OTHER_AGENT,
        "other" if why == "namespace" else "default",
        "eu" if why == "region" else "",
        "b",
        b"{}",
        8 * SECOND,
        needs=("gpu=4", "us") if why == "needs" else ("eu", "gpu=4", "us"),
    )
    match why:
        case "time":
            clock.pass_by(8 * SECOND)
        case "gone":
            await scene.store.agent.leave(OTHER_AGENT)
        case "wish":
            await scene.store.client.order_agent("default", OTHER_AGENT, Wish.DRAIN)
    assert await scene.judge(a_verdict(row, AttemptState.READY))
    assert len(await scene.store.agent.lease(AGENT, 2, [queue], Room(1, 1, STEPS))) == 1


async def test_who_has_all_that_is_asked_for_by_name_is_another_agent(scene, run):
    queue = await scene.store.scheduler.queue("default", "", ["eu", "gpu=2"], "")
    row = await failed_with_the_agent(scene, run, queue)
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", None, needs=("eu", "gpu=4", "us"))
    assert await scene.judge(a_verdict(row, AttemptState.READY))
    assert await scene.store.agent.lease(AGENT, 2, [queue], Room(1, 1, STEPS)) == []
    assert len(await scene.store.agent.lease(OTHER_AGENT, 1, [queue], Room(1, 1, STEPS))) == 1


async def test_rows_of_several_queues_are_judged_each_by_its_own(scene, run):
    queues = [scene.queue, await scene.store.scheduler.queue("default", "", ["gpu"], "")]
    rows = [await failed_with_the_agent(scene, run, queue) for queue in queues]
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", None)
    assert await scene.judge(*(a_verdict(row, AttemptState.READY) for row in rows))
    assert [row.id for row in await scene.store.agent.lease(AGENT, 9, queues, Room(9, 9, STEPS))] == [rows[1].id]


async def test_others_are_not_hidden_behind_what_an_agent_must_not_have(scene, run, clock):
    await scene.store.agent.join(OTHER_AGENT, "default", "", "b", b"{}", None)
    rows = [await failed_with_the_agent(scene, run) for _ in range(5)]
    assert await scene.judge(*(a_verdict(row, AttemptState.READY) for row in rows))
    clock.pass_by(1)
    new = scene.a_row(run)
    await scene.turn(attempts=[new])
    assert [row.id for row in await scene.lease(limit=1)] == [new.id]


# --- what waits


async def test_the_backlog_of_all_namespaces(scene, run, clock):
    elsewhere = await scene.store.scheduler.queue("other", "eu", ["gpu"], "")
    await scene.store.agent.join(OTHER_AGENT, "other", "eu", "b", b"{}", None, needs=("gpu",))
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run, queue=elsewhere)])
    clock.pass_by(3)
    assert await scene.store.supervisor.backlog() == [
        QueueDepth("default", scene.queue, "", (), "", False, depth=1, oldest=3, served_by=1, running=0),
        QueueDepth("other", elsewhere, "eu", ("gpu",), "", False, depth=1, oldest=3, served_by=1, running=0),
    ]
    [mine] = await scene.lease()
    [first, _] = await scene.store.supervisor.backlog()
    assert (first.depth, first.oldest, first.running) == (0, 0, 1)
    await scene.report(mine, Act.HAND_BACK)
    [first, _] = await scene.store.supervisor.backlog()
    assert (first.depth, first.oldest, first.running) == (1, 3, 0)
