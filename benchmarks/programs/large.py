"""Large results in one gather, with small runs beside it: how long those take, and how much memory that needs.

Each branch of the gather looks at its result and lets it go: what a workflow keeps of its results is its own memory.
"""

import asyncio
import time
from dataclasses import dataclass

from benchmarks.server import peak_bytes
from watchbill import App

MIB = 1 << 20
BETWEEN = 0.1  # seconds between two small runs

app = App()


@dataclass(frozen=True)
class Case:
    """So many results of so many bytes."""

    name: str
    results: int
    size: int


FULL = (Case("many", 1_000, 2 * MIB), Case("huge", 12, 100 * MIB))
QUICK = (Case("many", 40, 2 * MIB), Case("huge", 2, 20 * MIB))


@app.step(timeout="10m")
async def large(number: int, size: int) -> str:
    return "x" * (size - 2)  # with its quotes: as many bytes as it says


@app.step
async def small(number: int) -> int:
    return number + 1


@app.workflow
async def gathers(results: int, size: int) -> int:
    return sum(await asyncio.gather(*(_length(number, size) for number in range(results))))


async def _length(number: int, size: int) -> int:
    return len(await large(number, size)) + 2


@app.workflow
async def beside(number: int) -> int:
    return await small(await small(number))


def measure(quick: bool) -> dict[str, float]:
    async def house() -> dict[str, float]:
        figures: dict[str, float] = {}
        async with app.rooms():
            await (await app.start(beside, 0)).result()
            for case in QUICK if quick else FULL:
                figures |= await measured(case)
        return figures

    return asyncio.run(house())


async def measured(case: Case) -> dict[str, float]:
    peak_bytes()  # begins anew
    began = time.perf_counter()
    run = await app.start(gathers, case.results, case.size)
    over = asyncio.Event()
    small_runs = asyncio.create_task(run_small_ones(over))
    total = await run.result()
    took = time.perf_counter() - began
    over.set()
    lasted = sorted(await small_runs)
    if total != case.results * case.size:
        raise RuntimeError("a result was lost: this figure would mean nothing")
    return {
        f"{case.name}_seconds": took,
        f"{case.name}_small_p99": lasted[int(0.99 * (len(lasted) - 1))],
        f"{case.name}_small_worst": lasted[-1],
        f"{case.name}_small_runs": len(lasted),
        f"{case.name}_peak_mib": peak_bytes() / MIB,
    }


async def run_small_ones(over: asyncio.Event) -> list[float]:
    async def one(number: int) -> float:
        began = time.perf_counter()
        await (await app.start(beside, number)).result()
        return time.perf_counter() - began

    tasks = []
    while not over.is_set():
        tasks.append(asyncio.create_task(one(len(tasks))))
        await asyncio.sleep(BETWEEN)
    return await asyncio.gather(*tasks)
