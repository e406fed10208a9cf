"""Several processes on one file: one has the rooms, the others go through its socket, and nobody waits for the dead."""

import contextlib
import os
import random
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
GUESTS, STARTS, KILLS = 20, 50, 6


@pytest.fixture
def file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder) / "store.db"


class Beside:
    """tests/house/beside.py as a process, talked to by lines."""

    def __init__(self, file: Path, *arguments: str) -> None:
        self._process = fork(
            "tests.house.beside", f"sqlite:///{file}", *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self._process.pid

    def __enter__(self) -> "Beside":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """Wait for the next line; nothing when it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.say(line)
        return self.line()

    def wait(self) -> int:
        return self._process.wait(LONG)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        self._process.wait(LONG)


@contextlib.contextmanager
def an_owner(file: Path) -> Iterator[Beside]:
    with Beside(file, "own") as owner:
        assert owner.line() == "ready"
        yield owner


def test_a_second_process_starts_watches_and_cancels_runs_beside_the_owner(file: Path) -> None:
    with an_owner(file) as owner, Beside(file, "ask") as guest:
        assert guest.ask("start a 21") == "a"
        assert guest.ask("result a") == "42"
        assert guest.ask("start a 21") == "a"  # equal work: the same run
        assert guest.ask("nap n") == "n"
        assert guest.ask("cancel n") == "None"
        assert guest.ask("result n").startswith("RunCancelled")
        assert guest.ask("status n") == "cancelled"
        owner.say("enough")
        assert owner.wait() == 0
        assert guest.ask("start b 1") == "b"  # as the owner, for one door
        assert guest.ask("status b") == "scheduled"
    assert not Path(f"{file}.socket").exists()


def test_a_synchronous_guest_ends_without_a_word(file: Path) -> None:
    command = [sys.executable, "-W", "always::ResourceWarning", "-m", "tests.house.beside", f"sqlite:///{file}"]
    with an_owner(file):
        done = subprocess.run([*command, "start", "2", "x"], capture_output=True, text=True, timeout=LONG, check=True)
    assert (done.stdout, done.stderr) == ("x-0\nx-1\n", "")


def test_rooms_in_a_second_process_are_refused_with_pid_and_address_and_open_at_once_when_the_owner_ends(
    file: Path,
) -> None:
    with an_owner(file) as owner, Beside(file, "ask") as second:
        refused = second.ask("rooms")
        assert f"is owned by process {owner.pid}, which is alive" in refused
        assert f"serves other processes at '{file}.socket'" in refused
        assert "start and handles go through it" in refused
        assert "stop it, or give this one a store of its own" in refused
        owner.say("enough")
        assert owner.wait() == 0
        assert second.ask("rooms") == "opened"
    with an_owner(file) as owner, Beside(file, "ask") as second:
        owner.kill()
        assert second.ask("rooms") == "opened"


def test_a_script_that_runs_a_workflow_takes_in_guests_and_app_run_of_theirs(file: Path) -> None:
    with Beside(file, "script", "w") as script, Beside(file, "ask") as guest:
        assert script.line() == "holding"
        assert guest.ask("start a 1") == "a"
        assert guest.ask("result a") == "2"
        assert guest.ask("run b 2") == "4"
        assert guest.ask("run b 2") == "4"  # it has ended, and its result is there
        script.say("ord")
        assert script.line() == "word"
        assert script.wait() == 0


def test_who_waits_in_app_run_has_the_rooms_when_the_owner_is_killed(file: Path) -> None:
    with an_owner(file) as owner, Beside(file, "script", "w") as script:
        assert owner.line() == "holding"  # the run of the script is driven by the owner
        owner.kill()
        assert script.line() == "holding"  # and goes on in the script
        script.say("ord")
        assert script.line() == "word"
        assert script.wait() == 0


def test_who_waits_in_app_run_has_the_rooms_when_the_owner_ends(file: Path) -> None:
    with an_owner(file) as owner, Beside(file, "doze") as script, Beside(file, "ask") as guest:
        while guest.ask("status doze") != "waiting":
            pass
        owner.say("enough")
        assert owner.wait() == 0
        assert script.line() == str(script.pid)
        assert script.wait() == 0


def test_many_processes_without_an_owner_take_turns(file: Path) -> None:
    with contextlib.ExitStack() as stack:
        guests = [stack.enter_context(Beside(file, "start", "10", f"g{n}")) for n in range(4)]
        said = [[guest.line() for _ in range(10)] for guest in guests]
        assert [guest.wait() for guest in guests] == [0] * 4
    assert said == [[f"g{n}-{i}" for i in range(10)] for n in range(4)]


class Writer(threading.Thread):
    """One guest and what it said: each line is a run that was acknowledged."""

    def __init__(self, process: Beside) -> None:
        super().__init__()
        self.process = process
        self.acknowledged: list[str] = []

    def run(self) -> None:
        while line := self.process.line():
            self.acknowledged.append(line)


def test_nothing_acknowledged_is_lost_when_owners_are_killed_while_guests_write(file: Path) -> None:
    seed = int(os.environ.get("WATCHBILL_SEED", random.randrange(1_000_000)))
    print(f"replay the moments with WATCHBILL_SEED={seed}")
    moments = random.Random(seed)
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(Beside(file, "own"))
        assert owner.line() == "ready"
        writers = [Writer(stack.enter_context(Beside(file, "start", str(STARTS), f"g{n}"))) for n in range(GUESTS)]
        for writer in writers:
            writer.start()
        kills = 0
        while kills < KILLS:
            so_far = sum(len(writer.acknowledged) for writer in writers)
            goal = min(so_far + moments.randrange(20, 120), GUESTS * STARTS - 1)
            while sum(len(writer.acknowledged) for writer in writers) < goal:
                time.sleep(0.005)
            owner.kill()
            kills += 1
            owner = stack.enter_context(Beside(file, "own"))
            assert owner.line() == "ready"
        for writer in writers:
            writer.join(LONG)
        assert [writer.process.wait() for writer in writers] == [0] * GUESTS
        acknowledged = [id for writer in writers for id in writer.acknowledged]
        assert len(acknowledged) == len(set(acknowledged)) == GUESTS * STARTS
        until = time.monotonic() + 2 * LONG
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            while database.execute("SELECT count(*) FROM run WHERE status < 10").fetchone() != (0,):
                assert time.monotonic() < until, "not every run has ended"
                time.sleep(0.05)
            found = dict(database.execute("SELECT id, status FROM run").fetchall())
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert set(found) == set(acknowledged)
    assert set(found.values()) == {10}
