"""No-op steps in the workers of an agent: one step per run, so that the runs themselves are most of the work."""

import asyncio

from benchmarks.hosts import drive_through_agent
from benchmarks.sizes import Load
from watchbill import App

FULL = Load(runs=50_000, steps_each=1)
QUICK = Load(runs=5_000, steps_each=1)

app = App()


@app.step
async def add_one(number: int) -> int:
    return number + 1


@app.workflow
async def once(number: int) -> int:
    return await add_one(number)


def measure(quick: bool) -> dict[str, float]:
    load = QUICK if quick else FULL
    return asyncio.run(drive_through_agent(app, f"{__name__}:app", once, load, QUICK, 1))
