"""A disk that refuses the store's file for a while: nothing acknowledged is lost, and the owner goes on by itself."""

import asyncio
import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreCorruptError, StoreFailingError, StoreFullError, StoreReplacedError
from watchbill.store.health import REPEAT, Health
from watchbill.store.open import open_store, receiving_guests, visit_owner
from watchbill.store.owner import take_ownership
from watchbill.store.reception import Driven
from watchbill.store.sqlite.lanes import FIRST_PAUSE, LONGEST_PAUSE
from watchbill.store.sqlite.store import SqliteStore
from watchbill.testing.conformance.scene import HandClock, HandEnv, a_run

PATIENCE = 120.0  # seconds that a slow machine may take


class Disk:
    """What the connections of this test's process are refused, from now on."""

    def __init__(self) -> None:
        self.refuses: Callable[[str], int | None] = lambda statement: None
        self.after = False  # the statement is carried out first, and fails then
        self.refused = 0

    def connect(self, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        disk = self

        class Refusing(kwargs.pop("factory")):  # type: ignore[misc]
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                code = disk.refuses(sql)
                if code is None:
                    return super().execute(sql, *values)
                disk.refused += 1
                if disk.after:
                    super().execute(sql, *values)
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = code
                raise error

        return sqlite3.dbapi2.connect(*args, factory=Refusing, **kwargs)

    def mend(self) -> None:
        self.refuses = lambda statement: None


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()

    class Module:
        """The driver, but for how a connection is made."""

        connect = staticmethod(disk.connect)

        def __getattr__(self, name: str) -> object:
            return getattr(sqlite3, name)

    monkeypatch.setattr("watchbill.store.sqlite.database.sqlite3", Module())
    return disk


@pytest.fixture
def url(folder):
    return f"sqlite:///{folder}/store.db"


def on(word: str, code: int) -> Callable[[str], int | None]:
    return lambda statement: code if statement.startswith(word) else None


async def submitted(store, num: int) -> bool:
    """Submit until the store takes it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(StoreFailingError):
                return (await store.client.submit([a_run(num)]))[0].new
            await asyncio.sleep(0.02)


def released(store) -> bool:
    return store._owner._descriptor is None


REFUSALS = [
    ("COMMIT", sqlite3.SQLITE_FULL, StoreFullError),
    ("COMMIT", sqlite3.SQLITE_IOERR_WRITE, StoreFullError),
    ("COMMIT", sqlite3.SQLITE_IOERR_FSYNC, StoreFailingError),
    ("BEGIN IMMEDIATE", sqlite3.SQLITE_READONLY, StoreFailingError),
    ("BEGIN IMMEDIATE", sqlite3.SQLITE_CANTOPEN, StoreFailingError),
]


@pytest.mark.parametrize(("word", "code", "kind"), REFUSALS)
async def test_owner_writes_again_once_the_disk_does(url, disk, word, code, kind):
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    disk.refuses = on(word, code)
    for num in (2, 3):
        with pytest.raises(kind, match="what was acknowledged is kept"):
            await store.client.submit([a_run(num)])
    async with asyncio.timeout(PATIENCE):
        while disk.refused < 3:  # it was opened again, and refused again
            await asyncio.sleep(0.02)
    with pytest.raises(kind):
        await store.client.submit([a_run(3)])
    if kind is StoreFullError:  # a full disk can be read
        assert [run.num for run in await store.client.runs("default", limit=10)] == [1]
    disk.mend()
    assert await submitted(store, 3)
    assert {run.num for run in await store.client.runs("default", limit=10)} == {1, 3}
    await store.close()


@pytest.mark.parametrize("after", [False, True])
async def test_repeated_operation_happens_once_whatever_the_failed_commit_left(url, disk, after):
    store = await open_store(url, SystemEnv())
    disk.refuses, disk.after = on("COMMIT", sqlite3.SQLITE_IOERR_FSYNC), after
    with pytest.raises(StoreFailingError):
        await store.client.submit([a_run(1)])
    disk.mend()
    assert await submitted(store, 1)
    assert [run.num for run in await store.client.runs("default", limit=10)] == [1]
    await store.close()


async def test_read_error_passes_too(url, disk):
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    disk.refuses = on("BEGIN", sqlite3.SQLITE_IOERR_READ)
    with pytest.raises(StoreFailingError):
        await store.client.runs("default", limit=10)
    with pytest.raises(StoreFailingError):
        await store.client.submit([a_run(2)])
    disk.mend()
    assert await submitted(store, 2)
    assert {run.num for run in await store.client.runs("default", limit=10)} == {1, 2}
    await store.close()


@pytest.mark.parametrize("where", ["file", "memory"])
async def test_file_that_may_not_grow_is_used_again_when_it_may(url, where):
    store = await open_store(url if where == "file" else "sqlite:///:memory:", SystemEnv())
    assert isinstance(store, SqliteStore)
    connection = store._lanes._writer._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 3}")
    large = b'"' + b"x" * 50_000 + b'"'
    with pytest.raises(StoreFullError):
        await store.client.submit([a_run(1, input=large)])
    if where == "memory":
        connection.execute("PRAGMA max_page_count = 1000000")
    assert await submitted(store, 2)
    assert (await store.client.submit([a_run(1, input=large)]))[0].new
    await store.close()


async def test_owner_that_cannot_recover_releases_the_file(url, disk, folder):
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    disk.refuses = on("COMMIT", sqlite3.SQLITE_FULL)
    with pytest.raises(StoreFullError):
        await store.client.submit([a_run(2)])
    os.rename(folder / "store.db", folder / "moved.db")
    with pytest.raises(StoreReplacedError, match="was deleted or moved away"):
        await submitted(store, 2)
    os.rename(folder / "moved.db", folder / "store.db")
    disk.mend()
    async with asyncio.timeout(PATIENCE):
        while not released(store):
            await asyncio.sleep(0.02)
    take_ownership(folder / "store.db", url).release()
    await store.close()
    other = await open_store(url, SystemEnv())
    assert [run.num for run in await other.client.runs("default", limit=10)] == [1]
    await other.close()


async def test_damaged_file_ends_the_owner_and_releases_it(url, disk):
    store = await open_store(url, SystemEnv())
    disk.refuses = on("COMMIT", sqlite3.SQLITE_CORRUPT)
    for _ in range(2):
        with pytest.raises(StoreCorruptError):
            await store.client.submit([a_run(1)])
    disk.mend()
    async with asyncio.timeout(PATIENCE):
        while not released(store):
            await asyncio.sleep(0.02)
    other = await open_store(url, SystemEnv())
    assert (await other.client.submit([a_run(1)]))[0].new
    await other.close()
    await store.close()


async def test_store_closes_while_its_disk_refuses(url, disk):
    store = await open_store(url, SystemEnv())
    disk.refuses = on("COMMIT", sqlite3.SQLITE_FULL)
    with pytest.raises(StoreFullError):
        await store.client.submit([a_run(1)])
    async with asyncio.timeout(PATIENCE):
        await store.close()
    disk.mend()
    store = await open_store(url, SystemEnv())
    assert (await store.client.submit([a_run(1)]))[0].new
    await store.close()


async def test_opening_on_a_full_disk_says_so_and_leaves_no_lock(url, folder, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("watchbill.store.owner.os.pwrite", full)
        with pytest.raises(StoreFullError, match="No space left"):
            await open_store(url, SystemEnv())
    await (await open_store(url, SystemEnv())).close()


async def test_guest_hears_why_the_owner_cannot_write(url, disk):
    store = await open_store(url, SystemEnv())
    async with receiving_guests(store, SystemEnv(), lambda: Driven("default", ())):
        guest = await visit_owner(url, SystemEnv())
        assert guest is not None
        assert not (await guest.condition.ask()).trouble
        disk.refuses = on("COMMIT", sqlite3.SQLITE_FULL)
        with pytest.raises(StoreFullError, match="free some space"):
            await guest.client.submit([a_run(1)])
        assert "is full" in (await guest.condition.ask()).trouble
        disk.mend()
        assert await submitted(guest, 1)
        assert not (await guest.condition.ask()).trouble
        await guest.close()
    await store.close()


# --- an hour, in which time passes only when the test says so


class Timers(HandEnv):
    """Calls back when the test says that it is time."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock)
        self.hand = clock
        self.due: list[tuple[int, Callable[[], None]]] = []
        self.is_due = asyncio.Event()

    def call_later(self, delay, callback):
        self.due.append((self.clock.boot() + delay, callback))
        self.is_due.set()
        return asyncio.get_running_loop().call_later(10_000, lambda: None)

    def go_on(self) -> None:
        self.is_due.clear()
        at, callback = min(self.due, key=lambda one: one[0])
        self.due.remove((at, callback))
        self.hand.boot_now = max(self.hand.boot_now, at)
        callback()


async def test_pauses_grow_and_end_at_a_few_seconds_for_an_hour(url, disk, caplog):
    caplog.set_level(logging.INFO)
    clock = HandClock()
    env = Timers(clock)
    store = await open_store(url, env, clock=clock)
    env.due.clear()  # the timer that looks for commits of others
    heard: list[str] = []
    store.health.listen(lambda error, lasted: heard.append("back" if error is None else type(error).__name__))
    disk.refuses = on("COMMIT", sqlite3.SQLITE_FULL)
    with pytest.raises(StoreFullError):
        await store.client.submit([a_run(1)])
    began, pauses = clock.boot(), []
    while clock.boot() - began < 3_600 * SECOND:
        before = clock.boot()
        env.go_on()
        pauses.append(clock.boot() - before)
        async with asyncio.timeout(PATIENCE):
            await env.is_due.wait()  # a loop that looks would take the interpreter from the thread that opens the file
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert max(pauses) == pauses[-1] == LONGEST_PAUSE
    disk.mend()
    env.go_on()
    async with asyncio.timeout(PATIENCE):
        while not await submitted(store, 1):
            await asyncio.sleep(0)
    assert heard == ["StoreFullError", "back"]
    lines = [record for record in caplog.records if record.name == "watchbill"]
    assert {record.levelname for record in lines[:-1]} == {"ERROR"}
    assert len(lines) - 1 == 1 + 3_600 * SECOND // REPEAT
    assert "is full" in lines[0].getMessage()
    assert "free some space" in lines[0].getMessage()
    assert "is back after 360" in lines[-1].getMessage()
    await store.close()


async def test_health_tells_one_outage_once():
    clock = HandClock()
    health = Health("sqlite:///x.db", clock)
    heard: list[object] = []
    deaf = health.listen(lambda error, lasted: heard.append(error or lasted))
    full = StoreFullError("sqlite:///x.db", "disk")
    health.failed(full)
    clock.pass_by(3 * SECOND)
    health.failed(full)
    assert health.trouble == (full, 3 * SECOND)
    health.answered()
    health.answered()
    assert health.trouble is None
    deaf()
    health.failed(full)
    assert heard == [full, 3 * SECOND]
