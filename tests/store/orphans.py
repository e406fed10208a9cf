"""What cannot be, past all doors: what a self-audit finds in a store now, and what one has repaired ever."""

import contextlib
import functools
import sqlite3
from pathlib import Path

import asyncpg

from tests.servers import USER
from tests.store.postgres import address_of, keeper
from watchbill import App
from watchbill.clock import SystemClock
from watchbill.model.orphan import AuditPlace, Orphan, OrphanCount
from watchbill.store.postgres import audit as postgres
from watchbill.store.postgres.connections import PLAIN, Connection, Session, connect
from watchbill.store.postgres.statements import statements
from watchbill.store.protocol import EVERY, Store
from watchbill.store.queries import load_queries
from watchbill.store.sqlite import audit as sqlite
from watchbill.store.sqlite.database import Database
from watchbill.store.sqlite.time import StoreTime

MEMORY = "sqlite:///:memory:"
Wrong = list[Orphan | OrphanCount]
_statements = functools.cache(statements)
NO_STORE = (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InvalidCatalogNameError)


async def wrong_in(url: str) -> Wrong:
    """Look into whatever store is at an address, whoever has it open; nothing where there is none."""
    if url.startswith("sqlite"):
        return wrong_in_file(Path(url.removeprefix("sqlite:///")))
    return await wrong_on_server(url) if url.startswith("postgres") else []


def wrong_in_file(path: Path) -> Wrong:
    """Look into a file, past its owner; nothing in one that is no store, or that a test has broken."""
    if not path.is_file():
        return []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA query_only = ON")
        db = Database(connection, load_queries("sqlite"), str(path), StoreTime(SystemClock(), 0))
        try:
            return [*sqlite.audit(db, AuditPlace(), EVERY).orphans, *sqlite.orphans(db)]
        except sqlite3.DatabaseError:
            return []


async def wrong_on_server(url: str) -> Wrong:
    """Look into a schema of a server; nothing where there is none, or one that a test has left half made."""
    address = address_of(url)
    try:
        if address.user == USER and address.database == USER and "schema=" not in url:
            return await keeper(url).run(lambda connection: _wrong(connection, address.schema))
        connection = await connect(address, PLAIN)
    except (asyncpg.InvalidAuthorizationSpecificationError, *NO_STORE):
        return []  # or the role of a region that went with its test: its owner is looked at, too
    try:
        return await _wrong(connection, address.schema)
    except NO_STORE:
        return []
    finally:
        await connection.close()


async def _wrong(connection: Connection, schema: str) -> Wrong:
    db = Session(connection, _statements(schema), lambda: None)
    return [*(await postgres.audit(db, AuditPlace(), EVERY)).orphans, *await postgres.orphans(db)]


async def wrong_in_memory(app: App) -> Wrong:
    """Look into a store that only the App that has it can see."""
    hall = vars(app)["_made_hall"]
    store: Store | None = None if hall is None or app.url != MEMORY else vars(hall)["_store"]
    if store is None:
        return []
    look = await store.supervisor.audit(AuditPlace(), EVERY)
    return [*look.orphans, *(await store.client.checkup(app.namespace, 1)).orphans]
