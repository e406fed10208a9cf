"""Database: one connection to a store's file, its named statements, its time, and its errors in the house's words."""

import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from watchbill.bounds import BOUNDS, Bounds
from watchbill.clock import SECOND, Micros
from watchbill.errors import (
    StoreCorruptError,
    StoreError,
    StoreFailingError,
    StoreFullError,
    StoreReadOnlyError,
    StoreReplacedError,
    StoreUnreachableError,
)
from watchbill.forks import FORKS, abandon
from watchbill.model.lease import FOREVER
from watchbill.model.upload import Uploaded
from watchbill.store.bodies import fits, reference, referred
from watchbill.store.owner import PRIVATE
from watchbill.store.sqlite.files import StoreFiles
from watchbill.store.sqlite.time import StoreTime
from watchbill.store.tails import Tails

T = TypeVar("T")
Value = int | float | str | bytes | None
Values = Mapping[str, Value] | Sequence[Value]
Named = dict[str, Value]

OLDEST_SQLITE: Final = (3, 37, 0)  # strict tables; RETURNING is older
BUSY_TIMEOUT: Final = 5.0  # seconds that the writer waits for a user's own transaction on the file before it complains
LOG_LIMIT: Final = 64 << 20  # bytes that the log keeps after its pages were written back; beyond, it is cut off
ROWS_AT_ONCE: Final = 20  # that one execution inserts: more of them save hardly more
TIME_SLACK: Final[Micros] = SECOND // 10  # how far the bound of times runs ahead; a restart takes longer than this

# FULL: an acknowledged commit survives a power cut, which NORMAL does not promise for the last ones.
# A connection's own scratch tables and rollbacks of single statements need no files.
_DURABLE = "PRAGMA synchronous = FULL"
_HASTY = "PRAGMA synchronous = NORMAL"  # for marks that must survive the process only; the next commit flushes them too
# On macOS fsync leaves data in the disk's own cache; with these, SQLite asks for F_FULLFSYNC. Elsewhere: no effect.
_FLUSHED = ("PRAGMA fullfsync = ON", "PRAGMA checkpoint_fullfsync = ON")
_PATIENT = f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT * 1000)}"
_IMPATIENT = "PRAGMA busy_timeout = 0"
_WRITER = (
    "PRAGMA journal_mode = WAL",
    _DURABLE,
    *_FLUSHED,
    "PRAGMA temp_store = MEMORY",
    f"PRAGMA journal_size_limit = {LOG_LIMIT}",
)
_READER = ("PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY")


