"""The conformance suite through the socket: doors of clients and of agents."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from watchbill.env import SystemEnv
from watchbill.store.guest import Guest, GuestDoors
from watchbill.store.migrate import new_store
from watchbill.store.open import Driven, open_store, receiving_guests, visit_owner
from watchbill.store.protocol import Store
from watchbill.testing.conformance.agent import *  # noqa: F403
from watchbill.testing.conformance.client import *  # noqa: F403
from watchbill.testing.conformance.hints import *  # noqa: F403
from watchbill.testing.conformance.quotas import *  # noqa: F403
from watchbill.testing.conformance.scene import HandClock


class Beside:
    """The store as a guest has it: client and agent through the socket, the other rooms at the owner's."""

    def __init__(self, store: Store, guest: Guest) -> None:
        self.client = guest.client
        self.agent = GuestDoors(guest, "agent")
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
async def store(folder: Path, clock: HandClock) -> AsyncIterator[Any]:
    url = f"sqlite:///{folder}/store.db"
    (folder / "store.db").write_bytes(new_store())
    store = await open_store(url, SystemEnv(), clock=clock)
    async with receiving_guests(store, SystemEnv(), lambda: Driven("default", ())):
        guest = await visit_owner(url, SystemEnv())
        assert guest is not None
        yield Beside(store, guest)
        await guest.close()
    await store.close()
