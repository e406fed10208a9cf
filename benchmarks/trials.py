"""The fleet on which trials of tests/house are run to be measured."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.house import trials
from tests.house.conftest import Kept

TRIALS = 10  # of each kind in each of three rounds
QUICK_TRIALS = 2


@contextmanager
def fleet(*, rooms: bool = True) -> Iterator[trials.Fleet]:
    """Have a fleet on this program's store; `rooms`: with a scheduler and a supervisor."""
    with tempfile.TemporaryDirectory() as folder, trials.fleet(Kept(os.environ["WATCHBILL_STORE"]), Path(folder)) as it:
        if rooms:
            it.rooms()
        yield it