class Database:
    """One connection that reads: statements by name, snapshots, large bodies made whole."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        sql: Mapping[str, str],
        url: str,
        now: StoreTime,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.now = now
        self.bounds = bounds
        self.connected = True
        self.serving = False  # True: the disk's refusals may pass, and the owner opens the file again
        self._connection = connection
        self._sql = sql
        self._url = url
        FORKS.when_forked(self._forget)

    def _forget(self) -> None:
        """Leave the connection alone in a forked child; `INHERITED` says when it is closed there."""
        INHERITED.add(self._connection)

    def run(self, name: str, values: Values = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self._connection.execute(self._sql[name], values)

    def reconnect(self, connection: sqlite3.Connection) -> None:
        """Use a new connection from now on: the file was opened again."""
        self._connection = connection
        self.connected = True

    def disconnect(self) -> None:
        """Close the connection and leave everything in the file as it is."""
        self.connected = False
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def snapshot(self, work: Callable[["Database"], T]) -> T:
        """Let `work` read one state of the store, whatever is committed meanwhile."""
        try:
            self._begin_to_read()
            try:
                return work(self)
            finally:
                self.rollback()
        except sqlite3.Error as error:
            failure = self.failure(error)
            if failure is not None:
                raise failure from error
            raise

    def _begin_to_read(self) -> None:
        try:
            self._connection.execute("BEGIN")
        except sqlite3.ProgrammingError as error:  # disconnected
            if not self.serving:
                raise
            raise StoreFailingError(self._url, "its file is being opened again") from error

    def rollback(self) -> None:
        """Undo everything since the transaction began."""
        # A full disk or an I/O error may have ended it already.
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def failure(self, error: BaseException) -> StoreError | None:
        """Give the failure of the file behind an error, or None when the door itself is to blame."""
        if isinstance(error, sqlite3.Error) and _primary_code(error) in _FAILURES:
            return self.translated(error)
        return None

    def translated(self, error: sqlite3.Error) -> StoreError:
        """Translate what the file refuses; while it is served, what a disk refuses may pass."""
        return (translated_while_serving if self.serving else translated)(error, self._url)

    def whole(self, run: int, stored: bytes) -> bytes:
        """Give the body that a row stores, or refers to."""
        n = referred(stored)
        if n is None:
            return stored
        row = self.run("read_large", {"run": run, "n": n}).fetchone()
        if row is None:
            raise StoreCorruptError(self._url, f"blob {n} of run {run} is missing")
        body: bytes
        body, upload, size = row
        return body if upload is None else self._joined(run, n, upload, size)

    def _joined(self, run: int, n: int, upload: int, size: int) -> bytes:
        """Join the chunks of a large body; it grows in place, so it is in memory once."""
        whole = BytesIO()
        for (chunk,) in self.run("read_chunks", {"run": run, "upload": upload}):
            whole.write(chunk)
        if whole.tell() != size:
            raise StoreCorruptError(self._url, f"chunks of blob {n} of run {run} are missing")
        return whole.getvalue()

    def size(self, run: int, stored: bytes | None) -> int:
        """Give how many bytes a body has that a row stores, or refers to; it is not read for that."""
        if stored is None:
            return 0
        n = referred(stored)
        if n is None:
            return len(stored)
        row = self.run("blob_size", {"run": run, "n": n}).fetchone()
        return 0 if row is None else int(row[0])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Writer(Database):
    """The one connection that writes; its transactions are those of group commit."""

    def __init__(  # noqa: PLR0913 - one more than every connection
        self,
        connection: sqlite3.Connection,
        sql: Mapping[str, str],
        url: str,
        now: StoreTime,
        files: StoreFiles | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        super().__init__(connection, sql, url, now, bounds)
        self.files = files
        self._tails = Tails()
        self._has_quotas: bool | None = None  # unknown in this transaction
        self._wide: dict[str, str] = {}  # statements that insert many rows
        self._changes = 0
        self._durable = True
        self._bound: Micros = 0  # unknown yet: the first commit writes it
        self._version = self._tails_version = self.version()

    def run_many(self, name: str, rows: Iterable[Values]) -> int:
        """Run one statement for each row; gives how many rows were changed."""
        return self._connection.executemany(self._sql[name], rows).rowcount

    def insert(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run an INSERT that ends with the values of one row for all rows, many of them with each execution.

        An execution opens the table and all of its indexes: for one row that is a tenth of the work.
        """
        wide = self._wide.get(name)
        if wide is None:
            text = self._sql[name].rstrip()
            wide = self._wide[name] = text + f", {text[text.rindex('(') :]}" * (ROWS_AT_ONCE - 1)
        one_by_one = len(rows) - len(rows) % ROWS_AT_ONCE
        for first in range(0, one_by_one, ROWS_AT_ONCE):
            self._connection.execute(wide, [*chain.from_iterable(rows[first : first + ROWS_AT_ONCE])])
        if one_by_one < len(rows):
            self.run_many(name, rows[one_by_one:])

    @property
    def has_quotas(self) -> bool:
        """True if any namespace has a quota of runs; read once in a transaction."""
        if self._has_quotas is None:
            self._has_quotas = bool(self.run("any_quota").fetchone()[0])
        return self._has_quotas

    def forget_quotas(self) -> None:
        """Read again whether there are quotas."""
        self._has_quotas = None

    def begin(self, *, durable: bool = True) -> None:
        """Begin to write: the lock is taken now, so that nothing read in the transaction can be outdated."""
        if self.files is not None and self.files.lost is not None:
            raise self.files.lost
        try:
            if durable is not self._durable:
                self._connection.execute(_DURABLE if durable else _HASTY)  # refused inside a transaction
                self._durable = durable
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self.translated(error) from error
        self._changes = self._connection.total_changes
        self._has_quotas = None

    def commit(self) -> bool:
        """Make it durable; false when there was nothing to write.

        Raises StoreReplacedError if the files are no longer in their places: then the commit is durable nowhere.
        """
        wrote = self._connection.total_changes != self._changes
        bound = self._bound
        try:
            # No commit may carry a time above the bound. Raising it ahead makes that one small write in many commits.
            if wrote and (now := self.now()) > bound:
                bound = now + TIME_SLACK
                self.run("set_time", {"time": bound})
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.rollback()
            raise self.translated(error) from error
        self._bound = bound
        if wrote and self.files is not None:
            self.files.check()
        return wrote

    def check_files(self) -> None:
        """Raise StoreReplacedError if the store's files are no longer those that were opened."""
        if self.files is not None:
            self.files.check_thoroughly()

    def shorten_log(self) -> None:
        """Empty a log that has outgrown its limit; a reader that still needs it is not waited for."""
        if self.files is None or self.files.log_size() <= LOG_LIMIT:
            return
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute(_IMPATIENT)
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.execute(_PATIENT)

    @property
    def lost(self) -> StoreReplacedError | None:
        """The reason why the file can no longer be served, once a check has found one."""
        return None if self.files is None else self.files.lost

    def reconnect(self, connection: sqlite3.Connection) -> None:
        """Use a new connection from now on, and prove that it writes; raises StoreError if it does not.

        What a failed flush has left in the log may be on the disk or not. So all of the log that is valid is copied
        into the file, and flushed there, before anything is built upon it.
        """
        super().reconnect(connection)
        self._tails.forget()
        self._durable = True
        self._bound = 0
        try:
            self._version = self.version()
            self._connection.execute("BEGIN IMMEDIATE")
            self.run("set_time", {"time": self.now() + TIME_SLACK})
            self._connection.execute("COMMIT")
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            self.rollback()
            raise self.translated(error) from error

    def rollback(self) -> None:
        """Undo everything since the transaction began."""
        self._tails.forget()
        super().rollback()

    @property
    def tails(self) -> Tails:
        """The newest entries of journals that this connection has appended; none after a commit of another one."""
        version = self.version()
        if version != self._tails_version:
            self._tails.forget()
            self._tails_version = version
        return self._tails

    def forget_tails(self) -> None:
        """Forget the newest entries of journals: some are deleted."""
        self._tails.forget()

    def version(self) -> int:
        """Give a number that changes when another connection has committed to the file."""
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def changed_by_others(self) -> bool:
        """Say whether another connection has committed since this was asked before."""
        before, self._version = self._version, self.version()
        return self._version != before

    def spill(self, run: int, body: bytes) -> bytes:
        """Keep a large body as a blob of its run; gives what the row stores: a reference, or a small body itself."""
        if fits(body):
            return body
        if isinstance(body, Uploaded):
            return self._take_upload(run, body)
        (n,) = self.run("add_blob", {"run": run, "body": body}).fetchone()
        return reference(n)

    def _take_upload(self, run: int, uploaded: Uploaded) -> bytes:
        """Make an upload a blob of its run; refuse one that is not complete."""
        this: Named = {"run": run, "id": uploaded.id}
        (there,) = self.run("count_chunks", this).fetchone()
        if there != uploaded.chunks:
            raise ValueError(
                f"turn refused: a large body was not uploaded whole; {there} of {uploaded.chunks} chunks are there"
            )
        (n,) = self.run("add_uploaded_blob", {**this, "size": uploaded.size}).fetchone()
        self.run("delete_upload", this)
        return reference(n)

    def close(self) -> None:
        """Close; first the bound is lowered to the time it is, so that the next clock starts without a jump."""
        files = self.files
        if files is not None and not files.intact():
            self._abandon(files)
            return
        if files is not None:
            files.unguard()
        with contextlib.suppress(sqlite3.Error):
            self.run("set_time", {"time": self.now()})
        super().close()

    def _abandon(self, files: StoreFiles) -> None:
        """Close without deleting anything by its name: that name may be another file's now.

        The log is written into its database first: a file that was moved away then has all that was acknowledged.
        """
        if files.only_owner_lost():
            files.unguard()
        elif files.log_can_be_written_back():
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        super().close()


