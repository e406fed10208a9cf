"""Schema: what is there before anything is changed, and from one schema to the next, one process at a time."""

import contextlib
from typing import Any, Final, cast

import asyncpg
import msgspec

from watchbill.errors import StoreCorruptError, StoreNewerError, StoreOutdatedError
from watchbill.store.address import PostgresAddress
from watchbill.store.migrate import known_schema, migrations
from watchbill.store.postgres import refusals
from watchbill.store.postgres.connections import MIGRATING, Connection, connect
from watchbill.store.postgres.regions import give_regions_again, own_region
from watchbill.store.postgres.statements import in_schema, statements

ROLES_SINCE: Final = 19  # before that schema no role had a region
OLDEST: Final = 14  # multiranges aside, all that we use is in it; older ones get no fixes any more


class Found(msgspec.Struct, frozen=True):
    """What a server says about itself and the store."""

    read_only: bool
    there: bool  # the schema, though perhaps empty
    schema: int  # 0: no store yet
    region: str | None = None  # of the role that asks, which sees no rows of others; None: it sees all


async def inspect(connection: Connection, address: PostgresAddress) -> Found:
    """Look before anything is made; refuse a server that is too old, and a store that is newer or not ours."""
    sql = statements(address.schema)
    [row] = await connection.fetch(sql["find_schema"].text, address.schema)
    version, read_only, there, filled, usable, user = cast(Any, row)
    if version < OLDEST * 10_000:
        raise refusals.too_old(address, version, OLDEST)
    if not usable:
        raise asyncpg.InsufficientPrivilegeError(f"user {user!r} has no rights on schema {address.schema!r}")
    if not filled:
        return Found(read_only, there, 0)
    try:
        rows = await connection.fetch(sql["store_schema"].text)
        schema = int(cast(bytes, rows[0][0]))
    except (asyncpg.UndefinedColumnError, asyncpg.UndefinedFunctionError, IndexError, TypeError, ValueError) as error:
        raise StoreCorruptError(
            address.shown, f"schema {address.schema!r} has a table 'meta' that is not ours", "name another: ?schema="
        ) from error
    if schema > known_schema("postgres"):
        raise StoreNewerError(address.shown, schema, known_schema("postgres"))
    region = await own_region(connection, address) if schema >= ROLES_SINCE else None
    return Found(read_only, there, schema, region)


async def first_look(connection: Connection, address: PostgresAddress) -> Found:
    """Look, in one transaction: behind a pooler it pins one session."""
    await connection.execute("BEGIN")
    try:
        found = await inspect(connection, address)
    except BaseException:
        await _roll_back(connection)
        raise
    await connection.execute("ROLLBACK")
    return found


async def place_of(connection: Connection, address: PostgresAddress) -> str:
    """Name the database among all, so that a user's connection to another one is recognised."""
    try:
        [(place, _)] = await connection.fetch(statements(address.schema)["place"].text, address.schema)
    except (asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedFunctionError):
        return ""  # it does not say which server it is: no reason not to open, but no tx= there
    return cast(str, place)


async def check_readable(connection: Connection, address: PostgresAddress) -> None:
    """Refuse a store that must be made or upgraded first."""
    found, known = await first_look(connection, address), known_schema("postgres")
    if found.schema < known:
        raise StoreOutdatedError(address.shown, found.schema, known)


async def upgrade(address: PostgresAddress) -> tuple[int, int]:
    """Make or upgrade a store; gives its schema before and after.

    Each migration is one transaction, under a lock that ends with it: of many processes that start at once, one
    migrates, and the others find it done.
    """
    connection = await connect(address, MIGRATING)
    try:
        found = await first_look(connection, address)
        if found.read_only:
            raise refusals.read_only(address)
        if found.region is not None and found.schema < known_schema("postgres"):
            raise StoreOutdatedError(address.shown, found.schema, known_schema("postgres"))
        after = found.schema
        for number in sorted({migration.number for migration in migrations("postgres")}):
            if number > found.schema:
                after = await _apply(connection, address, number)
        return found.schema, after
    finally:
        await connection.close(timeout=2)


async def _apply(connection: Connection, address: PostgresAddress, number: int) -> int:
    sql = statements(address.schema)
    await connection.execute("BEGIN")
    try:
        await connection.fetch(sql["lock_migrations"].text, address.schema)
        found = await inspect(connection, address)
        if found.schema < number:
            if not found.there:
                await connection.execute(sql["make_schema"].text)
            for migration in migrations("postgres"):
                if migration.number == number:
                    await connection.execute(in_schema(migration.text, address.schema))
            if number == known_schema("postgres") and number > ROLES_SINCE:
                await give_regions_again(connection, address)  # all of its tables are there now
            await connection.fetch(sql["set_schema"].text, str(number).encode())
        await connection.execute("COMMIT")
    except BaseException:
        await _roll_back(connection)
        raise
    return max(number, found.schema)


async def _roll_back(connection: Connection) -> None:
    """Undo what was begun; on a connection that is lost the server does, and why it was lost is what counts."""
    with contextlib.suppress(Exception):
        await connection.execute("ROLLBACK")
