"""Procrastinate on the same no-op work: chains of ten jobs, each of which defers the next, as its documents do it."""

import asyncio
import os
import time

import procrastinate

from benchmarks.sizes import STEPS

FULL_CHAINS = 500
QUICK_CHAINS = 50
CONCURRENCY = 30  # its default, 1, is slower, and so is more
CONNECTIONS = 10


async def house(chains: int) -> dict[str, float]:
    connector = procrastinate.PsycopgConnector(conninfo=os.environ["WATCHBILL_STORE"], max_size=CONNECTIONS)
    app = procrastinate.App(connector=connector)
    results: dict[int, int] = {}
    over = asyncio.Event()

    @app.task(name="add_one")
    async def add_one(chain: int, number: int) -> None:
        number += 1
        if number < chain + STEPS:
            await add_one.defer_async(chain=chain, number=number)
        else:
            results[chain] = number
            if len(results) == chains:
                over.set()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        await add_one.batch_defer_async(*({"chain": chain, "number": chain} for chain in range(chains)))
        running = asyncio.create_task(app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False))
        await asyncio.wait({running, asyncio.create_task(over.wait())}, return_when=asyncio.FIRST_COMPLETED)
        took = time.perf_counter() - began
        running.cancel()
        await asyncio.wait({running})
    if results != {chain: chain + STEPS for chain in range(chains)}:
        raise RuntimeError("Procrastinate gave a wrong result: this figure would mean nothing")
    return {"steps_per_s": chains * STEPS / took}


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(QUICK_CHAINS if quick else FULL_CHAINS))
