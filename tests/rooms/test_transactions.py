"""A run started, and a step finished, in the user's own transaction: with their rows, or not at all."""

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.rooms import alone
from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from tests.rooms.users import (
    DRIVERS,
    AsyncpgUser,
    User,
    a_user,
    connect_asyncpg,
    file_of,
    make_notes,
    place_of,
    user_of,
)
from tests.store.postgres import emptied
from watchbill import App, DuplicateRun, InvalidOptionError, InvalidValueError, Retry, RunNotFound, RunUndone, attempt
from watchbill.errors import AttemptLostError, StoreOutdatedError, WatchbillError
from watchbill.store.open import migrate
from watchbill.store.protocol import INLINE_LIMIT

NOTICED = 1.5  # seconds: within one, and some for a busy machine
ASYNC = ["sqlite3", "asyncpg", "psycopg async"]
SYNC = ["sqlite3", "psycopg"]


class Program:
    """An App, its store, and one kind of user of it."""

    def __init__(self, url: str, driver: str) -> None:
        self.url = url
        self.driver = driver
        self.app = App(url)

        @self.app.workflow
        async def double(n: int) -> int:
            return 2 * n

        @self.app.workflow
        async def length(text: str) -> int:
            return len(text)

        self.double, self.length = double, length

    async def user(self) -> User:
        user = await a_user(self.driver, self.url)
        if isinstance(user, AsyncpgUser):
            await user.begin()
        return user


@pytest.fixture(params=DRIVERS)
async def program(request: pytest.FixtureRequest, prepared: Callable[[str], Awaitable[Program]]) -> Program:
    return await prepared(request.param)


@pytest.fixture
async def prepared(request: pytest.FixtureRequest) -> AsyncIterator[Callable[[str], Awaitable[Program]]]:
    made: list[Program] = []

    async def prepare(driver: str) -> Program:
        if driver == "sqlite3":
            url: str = request.getfixturevalue("file")
            migrate(url)
        else:
            url = request.getfixturevalue("postgres_url")
            await emptied(url)
        await make_notes(url)
        made.append(Program(url, driver))
        return made[-1]

    yield prepare
    for program in made:
        await program.app.close()


@pytest.fixture
async def user(program: Program) -> AsyncIterator[User]:
    user = await program.user()
    yield user
    await user.close()


# --- start


async def test_a_run_is_there_when_the_transaction_commits_with_the_users_rows(program, user, pace):
    app = program.app
    async with app.rooms():
        await user.note("mine")
        handle = await app.start(program.double, 4, id="o-1", tx=user.connection)
        waiting = asyncio.ensure_future(handle.result())
        with pytest.raises(RunNotFound):
            await handle.status()
        for unknown in (app.handle("o-1").status(), app.handle("o-1").result(), app.handle("o-2").result()):
            with pytest.raises(RunNotFound):
                await unknown
        assert not waiting.done()
        began = time.monotonic()
        await user.commit()
        assert await asyncio.wait_for(waiting, LONG) == 8
        assert time.monotonic() - began < pace.limit(NOTICED)
        assert (await handle.status()).state == "completed"
        assert await user.notes() == ["mine"]


async def test_it_is_noticed_within_a_second_by_rooms_that_have_nothing_else_to_do(program, user, pace):
    app = program.app
    ear = Ear(app)
    async with app.rooms():
        await ear.hears("shards.ready")
        for n in range(3):
            handle = await app.start(program.double, n, tx=user.connection)
            began = time.monotonic()
            await user.commit()
            await ear.hears("run.completed", handle.id)
            assert time.monotonic() - began < pace.limit(NOTICED)
            if isinstance(user, AsyncpgUser):
                await user.begin()
        await user.rollback()
    ear.close()


async def test_a_run_is_never_there_when_it_rolls_back(program, user):
    app = program.app
    await user.note("mine")
    handle = await app.start(program.double, 4, id="o-1", tx=user.connection)
    await user.rollback()
    with pytest.raises(RunNotFound):
        await handle.status()
    with pytest.raises(TimeoutError):
        await handle.result(timeout=0.3)
    assert await user.notes() == []
    async with app.rooms():
        assert await ends(await app.start(program.length, "abc", id="o-1")) == 3  # other work: the id is free
        assert await ends(handle) == 3  # and the handle is one on that id


