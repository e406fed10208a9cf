"""A run of a million calls: brought back by a new process while others go on, and shown."""

import asyncio
import os
import subprocess
import sys
import time

from watchbill import App

ROUNDS = 1_000
QUICK_ROUNDS = 20
WIDTH = 1_000  # calls at once

app = App()


@app.step
async def add_one(number: int) -> int:
    return number + 1


@app.step
async def wait_for_ever() -> None:
    await asyncio.Event().wait()


@app.workflow
async def long(rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.gather(*(add_one(number) for number in range(WIDTH)))
    await wait_for_ever()


@app.workflow
async def short(number: int) -> int:
    return await add_one(number)


def measure(quick: bool) -> dict[str, float]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    asyncio.run(made(rounds))
    figures = asyncio.run(resumed())
    began = time.perf_counter()
    shown = [sys.executable, "-m", "watchbill", "run", "show", "long", "--store", os.environ["WATCHBILL_STORE"]]
    subprocess.run(shown, check=True, stdout=subprocess.DEVNULL)
    return figures | {"show_s": time.perf_counter() - began}


async def made(rounds: int) -> None:
    """Let the run come to its last call, and close the house."""
    async with app.rooms():
        handle = await app.start(long, rounds, id="long")
        while not any(step.key == "wait_for_ever" for step in (await handle.status()).steps[-1:]):
            await asyncio.sleep(1)


async def resumed() -> dict[str, float]:
    """Open the house again; short runs come and go until the long one is back."""
    began, slowest, back = time.perf_counter(), 0.0, asyncio.Event()
    stop = app.events.subscribe(lambda events: [back.set() for event in events if event.kind == "run.resumed"])
    async with app.rooms():
        while not back.is_set():
            asked = time.perf_counter()
            await (await app.start(short, 1)).result()
            slowest = max(slowest, time.perf_counter() - asked)
        took = time.perf_counter() - began
    stop()
    return {"resume_s": took, "slowest_other_s": slowest}
