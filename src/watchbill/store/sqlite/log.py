"""Log: how long the write-ahead log of a file is, and which processes keep it from being written back."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final, NamedTuple

from watchbill.store.description_locks import holder

# SQLite's file format: bytes of the index of the log that connections lock while they read a state of the file.
_READING: Final = range(123, 128)


class Log(NamedTuple):
    """The log of a file."""

    size: int  # bytes
    readers: tuple[int, ...]  # processes that read a state of the file now, as far as the system tells


def look_at_log(database: Path) -> Log:
    """Look at the log; only for a process that has no connection to the file: closing it would drop its locks."""
    size, readers = 0, set[int]()
    with contextlib.suppress(OSError):
        size = os.stat(f"{database}-wal").st_size
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{database}-shm", os.O_RDONLY)
        try:
            readers = {holder(descriptor, fcntl.F_WRLCK, byte) for byte in _READING}
        finally:
            os.close(descriptor)
    return Log(size, tuple(sorted(pid for pid in readers if pid > 0)))
