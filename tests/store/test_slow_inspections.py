"""Slow inspections and slow loads hold their own connections: hot operations do not wait for them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.store.stage import Stage, a_stage
from watchbill.errors import StoreUnreachableError
from watchbill.model.agent import Act
from watchbill.model.states import RunState
from watchbill.testing.conformance.scene import AGENT, KNOWN, LIMIT, Scene, a_run, an_entry

INSPECTIONS = 4  # more than there are connections for them


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


async def hot_operations(scene: Scene, entry: int) -> None:
    """Do once what must never wait."""
    [run] = await scene.submit(a_run(entry, f"o-{entry}"))
    await scene.turn(journal=[an_entry(entry, 1)], attempts=[scene.a_row(run)])
    await scene.store.scheduler.renew(7, {}, 5_000_000)
    await scene.store.scheduler.look([run.shard], KNOWN, LIMIT)
    await scene.store.agent.beat(AGENT, None, [])
    [row] = await scene.lease(limit=1)
    await scene.report(row, Act.DONE, b"1")


async def blocked(stage: Stage, count: int) -> None:
    """Wait until so many sessions wait for a lock."""
    await stage.becomes(
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'watchbill' AND wait_event_type = 'Lock'"
        f" AND datname = current_database() HAVING count(*) >= {count}"
    )


async def ended(tasks: "list[asyncio.Task[Any]]") -> None:
    for done in await asyncio.gather(*tasks, return_exceptions=True):
        assert done is None or not isinstance(done, BaseException) or isinstance(done, StoreUnreachableError)


async def test_inspections_that_wait_for_a_lock_delay_no_hot_operation(stage: Stage):
    scene = await stage.scene()
    await hot_operations(scene, 1)
    pin = await stage.pin("LOCK TABLE watchbill.logbook IN ACCESS EXCLUSIVE MODE")
    client = scene.store.client
    inspections = [asyncio.ensure_future(client.logbook("default", limit=10)) for _ in range(INSPECTIONS)]
    await blocked(stage, 2)
    for entry in (2, 3, 4):
        await hot_operations(scene, entry)
    assert not any(task.done() for task in inspections), "they were to be slow"
    await pin.release()
    await ended(inspections)


async def test_deletions_that_wait_for_a_lock_delay_no_hot_operation(stage: Stage):
    """They use the connection on which a scheduler also loads runs."""
    scene = await stage.scene()
    run = await scene.run_in(RunState.COMPLETED, 9)
    await hot_operations(scene, 1)
    pin = await stage.pin("LOCK TABLE watchbill.log IN ACCESS EXCLUSIVE MODE")
    deletions = [asyncio.ensure_future(scene.store.scheduler.delete(run.num, 100)) for _ in range(INSPECTIONS)]
    await blocked(stage, 1)
    for entry in (2, 3, 4):
        await hot_operations(scene, entry)
    assert not any(task.done() for task in deletions), "they were to be slow"
    await pin.release()
    await ended(deletions)
    assert await scene.store.scheduler.load([run.num]) == []


async def test_trims_that_wait_for_a_lock_delay_no_hot_operation(stage: Stage):
    scene = await stage.scene()
    await scene.submit(a_run(9, "o-9"))
    await scene.turn(journal=[an_entry(9, 1), an_entry(9, 2)])
    await hot_operations(scene, 1)
    pin = await stage.pin("SELECT 1 FROM watchbill.journal WHERE run = 9 FOR UPDATE")
    trims = [asyncio.ensure_future(scene.store.scheduler.trim([(9, 2)], 100)) for _ in range(INSPECTIONS)]
    await blocked(stage, 1)
    for entry in (2, 3, 4):
        await hot_operations(scene, entry)
    assert not any(task.done() for task in trims), "they were to be slow"
    await pin.release()
    await ended(trims)


async def test_searches_for_ended_parts_that_wait_for_a_lock_delay_no_hot_operation(stage: Stage):
    scene = await stage.scene()
    await hot_operations(scene, 1)
    pool = scene.store._lines.loads  # type: ignore[attr-defined]
    async with pool.line():
        search = asyncio.ensure_future(scene.store.scheduler.ended_parts("default", 0, (0, 0, 0), 10))
        for entry in (2, 3, 4):
            await hot_operations(scene, entry)
        assert not search.done(), "it waits for the connection of loads"
    assert (await search).parts == ()
