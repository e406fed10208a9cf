"""THE table of model/states.py, walked: all that is in it is accepted, all that is not is refused."""

from itertools import combinations

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act
from watchbill.model.attempt import UNWANTED, AttemptRow, RowKind
from watchbill.model.states import ATTEMPT_MOVES, AttemptState, Room, RunState, run_may_move
from watchbill.store.protocol import AskedAgain
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


# What a turn may say of rows that are there, in the order in which it counts.
SAID = {
    "finals_done": lambda row: [row.id],
    "dropped": lambda row: [row.id],
    "decided": lambda row: [row.id],
    "released": lambda row: [row.id],
    "asked_again": lambda row: [AskedAgain(row.id, 60 * SECOND)],
    "holds": lambda row: [(row.run, True)],
}


async def left_of(scene: Scene, row: AttemptRow) -> AttemptRow | None:
    record = await scene.store.client.record("default", row.run_id)
    assert record is not None
    left = next((one for one in record.attempts if one.id == row.id), None)
    return None if left is None else msgspec.structs.replace(left, id=0, run=0, run_id="", shard=0)


@pytest.mark.parametrize("before", list(A))
async def test_what_is_said_of_a_row_in_one_turn_is_as_if_it_was_said_in_one_turn_after_the_other(scene, before):
    for num, (first, second) in enumerate(combinations(SAID, 2)):
        together, apart = await the_row(scene, before, 2 * num), await the_row(scene, before, 2 * num + 1)
        await scene.turn(**{first: SAID[first](together), second: SAID[second](together)})
        await scene.turn(**{first: SAID[first](apart)})
        await scene.turn(**{second: SAID[second](apart)})
        assert await left_of(scene, together) == await left_of(scene, apart), (before, first, second)
        await scene.turn(dropped=[together.id, apart.id])  # a ready one would be leased in the next round


@pytest.mark.parametrize("before", list(A))
async def test_of_what_holds_and_lets_go_in_one_turn_the_last_counts(scene, before):
    row = await the_row(scene, before)
    await scene.turn(holds=[(row.run, False), (row.run, True)])
    assert (await scene.row(row.id)).held
    await scene.turn(released=[row.id], holds=[(row.run, True), (row.run, False)])
    assert not (await scene.row(row.id)).held


@pytest.mark.parametrize("held", [False, True])
async def test_a_row_that_is_new_is_held_as_its_run_is_in_the_end(scene, held):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, held=not held)], holds=[(run.num, held)])
    assert bool(await scene.lease()) is not held


async def in_doubt(scene: Scene, why: str, doubt: bytes, watch_in: int | None = None, num: int = 1) -> AttemptRow:
    """Bring a call to where an attempt of it may have taken effect."""
    row = await the_row(scene, A.FAILED, num)
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


async def test_row_that_waits_until_its_attempt_cannot_act_is_not_deleted_by_a_decision(scene):
    row = await in_doubt(scene, "settle", b"{}", 60 * SECOND)
    await scene.turn(decided=[row.id])
    assert await scene.row(row.id) == row


async def settling(scene: Scene, num: int) -> AttemptRow:
    return await in_doubt(scene, "settle", b"{}", 60 * SECOND, num)


async def ready_probe(scene: Scene, num: int) -> AttemptRow:
    row = await the_row(scene, A.FAILED, num)
    assert await scene.judge(a_verdict(row, A.READY, recast=a_recast(row, kind=RowKind.PROBE, doubt=b"{}")))
    return await scene.row(row.id)


@pytest.mark.parametrize("uncertain", [settling, ready_probe])
async def test_parts_of_one_turn_that_name_an_uncertain_row_count_in_their_order(scene, uncertain):
    for num, (first, second) in enumerate(combinations(SAID, 2)):
        together, apart = await uncertain(scene, 2 * num), await uncertain(scene, 2 * num + 1)
        await scene.turn(**{first: SAID[first](together), second: SAID[second](together)})
        await scene.turn(**{first: SAID[first](apart)})
        await scene.turn(**{second: SAID[second](apart)})
        assert await left_of(scene, together) == await left_of(scene, apart) is not None, (first, second)


async def test_what_nobody_knows_is_not_dropped_but_judged_again(scene):
    row = await in_doubt(scene, "doubt", b"{}")
    await scene.store.supervisor.attach([gathering(1, [row])])
    assert may(A.PARKED, A.FAILED, Room.SCHEDULER, "may have taken effect")
    await scene.turn(dropped=[row.id])
    after = await scene.row(row.id)
    assert (after.state, after.why, after.cancel, after.watch_at) == (A.FAILED, UNWANTED, True, NOON)
    assert (after.doubt, after.result) == (b"{}", FAILED)
    assert await scene.store.client.inbox("default", 10) == []
    assert await scene.judge(a_verdict(after, A.PARKED, why="settle", watch_in=SECOND))


