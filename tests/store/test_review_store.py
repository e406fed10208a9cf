"""Review: a zombie supervisor whose verdict about people is older than what came after; and run.retry of what settles."""

from watchbill.clock import SECOND
from watchbill.model.states import AttemptState, RunState
from watchbill.testing.conformance.scene import a_change, a_recast, a_run, a_verdict
from watchbill.testing.conformance.undecided import HALF, WITHIN, asked, to_others
from watchbill.testing.conformance.people import FAILED


async def test_a_zombie_moves_a_call_back_to_people_who_had_their_time(scene, clock):
    first = await asked(scene, 1)                     # rung 0: the first people
    zombie = to_others(first)._replace(policy=first.policy)  # S1 decides: to rung 1, and freezes
    clock.pass_by(WITHIN)
    assert await scene.judge(to_others(first))        # S2 does it
    second = await scene.row(first.id)
    clock.pass_by(WITHIN)
    assert await scene.judge(to_others(second))       # and later: rung 2
    third = await scene.row(first.id)
    assert third.rung == 2
    clock.pass_by(WITHIN)
    applied = await scene.judge(zombie)
    assert not applied


async def test_a_retry_of_the_run_lets_not_go_what_settles(scene, clock):
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    row = await scene.row_in(AttemptState.FAILED, run)
    recast = a_recast(row, doubt=b"{}")
    assert await scene.judge(
        a_verdict(row, AttemptState.PARKED, why="settle", result=FAILED, watch_in=60 * SECOND, recast=recast)
    )
    await scene.turn(released=[row.id])
    now = await scene.row(row.id)
    assert (now.state, now.why) == (AttemptState.PARKED, "settle")


async def test_what_settles_is_not_dropped_but_asked_to_stop_and_looked_at_when_it_was_to_be(scene, clock):
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    row = await scene.row_in(AttemptState.FAILED, run)
    recast = a_recast(row, doubt=b"{}")
    assert await scene.judge(
        a_verdict(row, AttemptState.PARKED, why="settle", result=FAILED, watch_in=60 * SECOND, recast=recast)
    )
    before = await scene.row(row.id)
    await scene.turn(dropped=[row.id])
    after = await scene.row(row.id)
    assert (after.state, after.why, after.cancel) == (AttemptState.PARKED, "settle", True)
    assert after.watch_at == before.watch_at
