"""A program of long runs whose every step waits for a scheduler and an agent; each step adds a byte to a file."""

import os
import time
from pathlib import Path

from watchbill import App, continue_as

STEPS = 100  # before a run goes on as a new part, so that no journal gets long

app = App()


@app.step(retry=1_000)
def hand_on(file: str) -> None:
    """Count itself."""
    place = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(place, b".")
    finally:
        os.close(place)


@app.workflow
async def relay(file: str) -> None:
    """Run one step after the other, for ever."""
    for _ in range(STEPS):
        await hand_on(file)
    await continue_as(relay, file)


@app.step
def wait_for(file: str) -> None:
    """Say that it waits by a file, and wait for another one."""
    Path(f"{file}.waits").touch()
    while not Path(file).exists():
        time.sleep(0.02)


@app.workflow
async def lap(start: str, file: str) -> int:
    """Wait for the start; then run one step after the other."""
    await wait_for(start)
    for _ in range(STEPS):
        await hand_on(file)
    return STEPS
