"""Large bodies: beside the row, in the same transaction, unseen by callers, and gone with the reference to them."""

import pytest

from tests.store.postgres import by_hand
from watchbill.errors import DuplicateRun
from watchbill.model.agent import Act, Answer
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import INLINE_LIMIT
from watchbill.testing.conformance.scene import a_change, a_run, a_verdict, an_entry

LARGE = b'"' + b"x" * 300_000 + b'"'
OTHER_LARGE = b'"' + b"y" * 300_000 + b'"'


@pytest.fixture
def blobs(scene, url):
    """Count what is kept beside the rows."""

    async def count() -> int:
        if url.startswith("postgresql"):
            [(found,)] = await by_hand(url, "SELECT count(*) FROM watchbill.blob")
            return found
        return await scene.store._lanes.read(
            lambda db: db._connection.execute("SELECT count(*) FROM blob").fetchone()[0]
        )

    return count


@pytest.mark.parametrize(
    "body", [LARGE, b"\x00", b"\x001", b"", b"x" * INLINE_LIMIT, b"x" * (INLINE_LIMIT + 1)], ids=lambda body: len(body)
)
async def test_every_body_comes_back_as_it_was(scene, body):
    [run] = await scene.submit(a_run(1, input=body))
    assert run.input == body
    row = scene.a_row(run, args=body)
    await scene.turn(journal=[an_entry(1, 1, body=body), an_entry(1, 2)], attempts=[row])
    [leased] = await scene.lease()
    assert leased.args == body
    assert await scene.report(leased, Act.CHECKPOINT, body) is Answer.ACCEPTED
    assert await scene.report(leased, Act.DONE, body) is Answer.ACCEPTED
    record = await scene.store.client.record("default", "o-1")
    assert record.run.input == (await scene.run_row("o-1")).input == body
    assert [entry.body for entry in record.journal] == [body, b"1"]
    [final] = (await scene.store.scheduler.look([run.shard], (), 9)).finals
    assert (final.args, final.result, final.checkpoint) == (body, body, body)
    [loaded] = await scene.store.scheduler.load([1])
    assert (loaded.run.input, loaded.journal[0].body, loaded.attempts[0].result) == (body, body, body)


async def test_each_run_has_its_own(scene):
    one, two = await scene.submit(a_run(1, input=LARGE), a_run(2, input=OTHER_LARGE))
    assert ((await scene.run_row(one.id)).input, (await scene.run_row(two.id)).input) == (LARGE, OTHER_LARGE)


async def test_a_large_end_reaches_whoever_waits_for_it(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(journal=[an_entry(1, 1, body=LARGE)], runs=[a_change(run, RunState.COMPLETED)])
    assert (await scene.store.client.endings([1]))[0].body == LARGE


async def test_a_large_failure_can_be_inserted_and_judged(scene):
    [run] = await scene.submit(a_run(1))
    row = scene.a_row(run, AttemptState.FAILED, result=LARGE)
    await scene.turn(attempts=[row])
    running = await scene.row_in(AttemptState.RUNNING, run)
    assert await scene.judge(a_verdict(running, AttemptState.FAILED, result=OTHER_LARGE))
    assert ((await scene.row(row.id)).result, (await scene.row(running.id)).result) == (LARGE, OTHER_LARGE)


async def test_a_large_input_is_compared_whole(scene):
    await scene.submit(a_run(1, "o", input=LARGE))
    [equal] = await scene.store.client.submit([a_run(2, "o", input=LARGE)])
    assert (equal.new, equal.run.input) == (False, LARGE)
    with pytest.raises(DuplicateRun, match="with other arguments"):
        await scene.submit(a_run(3, "o", input=OTHER_LARGE))


async def test_repeating_a_door_keeps_nothing_twice(scene, blobs):
    await scene.submit(a_run(1, input=LARGE))
    [run] = await scene.submit(a_run(1, input=LARGE))
    assert await blobs() == 1
    turn = scene.a_turn(journal=[an_entry(1, 1, body=LARGE)], attempts=[scene.a_row(run, args=LARGE)])
    for _ in range(2):
        await scene.store.scheduler.turn(turn, again=True)
    assert await blobs() == 3
    [row] = await scene.lease()
    for _ in range(3):
        await scene.report(row, Act.CHECKPOINT, LARGE)
    assert await blobs() == 4
    for _ in range(2):
        await scene.report(row, Act.DONE, LARGE)
    assert await blobs() == 5


async def test_blobs_go_with_their_row(scene, blobs):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, args=LARGE), scene.a_row(run, args=LARGE)])
    done, failed = await scene.lease()
    for row, act in ((done, Act.DONE), (failed, Act.FAILED)):
        await scene.report(row, Act.CHECKPOINT, LARGE)
        await scene.report(row, act, LARGE)
    assert await blobs() == 6
    await scene.turn(finals_done=[done.id])
    assert await blobs() == 3
    await scene.judge(a_verdict(await scene.row(failed.id), AttemptState.READY))
    [again] = await scene.lease()
    assert again.checkpoint == LARGE
    assert await blobs() == 2, "the failure of the attempt before is gone"


async def test_what_is_refused_leaves_no_blob(scene, blobs):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.DONE, run)
    assert await scene.report(row, Act.FAILED, LARGE) is Answer.LATE
    assert not await scene.judge(a_verdict(row, AttemptState.FAILED, result=LARGE))
    with pytest.raises(ValueError, match="turn refused"):
        await scene.turn(journal=[an_entry(1, 1, body=LARGE)], runs=[a_change(404, RunState.RUNNING)])
    stale = scene.a_turn(journal=[an_entry(1, 1, body=LARGE)], terms={run.shard: 0})
    assert not (await scene.store.scheduler.turn(stale)).applied
    assert await blobs() == 0
