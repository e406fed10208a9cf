"""Owner: one living process writes to a SQLite file, and the kernel knows which.

The lock is a POSIX record lock (`lockf`) on a file beside the store. The kernel drops it at the moment its process
dies, however it dies, and no child inherits it: a `flock` would live on in forked children. So whoever gets it has
proof that the owner before is dead, and need not wait for any lease to end.

Two traps come with it. A record lock belongs to the process: a second `lockf` in the same process succeeds. And closing
*any* descriptor of the file drops the lock. So a second opening must find out, before it touches the file, that this
process has it open already: it looks through the process's own descriptors for the file's inode. A program that copies
the owner file drops the record lock as well. Therefore the owner also holds a lock of its open file description, on
another byte. A forked child closes its copy of the descriptor. If a child of a dead owner still has it, the record lock
decides, with the proof of death.

The file names its owner: the identity of the process and, when it serves guests, the address of its socket. An owner
without an address is there for one door, or is just opening or closing. What a dead owner left there stays until the
next one writes: a name proves nothing, the lock does.
"""

import contextlib
import fcntl
import os
import stat
import threading
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from watchbill.env import is_dead, process_identity
from watchbill.errors import StoreFullError, StoreOwnedError, StoreReadOnlyError
from watchbill.forks import FORKS
from watchbill.store.description_locks import lock_exclusive, unlock
from watchbill.store.sockets import remove_socket

PRIVATE: Final = 0o600  # the mode of new files: a store holds the data of its user
_LONGEST_IDENTITY = 4_096
_SECOND_LOCK = 1 << 30  # the byte of the description lock; the record lock has all bytes before it
# Looking and opening must be one act within the process; the descriptors they look at are the process's, like this.
_ONE_AT_A_TIME = threading.Lock()


class Owner(NamedTuple):
    """Who is named in an owner file."""

    identity: dict[str, str | int]
    pid: int | None
    address: str | None  # where it serves guests

    @property
    def dead(self) -> bool:
        """True only with proof."""
        return is_dead(self.identity)


NOBODY = Owner({}, None, None)


class OwnerLock:
    """The proof that this process owns the file; held until it is released or the process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor
        FORKS.when_forked(self.forget)

    def still_owner(self) -> bool:
        """Say whether the locked file is still the one that others would lock: somebody may have deleted it."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self.path))
        except OSError:
            return False

    def announce(self, address: str | None) -> None:
        """Write down where guests are served from now on, or that they are not."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):  # a full disk: then no guest finds it, and the owner works on
                _sign(self._descriptor, address)

    def release(self) -> None:
        """Give the file up; it stays behind, empty, because deleting it would race with the next owner."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
                unlock(self._descriptor, _SECOND_LOCK, 1)  # a forked child may have a copy of the descriptor
            os.close(self._descriptor)
            self._descriptor = None

    def forget(self) -> None:
        """Close the copy of the descriptor that a forked child has; the owner file is the parent's."""
        if self._descriptor is not None:
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
        raise StoreOwnedError(url, os.getpid(), _named_in(descriptor).address)


def named_owner(database: Path) -> Owner:
    """Read who is named as the owner: perhaps a dead one. Raises PermissionError for a file of another user."""
    path = owner_path(database)
    with _ONE_AT_A_TIME:
        own = _own_descriptor(path)
        if own is not None:  # opening and closing it once more would drop the lock
            return _named_in(own)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except PermissionError:
            raise
        except OSError:
            return NOBODY
        try:
            return _named_in(descriptor)
        finally:
            os.close(descriptor)


def take_ownership(database: Path, url: str) -> OwnerLock:
    """Become the owner, or raise StoreOwnedError with the pid of the living one."""
    path = owner_path(database)
    with _ONE_AT_A_TIME:
        while True:
            refuse_second_opening(database, url)
            lock = OwnerLock(path, _open_and_lock(path, database, url))
            if lock.still_owner():
                return lock
            lock.release()  # deleted between opening and locking: lock the one that is there now


def _open_and_lock(path: Path, database: Path, url: str) -> int:
    try:
        descriptor = _open_or_make(path, database)
    except OSError as error:
        raise StoreReadOnlyError(url, f"{path.name!r}: {error.strerror}") from error
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, _SECOND_LOCK)
        _lock_description(descriptor)
    except (BlockingIOError, PermissionError):
        owner = _named_in(descriptor)
        os.close(descriptor)
        if owner.dead:  # whoever has the lock has not signed yet
            owner = NOBODY
        raise StoreOwnedError(url, owner.pid, owner.address) from None
    except OSError as error:
        os.close(descriptor)
        raise StoreReadOnlyError(url, f"{path.name!r} cannot be locked: {error.strerror}") from error
    left_behind = _named_in(descriptor).address
    if left_behind is not None:
        remove_socket(left_behind)
    try:
        _sign(descriptor, None)
    except OSError as error:
        os.close(descriptor)
        raise StoreFullError(url, f"{path.name!r}: {error.strerror}") from error
    return descriptor


def _open_or_make(path: Path, database: Path) -> int:
    """Open the owner file; a new one is readable for its user alone, or for those who can read the database."""
    # Python opens without inheritance: a spawned child has no descriptor of it.
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
        with contextlib.suppress(
            OSError
        ):  # there is no database yet, or another user has made the owner file meanwhile
            os.fchmod(descriptor, stat.S_IMODE(os.stat(database).st_mode) & 0o666 | PRIVATE)
        return descriptor


def _lock_description(descriptor: int) -> None:
    try:
        lock_exclusive(descriptor, _SECOND_LOCK, 1)
    except (BlockingIOError, PermissionError):
        if not _named_in(descriptor).dead:
            raise
    except OSError:
        pass  # some kernels and file systems have no such locks: the record lock decides alone


def _sign(descriptor: int, address: str | None) -> None:
    named = process_identity() | ({} if address is None else {"address": address})
    text = msgspec.json.encode(named)
    # Written over the old text and cut behind: who reads meanwhile never finds it empty.
    os.pwrite(descriptor, text, 0)
    os.ftruncate(descriptor, len(text))


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
            if os.path.samestat(os.fstat(number), wanted) and _named_in(number).pid == os.getpid():
                return number
    return None


def _named_in(descriptor: int) -> Owner:
    try:
        named = msgspec.json.decode(os.pread(descriptor, _LONGEST_IDENTITY, 0), type=dict[str, str | int])
    except (OSError, msgspec.DecodeError):
        return NOBODY
    address, pid = named.pop("address", None), named.get("pid")
    return Owner(named, pid if isinstance(pid, int) else None, address if isinstance(address, str) else None)
