"""A process is killed with a hundred runs open, and started again: how soon they go on."""

import asyncio
import subprocess
import sys
import time

from watchbill import App

RUNS = 100
STEPS = 10_000  # more than it will ever do

app = App()
continued: set[str] = set()


@app.step
async def work(run: str, number: int) -> int:
    if run not in continued:
        continued.add(run)
        print(f"{time.time()} {number}", flush=True)
    await asyncio.sleep(0.02)
    return number + 1


@app.workflow
async def toil(run: str) -> int:
    number = 0
    while number < STEPS:
        number = await work(run, number)
    return number


def measure(quick: bool) -> dict[str, float]:  # short enough to have no quick form
    first = start("begin")
    for _ in range(RUNS):
        spoken(first)
    time.sleep(1)  # each has done some steps, and is in the middle of one
    first.kill()
    first.wait()
    began = time.time()
    second = start("go on")
    went_on = [spoken(second) for _ in range(RUNS)]
    second.kill()
    second.wait()
    if not any(number for _, number in went_on):
        raise RuntimeError("no run went on where it was: this figure would mean nothing")
    return {"first_s": went_on[0][0] - began, "all_s": went_on[-1][0] - began}


def start(what: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.programs.restart", what]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def spoken(process: "subprocess.Popen[str]") -> tuple[float, int]:
    """When the next run was first heard of in this process, and at which of its steps."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("the process ended")
    at, number = line.split()
    return float(at), int(number)


async def serve(what: str) -> None:
    async with app.rooms():
        if what == "begin":
            await app.start_many([(toil, (f"toil-{number}",)) for number in range(RUNS)])
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
