"""The stores that outlive the processes on them: a file, and PostgreSQL."""

import asyncio
import contextlib
import sqlite3
from typing import Any

import pytest

from tests.store.postgres import by_hand, emptied


class Kept:
    """A store on disk, and what is in it, past all doors."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def is_file(self) -> bool:
        """True on SQLite."""
        return self.url.startswith("sqlite:")

    def ask(self, sql: str) -> list[Any]:
        """Run one query; tables are named as on PostgreSQL, `watchbill.run`."""
        if not self.is_file:
            return [tuple(row) for row in asyncio.run(by_hand(self.url, sql))]
        with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(sql.replace("watchbill.", "")).fetchall()


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest) -> Kept:
    """An empty store."""
    if request.param == "file":
        return Kept(f"sqlite:///{request.getfixturevalue('tmp_path')}/store.db")
    url: str = request.getfixturevalue("postgres_url")
    asyncio.run(emptied(url))
    return Kept(url)
