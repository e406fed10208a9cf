"""An idle house: how long from `start` to `result` of a run with one no-op step."""

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
async def once(number: int) -> int:
    return await add_one(number)


def measure(quick: bool) -> dict[str, float]:
    async def house() -> list[float]:
        async with app.rooms():
            await one(0)  # the first run also scans the workflow's code
            return [await one(number) for number in range(RUNS // 4 if quick else RUNS)]

    took = asyncio.run(house())
    return {"p50_s": statistics.median(took), "p99_s": statistics.quantiles(took, n=100)[98]}


async def one(number: int) -> float:
    await asyncio.sleep(PAUSE)
    began = time.perf_counter()
    handle = await app.start(once, number)
    await handle.result()
    return time.perf_counter() - began