async def test_the_same_id_with_equal_work_is_the_run_that_is_there(program, user):
    app = program.app
    first = await app.start(program.double, 4, id="o-1", tx=user.connection)
    again = await app.start(program.double, 4, id="o-1", tx=user.connection)
    await user.commit()
    if isinstance(user, AsyncpgUser):
        await user.begin()
    async with app.rooms():
        assert await ends(first) == await ends(again) == 8
        ended = await app.start(program.double, 4, id="o-1", tx=user.connection)
        assert (await ended.status()).state == "completed"
        assert await ends(ended) == 8
        await user.rollback()  # before the rooms close: on SQLite they would wait for it


async def test_a_number_that_is_taken_is_drawn_again_inside_of_the_transaction(program, user, monkeypatch):
    app: Any = program.app
    async with app.rooms():
        assert await ends(await app.start(program.double, 1, id="o-1")) == 2
        taken = (await app._hall._store.client.find("default", "o-1")).num
        env = app._hall.env
        draw, drawn = env.new_id, [taken]
        monkeypatch.setattr(env, "new_id", lambda: drawn.pop() if drawn else draw())
        await user.note("mine")
        handle = await app.start(program.double, 4, id="o-2", tx=user.connection)
        assert not drawn
        await user.commit()
        assert await asyncio.wait_for(handle.result(), LONG) == 8
        assert await user.notes() == ["mine"]


async def test_other_work_under_the_same_id_is_refused_and_the_transaction_can_go_on(program, user):
    app = program.app
    await app.start(program.double, 4, id="o-1")
    await user.note("before")
    with pytest.raises(DuplicateRun, match="'double' version 1 with other arguments"):
        await app.start(program.double, 5, id="o-1", tx=user.connection)
    with pytest.raises(DuplicateRun, match="was asked for as 'length' version 1"):
        await app.start_many(
            [
                (program.double, (6,), {"id": "o-2", "tx": user.connection}),
                (program.length, ("x",), {"id": "o-1", "tx": user.connection}),
            ]
        )
    await user.note("after")
    await user.commit()
    assert await user.notes() == ["after", "before"]
    with pytest.raises(RunNotFound):
        await app.handle("o-2").status()


async def test_large_arguments_go_along_and_are_compared(program, user):
    text = "x" * (INLINE_LIMIT + 1)
    app = program.app
    handle = await app.start(program.length, text, id="big", tx=user.connection)
    await app.start(program.length, text, id="big", tx=user.connection)
    with pytest.raises(DuplicateRun):
        await app.start(program.length, text + "y", id="big", tx=user.connection)
    await user.commit()
    async with app.rooms():
        assert await ends(handle) == len(text)


async def test_many_runs_commit_together_in_one_transaction_or_are_refused_in_several(program, user):
    app, tx = program.app, {"tx": user.connection}
    with pytest.raises(InvalidOptionError, match="give every run the same tx, or none"):
        await app.start_many([(program.double, (1,), tx), (program.double, (2,))])
    handles = await app.start_many([(program.double, (n,), {"id": f"o-{n}", **tx}) for n in range(20)])
    with pytest.raises(RunNotFound):
        await handles[3].status()
    await user.commit()
    async with app.rooms():
        assert [await ends(handle) for handle in handles] == [2 * n for n in range(20)]


async def test_a_namespace_that_nobody_has_driven_yet(program, user):
    other = App(program.url, namespace="other")
    double = other.workflow(program.double.plain)
    handle = await other.start(double, 4, tx=user.connection)
    await user.commit()
    async with other.rooms():
        assert await ends(handle) == 8
    await other.close()


@pytest.mark.parametrize("driver", SYNC)
async def test_a_synchronous_program_uses_its_connection_on_its_own_thread(prepared, driver):
    program = await prepared(driver)
    app = program.app

    def synchronous() -> int:
        connection: Any
        if driver == "sqlite3":
            connection = sqlite3.connect(file_of(program.url))  # refuses to be used on any other thread
        else:
            connection = psycopg.connect(**place_of(program.url))
        handle = app.sync.start(program.double, 4, id="o-1", tx=connection)
        with pytest.raises(RunNotFound):
            handle.status()
        with pytest.raises(DuplicateRun):
            app.sync.start(program.double, 5, id="o-1", tx=connection)
        connection.commit()
        connection.close()
        result: int = handle.result()
        return result

    async with app.rooms():
        assert await asyncio.to_thread(synchronous) == 8


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg async"])
async def test_a_synchronous_program_cannot_give_a_connection_that_must_be_awaited(prepared, driver):
    program = await prepared(driver)
    async with program.app.rooms(), user_of(driver, program.url) as user:
        with pytest.raises(InvalidOptionError, match="that must be awaited, and nothing is awaited here"):
            await asyncio.to_thread(program.app.sync.start, program.double, 4, tx=user.connection)


