"""Description locks: locks of an open file description, which the kernel keeps when another descriptor is closed.

A POSIX record lock belongs to the process: closing any descriptor of the file drops it. A lock of an open file
description belongs to the descriptor through which it was taken, and to its copies in forked children.
"""

import fcntl
import os
import struct
import sys
from typing import Final

# The layout of Linux on 64 bits. Other systems have no such locks that Python names: there a lock is not taken.
_FLOCK: Final = struct.Struct("hhqqi4x")
_POINTER: Final = 8
SUPPORTED: Final = sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK") and struct.calcsize("P") == _POINTER


def lock_shared(descriptor: int, start: int, length: int) -> None:
    """Lock bytes against exclusive locks; raises BlockingIOError if there is one."""
    _set(descriptor, fcntl.F_RDLCK, start, length)


def lock_exclusive(descriptor: int, start: int, length: int) -> None:
    """Lock bytes against all other locks; raises BlockingIOError if there is one."""
    _set(descriptor, fcntl.F_WRLCK, start, length)


def unlock(descriptor: int, start: int, length: int) -> None:
    """Release bytes."""
    _set(descriptor, fcntl.F_UNLCK, start, length)


def holder(descriptor: int, kind: int, byte: int) -> int:
    """Give the process whose record lock conflicts with a lock of this kind; 0 if there is none or it is not known."""
    if not SUPPORTED:
        return 0
    answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))
    found, _, _, _, pid = _FLOCK.unpack(answer)
    return 0 if found == fcntl.F_UNLCK else max(pid, 0)


def _set(descriptor: int, kind: int, start: int, length: int) -> None:
    if SUPPORTED:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
