"""A hundred thousand runs that sleep for a day: what they cost while nothing happens."""

import asyncio
import time

from benchmarks.server import resident_bytes
from watchbill import App

SLEEPING = 100_000
QUICK_SLEEPING = 5_000
AT_ONCE = 1_000  # started in one commit
SECONDS = 10

app = App()


@app.workflow
async def nap(seconds: int) -> int:
    await asyncio.sleep(seconds)
    return seconds


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(QUICK_SLEEPING if quick else SLEEPING))


async def house(sleeping: int) -> dict[str, float]:
    async with app.rooms():
        for _ in range(sleeping // AT_ONCE):
            last = (await app.start_many([(nap, (86_400,))] * AT_ONCE))[-1]
        while (await last.status()).state != "waiting":
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)  # whoever is still busy with their beginning
        cpu = time.process_time()
        await asyncio.sleep(SECONDS)
        cpu = time.process_time() - cpu
        return {"resident_bytes": resident_bytes(), "cpu_share": cpu / SECONDS}
