"""One run that calls 2,000 steps at once."""

import asyncio
import time

from watchbill import App

WIDTH = 2_000

app = App()


@app.step
async def add_one(number: int) -> int:
    return number + 1


@app.workflow
async def fan_out(width: int) -> int:
    return sum(await asyncio.gather(*(add_one(number) for number in range(width))))


def measure(quick: bool) -> dict[str, float]:  # short enough to have no quick form
    async def house() -> float:
        async with app.rooms():
            await (await app.start(fan_out, 1)).result()  # the first run also scans the workflow's code
            began = time.perf_counter()
            handle = await app.start(fan_out, WIDTH)
            total = await handle.result()
            took = time.perf_counter() - began
            if total != WIDTH * (WIDTH + 1) // 2:
                raise RuntimeError("the gather lost a result: this figure would mean nothing")
            return took

    return {"seconds": asyncio.run(house())}
