"""A program to be killed around the commit of a step that finishes in its own transaction.

`python -m tests.house.finisher STORE KIND PLACE MOMENT`: its step says "begun", inserts a row, finishes, commits, and
stops before or after that commit, as MOMENT says, until it is killed; without MOMENT it goes on. PLACE is JSON: where
the user's own connection leads.
"""

import asyncio
import json
import sqlite3
import sys
import threading
from typing import Any

import psycopg

from watchbill import App, attempt

STORE, KIND, PLACE, MOMENT = (*sys.argv[1:5], "", "")[:4]
app = App(STORE)


def say(word: str) -> None:
    print(word, flush=True)


def stop_at(moment: str) -> None:
    if moment == MOMENT:
        say(moment)
        threading.Event().wait()


def transact(result: str) -> None:
    """Do what a user does: their rows and the result of the step, in one transaction."""
    place = json.loads(PLACE)
    connection: Any = sqlite3.connect(place["file"]) if "file" in place else psycopg.connect(**place)
    connection.execute("INSERT INTO note VALUES ('paid')")
    attempt().finish(result, tx=connection)
    stop_at("before")
    connection.commit()
    stop_at("after")
    connection.close()


@app.step
def in_a_thread() -> str:
    say(f"begun {attempt().number}")
    transact(f"attempt {attempt().number}")
    return "not this"


@app.step
async def on_the_loop() -> str:
    say(f"begun {attempt().number}")
    place = json.loads(PLACE)
    connection: Any = sqlite3.connect(place["file"]) if "file" in place else psycopg.connect(**place)
    connection.execute("INSERT INTO note VALUES ('paid')")
    await attempt().finish(f"attempt {attempt().number}", tx=connection)
    stop_at("before")
    connection.commit()
    stop_at("after")
    connection.close()
    return "not this"


@app.step
def with_a_row() -> str:
    say(f"begun {attempt().number}")
    attempt().checkpoint("here")
    transact(f"attempt {attempt().number}")
    return "not this"


@app.step(isolation="own")
def on_its_own() -> str:
    say(f"begun {attempt().number}")
    transact(f"attempt {attempt().number}")
    return "not this"


STEPS: dict[str, Any] = {"thread": in_a_thread, "loop": on_the_loop, "row": with_a_row, "own": on_its_own}


@app.workflow
async def work(kind: str) -> str:
    return str(await STEPS[kind]())


async def main() -> None:
    async with app.rooms():
        handle = await app.start(work, KIND, id="r")
        say(f"result {await handle.result()}")


if __name__ == "__main__":  # a step in a process of its own reads this file, too
    asyncio.run(main())
