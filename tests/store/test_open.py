"""Opening: addresses, reading beside an owner, schemas, time, and stores that outlive a loop."""

import asyncio
import contextlib
import gc
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.store.test_group_commit import Inline
from watchbill.clock import SECOND
from watchbill.env import SystemEnv, Threads
from watchbill.errors import StoreError, StoreOutdatedError, StoreReadOnlyError, StoreUrlError
from watchbill.model.states import AttemptState
from watchbill.store import open as open_module
from watchbill.store.migrate import fill, known_schema, migrations, statements, upgrade
from watchbill.store.open import connect_memory, is_memory, migrate, open_reader, open_store, parse_url
from watchbill.store.owner import OwnerLock, take_ownership
from watchbill.store.queries import load_queries
from watchbill.store.sqlite.database import Writer
from watchbill.store.sqlite.files import StoreFiles
from watchbill.store.sqlite.store import SqliteStore
from watchbill.testing.conformance.scene import NOON, HandClock, Scene, a_run


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "store.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


# --- addresses


def test_relative_absolute_and_memory():
    assert parse_url("sqlite:///a/b.db").path == Path("a/b.db")
    assert parse_url("sqlite:////var/b.db").path == Path("/var/b.db")
    assert parse_url("sqlite:///:memory:").path is None
    assert is_memory("sqlite:///:memory:")
    assert not is_memory("sqlite:///a.db")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite://x.db", "did you mean 'sqlite:///x.db'?"),
        ("sqlite:x.db", "did you mean 'sqlite:///x.db'?"),
        ("sqlite:/x.db", "did you mean 'sqlite:///x.db'?"),
        ("x.db", "did you mean 'sqlite:///x.db'?"),
        ("sqlite", "did you mean"),
        ("", "names no kind of store"),
        ("sqlite:///", "names no file"),
        ("sqlite:///folder/", "names no file"),
        ("sqlite:///x.db?mode=ro", "no options"),
        ("sqlite:///x\0.db", "NUL"),
        ("mysql://localhost/x", "names no kind of store"),
    ],
)
def test_a_wrong_address_says_how_to_write_it(url, says):
    with pytest.raises(StoreUrlError) as refused:
        parse_url(url)
    assert says in str(refused.value)
    assert "use sqlite:///relative.db" in str(refused.value)
    assert refused.value.url == url


async def test_a_missing_folder_and_a_folder_are_named(folder):
    with pytest.raises(StoreUrlError, match="there is no folder"):
        await open_store(f"sqlite:///{folder}/missing/x.db", SystemEnv())
    with pytest.raises(StoreUrlError, match="is not a file"):
        await open_store(f"sqlite:///{folder}", SystemEnv())


# --- opening and closing


async def test_a_relative_address_is_relative_to_here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    store = await open_store("sqlite:///a b%20#c.db", SystemEnv())
    await store.close()
    assert (folder / "a b%20#c.db").exists()


async def test_what_was_written_is_there_after_reopening(url):
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    await store.close()
    store = await open_store(url, SystemEnv())
    assert await store.client.find("default", "o-1") is not None
    await store.close()


async def test_closing_leaves_one_tidy_file(url, path):
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    await store.close()
    await store.close()
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}.owner"}


