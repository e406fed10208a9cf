"""The whole product in one process: an App on every store, its rooms open, and an ear for its events."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rooms.listener import Listener
from tests.rooms.scene import Ear
from tests.store.postgres import emptied
from watchbill import App

MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    # Where the disk is memory, the tests wait for no flush.
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def file(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


@pytest.fixture(params=["file", "memory", "postgres"])
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
async def closed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Close every App that a test makes: what it has opened for its clients stays open until then."""
    apps: list[App] = []
    make = App.__init__

    def made(app: App, *args: Any, **options: Any) -> None:
        make(app, *args, **options)
        apps.append(app)

    monkeypatch.setattr(App, "__init__", made)
    yield
    for app in apps:
        await app.close()


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
