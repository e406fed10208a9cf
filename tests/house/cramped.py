"""Cramped: a program whose disk a test fills up: it starts runs, and says what was acknowledged, done and ended.

URL COUNT [ALL]: starts so many runs, and waits for all. A start that raises is repeated with the same id. It also
waits until so many runs in all have completed: other processes may start some.
"""

import asyncio
import os
import sys
from collections.abc import Sequence

from watchbill import App
from watchbill.errors import StoreFailingError
from watchbill.events import Event

URL, COUNT, ALL = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
app = App(URL)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # in one piece, from whatever thread


@app.step(retry=3)
async def act(run: int, step: int) -> int:
    say("effect", run, step)
    await asyncio.sleep(0.02)
    return step


@app.step(retry=3)
def compute(run: int, step: int) -> int:
    say("effect", run, step)
    return step


@app.workflow
async def work(run: int) -> int:
    done = await asyncio.gather(act(run, 0), act(run, 1), compute(run, 2))
    return sum(done) + await compute(run, 3)


async def started(run: int) -> None:
    while True:
        try:
            handle = await app.start(work, run, id=f"run-{run}")
        except StoreFailingError as error:
            say("refused", run, type(error).__name__)
            await asyncio.sleep(0.2)
        else:
            say("acknowledged", run)
            assert await handle.result() == 6
            say("ended", run)
            return


def hear(events: Sequence[Event]) -> None:
    for event in events:
        if event.kind.startswith("store."):
            say("event", event.kind, event.cause)


async def main() -> None:
    app.events.subscribe(hear)
    async with app.rooms(), asyncio.TaskGroup() as group:
        for run in range(COUNT):
            group.create_task(started(run))
            await asyncio.sleep(0.03)
        while len([run async for run in app.runs(status="completed")]) < ALL:
            await asyncio.sleep(0.1)
    say("over")


if __name__ == "__main__":
    asyncio.run(main())
