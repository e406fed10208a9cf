"""A store of an earlier schema is upgraded in place when it is opened, and its runs go on."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.rooms.scene import becomes, ends
from watchbill import App, sleep
from watchbill.store.migrate import known_schema, migrations, statements
from watchbill.store.queries import load_queries

FIRST = 1


class Shop:
    """A program whose second step waits until it is let go: once before the upgrade, once after it."""

    def __init__(self, url: str) -> None:
        self.app = app = App(url)
        self.called: list[str] = []
        self.may_go_on = asyncio.Event()

        @app.step
        async def charge(order: int) -> int:
            self.called.append("charge")
            return order * 10

        @app.step
        async def ship(order: int) -> str:
            self.called.append("ship")
            await self.may_go_on.wait()
            return f"shipped {order}"

        @app.workflow
        async def order(number: int) -> str:
            paid = await charge(number)
            return f"{paid} {await ship(number)}"

        @app.workflow
        async def later(number: int) -> int:
            await sleep(2)
            return await charge(number)

        self.order, self.later = order, later


def copy_into_first_schema(old: Path, new: Path) -> None:
    """Make a store by the first migration alone, and give it every row that a living store has."""
    sql = load_queries("sqlite")
    with closing(sqlite3.connect(f"file:{old}?mode=ro", uri=True)) as source, closing(sqlite3.connect(new)) as target:
        for statement in statements(next(each.text for each in migrations("sqlite") if each.number == FIRST)):
            target.execute(statement)
        target.execute("DELETE FROM meta")
        tables = target.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for (table,) in tables.fetchall():
            columns = ", ".join(name for _, name, *_ in target.execute(f"PRAGMA table_info({table})"))
            rows = source.execute(f"SELECT {columns} FROM {table}").fetchall()
            if rows:
                target.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        target.execute(sql["set_schema"], {"schema": FIRST})
        target.commit()


@pytest.fixture
def new_path(folder: Path) -> Path:
    return folder / "first.db"


async def test_runs_of_the_first_schema_go_on(folder: Path, file: str, new_path: Path):
    before = Shop(file)
    async with before.app.rooms():
        running = await before.app.start(before.order, 7, id="running")
        await before.app.start(before.later, 8, id="waiting")
        await becomes(running, lambda status: any(step.key == "ship" for step in status.steps))  # it has a row by now
        copy_into_first_schema(folder / "store.db", new_path)
        before.may_go_on.set()
    with closing(sqlite3.connect(new_path)) as made:
        assert made.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'scheduler'").fetchone() == (0,)
        assert made.execute("SELECT count(*) FROM lease WHERE owner IS NOT NULL").fetchone() == (16,)
    after = Shop(f"sqlite:///{new_path}")
    after.may_go_on.set()
    async with after.app.rooms():
        assert await ends(after.app.handle("running", after.order)) == "70 shipped 7"
        assert await ends(after.app.handle("waiting", after.later)) == 80
        assert await ends(await after.app.start(after.order, 9)) == "90 shipped 9"
    assert after.called.count("charge") == 2, "what was journalled before the upgrade is not done again"
    with closing(sqlite3.connect(new_path)) as upgraded:
        schema = upgraded.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    assert schema == (known_schema("sqlite"),)
