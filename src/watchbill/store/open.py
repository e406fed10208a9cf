"""Open: from an address to a store, step by step, so that what is wrong is found before anything is changed."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from watchbill.clock import Clock, Micros
from watchbill.env import Env
from watchbill.errors import StoreCorruptError, StoreError, StoreOutdatedError, StoreReadOnlyError, StoreUrlError
from watchbill.store.address import PostgresAddress, StoreAddress, is_file, is_memory, parse_url
from watchbill.store.guest import Guest, visit
from watchbill.store.guest_store import GuestStore
from watchbill.store.migrate import fill, found_schema, known_schema, upgrade
from watchbill.store.owner import OwnerLock, named_owner, refuse_second_opening, take_ownership
from watchbill.store.protocol import AgentAccess, ClientStore, Store, Transactions
from watchbill.store.queries import load_queries
from watchbill.store.reception import Driven, Reception
from watchbill.store.sqlite.burial import end_owned
from watchbill.store.sqlite.database import (
    OLDEST_SQLITE,
    Database,
    StoreTime,
    Writer,
    connect_reader,
    connect_writer,
    translating,
)
from watchbill.store.sqlite.lanes import OwnerLanes, on_thread
from watchbill.store.sqlite.reader import ReaderLanes, SqliteReader
from watchbill.store.sqlite.store import SqliteStore
from watchbill.store.sqlite.transactions import SqliteTransactions

__all__ = [
    "MEMORY",
    "Driven",
    "Guest",
    "Reader",
    "connect_memory",
    "is_file",
    "is_memory",
    "migrate",
    "open_for_agent",
    "open_reader",
    "open_store",
    "parse_url",
    "receiving_guests",
    "transactions_beside",
    "visit_owner",
]

MEMORY: Final = "sqlite:///:memory:"


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
    threads = env.threads("opener", 1)
    try:
        opened = await on_thread(threads, lambda: _open(address, env, clock, memory, bury=lasting_leases))
    finally:
        threads.close()
    lanes = OwnerLanes(url, env, opened.writer, opened.reader)
    path = None if address.path is None else address.path.resolve()
    transactions = SqliteTransactions(url, path, now=opened.writer.now, new_id=env.new_id)
    return SqliteStore(url, lanes, opened.owner, transactions, lasting_leases=lasting_leases)


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
    threads = env.threads("visitor", 1)
    try:
        owner = await on_thread(threads, lambda: named_owner(_file(address)))
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
    return SqliteReader(ReaderLanes(url, env.threads("reader", 1), lambda: _open_to_read(address, env.clock)))


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
        now = _time(connection, sql, clock or env.clock)
        writer = Writer(connection, sql, url, now)
        if bury:
            _bury(writer, env)
        reader = writer if path is None else Database(connect_reader(path, url), sql, url, now)
        cleanup.pop_all()
        return _Opened(writer, reader, owner)


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


def _time(connection: sqlite3.Connection, sql: Mapping[str, str], clock: Clock) -> StoreTime:
    latest: Micros = connection.execute(sql["latest_time"]).fetchone()[0]
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
