"""The load the throughput programs share: many runs of few steps, a fixed number of them in flight."""

import asyncio
import resource
import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.server import server_cpu_seconds
from benchmarks.sizes import FULL, IN_FLIGHT, QUICK, Load
from watchbill import App, Workflow

T = TypeVar("T")


def measure_load(
    app: App, workflow: Workflow[[T], T], *, quick: bool, argument: Callable[[int], T], result: Callable[[int], T]
) -> dict[str, float]:
    """Opens the rooms for this load only, and drives it."""

    async def house() -> dict[str, float]:
        async with app.rooms():
            return await drive(app, workflow, QUICK if quick else FULL, argument=argument, result=result)

    return asyncio.run(house())


async def drive(
    app: App, workflow: Workflow[[T], T], load: Load, *, argument: Callable[[int], T], result: Callable[[int], T]
) -> dict[str, float]:
    """Runs the load inside open rooms, checks every result, and gives steps per second and CPU per step."""
    numbers = iter(range(load.runs))

    async def lane() -> None:
        for number in numbers:  # shared by all lanes: each run is taken once
            handle = await app.start(workflow, argument(number))
            if await handle.result() != result(number):
                raise RuntimeError(f"run {number} gave a wrong result: this figure would mean nothing")

    cpu, server_cpu, began = _cpu_seconds(), server_cpu_seconds(), time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(min(IN_FLIGHT, load.runs))))
    took = time.perf_counter() - began
    return {
        "steps_per_s": load.steps / took,
        "cpu_us_per_step": (_cpu_seconds() - cpu) / load.steps * 1e6,
        "server_cpu_us_per_step": (server_cpu_seconds() - server_cpu) / load.steps * 1e6,
    }


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)  # user and system, all threads
    return usage.ru_utime + usage.ru_stime
