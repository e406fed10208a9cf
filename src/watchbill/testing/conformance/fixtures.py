"""What the tests of this suite ask for, beside your `store`."""

import pytest

from watchbill.store.protocol import Store
from watchbill.testing.conformance.scene import HandClock, Scene


@pytest.fixture
def clock() -> HandClock:
    """The time, moved by hand."""
    return HandClock()


@pytest.fixture
async def scene(store: Store, clock: HandClock) -> Scene:
    """A store with its shards taken and an agent joined."""
    scene = Scene(store, clock)
    await scene.open()
    return scene