async def unsure_in(scene: Scene, state: A, num: int = 1) -> AttemptRow:
    """Bring a call to where it waits for another try, or for a person, and an attempt of it may have taken effect."""
    row = await the_row(scene, A.FAILED, num)
    why = "backoff" if state is A.PARKED else None
    verdict = a_verdict(row, state, why=why, result=FAILED, watch_in=60 * SECOND if why else None)
    assert await scene.judge(verdict._replace(unsure=True))
    return await scene.row(row.id)


@pytest.mark.parametrize("before", [A.READY, A.PARKED])
async def test_what_may_have_taken_effect_is_not_dropped_but_judged(scene, before):
    assert may(before, A.FAILED, Room.SCHEDULER, "may have taken effect")
    row = await unsure_in(scene, before)
    await scene.turn(dropped=[row.id])
    after = await scene.row(row.id)
    assert (after.state, after.why, after.cancel, after.watch_at) == (A.FAILED, UNWANTED, True, NOON)
    assert (after.unsure, after.result) == (True, FAILED)
    assert await scene.lease() == []
    assert await scene.judge(a_verdict(after, A.GAVE_UP))


@pytest.mark.parametrize("before", [A.READY, A.PARKED])
async def test_of_what_may_have_taken_effect_all_that_is_said_in_one_turn_counts_in_order(scene, before):
    said = [pair for pair in combinations(SAID, 2) if "dropped" in pair]  # of the others it makes no difference
    for num, (first, second) in enumerate(said):
        together, apart = await unsure_in(scene, before, 2 * num), await unsure_in(scene, before, 2 * num + 1)
        await scene.turn(**{first: SAID[first](together), second: SAID[second](together)})
        await scene.turn(**{first: SAID[first](apart)})
        await scene.turn(**{second: SAID[second](apart)})
        assert await left_of(scene, together) == await left_of(scene, apart), (before, first, second)


@pytest.mark.parametrize(
    ("act", "unsure"),
    [(Act.DONE, False), (Act.FAILED, False), (Act.DIED, True), (Act.HAND_BACK, False), (Act.STOPPED, True)],
)
async def test_what_died_or_was_stopped_may_have_taken_effect_and_that_stays_so(scene, act, unsure):
    row = await the_row(scene, A.RUNNING)
    await scene.report(row, act, FAILED)
    after = await scene.row(row.id)
    assert after.unsure is unsure
    if after.state is A.FAILED:
        assert await scene.judge(a_verdict(after, A.READY))
    if after.state is not A.DONE:
        [again] = await scene.lease()
        await scene.report(again, Act.FAILED, FAILED)
        assert (await scene.row(row.id)).unsure is unsure


@pytest.mark.parametrize("known", [False, True, None])
async def test_a_verdict_says_whether_it_may_have_taken_effect_or_nothing_of_that(scene, known):
    for num, before in enumerate((False, True)):
        row = await the_row(scene, A.FAILED, num)
        assert await scene.judge(a_verdict(row, A.PARKED, why="settle", watch_in=0)._replace(unsure=before))
        row = await scene.row(row.id)
        assert row.unsure is before
        assert await scene.judge(a_verdict(row, A.READY)._replace(unsure=known))
        assert (await scene.row(row.id)).unsure is (before if known is None else known)
        await scene.turn(dropped=[row.id])


async def test_a_row_begins_with_what_is_known_of_attempts_before_it(scene):
    [run] = await scene.submit(a_run(1))
    until = NOON + 8 * SECOND
    lost = scene.a_row(run, A.FAILED, losses=1, unsure=True, acts_until=until, cancel=True)
    raised = scene.a_row(run, A.FAILED, failures=1)
    await scene.turn(attempts=[lost, raised])
    found = [await scene.row(row.id) for row in (lost, raised)]
    assert [(row.unsure, row.acts_until, row.cancel) for row in found] == [(True, until, True), (False, None, False)]


@pytest.mark.parametrize(("why", "unsure"), [("doubt", False), ("quarantine", True), ("escalate", True)])
async def test_who_was_asked_whether_it_took_effect_and_wants_it_again_says_that_it_did_not(scene, why, unsure):
    row = await the_row(scene, A.FAILED)
    assert await scene.judge(a_verdict(row, A.PARKED, why=why)._replace(unsure=True))
    await scene.turn(released=[row.id])
    after = await scene.row(row.id)
    assert (after.state, after.unsure) == (A.READY, unsure)


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
    walked |= {(A.READY, A.PARKED, Room.SCHEDULER)}
    walked |= {(before, A.FAILED, Room.SCHEDULER) for before in (A.READY, A.PARKED)}
    assert {move[:3] for move in ATTEMPT_MOVES} <= walked
