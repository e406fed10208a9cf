"""Borrowed: a user's own connection, in whose open transaction something of ours is written, too.

What is written there commits or rolls back with the user's rows. No driver is imported for it: a connection can only be
of a driver that its program has imported. What is to be done is a generator that yields commands and gets rows, so that
it is written once for connections that are awaited and those that are not. All of it happens, or nothing: around it is
a savepoint, so that an error of ours leaves the user's transaction as it was.
"""

import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar, cast

import msgspec

from watchbill.errors import InvalidOptionError, StoreUnreachableError

T = TypeVar("T")
Row = Sequence[Any]  # what a driver gives is untyped
Values = Mapping[str, Any] | Sequence[Any]
Dialect = Literal["sqlite", "postgres"]

_VALUE: Final = r"(?<!:):([a-z]\w*)"
_FAILED = 3  # psycopg's word for a transaction that can only be rolled back
_IDLE = 0
_LOCKED = frozenset({5, 6})  # SQLITE_BUSY, SQLITE_LOCKED
_SHOWN: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_TAKES: Final = "tx= takes an open connection of asyncpg, psycopg 3 or sqlite3"


class Command(NamedTuple):
    """A statement whose values are written `:name`, and the values; those of SQLite may also be `?1`."""

    text: str
    values: Values


Work = Generator[Command, list[Row], T]


class Statement(NamedTuple):
    """A text with numbered values, and which value each number is."""

    text: str
    names: tuple[str, ...]


class Borrowed(Protocol):
    """A user's connection, whatever its driver."""

    @property
    def dialect(self) -> Dialect:
        """What it speaks."""
        ...

    @property
    def driver(self) -> str:
        """The name of its driver."""
        ...

    @property
    def is_async(self) -> bool:
        """True when its driver's calls are awaited."""
        ...

    def perform(self, work: Work[T]) -> T:
        """Do the work on a connection that is not awaited, all of it or nothing."""
        ...

    async def perform_async(self, work: Work[T]) -> T:
        """Do the work, awaiting the connection if it is to be awaited."""
        ...


def borrow(connection: object) -> Borrowed:
    """Recognise a user's connection; refuse anything else, a closed one, and one whose transaction has failed."""
    if _is(connection, "asyncpg", "connection.Connection", "pool.PoolConnectionProxy"):
        return AsyncpgConnection(connection)
    if _is(connection, "psycopg", "AsyncConnection"):
        return AsyncPsycopgConnection(connection)
    if _is(connection, "psycopg", "Connection"):
        return PsycopgConnection(connection)
    if _is(connection, "sqlite3", "Connection"):
        return SqliteConnection(connection)
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise InvalidOptionError(
        f"{_TAKES}, got {kind}: give the driver's own connection, not a pool, cursor, session or engine around it"
    )


def _is(connection: object, driver: str, *names: str) -> bool:
    module = sys.modules.get(driver)
    for name in names if module is not None else ():
        kind: Any = module
        for part in name.split("."):
            kind = getattr(kind, part, None)
        if isinstance(kind, type) and isinstance(connection, kind):
            return True
    return False


# --- where it leads


class Place(msgspec.Struct, frozen=True):
    """Where a store is, so that a connection to somewhere else is refused before it changes anything."""

    url: str
    dialect: Dialect
    look: str  # the statement that says where a connection leads
    answer: str  # what it says when it leads to the store: a file, or the name of a database among all
    schema: str = ""


def check_kind(place: Place, borrowed: Borrowed) -> None:
    """Refuse a connection to another kind of database."""
    if borrowed.dialect != place.dialect:
        drivers = "sqlite3, to the store's own file" if place.dialect == "sqlite" else "asyncpg or psycopg"
        raise InvalidOptionError(
            f"tx= is a connection of {borrowed.driver}, and store {place.url!r} is on {_SHOWN[place.dialect]}:"
            f" give a connection of {drivers}"
        )


