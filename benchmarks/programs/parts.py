"""A run of a thousand parts (`continue_as`): what its wake-up reads and takes, and whether making parts gets slower."""

import asyncio
import os
import time
import tracemalloc

from watchbill import App, continue_as, receive
from watchbill.env import SystemEnv
from watchbill.store.open import open_store

PARTS = 1_000
QUICK_PARTS = 50
STEPS = 10
BODY = "x" * 10_000  # the result of each step

app = App()


@app.step
async def work() -> str:
    return BODY


@app.workflow
async def endless(left: int) -> int:
    for _ in range(STEPS):
        await work()
    if left:
        await continue_as(endless, left - 1)
    return await receive("go", int)


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(measured(QUICK_PARTS if quick else PARTS))


async def measured(parts: int) -> dict[str, float]:
    made: list[float] = []
    stop = app.events.subscribe(
        lambda events: made.extend(time.perf_counter() for e in events if e.kind == "run.continued")
    )
    async with app.rooms():
        handle = await app.start(endless, parts - 1, id="endless")
        while (await handle.status()).state != "waiting":
            await asyncio.sleep(0.1)
    stop()
    await app.close()
    tenth = len(made) // 10
    first, last = made[tenth] - made[0], made[-1] - made[-1 - tenth]
    return {"later_by_earlier": last / first, "made_s": made[-1] - made[0]} | await loaded()


async def loaded() -> dict[str, float]:
    """Read the run as a scheduler does that wakes it."""
    store = await open_store(os.environ["WATCHBILL_STORE"], SystemEnv())
    found = await store.client.find("default", "endless")
    assert found is not None
    await store.scheduler.load([found.num])  # plans are made, pages are read
    began = time.perf_counter()
    [run] = await store.scheduler.load([found.num])
    took = time.perf_counter() - began
    tracemalloc.start()
    await store.scheduler.load([found.num])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await store.close()
    return {"load_s": took, "load_bytes": peak, "entries": len(run.journal)}
