"""No call begins before all that it waits for is committed: read from the histories of many runs."""

import asyncio
import os

from tests.rooms.report import Report
from watchbill import App

RUNS = int(os.environ.get("WATCHBILL_MANY_RUNS", "1000"))  # on each store; 10,000 in `make soak`
AT_ONCE = 500
EDGES = (("work", "left"), ("work", "right"), ("left", "bottom"), ("right", "bottom"))


async def test_no_step_starts_before_its_parents_are_committed(kept: str) -> None:
    app = App(kept)

    @app.step
    async def work(n: int) -> int:
        return n + 1

    @app.workflow
    async def diamond(n: int) -> int:
        top = await work(n)
        left, right = await asyncio.gather(work.options(key="left")(top), work.options(key="right")(top))
        return await work.options(key="bottom")(left + right)

    async with app.rooms():
        for _ in range(RUNS // AT_ONCE):
            handles = await app.start_many([(diamond, (n,)) for n in range(AT_ONCE)])
            async with asyncio.timeout(60):
                await asyncio.gather(*(handle.result() for handle in handles))
    times = {
        (row["workflow_id"], row["id"]): (row["created_at"], row["updated_at"])
        for row in await Report(kept).rows("SELECT workflow_id, id, created_at, updated_at FROM steps")
    }
    assert len(times) == 4 * RUNS
    for run in {run for run, _ in times}:
        for before, after in EDGES:
            committed, started = times[run, before][1], times[run, after][0]
            assert committed <= started, (run, before, after)
