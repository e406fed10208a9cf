"""Open: from an address to a store, step by step, so that what is wrong is found before anything is changed."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, Protocol

from watchbill.clock import Clock, Micros
from watchbill.env import Env
from watchbill.errors import (
    StoreClockError,
    StoreCorruptError,
    StoreError,
    StoreFailingError,
    StoreOutdatedError,
    StoreReadOnlyError,
    StoreUrlError,
)
from watchbill.events import log
from watchbill.store.address import PostgresAddress, StoreAddress, is_file, is_memory, parse_url
from watchbill.store.guest import Guest, visit
from watchbill.store.guest_store import GuestStore
from watchbill.store.migrate import fill, found_schema, known_schema, upgrade
from watchbill.store.owner import OwnerLock, named_owner, owner_path, refuse_second_opening, take_ownership
from watchbill.store.protocol import AgentAccess, ClientStore, Store, Transactions
from watchbill.store.queries import load_queries
from watchbill.store.reception import Driven, Reception
from watchbill.store.restored import LEAST_RAISE, Raised, floor_of_terms
from watchbill.store.sqlite.backup import copy_file
from watchbill.store.sqlite.burial import end_owned
from watchbill.store.sqlite.database import (
    OLDEST_SQLITE,
    Database,
    Writer,
    connect_reader,
    connect_writer,
    translated_while_serving,
    translating,
)
from watchbill.store.sqlite.files import StoreFiles
from watchbill.store.sqlite.lanes import OwnerLanes, Whole, on_thread
from watchbill.store.sqlite.reader import ReaderLanes, SqliteReader
from watchbill.store.sqlite.set_back import SetBack, set_back
from watchbill.store.sqlite.store import SqliteStore
from watchbill.store.sqlite.time import StoreTime, is_far_ahead
from watchbill.store.sqlite.transactions import SqliteTransactions

__all__ = [
    "MEMORY",
    "Driven",
    "Guest",
    "Reader",
    "back_up",
    "connect_memory",
    "is_file",
    "is_memory",
    "migrate",
    "open_for_agent",
    "open_reader",
    "open_store",
    "parse_url",
    "raise_fences",
    "receiving_guests",
    "set_clock_back",
    "transactions_beside",
    "visit_owner",
]

MEMORY: Final = "sqlite:///:memory:"
# SQLite's file format: the header of a rollback journal, with the number of pages that the file had before.
_JOURNAL_HEADER: Final = Struct(">8s8xI")
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")


class Reader(ClientStore, Protocol):
    """The client's doors, of which only those that read will open."""

    async def close(self) -> None:
        """Let go of the store."""
        ...


async def open_store(
    url: str,
    env: Env,
    *,
    clock: Clock | None = None,
    lasting_leases: bool = True,
    memory: sqlite3.Connection | None = None,
) -> Store:
    """Open a store, making or upgrading it if need be; a file as its owner.

    `lasting_leases` says that this process alone drives a file, so that leases need no end, and those of the owner
    before ended with it; agents of other processes may be alive, and theirs end by time. A simulation says no: its many
    nodes share one store, and all leases end by `clock`. On PostgreSQL many processes share the store: leases end there
    by the server's clock, unless a test has one.
    `memory` is what a test keeps of a store in memory whose process has died: from `connect_memory`.
    """
    address = parse_url(url)
    if address.postgres is not None:
        _check_driver(address.postgres)
        from watchbill.store.postgres.store import open_postgres

        return await open_postgres(address.postgres, env, clock=clock)
    threads = Whole(env.threads("opener", 1))
    unused = ExitStack()  # closes what the opener's thread has opened; used by that thread alone until it has ended

    def open_file() -> _Opened:
        opened = _open(address, env, clock, memory, bury=lasting_leases)
        unused.callback(opened.close, connections=memory is None)
        return opened

    try:
        opened = await on_thread(threads, open_file)
        let_go = None if opened.owner is None else opened.owner.release
        lanes = OwnerLanes(url, env, opened.writer, opened.reader, let_go, opened.reopen)
        path = None if address.path is None else address.path.resolve()
        transactions = SqliteTransactions(url, path, now=opened.writer.now, new_id=env.new_id)
        return SqliteStore(url, lanes, opened.owner, transactions, lasting_leases=lasting_leases)
    except BaseException:
        # A cancelled caller does not wait for the thread, which may still be opening the file: it closes after that.
        threads.submit(unused.close, _ignore)
        raise
    finally:
        threads.close()


