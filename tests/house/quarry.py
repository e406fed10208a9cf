"""A program for tests with many runs: each step records in the ledger when it begins and when it ends."""

import asyncio
import os
import signal
from typing import Final

from tests.house.ledger import record
from watchbill import App, attempt

LEDGER: Final = "QUARRY_LEDGER"  # the environment variable that holds the ledger's address

app = App()


def note(what: str) -> None:
    """Record one line about this attempt."""
    this = attempt()
    _, run, _, call, _ = this.key.split(":")
    record(os.environ[LEDGER], what, run, call, this.fence, this.number)


@app.step(needs="agent")
async def dig(n: int) -> int:
    note("BEGIN")
    return n


@app.step(needs="agent")
async def nap() -> None:
    note("BEGIN")
    await asyncio.sleep(0.1)
    note("END")


async def use() -> None:
    note("BEGIN")
    await asyncio.sleep(0.1)
    note("END")


use_saw = app.step(name="use_saw", needs={"saw": 1})(use)
use_lathe = app.step(name="use_lathe", needs={"lathe": 1})(use)
use_press = app.step(name="use_press", needs={"press": 1})(use)
USES: Final = {"saw": use_saw, "lathe": use_lathe, "press": use_press}


@app.step(needs="bulk")
async def haul() -> None:
    await asyncio.sleep(0.1)


@app.step(needs="parcel")
async def post() -> None:
    note("END")


@app.step(needs="agent")
def crash(times: int) -> int:
    note("BEGIN")
    if attempt().number <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    note("END")
    return attempt().number


@app.workflow
async def mine(n: int) -> int:
    return await dig(n)


@app.workflow
async def rest(times: int) -> None:
    await asyncio.gather(*(nap() for _ in range(times)))


@app.workflow
async def shop(tool: str) -> None:
    await USES[tool]()


@app.workflow
async def bulk() -> None:
    await haul()


@app.workflow
async def parcel() -> None:
    await post()


@app.workflow
async def unlucky(times: int) -> int:
    return await crash(times)
