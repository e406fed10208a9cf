"""Faults around a real process: a full disk, bad files, a second process, Ctrl-C, kill -9 in every kind of place."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import fork
from tests.house.conftest import Kept
from watchbill import App, StoreError
from watchbill.errors import StoreCorruptError, StoreOwnedError

MEMORY_DISK = Path("/dev/shm")
KINDS = ["loop", "thread", "row", "own", "retry", "sleep"]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "store.db"


class Program:
    """tests/house/frail.py as a process of its own session, so that a signal can go to all of it, like Ctrl-C."""

    def __init__(self, url: str, *arguments: str) -> None:
        self._process = fork(
            "tests.house.frail",
            *(url, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.communicate(timeout=20)

    def line(self) -> str:
        """Wait for the next line it says."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ended(self, within: float = 20) -> tuple[int, str, str]:
        """Wait for its end, and for that of its children; gives the exit code and what else it said."""
        out, err = self._process.communicate(timeout=within)
        assert self._process.returncode is not None
        return self._process.returncode, out.strip(), err


@pytest.fixture
def go(folder: Path) -> Path:
    """The file that lets its steps go on, once it is there."""
    return folder / "go"


def result_of(url: str, kind: str, go: Path) -> str:
    """Run the program to its end; gives its last line."""
    with Program(url, "play", kind, str(go)) as program:
        code, out, err = program.ended()
        assert code == 0, err
        return out.splitlines()[-1]


# --- killed


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_killed_with_9_goes_on_in_the_next_process(kept: Kept, go: Path, kind: str) -> None:
    with Program(kept.url, "play", kind, str(go)) as program:
        assert program.line() == "begun 1"
        os.kill(program.pid, signal.SIGKILL)
        code, _, _ = program.ended()  # a child of its own hears that its parent is gone, and ends
        assert code == -signal.SIGKILL
    go.touch()
    expected = {"row": "attempt 2, restored here I was", "sleep": "slept"}
    assert result_of(kept.url, kind, go) == expected.get(kind, "attempt 2")
    assert result_of(kept.url, kind, go) == expected.get(kind, "attempt 2")  # ended is ended


# --- Ctrl-C


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_leaves_the_run_open_says_how_to_continue_and_costs_no_attempt(kept: Kept, go: Path, kind: str) -> None:
    with Program(kept.url, "play", kind, str(go)) as program:
        assert program.line() == "begun 1"
        os.killpg(program.pid, signal.SIGINT)
        code, _, err = program.ended()
        assert code == -signal.SIGINT
        assert "run 'r' stays open: run it again with id='r' and it goes on where it was" in err
    app = App(kept.url)
    assert app.sync.handle("r").status().state in ("running", "waiting")
    app.sync.close()
    go.touch()
    expected = {"row": "attempt 1, restored here I was", "retry": "attempt 2", "sleep": "slept"}
    assert result_of(kept.url, kind, go) == expected.get(kind, "attempt 1")


SCRIPT = """
import os
from watchbill import App

app = App(os.environ["STORE"])

@app.step(isolation="own")
def pid() -> int:
    return os.getpid()

@app.workflow
async def work() -> int:
    return await pid()

print(os.getpid() != app.run(work))
"""


def test_a_script_without_a_guard_may_have_steps_of_their_own(kept: Kept, folder: Path) -> None:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "STORE": kept.url}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, env=environment)
    assert done.stdout == "True\n", done.stderr


# --- owned by another


def test_a_second_process_with_other_code_is_refused_with_the_pid_of_the_owner_who_works_on(
    file: Path, go: Path
) -> None:
    url = f"sqlite:///{file}"
    with Program(url, "play", "thread", str(go)) as owner:
        assert owner.line() == "begun 1"
        app = App(f"sqlite:///{file}")

        @app.workflow
        async def mine() -> int:
            return 1

        with pytest.raises(StoreOwnedError, match=f"owned by process {owner.pid}, which is alive") as refused:
            app.run(mine)
        assert refused.value.pid == owner.pid
        assert f"serves other processes at '{file}.socket'" in str(refused.value)
        assert "its code does not drive workflow 'mine'" in str(refused.value)
        assert app.sync.handle("r").status().state == "running"  # reading is for everybody
        go.touch()
        code, out, err = owner.ended()
        assert (code, out) == (0, "attempt 1"), err
    assert app.run(mine) == 1


