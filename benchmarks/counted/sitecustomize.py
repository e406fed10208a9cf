"""Slows the clocks of a process as much as counting slows the process; Python reads this file at every start.

Otherwise periodic work would weigh twenty times too much, and attempts would last so long that they get rows.
"""

import os
import selectors
import time

if "COUNTED_SINCE" in os.environ:
    SINCE = int(os.environ["COUNTED_SINCE"])  # nanoseconds since 1970
    FACTOR = int(os.environ["COUNTED_FACTOR"])
    _wall, _monotonic, _gettime, _select = (
        time.time_ns,
        time.monotonic,
        time.clock_gettime_ns,
        selectors.EpollSelector.select,
    )

    def time_ns() -> int:
        return SINCE + (_wall() - SINCE) // FACTOR

    def select(self: selectors.EpollSelector, timeout: float | None = None) -> object:
        return _select(self, timeout if timeout is None else timeout * FACTOR)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9
    time.monotonic = lambda: _monotonic() / FACTOR
    time.clock_gettime_ns = lambda clock: _gettime(clock) // FACTOR
    selectors.EpollSelector.select = select  # type: ignore[assignment,method-assign]
