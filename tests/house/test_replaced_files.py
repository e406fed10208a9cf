"""The files of a served store: a copy does no harm; a deleted, moved or replaced one stops its owner by name."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import fork

MEMORY_DISK = Path("/dev/shm")
LONG = 120  # seconds: reached only by a test that fails
OPEN_AND_CLOSE = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM meta'); c.close()"


@pytest.fixture
def file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder) / "store.db"


class Keeper:
    """tests/house/keeper.py as a process."""

    def __init__(self, file: Path) -> None:
        self._process = fork("tests.house.keeper", f"sqlite:///{file}", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.line() == "ready"

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self.line()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def run(self, *ids: str) -> None:
        """Run these to their ends."""
        for id in ids:
            assert self.ask(f"run {id}") == f"done {id}"

    def kill(self) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(LONG)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


@contextlib.contextmanager
def a_keeper(file: Path) -> Iterator[Keeper]:
    keeper = Keeper(file)
    try:
        yield keeper
    finally:
        keeper.kill()


def completed(file: Path) -> set[str]:
    """Read which runs have completed."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {id for (id,) in connection.execute("SELECT id FROM run WHERE status = 10")}


def another_process_opens_and_closes(file: Path) -> None:
    subprocess.run([sys.executable, "-c", OPEN_AND_CLOSE, str(file)], check=True, timeout=LONG)


def test_copy_inside_the_owner_loses_nothing(file):
    with a_keeper(file) as keeper:
        keeper.run("a", "b")
        assert keeper.ask("copy") == "copied"
        another_process_opens_and_closes(file)
        keeper.run("c", "d")
        another_process_opens_and_closes(file)
        keeper.run("e")
        keeper.kill()
        with a_keeper(file) as next_keeper:
            next_keeper.run("f")
        assert completed(file) == set("abcdef")


def test_copy_inside_the_owner_lets_no_second_process_serve(file):
    with a_keeper(file) as keeper:
        assert keeper.ask("copy") == "copied"
        second = subprocess.run(
            [sys.executable, "-m", "watchbill.cli.main", "migrate", "--store", f"sqlite:///{file}"],
            capture_output=True, text=True, timeout=LONG, check=False,
        )  # fmt: skip
        assert second.returncode == 3
        assert "which is alive" in second.stderr
        keeper.run("a")


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".owner"])
@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_owner_stops_by_name_when_a_file_is_gone(file, suffix, how):
    target = file.with_name(file.name + suffix)
    with a_keeper(file) as keeper:
        keeper.run("a")
        if how == "deleted":
            target.unlink()
        elif how == "moved":
            target.rename(target.with_name("elsewhere"))
        else:
            shutil.copy(target, target.with_name("other"))
            os.replace(target.with_name("other"), target)
        said = keeper.ask("run b")
        assert said.startswith("failed StoreReplacedError store "), said
        assert f"{str(target)!r} {'is another file now' if how == 'replaced' else 'was deleted or moved away'}" in said
        assert "nothing is acknowledged from now on" in said
        assert keeper.ask("run c") == said


@pytest.mark.parametrize("suffix", ["", "-wal", ".owner"])
def test_idle_owner_stops_by_itself(file, suffix):
    with a_keeper(file) as keeper:
        keeper.run("a")
        file.with_name(file.name + suffix).unlink()
        assert keeper.ask("failed") == "failed"


def test_moved_file_has_all_that_was_acknowledged(file):
    with a_keeper(file) as keeper:
        keeper.run("a", "b")
        file.rename(file.with_name("moved.db"))
        assert keeper.ask("failed") == "failed"
        keeper.ask("run c")
        with a_keeper(file) as second:  # a new store at the old place
            second.run("x")
            keeper.kill()
            second.run("y")
            second.kill()
        assert completed(file) == {"x", "y"}
        assert completed(file.with_name("moved.db")) == {"a", "b"}


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_runs_acknowledged_until_a_file_was_moved_are_there_when_it_is_back(file, suffix):
    target, away = file.with_name(file.name + suffix), file.with_name("away")
    with a_keeper(file) as keeper:
        acknowledged: list[str] = []

        def work() -> None:
            while keeper.ask(f"run r-{len(acknowledged)}") == f"done r-{len(acknowledged)}":
                acknowledged.append(f"r-{len(acknowledged)}")

        working = threading.Thread(target=work)
        working.start()
        while len(acknowledged) < 20:
            time.sleep(0.001)
        target.rename(away)
        working.join(LONG)
        assert not working.is_alive()
        keeper.kill()  # perhaps before it has closed its files
    away.rename(target)
    with a_keeper(file) as keeper:
        keeper.run("last")
    assert completed(file) >= {*acknowledged, "last"}


def test_second_process_takes_over_after_the_owner_file_was_deleted(file):
    with a_keeper(file) as keeper:
        keeper.run("a")
        file.with_name("store.db.owner").unlink()
        assert keeper.ask("failed") == "failed"
        with a_keeper(file) as second:
            second.run("b")
            assert keeper.ask("run c").startswith("failed StoreReplacedError")
            second.run("d")
            second.kill()
        assert completed(file) == {"a", "b", "d"}
