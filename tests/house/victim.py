"""A program to be killed: runs of several shapes, every step of which tells the ledger what it does.

`python victim.py STORE LEDGER` is a zygote: it has imported everything, and forks one process per line on its standard
input, each of which runs the program. It answers with the pid; `working` when a step begins; and how it ended.
"""

import asyncio
import os
import sys
import traceback

from tests.house.ledger import record
from watchbill import App, StepFailed, attempt, sleep

STORE, LEDGER = sys.argv[1:3]
RUNS = int(os.environ.get("WATCHBILL_KILL_RUNS", "40"))
app = App(STORE)


silent = True  # until this is a life of the program: a step in a process of its own reads this file, too


def note(what: str) -> None:
    global silent
    if not silent:
        silent = True
        print("working", flush=True)
    this = attempt()
    _, run, _, call, _ = this.key.split(":")
    record(LEDGER, what, run, call, this.fence, this.number)


@app.step
async def work(n: int) -> int:
    note("BEGIN")
    await asyncio.sleep(0.03)
    note("END")
    return n + 1


@app.step
def blocking(n: int) -> int:
    note("BEGIN")
    note("END")
    return n + 1


@app.step(retry=5)
async def flaky(n: int) -> int:
    note("BEGIN")
    if attempt().number == 1:
        raise ConnectionError("the first attempt fails")
    note("END")
    return n + 1


@app.workflow
async def sequence(n: int) -> int:
    for _ in range(48):
        n = await work(n)
        await sleep(0.4)
    return n


@app.workflow
async def fan(n: int) -> int:
    for _ in range(32):
        n = max(await asyncio.gather(*(work(n) for _ in range(3)), blocking(n)))
        await sleep(0.7)
    return n


@app.workflow
async def troubled(n: int) -> int:
    try:
        async with asyncio.timeout(0.03):
            await sleep(60)
    except TimeoutError:
        n = await flaky(n)
    try:
        n = await blocking(n)
    except StepFailed:
        n = -1
    for _ in range(40):
        n = await work(n)
        await sleep(0.5)
    return n


async def live() -> None:
    async with app.rooms():
        shapes = [sequence, fan, troubled]
        handles = await app.start_many([(shapes[n % 3], (n,), {"id": f"run-{n}"}) for n in range(RUNS)])
        for handle in handles:
            record(LEDGER, "ACK", handle.id)
        await asyncio.gather(*(handle.result() for handle in handles))


def main() -> None:
    global silent
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                silent = False
                asyncio.run(live())
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":  # a step in a process of its own reads this file, too
    main()
