"""The nasty interleavings of the language, forced step by step through the doors of every store."""

import msgspec

from watchbill.clock import SECOND
from watchbill.model.agent import Act, Answer
from watchbill.model.facts import FactKind
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import CANCEL_GRACE, TurnFact
from watchbill.testing.conformance.scene import AGENT, KNOWN, LIMIT, ME, a_change, a_run, a_verdict

B = 8
LEASE = 8 * SECOND


# --- 9: cancel against retry, then undo


async def test_9_the_retry_comes_first_and_the_cancel_finds_it_running(scene):
    [run] = await scene.submit(a_run(1))
    failed = await scene.row_in(AttemptState.FAILED, run)

    # The supervisor sets it ready; an agent leases it.
    assert await scene.judge(a_verdict(failed, AttemptState.READY))
    [running] = await scene.lease()

    # The scheduler's turn with the cancel: it is not deleted, but asked to stop, and looked at after the grace.
    await scene.turn(dropped=[failed.id])
    row = await scene.row(failed.id)
    assert (row.state, row.cancel) == (AttemptState.RUNNING, True)
    assert row.watch_at == scene.clock.wall() + CANCEL_GRACE
    orders = await scene.store.agent.beat(AGENT, None, [])
    assert list(orders.cancel) == [failed.id]

    # It does not stop in time: nobody calls it ended. Only its agent's word ends it, and then nobody tries it again.
    scene.clock.pass_by(CANCEL_GRACE)
    assert await scene.judge(a_verdict(row, AttemptState.RUNNING))
    assert await scene.state_of(failed.id) is AttemptState.RUNNING
    assert await scene.report(running, Act.FAILED, b'{"type":"CancelledError","message":""}') is Answer.ACCEPTED
    stopped = await scene.row(failed.id)
    assert (stopped.state, stopped.cancel) == (AttemptState.FAILED, True)
    assert await scene.judge(a_verdict(stopped, AttemptState.GAVE_UP))
    assert await scene.lease() == []

    # The scheduler consumes it; no row is left: now, and not before, the run is undoing.
    await scene.turn(finals_done=[failed.id], runs=[a_change(run, RunState.UNDOING)])
    assert await scene.rows() == {}
    assert (await scene.run_row(run.id)).status is RunState.UNDOING


async def test_9_the_cancel_comes_first_and_the_retry_is_refused(scene):
    [run] = await scene.submit(a_run(1))
    failed = await scene.row_in(AttemptState.FAILED, run)
    await scene.turn(dropped=[failed.id])
    assert not await scene.judge(a_verdict(failed, AttemptState.READY))
    assert await scene.decisions(run.id) == []
    row = await scene.row(failed.id)
    assert (row.state, row.cancel) == (AttemptState.FAILED, True), "what that means for an undo is judged"
    assert await scene.judge(a_verdict(row, AttemptState.GAVE_UP))


async def test_9_a_result_that_came_meanwhile_counts(scene):
    [run] = await scene.submit(a_run(1))
    done = await scene.row_in(AttemptState.DONE, run)
    await scene.turn(dropped=[done.id])
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, LIMIT)
    assert [(row.id, row.result) for row in look.finals] == [(done.id, b"42")]


async def test_9_nobody_is_left_to_run_who_was_not_asked_to_stop(scene):
    [run] = await scene.submit(a_run(1))
    running = await scene.row_in(AttemptState.RUNNING, run)
    assert not await scene.judge(a_verdict(running, AttemptState.RUNNING))


# --- 11: a child in another shard


async def test_11_a_child_in_another_shard(scene):
    scheduler = scene.store.scheduler
    [parent] = await scene.submit(a_run(1))
    names = (f"o-1/ship.{n}" for n in range(2, 100))
    shards = await scheduler.shards("default", "")
    child = None
    for num, name in enumerate(names, 2):
        start = msgspec.structs.replace(a_run(num, name), parent=1, root=1)
        # A zombie, under an older term, cannot start it.
        stale = msgspec.structs.replace(
            scene.a_turn(starts=[start]), terms={parent.shard: scene.terms[parent.shard] - 1}
        )
        assert not (await scheduler.turn(stale)).applied
        assert await scene.store.client.find("default", name) is None
        assert (await scene.turn(runs=[a_change(parent, RunState.WAITING)], starts=[start])).applied
        child = await scene.run_row(name)
        if child.shard != parent.shard:
            break
    assert child is not None
    assert child.shard != parent.shard

    # The child ends in its shard: its last turn, under its own term alone, tells the parent.
    told = TurnFact(1, "default", "", FactKind.CHILD, child.id, "run", b"1")
    ends = scene.a_turn(runs=[a_change(child, RunState.COMPLETED)], facts=[told])
    assert (await scheduler.turn(msgspec.structs.replace(ends, terms={child.shard: scene.terms[child.shard]}))).applied

    # The parent's owner is gone before it has read it: the fact waits, and the new owner reads it when it loads.
    await scheduler.release(ME, dict(scene.terms))
    [taken] = (await scheduler.take(B, [parent.shard], LEASE)).taken
    assert taken.shard in shards
    [loaded] = await scheduler.load([1])
    assert [(fact.kind, fact.ref) for fact in loaded.facts] == [(FactKind.CHILD, child.id)]

    # Told twice it is there once, and an ended parent hears nothing more.
    turn = msgspec.structs.replace(ends, owner=B, terms={parent.shard: taken.term}, runs=[])
    assert (await scheduler.turn(turn)).applied
    [loaded] = await scheduler.load([1])
    assert len(loaded.facts) == 1
    over = msgspec.structs.replace(
        turn, facts=[], facts_done=[loaded.facts[0].id], runs=[a_change(parent, RunState.CANCELLED)]
    )
    assert (await scheduler.turn(over)).applied
    assert (await scheduler.turn(turn)).applied
    look = await scheduler.look([parent.shard], KNOWN, LIMIT)
    assert look.facts == ()
