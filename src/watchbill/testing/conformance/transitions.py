"""THE table of model/states.py, walked: all that is in it is accepted, all that is not is refused."""

import pytest

from watchbill.model.agent import Act
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.states import ATTEMPT_MOVES, AttemptState, Room, RunState, run_may_move
from watchbill.testing.conformance.scene import Scene, a_change, a_run, a_verdict, an_entry

A = AttemptState
REPORTED = {Act.DONE: A.DONE, Act.FAILED: A.FAILED, Act.DIED: A.FAILED, Act.HAND_BACK: A.READY}


def may(before: A | None, after: A | None, owner: Room, act: str = "") -> bool:
    return any(move[:3] == (before, after, owner) and act in move.act for move in ATTEMPT_MOVES)


# --- runs


@pytest.mark.parametrize("before", list(RunState))
async def test_every_transition_of_a_run(scene, before):
    for num, after in enumerate(RunState, start=1):
        run = await scene.run_in(before, num)
        allowed = run_may_move(before, after) or (before is after and not before.terminal)
        turn = scene.turn(journal=[an_entry(num, 1)], runs=[a_change(run, after)])
        if allowed:
            assert (await turn).applied, (before, after)
        else:
            with pytest.raises(ValueError, match="a run may not go there from where it is"):
                await turn
        record = await scene.store.client.record("default", run.id)
        assert (record.run.status, len(record.journal)) == ((after, 1) if allowed else (before, 0))
        assert (record.run.ended_at is not None) == record.run.status.terminal


async def test_a_change_of_a_run_that_is_not_there_is_refused(scene):
    with pytest.raises(ValueError, match="0 of 1 were possible"):
        await scene.turn(runs=[a_change(404, RunState.RUNNING)])


# --- rows


async def the_row(scene: Scene, state: A, num: int = 1) -> AttemptRow:
    [run] = await scene.submit(a_run(num))
    return await scene.row_in(state, run)


@pytest.mark.parametrize("state", list(A))
async def test_every_way_for_a_row_to_begin(scene, state):
    [run] = await scene.submit(a_run(1))
    row = scene.a_row(run, state, kind=RowKind.ASK if state is A.PARKED else RowKind.STEP)
    if may(None, state, Room.SCHEDULER) and not may(None, state, Room.SCHEDULER, "`finish`"):  # which is no turn
        assert (await scene.turn(attempts=[row])).applied
        assert await scene.state_of(row.id) is state
    else:
        with pytest.raises(ValueError, match="a row begins as ready, running or failed"):
            await scene.turn(attempts=[row])
        assert await scene.state_of(row.id) is None


@pytest.mark.parametrize("before", list(A))
async def test_every_lease(scene, before):
    row = await the_row(scene, before)
    leased = await scene.lease()
    allowed = may(before, A.RUNNING, Room.AGENT)
    assert bool(leased) == allowed
    assert await scene.state_of(row.id) is (A.RUNNING if allowed else before)


@pytest.mark.parametrize("before", list(A))
async def test_every_report(scene, before):
    for num, (act, after) in enumerate(REPORTED.items()):
        row = await the_row(scene, before, num)
        await scene.report(row, act, b"1")
        allowed = may(before, after, Room.AGENT)
        assert await scene.state_of(row.id) is (after if allowed else before), (before, act)
        assert allowed or await scene.row(row.id) == row
        await scene.turn(dropped=[row.id])  # a ready one would be leased in the next round


@pytest.mark.parametrize("before", list(A))
async def test_every_verdict(scene, before):
    for num, after in enumerate(A):
        row = await the_row(scene, before, num)
        known = len(await scene.decisions(row.run_id))
        allowed = may(before, after, Room.SUPERVISOR)
        assert await scene.judge(a_verdict(row, after)) == allowed, (before, after)
        assert await scene.state_of(row.id) is (after if allowed else before)
        assert len(await scene.decisions(row.run_id)) == known + allowed
        await scene.turn(dropped=[row.id])


@pytest.mark.parametrize("before", list(A))
async def test_every_way_into_the_journal(scene, before):
    row = await the_row(scene, before)
    await scene.turn(finals_done=[row.id])
    allowed = may(before, None, Room.SCHEDULER, "into the journal")
    assert await scene.state_of(row.id) is (None if allowed else before)


@pytest.mark.parametrize("before", list(A))
async def test_every_cancellation(scene, before):
    row = await the_row(scene, before)
    await scene.turn(dropped=[row.id])
    allowed = may(before, None, Room.SCHEDULER, "the call was cancelled")
    assert await scene.state_of(row.id) is (None if allowed else before)
    assert allowed or (await scene.row(row.id)).cancel is (before is A.RUNNING)  # what is final is taken in first


async def test_a_row_for_an_agent_does_not_begin_as_parked(scene):
    [run] = await scene.submit(a_run(1))
    with pytest.raises(ValueError, match="a row begins as ready, running or failed"):
        await scene.turn(attempts=[scene.a_row(run, A.PARKED)])


@pytest.mark.parametrize("before", list(A))
async def test_every_release(scene, before):
    row = await the_row(scene, before)
    await scene.turn(released=[row.id])
    allowed = may(before, A.READY, Room.SCHEDULER)
    assert await scene.state_of(row.id) is (A.READY if allowed else before)
    assert allowed or await scene.row(row.id) == row


def test_nothing_in_the_table_is_left_out():
    walked: set[tuple[A | None, A | None, Room]] = {(None, state, Room.SCHEDULER) for state in A}
    walked |= {(before, A.RUNNING, Room.AGENT) for before in A}
    walked |= {(before, after, Room.AGENT) for before in A for after in REPORTED.values()}
    walked |= {(before, after, Room.SUPERVISOR) for before in A for after in A}
    walked |= {(before, None, Room.SCHEDULER) for before in A}
    walked |= {(before, A.READY, Room.SCHEDULER) for before in A}
    assert {move[:3] for move in ATTEMPT_MOVES} <= walked
