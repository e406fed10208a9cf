"""Steps for processes of their own: a child reads this module by its name, so everything stands at module level."""

import asyncio
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import asyncpg
import psycopg

from watchbill import App, Retry, attempt

app = App("sqlite:///:memory:")


@app.step(isolation="own")
def pid_of(word: str) -> tuple[str, int, str, int]:
    return word, os.getpid(), attempt().key, attempt().number


@app.step(isolation="own")
async def pid_of_async(word: str) -> tuple[str, int]:
    return word, os.getpid()


@app.step(isolation="own", retry=0)
def refuses(word: str) -> str:
    raise KeyError(word)


@app.step(isolation="own")
def dies() -> None:
    os._exit(7)


@app.step(isolation="own")
def dies_once(mark: str) -> int:
    if not os.path.exists(mark):
        Path(mark).touch()
        os._exit(7)
    return attempt().number


@app.step(isolation="own", retry=Retry(1, backoff="1ms"))
def counts_on() -> list[int]:
    start = attempt().restored or 0
    attempt().progress(start + 1, total=2, note="counting")
    attempt().checkpoint(start + 1)
    if attempt().number == 1:
        raise ConnectionError("once more")
    return [start, int(attempt().restored or 0)]


@app.step(isolation="own", retry=Retry(1, backoff="1ms"))
async def counts_on_async() -> int:
    start: int = attempt().restored or 0
    await attempt().checkpoint(start + 1)
    if attempt().number == 1:
        raise ConnectionError("once more")
    return start


@app.step(isolation="own", timeout="300ms", retry=0)
async def never_ends() -> None:
    await asyncio.Event().wait()


@app.step(isolation="own", retry=0)
async def ignores_signals(mark: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Path(f"{mark}.new").write_text(str(os.getpid()))
    os.rename(f"{mark}.new", mark)  # whole, or not there
    await asyncio.Event().wait()


@app.step(isolation="own", retry=0)
def finishes(place: dict[str, Any], ending: str) -> list[int]:
    connection: Any = sqlite3.connect(place["file"]) if "file" in place else psycopg.connect(**place)
    connection.execute("INSERT INTO note VALUES ('alone')")
    if ending == "rolls back":
        attempt().finish([-1, 0], tx=connection)
        connection.rollback()
        connection.close()
        return [attempt().number, os.getpid()]
    attempt().finish([attempt().number, os.getpid()], tx=connection)
    connection.commit()
    connection.close()
    if ending == "dies":
        os._exit(7)
    return [-1, 0]


@app.step(isolation="own", retry=0)
async def finishes_async(place: dict[str, Any], ending: str) -> list[int]:
    there = {"database" if name == "dbname" else name: value for name, value in place.items()}
    connection = await asyncpg.connect(**there)
    await connection.execute("BEGIN; INSERT INTO note VALUES ('alone')")
    if ending == "rolls back":
        await attempt().finish([-1, 0], tx=connection)
        await connection.execute("ROLLBACK")
        await connection.close()
        return [attempt().number, os.getpid()]
    await attempt().finish([attempt().number, os.getpid()], tx=connection)
    await connection.execute("COMMIT")
    await connection.close()
    if ending == "dies":
        os._exit(7)
    return [-1, 0]
