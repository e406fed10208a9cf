"""Programs around one file: `python -m tests.house.beside STORE WHAT ...`.

own            opens the rooms, says "ready", and closes them when it hears a line
script WORD    an owner that is a script: app.run of a workflow that says "holding" and ends when it hears a line
doze           app.run of a workflow that sleeps for two seconds, says which process it ended in
start N        starts N runs one after the other, says each id once it is acknowledged
ask            answers lines: start ID N, status ID, cancel ID, result ID, run ID N, rooms
"""

import asyncio
import os
import sys

from watchbill import App, RunCancelled, RunNotFound, StoreError, sleep

app = App(sys.argv[1])


@app.step
def double(n: int) -> int:
    return 2 * n


@app.step
def hold(word: str) -> str:
    print("holding", flush=True)
    return word + sys.stdin.readline().strip()


@app.workflow
async def work(n: int) -> int:
    return await double(n)


@app.workflow
async def echo(n: int) -> int:
    return n  # without a step, which would have to run in a process of its own after two deaths


@app.workflow
async def nap() -> None:
    await sleep("1d")


@app.step
def pid() -> int:
    return os.getpid()


@app.workflow
async def doze() -> int:
    await sleep("2s")
    return await pid()


@app.workflow
async def holds(word: str) -> str:
    return await hold(word)


async def own() -> None:
    async with app.rooms():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


def start(count: int, name: str) -> None:
    for n in range(count):
        print(app.sync.start(echo, n, id=f"{name}-{n}").id, flush=True)


async def open_rooms() -> str:
    async with app.rooms():
        return "opened"


def answer(what: str, id: str = "", n: str = "0") -> object:
    match what:
        case "start":
            return app.sync.start(work, int(n), id=id).id
        case "nap":
            return app.sync.start(nap, id=id).id
        case "status":
            return app.sync.handle(id).status().state
        case "cancel":
            return app.sync.handle(id).cancel("enough")
        case "result":
            return app.sync.handle(id).result(timeout=20)
        case "run":
            return app.run(work, int(n), id=id)
        case _:
            return asyncio.run(open_rooms())


def ask() -> None:
    for line in sys.stdin:
        try:
            print(answer(*line.split()), flush=True)
        except (RunCancelled, RunNotFound, StoreError) as error:
            print(type(error).__name__, str(error).replace("\n", " "), flush=True)


if __name__ == "__main__":
    match sys.argv[2]:
        case "own":
            asyncio.run(own())
        case "script":
            print(app.run(holds, sys.argv[3], id="script"), flush=True)
        case "doze":
            print(app.run(doze, id="doze"), flush=True)
        case "start":
            start(int(sys.argv[3]), sys.argv[4])
        case _:
            ask()