def json_text(values: Sequence[int] | Sequence[str] | Sequence[tuple[int, int]] | Mapping[int, int]) -> str:
    """Write a list as JSON, the way it enters a statement."""
    return msgspec.json.encode(values).decode()


def until(now: Micros, lasting: Micros | None) -> Micros:
    """Give the end of a lease."""
    return FOREVER if lasting is None else now + lasting


# --- connections


class Inherited:
    """The connections that a forked child has from its parent.

    SQLite counts the locks of a process by itself. In the child it still counts those of the parent's connections, and
    would take none for a new connection to the same file. Closing the old connections first makes it forget. They were
    at rest when the process forked, so closing them changes no file. It drops locks of the child alone, which has none.
    A child that opens no file never calls SQLite: a thread of the user's may have held a mutex of SQLite at the fork.
    """

    def __init__(self) -> None:
        self._connections: list[sqlite3.Connection] = []
        self._cut = False

    def add(self, connection: sqlite3.Connection) -> None:
        """Take over a connection of the parent."""
        abandon(connection)
        self._connections.append(connection)
        self._cut = self._cut or not FORKS.was_clean

    def close(self, url: str) -> None:
        """Close the connections of the parent, before this process opens one of its own."""
        if self._cut:
            raise StoreError(
                f"store {url!r} cannot be opened in this process: it was forked while its parent was reading or writing"
                " the file for a long time; start the process by spawn, or fork before the store is used"
            )
        while self._connections:
            self._connections.pop().close()


