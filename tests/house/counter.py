"""A program whose steps write their names into a file when they start, one after the other, and wait while told to."""

import os
import time
from pathlib import Path

from watchbill import App, Limit

app = App()


def start(folder: str, name: str) -> None:
    """Write down that a step starts; while the file `stop` is there, wait."""
    place = os.open(Path(folder) / "order", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(place, f"{name}\n".encode())
    finally:
        os.close(place)
    while (Path(folder) / "stop").exists():
        (Path(folder) / "waiting").touch()
        time.sleep(0.01)
    (Path(folder) / "waiting").unlink(missing_ok=True)


@app.step
def serve(folder: str, name: str) -> None:
    start(folder, name)


@app.step
def oblige(folder: str, name: str) -> None:
    start(folder, name)


@app.step(limit=Limit(at_once=1))
def serve_one(folder: str, name: str) -> None:
    start(folder, name)


@app.step(uses="bank")
def pay(folder: str, name: str) -> None:
    start(folder, name)


@app.step(retry=5)
def falter(folder: str, name: str) -> None:
    """Fail once, and have the next step wait."""
    first = Path(folder) / "faltered"
    if not first.exists():
        (Path(folder) / "stop").touch()
        first.touch()
        raise ConnectionError("the first attempt fails")
    start(folder, name)


STEPS = {step.name: step for step in (serve, oblige, serve_one, pay, falter)}


@app.workflow
async def order(step: str, folder: str, name: str) -> None:
    await STEPS[step](folder, name)