def leads_to(place: Place) -> Work[None]:
    """Refuse a connection to another file or database than the store's."""
    if place.dialect == "sqlite":
        [(file,)] = yield Command(place.look, {})
        _check_file(place, os.fsdecode(file or ""))
        return
    if not place.answer:
        raise InvalidOptionError(
            f"tx= cannot be used with store {place.url!r}: its server does not say which one it is; let our user"
            " execute pg_control_system() and open the store again"
        )
    [(answer, there)] = yield Command(place.look, {"schema": place.schema})
    if answer != place.answer or not there:
        what = "another database" if answer != place.answer else f"a database without schema {place.schema!r} for it"
        raise InvalidOptionError(
            f"tx= leads to {what}, not to store {place.url!r}: nothing was written; give a connection to the same"
            " server and database that the store is in, by a user who may use its schema"
        )


def _check_file(place: Place, file: str) -> None:
    if not place.answer:
        raise InvalidOptionError(
            f"tx= cannot lead to store {place.url!r}, which is in memory and has no file: use sqlite:///file.db"
        )
    try:
        same = os.path.samefile(file, place.answer)
    except OSError:
        same = False
    if not same:
        where = f"file {file!r}" if file else "a database in memory"
        raise InvalidOptionError(
            f"tx= leads to {where}, not to the store's own file {place.answer!r}: nothing was written;"
            " your rows and ours commit together only in one file"
        )


# --- a result, recorded in a step's transaction


class FinishPlan(msgspec.Struct, frozen=True):
    """What `finish` does on the user's connection: facts and texts, so that it can be sent to a child process."""

    place: Place
    records: tuple[str, ...]  # tried in order until one gives a row: the id of the attempt's row, now done
    keeps: tuple[str, ...]  # then these, for what is too large for a row
    doubt: str  # asked when none did: gives the isolation level of the transaction, if that can be the reason
    values: dict[str, Any]  # among them the result, as it is stored


class Finished(NamedTuple):
    """Whether the result is recorded, if the transaction commits; and if not, what else could be the reason."""

    recorded: bool
    isolation: str = ""


def finishing(plan: FinishPlan) -> Work[Finished]:
    """Record a result, under the attempt's fence."""
    yield from leads_to(plan.place)
    for text in plan.records:
        rows = yield Command(text, plan.values)
        if rows:
            for keep in plan.keeps:
                yield Command(keep, {**plan.values, "recorded": rows[0][0]})
            return Finished(recorded=True)
    if not plan.doubt:
        return Finished(recorded=False)
    [(isolation,)] = yield Command(plan.doubt, {})
    return Finished(recorded=False, isolation=isolation)


# --- the drivers


