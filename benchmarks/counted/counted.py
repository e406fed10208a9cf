"""The work that `benchmarks.instructions` counts: `python counted.py LOAD RUNS`, with any version of watchbill."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator

from watchbill import App

STEPS = 10
IN_FLIGHT = 500

app = App()


@app.step
async def add_one(number: int) -> int:
    return number + 1


@app.workflow
async def count(number: int) -> int:
    for _ in range(STEPS):
        number = await add_one(number)
    return number


@app.workflow
async def nothing(number: int) -> int:
    return number


async def noop(runs: int) -> None:
    """Run workflows of ten no-op steps; all components are in this process."""
    async with app.rooms():
        await spread(runs, counted)


async def agents(runs: int) -> None:
    """Run the same workflows; their steps run under an agent in another process."""
    async with app.rooms(agent=False):
        await spread(runs, counted)


async def submit(runs: int) -> None:
    """Start runs that nobody executes, each by a call of its own."""
    await app.start(nothing, 0)  # opens the store
    await spread(runs, started)
    await app.close()


async def many(runs: int) -> None:
    """Start runs that nobody executes, a thousand with each call."""
    await app.start(nothing, 0)  # opens the store
    for _ in range(runs // 1_000):
        await app.start_many([(nothing, (number,)) for number in range(1_000)])
    await app.close()


async def counted(number: int) -> None:
    handle = await app.start(count, number)
    if await handle.result() != number + STEPS:
        raise RuntimeError(f"run {number} gave a wrong result: the count would mean nothing")


async def started(number: int) -> None:
    await app.start(nothing, number)


async def spread(runs: int, each: Callable[[int], Awaitable[None]]) -> None:
    """Call `each` for every number, 500 calls at once."""
    numbers = iter(range(runs))
    await asyncio.gather(*(lane(numbers, each) for _ in range(min(IN_FLIGHT, runs))))


async def lane(numbers: Iterator[int], each: Callable[[int], Awaitable[None]]) -> None:
    for number in numbers:  # shared by all lanes: each number is taken once
        await each(number)


LOADS = {"noop": noop, "submit": submit, "many": many, "agents": agents}

if __name__ == "__main__":
    asyncio.run(LOADS[sys.argv[1]](int(sys.argv[2])))
