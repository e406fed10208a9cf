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
    _, run, _, call = this.key.split(":", 3)  # the call of an undo has a colon, too
    record(os.environ[LEDGER], what, run, call.rpartition(":")[0], this.fence, this.number)


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


@app.step
async def book(n: int) -> int:
    note("BEGIN")
    await asyncio.sleep(0.05)
    note("EFFECT")
    note("END")
    return n + 1


@book.undo
async def unbook(booked: int | None, n: int) -> None:
    note("BEGIN")
    note("EFFECT")
    note("END")


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


def fails(n: int) -> bool:
    """True if the trip with this number fails in the end, so that everything is undone."""
    return n % 3 == 0


@app.workflow
async def trip(n: int) -> int:
    booked = await book(await book(n))
    if fails(n):
        raise ValueError("no seat is left")
    return booked


class Shape(NamedTuple):
    """A workflow, and how much it adds to its number."""

    workflow: Any
    adds: int


SHAPES: Final = (Shape(sequence, 5), Shape(fan, 2), Shape(patient, 3), Shape(trip, 2))
