"""Files: the files of a served store are still those that were opened, and a copy of them drops no lock.

A file that is deleted, moved or replaced under its owner keeps working for the owner alone: its descriptors lead to the
old file. So the owner compares inode and device of each path with those it opened: after every commit, before anything
is acknowledged, and twice a second. SQLite keeps all of them open, so the kernel cannot give their inodes to new files.
After a commit one look at the folder is mostly enough: its time of change tells whether any name in it has changed. It
is trusted after half a second without a change, so that the next change gets another time whatever the clock's ticks.

SQLite's own locks are POSIX record locks. The kernel drops all of them when the process closes any descriptor of the
file: a `shutil.copy` of the database inside the owner is enough. Then the next process that opens and closes the file
believes that it is the last one, writes the log back and deletes it under the owner. Locks of an open file description
are not dropped like that. The owner takes two of them, shared, on the bytes that SQLite uses for this question, and on
the descriptors that SQLite has open: a descriptor of our own would do the harm when it is closed.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from watchbill.errors import StoreReplacedError
from watchbill.store.description_locks import lock_shared, unlock

# SQLite's file format: the last connection to close needs the whole range, the first one to open needs the byte.
_CONNECTED: Final = (0x4000_0002, 510)  # of the database
_INDEXED: Final = (128, 1)  # of the file that shares the index of the log
_REPLACED: Final = "is another file now"
_REMEDY_LOG: Final = "never delete, move or replace it while a process serves the store; start again"


class _File(NamedTuple):
    path: bytes  # a stat of bytes need not encode them
    device: int
    inode: int
    what: str
    remedy: str


_Folder: TypeAlias = tuple[int, int, int]  # device, inode, time of its last change


class StoreFiles:
    """The database, its log, the index of the log and the owner file, as they were when the owner opened them."""

    def __init__(self, url: str, database: Path, owner: Path) -> None:
        self.lost: StoreReplacedError | None = None
        self._url = url
        beside = str(database)
        self._database = _known(beside, "its file", "put it back, or restore a backup, then start again")
        self._log = _known(f"{beside}-wal", "its log", _REMEDY_LOG)
        self._index = _known(f"{beside}-shm", "the index of its log", _REMEDY_LOG)
        self._owner = _known(str(owner), "its owner file", "another process may serve it now: let one of them do so")
        self._all = (self._database, self._log, self._index, self._owner)
        self._folder = os.fsencode(database.parent)
        self._seen: _Folder | None = None  # by the last thorough check
        self._settled: _Folder | None = None  # seen by the last two: all files were in their places

    def check(self) -> None:
        """Raise StoreReplacedError if one of the files is no longer the one that was opened."""
        if self.lost is None and self._settled is not None and self._look_at_folder() == self._settled:
            return
        self.check_all()

    def check_thoroughly(self) -> None:
        """Do the same without trust in the folder; called again and again, with pauses."""
        seen = self._look_at_folder()
        self.check_all()
        self._settled = seen if seen == self._seen else None
        self._seen = seen

    def _look_at_folder(self) -> _Folder | None:
        try:
            found = os.stat(self._folder)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_ctime_ns

    def check_all(self, *, log_too: bool = True) -> None:
        """Do the same once, without trust in the folder; `log_too`: its log and index as well."""
        if self.lost is not None:
            raise self.lost
        for file in self._all if log_too else (self._database, self._owner):
            found = _found(file)
            if found != "":
                why = f"{file.what} {os.fsdecode(file.path)!r} {found}"
                self.lost = StoreReplacedError(self._url, why, file.remedy)
                raise self.lost

    def renew_log(self) -> None:
        """Know the log and its index anew: they were opened again, and may have been ended in between."""
        beside = os.fsdecode(self._database.path)
        self._log = _known(f"{beside}-wal", self._log.what, self._log.remedy)
        self._index = _known(f"{beside}-shm", self._index.what, self._index.remedy)
        self._seen = self._settled = None
        self._all = (self._database, self._log, self._index, self._owner)

    def intact(self) -> bool:
        """Tell whether all files are those that were opened."""
        with contextlib.suppress(StoreReplacedError):
            self.check_all()
        return self.lost is None

    def only_owner_lost(self) -> bool:
        """Tell whether SQLite's files are in place, so that it can close them as usual."""
        return not any(_found(file) for file in (self._database, self._log, self._index))

    def log_can_be_written_back(self) -> bool:
        """Tell whether the log may be written into its database: both exist, and no other process uses another log."""
        in_use = any(_found(file) == _REPLACED for file in (self._log, self._index))
        return not in_use and any(os.fstat(number).st_nlink for number in _descriptors(self._database))

    def log_size(self) -> int:
        """Give the length of the log in bytes; 0 if it is gone."""
        try:
            return os.stat(self._log.path).st_size
        except OSError:
            return 0

    def guard(self) -> None:
        """Keep other processes from believing that they are the last or the first ones to use the file."""
        self._for_each(lock_shared)

    def unguard(self) -> None:
        """Let the connection that closes last tidy up."""
        self._for_each(unlock)

    def _for_each(self, act: Callable[[int, int, int], None]) -> None:
        for file, (start, length) in ((self._database, _CONNECTED), (self._index, _INDEXED)):
            for number in _descriptors(file):
                with contextlib.suppress(OSError):  # not open to read, or closed meanwhile
                    act(number, start, length)


def _known(path: str, what: str, remedy: str) -> _File:
    found = os.stat(path)
    return _File(os.fsencode(path), found.st_dev, found.st_ino, what, remedy)


def _found(file: _File) -> str:
    """Describe what happened to a file; empty if it is in its place, or cannot be looked at."""
    try:
        found = os.stat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return "was deleted or moved away"
    except OSError:
        return ""  # a process may have dropped the right to look, and SQLite works on
    return "" if (found.st_ino, found.st_dev) == (file.inode, file.device) else _REPLACED


def _descriptors(file: _File) -> list[int]:
    """Find the descriptors of this process that lead to a file, also those that are not SQLite's."""
    numbers = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/fd"):
            with contextlib.suppress(OSError):  # the listing's own descriptor is closed by now
                found = os.fstat(int(name))
                if (found.st_ino, found.st_dev) == (file.inode, file.device):
                    numbers.append(int(name))
    return numbers
