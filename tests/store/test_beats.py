"""Beats on PostgreSQL: who has nothing new to say of its attempts writes nothing to them, and locks them in order."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.store.stage import Stage, a_stage
from watchbill.model.agent import Act, Answer, ProgressMark, Report
from watchbill.model.attempt import AttemptRow
from watchbill.testing.conformance.scene import AGENT, Scene, a_run


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


async def running(scene: Scene, count: int) -> list[AttemptRow]:
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, call=f"charge.{n}") for n in range(count)])
    return await scene.lease(lease_no=1)


async def versions(stage: Stage) -> list[str]:
    return [str(version) for (version,) in await stage.sql("SELECT xmin::text FROM watchbill.attempt ORDER BY id")]


async def test_a_beat_without_news_writes_to_no_attempt(stage: Stage):
    scene = await stage.scene()
    rows = await running(scene, 3)
    held = [(row.id, row.fence) for row in rows]
    beat = scene.store.agent.beat
    await beat(AGENT, None, [], held, starved=held[:1])
    before = await versions(stage)
    await beat(AGENT, None, [], held, starved=held[:1], queues=[scene.queue], lease_no=2)
    assert await versions(stage) == before
    await beat(AGENT, None, [], held)
    after = await versions(stage)
    assert (after[0] != before[0], after[1:] == before[1:]) == (True, True)


async def test_a_beat_locks_all_it_changes_in_the_order_of_ids(stage: Stage):
    """It says something of b, and a starves no longer; a report says something of a and b: one waits for the other."""
    scene, other = await stage.scene(), await stage.store()
    a, b, c = await running(scene, 3)
    await scene.store.agent.beat(AGENT, None, [], starved=[(a.id, a.fence)])

    pin = await stage.pin("SELECT id FROM watchbill.attempt WHERE id = $1 FOR UPDATE", c.id)
    marks = [ProgressMark(row.id, row.fence, b"{}", increased=True) for row in (c, b)]
    beat = stage.begin(scene.store.agent.beat(AGENT, None, marks))
    await stage.waits(beat)
    report = stage.begin(other.agent.report(AGENT, [Report(row.id, row.fence, Act.DONE, b"1") for row in (b, a)]))
    await stage.waits(report)
    await pin.release()
    orders, answers = await asyncio.gather(stage.ended(beat), stage.ended(report))
    assert (orders.alive, answers) == (True, [Answer.ACCEPTED] * 2)
