"""Restored: raise the fences of a store that was restored from a backup."""

from typing import cast

from watchbill.clock import SECOND
from watchbill.errors import StoreError
from watchbill.store.address import PostgresAddress
from watchbill.store.postgres import refusals
from watchbill.store.postgres.connections import MIGRATING, Connection, connect
from watchbill.store.postgres.schema import check_readable
from watchbill.store.postgres.statements import statements
from watchbill.store.restored import LEAST_RAISE, Raised


async def raise_fences_postgres(address: PostgresAddress) -> Raised:
    """Raise the term and the fences of open attempts; refuses while a process is alive on the store."""
    try:
        connection = await connect(address, MIGRATING)
        try:
            await check_readable(connection, address)
            return await _raise(connection, address)
        finally:
            await connection.close(timeout=2)
    except Exception as error:
        raise refusals.at_opening(error, address) from None


async def _raise(connection: Connection, address: PostgresAddress) -> Raised:
    sql = statements(address.schema)
    await connection.execute("BEGIN")
    try:
        await connection.fetch(sql["lock_migrations"].text, address.schema)
        living, left = cast(tuple[int, int], (await connection.fetch(sql["living_processes"].text, None))[0])
        if living:
            raise StoreError(
                f"store {address.shown!r} is in use: schedulers, agents or supervisors are alive on it, or just were;"
                f" stop them, wait {-(-left // SECOND)} s, then run `watchbill migrate --restored` again"
            )
        term = cast(int, (await connection.fetch(sql["raise_term"].text, LEAST_RAISE))[0][0])
        attempts = cast(int, (await connection.fetch(sql["raise_fences"].text, term))[0][0])
        await connection.execute("COMMIT")
    except BaseException:
        await connection.execute("ROLLBACK")
        raise
    return Raised(term, attempts)
