"""A program with many long steps: `python -m tests.house.waiters STORE LEDGER LEASE`, with leases of so many seconds.

It says `ready`. Each line on its standard input lets the steps of that kind end.
"""

import asyncio
import sys

from tests.house.ledger import record
from watchbill import App, attempt
from watchbill.app.house import House
from watchbill.clock import SECOND
from watchbill.env import SystemEnv, busy_interpreter
from watchbill.store.open import open_store

STORE, LEDGER, LEASE = (*sys.argv[1:4], "", "", "")[:3]
app = App(STORE or None)
may_end = {kind: asyncio.Event() for kind in ("early", "late")}


def note(what: str) -> None:
    this = attempt()
    _, run, _, call, _ = this.key.split(":")
    record(LEDGER, what, run, call, this.fence, this.number)


@app.step
async def wait(kind: str) -> str:
    note("BEGIN")
    await may_end[kind].wait()
    note("END")
    return kind


@app.step
async def quick() -> str:
    note("BEGIN")
    note("END")
    return "quick"


@app.workflow
async def waits(kind: str) -> str:
    return await wait(kind)


@app.workflow
async def hurries() -> str:
    return await quick()


async def main() -> None:
    store = await open_store(STORE, SystemEnv())
    events = app.events
    house = House(SystemEnv(), store, app.registry, events, namespace=app.namespace, lease=int(float(LEASE) * SECOND))
    loop = asyncio.get_running_loop()
    with busy_interpreter():
        await house.start()
        print("ready", flush=True)
        while kind := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            may_end[kind].set()
        await house.stop()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
