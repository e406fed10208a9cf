"""Requests in: how many runs a second are accepted, each acknowledged after its commit; nobody executes them meanwhile.

By a thousand callers at once who start one run after the other, and by one who starts a thousand in one commit.
"""

import asyncio
import time
from collections.abc import Iterator

from benchmarks.sizes import FULL, IN_FLIGHT, QUICK
from watchbill import App

app = App()


@app.workflow
async def nothing(number: int) -> int:
    return number


def measure(quick: bool) -> dict[str, float]:
    runs = (QUICK if quick else FULL).steps  # as many as the other programs have steps
    return asyncio.run(house(runs))


async def house(runs: int) -> dict[str, float]:
    await app.start(nothing, 0)  # opens the store
    began = time.perf_counter()
    numbers = iter(range(runs))
    await asyncio.gather(*(caller(numbers) for _ in range(IN_FLIGHT)))
    singly = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(runs // IN_FLIGHT):
        await app.start_many([(nothing, (number,)) for number in range(IN_FLIGHT)])
    many = time.perf_counter() - began
    await app.close()
    return {"runs_per_s": runs / singly, "many_runs_per_s": runs / many}


async def caller(numbers: Iterator[int]) -> None:
    for number in numbers:
        await app.start(nothing, number)
