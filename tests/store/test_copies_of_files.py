"""A copy of a file is complete under its name or not there; and files that were never whole are told apart."""

import contextlib
import errno
import fcntl
import os
import sqlite3
import struct
from pathlib import Path

import pytest

from watchbill.clock import SECOND, SystemClock
from watchbill.env import SystemEnv
from watchbill.errors import InvalidOptionError, StoreCorruptError, StoreError, StoreReadOnlyError, StoreUrlError
from watchbill.forks import FORKS
from watchbill.store import description_locks
from watchbill.store.migrate import known_schema, new_store
from watchbill.store.open import back_up, open_reader, open_store, set_clock_back
from watchbill.store.owner import take_ownership
from watchbill.store.sqlite.database import Inherited
from watchbill.testing.conformance.scene import a_run

JOURNAL = struct.Struct(">8s8xI")
MAGIC = bytes.fromhex("d9d505f920a163d7")


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "store.db"


@pytest.fixture
async def url(path: Path) -> str:
    """The address of a store with a few runs, closed."""
    url = f"sqlite:///{path}"
    store = await open_store(url, SystemEnv())
    await store.client.submit([a_run(num) for num in range(5)])
    await store.close()
    return url


async def runs_in(path: Path) -> int:
    reader = open_reader(f"sqlite:///{path}", SystemEnv())
    try:
        return len(await reader.runs("default", limit=100))
    finally:
        await reader.close()


async def test_copy_is_a_store_and_replaces_nothing(url: str, folder: Path) -> None:
    schema, size = back_up(url, folder / "copy.db")
    assert (schema, size) == (known_schema("sqlite"), (folder / "copy.db").stat().st_size)
    assert await runs_in(folder / "copy.db") == 5
    with pytest.raises(InvalidOptionError, match="exists, and a backup replaces nothing"):
        back_up(url, folder / "copy.db")
    with pytest.raises(StoreUrlError, match="there is no file"):
        back_up(f"sqlite:///{folder}/none.db", folder / "other.db")
    with pytest.raises(StoreError, match="cannot be written: No such file or directory; nothing was left behind"):
        back_up(url, folder / "nowhere" / "copy.db")


async def test_copy_where_there_are_no_hard_links_replaces_nothing_either(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    back_up(url, folder / "copy.db")
    assert await runs_in(folder / "copy.db") == 5

    def taken_meanwhile(part: Path, destination: Path) -> None:
        destination.write_bytes(b"mine")
        no_links()

    monkeypatch.setattr(os, "link", taken_meanwhile)
    with pytest.raises(InvalidOptionError, match="exists, and a backup replaces nothing"):
        back_up(url, folder / "other.db")
    assert (folder / "other.db").read_bytes() == b"mine"
    monkeypatch.undo()

    def linked_meanwhile(part: Path, destination: Path) -> None:
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", linked_meanwhile)
    with pytest.raises(InvalidOptionError, match="exists, and a backup replaces nothing"):
        back_up(url, folder / "third.db")
    assert not list(folder.glob("*.part*"))


async def test_copy_of_a_damaged_file_is_refused_and_leaves_nothing_behind(url: str, path: Path, folder: Path) -> None:
    whole = bytearray(path.read_bytes())
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'run'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    whole[(root - 1) * size + 3] ^= 0xFF  # how many cells the first page of the table has
    path.write_bytes(whole)
    with pytest.raises((StoreCorruptError, StoreError), match=r"integrity check|malformed"):
        back_up(url, folder / "copy.db")
    assert not list(folder.glob("copy.db*"))


async def test_file_whose_process_ended_while_it_was_made_is_made_anew(folder: Path) -> None:
    making = sqlite3.connect(folder / "making.db", isolation_level=None)
    making.execute("PRAGMA cache_size = 1")  # what is written leaves the memory before it is committed
    making.execute("BEGIN")
    making.execute("CREATE TABLE run (body BLOB)")
    making.executemany("INSERT INTO run VALUES (?)", [(b"x" * 4_000,)] * 100)
    for suffix in ("", "-journal"):
        (folder / f"half.db{suffix}").write_bytes((folder / f"making.db{suffix}").read_bytes())
    making.close()
    assert (folder / "half.db").stat().st_size
    store = await open_store(f"sqlite:///{folder}/half.db", SystemEnv())
    await store.client.submit([a_run(1)])
    await store.close()
    assert await runs_in(folder / "half.db") == 1


@pytest.mark.parametrize("journal", [JOURNAL.pack(MAGIC, 7), b"short"])
async def test_store_beside_a_journal_of_something_else_is_refused_unchanged(
    url: str, path: Path, journal: bytes
) -> None:
    beside = path.with_name("store.db-journal")
    beside.write_bytes(journal)
    before = path.read_bytes()
    with pytest.raises(StoreReadOnlyError):
        await open_store(url, SystemEnv())
    assert (path.read_bytes(), beside.read_bytes()) == (before, journal)


def test_set_back_that_fails_changes_nothing(path: Path) -> None:
    path.write_bytes(new_store())
    ahead = SystemClock().wall() + 400 * 86_400 * SECOND
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'time'", (ahead,))
        connection.execute("CREATE TRIGGER refuses BEFORE UPDATE ON meta BEGIN SELECT RAISE(ABORT, 'not now'); END")
    with pytest.raises(StoreError, match="not now"):
        set_clock_back(f"sqlite:///{path}", SystemClock())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'time'").fetchone() == (ahead,)


async def test_sqlite_that_is_too_old_is_refused_by_its_number(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 7, 0))
    with pytest.raises(StoreError, match=r"needs SQLite 3\..* or newer, this Python has"):
        await open_store(url, SystemEnv())


def test_child_that_was_forked_in_the_middle_of_a_job_opens_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    inherited, connection = Inherited(), sqlite3.connect(":memory:")
    inherited.add(connection)
    inherited.close("sqlite:///a.db")
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")
    monkeypatch.setattr(FORKS, "was_clean", False)
    inherited.add(sqlite3.connect(":memory:"))
    with pytest.raises(StoreError, match="it was forked while its parent was reading or writing the file"):
        inherited.close("sqlite:///a.db")


async def test_file_is_owned_by_its_record_lock_alone_where_there_are_no_other_locks(
    url: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(description_locks, "SUPPORTED", False)
    store = await open_store(url, SystemEnv())
    with path.with_name("store.db.owner").open() as owner:
        assert description_locks.holder(owner.fileno(), fcntl.F_WRLCK, 0) == 0, "it is not known"
    await store.close()
    lock = take_ownership(path, url)
    lock.release()
    lock.announce("/run/socket")  # it was released: nothing is written
    assert path.with_name("store.db.owner").read_bytes() == b""


def test_owner_file_that_is_deleted_between_opening_and_locking_is_opened_again(
    url: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lockf, deleted = fcntl.lockf, list[str]()

    def delete_first(descriptor: int, *args: int) -> None:
        if not deleted:
            deleted.append("once")
            path.with_name("store.db.owner").unlink()
        lockf(descriptor, *args)

    monkeypatch.setattr(fcntl, "lockf", delete_first)
    lock = take_ownership(path, url)
    assert deleted
    assert lock.still_owner()
    lock.release()
    assert not lock.still_owner()
