"""Files that cannot be used: each refusal says what, which one and what to do, and changes not a byte."""

import asyncio
import contextlib
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from watchbill.env import SystemEnv
from watchbill.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreNewerError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from watchbill.store.migrate import known_schema
from watchbill.store.open import migrate, open_reader, open_store
from watchbill.store.sqlite.store import SqliteStore
from watchbill.testing.conformance.scene import a_run


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "store.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
async def filled(path: Path, url: str) -> bytes:
    """A store with a few hundred runs, closed."""
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(num, input=b'"' + b"x" * 500 + b'"') for num in range(400)])
    await store.close()
    return path.read_bytes()


async def refusal(url: str, kind: type[StoreError]) -> str:
    """Try every way to open it; all are refused alike."""
    reader = open_reader(url, SystemEnv())
    with pytest.raises(kind):
        await reader.find("default", "o-1")
    await reader.close()
    with pytest.raises(kind):
        migrate(url)
    with pytest.raises(kind) as refused:
        await open_store(url, SystemEnv())
    assert url in str(refused.value)
    return str(refused.value)


# --- damaged and foreign


@pytest.mark.parametrize("share", [1, 15, 16, 50, 99, 100, 101, 512, 1_000, 4_095, 4_096, 8_192, 0.5, -4_096, -1])
async def test_a_truncated_file(path, url, filled, share):
    length = int(len(filled) * share) if isinstance(share, float) else share
    path.write_bytes(filled[:length])
    before = path.read_bytes()
    said = await refusal(url, StoreCorruptError)
    assert "nothing was changed" in said
    assert "restore a backup" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("where", [0, 16, 100])
async def test_a_file_with_a_damaged_beginning(path, url, filled, where):
    path.write_bytes(filled[:where] + b"\xde\xad\xbe\xef" * 1_000 + filled[where + 4_000 :])
    before = path.read_bytes()
    assert "restore a backup" in await refusal(url, StoreCorruptError)
    assert path.read_bytes() == before


async def test_damage_further_back_is_found_when_it_is_touched(path, url, filled):
    path.write_bytes(filled[:8_192] + os.urandom(len(filled) - 8_192))
    before = path.read_bytes()
    with contextlib.suppress(StoreCorruptError):  # what is damaged decides when
        store = await open_store(url, SystemEnv())
        with pytest.raises(StoreCorruptError, match="restore a backup"):
            await asyncio.gather(*(store.client.record("default", f"o-{num}") for num in range(400)))
        with pytest.raises(StoreCorruptError):
            await store.client.submit([a_run(num) for num in range(1_000, 1_400)])
        with pytest.raises(StoreCorruptError):
            await store.client.submit([a_run(5_000)])
        await store.close()
    assert len(path.read_bytes()) >= len(before)


@pytest.mark.parametrize("content", [b"hello\n", b"x", b"# notes\n" * 2_000, os.urandom(20_000)], ids=len)
async def test_a_file_that_is_no_database(path, url, content):
    path.write_bytes(content)
    assert "not a database" in await refusal(url, StoreCorruptError)
    assert path.read_bytes() == content
    assert not path.with_name("store.db.owner").exists()


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
async def test_a_database_of_another_program(path, url, mode):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
    connection.execute("INSERT INTO meta VALUES ('schema', '1')")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    assert "another program" in await refusal(url, StoreCorruptError)
    assert path.read_bytes() == before
    assert not path.with_name("store.db.owner").exists()


async def test_a_store_that_lost_its_schema_number(path, url, filled):
    edit(path, "DELETE FROM meta WHERE key = 'schema'")
    assert "which schema" in await refusal(url, StoreCorruptError)


async def test_an_empty_file_beside_a_log_that_is_not(path, url, filled):
    path.write_bytes(b"")
    log = path.with_name("store.db-wal")
    log.write_bytes(b"the last commits")
    with pytest.raises(StoreCorruptError, match="its write-ahead log is not"):
        await open_store(url, SystemEnv())
    assert log.read_bytes() == b"the last commits"


@pytest.mark.parametrize("make", [Path.touch, lambda path: sqlite3.connect(path).close(), lambda path: None])
async def test_an_empty_file_becomes_a_store(path, url, make):
    make(path)
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(1)])
    await store.close()
    assert path.stat().st_size > 0


async def test_a_newer_store(path, url, filled):
    edit(path, "UPDATE meta SET value = 999 WHERE key = 'schema'")
    before = path.read_bytes()
    said = await refusal(url, StoreNewerError)
    assert f"has schema 999, this Watchbill knows up to {known_schema('sqlite')}" in said
    assert "install the newer Watchbill" in said
    assert path.read_bytes() == before


