"""Regions: a role of the database for a region, which sees the rows of that region and no others.

The server enforces it, by row-level security: a policy for each table and role. Policies do not bind whoever owns the
tables, so nothing changes for processes that connect as the owner. All names are quoted by the server itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from watchbill.errors import StoreError, StoreRegionError
from watchbill.store.address import PostgresAddress
from watchbill.store.postgres.connections import MIGRATING, Connection, connect
from watchbill.store.postgres.statements import statements


async def own_region(connection: Connection, address: PostgresAddress) -> str | None:
    """Give the region whose rows this connection sees; None: all of them."""
    [row] = await connection.fetch(statements(address.schema)["role_region"].text)
    bound, regions, role = cast(Any, row)
    if not bound:
        return None
    if len(regions) != 1:
        what = "of several regions" if regions else "of no region"
        raise StoreRegionError(
            address.shown,
            f"role {role!r} is {what} ({', '.join(sorted(regions)) or 'it would see no rows'}): connect as the role of"
            f" one region, or let the owner say: watchbill migrate --region NAME={role}",
        )
    region: str = regions[0]
    return region


async def give_regions(address: PostgresAddress, wanted: Sequence[tuple[str, str]]) -> None:
    """Give each region its role, all or none, as the owner of the tables; again changes nothing."""
    connection = await connect(address, MIGRATING)
    try:
        await connection.execute("BEGIN")
        sql = statements(address.schema)
        await connection.fetch(sql["lock_migrations"].text, address.schema)
        for region, role in wanted:
            await _check(connection, address, region, role)
            await _give(connection, address, region, role)
            await _say(connection, address, "keep_region", {"role": role, "region": region})
            await _say(connection, address, "hand_over_incidents", {"region": region})
            await _say(connection, address, "leave_incidents", {"region": region})
        await _part(connection, address)
        await _say(connection, address, "share_incidents", {})
        await _say(connection, address, "end_left_incidents", {})
        await connection.execute("COMMIT")
    finally:
        await connection.close(timeout=2)


async def give_regions_again(connection: Connection, address: PostgresAddress) -> None:
    """Give the roles of all regions what they need of a schema that has just been upgraded."""
    for role, region in cast(
        Sequence[Any], await _say(connection, address, "region_roles", {"schema": address.schema})
    ):
        await _give(connection, address, region, role)


async def _check(connection: Connection, address: PostgresAddress, region: str, role: str) -> None:
    [row] = await _say(connection, address, "role_fit", {"role": role, "schema": address.schema})
    owner, may, there, free, owns = cast(Any, row)
    if not may:
        raise StoreError(
            f"store {address.shown!r}: only {owner!r}, who owns its tables, can give region {region!r} a role:"
            " connect as that user"
        )
    if not there:
        raise StoreError(
            f"store {address.shown!r}: there is no role {role!r} for region {region!r}: make it first, by"
            " CREATE ROLE ... LOGIN"
        )
    if free or owns:
        why = "is a superuser or has BYPASSRLS" if free else f"is {owner!r}, who owns the tables, or a member of it"
        raise StoreError(
            f"store {address.shown!r}: role {role!r} {why}, so that it sees all rows whatever is said: give region"
            f" {region!r} another one"
        )


async def _part(connection: Connection, address: PostgresAddress) -> None:
    """Drop what kept code from before regions working: by it two regions could not have one cause open."""
    for (text,) in await _say(connection, address, "indexes_before_regions", {"schema": address.schema}):
        await connection.execute(cast(str, text))


async def _give(connection: Connection, address: PostgresAddress, region: str, role: str) -> None:
    names = {"region": region, "role": role, "schema": address.schema}
    [(script,)] = await _say(connection, address, "region_texts", names)
    await connection.execute(cast(str, script))


async def _say(
    connection: Connection, address: PostgresAddress, name: str, values: Mapping[str, object]
) -> Sequence[Sequence[object]]:
    statement = statements(address.schema)[name]
    return await connection.fetch(statement.text, *[values[given] for given in statement.names])
