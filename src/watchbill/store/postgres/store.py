"""Store: the doors of all rooms around one database that many processes share."""

from collections.abc import Callable, Sequence
from typing import cast

import asyncpg

from watchbill.clock import Clock
from watchbill.env import Env
from watchbill.store.address import PostgresAddress
from watchbill.store.migrate import known_schema
from watchbill.store.postgres import refusals
from watchbill.store.postgres.agent import PostgresAgent
from watchbill.store.postgres.client import PostgresClient
from watchbill.store.postgres.connections import HOT, PLAIN, Connection, Connections, connect_first
from watchbill.store.postgres.hints import SharedHints
from watchbill.store.postgres.misled import look_anew
from watchbill.store.postgres.regions import give_regions
from watchbill.store.postgres.scheduler import PostgresScheduler
from watchbill.store.postgres.schema import check_readable, first_look, place_of, upgrade
from watchbill.store.postgres.statements import texts
from watchbill.store.postgres.supervisor import PostgresSupervisor
from watchbill.store.postgres.transactions import PostgresTransactions
from watchbill.store.protocol import Hint


class PostgresStore:
    """A store in one schema of a database. It knows nothing about who calls: many processes share it."""

    lasting_leases = False

    def __init__(self, lines: Connections, hints: SharedHints, place: str) -> None:
        self.url = lines.address.shown
        self.region = lines.region
        self.hinted = not lines.address.pooled  # nobody can listen through a pooler of transactions
        self.health = lines.health
        self._lines = lines
        self._hints = hints
        self._client = PostgresClient(lines, hints)
        self._scheduler = PostgresScheduler(lines, hints)
        self._agent = PostgresAgent(lines, hints)
        self._supervisor = PostgresSupervisor(lines, hints)
        self._transactions = PostgresTransactions(lines, place)

    @property
    def client(self) -> PostgresClient:
        """For handles and commands."""
        return self._client

    @property
    def scheduler(self) -> PostgresScheduler:
        """For schedulers."""
        return self._scheduler

    @property
    def agent(self) -> PostgresAgent:
        """For agents."""
        return self._agent

    @property
    def supervisor(self) -> PostgresSupervisor:
        """For supervisors."""
        return self._supervisor

    @property
    def transactions(self) -> PostgresTransactions:
        """For what is written in a user's own transaction."""
        return self._transactions

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` after each commit that may concern that room; gives the function that ends it."""
        return self._hints.listen(whom, wake, elsewhere=elsewhere)

    async def close(self) -> None:
        """Finish what is under way and let go of the store."""
        await self._lines.settle()
        await self._hints.close()
        await self._lines.close()


class PostgresReader(PostgresClient):
    """The client's doors, of which only those that read will open; the first read opens the connection."""

    def __init__(self, address: PostgresAddress, env: Env) -> None:
        lines = Connections(address, env, None, PLAIN, first=check_readable)
        super().__init__(lines, None)
        self._reading = lines

    async def close(self) -> None:
        """Let go of the store."""
        await self._reading.close()


async def open_postgres(address: PostgresAddress, env: Env, *, clock: Clock | None) -> PostgresStore:
    """Open a store, making or upgrading it if need be."""
    connection, (region, place, number) = await connect_first(address, HOT, env.clock, _look)
    env.renumber(number)
    lines = Connections(address, env, clock, region=region)
    if not address.pooled:
        await _greeted(lines, connection)
    lines.others.adopt(connection)
    lines.remedy = lambda db: look_anew(db, address.schema)
    return PostgresStore(lines, SharedHints(lines), place)


async def _greeted(lines: Connections, connection: Connection) -> None:
    try:
        await lines.server.greet(connection, turns=False, again=False)
    except BaseException as error:
        connection.terminate()
        if not isinstance(error, Exception):
            raise
        raise refusals.at_opening(error, lines.address) from None


async def _look(connection: Connection, address: PostgresAddress) -> tuple[str | None, str, int | None]:
    """Make or upgrade what is there if need be.

    Gives the region of our role, which database it is, and a number that no other process has.
    """
    found = await first_look(connection, address)
    if found.read_only:
        raise refusals.read_only(address)
    if found.schema < known_schema("postgres"):
        await upgrade(address)
    return found.region, await place_of(connection, address), await _draw_number(connection, address)


async def _draw_number(connection: Connection, address: PostgresAddress) -> int | None:
    """Draw a number for this process; None if its role may not: its ids are drawn then."""
    try:
        [(number,)] = await connection.fetch(texts(address.schema)["draw_number"])
    except asyncpg.InsufficientPrivilegeError:
        return None
    return cast(int, number)


async def migrate_postgres(address: PostgresAddress, roles: Sequence[tuple[str, str]] = ()) -> tuple[int, int]:
    """Make or upgrade a store, and give regions their roles; gives its schema before and after."""
    try:
        before, after = await upgrade(address)
        if roles:
            await give_regions(address, roles)
        return before, after
    except Exception as error:
        raise refusals.at_opening(error, address) from None
