"""One of several processes that drive the same store, to be killed and frozen; and their client, who is neither.

`python -m tests.house.crew STORE LEDGER LEASE` is a zygote: it has imported everything, and forks one process per line
on its standard input. Each opens its rooms, with leases of so many seconds, and works until it is killed. The zygote
answers with the pid, and then with how it ended.

`python -m tests.house.crew STORE LEDGER client` starts runs, one after the other in several lines of its own, and tells
the ledger of every acknowledgement. `tail N` on its standard input ends that: it then makes N requests more, each a
start and a result, and says how many were answered rightly.
"""

import asyncio
import ctypes
import os
import random
import signal
import sys
import time
import traceback
from typing import Any, NamedTuple

from tests.house.ledger import record
from tests.pace import Pace
from watchbill import App, StoreError, attempt, sleep
from watchbill.app.house import House
from watchbill.clock import SECOND
from watchbill.env import SystemEnv, busy_interpreter
from watchbill.store.open import open_store
from watchbill.store.protocol import Store

STORE, LEDGER, ROLE = (*sys.argv[1:4], "", "", "")[:3]
PEACE = 0.25  # seconds between two starts of one line of the client
LINES = 3
ANSWERED_WITHIN = 15  # seconds, for a start and its result after healing: nobody waits for a lease any more
OPENED_WITHIN = 120
PATIENCE = 120  # seconds: reached only by a test that fails
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG

app = App(STORE or None)


def note(what: str) -> None:
    this = attempt()
    _, run, _, call, _ = this.key.split(":")
    record(LEDGER, what, run, call, this.fence, this.number)


@app.step
async def work(n: int) -> int:
    note("BEGIN")
    await asyncio.sleep(0.02)
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


@app.step
async def long(n: int) -> int:
    """Last longer than a second; go on from the checkpoint of whoever was at it before."""
    note("BEGIN")
    done = attempt().restored or 0
    while done < 6:
        await asyncio.sleep(0.25)
        done += 1
        await attempt().checkpoint(done)
    note("END")
    return n + 1


@app.workflow
async def sequence(n: int) -> int:
    for _ in range(6):
        n = await work(n)
    return n


@app.workflow
async def fan(n: int) -> int:
    for _ in range(3):
        n = max(await asyncio.gather(*(work(n) for _ in range(3)), blocking(n)))
        await sleep(0.3)
    return n


@app.workflow
async def troubled(n: int) -> int:
    try:
        async with asyncio.timeout(0.05):
            await sleep(60)
    except TimeoutError:
        n = await flaky(n)
    return await blocking(await work(n))


@app.workflow
async def patient(n: int) -> int:
    await sleep(0.5)
    n = await long(await work(n))
    await sleep(0.5)
    return max(await asyncio.gather(long(n), work(n)))


class Shape(NamedTuple):
    """A workflow, and how much it adds to its number."""

    workflow: Any
    adds: int


@app.workflow
async def trek(n: int) -> int:
    """Go on for some seconds, with a turn for each step."""
    for _ in range(60):
        n = await work(n)
        await sleep(0.03)
    return n


SHAPES = [Shape(sequence, 6), Shape(fan, 3), Shape(troubled, 3), Shape(patient, 3)]


# --- a process that drives


async def drive(lease: float) -> None:
    store = await opened()
    ended: asyncio.Future[StoreError] = asyncio.get_running_loop().create_future()
    house = House(
        SystemEnv(),
        store,
        app.registry,
        app.events,
        namespace=app.namespace,
        lease=int(lease * SECOND),
        on_failure=lambda error: None if ended.done() else ended.set_result(error),
    )
    with busy_interpreter():
        await house.start()
        raise await ended


async def opened() -> Store:
    """Open the store though it is away just now, as a program does that is started again and again."""
    async with asyncio.timeout(OPENED_WITHIN):
        while True:
            try:
                return await open_store(STORE, SystemEnv())
            except StoreError:
                await asyncio.sleep(0.1)


def live(lease: float) -> None:
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
                asyncio.run(drive(lease))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


# --- the client


async def demand() -> None:
    stop = asyncio.Event()
    lines = [asyncio.create_task(keep_starting(line, stop)) for line in range(LINES)]
    loop = asyncio.get_running_loop()
    print("starting", flush=True)
    _, count = (await loop.run_in_executor(None, sys.stdin.readline)).split()
    stop.set()
    await asyncio.gather(*lines)
    print("stopped", flush=True)
    answers = [await request(n) for n in range(int(count))]
    for answer in answers:
        if answer is not None:
            print(answer, file=sys.stderr, flush=True)
    print(answers.count(None), flush=True)
    await app.close()


async def keep_starting(line: int, stop: asyncio.Event) -> None:
    chance, n = random.Random(line), 0
    while not stop.is_set():
        shape = SHAPES[chance.randrange(len(SHAPES))]
        id = f"{shape.workflow.name}-{line}-{n}"
        n += 1
        try:
            handle = await app.start(shape.workflow, n, id=id)
        except StoreError as error:
            print(f"{id} was not acknowledged: {error}", file=sys.stderr, flush=True)
        else:
            record(LEDGER, "ACK", handle.id, number=n)
        try:
            async with asyncio.timeout(PEACE):
                await stop.wait()
        except TimeoutError:
            pass


async def request(n: int) -> str | None:
    """Start a run and wait for its result; gives what was wrong."""
    begun = time.monotonic()
    with Pace() as pace:
        try:
            async with asyncio.timeout(PATIENCE):
                handle = await app.start(sequence, n, id=f"sequence-tail-{n}")
                record(LEDGER, "ACK", handle.id, number=n)
                result = await handle.result()
        except (TimeoutError, StoreError) as error:
            return f"request {n}: {type(error).__name__} {error}"
        if (took := time.monotonic() - begun) > pace.limit(ANSWERED_WITHIN):
            return f"request {n} took {took:.1f} s"
    return None if result == n + 6 else f"request {n} gave {result}"


if __name__ == "__main__":  # a step in a process of its own reads this file, too
    if ROLE == "client":
        asyncio.run(demand())
    else:
        live(float(ROLE))
