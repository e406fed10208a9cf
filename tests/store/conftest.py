"""Every store passes the same tests: a new kind of store is one more parameter here."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.store.postgres import emptied
from watchbill.env import SystemEnv
from watchbill.store.migrate import new_store
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.testing.conformance.fixtures import clock, scene
from watchbill.testing.conformance.scene import HandClock

__all__ = ["clock", "scene"]

MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    # Hundreds of stores, each with its flushes: where the disk is memory, the tests wait for nothing.
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite file", "sqlite memory", "postgres"])
async def url(request: pytest.FixtureRequest, folder: Path) -> str:
    match request.param:
        case "sqlite file":
            (folder / "store.db").write_bytes(new_store())
            return f"sqlite:///{folder}/store.db"
        case "sqlite memory":
            return "sqlite:///:memory:"
        case _:
            address: str = request.getfixturevalue("postgres_url")
            await emptied(address)
            return address


@pytest.fixture
async def store(url: str, clock: HandClock) -> AsyncIterator[Store]:
    store = await open_store(url, SystemEnv(), clock=clock)
    yield store
    await store.close()
