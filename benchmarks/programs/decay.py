"""The same load on an empty journal and behind a million rows, in one process: does the house grow slow with age?"""

import asyncio

from benchmarks.load import drive
from benchmarks.programs.noop import app, count
from benchmarks.sizes import STEPS, Load

SAMPLE = Load(runs=10_000)
AGE = 1_000_000  # journal rows before the second sample; each step leaves one
QUICK_PART = 20


def measure(quick: bool) -> dict[str, float]:
    part = QUICK_PART if quick else 1
    sample = Load(runs=SAMPLE.runs // part)
    filling = Load(runs=AGE // STEPS // part - sample.runs)
    warming = Load(runs=200)

    async def house() -> dict[str, float]:
        async with app.rooms():
            await speed(warming)  # else the young house pays for the first scan and for cold caches
            young = await speed(sample)
            await speed(filling)
            return {"young_steps_per_s": young, "old_steps_per_s": await speed(sample)}

    return asyncio.run(house())


async def speed(load: Load) -> float:
    figures = await drive(app, count, load, argument=lambda n: n, result=lambda n: n + STEPS)
    return figures["steps_per_s"]
