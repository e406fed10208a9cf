"""Users of a program, each with a connection of their own to the store's database, by every driver that tx= takes."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import psycopg

from tests.store.postgres import address_of

DRIVERS = ["sqlite3", "asyncpg", "psycopg", "psycopg async"]


class User:
    """One open connection; whatever its driver, everything is awaited here."""

    connection: Any
    is_async = True

    async def note(self, word: str) -> None:
        """Insert a row of the user's own."""
        raise NotImplementedError

    async def notes(self) -> list[str]:
        """Read the user's rows."""
        raise NotImplementedError

    async def commit(self) -> None:
        """Commit."""
        raise NotImplementedError

    async def rollback(self) -> None:
        """Roll back."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close."""
        raise NotImplementedError


class SqliteUser(User):
    """By sqlite3, in the store's own file."""

    is_async = False

    def __init__(self, file: str) -> None:
        self.connection = sqlite3.connect(file)

    async def note(self, word: str) -> None:
        self.connection.execute("INSERT INTO note VALUES (?)", (word,))

    async def notes(self) -> list[str]:
        return [word for (word,) in self.connection.execute("SELECT word FROM note ORDER BY word")]

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()


class PsycopgUser(User):
    """By psycopg, not awaited."""

    is_async = False

    def __init__(self, place: dict[str, Any]) -> None:
        self.connection = psycopg.connect(**place)

    async def note(self, word: str) -> None:
        self.connection.execute("INSERT INTO note VALUES (%s)", (word,))

    async def notes(self) -> list[str]:
        found = [word for (word,) in self.connection.execute("SELECT word FROM note ORDER BY word")]
        self.connection.rollback()
        return found

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()


class AsyncPsycopgUser(User):
    """By psycopg, awaited."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection

    async def note(self, word: str) -> None:
        await self.connection.execute("INSERT INTO note VALUES (%s)", (word,))

    async def notes(self) -> list[str]:
        rows = await (await self.connection.execute("SELECT word FROM note ORDER BY word")).fetchall()
        await self.connection.rollback()
        return [word for (word,) in rows]

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()


class AsyncpgUser(User):
    """By asyncpg; its transactions are begun when there is something to write."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        if not self.connection.is_in_transaction():
            await self.connection.execute("BEGIN")

    async def note(self, word: str) -> None:
        await self.begin()
        await self.connection.execute("INSERT INTO note VALUES ($1)", word)

    async def notes(self) -> list[str]:
        return [word for (word,) in await self.connection.fetch("SELECT word FROM note ORDER BY word")]

    async def commit(self) -> None:
        await self.connection.execute("COMMIT")

    async def rollback(self) -> None:
        await self.connection.execute("ROLLBACK")

    async def close(self) -> None:
        await self.connection.close()


def file_of(url: str) -> str:
    """Give the file of a store on SQLite."""
    return url.removeprefix("sqlite:///")


def place_of(url: str) -> dict[str, Any]:
    """Give the place of a store on PostgreSQL, as psycopg takes it."""
    address = address_of(url)
    place = {"host": address.host, "port": address.port, "user": address.user, "dbname": address.database}
    return {name: value for name, value in place.items() if value is not None}


async def connect_asyncpg(url: str) -> Any:
    """Connect a user by asyncpg."""
    address = address_of(url)
    return await asyncpg.connect(
        host=address.host, port=address.port, user=address.user, password=address.password, database=address.database
    )


async def a_user(driver: str, url: str) -> User:
    """Connect a user to the database of a store."""
    match driver:
        case "sqlite3":
            return SqliteUser(file_of(url))
        case "psycopg":
            return PsycopgUser(place_of(url))
        case "psycopg async":
            return AsyncPsycopgUser(await psycopg.AsyncConnection.connect(**place_of(url)))
        case _:
            return AsyncpgUser(await connect_asyncpg(url))


@asynccontextmanager
async def user_of(driver: str, url: str) -> AsyncIterator[User]:
    """Connect a user for a while."""
    user = await a_user(driver, url)
    try:
        yield user
    finally:
        await user.close()


async def make_notes(url: str) -> None:
    """Make an empty table of the users' own beside the store's."""
    if url.startswith("sqlite"):
        with sqlite3.connect(file_of(url)) as connection:
            connection.execute("CREATE TABLE note (word TEXT)")
        connection.close()
        return
    connection = await connect_asyncpg(url)
    await connection.execute("DROP TABLE IF EXISTS note; CREATE TABLE note (word text)")
    await connection.close()
