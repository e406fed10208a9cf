"""One run alone: how many commits a step costs, and how long after a step the next one starts."""

import asyncio
import itertools
import statistics
import time

from watchbill import App

STEPS = 300

app = App()
started_at: list[float] = []


@app.step
async def mark(number: int) -> int:
    started_at.append(time.perf_counter())
    return number + 1


@app.workflow
async def walk(number: int) -> int:
    for _ in range(STEPS):
        number = await mark(number)
    return number


def commits(app: App) -> int:
    """How many transactions the store has committed so far, as the owner of a file knows; no part of the public API."""
    return getattr(app._hall._store, "commits", 0)


def measure(quick: bool) -> dict[str, float]:  # short enough to have no quick form
    async def house() -> int:
        async with app.rooms():
            before = commits(app)
            handle = await app.start(walk, 0)
            await handle.result()
            return commits(app) - before

    committed = asyncio.run(house())
    gaps = [later - earlier for earlier, later in itertools.pairwise(started_at)]
    return {"commits_per_step": committed / STEPS, "gap_s": statistics.median(gaps)}
