"""Marks under an old snapshot: dead entries are not read again, and nothing that lies before a mark is missed.

What is read is counted by the server, entry by entry; no test looks at a clock.
"""

from collections.abc import AsyncIterator

import pytest

from tests.store.stage import Stage, a_stage
from tests.store.test_interleavings import done_with
from watchbill.clock import SECOND
from watchbill.model.agent import Act
from watchbill.model.attempt import AttemptRow
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState
from watchbill.store.postgres.marks import COSTLY, RESCAN, UNKNOWN, Jumps, OpenRows, Sight
from watchbill.store.protocol import Look
from watchbill.testing.conformance.scene import AGENT, KNOWN, LIMIT, Scene, a_run, a_verdict

BATCH = 50
BATCHES = 20
DEAD = BATCH * BATCHES
SETTLED_AFTER = 4  # leases, until an agent knows of all jumps, if no transaction is open


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


async def past_the_first(scene: Scene, run: RunRow, count: int) -> AttemptRow:
    """Make rows, and lease some of them until the agent begins behind them; gives the first one, which runs."""
    await make(scene, run, count)
    [first] = await scene.lease(limit=1)
    for _ in range(SETTLED_AFTER):
        assert len(await scene.lease(limit=1)) == 1
    assert scene.store.agent._heads[AGENT].jumps._next is None, "it knows of all jumps"  # type: ignore[attr-defined]
    return first


async def test_a_retry_before_the_mark_is_the_next_one(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    first = await past_the_first(scene, run, 10)
    await scene.report(first, Act.FAILED, b"{}")
    assert await scene.judge(a_verdict(await scene.row(first.id), AttemptState.READY))
    assert [row.id for row in await scene.lease(limit=1)] == [first.id]


async def test_an_attempt_that_is_handed_back_is_the_next_one(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    first = await past_the_first(scene, run, 10)
    await scene.report(first, Act.HAND_BACK)
    assert [row.id for row in await scene.lease(limit=1)] == [first.id]


async def test_a_call_of_a_run_that_goes_on_is_the_next_one(stage: Stage):
    scene = await stage.scene()
    [paused, run] = await scene.submit(a_run(1), a_run(2, "o-2"))
    row = scene.a_row(paused)
    await scene.turn(attempts=[row], holds=[(paused.num, True)])
    await past_the_first(scene, run, 10)
    await scene.turn(holds=[(paused.num, False)])
    assert [row.id for row in await scene.lease(limit=1)] == [row.id]


async def test_urgent_calls_of_another_process_come_before_all_ordinary_ones(stage: Stage):
    scene = await stage.scene()
    elsewhere = await stage.store()
    [run] = await scene.submit(a_run(1))
    await past_the_first(scene, run, 300)
    urgent = []
    for _ in range(5):
        rows = [scene.a_row(run, rank_ahead=60 * SECOND) for _ in range(2)]
        assert (await elsewhere.scheduler.turn(scene.a_turn(attempts=rows))).applied
        urgent += [row.id for row in rows]
        for row in rows:
            assert [leased.id for leased in await scene.lease(limit=1)] == [row.id]
    assert len(urgent) == 10
    [ordinary] = await scene.lease(limit=1)
    assert ordinary.id not in urgent


async def test_a_jump_that_is_committed_late_is_the_next_one(stage: Stage):
    """Its number is seen before its row: the agent must not believe that it has seen the row, too."""
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    first = await past_the_first(scene, run, 30)
    await scene.report(first, Act.FAILED, b"{}")
    late = await stage.pin("UPDATE watchbill.attempt SET state = 0 WHERE id = $1", first.id)
    for _ in range(2 * SETTLED_AFTER):
        assert [row.id for row in await scene.lease(limit=1)] != [first.id]
    await late.commit()
    assert [row.id for row in await scene.lease(limit=1)] == [first.id]


async def test_an_ordinary_call_comes_before_those_of_low_priority(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, call=f"low.{n}", rank_ahead=-60 * SECOND) for n in range(20)])
    for _ in range(SETTLED_AFTER + 1):
        assert len(await scene.lease(limit=1)) == 1
    ordinary = scene.a_row(run)
    await scene.turn(attempts=[ordinary])
    assert [row.id for row in await scene.lease(limit=1)] == [ordinary.id]


async def test_jumps_are_ignored_for_a_while_when_reading_all_takes_long(stage: Stage):
    """While an old snapshot is open, and rows jump all the time, each lease would read all dead entries."""
    jumps = Jumps(stage.clock)
    assert jumps.known == UNKNOWN
    jumps.saw(Sight(jumps=7, transaction=10, oldest=9), COSTLY + 1)
    assert jumps.known == UNKNOWN, "one slow lease is an accident"
    jumps.saw(Sight(jumps=7, transaction=11, oldest=9), COSTLY + 1)
    assert jumps.known is None
    stage.clock.pass_by(RESCAN)
    assert jumps.known == UNKNOWN
    jumps.saw(Sight(jumps=7, transaction=12, oldest=9), COSTLY + 1)
    assert jumps.known is None, "it still takes long"


async def test_jumps_count_on_a_machine_on_which_every_lease_is_slow(stage: Stage):
    jumps = Jumps(stage.clock)
    jumps.saw(Sight(jumps=UNKNOWN, transaction=9, oldest=9), 2 * COSTLY)
    for transaction in range(10, 20):
        jumps.saw(Sight(jumps=1 << 40, transaction=transaction, oldest=0), 4 * COSTLY)
        assert jumps.known == UNKNOWN


def ignore_jumps(scene: Scene) -> None:
    """Let an agent believe that reading all takes long."""
    jumps = scene.store.agent._heads[AGENT].jumps  # type: ignore[attr-defined]
    for _ in range(2):
        jumps.saw(Sight(jumps=1 << 40, transaction=1, oldest=0), 100 * SECOND)


async def test_a_row_before_the_mark_is_leased_when_all_is_read_again(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    first = await past_the_first(scene, run, 10)
    ignore_jumps(scene)
    await scene.report(first, Act.HAND_BACK)
    for _ in range(3):
        [other] = await scene.lease(limit=1)
        assert other.id != first.id
    stage.clock.pass_by(RESCAN)
    assert [row.id for row in await scene.lease(limit=1)] == [first.id]


async def test_a_row_before_the_mark_is_leased_at_once_when_there_is_nothing_else(stage: Stage):
    scene = await stage.scene()
    [run] = await scene.submit(a_run(1))
    first = await past_the_first(scene, run, SETTLED_AFTER + 1)
    ignore_jumps(scene)
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
