"""The pytest plugin of Watchbill: the fixture `watch`, for tests of workflows; see docs/testing.md.

It stands beside the package, not in it: a test session that does not use it does not import Watchbill.
"""

from collections.abc import Iterator

import pytest


@pytest.fixture
def watch() -> Iterator[object]:
    """A store in memory, a clock that jumps, and crashes at every transaction: `watchbill.testing.watch.Watch`."""
    from watchbill.testing.watch import Watch

    watch = Watch()
    yield watch
    watch.close()