# --- connections that commit each statement


async def test_a_connection_that_commits_each_statement_commits_the_run_at_once(prepared):
    program = await prepared("asyncpg")
    app = program.app
    connections: list[Any] = [
        await connect_asyncpg(program.url),
        psycopg.connect(**place_of(program.url), autocommit=True),
        await psycopg.AsyncConnection.connect(**place_of(program.url), autocommit=True),
    ]
    for connection in connections:
        [handle, _] = await app.start_many([(program.double, (n,), {"tx": connection}) for n in range(2)])
        assert (await handle.status()).state == "scheduled"
        closed = connection.close()
        if closed is not None:
            await closed


async def test_sqlite_connections_that_commit_each_statement_commit_the_run_at_once(prepared):
    program = await prepared("sqlite3")
    options: list[dict[str, Any]] = [{"isolation_level": None}]
    if sys.version_info >= (3, 12):
        options.append({"autocommit": True})
    for option in options:
        connection = sqlite3.connect(file_of(program.url), **option)
        handle = await program.app.start(program.length, "x" * (INLINE_LIMIT + 1), tx=connection)
        assert not connection.in_transaction
        assert (await handle.status()).state == "scheduled"
        connection.close()


async def test_a_sqlite_transaction_that_is_not_open_yet_is_opened_and_left_open(prepared):
    program = await prepared("sqlite3")
    connection = sqlite3.connect(file_of(program.url))
    handle = await program.app.start(program.double, 1, tx=connection)
    assert connection.in_transaction
    connection.rollback()
    with pytest.raises(RunNotFound):
        await handle.status()
    connection.close()


async def test_rows_and_texts_of_the_users_taste_are_no_trouble(prepared):
    program = await prepared("sqlite3")
    connection = sqlite3.connect(file_of(program.url))
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes
    handle = await program.app.start(program.double, 1, id="o-1", tx=connection)
    again = await program.app.start(program.double, 1, id="o-1", tx=connection)
    connection.commit()
    assert handle.id == again.id == (await handle.status()).id
    connection.close()
    program = await prepared("psycopg")
    taste: dict[str, Any] = {"row_factory": psycopg.rows.dict_row, "cursor_factory": psycopg.RawCursor}
    with psycopg.connect(**place_of(program.url), **taste) as postgres:
        await program.app.start(program.double, 1, id="o-1", tx=postgres)
        await program.app.start(program.double, 1, id="o-1", tx=postgres)
    assert (await program.app.handle("o-1").status()).state == "scheduled"


async def test_a_connection_lent_by_a_pool_of_asyncpg(prepared):
    program = await prepared("asyncpg")
    place = place_of(program.url)
    place["database"] = place.pop("dbname")
    async with asyncpg.create_pool(**place, min_size=1, max_size=1) as pool:
        async with pool.acquire() as connection, connection.transaction():
            handle = await program.app.start(program.double, 1, tx=connection)
        with pytest.raises(InvalidOptionError, match="this one of asyncpg cannot be used"):
            await program.app.start(program.double, 1, tx=connection)
    assert (await handle.status()).state == "scheduled"


# --- what is refused


async def test_what_is_no_connection_is_refused(program):
    for tx in ("postgresql://x", 7, object(), sqlite3, asyncio.Lock()):
        with pytest.raises(InvalidOptionError, match="tx= takes an open connection of asyncpg, psycopg 3 or sqlite3"):
            await program.app.start(program.double, 1, id="o-1", tx=tx)
    with pytest.raises(RunNotFound):
        await program.app.handle("o-1").status()


async def test_a_closed_connection_is_refused(program):
    user = await program.user()
    await user.close()
    with pytest.raises(InvalidOptionError, match="closed"):
        await program.app.start(program.double, 1, id="o-1", tx=user.connection)


