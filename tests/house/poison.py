"""A program with one bad run among many good ones: `python -m tests.house.poison STORE step|workflow`.

The bad one kills its process whenever its step, or its workflow code, runs. The program ends when every good run has
ended and the bad one is held; until then somebody has to start it again.
"""

import asyncio
import os
import sys

from watchbill import App, RunHeld, attempt

STORE, WHERE = sys.argv[1:3]
GOOD = 40
app = App(STORE)


@app.step
async def fine(n: int) -> int:
    await asyncio.sleep(0.01)
    return n + 1


@app.step
async def poison() -> None:
    print(f"poison {attempt().number}", flush=True)
    os._exit(9)


@app.workflow
async def good(n: int) -> int:
    for _ in range(5):
        n = await fine(n)
    return n


@app.workflow
async def bad_step() -> None:
    await poison()


@app.workflow
async def bad_code() -> None:
    await fine(1)
    print("code", flush=True)
    os._exit(9)


async def main() -> None:
    bad = bad_step if WHERE == "step" else bad_code
    async with app.rooms():
        await app.start(bad, id="bad")
        handles = await app.start_many([(good, (n,), {"id": f"good-{n}"}) for n in range(GOOD)])
        results = await asyncio.gather(*(handle.result() for handle in handles))
        if results != [n + 5 for n in range(GOOD)]:
            raise SystemExit("wrong results")
    try:
        async with app.rooms():
            await app.handle("bad").result(timeout=0.001)
    except TimeoutError:
        print("good runs done", flush=True)


def hold() -> None:
    try:
        app.run(bad_step if WHERE == "step" else bad_code, id="bad")
    except RunHeld as held:
        print(f"held: {held.reason}", flush=True)
        status = app.sync.handle("bad").status()
        print(f"status: {status.state} {status.health} {status.held}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
    hold()
