"""An idle house: how long from `start` to `result` of a run with one no-op step, and of one with five."""

import asyncio
import statistics
import time

from watchbill import App

RUNS = 200
PAUSE = 0.01  # long enough for every loop of the house to fall asleep again

app = App()


@app.step
async def add_one(number: int) -> int:
    return number + 1


@app.workflow
async def count(steps: int) -> int:
    number = 0
    for _ in range(steps):
        number = await add_one(number)
    return number


def measure(quick: bool) -> dict[str, float]:
    async def house() -> tuple[list[float], list[float]]:
        async with app.rooms():
            await one(1)  # the first run also scans the workflow's code
            runs = range(RUNS // 4 if quick else RUNS)
            return [await one(1) for _ in runs], [await one(5) for _ in runs]

    once, five = asyncio.run(house())
    return {
        "p50_s": statistics.median(once),
        "p99_s": statistics.quantiles(once, n=100)[98],
        "five_p50_s": statistics.median(five),
    }


async def one(steps: int) -> float:
    await asyncio.sleep(PAUSE)
    began = time.perf_counter()
    handle = await app.start(count, steps)
    await handle.result()
    return time.perf_counter() - began
