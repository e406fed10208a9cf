"""PostgreSQL past all doors: an empty store for each test, and what a test wants to see or break by hand."""

import re

import asyncpg

from watchbill.env import SystemEnv
from watchbill.store.address import PostgresAddress, parse_url
from watchbill.store.open import open_store
from watchbill.store.postgres.connections import PLAIN, connect

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


LARGE = 256 << 10  # bytes


async def emptied(url: str) -> None:
    """Empty the store of an address, made if there is none: deleting a few rows is quicker than making tables.

    But rows that are deleted are still there, in the way of every scan and in what the planner believes, until somebody
    clears them away: after a test that had many, a table is made anew.
    """
    address = address_of(url)
    connection = await connect(address, PLAIN)
    try:
        tables = await connection.fetch(
            "SELECT tablename, pg_relation_size(format('%I.%I', schemaname, tablename)::regclass) > $2 FROM pg_tables"
            " WHERE schemaname = $1 AND tablename <> 'meta'",
            address.schema,
            LARGE,
        )
        if tables:
            # One script is one transaction, and one flush.
            script = "".join(
                f'{"TRUNCATE" if is_large else "DELETE FROM"} "{address.schema}"."{table}";'
                for table, is_large in tables
            )
            await connection.execute(f"{script} SELECT setval('\"{address.schema}\".term', 1, false)")
            return
    finally:
        await connection.close()
    await (await open_store(url, SystemEnv())).close()