class SqliteConnection:
    """A connection of sqlite3."""

    dialect: Final = "sqlite"
    driver: Final = "sqlite3"
    is_async: Final = False

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - of a driver that is not imported here
        self._connection = connection
        with self._plainly():
            connection.in_transaction  # noqa: B018 - raises when it is closed
            connection.cursor().close()  # raises on another thread than its own

    def perform(self, work: Work[T]) -> T:
        """Do the work."""
        with self._plainly(), contextlib.closing(self._connection.cursor()) as cursor, self._unit(cursor):
            cursor.row_factory = None  # whatever the connection's is
            try:
                command = next(work)
                while True:
                    try:
                        rows = cursor.execute(command.text, command.values).fetchall()
                    except Exception as error:
                        command = work.throw(error)
                    else:
                        command = work.send(rows)
            except StopIteration as done:
                answer: T = done.value
                return answer

    async def perform_async(self, work: Work[T]) -> T:
        """Do the work, here and now."""
        return self.perform(work)

    @contextlib.contextmanager
    def _unit(self, cursor: Any) -> Iterator[None]:  # noqa: ANN401
        connection = self._connection
        if connection.in_transaction:
            begin, end, undo = "SAVEPOINT watchbill", "RELEASE watchbill", "ROLLBACK TO watchbill"
        else:
            begin, end, undo = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"
        cursor.execute(begin)
        try:
            yield
        except BaseException:
            if connection.in_transaction:  # a full disk may have ended it
                cursor.execute(undo)
                if begin.startswith("SAVEPOINT"):
                    cursor.execute(end)
            raise
        # What has begun here stays open for the user to commit, as after any statement; unless each commits at once.
        if begin.startswith("SAVEPOINT") or self._commits_at_once():
            cursor.execute(end)

    def _commits_at_once(self) -> bool:
        autocommit = getattr(self._connection, "autocommit", -1)  # before Python 3.12: only the isolation level
        return autocommit is True or (autocommit == -1 and self._connection.isolation_level is None)

    @contextlib.contextmanager
    def _plainly(self) -> Iterator[None]:
        """Say in the house's words what the connection refuses before it has done anything."""
        sqlite3: Any = sys.modules["sqlite3"]
        try:
            yield
        except sqlite3.ProgrammingError as error:
            raise InvalidOptionError(f"{_TAKES}, and this one of sqlite3 cannot be used: {error}") from error
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _LOCKED:
                raise
            raise StoreUnreachableError(
                f"the connection given as tx= cannot write: {error}; nothing of this was written: somebody else is"
                " writing to the file, or wrote since your transaction began to read: begin it with BEGIN IMMEDIATE"
            ) from error


class PsycopgConnection:
    """A connection of psycopg 3 that is not awaited."""

    dialect: Final = "postgres"
    driver: Final = "psycopg"
    is_async: Final = False

    def __init__(self, connection: Any) -> None:  # noqa: ANN401
        _check_psycopg(connection)
        self._connection = connection

    def perform(self, work: Work[T]) -> T:
        """Do the work."""
        psycopg: Any = sys.modules["psycopg"]
        # A cursor of our own kind: the connection's may give other rows, or take other placeholders.
        with psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row) as cursor, self._unit(cursor):
            try:
                command = next(work)
                while True:
                    try:
                        cursor.execute(*_for_psycopg(command))
                        rows = cursor.fetchall()
                    except Exception as error:
                        command = work.throw(error)
                    else:
                        command = work.send(rows)
            except StopIteration as done:
                answer: T = done.value
                return answer

    async def perform_async(self, work: Work[T]) -> T:
        """Do the work, here and now."""
        return self.perform(work)

    @contextlib.contextmanager
    def _unit(self, cursor: Any) -> Iterator[None]:  # noqa: ANN401
        if _commits_each(self._connection):
            with self._connection.transaction():
                yield
            return
        cursor.execute("SAVEPOINT watchbill")
        try:
            yield
        except BaseException:
            if not self._connection.closed:
                cursor.execute("ROLLBACK TO watchbill")
                cursor.execute("RELEASE watchbill")
            raise
        cursor.execute("RELEASE watchbill")


class AsyncPsycopgConnection:
    """A connection of psycopg 3 that is awaited."""

    dialect: Final = "postgres"
    driver: Final = "psycopg"
    is_async: Final = True

    def __init__(self, connection: Any) -> None:  # noqa: ANN401
        _check_psycopg(connection)
        self._connection = connection

    def perform(self, work: Work[T]) -> T:
        """Refuse."""
        raise must_be_awaited(self.driver)

    async def perform_async(self, work: Work[T]) -> T:
        """Do the work."""
        psycopg: Any = sys.modules["psycopg"]
        async with (
            psycopg.AsyncCursor(self._connection, row_factory=psycopg.rows.tuple_row) as cursor,
            self._unit(cursor),
        ):
            try:
                command = next(work)
                while True:
                    try:
                        await cursor.execute(*_for_psycopg(command))
                        rows = await cursor.fetchall()
                    except Exception as error:
                        command = work.throw(error)
                    else:
                        command = work.send(rows)
            except StopIteration as done:
                answer: T = done.value
                return answer

    @contextlib.asynccontextmanager
    async def _unit(self, cursor: Any) -> AsyncIterator[None]:  # noqa: ANN401
        if _commits_each(self._connection):
            async with self._connection.transaction():
                yield
            return
        await cursor.execute("SAVEPOINT watchbill")
        try:
            yield
        except BaseException:
            if not self._connection.closed:
                await cursor.execute("ROLLBACK TO watchbill")
                await cursor.execute("RELEASE watchbill")
            raise
        await cursor.execute("RELEASE watchbill")