def _ignore(_: None, error: BaseException | None) -> None:
    if error is not None:
        log.error("a store that was opened for a cancelled caller could not be closed: %r", error)


def connect_memory() -> sqlite3.Connection:
    """Make memory for a store that outlives whoever opens it, as a file does; whoever made it closes it."""
    connection = connect_writer(None, MEMORY)
    fill(connection)
    return connection


def transactions_beside(url: str, env: Env) -> Transactions:
    """Give what a process that does not own a file can write to it: through its user's own connection."""
    path = _file(parse_url(url))
    return SqliteTransactions(url, path, now=env.clock.wall, new_id=env.new_id)


@asynccontextmanager
async def receiving_guests(store: Store, env: Env, driven: Callable[[], Driven]) -> AsyncIterator[None]:
    """Serve the owner's doors to other processes for a while; stores that are no files need no go-between."""
    path = parse_url(store.url).path
    if not isinstance(store, SqliteStore) or path is None:
        yield
        return
    reception = Reception(env, store, path.resolve(), driven=driven)
    await reception.open()
    try:
        yield
    finally:
        await reception.close()


async def visit_owner(url: str, env: Env) -> Guest | None:
    """Become the guest of the process that owns a file; None when nobody does, or takes in guests at the moment."""
    address = parse_url(url)
    threads = Whole(env.threads("visitor", 1))
    try:
        owner = await on_thread(threads, lambda: named_owner(_file(address)))
    except PermissionError as error:
        detail = f"this user may not read {owner_path(_file(address)).name!r}"
        raise StoreReadOnlyError(url, detail, "run this program as the user whose processes serve the store") from error
    finally:
        threads.close()
    return await visit(url, env, owner)


async def open_for_agent(url: str, env: Env, *, clock: Clock | None = None) -> AgentAccess:
    """Open what an agent in a process of its own needs: PostgreSQL itself, or a file through the process that owns it.

    Waits until somebody has the rooms of a file open, and finds whoever has them next when that process is gone.
    Raises StoreOwnedError when that process refuses this one. `clock` as for `open_store`: of a test on PostgreSQL.
    """
    if not is_file(url):
        if is_memory(url):
            raise StoreUrlError(url, "a store in memory has its agent in its own process: no other one can reach it")
        return await open_store(url, env, clock=clock)
    access = GuestStore(url, env, transactions_beside(url, env), lambda: visit_owner(url, env))
    try:
        await access.opened()
    except BaseException:
        await access.close()
        raise
    return access


def open_reader(url: str, env: Env) -> Reader:
    """Give the client's doors that read, beside whoever writes; the first read opens the store."""
    address = parse_url(url)
    if address.postgres is not None:
        _check_driver(address.postgres)
        from watchbill.store.postgres.store import PostgresReader

        return PostgresReader(address.postgres, env)
    return SqliteReader(ReaderLanes(url, Whole(env.threads("reader", 1)), lambda: _open_to_read(address, env.clock)))


def migrate(url: str, roles: Sequence[tuple[str, str]] = ()) -> tuple[int, int]:
    """Make or upgrade a store (a file only if nobody owns it at the moment); gives its schema before and after.

    `roles` are regions, each with the role of the database that its processes connect as.
    """
    address = parse_url(url)
    if address.postgres is not None:
        _check_driver(address.postgres)
        from watchbill.store.postgres.store import migrate_postgres

        return asyncio.run(migrate_postgres(address.postgres, roles))
    if roles:
        raise StoreUrlError(
            url, "a file has no roles: who may read it reads all of it; regions get roles on PostgreSQL"
        )
    path = _file(address)
    sql = load_queries("sqlite")
    with ExitStack() as cleanup, translating(url):
        cleanup.callback(_become_owner(path, url, sql).release)
        connection = connect_writer(path, url)
        cleanup.callback(connection.close)
        return upgrade(connection, sql, url)


def raise_fences(url: str, clock: Clock) -> Raised:
    """Raise the term of a restored store and the fences of its open attempts; refuses while a process lives on it."""
    address = parse_url(url)
    if address.postgres is not None:
        _check_driver(address.postgres)
        from watchbill.store.postgres.restored import raise_fences_postgres

        return asyncio.run(raise_fences_postgres(address.postgres))
    path, sql = _file(address), load_queries("sqlite")
    with ExitStack() as cleanup, translating(url):
        cleanup.callback(_become_owner(path, url, sql).release)
        connection = connect_writer(path, url)
        cleanup.callback(connection.close)
        connection.execute("BEGIN IMMEDIATE")
        floor = floor_of_terms(_time(connection, sql, clock)())
        (term,) = connection.execute(sql["raise_term"], {"least": LEAST_RAISE, "floor": floor}).fetchone()
        attempts = connection.execute(sql["raise_fences"], {"term": term}).rowcount
        connection.execute("COMMIT")
        return Raised(term, attempts)


