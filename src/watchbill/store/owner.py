"""Owner: one living process writes to a SQLite file, and the kernel knows which.

The lock is a POSIX record lock (`lockf`) on a file beside the store. The kernel drops it at the moment its process
dies, however it dies, and no child inherits it: a `flock` would live on in forked children. So whoever gets it has
proof that the owner before is dead, and need not wait for any lease to end.

Two traps come with it. A record lock belongs to the process: a second `lockf` in the same process succeeds. And closing
*any* descriptor of the file drops the lock. So a second opening must find out, before it touches the file, that this
process has it open already: it looks through the process's own descriptors for the file's inode.
"""

import contextlib
import fcntl
import os
import threading
from pathlib import Path

import msgspec

from watchbill.env import process_identity
from watchbill.errors import StoreOwnedError, StoreReadOnlyError

_LONGEST_IDENTITY = 4_096
# Looking and opening must be one act within the process; the descriptors they look at are the process's, like this.
_ONE_AT_A_TIME = threading.Lock()


class OwnerLock:
    """The proof that this process owns the file; held until it is released or the process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def still_owner(self) -> bool:
        """Say whether the locked file is still the one that others would lock: somebody may have deleted it."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except OSError:
            return False

    def release(self) -> None:
        """Give the file up; it stays behind, empty, because deleting it would race with the next owner."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        # An opening that was cancelled has nobody to release what it won.
        self.release()


def owner_path(database: Path) -> Path:
    """Name the side file of a store."""
    return database.with_name(database.name + ".owner")


def refuse_second_opening(database: Path, url: str) -> None:
    """Raise StoreOwnedError if this very process owns the store, without touching a file."""
    descriptor = _own_descriptor(owner_path(database))
    if descriptor is not None:
        raise StoreOwnedError(url, os.getpid())


def take_ownership(database: Path, url: str) -> OwnerLock:
    """Become the owner, or raise StoreOwnedError with the pid of the living one."""
    path = owner_path(database)
    with _ONE_AT_A_TIME:
        while True:
            refuse_second_opening(database, url)
            lock = OwnerLock(path, _open_and_lock(path, url))
            if lock.still_owner():
                return lock
            lock.release()  # deleted between opening and locking: lock the one that is there now


def _open_and_lock(path: Path, url: str) -> int:
    try:
        # Python opens without inheritance: a spawned child has no descriptor of it.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreReadOnlyError(url, f"{path.name!r}: {error.strerror}") from error
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        pid = _pid_in(descriptor)
        os.close(descriptor)
        raise StoreOwnedError(url, pid) from None
    except OSError as error:
        os.close(descriptor)
        raise StoreReadOnlyError(url, f"{path.name!r} cannot be locked: {error.strerror}") from error
    identity = msgspec.json.encode(process_identity())
    # Written over the old text and cut behind: who reads meanwhile never finds it empty.
    os.pwrite(descriptor, identity, 0)
    os.ftruncate(descriptor, len(identity))
    return descriptor


def _own_descriptor(path: Path) -> int | None:
    """Find a descriptor through which this process holds the lock."""
    try:
        wanted = os.stat(path)
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return None
    for number in numbers:
        # A forked child has its parent's descriptor, but not its lock, and is not named in the file.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(number), wanted) and _pid_in(number) == os.getpid():
                return number
    return None


def _pid_in(descriptor: int) -> int | None:
    try:
        identity = msgspec.json.decode(os.pread(descriptor, _LONGEST_IDENTITY, 0), type=dict[str, str | int])
    except (OSError, msgspec.DecodeError):
        return None
    pid = identity.get("pid")
    return pid if isinstance(pid, int) else None
