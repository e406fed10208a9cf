"""Pace: longer limits for tests that measure time, while other programs use the machine.

A limit such as "within 1 s" is a promise for a machine that has time for us. Pace counts the processes that want to
run, twenty times a second, while a test measures. Up to two per core are ordinary: `make test` itself has four workers
on two cores. Beyond that the limit grows in proportion.
"""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

EVERY: Final = 0.05  # seconds between two counts
WINDOW: Final = 20  # counts, one second: the busiest second decides
ORDINARY: Final = 2 * (os.cpu_count() or 1)  # processes that want to run at once


class Pace:
    """Count the processes that want to run while a test measures something."""

    def __init__(self) -> None:
        self._counts: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count, name="pace", daemon=True)

    def __enter__(self) -> Self:
        """Begin to count."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop counting."""
        self._over.set()
        self._thread.join()

    def limit(self, seconds: float) -> float:
        """Give the limit as it is on a machine with this many other programs."""
        return seconds * slowness(list(self._counts))

    def _count(self) -> None:
        while not self._over.wait(EVERY):
            self._counts.append(wanting_to_run())


def slowness(counts: list[float]) -> float:
    """Give how many times slower than ordinary the busiest second was; at least 1."""
    if not counts:
        return 1.0
    width = min(WINDOW, len(counts))
    sums = [sum(counts[begin : begin + width]) for begin in range(len(counts) - width + 1)]
    return max(1.0, max(sums) / width / ORDINARY)


def wanting_to_run() -> float:
    """Count the processes that run or wait for a processor; where that is unknown, the load of the last minute."""
    try:
        running, _, _ = Path("/proc/loadavg").read_text().split()[3].partition("/")
    except OSError:
        return os.getloadavg()[0]
    return int(running)