async def test_a_connection_to_another_kind_of_database_is_refused(prepared, folder):
    postgres, sqlite = await prepared("asyncpg"), await prepared("sqlite3")
    other = sqlite3.connect(folder / "other.db")
    with pytest.raises(InvalidOptionError, match=r"a connection of sqlite3, and store .* is on PostgreSQL"):
        await postgres.app.start(postgres.double, 1, tx=other)
    other.close()
    async with user_of("asyncpg", postgres.url) as user:
        with pytest.raises(InvalidOptionError, match=r"a connection of asyncpg, and store .* is on SQLite"):
            await sqlite.app.start(sqlite.double, 1, tx=user.connection)


async def test_a_connection_to_another_file_is_refused_and_nothing_is_written_there(prepared, folder):
    program = await prepared("sqlite3")
    other = sqlite3.connect(folder / "other.db")
    memory = sqlite3.connect(":memory:")
    for tx, where in ((other, "other.db"), (memory, "a database in memory")):
        with pytest.raises(InvalidOptionError, match=f"leads to .*{where}.*not to the store's own file"):
            await program.app.start(program.double, 1, tx=tx)
        assert not tx.in_transaction
        assert tx.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        tx.close()
    app = App("sqlite:///:memory:")
    double = app.workflow(program.double.plain)
    tx = sqlite3.connect(":memory:")
    with pytest.raises(InvalidOptionError, match="which is in memory and has no file"):
        await app.start(double, 1, tx=tx)
    tx.close()
    await app.close()


async def test_a_connection_to_the_file_by_another_name_is_the_same(prepared, folder):
    program = await prepared("sqlite3")
    os.symlink(file_of(program.url), folder / "link.db")
    tx = sqlite3.connect(folder / "link.db")
    handle = await program.app.start(program.double, 1, tx=tx)
    tx.commit()
    tx.close()
    assert (await handle.status()).state == "scheduled"


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg", "psycopg async"])
async def test_a_connection_to_another_database_is_refused_and_can_go_on(prepared, driver):
    program = await prepared(driver)
    connection = await connect_asyncpg(program.url)
    await connection.execute("DROP DATABASE IF EXISTS elsewhere")
    await connection.execute("CREATE DATABASE elsewhere")
    await connection.close()
    other = program.url.replace("/postgres?", "/elsewhere?")
    async with user_of(driver, other) as user:
        if isinstance(user, AsyncpgUser):
            await user.begin()
        with pytest.raises(InvalidOptionError, match="tx= leads to another database, not to store"):
            await program.app.start(program.double, 1, tx=user.connection)
        await user.commit()  # not in a failed transaction


async def test_a_failed_transaction_is_refused(prepared):
    program = await prepared("psycopg")
    with psycopg.connect(**place_of(program.url)) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(InvalidOptionError, match="has failed already: roll it back"):
            await program.app.start(program.double, 1, tx=connection)
        connection.rollback()


async def test_run_cannot_wait_for_a_commit(program, user):
    with pytest.raises(InvalidOptionError, match=r"run\(tx=\) would wait"):
        await asyncio.to_thread(program.app.run, program.double, 1, tx=user.connection)


# --- a file without its owner, and beside one


async def test_a_file_that_is_no_store_yet_is_made_one(folder):
    file = f"sqlite:///{folder}/new.db"
    app = App(file)

    @app.workflow
    async def work() -> int:
        return 1

    tx = sqlite3.connect(file_of(file))
    tx.execute("CREATE TABLE mine (word)")
    tx.execute("INSERT INTO mine VALUES ('x')")
    with pytest.raises(StoreOutdatedError, match="watchbill migrate"):  # it cannot be made while that is open
        await app.start(work, tx=tx)
    tx.rollback()
    tx.execute("DROP TABLE mine")
    tx.commit()
    handle = await app.start(work, tx=tx)
    tx.commit()
    tx.close()
    async with app.rooms():
        assert await ends(handle) == 1


BESIDE = """
import sqlite3, sys
from watchbill import App
app = App(f"sqlite:///{sys.argv[1]}")

@app.workflow
async def double(n: int) -> int:
    return 2 * n

tx = sqlite3.connect(sys.argv[1])
handle = app.sync.start(double, 21, id="beside", tx=tx)
tx.commit()
print(handle.result())
"""


