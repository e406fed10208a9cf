"""PgQueuer on the same no-op work: chains of ten jobs, each of which enqueues the next one, as its documents do it."""

import asyncio
import json
import os
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.sizes import STEPS

FULL_CHAINS = 1_000
QUICK_CHAINS = 100
BATCH_SIZE = 100  # its default, 10, is slower, and so is more
CONNECTIONS = 10


async def house(chains: int) -> dict[str, float]:
    async with asyncpg.create_pool(os.environ["WATCHBILL_STORE"], max_size=CONNECTIONS) as pool:
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await queries.install()
        worker = PgQueuer(driver)
        results: dict[int, int] = {}
        over = asyncio.Event()

        @worker.entrypoint("add_one")
        async def add_one(job: Job) -> None:
            chain, number = json.loads(job.payload or b"")
            number += 1
            if number < chain + STEPS:
                await queries.enqueue("add_one", json.dumps([chain, number]).encode())
            else:
                results[chain] = number
                if len(results) == chains:
                    over.set()

        began = time.perf_counter()
        await queries.enqueue(
            ["add_one"] * chains, [json.dumps([chain, chain]).encode() for chain in range(chains)], [0] * chains
        )
        running = asyncio.create_task(worker.run(batch_size=BATCH_SIZE))
        await asyncio.wait({running, asyncio.create_task(over.wait())}, return_when=asyncio.FIRST_COMPLETED)
        took = time.perf_counter() - began
        worker.shutdown.set()
        await running
    if results != {chain: chain + STEPS for chain in range(chains)}:
        raise RuntimeError("PgQueuer gave a wrong result: this figure would mean nothing")
    return {"steps_per_s": chains * STEPS / took}


def measure(quick: bool) -> dict[str, float]:
    return uvloop.run(house(QUICK_CHAINS if quick else FULL_CHAINS))  # as its own command does
