"""The pytest plugin of Watchbill: the fixture `watch`, for tests of workflows; see docs/testing.md.

It stands beside the package, not in it: a test session that does not use it does not import Watchbill.
"""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def watch(watchbill_elsewhere: Any) -> Iterator[object]:  # noqa: ANN401 - its type would have to be imported
    """A store in memory, a clock that jumps, and crashes at every transaction: `watchbill.testing.watch.Watch`."""
    from watchbill.testing.watch import Watch

    watch = Watch(watchbill_elsewhere)
    yield watch
    watch.close()


@pytest.fixture(scope="session")
def watchbill_elsewhere() -> Iterator[object]:
    """A second process with another hash seed, started when the first run is replayed there."""
    from watchbill.testing.elsewhere import Elsewhere

    elsewhere = Elsewhere()
    yield elsewhere
    elsewhere.close()