async def test_a_process_beside_the_owner_of_a_file_starts_runs_in_it(prepared):
    program = await prepared("sqlite3")
    command = [sys.executable, "-c", BESIDE, file_of(program.url)]
    async with program.app.rooms():
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=LONG)
    assert done.stdout == "42\n", done.stderr


async def test_a_transaction_left_open_on_the_file_only_makes_the_owner_wait(prepared, caplog):
    program = await prepared("sqlite3")
    app = program.app
    tx = sqlite3.connect(file_of(program.url), check_same_thread=False)
    with caplog.at_level(logging.WARNING, "watchbill"):
        async with app.rooms():
            assert await ends(await app.start(program.double, 1)) == 2
            handle = await app.start(program.double, 4, tx=tx)
            others = [asyncio.ensure_future(app.start(program.double, n)) for n in range(3)]
            await asyncio.sleep(7)  # longer than the busy timeout
            assert not any(other.done() for other in others)
            tx.commit()
            assert await ends(handle) == 8
            assert [await ends(await other) for other in others] == [0, 2, 4]
    tx.close()
    away, back = [record.getMessage() for record in caplog.records]
    assert away.startswith(
        f"store {program.url!r} is locked by a transaction that somebody else keeps open on its file"
    )
    assert back.startswith(f"store {program.url!r} is back after")


def test_no_driver_is_imported_that_the_program_has_not_imported(folder):
    script = """
import sqlite3, sys
from watchbill import App
app = App(f"sqlite:///{sys.argv[1]}")

@app.workflow
async def one() -> int:
    return 1

app.run(one)
tx = sqlite3.connect(sys.argv[1])
app.sync.start(one, tx=tx)
tx.commit()
assert not {"asyncpg", "psycopg"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", script, folder / "s.db"], capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr


# --- finish


class Desk:
    """Steps that finish in a transaction, and what is done around that: each test gives its own."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.app = app = program.app
        self.attempts = 0
        self.work: Callable[[User], Awaitable[int]]
        self.sync_work: Callable[[Any], int]

        @app.step(retry=Retry(2, backoff="1ms"))
        async def act() -> int:
            self.attempts += 1
            async with user_of(program.driver, program.url) as user:
                if isinstance(user, AsyncpgUser):
                    await user.begin()
                return await self.work(user)

        @app.step(retry=Retry(2, backoff="1ms"))
        def act_in_thread() -> int:
            self.attempts += 1
            connection = connect(program)
            try:
                return self.sync_work(connection)
            finally:
                connection.close()

        @app.workflow
        async def on_the_loop() -> int:
            return await act()

        @app.workflow
        async def in_a_thread() -> int:
            return await act_in_thread()

        self.on_the_loop, self.in_a_thread = on_the_loop, in_a_thread

    async def run(self, work: Callable[[User], Awaitable[int]]) -> int:
        """Run an async step that does this with a user of its own."""
        self.work = work
        async with self.app.rooms():
            handle = await self.app.start(self.on_the_loop, id="r")
            result: int = await ends(handle)
        return result

    async def notes(self) -> list[str]:
        async with user_of(self.program.driver, self.program.url) as user:
            return await user.notes()


def connect(program: Program) -> Any:
    if program.driver == "sqlite3":
        return sqlite3.connect(file_of(program.url))
    return psycopg.connect(**place_of(program.url))


def note(connection: Any, word: str) -> None:
    connection.execute(f"INSERT INTO note VALUES ('{word}')")


@pytest.fixture(params=DRIVERS)
async def desk(request, prepared) -> Desk:
    return Desk(await prepared(request.param))


@pytest.fixture(params=SYNC)
async def sync_desk(request, prepared) -> Desk:
    return Desk(await prepared(request.param))


async def test_what_was_finished_and_committed_is_the_outcome(desk):
    async def work(user: User) -> int:
        await user.note("mine")
        await attempt().finish(42, tx=user.connection)
        await user.commit()
        return -1

    assert await desk.run(work) == 42
    assert (desk.attempts, await desk.notes()) == (1, ["mine"])
    status = await desk.app.handle("r").status()
    assert [(step.key, step.state, len(step.attempts)) for step in status.steps] == [("act", "completed", 1)]


