"""PostgreSQL past all doors: an empty store for each test, and what a test wants to see or break by hand."""

import asyncio
import functools
import re
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from watchbill.env import SystemEnv
from watchbill.store.address import PostgresAddress, parse_url
from watchbill.store.open import open_store
from watchbill.store.postgres.connections import HOT, PLAIN, Connection, connect

T = TypeVar("T")

# Of the sessions on a server, those that listen: they said so last, or have the locks of agents.
LISTENING = """(
    query LIKE 'LISTEN%' OR pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock')
)"""


def address_of(url: str) -> PostgresAddress:
    address = parse_url(url).postgres
    assert address is not None
    return address


def in_schema(url: str, schema: str) -> str:
    """Give the address of another store in the same database."""
    plain = re.sub(r"[?&]schema=[^&]*", "", url)
    return f"{plain}{'&' if '?' in plain else '?'}schema={schema}"


async def by_hand(url: str, sql: str, *values: object) -> list[asyncpg.Record]:
    """Run one statement; `watchbill.` stands for the store's schema."""
    address = address_of(url)
    connection = await connect(address, PLAIN)
    try:
        return await connection.fetch(sql.replace("watchbill.", f'"{address.schema}".'), *values)
    finally:
        await connection.close()


# As the doors plan: a plan from when all was empty would read a whole table for each of five thousand rows.
KEEPING = {**HOT, "statement_timeout": "60s"}


class Keeper:
    """One session for what is done before and after every test, on a loop of its own: it is there for all of them.

    A new one costs the server three milliseconds, and as much again for each few statements that it has not planned.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._connection: Connection | None = None
        self._loop = asyncio.SelectorEventLoop()
        threading.Thread(target=self._loop.run_forever, name=f"keeper of {address.schema}", daemon=True).start()

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do something on that session; on a new one if it has failed, for the server may have been started again."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._run(work), self._loop))

    async def _run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        if self._connection is not None:
            try:
                return await work(self._connection)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._connection.terminate()
                self._connection = None
        connection = await connect(self._address, KEEPING)
        try:
            await connection.execute("SET application_name = 'tests'")  # it is none of those that tests count
            result = await work(connection)
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection
        return result


@functools.cache
def keeper(url: str) -> Keeper:
    """Give the keeper of a store; for those that many tests use."""
    return Keeper(address_of(url))


LARGE = 256 << 10  # bytes


async def emptied(url: str) -> None:
    """Empty the store of an address, made if there is none: deleting a few rows is quicker than making tables.

    But rows that are deleted are still there, in the way of every scan and in what the planner believes, until somebody
    clears them away: after a test that had many, a table is made anew.
    """
    schema = address_of(url).schema
    if not await keeper(url).run(lambda connection: _empty(connection, schema)):
        await (await open_store(url, SystemEnv())).close()


async def _empty(connection: Connection, schema: str) -> bool:
    """Empty the tables that have rows; false when there are no tables."""
    tables = await connection.fetch(
        "SELECT name, pg_relation_size(name::regclass) > $2"
        " FROM pg_tables, format('%I.%I', schemaname, tablename) AS name"
        " WHERE schemaname = $1 AND tablename <> 'meta' ORDER BY 1",
        schema,
        LARGE,
    )
    if not tables:
        return False
    [used] = await connection.fetch(f"SELECT {', '.join(f'EXISTS (SELECT FROM {table})' for table, _ in tables)}")
    script = "".join(
        f"{'TRUNCATE' if is_large else 'DELETE FROM'} {table};"
        for (table, is_large), has_rows in zip(tables, used, strict=True)
        if has_rows or is_large
    )
    # One script is one transaction, and one flush.
    await connection.execute(f"{script} SELECT setval('\"{schema}\".term', 1, false)")
    return True
