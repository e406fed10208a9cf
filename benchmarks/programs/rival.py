"""DBOS, as it comes, on the same no-op work: fewer runs (it is slow), all of them in flight."""

import asyncio
import os
import time

from dbos import DBOS

from benchmarks.sizes import STEPS

FULL_RUNS = 100
QUICK_RUNS = 20


@DBOS.step()
async def add_one(number: int) -> int:
    return number + 1


@DBOS.workflow()
async def count(number: int) -> int:
    for _ in range(STEPS):
        number = await add_one(number)
    return number


async def one(number: int) -> int:
    handle = await DBOS.start_workflow_async(count, number)
    return await handle.get_result()


async def house(runs: int) -> dict[str, float]:
    store = os.environ["WATCHBILL_STORE"]
    DBOS(config={"name": "rival", "system_database_url": store, "log_level": "ERROR"})
    DBOS.launch()
    began = time.perf_counter()
    results = await asyncio.gather(*(one(number) for number in range(runs)))
    took = time.perf_counter() - began
    DBOS.destroy()
    if results != [number + STEPS for number in range(runs)]:
        raise RuntimeError("DBOS gave a wrong result: this figure would mean nothing")
    return {"steps_per_s": runs * STEPS / took}


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(QUICK_RUNS if quick else FULL_RUNS))