def set_clock_back(url: str, clock: Clock) -> SetBack:
    """Set the time of a file back to this machine's clock; nothing happens if it is not ahead."""
    address = parse_url(url)
    if address.postgres is not None:
        raise StoreUrlError(url, "the time of PostgreSQL is its server's clock: set that")
    path, sql = _file(address), load_queries("sqlite")
    with ExitStack() as cleanup, translating(url):
        cleanup.callback(_become_owner(path, url, sql).release)
        connection = connect_writer(path, url)
        cleanup.callback(connection.close)
        upgrade(connection, sql, url)
        return set_back(connection, sql, clock.wall())


def back_up(url: str, destination: Path) -> tuple[int, int]:
    """Copy a file to a new one, consistently, beside the process that serves it; gives its schema and its bytes."""
    address = parse_url(url)
    path, sql = _file(address), load_queries("sqlite")
    _check_sqlite(url)
    if not path.exists():
        raise StoreUrlError(url, f"there is no file {str(path)!r}")
    with translating(url):
        schema = _inspect(path, url, sql)
        return schema, copy_file(path, url, destination)


def _check_driver(address: PostgresAddress) -> None:
    """Refuse PostgreSQL without its driver; it is imported when such a store is opened, never before."""
    try:
        import asyncpg  # noqa: F401
    except ImportError as missing:
        raise StoreError(
            f"store {address.shown!r} needs the driver of PostgreSQL: pip install 'watchbill[postgres]'"
        ) from missing


class _Opened(NamedTuple):
    writer: Writer
    reader: Database
    owner: OwnerLock | None
    reopen: Callable[[], None] | None  # None for memory, which cannot be opened again

    def close(self, *, connections: bool) -> None:
        """Close what a cancelled caller cannot use; without `connections` release the lock alone."""
        with ExitStack() as cleanup:
            if self.owner is not None:
                cleanup.callback(self.owner.release)
            if connections:
                cleanup.callback(self.writer.close)  # last: it tidies the file up
                if self.reader is not self.writer:
                    cleanup.callback(self.reader.close)


def _open(
    address: StoreAddress, env: Env, clock: Clock | None, memory: sqlite3.Connection | None, *, bury: bool
) -> _Opened:
    url, sql, owner = address.url, load_queries("sqlite"), None
    _check_sqlite(url)
    with ExitStack() as cleanup, translating(url):
        path = None if address.path is None else _file(address)
        if path is not None:
            owner = _become_owner(path, url, sql)
            cleanup.callback(owner.release)
        connection = memory or (connect_memory() if path is None else connect_writer(path, url))
        cleanup.callback(connection.close)
        upgrade(connection, sql, url)
        now = _time(connection, sql, clock or env.clock, refused_by=url if bury else None)
        files = None if path is None or owner is None else StoreFiles(url, path, owner.path)
        writer = Writer(connection, sql, url, now, files, env.bounds)
        if bury:
            _bury(writer, env)
        reader: Database = writer
        if path is not None:
            second = connect_reader(path, url)
            cleanup.callback(second.close)
            reader = Database(second, sql, url, now, env.bounds)
        if files is not None:
            files.guard()
        reopen = None if path is None or files is None else _reopening(path, url, writer, reader, files)
        cleanup.pop_all()
        return _Opened(writer, reader, owner, reopen)


def _reopening(path: Path, url: str, writer: Writer, reader: Database, files: StoreFiles) -> Callable[[], None]:
    """Give the function that opens the file again after the disk has refused it.

    That raises StoreFailingError when the disk still does, and any other StoreError when no trying again would help.
    """

    def reopen() -> None:
        files.check_all(log_too=reader.connected)  # else the log may have been written back by another process
        with ExitStack() as cleanup:
            try:
                connection = connect_writer(path, url, make=False)
                cleanup.callback(connection.close)
                second = None if reader.connected else connect_reader(path, url)
                if second is not None:
                    cleanup.callback(second.close)
            except StoreReadOnlyError as error:
                raise StoreFailingError(url, str(error)) from error
            except StoreError as error:
                if isinstance(error.__cause__, sqlite3.Error):
                    raise translated_while_serving(error.__cause__, url) from error
                raise
            writer.reconnect(connection)
            if second is not None:
                reader.reconnect(second)
                files.renew_log()
            files.guard()
            cleanup.pop_all()

    return reopen


