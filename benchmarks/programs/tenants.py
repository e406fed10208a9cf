"""Two namespaces on one store: what 100,000 queued calls of one add to a single call of the other.

On PostgreSQL the flooded namespace has a process of its own: a scheduler, an agent and a supervisor that work on the
queue. A SQLite file serves one namespace at a time, so the flood lies in the file while its owner serves the other one.
"""

import asyncio
import contextlib
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.server import the_server
from watchbill import App

QUEUED = 100_000
QUICK_QUEUED = 5_000
AT_ONCE = 1_000  # runs per commit
SAMPLES = 100
QUICK_SAMPLES = 20
FLOODED = 0.9  # of the calls wait in the queue: the agent of the flooded namespace works on them
PATIENCE = 200  # seconds

crowd = App(namespace="crowd")
single = App(namespace="single")


@crowd.step(needs="bulk")
async def grind(n: int) -> int:
    await asyncio.sleep(0.5)
    return n


@crowd.workflow
async def flood(n: int) -> int:
    return await grind(n)


@single.step
async def step(n: int) -> int:
    return n


@single.step(needs="mail")
async def leased_step(n: int) -> int:
    return n


@single.workflow
async def one_call(n: int) -> int:
    return await step(n)


@single.workflow
async def one_leased_call(n: int) -> int:
    return await leased_step(n)


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(QUICK_QUEUED if quick else QUEUED, QUICK_SAMPLES if quick else SAMPLES))


async def house(queued: int, samples: int) -> dict[str, float]:
    if on_a_file():
        async with crowd.rooms():
            await submit(queued)
            await until_queued(queued)
        async with single.rooms(needs="mail"):
            return await timed(samples)
    async with single.rooms(needs="mail"):
        alone = await timed(samples)
        with beside(str(queued)), beside():
            await until_queued(int(queued * FLOODED))
            crowded = await timed(samples)
    return {f"alone_{name}": value for name, value in alone.items()} | crowded


async def timed(samples: int) -> dict[str, float]:
    """Start one run after the other, each by itself."""
    figures = {}
    for name, workflow in (("call", one_call), ("leased", one_leased_call)):
        took = []
        for n in range(samples):
            began = time.perf_counter()
            await (await single.start(workflow, n)).result()
            took.append(time.perf_counter() - began)
        figures |= {f"{name}_p50_s": statistics.median(took), f"{name}_max_s": max(took)}
    return figures


def on_a_file() -> bool:
    return os.environ["WATCHBILL_STORE"].startswith("sqlite:")


@contextmanager
def beside(*arguments: str) -> Iterator[None]:
    """Have a process beside this one that serves the flooded namespace, or is an agent of it."""
    command = [sys.executable, "-m", "benchmarks.programs.tenants", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.kill()


async def until_queued(count: int) -> None:
    """Wait until so many calls of the flooded namespace are in its queue."""
    async with asyncio.timeout(PATIENCE):
        while ready() < count:
            await asyncio.sleep(0.5)


def ready() -> int:
    sql = "SELECT count(*) FROM watchbill.attempt WHERE state = 0"
    if not on_a_file():
        return int(the_server().sql(sql))
    file = os.environ["WATCHBILL_STORE"].removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return int(connection.execute(sql.replace("watchbill.", "")).fetchone()[0])


async def submit(queued: int) -> None:
    for first in range(0, queued, AT_ONCE):
        await crowd.start_many([(flood, (n,)) for n in range(first, min(first + AT_ONCE, queued))])


async def serve_the_crowd(queued: int) -> None:
    """Serve the flooded namespace until the parent process ends it."""
    async with crowd.rooms(agent=False):
        await submit(queued)
        await asyncio.to_thread(sys.stdin.read)


async def work_for_the_crowd() -> None:
    """Execute calls of the flooded namespace until the parent process ends it."""
    async with crowd.rooms(scheduler=False, supervisor=False, slots=20, needs="bulk"):
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve_the_crowd(int(sys.argv[1])) if sys.argv[1:] else work_for_the_crowd())
