"""One run that calls 2,000 steps: all at once by gather, and fifty at once by spread."""

import asyncio
import time

from watchbill import App, spread
from watchbill.flow.workflows import Workflow

WIDTH = 2_000

app = App()


@app.step
async def add_one(number: int) -> int:
    return number + 1


@app.workflow
async def fan_out(width: int) -> int:
    return sum(await asyncio.gather(*(add_one(number) for number in range(width))))


@app.workflow
async def spread_out(width: int) -> int:
    return sum(await spread(add_one, range(width)))


def measure(quick: bool) -> dict[str, float]:  # short enough to have no quick form
    async def house() -> dict[str, float]:
        async with app.rooms():
            await (await app.start(fan_out, 1)).result()  # the first run also scans the workflow's code
            await (await app.start(spread_out, 1)).result()
            return {"seconds": await seconds(fan_out), "spread_seconds": await seconds(spread_out)}

    return asyncio.run(house())


async def seconds(workflow: Workflow[[int], int]) -> float:
    began = time.perf_counter()
    handle = await app.start(workflow, WIDTH)
    total = await handle.result()
    took = time.perf_counter() - began
    if total != WIDTH * (WIDTH + 1) // 2:
        raise RuntimeError("a result was lost: this figure would mean nothing")
    return took
