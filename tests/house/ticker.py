"""A program with schedules, as a process of its own: says what it did, a line for each run, until it is ended.

python -m tests.house.ticker URL [NAME]
"""

import asyncio
import os
import sys

from watchbill import App, attempt, current_run

app = App(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///:memory:")
NAMES = [f"tick-{n}" for n in range(4)]  # in several shards, so that each of two schedulers has some


@app.step
async def note() -> str:
    print(attempt().key, flush=True)
    return str(os.getpid())


async def tick() -> str:
    return await note()


@app.workflow
async def greet(name: str, times: int = 1) -> list[str]:
    slot = current_run().slot
    return [name] * times + ([] if slot is None else [slot.isoformat()])


for name in NAMES:
    app.workflow(name=name, every="1s", overlap="allow", catchup="all")(tick)


async def main() -> None:
    async with app.rooms():
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
