"""A program for trials: its steps hold, hang, crash or misbehave otherwise, and write down when they began."""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import time
from pathlib import Path
from typing import NamedTuple

from watchbill import App, Retry, attempt

MEGABYTE = 1 << 20
AT_ONCE = Retry(1, backoff="10ms")

app = App()


class Mark(NamedTuple):
    """What a step wrote when it began: its process, its host, and when."""

    pid: int
    host: int
    at: int


def boot_time() -> int:
    """Nanoseconds since boot: the same clock for all processes of a machine."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def begin(folder: str, name: str) -> int:
    """Write down that something has begun; gives how many times it has."""
    now = boot_time()
    place = Path(folder) / f"{name}.{os.getpid()}.{now}"
    place.write_text(f"{os.getpid()} {os.getppid()} {now}")
    number = 1
    while True:
        try:
            os.link(place, Path(folder) / f"{name}.{number}")  # whole, or not at all
        except FileExistsError:
            number += 1
        else:
            place.unlink()
            return number


def marks(folder: str, name: str) -> list[Mark]:
    """Read when something began, each time."""
    found: list[Mark] = []
    while (place := Path(folder) / f"{name}.{len(found) + 1}").exists():
        found.append(Mark(*map(int, place.read_text().split())))
    return found


# --- steps that are lost


@app.step
async def hold(folder: str, name: str) -> int:
    """Hold until it is stopped; the second time it ends at once."""
    begun = begin(folder, name)
    while begun == 1:
        await asyncio.sleep(60)
    return attempt().number


@app.step
async def wait_for(folder: str, name: str, word: str) -> None:
    """Wait for a file."""
    begin(folder, name)
    while not (Path(folder) / word).exists():
        await asyncio.sleep(0.02)


@app.step
async def pass_by(folder: str, name: str) -> None:
    """Write that it was here."""
    begin(folder, name)


@app.step
async def say_when() -> int:
    """Say when its first line ran."""
    return boot_time()


@app.step
async def last(seconds: float) -> int:
    """Take its time; say which host it ran under."""
    await asyncio.sleep(seconds)
    return os.getppid()


# --- steps that misbehave


@app.step(retry=0)
def hold_the_interpreter(folder: str, name: str, seconds: int) -> int:
    """Do what a long regular expression or a large number does: no other thread of this process gets a turn."""
    begin(folder, name)
    ctypes.PyDLL(None).sleep(seconds)
    return attempt().number


@app.step(retry=0, timeout="2s")
def sleep_for_long(folder: str, name: str) -> None:
    begin(folder, name)
    time.sleep(600)


@app.step(retry=0, timeout="8s")
async def sleep_on_the_loop(folder: str, name: str) -> None:
    begin(folder, name)
    time.sleep(600)


@app.step(retry=0, timeout="2s")
def spin(folder: str, name: str) -> None:
    begin(folder, name)
    while True:
        pass


@app.step
def crash(folder: str, name: str) -> int:
    """Die of a segmentation fault, once."""
    if begin(folder, name) == 1:
        ctypes.string_at(0)
    return attempt().number


@app.step(retry=AT_ONCE)
def need_much_memory(folder: str, name: str) -> int:
    """Ask for more memory than this process may have, once."""
    if begin(folder, name) == 1:
        before = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 32 * MEGABYTE, before[1]))
        try:
            bytearray(256 * MEGABYTE)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
    return attempt().number


@app.step(retry=0)
async def ignore_everything(folder: str, name: str) -> None:
    """Hear neither SIGTERM nor a cancel."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    begin(folder, name)
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@app.step(stall="2s", retry=AT_ONCE)
async def get_stuck(folder: str, name: str) -> dict[str, int]:
    """Stop moving at 47 %, once, with the event loop turning."""
    first = attempt().restored or 0
    stuck = begin(folder, name) == 1
    for number in range(first, 100):
        if stuck and number == 47:
            begin(folder, f"{name}-stuck")
            await asyncio.sleep(600)
        attempt().progress(number + 1, total=100)
        await attempt().checkpoint(number + 1)
    return {"first": first, "host": os.getppid()}


@app.step
async def meet(folder: str, name: str, people: int) -> None:
    """Wait until so many are there at once: there are slots for all of them."""
    begin(folder, name)
    while not (Path(folder) / f"{name}.{people}").exists():
        await asyncio.sleep(0.01)


# --- workflows


@app.workflow
async def holding(folder: str, name: str) -> int:
    return await hold(folder, name)


@app.workflow
async def two(folder: str, name: str, word: str) -> None:
    await wait_for(folder, f"{name}-first", word)
    await pass_by(folder, f"{name}-second")


@app.workflow
async def picked_up() -> int:
    return await say_when()


@app.workflow
async def lasting(seconds: float) -> int:
    return await last(seconds)


@app.workflow
async def holding_the_interpreter(folder: str, name: str, seconds: int) -> int:
    return await hold_the_interpreter(folder, name, seconds)


@app.workflow
async def sleeping(folder: str, name: str) -> None:
    await sleep_for_long(folder, name)


@app.workflow
async def sleeping_on_the_loop(folder: str, name: str) -> None:
    await sleep_on_the_loop(folder, name)


@app.workflow
async def spinning(folder: str, name: str) -> None:
    await spin(folder, name)


@app.workflow
async def crashing(folder: str, name: str) -> int:
    return await crash(folder, name)


@app.workflow
async def greedy(folder: str, name: str) -> int:
    return await need_much_memory(folder, name)


@app.workflow
async def deaf(folder: str, name: str) -> None:
    await ignore_everything(folder, name)


@app.workflow
async def stuck(folder: str, name: str) -> dict[str, int]:
    return await get_stuck(folder, name)


@app.workflow
async def meeting(folder: str, name: str, people: int) -> None:
    await asyncio.gather(*(meet(folder, name, people) for _ in range(people)))
