"""The stores that outlive the processes on them: a file, and PostgreSQL."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.orphans import wrong_in
from tests.store.postgres import by_hand, emptied
from watchbill import App
from watchbill.app.hall import Hall


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


@contextlib.contextmanager
def client_of(app: App, url: str) -> Iterator[Any]:
    """Use an app as a client of a store, in the test's own process; it serves no component."""
    back = app.meet_in(Hall(url, app.namespace, app.registry, app.events))
    yield app.sync
    app.sync.close()
    back()


@pytest.fixture(autouse=True)
def sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """In every store that a test leaves there is nothing that cannot be, and no self-audit has repaired anything.

    Whatever was killed, frozen or cut off. Who has a server of its own looks there before that is gone.
    """
    names = set(request.fixturenames)
    server = request.getfixturevalue("postgres_url") if "postgres_url" in names else None
    folder: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in names else None
    yield
    if server is not None:
        check_soundness(server)
    for file in folder.rglob("*.db") if folder is not None else ():
        check_soundness(f"sqlite:///{file}")


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    """An empty store."""
    if request.param == "file":
        url = f"sqlite:///{request.getfixturevalue('tmp_path')}/store.db"
    else:
        url = request.getfixturevalue("postgres_url")
        asyncio.run(emptied(url))
    yield Kept(url)
    check_soundness(url)


def check_soundness(url: str) -> None:
    """See that a self-audit finds nothing in a store, and that none has ever repaired anything there."""
    assert asyncio.run(wrong_in(url)) == [], "a self-audit finds, or has repaired, what cannot be"