INHERITED: Final = Inherited()


def connect_writer(path: Path | None, url: str, *, make: bool = True) -> sqlite3.Connection:
    """Open a file to write, or memory; only a file known to be a store, or empty, may come here: this changes it.

    Without `make`, a file that is missing is not made.
    """
    if path is not None and make:
        _make_private(path, url)
    mode = "rwc" if make else "rw"
    connection = _connect(":memory:" if path is None else f"file:{quote(str(path))}?mode={mode}", url, _WRITER)
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode not in ("wal", "memory"):
        connection.close()
        raise StoreReadOnlyError(url, f"its file system cannot keep a write-ahead log (journal mode {mode!r})")
    return connection


def _make_private(path: Path, url: str) -> None:
    """Make a missing file for its user alone; its log and index get the mode of the file. One that exists keeps it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreReadOnlyError(url, f"{path.name!r}: {error.strerror}") from error


def connect_reader(path: Path, url: str) -> sqlite3.Connection:
    """Open a file to read, beside whoever writes to it."""
    return _connect(f"file:{quote(str(path))}?mode=ro", url, _READER)


class NumberedConnection(sqlite3.Connection):
    """Bind sequences to numbered parameters by name: Python 3.12.0 to 3.12.3 warn about each of them otherwise.

    The warning is a defect of these versions (cpython issue 117995); SQLite names the parameter `?7` "7".
    """

    def execute(self, sql: str, parameters: Values = (), /) -> sqlite3.Cursor:  # type: ignore[override]
        """Run one statement."""
        return super().execute(sql, _named(parameters) if "?1" in sql else parameters)

    def executemany(self, sql: str, parameters: Iterable[Values], /) -> sqlite3.Cursor:  # type: ignore[override]
        """Run one statement for each row."""
        return super().executemany(sql, map(_named, parameters) if "?1" in sql else parameters)


def _named(values: Values) -> Values:
    return values if isinstance(values, Mapping) else {str(n): value for n, value in enumerate(values, 1)}


_CONNECTION: Final = NumberedConnection if (3, 12) <= sys.version_info < (3, 12, 4) else sqlite3.Connection


def _connect(uri: str, url: str, pragmas: tuple[str, ...]) -> sqlite3.Connection:
    INHERITED.close(url)
    with translating(url):
        # No implicit transactions; each connection is used by one thread at a time, but not always the same one.
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=_CONNECTION,
        )
        try:
            for pragma in pragmas:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
    return connection


# --- errors

_FAILURES: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
    }
)
_READS_THAT_FAILED: Final = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ})


def translated(error: sqlite3.Error, url: str) -> StoreError:
    """Say in the house's words what the file refuses."""
    match _primary_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnreachableError(
                f"store {url!r} is locked by a transaction that somebody else keeps open on its file"
                f" ({error}); nothing was written: end that transaction"
            )
        case sqlite3.SQLITE_FULL:
            return StoreFullError(url, str(error))
        case sqlite3.SQLITE_IOERR if _code(error) not in _READS_THAT_FAILED:
            # The kernel's words for a quota or a limit on file sizes reach us as a write that failed.
            return StoreFullError(url, f"{error} (no space, a quota, a limit on file sizes, or a failing disk)")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreReadOnlyError(url, str(error))
        case _:
            return StoreCorruptError(url, str(error))


def translated_while_serving(error: sqlite3.Error, url: str) -> StoreError:
    """Translate what the file refuses to a process that serves it: a disk may be mended, a damaged file may not."""
    match _primary_code(error):
        case sqlite3.SQLITE_IOERR if _code(error) != sqlite3.SQLITE_IOERR_WRITE:
            return StoreFailingError(url, str(error))
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreFailingError(url, str(error), "make the disk writable again", "cannot write to its disk")
        case _:
            return translated(error, url)


@contextlib.contextmanager
def translating(url: str) -> Iterator[None]:
    """Raise what the file refuses in the house's words."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, url) from error


def _primary_code(error: sqlite3.Error) -> int:
    return _code(error) & 0xFF  # the higher bits only say more


def _code(error: sqlite3.Error) -> int:
    # Errors that the driver itself raises have none.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