def _open_to_read(address: StoreAddress, clock: Clock) -> Database:
    url, path, sql = address.url, _file(address), load_queries("sqlite")
    _check_sqlite(url)
    if not path.exists():
        raise StoreUrlError(url, f"there is no file {str(path)!r}")
    with ExitStack() as cleanup, translating(url):
        found, known = _inspect(path, url, sql), known_schema("sqlite")
        connection = connect_reader(path, url)
        cleanup.callback(connection.close)
        if found < known:
            raise StoreOutdatedError(url, found, known)
        reader = Database(connection, sql, url, _time(connection, sql, clock))
        cleanup.pop_all()
        return reader


def _file(address: StoreAddress) -> Path:
    """Give the file of an address, which may be missing, in a folder that may not."""
    if address.path is None:
        raise StoreUrlError(address.url, "a store in memory lives and ends inside its own process")
    try:
        path = address.path.resolve()
        if not path.parent.is_dir():
            raise StoreUrlError(address.url, f"there is no folder {str(path.parent)!r}")
        if path.exists() and not path.is_file():
            raise StoreUrlError(address.url, f"{str(path)!r} is not a file")
    except (OSError, RuntimeError) as error:  # RuntimeError: symbolic links in a circle
        raise StoreReadOnlyError(address.url, str(error)) from error
    return path


def _become_owner(path: Path, url: str, sql: Mapping[str, str]) -> OwnerLock:
    """Look before anything is made or changed, then take the lock."""
    refuse_second_opening(path, url)
    _inspect(path, url, sql)
    return take_ownership(path, url)


def _inspect(path: Path, url: str, sql: Mapping[str, str]) -> int:
    """Give the schema of a file; refuse one that is damaged, of another program or newer, without changing a byte.

    SQLite itself reads it: closing a descriptor of our own would drop the locks of a connection in this process.
    """
    if not path.exists():
        return 0
    # The log is looked at before the file, here and below: others may open or close it just now. A file with a log is
    # never empty; and once its log is gone, everything that was counted from the log is in the file.
    logged = _has_log(path)
    if path.stat().st_size == 0:
        if logged:
            # SQLite would take it for a new database, and delete the log with all that is in it.
            raise StoreCorruptError(url, "it is empty, but its write-ahead log is not")
        return 0
    if _was_being_made(path):
        return 0
    connection = connect_reader(path, url)
    try:
        found = found_schema(connection, sql, url)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    finally:
        connection.close()
    # SQLite takes a file of one byte for an empty one, and reads what is missing of its last page as zeros.
    if not _has_log(path) and path.stat().st_size < max(pages, 1) * page_size:
        raise StoreCorruptError(url, "file is not a database, or was cut off")
    return found


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _was_being_made(path: Path) -> bool:
    """Tell whether the process or the machine ended while SQLite made the file.

    Then a rollback journal is left, which says that the file was empty before. A reader cannot roll it back, a writer
    does it at once. Stores have no such journal later: they keep a write-ahead log.
    """
    try:
        with path.with_name(path.name + "-journal").open("rb") as journal:
            header = journal.read(_JOURNAL_HEADER.size)
    except OSError:
        return False
    if len(header) < _JOURNAL_HEADER.size:
        return False
    magic, pages_before = _JOURNAL_HEADER.unpack(header)
    return bool(magic == _JOURNAL_MAGIC and pages_before == 0)


def _time(
    connection: sqlite3.Connection, sql: Mapping[str, str], clock: Clock, refused_by: str | None = None
) -> StoreTime:
    latest: Micros = connection.execute(sql["latest_time"]).fetchone()[0]
    if refused_by is not None and is_far_ahead(latest, wall := clock.wall()):
        raise StoreClockError(refused_by, latest, wall)
    return StoreTime(clock, latest)


def _bury(writer: Writer, env: Env) -> None:
    """End what the owner before left behind: that we have the lock proves its death. Others need proof of their own."""
    writer.begin()
    end_owned(writer, env.is_dead)
    writer.commit()


def _check_sqlite(url: str) -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreError(
            f"store {url!r} needs SQLite {needed} or newer, this Python has {sqlite3.sqlite_version}:"
            " use a newer build of Python"
        )
