"""The whole product in one process: an App on every store, its rooms open, and an ear for its events."""

import asyncio
import contextlib
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rooms.listener import Listener
from tests.rooms.scene import Ear
from tests.store.postgres import emptied
from watchbill import App
from watchbill.clock import SystemClock
from watchbill.model.orphan import AuditPlace, Orphan
from watchbill.store.migrate import new_store
from watchbill.store.protocol import EVERY
from watchbill.store.queries import load_queries
from watchbill.store.sqlite.audit import audit
from watchbill.store.sqlite.database import Database, StoreTime

MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    # Where the disk is memory, the tests wait for no flush.
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def file(folder: Path) -> str:
    (folder / "store.db").write_bytes(new_store())
    return f"sqlite:///{folder}/store.db"


# In memory a store differs from a file below its doors alone. Every suite of those runs there, too, and whatever uses
# the fixture `watch`; of the rooms what runs are and what they can say.
IN_MEMORY_TOO = ("tests.rooms.test_runs", "tests.rooms.test_language", "tests.rooms.test_people")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "url" in metafunc.fixturenames:
        memory = ["memory"] if metafunc.module.__name__ in IN_MEMORY_TOO else []
        metafunc.parametrize("url", ["file", *memory, "postgres"], indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest, file: str) -> str:
    match request.param:
        case "file":
            return file
        case "memory":
            return "sqlite:///:memory:"
        case _:
            return emptied_postgres(request)


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest, file: str) -> str:
    """A store that outlives whoever opened it."""
    return file if request.param == "file" else emptied_postgres(request)


def emptied_postgres(request: pytest.FixtureRequest) -> str:
    address: str = request.getfixturevalue("postgres_url")
    asyncio.run(emptied(address))
    return address


@pytest.fixture(autouse=True)
async def closed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> AsyncIterator[None]:
    """Close every App that a test makes: what it has opened for its clients stays open until then.

    In the files that they leave there must be nothing that cannot be; so the folder is there until this is over.
    """
    apps: list[App] = []
    make = App.__init__

    def made(app: App, *args: Any, **options: Any) -> None:
        make(app, *args, **options)
        apps.append(app)

    monkeypatch.setattr(App, "__init__", made)
    yield
    for app in apps:
        await app.close()
    for url in {app.url for app in apps}:
        assert orphans_in(url) == [], "a self-audit finds what cannot be"


def orphans_in(url: str) -> list[Orphan]:
    """Look for what cannot be, in a file, past its owner: whatever a test has done, doors keep that from being."""
    path = Path(url.removeprefix("sqlite:///"))
    if url == "sqlite:///:memory:" or not url.startswith("sqlite") or not path.is_file():
        return []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA query_only = ON")
        try:
            found = audit(
                Database(connection, load_queries("sqlite"), url, StoreTime(SystemClock(), 0)), AuditPlace(), EVERY
            )
        except sqlite3.DatabaseError:
            return []  # no store, or one that the test has broken
    return list(found.orphans)


@pytest.fixture
def app(url: str) -> App:
    return App(url)


@pytest.fixture
def ear(app: App) -> Iterator[Ear]:
    ear = Ear(app)
    yield ear
    ear.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.server.shutdown()
    listener.server.server_close()
