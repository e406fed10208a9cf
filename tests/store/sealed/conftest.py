"""The conformance suite once more, through doors with keys: nothing that a store promises may be lost by sealing."""

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


@pytest.fixture(params=["sqlite memory", "postgres"])
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
