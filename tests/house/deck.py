"""A program for a storm over agents: every step tells the ledger when it begins, what it does, and when it ends."""

import asyncio
import os
from typing import Any, Final, NamedTuple

from tests.house.ledger import record
from watchbill import App, attempt, sleep

LEDGER: Final = "STORM_LEDGER"  # the name of the variable that has its address

app = App()


def note(what: str) -> None:
    """Tell the ledger, with the key and the fence by which a sink would know an older attempt."""
    this = attempt()
    _, run, _, call, _ = this.key.split(":")
    record(os.environ[LEDGER], what, run, call, this.fence, this.number)


@app.step
async def work(n: int) -> int:
    note("BEGIN")
    await asyncio.sleep(0.02)
    note("EFFECT")
    await asyncio.sleep(0.02)
    note("END")
    return n + 1


@app.step
def blocking(n: int) -> int:
    note("BEGIN")
    note("EFFECT")
    note("END")
    return n + 1


@app.step
async def long(n: int) -> int:
    """Go on from the checkpoint of whoever was at it before."""
    note("BEGIN")
    done = attempt().restored or 0
    while done < 4:
        await asyncio.sleep(0.15)
        done += 1
        await attempt().checkpoint(done)
    note("EFFECT")
    note("END")
    return n + 1


@app.workflow
async def sequence(n: int) -> int:
    for _ in range(5):
        n = await work(n)
    return n


@app.workflow
async def fan(n: int) -> int:
    for _ in range(2):
        n = max(await asyncio.gather(work(n), work(n), blocking(n)))
        await sleep(0.2)
    return n


@app.workflow
async def patient(n: int) -> int:
    n = await long(await work(n))
    return max(await asyncio.gather(long(n), blocking(n)))


class Shape(NamedTuple):
    """A workflow, and how much it adds to its number."""

    workflow: Any
    adds: int


SHAPES: Final = (Shape(sequence, 5), Shape(fan, 2), Shape(patient, 3))
