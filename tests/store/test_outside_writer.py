"""SQLite, and an outsider that writes to the file at the worst moment: after a door has read, before it writes."""

import sqlite3
from pathlib import Path

import pytest

from watchbill.env import SystemEnv
from watchbill.store.open import open_store
from watchbill.store.sqlite.database import Writer
from watchbill.store.sqlite.store import SqliteStore
from watchbill.testing.conformance.scene import ME

WRITES = ("INSERT", "UPDATE", "DELETE")


class Outsider:
    """Somebody with the file open in another program, who writes to it once, and does not wait for anybody."""

    def __init__(self, path: Path, victim: sqlite3.Connection) -> None:
        self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self._victim = victim
        self._victim.set_trace_callback(self._sees)
        self.outcomes: list[str] = []

    def _sees(self, statement: str) -> None:
        """Called on the writer's thread, before each of its statements."""
        if statement.startswith(WRITES) and not self.outcomes:
            try:
                self._file.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('outside', x'00')")
                self.outcomes.append("written")
            except sqlite3.OperationalError as error:
                self.outcomes.append(str(error))

    def leave(self) -> None:
        self._victim.set_trace_callback(None)
        self._file.close()


async def played(folder: Path) -> tuple[list[str], int | sqlite3.OperationalError]:
    """Let an outsider write while a scheduler takes its shards, which is a read and two writes; gives what each got."""
    store = await open_store(f"sqlite:///{folder}/store.db", SystemEnv())
    assert isinstance(store, SqliteStore)
    shards = await store.scheduler.shards("default", "")
    outsider = Outsider(folder / "store.db", store._lanes._writer._connection)
    try:
        taken = len((await store.scheduler.take(ME, shards, None)).taken)
    except sqlite3.OperationalError as error:
        return outsider.outcomes, error
    else:
        return outsider.outcomes, taken
    finally:
        outsider.leave()
        await store.close()


async def test_what_a_door_has_read_is_true_until_it_has_written(folder: Path):
    outside, taken = await played(folder)
    assert outside == ["database is locked"], "the outsider stays out"
    assert taken == 16


async def test_m18_begin_deferred_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def begin(self, *, durable=True):
        self._connection.execute("BEGIN DEFERRED")
        self._changes = self._connection.total_changes

    monkeypatch.setattr(Writer, "begin", begin)
    outside, taken = await played(folder)
    assert outside == ["written"]
    assert isinstance(taken, sqlite3.OperationalError), "at once, whatever the busy timeout is"
    with pytest.raises(AssertionError):
        await test_what_a_door_has_read_is_true_until_it_has_written(folder)