def edit(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


# --- terminal runs, whoever writes


@pytest.mark.parametrize(
    "statement", ["UPDATE run SET status = 1", "UPDATE run SET held = 'x'", "UPDATE run SET input = x''"]
)
async def test_an_ended_run_never_changes_even_by_hand(path, url, filled, statement):
    edit(path, "UPDATE run SET status = 10")
    with pytest.raises(sqlite3.IntegrityError, match="a run that has ended never changes"):
        edit(path, statement)


async def test_a_begun_run_is_not_scheduled_again_and_the_journal_only_grows(path, url, filled):
    edit(path, "UPDATE run SET status = 1")
    with pytest.raises(sqlite3.IntegrityError, match="is not scheduled again"):
        edit(path, "UPDATE run SET status = 0")
    edit(path, "INSERT INTO journal (run, seq, kind, key, outcome, at, body) VALUES (1, 1, 0, 'k', 0, 0, x'31')")
    with pytest.raises(sqlite3.IntegrityError, match="append only"):
        edit(path, "UPDATE journal SET body = x'32'")


# --- not to be written, or no space


READ_ONLY = """
import asyncio, os, sys
from watchbill.env import SystemEnv
from watchbill.errors import StoreError
from watchbill.store.open import open_store

async def main():
    await (await open_store("sqlite:///:memory:", SystemEnv())).close()  # everything is imported and read
    if os.geteuid() == 0:
        os.seteuid(65534)  # permissions do not bind root
    try:
        store = await open_store(sys.argv[1], SystemEnv())
        await store.client.submit([])
        print("opened")
    except StoreError as error:
        print(type(error).__name__, error)

asyncio.run(main())
"""


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o444, 0o555), (0o666, 0o555), (None, 0o555)])
def test_a_file_or_folder_that_may_not_be_written(folder, path, url, file_mode, folder_mode):
    if file_mode is not None:
        migrate(url)
        path.chmod(file_mode)
        path.with_name("store.db.owner").chmod(0o666)
    before = path.read_bytes() if file_mode is not None else None
    folder.chmod(folder_mode)
    said = run(READ_ONLY, url)
    folder.chmod(0o777)
    assert said.startswith("StoreReadOnlyError"), said
    assert url in said
    assert "give this user write access" in said
    assert (path.read_bytes() if path.exists() else None) == before


async def test_a_place_where_nothing_can_be_made():
    with pytest.raises(StoreReadOnlyError, match="write access"):
        await open_store("sqlite:////proc/store.db", SystemEnv())


async def test_a_file_that_may_not_grow(path, url, filled):
    store = await open_store(url, SystemEnv())
    assert isinstance(store, SqliteStore)
    pages = store._lanes._writer._connection.execute("PRAGMA page_count").fetchone()[0]
    store._lanes._writer._connection.execute(f"PRAGMA max_page_count = {pages + 20}")
    acknowledged: list[int] = []

    async def fill() -> None:
        for num in range(1_000, 9_999):
            await store.client.submit([a_run(num, input=b'"' + b"x" * 2_000 + b'"')])
            acknowledged.append(num)

    with pytest.raises(StoreFullError) as refused:
        await fill()
    assert url in str(refused.value)
    assert "what was acknowledged is kept: free some space" in str(refused.value)
    with pytest.raises(StoreFullError):
        await store.client.submit([a_run(1)])
    await store.close()
    store = await open_store(url, SystemEnv())
    kept = {run.num for run in await store.client.runs("default", limit=10_000)}
    assert kept == set(range(400)) | set(acknowledged)
    await store.close()


FULL_DISK = """
import asyncio, resource, sys
from watchbill.testing.conformance.scene import a_run
from watchbill.env import SystemEnv
from watchbill.errors import StoreError
from watchbill.store.open import open_store

async def main():
    store = await open_store(sys.argv[1], SystemEnv())
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    for num in range(1_000, 9_999):
        try:
            await store.client.submit([a_run(num, input=b"x" * 20_000)])
        except StoreError as error:
            print(num, type(error).__name__, error)
            break
    await store.close()

asyncio.run(main())
"""


async def test_a_disk_that_is_full(path, url, filled):
    said = run(FULL_DISK, url)
    failed_at, kind, message = said.split(" ", 2)
    assert kind == "StoreFullError"
    assert "free some space" in message
    store = await open_store(url, SystemEnv())
    kept = {run.num for run in await store.client.runs("default", limit=10_000)}
    assert kept == set(range(400)) | set(range(1_000, int(failed_at)))
    await store.close()
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


async def test_a_transaction_that_somebody_keeps_open(path, url, filled, monkeypatch):
    monkeypatch.setattr("watchbill.store.sqlite.database.BUSY_TIMEOUT", 0.01)
    store = await open_store(url, SystemEnv())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnreachableError, match="somebody else keeps open"):
        await store.client.submit([a_run(5_000)])
    other.execute("ROLLBACK")
    other.close()
    assert (await store.client.submit([a_run(5_000)]))[0].new, "nothing is broken"
    await store.close()


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
