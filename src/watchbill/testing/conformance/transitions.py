"""THE table of model/states.py, walked: all that is in it is accepted, all that is not is refused."""

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.states import ATTEMPT_MOVES, AttemptState, Room, RunState, run_may_move
from watchbill.testing.conformance.people import FAILED, gathering
from watchbill.testing.conformance.scene import NOON, Scene, a_change, a_recast, a_run, a_verdict, an_entry

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
    # What runs is asked to stop, and what has failed is judged; what is final is taken in first.
    assert allowed or (await scene.row(row.id)).cancel is (before in (A.RUNNING, A.FAILED))


@pytest.mark.parametrize("before", list(A))
async def test_every_deletion_after_a_decision(scene, before):
    row = await the_row(scene, before)
    await scene.turn(decided=[row.id])
    allowed = may(before, None, Room.SCHEDULER, "a person has given its outcome")
    assert await scene.state_of(row.id) is (None if allowed else before)


async def in_doubt(scene: Scene, why: str, doubt: bytes, watch_in: int | None = None) -> AttemptRow:
    """Bring a call to where an attempt of it may have taken effect."""
    row = await the_row(scene, A.FAILED)
    recast = a_recast(row, doubt=doubt)
    assert await scene.judge(a_verdict(row, A.PARKED, why=why, result=FAILED, watch_in=watch_in, recast=recast))
    return await scene.row(row.id)


async def test_what_may_still_act_is_not_dropped_but_judged_when_it_was_to_be(scene):
    row = await in_doubt(scene, "settle", b"{}", 60 * SECOND)
    await scene.turn(dropped=[row.id])
    assert await scene.row(row.id) == msgspec.structs.replace(row, cancel=True)


async def test_what_may_still_act_is_not_let_go_either(scene):
    row = await in_doubt(scene, "settle", b"{}", 60 * SECOND)
    await scene.turn(released=[row.id])
    assert await scene.row(row.id) == row


async def test_what_nobody_knows_is_not_dropped_but_judged_again(scene):
    row = await in_doubt(scene, "doubt", b"{}")
    await scene.store.supervisor.attach([gathering(1, [row])])
    assert may(A.PARKED, A.FAILED, Room.SCHEDULER, "nobody knew")
    await scene.turn(dropped=[row.id])
    after = await scene.row(row.id)
    assert (after.state, after.why, after.cancel, after.watch_at) == (A.FAILED, None, True, NOON)
    assert (after.doubt, after.result) == (b"{}", FAILED)
    assert await scene.store.client.inbox("default", 10) == []
    assert await scene.judge(a_verdict(after, A.PARKED, why="settle", watch_in=SECOND))


async def test_a_probe_that_nobody_has_begun_is_not_dropped_but_asked_for_the_undo(scene):
    row = await the_row(scene, A.FAILED)
    asks = a_recast(row, kind=RowKind.PROBE, doubt=b"{}")
    assert await scene.judge(a_verdict(row, A.READY, recast=asks))
    assert may(A.READY, A.PARKED, Room.SCHEDULER, "before its probe was asked")
    await scene.turn(dropped=[row.id])
    after = await scene.row(row.id)
    assert (after.state, after.kind, after.why, after.cancel) == (A.PARKED, RowKind.STEP, "settle", True)
    assert (after.watch_at, after.doubt, await scene.lease()) == (NOON, b"{}", [])
    assert await scene.judge(a_verdict(after, A.READY, recast=asks))
    [leased] = await scene.lease()
    await scene.report(leased, Act.FAILED, FAILED)
    await scene.turn(dropped=[row.id])
    after = await scene.row(row.id)
    assert (after.state, after.kind, after.cancel, after.doubt) == (A.FAILED, RowKind.PROBE, True, b"{}")


@pytest.mark.parametrize("after", [A.READY, A.PARKED, A.GAVE_UP])
async def test_what_may_still_act_is_asked_about_or_given_up_when_it_cannot(scene, clock, after):
    row = await in_doubt(scene, "settle", b"{}", SECOND)
    assert not await scene.judge(a_verdict(row, after))
    clock.pass_by(SECOND)
    assert await scene.judge(a_verdict(row, after)) == (after is not A.PARKED)


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
    walked |= {(A.READY, A.PARKED, Room.SCHEDULER), (A.PARKED, A.FAILED, Room.SCHEDULER)}
    assert {move[:3] for move in ATTEMPT_MOVES} <= walked