async def test_what_a_step_raises_after_its_commit_does_not_count(desk):
    async def work(user: User) -> int:
        await user.note("mine")
        await attempt().finish(42, tx=user.connection)
        await user.commit()
        raise ConnectionError("too late")

    assert await desk.run(work) == 42
    assert (desk.attempts, await desk.notes()) == (1, ["mine"])


async def test_what_was_rolled_back_leaves_the_steps_own_return_value(desk):
    async def work(user: User) -> int:
        await user.note("mine")
        await attempt().finish(42, tx=user.connection)
        await user.rollback()
        return 7

    assert await desk.run(work) == 7
    assert (desk.attempts, await desk.notes()) == (1, [])


async def test_what_was_rolled_back_by_an_exception_is_tried_again(desk):
    async def work(user: User) -> int:
        await user.note("mine")
        await attempt().finish(42, tx=user.connection)
        if attempt().number < 3:
            await user.rollback()
            raise ConnectionError("once more")
        await user.commit()
        return -1

    assert await desk.run(work) == 42
    assert (desk.attempts, await desk.notes()) == (3, ["mine"])


async def test_it_may_be_called_again_after_a_rollback_and_only_then(desk):
    said = []

    async def work(user: User) -> int:
        await attempt().finish(1, tx=user.connection)
        await user.rollback()
        await user.note("mine")
        await attempt().finish(2, tx=user.connection)
        try:
            await attempt().finish(3, tx=user.connection)
        except AttemptLostError as error:
            said.append(str(error))
        await user.commit()
        await user.note("never")
        try:
            await attempt().finish(4, tx=user.connection)
        except AttemptLostError as error:
            said.append(str(error))
        await user.rollback()
        return -1

    assert await desk.run(work) == 2
    assert said == ["finish() has recorded the result of 'act' (step 'act') before: call it once"] * 2
    assert (desk.attempts, await desk.notes()) == (1, ["mine"])


async def test_a_step_that_lasts_and_has_its_row_finishes_likewise(desk):
    async def work(user: User) -> int:
        attempt().progress(1)
        await becomes(desk.app.handle("r"), lambda status: status.steps)
        await user.note("mine")
        await attempt().finish(42, tx=user.connection)
        await user.commit()
        return -1

    assert await desk.run(work) == 42
    assert (desk.attempts, await desk.notes()) == (1, ["mine"])


async def test_a_transaction_that_lasts_over_a_second_before_and_after_it(desk):
    async def work(user: User) -> int:
        await user.note("mine")
        await asyncio.sleep(1.2)
        await attempt().finish(42, tx=user.connection)
        await asyncio.sleep(1.2)
        await user.commit()
        return -1

    assert await desk.run(work) == 42
    assert (desk.attempts, await desk.notes()) == (1, ["mine"])


async def test_what_a_step_does_after_its_commit_is_not_cut_off(desk):
    ended = asyncio.Event()

    async def work(user: User) -> int:
        await attempt().finish(42, tx=user.connection)
        await user.commit()
        await becomes(desk.app.handle("r"), lambda status: status.state == "completed")
        await asyncio.sleep(
            0.6
        )  # the owner of a file has looked for commits of others by then, and the agent has beaten
        ended.set()
        return -1

    desk.work = work
    async with desk.app.rooms():
        assert await ends(await desk.app.start(desk.on_the_loop, id="r")) == 42
        await asyncio.wait_for(ended.wait(), LONG)


async def test_the_result_is_checked_like_a_returned_one(desk):
    said = []

    async def work(user: User) -> int:
        for wrong in ("text", object()):
            try:
                await attempt().finish(wrong, tx=user.connection)
            except InvalidValueError as error:
                said.append(str(error))
        await user.rollback()
        return 7

    assert await desk.run(work) == 7
    assert "step 'act' must return" in said[0]
    assert len(said) == 2


async def test_large_results_go_along(desk):
    text = "x" * (INLINE_LIMIT + 1)
    app, program = desk.app, desk.program

    @app.step
    async def write(given: str) -> str:
        async with user_of(program.driver, program.url) as user:
            if isinstance(user, AsyncpgUser):
                await user.begin()
            await attempt().finish(given + "!", tx=user.connection)
            await user.commit()
        return ""

    @app.workflow
    async def large(given: str) -> bool:
        return await write(given) == given + "!"

    async with app.rooms():
        assert await ends(await app.start(large, text)) is True


