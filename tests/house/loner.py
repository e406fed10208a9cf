"""A script whose step has a process of its own, to be killed while that runs: `python -m tests.house.loner STEP`.

The first attempt never ends; the next one does at once. The ledger hears of both. It prints the result of its one run.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Final

from tests.house.deck import LEDGER, note
from watchbill import App, attempt

RUN: Final = "loner"
FOR_EVER: Final = 600.0  # seconds

app = App()


def begin() -> bool:
    """Say that it has begun; gives whether this is the attempt that never ends.

    Its number does not tell: a child that dies with its host is not charged for it, and counts from where it was.
    """
    first = Path(os.environ[LEDGER]).with_name("first")
    if first.exists():
        note("BEGIN")
        return False
    first.touch()
    note("BEGIN")
    return True


def end() -> int:
    note("EFFECT")
    note("END")
    return attempt().fence


@app.step(isolation="own")
def blocks() -> int:
    if begin():
        time.sleep(FOR_EVER)
    return end()


@app.step(isolation="own")
async def waits() -> int:
    if begin():
        await asyncio.sleep(FOR_EVER)
    return end()


@app.workflow
async def alone(step: str) -> int:
    return await (blocks() if step == "blocks" else waits())


if __name__ == "__main__":  # a step in a process of its own reads this file, too
    print(app.run(alone, sys.argv[1], id=RUN), flush=True)
