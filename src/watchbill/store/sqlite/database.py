"""Database: one connection to a store's file, its named statements, its time, and its errors in the house's words."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from watchbill.clock import SECOND, Clock, Micros
from watchbill.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from watchbill.model.lease import FOREVER
from watchbill.store.bodies import fits, reference, referred

T = TypeVar("T")
Value = int | float | str | bytes | None
Values = Mapping[str, Value] | Sequence[Value]
Named = dict[str, Value]

OLDEST_SQLITE: Final = (3, 37, 0)  # strict tables; RETURNING is older
BUSY_TIMEOUT: Final = 5.0  # seconds that the writer waits for a user's own transaction on the file before it complains
TIME_SLACK: Final[Micros] = SECOND // 10  # how far the bound of times runs ahead; a restart takes longer than this

# FULL: an acknowledged commit survives a power cut, which NORMAL does not promise for the last ones.
# A connection's own scratch tables and rollbacks of single statements need no files.
_DURABLE = "PRAGMA synchronous = FULL"
_HASTY = "PRAGMA synchronous = NORMAL"  # for marks that must survive the process only; the next commit flushes them too
_WRITER = ("PRAGMA journal_mode = WAL", _DURABLE, "PRAGMA temp_store = MEMORY")
_READER = ("PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY")


class StoreTime:
    """The store's own clock: the host's wall clock, read once, then elapsed time since boot, which never goes back."""

    __slots__ = ("_boot", "_zero")

    def __init__(self, clock: Clock, not_below: Micros) -> None:
        self._boot = clock.boot
        self._zero = max(clock.wall(), not_below) - clock.boot()

    def __call__(self) -> Micros:
        """Give the time."""
        return self._zero + self._boot()


class Database:
    """One connection that reads: statements by name, snapshots, large bodies made whole."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str], url: str, now: StoreTime) -> None:
        self.now = now
        self._connection = connection
        self._sql = sql
        self._url = url

    def run(self, name: str, values: Values = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self._connection.execute(self._sql[name], values)

    def snapshot(self, work: Callable[["Database"], T]) -> T:
        """Let `work` read one state of the store, whatever is committed meanwhile."""
        try:
            self._connection.execute("BEGIN")
            try:
                return work(self)
            finally:
                self.rollback()
        except sqlite3.Error as error:
            failure = self.failure(error)
            if failure is not None:
                raise failure from error
            raise

    def rollback(self) -> None:
        """Undo everything since the transaction began."""
        # A full disk or an I/O error may have ended it already.
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def failure(self, error: BaseException) -> StoreError | None:
        """Give the failure of the file behind an error, or None when the door itself is to blame."""
        if isinstance(error, sqlite3.Error) and _primary_code(error) in _FAILURES:
            return translated(error, self._url)
        return None

    def whole(self, run: int, stored: bytes) -> bytes:
        """Give the body that a row stores, or refers to."""
        n = referred(stored)
        if n is None:
            return stored
        row = self.run("read_blob", {"run": run, "n": n}).fetchone()
        if row is None:
            raise StoreCorruptError(self._url, f"blob {n} of run {run} is missing")
        body: bytes = row[0]
        return body

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Writer(Database):
    """The one connection that writes; its transactions are those of group commit."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str], url: str, now: StoreTime) -> None:
        super().__init__(connection, sql, url, now)
        self._changes = 0
        self._durable = True
        self._bound: Micros = 0  # unknown yet: the first commit writes it
        self._version = self.version()

    def run_many(self, name: str, rows: Iterable[Values]) -> int:
        """Run one statement for each row; gives how many rows were changed."""
        return self._connection.executemany(self._sql[name], rows).rowcount

    def begin(self, *, durable: bool = True) -> None:
        """Begin to write: the lock is taken now, so that nothing read in the transaction can be outdated."""
        with translating(self._url):
            if durable is not self._durable:
                self._connection.execute(_DURABLE if durable else _HASTY)  # refused inside a transaction
                self._durable = durable
            self._connection.execute("BEGIN IMMEDIATE")
        self._changes = self._connection.total_changes

    def commit(self) -> bool:
        """Make it durable; false when there was nothing to write."""
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
            raise translated(error, self._url) from error
        self._bound = bound
        return wrote

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
        (n,) = self.run("add_blob", {"run": run, "body": body}).fetchone()
        return reference(n)

    def close(self) -> None:
        """Close; first the bound is lowered to the time it is, so that the next clock starts without a jump."""
        with contextlib.suppress(sqlite3.Error):
            self.run("set_time", {"time": self.now()})
        super().close()


def json_text(values: Sequence[int] | Sequence[str] | Sequence[tuple[int, int]] | Mapping[int, int]) -> str:
    """Write a list as JSON, the way it enters a statement."""
    return msgspec.json.encode(values).decode()


def until(now: Micros, lasting: Micros | None) -> Micros:
    """Give the end of a lease."""
    return FOREVER if lasting is None else now + lasting


# --- connections


def connect_writer(path: Path | None, url: str) -> sqlite3.Connection:
    """Open a file to write, or memory; only a file known to be a store, or empty, may come here: this changes it."""
    connection = _connect(":memory:" if path is None else f"file:{quote(str(path))}?mode=rwc", url, _WRITER)
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode not in ("wal", "memory"):
        connection.close()
        raise StoreReadOnlyError(url, f"its file system cannot keep a write-ahead log (journal mode {mode!r})")
    return connection


def connect_reader(path: Path, url: str) -> sqlite3.Connection:
    """Open a file to read, beside whoever writes to it."""
    return _connect(f"file:{quote(str(path))}?mode=ro", url, _READER)


def _connect(uri: str, url: str, pragmas: tuple[str, ...]) -> sqlite3.Connection:
    with translating(url):
        # No implicit transactions; each connection is used by one thread at a time, but not always the same one.
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, cached_statements=256
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
