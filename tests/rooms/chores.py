"""A program whose steps a child process runs."""

import asyncio
import sqlite3

from watchbill import App, attempt
from watchbill.errors import AttemptLostError

app = App("sqlite:///:memory:")


@app.step
async def add(one: int, other: int) -> int:
    return one + other


@app.step
async def wait() -> None:
    await asyncio.Event().wait()


@app.step
async def move() -> str:
    attempt().progress(1, 2)
    try:
        await attempt().checkpoint("half")
        await attempt().checkpoint("most")
    except AttemptLostError as error:
        return type(error).__name__
    return "kept"


@app.step
async def finish(file: str) -> int:
    with sqlite3.connect(file) as connection:
        await attempt().finish(7, tx=connection)
    return 7
