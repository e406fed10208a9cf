"""No-op steps beside a REPEATABLE READ transaction left open: what the rows it keeps from being cleaned up cost."""

import asyncio

import asyncpg

from benchmarks.load import drive
from benchmarks.programs.noop import app, count
from benchmarks.server import the_server
from benchmarks.sizes import STEPS, Load

SECONDS = 10
WARM = Load(runs=500)
QUICK_PART = 10


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(SECONDS / QUICK_PART if quick else SECONDS))


async def house(seconds: float) -> dict[str, float]:
    async with app.rooms():
        await speed(WARM)
        # As many runs as take this long, measured; the same number each time.
        load = Load(runs=max(WARM.runs, int(seconds * await speed(WARM) / STEPS)))
        before = await speed(load)
        connection = await asyncpg.connect(user="postgres", host=str(the_server().folder), database="postgres")
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM watchbill.run")
        beside = await speed(load)
        await connection.execute("ROLLBACK")
        await connection.close()
        after = await speed(load)
    return {"steps_per_s": (before + after) / 2, "beside_steps_per_s": beside, "ratio": 2 * beside / (before + after)}


async def speed(load: Load) -> float:
    figures = await drive(app, count, load, argument=lambda n: n, result=lambda n: n + STEPS)
    return figures["steps_per_s"]