async def test_a_wrong_connection_is_refused_and_the_step_goes_on(desk, folder):
    said = []

    async def work(user: User) -> int:
        other = sqlite3.connect(folder / "other.db")
        for wrong in (other, "nothing"):
            try:
                await attempt().finish(1, tx=wrong)
            except InvalidOptionError as error:
                said.append(str(error))
        other.close()
        return 7

    assert await desk.run(work) == 7
    assert len(said) == 2
    assert "leads to file" in said[0] or "is on PostgreSQL" in said[0]


async def test_it_wants_a_connection():
    with pytest.raises(TypeError, match="tx"):
        attempt().finish(1)  # type: ignore[call-arg]


async def test_outside_an_attempt_it_does_nothing():
    await attempt().finish(1, tx=None)
    attempt().finish(object(), tx="anything")


async def test_a_checkpoint_after_it_would_wait_for_its_own_transaction(desk):
    said = []

    async def work(user: User) -> int:
        await attempt().checkpoint("before")
        await attempt().finish(42, tx=user.connection)
        try:
            await attempt().checkpoint("after")
        except WatchbillError as error:
            said.append(str(error))
        attempt().progress(1)  # is not shown, and does not wait
        await user.commit()
        return -1

    assert await desk.run(work) == 42
    assert said == [
        "step 'act' saves a checkpoint after finish(): that would wait for the end of its own transaction;"
        " save it before"
    ]


async def test_an_attempt_that_was_lost_cannot_finish(desk):
    """Whoever is late when it wants to finish raises, so that the user's transaction rolls back."""
    app, program, lost = desk.app, desk.program, []
    gone, ended = threading.Event(), threading.Event()

    @app.step(timeout="300ms", retry=Retry(1, backoff="1ms"))
    def slow() -> int:
        if attempt().number == 2:
            return 2
        gone.wait(LONG)
        if program.driver not in SYNC:
            ended.set()
            return 1
        connection = connect(program)
        try:
            note(connection, "mine")
            attempt().finish(1, tx=connection)
            connection.commit()
        except AttemptLostError as error:
            lost.append(str(error))
        finally:
            connection.close()
            ended.set()
        return 1

    @app.workflow
    async def work() -> int:
        return await slow()

    async with app.rooms():
        handle = await app.start(work)
        assert await ends(handle) == 2
        gone.set()
        assert await asyncio.to_thread(ended.wait, LONG)  # an abandoned thread is nobody's: the rooms do not wait
    assert len(lost) == (program.driver in SYNC)
    assert await desk.notes() == []


async def test_a_sync_step_calls_it_in_its_thread(sync_desk):
    desk = sync_desk

    def work(connection: Any) -> int:
        note(connection, "mine")
        attempt().finish(42, tx=connection)
        connection.commit()
        return -1

    desk.sync_work = work
    async with desk.app.rooms():
        assert await ends(await desk.app.start(desk.in_a_thread)) == 42
    assert (desk.attempts, await desk.notes()) == (1, ["mine"])


async def test_many_steps_finish_at_once(sync_desk):
    desk = sync_desk
    app, program = desk.app, desk.program

    @app.step
    def one(n: int) -> int:
        connection = connect(program)
        try:
            note(connection, f"{n:03}")
            attempt().finish(n, tx=connection)
            connection.commit()
        finally:
            connection.close()
        return -1

    @app.workflow
    async def many() -> list[int]:
        return await asyncio.gather(*(one(n) for n in range(40)))

    async with app.rooms():
        assert await ends(await app.start(many)) == list(range(40))
    assert await desk.notes() == [f"{n:03}" for n in range(40)]


async def test_a_sync_step_cannot_give_a_connection_that_must_be_awaited(prepared):
    program = await prepared("asyncpg")
    connection = await connect_asyncpg(program.url)

    @program.app.step(retry=0)
    def act() -> str:
        try:
            attempt().finish("x", tx=connection)
        except InvalidOptionError as error:
            return str(error)
        return ""

    @program.app.workflow
    async def work() -> str:
        return await act()

    async with program.app.rooms():
        assert "that must be awaited" in await ends(await program.app.start(work))
    await connection.close()