# --- files that are no store


def an_app(file: Path) -> App:
    app = App(f"sqlite:///{file}")

    @app.workflow
    async def work(n: int) -> int:
        return n

    app.work = work  # type: ignore[attr-defined]
    return app


def run_on(file: Path) -> int:
    app = an_app(file)
    result: int = app.run(app.work, 1, id="r")  # type: ignore[attr-defined]
    return result


def test_a_file_that_is_no_store_is_refused_and_kept(file: Path) -> None:
    file.write_bytes(b"Dear diary, " * 1_000)
    with pytest.raises(StoreCorruptError, match=rf"store 'sqlite:///{file}' cannot be read: .*nothing was changed"):
        run_on(file)
    assert file.read_bytes() == b"Dear diary, " * 1_000


def test_a_database_of_another_program_is_refused_and_kept(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE diary (day TEXT)")
        other.commit()
    before = file.read_bytes()
    with pytest.raises(StoreError, match=str(file)):
        run_on(file)
    assert file.read_bytes() == before


def test_a_truncated_store_is_refused(file: Path) -> None:
    assert run_on(file) == 1
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2 + 100])
    with pytest.raises(StoreCorruptError, match=rf"store 'sqlite:///{file}' cannot be read"):
        run_on(file)
    file.write_bytes(whole)
    assert run_on(file) == 1


def test_a_store_in_a_folder_that_is_not_there(file: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*nowhere"):
        run_on(file.parent / "nowhere" / "store.db")


READ_ONLY = """
import os, sys
from watchbill import App
os.chmod(sys.argv[1], 0o444)
os.chmod(os.path.dirname(sys.argv[1]), 0o555)
apps = App("sqlite:///:memory:"), App(f"sqlite:///{sys.argv[1]}")

async def work(n: int) -> int:
    return n

memory, file = (app.workflow(work) for app in apps)
apps[0].run(memory, 1)  # whatever has to be imported is, before we give up the right to
if os.geteuid() == 0:  # who may write everywhere
    os.setuid(65534)
try:
    apps[1].run(file, 1, id="other")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_store_that_cannot_be_written_says_which_and_what_to_do(file: Path) -> None:
    assert run_on(file) == 1
    os.chmod(file.parent, 0o755)
    try:
        said = subprocess.run(
            [sys.executable, "-c", READ_ONLY, file], capture_output=True, text=True, timeout=20, check=False
        )
    finally:
        os.chmod(file.parent, 0o755)
        os.chmod(file, 0o644)
    assert said.stdout.startswith(f"StoreReadOnlyError store 'sqlite:///{file}' cannot be written"), said
    assert "give this user write access to file and folder" in said.stdout
    assert run_on(file) == 1


# --- a full disk


def test_program_ends_when_told_while_its_disk_is_full_and_lost_nothing_acknowledged(file: Path) -> None:
    with Program(f"sqlite:///{file}", "fill") as program:
        code, out, err = program.ended(within=90)
    assert code == 0, err
    *lines, last = out.splitlines()
    assert (lines.count("waiting"), lines.count("stopped"), last) == (1, 1, "left")
    assert f"store 'sqlite:///{file}' is full" in err
    assert "what was acknowledged is kept: free some space" in err
    started = [line.split()[1] for line in lines if line.startswith("started")]
    ended = [line.split()[1] for line in lines if line.startswith("ended")]
    assert len(ended) > 5
    app = App(f"sqlite:///{file}")

    @app.step
    def blow_up(n: int, size: int) -> str:
        return str(n % 10) * size

    @app.workflow
    async def fat(n: int, size: int) -> int:
        return len(await blow_up(n, size))

    states = {id: app.sync.handle(id).status().state for id in started}
    assert [states[id] for id in ended] == ["completed"] * len(ended)
    assert set(states) - set(ended) <= {started[-1]}
    # With space it goes on.
    assert app.run(fat, len(started) - 1, 50_000, id=started[-1]) == 50_000
