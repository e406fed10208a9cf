"""A program whose steps misbehave, for agents; they say where they are by files in a folder."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

from watchbill import App, attempt

app = App()


@app.lifespan
async def lifespan() -> AsyncIterator[int]:
    yield os.getpid()


def mark(folder: str, name: str) -> Path:
    """Say that something has come so far: the file is named after the attempt and holds the process."""
    place = Path(folder) / f"{name}-{attempt().number}"
    place.with_suffix(".new").write_text(str(os.getpid()))
    place.with_suffix(".new").rename(place)
    return place


@app.step
def where() -> dict[str, int]:
    return {"pid": os.getpid(), "parent": os.getppid(), "lifespan": attempt().state or 0}


@app.step
def dies(folder: str) -> int:
    mark(folder, "dies")
    if attempt().number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return attempt().number


@app.step
def counts(folder: str, to: int) -> dict[str, int]:
    """Counts, with a checkpoint at each number; stops before the last until it may go, or is asked to stop."""
    first = attempt().restored or 0
    for number in range(first, to):
        while number == to - 1 and not (Path(folder) / "go").exists():
            if attempt().cancelled:
                raise InterruptedError
            time.sleep(0.01)
        attempt().checkpoint(number + 1)
        attempt().progress(number + 1, total=to)
        mark(folder, f"counts-{number}")
    return {"first": first, "number": attempt().number, "pid": os.getpid()}


@app.step(retry=0)
def deaf(folder: str) -> None:
    """Hangs, and does not hear that it should stop."""
    mark(folder, "deaf")
    time.sleep(600)


@app.step(retry=0)
async def blocks(folder: str, seconds: float) -> int:
    """Blocks the event loop of its worker."""
    mark(folder, "blocks")
    time.sleep(seconds)
    return attempt().number


@app.step
async def waits(folder: str) -> int:
    """Waits as well-behaved code does, for a file."""
    mark(folder, "waits")
    while not (Path(folder) / "go").exists():
        await asyncio.sleep(0.02)
    return attempt().number


@app.workflow
async def look() -> dict[str, int]:
    return await where()


@app.workflow
async def die(folder: str) -> int:
    return await dies(folder)


@app.workflow
async def count(folder: str, to: int) -> dict[str, int]:
    return await counts(folder, to)


@app.workflow
async def hang(folder: str) -> None:
    await deaf(folder)


@app.workflow
async def block(folder: str, seconds: float) -> int:
    return await blocks(folder, seconds)


@app.workflow
async def wait(folder: str) -> int:
    return await waits(folder)


@app.step(retry=0)
def talks(fails: bool) -> None:
    """Logs and prints."""
    attempt().log.info("I am attempt %d", attempt().number)
    print("printed")
    logging.getLogger("elsewhere").warning("a warning of a library")
    if fails:
        raise ValueError("as I was told")


@app.workflow
async def talk(fails: bool) -> None:
    await talks(fails)


@app.step(needs={"gpu": 1})
def paints() -> str:
    return "painted"


@app.workflow
async def paint() -> str:
    return await paints()