class AsyncpgConnection:
    """A connection of asyncpg, its own or one lent by its pool."""

    dialect: Final = "postgres"
    driver: Final = "asyncpg"
    is_async: Final = True

    def __init__(self, connection: Any) -> None:  # noqa: ANN401
        asyncpg: Any = sys.modules["asyncpg"]
        try:
            closed = connection.is_closed()
        except asyncpg.InterfaceError as error:  # given back to its pool
            raise InvalidOptionError(f"{_TAKES}, and this one of asyncpg cannot be used: {error}") from error
        if closed:
            raise InvalidOptionError(f"{_TAKES}, and this one of asyncpg is closed")
        self._connection = connection

    def perform(self, work: Work[T]) -> T:
        """Refuse."""
        raise must_be_awaited(self.driver)

    async def perform_async(self, work: Work[T]) -> T:
        """Do the work."""
        async with self._unit():
            try:
                command = next(work)
                while True:
                    statement, values = numbered(command.text), cast(Mapping[str, Any], command.values)
                    try:
                        rows = await self._connection.fetch(statement.text, *[values[name] for name in statement.names])
                    except Exception as error:
                        command = work.throw(error)
                    else:
                        command = work.send(rows)
            except StopIteration as done:
                answer: T = done.value
                return answer

    @contextlib.asynccontextmanager
    async def _unit(self) -> AsyncIterator[None]:
        connection = self._connection
        if not connection.is_in_transaction():
            async with connection.transaction():
                yield
            return
        # Not by its transaction(): that refuses one which was begun by hand.
        await connection.execute("SAVEPOINT watchbill")
        try:
            yield
        except BaseException:
            if not connection.is_closed():
                await connection.execute("ROLLBACK TO watchbill; RELEASE watchbill")
            raise
        await connection.execute("RELEASE watchbill")


def must_be_awaited(driver: str) -> InvalidOptionError:
    """Say that a synchronous program needs another connection."""
    return InvalidOptionError(
        f"tx= is a connection of {driver} that must be awaited, and nothing is awaited here: give a psycopg.Connection"
        " or a sqlite3.Connection, or do it in a coroutine"
    )


def _check_psycopg(connection: Any) -> None:  # noqa: ANN401
    if connection.closed:
        raise InvalidOptionError(f"{_TAKES}, and this one of psycopg is closed")
    if connection.info.transaction_status == _FAILED:
        raise InvalidOptionError("the transaction of tx= has failed already: roll it back, and begin anew")


def _commits_each(connection: Any) -> bool:  # noqa: ANN401
    return bool(connection.autocommit) and connection.info.transaction_status == _IDLE


def _for_psycopg(command: Command) -> tuple[str, Values]:
    return percented(command.text), command.values


# --- one text, in the form that each driver takes


@cache
def numbered(text: str) -> Statement:
    """Give a text with its values as `$1`, `$2`."""
    names = tuple(dict.fromkeys(re.findall(_VALUE, text)))
    numbers = {name: f"${place}" for place, name in enumerate(names, start=1)}
    return Statement(re.sub(_VALUE, lambda match: numbers[match[1]], text), names)


@cache
def percented(text: str) -> str:
    """Give a text with its values as `%(name)s`."""
    return re.sub(_VALUE, r"%(\1)s", text.replace("%", "%%"))
