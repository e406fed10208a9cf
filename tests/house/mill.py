"""A program that writes to the disk of its host, which may be full: where `$DISK` names a file, while that exists."""

import asyncio
import os
from pathlib import Path

from watchbill import App

app = App()
SECONDS = 0.5  # that it takes to write where there is room


@app.step
async def write(folder: str) -> bool:
    """Says whether there is enough."""
    full = os.environ.get("DISK")
    if full is not None and Path(full).exists():
        raise OSError("no space left on device")
    await asyncio.sleep(SECONDS)
    return (Path(folder) / "enough").exists()


@app.workflow
async def grind(folder: str) -> int:
    """Write on, two at a time, until there is enough; gives how often."""
    times = 0
    enough = False
    while not enough:
        enough = all(await asyncio.gather(write(folder), write(folder)))
        times += 2
    return times
