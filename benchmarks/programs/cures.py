"""Workflows of ten steps over a service that fails now and then: how many end failed without a policy, and by default.

Of the workflows without one 12 in a hundred fail. The failures are the same in every run of this program.
"""

import asyncio
import statistics
import zlib

from watchbill import App, RunFailed, attempt

RUNS, QUICK_RUNS = 2_000, 500
STEPS = 10
FAILING = 0.12  # of the workflows, if nothing is tried again
RATE = 1 - (1 - FAILING) ** (1 / STEPS)  # of the calls
PERCENTILE = 99

app = App()


async def call(number: int) -> int:
    """Fail now and then: which attempt of which call does, is the same each time."""
    here = attempt()
    if zlib.crc32(f"{here.key} {here.number}".encode()) / 2**32 < RATE:
        raise ConnectionError("the service did not answer")
    return number + 1


bare = app.step(name="bare", retry=0)(call)
cured = app.step(name="cured")(call)


@app.workflow
async def without_policy(number: int) -> int:
    for _ in range(STEPS):
        number = await bare(number)
    return number


@app.workflow
async def with_defaults(number: int) -> int:
    for _ in range(STEPS):
        number = await cured(number)
    return number


async def drive(workflow, runs: int) -> tuple[float, float]:
    """Give the share of runs that failed, and the 99th percentile of how long they took."""
    loop = asyncio.get_running_loop()
    took, failed = [], 0

    async def one(number: int) -> None:
        nonlocal failed
        began = loop.time()
        try:
            await (await app.start(workflow, number, id=f"{workflow.name}-{number}")).result()
        except RunFailed:
            failed += 1
        took.append(loop.time() - began)

    await asyncio.gather(*(one(number) for number in range(runs)))
    return 100 * failed / runs, statistics.quantiles(took, n=100)[PERCENTILE - 1]


async def house(runs: int) -> dict[str, float]:
    async with app.rooms():
        bare_failed, bare_took = await drive(without_policy, runs)
        failed, took = await drive(with_defaults, runs)
    return {"bare_failed": bare_failed, "bare_p99_s": bare_took, "failed": failed, "p99_s": took}


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(QUICK_RUNS if quick else RUNS))