async def test_a_transaction_that_is_still_open_when_its_step_returns_is_waited_for(prepared, caplog):
    desk = Desk(await prepared("asyncpg"))
    app, program = desk.app, desk.program
    left = [await connect_asyncpg(program.url) for _ in range(2)]

    @app.step
    async def leaves_open(n: int) -> int:
        await left[n].execute("BEGIN")
        await attempt().finish(n + 10, tx=left[n])
        return n

    @app.step(retry=Retry(1, backoff="1ms"))
    async def other() -> int:
        if attempt().number == 1:
            raise ConnectionError("once more")  # the second one is reported by the same agent
        return 5

    @app.workflow
    async def work(n: int) -> int:
        return await leaves_open(n)

    @app.workflow
    async def beside() -> int:
        return await other()

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if "finish()" in record.getMessage()]

    async with app.rooms():
        handles = [await app.start(work, n) for n in range(2)]
        async with asyncio.timeout(LONG):
            while len(said()) < 2:
                await asyncio.sleep(LOOK_EVERY)
        assert await ends(await app.start(beside)) == 5  # nobody else waits for it
        assert [(await handle.status()).state for handle in handles] == ["running", "running"]
        await left[0].execute("COMMIT")
        await left[1].execute("ROLLBACK")
        assert [await ends(handle) for handle in handles] == [10, 1]
    for connection in left:
        await connection.close()
    assert len(said()) == 2
    assert "the transaction in which it called finish() is open" in said()[0]


async def test_a_transaction_that_cannot_see_the_row_says_so(prepared):
    desk = Desk(await prepared("asyncpg"))
    said = []

    async def work(user: User) -> int:
        await user.rollback()
        await user.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM note")
        try:
            await attempt().finish(1, tx=user.connection)
        except AttemptLostError as error:
            said.append(str(error))
        await user.rollback()
        await user.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM note")
        await attempt().finish(2, tx=user.connection)
        await user.commit()
        return -1

    assert await desk.run(work) == 2
    assert "which is REPEATABLE READ" in said[0]
    assert "use READ COMMITTED, or save a checkpoint before it begins" in said[0]


# --- finish in a process of its own


@pytest.mark.parametrize("driver", ["sqlite3", "psycopg", "asyncpg"])
@pytest.mark.parametrize("ending", ["commits", "rolls back", "dies"])
async def test_a_process_of_its_own_finishes_over_a_connection_of_its_own(prepared, driver, ending):
    program = await prepared(driver)
    app = App(program.url)
    for step in (alone.finishes, alone.finishes_async):
        app.registry.add_step(step)

    @app.workflow
    async def work(place: dict[str, Any], ending: str, in_coroutine: bool) -> list[int]:
        return await (alone.finishes_async(place, ending) if in_coroutine else alone.finishes(place, ending))

    place = {"file": file_of(program.url)} if driver == "sqlite3" else place_of(program.url)
    async with app.rooms():
        number, pid = await ends(await app.start(work, place, ending, driver == "asyncpg"))
    assert (number, pid != os.getpid()) == (1, True)
    async with user_of(program.driver, program.url) as user:
        assert await user.notes() == ([] if ending == "rolls back" else ["alone"])
    await app.close()


async def test_what_finished_is_undone_though_its_run_fails_at_that_very_moment(file):
    """On a file it has committed another row than that which everybody was to see it by."""
    app, did, committed = App(file), list[str](), asyncio.Event()

    @app.step(retry=0)
    async def take() -> str:
        await asyncio.sleep(0)
        connection = sqlite3.connect(file_of(file))
        await attempt().finish("mine", tx=connection)
        connection.commit()
        connection.close()
        committed.set()
        return "mine"

    @take.undo
    async def give_back(taken: str | None) -> None:
        did.append(f"gave back {taken}")

    @app.step(retry=0)
    async def other() -> None:
        await committed.wait()

    @app.workflow
    async def order() -> None:
        taking = asyncio.ensure_future(take())
        await other()
        raise ValueError(f"enough, whatever becomes of {taking}")

    async with app.rooms():
        with pytest.raises(RunUndone, match="enough"):
            await ends(await app.start(order, id="r"))
    await app.close()
    assert did == ["gave back mine"]
