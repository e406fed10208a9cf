"""What idle processes ask of PostgreSQL, all of their rooms together."""

from collections.abc import AsyncIterator

import pytest

from tests.rooms.crowded import MINUTE
from tests.rooms.idle import a_process, asked_in_a_minute
from tests.store.stage import Stage, a_stage
from watchbill.app.host import Employment
from watchbill.clock import SECOND
from watchbill.model.watcher import Supervision

MOST = 5 * MINUTE // SECOND  # statements in a minute, however a process is made up


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


@pytest.mark.parametrize("way", Supervision)
async def test_two_idle_processes_with_all_rooms_ask_five_statements_a_second_each_at_most(stage, way):
    processes = [await a_process(stage), await a_process(stage)]
    for process in processes:
        await process.opens_house(way, all_rooms=True)
    for asked in await asked_in_a_minute(*processes):
        assert MINUTE // SECOND < asked.total() <= MOST, asked


@pytest.mark.parametrize("way", Supervision)
async def test_an_idle_supervisor_alone_asks_three_statements_a_second_at_most(stage, way):
    process = await a_process(stage)
    await process.opens_house(way, all_rooms=False)
    [asked] = await asked_in_a_minute(process)
    assert MINUTE // SECOND <= asked.total() <= 3 * MINUTE // SECOND, asked


async def test_an_idle_host_beats_and_asks_nothing_else(stage):
    process = await a_process(stage)
    await process.opens_host()
    [asked] = await asked_in_a_minute(process)
    assert asked.total() == MINUTE // Employment().beat, asked
