"""Two regions in one database, each with a role of its own; and a program that leaves traces in every table."""

import asyncio
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from tests.rooms.scene import LONG
from tests.servers import PostgresServer
from tests.store.postgres import address_of
from watchbill import App, Escalate, Limit, Retry, ask, attempt, publish, receive
from watchbill.store.open import migrate
from watchbill.store.postgres.connections import PLAIN, connect

OWNER = "harbour_owner"
ROLES = {"eu": "harbour_eu", "us": 'harbour "us"; DROP TABLE watchbill.run --'}  # names that must be quoted
DATABASE = "harbour"
NOWHERE = "http://127.0.0.1:9/nobody"  # an alert that stays


def quoted(role: str) -> str:
    doubled = role.replace('"', '""')
    return f'"{doubled}"'


class Harbour:
    """A database whose owner has given two regions their roles."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server

    def url(self, role: str) -> str:
        from urllib.parse import quote

        return self.server.url(DATABASE, user=quote(role, safe=""))

    @property
    def owner(self) -> str:
        return self.url(OWNER)

    def of(self, region: str) -> str:
        """Give the address for processes of a region."""
        return self.url(ROLES[region])

    async def ask(self, role: str, sql: str, *values: object) -> list[asyncpg.Record]:
        """Run one statement as somebody."""
        connection = await connect(address_of(self.url(role)), PLAIN)
        try:
            return await connection.fetch(sql, *values)
        finally:
            await connection.close()


@contextmanager
def a_harbour(server: PostgresServer) -> Iterator[Harbour]:
    """Make the database and its roles; every statement of theirs is in the server's log, with who said it."""
    harbour = Harbour(server)
    server.sql("ALTER SYSTEM SET log_line_prefix = '%u|'")
    for role in (OWNER, *ROLES.values()):
        server.sql(f"CREATE ROLE {quoted(role)} LOGIN")
        server.sql(f"ALTER ROLE {quoted(role)} SET log_statement = 'all'")
    server.sql(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
    server.sql("SELECT pg_reload_conf()")
    migrate(harbour.owner, list(ROLES.items()))
    try:
        yield harbour
    finally:
        server.sql(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        for role in (OWNER, *ROLES.values()):
            server.sql(f"DROP ROLE {quoted(role)}")
        server.sql("ALTER SYSTEM RESET log_line_prefix")
        server.sql("SELECT pg_reload_conf()")


class Trade:
    """What both regions do. `mark` is in all that its runs are given, say and become, and nowhere else."""

    def __init__(self, harbour: Harbour, region: str) -> None:
        self.region = region
        self.mark = f"only-for-{region}-eyes"
        self.app = app = App(harbour.of(region), alerts=NOWHERE)
        self.undone: list[str] = []
        self.mended = False

        @app.step(retry=Retry(1, backoff="10ms"), uses="bank")
        async def charge(secret: str) -> str:
            logging.getLogger("shop").warning("charging %s", secret)
            attempt().progress(1, total=2, note=secret)
            await attempt().checkpoint(secret)
            if attempt().number == 1:
                raise ConnectionError(f"no line to {secret}")
            return f"{attempt().restored} charged"

        @app.step
        async def pack(secret: str) -> str:
            return secret * 20_000

        @app.step(limit=Limit(at_once=1, key="secret"))
        async def weigh(secret: str) -> int:
            return len(secret)

        @app.step
        async def book(secret: str) -> str:
            return f"{secret} booked"

        @book.undo
        async def unbook(booked: str | None, secret: str) -> None:
            self.undone.append(secret)

        @app.step(retry=Retry(0), then=[Escalate("harbour master")])
        async def inspect(secret: str) -> str:
            if not self.mended:
                raise RuntimeError(f"{secret} leaks")
            return secret

        @app.step(retry=0)
        async def steer(secret: str) -> str:
            if not self.mended:
                raise RuntimeError(f"{secret} is off its course")
            return secret

        @app.workflow
        async def voyage(secret: str) -> str:
            return await steer(secret)

        @app.workflow
        async def crate(secret: str) -> str:
            return await pack(secret)

        @app.workflow
        async def ship(secret: str) -> str:
            publish("cargo", secret)
            said = [await charge(secret), await crate(secret), str(await weigh(secret))]
            return " ".join([*said, await receive("bill", str)])

        @app.workflow
        async def doomed(secret: str) -> None:
            await book(secret)
            raise ValueError(f"{secret} sank")

        @app.workflow
        async def search(secret: str) -> str:
            return await inspect(secret)

        @app.workflow
        async def wonder(secret: str) -> bool:
            return await ask(f"Is {secret} heavy?", form=bool)

        @app.workflow(region="eu" if region == "us" else "us")
        async def abroad(secret: str) -> str:
            return secret

        @app.workflow
        async def smuggle(secret: str) -> str:
            return await abroad(secret)

        @app.workflow(name=f"tide-{region}", every="1h", region=region)
        async def tide(secret: str = self.mark) -> None: ...

        self.ship, self.doomed, self.search, self.wonder, self.smuggle = ship, doomed, search, wonder, smuggle
        self.voyage = voyage

    def new(self, name: str) -> str:
        """Give a name that nothing had before."""
        return f"{name}-{uuid.uuid4().hex}"

    def start(self, workflow: Any, name: str) -> Any:
        """Start a run of this region, whose id and tags carry the mark, too."""
        mark = self.mark
        return self.app.start(workflow, mark, id=f"{name}-{mark}", region=self.region, tags=[mark])

    async def runs(self, workflow: Any) -> list[str]:
        """Give the ids that a list of the runs of a workflow shows."""
        return [status.id async for status in self.app.runs(workflow=workflow)]


async def until(fits: Any) -> None:
    """Ask again and again, until what was asked for is there."""
    async with asyncio.timeout(LONG):
        while not await fits():
            await asyncio.sleep(0)


def is_in(mark: str, value: object) -> bool:
    """Say whether a column has a mark."""
    if isinstance(value, bytes):
        return mark.encode() in value
    if isinstance(value, list | tuple):
        return any(is_in(mark, one) for one in value)
    return isinstance(value, str) and mark in value
