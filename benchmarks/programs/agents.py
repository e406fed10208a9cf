"""No-op steps in the workers of an agent: ordinary workflows of ten steps."""

import asyncio

from benchmarks.hosts import drive_through_agent
from benchmarks.sizes import FULL, QUICK, STEPS
from watchbill import App

app = App()


@app.step
async def add_one(number: int) -> int:
    return number + 1


@app.workflow
async def count(number: int) -> int:
    for _ in range(STEPS):
        number = await add_one(number)
    return number


def measure(quick: bool) -> dict[str, float]:
    load = QUICK if quick else FULL
    return asyncio.run(drive_through_agent(app, f"{__name__}:app", count, load, QUICK, STEPS))
