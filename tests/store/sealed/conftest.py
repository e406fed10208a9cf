"""The conformance suite once more, through doors with keys: nothing that a store promises may be lost by sealing.

Sealing stands above both stores and does not know which one it has. So `make test` runs all of these suites on SQLite,
and those on PostgreSQL whose operations carry bodies. `make soak` runs all of them on both.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.keys import FIRST
from tests.store.postgres import emptied
from watchbill.env import SystemEnv
from watchbill.model.keys import parse_keys
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.store.sealed import Seal
from watchbill.testing.conformance.scene import HandClock

CARRY_BODIES = ("agent", "client", "language", "people", "scheduler", "schedules")
ALL_ON_POSTGRES = "WATCHBILL_SEALED_ON_POSTGRES" in os.environ


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "url" in metafunc.fixturenames:
        suite = metafunc.module.__name__.rpartition("test_sealed_")[2]
        on_postgres = ["postgres"] if ALL_ON_POSTGRES or suite in CARRY_BODIES else []
        metafunc.parametrize("url", ["sqlite memory", *on_postgres], indirect=True)


@pytest.fixture
async def url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite memory":
        return "sqlite:///:memory:"
    address: str = request.getfixturevalue("postgres_url")
    await emptied(address)
    return address


@pytest.fixture
async def store(url: str, clock: HandClock) -> AsyncIterator[Store]:
    store = Seal(parse_keys(FIRST, "keys")).store(await open_store(url, SystemEnv(), clock=clock))
    yield store
    await store.close()
