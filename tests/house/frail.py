"""A program to be stopped, killed, refused and starved of disk: `python -m tests.house.frail STORE COMMAND ...`.

play KIND GO   runs one workflow by app.run; its step says "begun" and goes on only when the file GO is there
fill           fills the disk: runs one workflow after the other until the store is full
"""

import asyncio
import os
import resource
import sys
import threading
from collections.abc import Sequence
from typing import Any

from watchbill import App, Event, Retry, StoreError, attempt, sleep

STORE, COMMAND, KIND, GO = (*sys.argv[1:5], "", "")[:4]
app = App(STORE)


def begun() -> str:
    """Say that a step runs, and under which number."""
    number = attempt().number
    print(f"begun {number}", flush=True)
    return f"attempt {number}"


def may_go() -> bool:
    return os.path.exists(GO)


@app.step
async def on_the_loop() -> str:
    said = begun()
    if not may_go():
        await asyncio.Event().wait()
    return said


def wait_in_thread() -> None:
    while not may_go():
        threading.Event().wait(0.01)
        if attempt().cancelled:
            raise InterruptedError("asked to stop")


@app.step
def in_a_thread() -> str:
    said = begun()
    wait_in_thread()
    return said


@app.step
def with_a_row() -> str:
    before = attempt().restored
    attempt().checkpoint("here I was")
    said = begun()
    wait_in_thread()
    return f"{said}, restored {before}"


@app.step(isolation="own")
def on_its_own() -> str:
    said = begun()
    if not may_go():
        threading.Event().wait()
    return said


@app.step(retry=Retry(1, backoff="400ms"))
async def between_attempts() -> str:
    if attempt().number == 1:
        raise ConnectionError("once more")
    return f"attempt {attempt().number}"


@app.workflow
async def work(kind: str) -> str:
    steps: dict[str, Any] = {
        "loop": on_the_loop,
        "thread": in_a_thread,
        "row": with_a_row,
        "own": on_its_own,
        "retry": between_attempts,
    }
    if kind == "sleep":
        await sleep("3s")  # so that it is not over before a slow machine has stopped the program
        return "slept"
    return str(await steps[kind]())


@app.step
def blow_up(n: int, size: int) -> str:
    return str(n % 10) * size


@app.step
async def patient() -> None:
    print("waiting", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("stopped", flush=True)


@app.workflow
async def waits() -> None:
    await patient()


@app.workflow
async def fat(n: int, size: int) -> int:
    return len(await blow_up(n, size))


def play() -> None:
    if KIND in ("sleep", "retry"):
        app.events.subscribe(say_retried)
        threading.Thread(target=watch, daemon=True).start()
    print(app.run(work, KIND, id="r"), flush=True)


def say_retried(events: Sequence[Event]) -> None:
    for event in events:
        if event.kind == "step.retried":
            print("begun 1", flush=True)


def watch() -> None:
    """Say when the run sleeps."""
    while True:
        try:
            if app.sync.handle("r").status().state == "waiting":
                print("begun 1", flush=True)
                return
        except Exception:  # not there yet
            threading.Event().wait(0.01)


async def fill() -> None:
    try:
        await fill_up()
    except StoreError as error:
        await asyncio.sleep(0)  # what was cancelled ends
        print(f"{type(error).__name__} {error}", flush=True)


async def fill_up() -> None:
    """Start runs until the disk is full; then leave."""
    full = asyncio.Event()

    def hear(events: Sequence[Event]) -> None:
        if any(event.kind == "store.failing" for event in events):
            full.set()

    app.events.subscribe(hear)
    async with app.rooms():
        await app.start(waits)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
        starting = asyncio.get_running_loop().create_task(start_fat_runs())
        await full.wait()
        starting.cancel()
    print("left", flush=True)


async def start_fat_runs() -> None:
    for n in range(1_000):
        handle = await app.start(fat, n, 50_000, id=f"fat-{n}")
        print(f"started {handle.id}", flush=True)
        await handle.result()
        print(f"ended {handle.id}", flush=True)


if __name__ == "__main__":
    try:
        if COMMAND == "play":
            play()
        else:
            asyncio.run(fill())
    except StoreError as error:
        print(f"{type(error).__name__} {error}", flush=True)
