"""Power loss: SQLite's writes and flushes are recorded, and folders are built as a power cut could have left them.

The store itself is the real one. Only its driver is another one: the standard library's `sqlite3` lets nobody see what
SQLite writes, APSW does. So `Recorder.connect` gives a connection of APSW with the methods that the store uses.

The model of a disk that honours flushes:

- A flushed file has all that was written to it before.
- Of writes that were not flushed any part is there, in sectors of 512 bytes. A sector may be old, new or, rarely,
  garbage. Bytes beyond the flushed end of the file are zeros or garbage if their write is missing.
- A truncation that was not flushed may be missing.
- A new or deleted name in the folder may be missing or still there until the folder is flushed. SQLite flushes the
  folder at the first flush of a new log or journal, and at some deletions.
- The index of the log (`-shm`) is memory, and is never there.
"""

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

SECTOR: Final = 512
_JOURNALS: Final = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL


# --- what happens


class Write(NamedTuple):
    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    file: int
    size: int


class Sync(NamedTuple):
    file: int


class Link(NamedTuple):
    """A name in the folder leads to a new file."""

    name: str
    file: int


class Unlink(NamedTuple):
    name: str


class SyncFolder(NamedTuple):
    pass


Event = Write | Truncate | Sync | Link | Unlink | SyncFolder


class Recorder(apsw.VFS):
    """Passes everything on to the real files, and keeps a log of what changes them."""

    def __init__(self, name: str, *, checkpoint_every: int = 20) -> None:
        super().__init__(name, base="")
        self.name = name
        self.log: list[Event] = []
        self.committed: Callable[[apsw.Connection], None] = lambda connection: None
        self._checkpoint_every = checkpoint_every
        self._names: dict[str, int] = {}
        self._files = 0

    def xOpen(self, name: Any, flags: list[int]) -> "RecordedFile":  # noqa: N802 - SQLite's name
        return RecordedFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        name = Path(filename).name
        if self._names.pop(name, None) is not None:
            self.log.append(Unlink(name))
        if syncdir:
            self.log.append(SyncFolder())

    def known(self, path: str) -> int:
        """Give the number of the file that a name leads to."""
        name = Path(path).name
        if name not in self._names:
            self._files += 1
            self._names[name] = self._files
            self.log.append(Link(name, self._files))
        return self._names[name]

    def connect(self, address: str, /, **_: Any) -> "Connection":
        """Open a file as `sqlite3.connect` does."""
        try:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
            connection = apsw.Connection(address, flags=flags, vfs=self.name, statementcachesize=256)
        except apsw.Error as error:
            raise _translated(error) from error
        connection.set_busy_timeout(5_000)
        connection.wal_autocheckpoint(self._checkpoint_every)
        return Connection(connection, self)


class RecordedFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._log = recorder.log
        self._file = 0 if path is None else recorder.known(path)
        self._new = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _JOURNALS)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        if self._file:
            self._log.append(Write(self._file, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        if self._file:
            self._log.append(Truncate(self._file, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        if self._file:
            self._log.append(Sync(self._file))
            if self._new:
                self._log.append(SyncFolder())
                self._new = False


# --- the driver


class Connection:
    """What the store uses of a `sqlite3.Connection`, by APSW."""

    def __init__(self, connection: apsw.Connection, recorder: Recorder) -> None:
        self._connection = connection
        self._recorder = recorder

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes()

    def execute(self, sql: str, values: Any = ()) -> "Cursor":
        try:
            before = self._connection.total_changes()
            rows = self._connection.execute(sql, values).fetchall()
            cursor = Cursor(rows, self._connection.changes())
        except apsw.ConnectionClosedError as error:
            raise sqlite3.ProgrammingError(str(error)) from error
        except apsw.Error as error:
            raise _translated(error) from error
        alone = not self._connection.in_transaction and self._connection.total_changes() != before
        if sql == "COMMIT" or alone:
            self._recorder.committed(self._connection)
        return cursor

    def executemany(self, sql: str, values: Iterable[Any]) -> "Cursor":
        return Cursor([], sum([self.execute(sql, row).rowcount for row in values]))

    def close(self) -> None:
        # A reader may not lock the file for itself alone: SQLite asks, and does without. APSW raises it all the same.
        with contextlib.suppress(apsw.IOError):
            self._connection.close()


class Cursor:
    """The rows of a statement, read at once."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self.rowcount = rowcount
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


def _translated(error: apsw.Error) -> sqlite3.Error:
    code = getattr(error, "extendedresult", sqlite3.SQLITE_ERROR)
    kind = sqlite3.IntegrityError if isinstance(error, apsw.ConstraintError) else sqlite3.OperationalError
    translated = kind(str(error))
    translated.sqlite_errorcode = code
    return translated


class Module:
    """The module `sqlite3`, but for how a connection is made."""

    def __init__(self, recorder: Recorder) -> None:
        self.connect = recorder.connect

    def __getattr__(self, name: str) -> object:
        return getattr(sqlite3, name)


# --- what is left


class Disk:
    """A disk after the first events of a log: what is safe on it, and what may be lost."""

    def __init__(self) -> None:
        self.position = 0
        self._safe: dict[int, bytearray] = {}
        self._unsafe: dict[int, list[Write | Truncate]] = {}
        self._names: dict[str, int] = {}
        self._unsafe_names: list[Link | Unlink] = []

    def advance(self, log: list[Event], position: int) -> None:
        """Let more events happen."""
        for event in log[self.position : position]:
            match event:
                case Write(file) | Truncate(file):
                    self._unsafe[file].append(event)
                case Sync(file):
                    for change in self._unsafe[file]:
                        _apply(self._safe[file], change)
                    self._unsafe[file] = []
                case Link(_, file):
                    self._safe[file], self._unsafe[file] = bytearray(), []
                    self._unsafe_names.append(event)
                case Unlink():
                    self._unsafe_names.append(event)
                case SyncFolder():
                    for change_of_name in self._unsafe_names:
                        _rename(self._names, change_of_name)
                    self._unsafe_names = []
        self.position = position

    def image(self, chance: random.Random) -> dict[str, bytes]:
        """Draw what the folder holds after a power cut now."""
        kept, garbage = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0)), chance.random() < 0.2
        names = dict(self._names)
        for change_of_name in self._unsafe_names:
            if chance.random() < kept:
                _rename(names, change_of_name)
        return {name: bytes(self._content(file, chance, kept, garbage)) for name, file in names.items()}

    def _content(self, file: int, chance: random.Random, kept: float, garbage: bool) -> bytearray:
        content = bytearray(self._safe[file])
        for change in self._unsafe[file]:
            fate = chance.random()
            if fate < kept * 0.9:
                _apply(content, change)
            elif fate < 0.9 and not garbage:
                continue  # lost, whole
            elif isinstance(change, Write):
                for part in _sectors(change):
                    if chance.random() < 0.5:
                        _apply(content, part)
                    elif garbage and chance.random() < 0.1:
                        _apply(content, part._replace(data=chance.randbytes(len(part.data))))
        return content


def _apply(content: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
        return
    if len(content) < change.offset:
        content.extend(bytes(change.offset - len(content)))
    content[change.offset : change.offset + len(change.data)] = change.data


def _sectors(write: Write) -> Iterator[Write]:
    """Split a write where sectors begin."""
    begin, end = write.offset, write.offset + len(write.data)
    while begin < end:
        until = min(end, (begin // SECTOR + 1) * SECTOR)
        yield Write(write.file, begin, write.data[begin - write.offset : until - write.offset])
        begin = until


def _rename(names: dict[str, int], change: Link | Unlink) -> None:
    if isinstance(change, Link):
        names[change.name] = change.file
    else:
        names.pop(change.name, None)
