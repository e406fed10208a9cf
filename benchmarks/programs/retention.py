"""Retention: how many expired runs a second are deleted while small runs come and go, and what these take meanwhile."""

import asyncio
import contextlib
import statistics
import time

from watchbill import App, RunNotFound, Workflow

RUNS = 20_000  # that expire, of three steps each
QUICK_RUNS = 2_000
AT_ONCE = 1_000
CALLERS = 4  # that start one small run after the other
CALM = 3.0  # seconds in which nothing is deleted
LOOK_EVERY = 0.02

Program = tuple[App, Workflow[[int], int], Workflow[[int], int]]


def program(retention: str) -> Program:
    app = App()

    @app.step
    async def add_one(number: int) -> int:
        return number + 1

    @app.workflow(retention=retention)
    async def expired(number: int) -> int:
        return await add_one(await add_one(await add_one(number)))

    @app.workflow(retention="1d")
    async def small(number: int) -> int:
        return await add_one(await add_one(await add_one(number)))

    return app, expired, small


def measure(quick: bool) -> dict[str, float]:
    runs = QUICK_RUNS if quick else RUNS
    calm = asyncio.run(made(runs))
    return asyncio.run(deleted(runs)) | {"calm_p99_s": calm}


async def made(runs: int) -> float:
    """Make the runs under a program that keeps them; gives the p99 of a small run while nothing is deleted."""
    app, expired, small = program("1d")
    async with app.rooms():
        for _ in range(0, runs, AT_ONCE):
            handles = await app.start_many([(expired, (number,)) for number in range(AT_ONCE)])
            await asyncio.gather(*(handle.result() for handle in handles))
        await (await app.start(expired, 0, id="last")).result()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CALM):
                took: list[float] = []
                await asyncio.gather(*(caller(app, small, took) for _ in range(CALLERS)))
    await app.close()
    return p99(took)


async def deleted(runs: int) -> dict[str, float]:
    """Open a program that keeps none of them, and wait until the last one is gone."""
    app, _, small = program("0s")
    began, took = time.perf_counter(), list[float]()
    async with app.rooms():
        callers = [asyncio.create_task(caller(app, small, took)) for _ in range(CALLERS)]
        with contextlib.suppress(RunNotFound):
            while await app.handle("last").status():
                await asyncio.sleep(LOOK_EVERY)
        lasted = time.perf_counter() - began
        for one in callers:
            one.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    await app.close()
    return {"runs_per_s": runs / lasted, "p99_s": p99(took), "small_per_s": len(took) / lasted}


async def caller(app: App, small: Workflow[[int], int], took: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await (await app.start(small, 1)).result()
        took.append(time.perf_counter() - began)


def p99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98]
