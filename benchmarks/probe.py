"""The disk of this minute and the machine: a figure without them says nothing."""

import os
import platform
import sqlite3
import statistics
import time
from pathlib import Path

APPENDS = 200
BLOCK = bytes(8 * 1024)
IN_MEMORY = frozenset({"tmpfs", "ramfs"})


class Probe:
    """The p50 of 200 appends of 8 kB with fdatasync: half of them before the measured work, half after it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "probe"
        self._took: list[float] = []

    def half(self) -> None:
        """Does 100 of the appends."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for _ in range(APPENDS // 2):
                began = time.perf_counter()
                os.write(file, BLOCK)
                os.fdatasync(file)
                self._took.append(time.perf_counter() - began)
        finally:
            os.close(file)

    def seconds(self) -> float:
        """The median of all appends so far."""
        return statistics.median(self._took)


def machine(folder: Path) -> str:
    """One line: what this was measured on."""
    filesystem = filesystem_of(folder)
    warning = " (IN MEMORY: nothing is durable, the figures mean nothing)" if filesystem in IN_MEMORY else ""
    return (
        f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, store on {filesystem}{warning}"
    )


def filesystem_of(folder: Path) -> str:
    """The type of the file system a folder is on: of all mount points above it, the nearest."""
    folder = folder.resolve()
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(len(point), kind) for point, kind in mounts if folder.is_relative_to(point)]
    return max(above)[1] if above else "an unknown file system"
