"""A program for the workers of tests: what it does is written down where the tests can read it."""

import asyncio
import contextlib

from watchbill import App
from watchbill.testing.virtual import rest

app = App("sqlite:///:memory:")
BEGUN: list[int] = []
STOPPED: list[int] = []


@app.step
async def walk(n: int, seconds: float) -> int:
    BEGUN.append(n)
    try:
        await rest(seconds)
    except asyncio.CancelledError:
        STOPPED.append(n)
        raise
    return n


@app.step
async def walk_on(n: int, seconds: float) -> int:
    """Do not stop when asked to."""
    BEGUN.append(n)
    for _ in range(round(seconds)):
        with contextlib.suppress(asyncio.CancelledError):
            await rest(1)
    return n
