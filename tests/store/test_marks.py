"""Marks under an old snapshot: dead entries are not read again, and nothing that lies before a mark is missed.

What is read is counted by the server, entry by entry; no test looks at a clock.
"""

from collections.abc import AsyncIterator

import pytest

from tests.store.stage import Stage, a_stage
from tests.store.test_interleavings import done_with
from watchbill.model.agent import Act
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState
from watchbill.store.postgres.marks import RESCAN, OpenRows
from watchbill.store.protocol import Look
from watchbill.testing.conformance.scene import AGENT, KNOWN, LIMIT, Scene, a_run, a_verdict

BATCH = 50
BATCHES = 20
DEAD = BATCH * BATCHES


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


async def make(scene: Scene, run: RunRow, count: int) -> None:
    await scene.turn(attempts=[scene.a_row(run, call=f"charge.{n}") for n in range(count)])


async def look(scene: Scene, run: RunRow) -> Look:
    return await scene.store.scheduler.look([run.shard], KNOWN, LIMIT)


# --- leases


async def test_a_lease_does_not_read_again_what_was_leased(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    await stage.old_snapshot()
    await make(scene, run, DEAD + 2 * BATCH)
    for _ in range(BATCHES):
        assert len(await scene.lease(limit=BATCH)) == BATCH

    before = await stage.entries_read(scene.store, "attempt_ready")
    assert len(await scene.lease(limit=BATCH)) == BATCH
    read = await stage.entries_read(scene.store, "attempt_ready") - before
    assert read <= BATCH + 2 * BATCH, "the last batch, which is dead, and twice as many candidates as asked for"

    # The same lease without a mark.
    forget_heads(scene)
    before = await stage.entries_read(scene.store, "attempt_ready")
    assert len(await scene.lease(limit=BATCH)) == BATCH
    assert await stage.entries_read(scene.store, "attempt_ready") - before > DEAD


def forget_heads(scene: Scene) -> None:
    scene.store.agent._heads.clear()  # type: ignore[attr-defined]


async def test_a_row_before_the_mark_is_leased_when_all_is_read_again(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    await make(scene, run, 10)
    [first, *_] = await scene.lease(limit=2)
    [_] = await scene.lease(limit=1)

    # It is tried again, and keeps its rank, which lies before the mark.
    await scene.report(first, Act.FAILED, b"{}")
    assert await scene.judge(a_verdict(await scene.row(first.id), AttemptState.READY))
    for _ in range(3):
        [other] = await scene.lease(limit=1)
        assert other.id != first.id
    stage.clock.pass_by(RESCAN)
    assert [row.id for row in await scene.lease(limit=1)] == [first.id]


async def test_a_row_before_the_mark_is_leased_at_once_when_there_is_nothing_else(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    await make(scene, run, 3)
    [first, _] = await scene.lease(limit=2)
    [_] = await scene.lease(limit=1)
    await scene.report(first, Act.HAND_BACK)
    assert [row.id for row in await scene.lease(limit=1)] == [first.id]


async def test_those_who_need_a_process_of_their_own_have_marks_of_their_own(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    lonely = [scene.a_row(run, alone=True) for _ in range(2)]
    await scene.turn(attempts=lonely)
    await make(scene, run, 4)
    assert len(await scene.lease(limit=2, alone=0)) == 2
    assert len(await scene.lease(limit=1, alone=0)) == 1
    assert [row.id for row in await scene.lease(limit=1, alone=1)] == [lonely[0].id]
    assert [row.id for row in await scene.lease(limit=1, alone=1)] == [lonely[1].id]


# --- looks


async def test_a_look_does_not_read_again_what_was_consumed(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    await stage.old_snapshot()
    await make(scene, run, DEAD + BATCH)
    for _ in range(BATCHES):
        rows = await scene.lease(limit=BATCH)
        await scene.store.agent.report(AGENT, [done_with(row) for row in rows])
        found = await look(scene, run)
        assert [row.id for row in found.finals] == sorted(row.id for row in rows)
        await scene.turn(finals_done=[row.id for row in rows])

    rows = await scene.lease(limit=BATCH)
    await scene.store.agent.report(AGENT, [done_with(row) for row in rows])
    before = await stage.entries_read(scene.store, "attempt_final")
    assert len((await look(scene, run)).finals) == BATCH
    assert await stage.entries_read(scene.store, "attempt_final") - before == BATCH

    # The same look by somebody who knows of no row.
    forget_open_rows(stage, scene)
    before = await stage.entries_read(scene.store, "attempt_final")
    assert len((await look(scene, run)).finals) == BATCH
    assert await stage.entries_read(scene.store, "attempt_final") - before == DEAD + BATCH


def forget_open_rows(stage: Stage, scene: Scene) -> None:
    scene.store.scheduler._open = OpenRows(stage.clock)  # type: ignore[attr-defined]


async def test_the_slowest_step_is_not_missed_behind_quicker_ones(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    await make(scene, run, 10)
    [slow, *quick, last] = await scene.lease()
    for row in quick:
        await scene.report(row, Act.DONE, b"1")
        assert [final.id for final in (await look(scene, run)).finals] == [row.id]
        await scene.turn(finals_done=[row.id])
    await scene.report(last, Act.DONE, b"1")
    await scene.report(slow, Act.DONE, b"1")
    assert [final.id for final in (await look(scene, run)).finals] == [slow.id, last.id]


async def test_a_final_row_that_nobody_here_made_is_found(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    strange = scene.a_row(run)
    await scene.turn(attempts=[strange])
    forget_open_rows(stage, scene)  # as if another process had made it
    await make(scene, run, 4)
    [first, *mine] = await scene.lease()
    assert first.id == strange.id
    await scene.report(mine[0], Act.DONE, b"1")
    assert len((await look(scene, run)).finals) == 1

    # While others are found, it waits until all is read again.
    await scene.report(first, Act.DONE, b"1")
    assert [row.id for row in (await look(scene, run)).finals] == [mine[0].id]
    stage.clock.pass_by(RESCAN)
    assert [row.id for row in (await look(scene, run)).finals] == [strange.id, mine[0].id]

    # When there are none, it is found at once.
    await scene.turn(finals_done=[mine[0].id])
    assert [row.id for row in (await look(scene, run)).finals] == [strange.id]


async def test_a_row_that_was_asked_to_stop_is_found_when_it_has(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    await make(scene, run, 2)
    stopping, _ = await scene.lease()
    await scene.turn(dropped=[stopping.id])
    await scene.report(stopping, Act.DONE, b"1")
    assert [row.id for row in (await look(scene, run)).finals] == [stopping.id]


async def test_rows_loaded_at_a_takeover_are_known(stage: Stage):
    scene, other = await stage.scene(), await stage.store()
    [run] = await scene.submit(a_run(1))
    await make(scene, run, 5)
    leased = await scene.lease()
    taken = (await other.scheduler.take(9, [run.shard], None, expired=True)).taken
    assert taken == (), "it is held for ever"
    await scene.store.scheduler.release(7, scene.terms)
    [lease] = (await other.scheduler.take(9, [run.shard], None)).taken
    await other.scheduler.load([1])
    assert other.scheduler._open._lowest(run.shard) == leased[0].id
    assert lease.term > scene.terms[run.shard]
