"""A small shop: the program whose runs the commands of test_cli.py are asked about.

python -m tests.house.shop fill    leaves runs of every kind behind in $WATCHBILL_STORE
python -m tests.house.shop stay    says "working" from within a step, and goes on when it hears a line
"""

import asyncio
import contextlib
import sys
from typing import Any

from watchbill import App, Handle, Retry, RunCancelled, RunFailed, Workflow, attempt, sleep

HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]a[/bold red][/]\r\n\x9b31m\u202eb"

app = App()


@app.step
def price(item: str) -> int:
    return len(item)


@app.step(retry=Retry(2, backoff="1ms"))
def charge(cents: int) -> int:
    if attempt().number < 3:
        raise ConnectionError(f"bank is busy, try {attempt().number}")
    return cents


@app.step(retry=Retry(1, backoff="1ms"))
def ship(message: str) -> None:
    raise ValueError(message)


@app.step
def ask_the_clerk() -> str:
    print("working", flush=True)
    return sys.stdin.readline().strip()


@app.workflow
async def order(items: list[str]) -> dict[str, int]:
    return {item: await charge(await price(item)) for item in items}


@app.workflow
async def delivery(message: str) -> None:
    await ship(message)


@app.workflow
async def label(text: str) -> str:
    return text


@app.workflow
async def nap() -> None:
    await price("pillow")
    await sleep("1d")


@app.workflow
async def counter() -> str:
    return await ask_the_clerk()


async def ended(workflow: Workflow[..., Any], *args: object, id: str) -> None:
    with contextlib.suppress(RunFailed):
        await (await app.start(workflow, *args, id=id)).result()


async def asleep(id: str) -> Handle[None]:
    handle = await app.start(nap, id=id)
    while (await handle.status()).state != "waiting":
        pass
    return handle


async def fill() -> None:
    async with app.rooms():
        await ended(order, ["pen"], id="order-1")
        await ended(order, ["ink", "paper"], id="order-10")
        await ended(delivery, "no such street", id="delivery-1")
        await ended(delivery, HOSTILE, id="delivery-hostile")
        await ended(label, HOSTILE, id="label-hostile")
        cancelled = await asleep("nap-cancelled")
        await cancelled.cancel("changed my mind")
        with contextlib.suppress(RunCancelled):
            await cancelled.result()
        await asleep("nap-open")


async def stay() -> None:
    async with app.rooms():
        await ended(counter, id="counter-1")


if __name__ == "__main__":
    asyncio.run({"fill": fill, "stay": stay}[sys.argv[1]]())