async def test_doors_waiting_when_it_closes_are_finished(url):
    store = await open_store(url, SystemEnv())
    waiting = [asyncio.ensure_future(store.client.submit([a_run(num)])) for num in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert all([(await door)[0].new for door in waiting])
    store = await open_store(url, SystemEnv())
    assert len(await store.client.runs("default")) == 50
    await store.close()


async def test_a_closed_store_says_so(url):
    store = await open_store(url, SystemEnv())
    await store.close()
    for door in (store.client.submit([a_run(1)]), store.client.find("default", "o-1")):
        with pytest.raises(StoreError, match="is closed: open it again"):
            await door


def test_a_store_in_memory_outlives_an_event_loop():
    async def begin():
        store = await open_store("sqlite:///:memory:", SystemEnv())
        await store.client.submit([a_run(1)])
        return store

    async def go_on(store):
        await store.client.submit([a_run(2)])
        found = await store.client.runs("default")
        assert store.commits >= 2
        await store.close()
        return len(found)

    store = asyncio.run(begin())
    assert asyncio.run(go_on(store)) == 2


class InlineEnv(SystemEnv):
    """Runs every job where it stands, as a simulation does."""

    def threads(self, name: str, count: int) -> Threads:
        return Inline()


async def test_a_world_without_threads_will_do(url):
    for address in (url, "sqlite:///:memory:"):
        clock = HandClock()
        store = await open_store(address, InlineEnv(), clock=clock, lasting_leases=False)
        scene = Scene(store, clock)
        await scene.open()
        runs = await asyncio.gather(*(scene.submit(a_run(num)) for num in range(20)))
        row = await scene.row_in(AttemptState.DONE, runs[3][0])
        assert (await store.scheduler.look(list(scene.terms), ["order"], 100)).finals == (row,)
        await store.close()


async def test_an_opening_that_is_cancelled_leaves_nothing_behind(url):
    opening = asyncio.ensure_future(open_store(url, SystemEnv()))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    while any(thread.name.startswith("opener") for thread in threading.enumerate()):
        await asyncio.sleep(0)
    await asyncio.sleep(0)  # what the thread handed back has been dropped
    gc.collect()
    await (await open_store(url, SystemEnv())).close()


class Opened:
    """Keeps what an opening takes: Python closes none of it, because it is referred to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connections: list[sqlite3.Connection] = []
        self.locks: list[OwnerLock] = []
        self.begun, self.ended, self.may_go_on = threading.Event(), threading.Event(), threading.Event()
        self.may_go_on.set()
        for name in ("connect_writer", "connect_reader"):
            monkeypatch.setattr(open_module, name, partial(self._connect, getattr(open_module, name)))
        monkeypatch.setattr(open_module, "take_ownership", partial(self._lock, take_ownership))
        monkeypatch.setattr(open_module, "_open", partial(self._open, open_module._open))

    def _connect(self, connect: Callable[[Path, str], sqlite3.Connection], path: Path, url: str) -> sqlite3.Connection:
        self.connections.append(connect(path, url))
        return self.connections[-1]

    def _lock(self, take: Callable[[Path, str], OwnerLock], path: Path, url: str) -> OwnerLock:
        self.locks.append(take(path, url))
        self.begun.set()
        assert self.may_go_on.wait(10)
        return self.locks[-1]

    def _open(self, opening: Callable[..., object], *args: object, **options: object) -> object:
        try:
            return opening(*args, **options)
        finally:
            self.ended.set()

    async def check_that_all_is_closed(self) -> None:
        while any(thread.name.startswith("opener") for thread in threading.enumerate()):
            await asyncio.sleep(0)
        assert self.locks
        assert not any(lock._descriptor for lock in self.locks)
        for connection in self.connections:
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                connection.execute("SELECT 1")


@pytest.mark.parametrize("when", ["before it begins", "when it has the lock", "when the thread has opened the file"])
async def test_cancelled_opening_closes_its_connections_and_its_lock(url, monkeypatch, when):
    opened = Opened(monkeypatch)
    opened.may_go_on.clear()
    opening = asyncio.ensure_future(open_store(url, SystemEnv()))
    await asyncio.sleep(0)
    if when == "when it has the lock":
        assert opened.begun.wait(10)
    elif when == "when the thread has opened the file":
        opened.may_go_on.set()
        assert opened.ended.wait(10)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    opened.may_go_on.set()
    await opened.check_that_all_is_closed()
    assert len(opened.connections) == 2


async def test_opening_that_fails_with_both_connections_open_closes_them(url, monkeypatch):
    opened = Opened(monkeypatch)

    def fail(_: StoreFiles) -> None:
        raise OSError("no lock")

    monkeypatch.setattr(StoreFiles, "guard", fail)
    with pytest.raises(OSError, match="no lock"):
        await open_store(url, SystemEnv())
    await opened.check_that_all_is_closed()
    assert len(opened.connections) == 2


async def test_opening_that_fails_after_its_thread_closes_what_that_opened(url, monkeypatch):
    opened = Opened(monkeypatch)

    class NoWriter(SystemEnv):
        def threads(self, name: str, count: int) -> Threads:
            if name == "writer":
                raise RuntimeError("no thread")
            return super().threads(name, count)

    with pytest.raises(RuntimeError, match="no thread"):
        await open_store(url, NoWriter())
    await opened.check_that_all_is_closed()
    assert len(opened.connections) == 2


async def test_reader_that_is_closed_while_it_opens_closes_its_connection(url, monkeypatch):
    await (await open_store(url, SystemEnv())).close()
    opened = Opened(monkeypatch)
    reader = open_reader(url, SystemEnv())
    reading = asyncio.ensure_future(reader.runs("default"))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await reader.close()
    await reader.close()
    assert opened.connections
    for connection in opened.connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


async def test_reads_do_not_wait_for_a_write(url):
    store = await open_store(url, SystemEnv())
    assert isinstance(store, SqliteStore)
    await store.client.submit([a_run(1)])
    loop = asyncio.get_running_loop()
    writing, may_end = asyncio.Event(), threading.Event()

    def slow_write(db: Writer) -> bool:
        loop.call_soon_threadsafe(writing.set)
        return may_end.wait(10)

    write = asyncio.ensure_future(store._lanes.write(slow_write))
    await writing.wait()
    assert await store.client.find("default", "o-1") is not None
    may_end.set()
    assert await write
    await store.close()


# --- reading beside the owner


async def test_a_reader_sees_what_its_living_owner_commits(url):
    store = await open_store(url, SystemEnv())
    reader = open_reader(url, SystemEnv())
    await store.client.submit([a_run(1)])
    assert await reader.find("default", "o-1") is not None
    await store.client.submit([a_run(2)])
    assert len(await reader.runs("default")) == 2
    assert await reader.record("default", "o-2") is not None
    assert len(await reader.endings([1, 2])) == 2
    with pytest.raises(StoreReadOnlyError, match="opened to read only"):
        await reader.submit([a_run(3)])
    await reader.close()
    await store.close()


async def test_a_reader_needs_no_owner_and_changes_nothing(url, path):
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    await store.close()
    before = path.read_bytes()
    reader = open_reader(url, SystemEnv())
    assert await reader.find("default", "o-1") is not None
    await reader.close()
    assert path.read_bytes() == before


def test_a_file_that_is_closed_while_it_is_looked_at_is_not_taken_for_damaged(url, path, monkeypatch):
    migrate(url)
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE mine (body)")
    other.execute("INSERT INTO mine VALUES (zeroblob(1000000))")
    other.commit()
    real, looks = open_module._has_log, []

    def closes_before_the_second_look(path: Path) -> bool:
        looks.append(path)
        if len(looks) == 2:  # the pages are counted, and most are in the log only
            other.close()
        return real(path)

    monkeypatch.setattr(open_module, "_has_log", closes_before_the_second_look)
    migrate(url)
    assert len(looks) == 2


async def test_a_reader_of_nothing_says_so(url, path):
    reader = open_reader(url, SystemEnv())
    with pytest.raises(StoreUrlError, match="there is no file"):
        await reader.find("default", "o-1")
    await reader.close()
    assert not path.exists()


async def test_a_reader_of_an_empty_file_asks_for_a_migration(url, path):
    path.touch()
    reader = open_reader(url, SystemEnv())
    with pytest.raises(StoreOutdatedError, match="run `watchbill migrate`"):
        await reader.find("default", "o-1")
    await reader.close()


async def test_memory_cannot_be_read_from_beside():
    reader = open_reader("sqlite:///:memory:", SystemEnv())
    with pytest.raises(StoreUrlError, match="inside its own process"):
        await reader.find("default", "o-1")
    await reader.close()


# --- schemas


def all_in(connection: sqlite3.Connection) -> list[object]:
    """Give what a database is: its definitions, its rows, and its header."""
    made = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    tables = [name for kind, name, _, _ in made if kind == "table"]
    rows = [(table, connection.execute(f"SELECT * FROM {table}").fetchall()) for table in tables]
    header = [connection.execute(f"PRAGMA {word}").fetchone() for word in ("application_id", "user_version")]
    return [made, rows, header, connection.execute("PRAGMA integrity_check").fetchall()]


def test_a_store_in_memory_is_copied_and_is_what_migrations_make():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as plain:
        upgrade(plain, load_queries("sqlite"), "sqlite:///:memory:")
        for _ in range(2):
            with contextlib.closing(connect_memory()) as copied:
                assert all_in(copied) == all_in(plain)
                copied.execute("DELETE FROM meta")  # of this one alone
                assert all_in(copied) != all_in(plain)


def test_where_sqlite_cannot_copy_a_store_in_memory_is_made_when_it_is_opened():
    class Simple:
        """A connection of a build without that."""

    fill(Simple())  # type: ignore[arg-type]


def test_migrate_makes_and_upgrades(url, path):
    known = known_schema("sqlite")
    assert migrate(url) == (0, known)
    assert migrate(url) == (known, known)
    path.unlink()
    path.touch()
    assert migrate(url) == (0, known)


async def test_a_migrated_store_can_be_opened(url):
    migrate(url)
    store = await open_store(url, SystemEnv())
    await store.close()


def test_a_migration_that_fails_leaves_nothing(url, path, monkeypatch):
    broken = [*migrations("sqlite"), migrations("sqlite")[0]._replace(number=2, text="CREATE TABLE meta (x);")]
    monkeypatch.setattr("watchbill.store.migrate.migrations", lambda dialect: broken)
    with pytest.raises(StoreError, match="table meta already exists"):
        migrate(url)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()


def test_scripts_are_split_where_statements_end():
    script = "-- one; two;\nCREATE TABLE a (b);\nCREATE TRIGGER t BEFORE UPDATE ON a\nBEGIN\n  SELECT 1;\nEND;\n"
    assert [text.split()[-1] for text in statements(script)] == ["(b);", "END;"]


# --- time


async def opened_at(url: str, wall: int) -> tuple[int, HandClock]:
    """Open, look at the store's clock, write something, close."""
    clock = HandClock(wall=wall)
    store = await open_store(url, SystemEnv(), clock=clock)
    now = (await store.supervisor.watch(1)).now
    await store.client.submit([a_run(wall)])
    await store.close()
    return now, clock


async def test_the_stores_clock_begins_with_the_wall_clock_and_follows_boot_time(url):
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    clock.wall_now -= 3_600 * SECOND
    clock.pass_by(7)
    assert (await store.supervisor.watch(1)).now == NOON + 7
    await store.close()


async def test_the_stores_clock_never_goes_back(url):
    assert (await opened_at(url, NOON))[0] == NOON
    assert (await opened_at(url, NOON - 3_600 * SECOND))[0] == NOON
    assert (await opened_at(url, NOON + 5))[0] == NOON + 5


async def test_the_stores_clock_never_goes_back_behind_a_dead_owner(url, folder):
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    scene = Scene(store, clock)
    await scene.open()
    for _ in range(5):
        clock.pass_by(SECOND)
        await scene.submit(a_run(clock.boot_now))
    copy = folder / "copy.db"
    for suffix in ("", "-wal"):
        (folder / f"copy.db{suffix}").write_bytes((folder / f"store.db{suffix}").read_bytes())
    await store.close()
    now, _ = await opened_at(f"sqlite:///{copy}", NOON - 1_800 * SECOND)
    assert 0 <= now - (NOON + 5 * SECOND) <= SECOND // 10


async def test_an_idle_owner_writes_nothing(url):
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    assert isinstance(store, SqliteStore)
    scene = Scene(store, clock)
    await scene.open()
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    held = [(row.id, row.fence)]
    await store.agent.beat(70, None, [], held, said=b"{}", starved=held)
    before = store.commits
    for _ in range(3):
        clock.pass_by(10 * SECOND)
        await store.agent.beat(70, None, [], held, starved=held)
        await store.agent.beat(70, None, [], held, said=b"{}", starved=held, queues=[scene.queue], lease_no=9_999_999)
        await store.scheduler.renew(7, scene.terms, None)
        await store.scheduler.take(8, list(scene.terms), None)
        await scene.lease()
        await scene.turn()
    assert store.commits == before
    await store.close()


async def test_writer_asks_macos_to_flush_the_cache_of_the_disk(url):
    store = await open_store(url, SystemEnv())
    writer = vars(vars(vars(store)["_lanes"])["_writer"])["_connection"]
    pragmas = ("synchronous", "fullfsync", "checkpoint_fullfsync")
    assert [writer.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas] == [2, 1, 1]
    await store.close()
