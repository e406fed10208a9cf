"""Backups of a file while it is served."""

import threading
from pathlib import Path

from tests.forked import Said, environment, run_command
from tests.house.test_replaced_files import Keeper, a_keeper, completed, file
from watchbill.store.migrate import known_schema

__all__ = ["file"]


def watchbill(file: Path, *words: str) -> Said:
    return run_command(words, environment(WATCHBILL_STORE=f"sqlite:///{file}"), file.parent)


class Working(threading.Thread):
    """Runs one run after the other until it is told to stop."""

    def __init__(self, keeper: Keeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._over = threading.Event()
        self.done: list[str] = []

    def run(self) -> None:
        while not self._over.is_set():
            self._keeper.run(f"r-{len(self.done)}")
            self.done.append(f"r-{len(self.done)}")

    def stop(self) -> None:
        self._over.set()
        self.join()


def test_backup_is_consistent_while_runs_go_on(file):
    copy = file.with_name("copy.db")
    with a_keeper(file) as keeper:
        working = Working(keeper)
        keeper.run("first")
        working.start()
        before = {"first", *working.done}
        said = watchbill(file, "backup", "copy.db", "-o", "json")
        working.stop()
        assert said.code == 0, said.err
        size = copy.stat().st_size
        made = {"store": f"sqlite:///{file}", "backup": str(copy), "bytes": size, "keys": False}
        assert said.json == {**made, "schema": known_schema("sqlite")}
        assert before <= completed(copy) <= {"first", *working.done}
        keeper.run("last")
        assert "last" not in completed(copy)
        assert copy.stat().st_mode & 0o777 == 0o600
    with a_keeper(copy) as restored:
        restored.run("again")


def test_backup_replaces_nothing_and_leaves_nothing_behind(file):
    with a_keeper(file) as keeper:
        keeper.run("a")
        (file.parent / "mine").write_text("mine")
        there = sorted(file.parent.iterdir())
        said = watchbill(file, "backup", "mine")
        assert said.code == 2
        assert "a backup replaces nothing" in said.err
        assert watchbill(file, "backup", "nowhere/copy.db").code == 2
        assert watchbill(file, "backup", ".").code == 2
        assert (file.parent / "mine").read_text() == "mine"
        assert sorted(file.parent.iterdir()) == there
        assert keeper.ask("run b") == "done b"
    assert watchbill(file.parent / "missing.db", "backup", "copy.db").code == 3


def test_backup_of_a_store_whose_process_was_killed_has_all_that_was_acknowledged(file):
    with a_keeper(file) as keeper:
        keeper.run("a", "b")
    assert watchbill(file, "backup", "copy.db").code == 0
    assert completed(file.with_name("copy.db")) == {"a", "b"}
