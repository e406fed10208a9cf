"""Processes that fork: the child is a client like any other, and its parent notices nothing."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import ROOT, environment
from tests.house.conftest import Kept

FORKS = os.environ.get("WATCHBILL_FORKS", "5")  # of a busy process that serves
LONG = 90.0 + 5 * int(FORKS)  # seconds


def started(scene: str, kept: Kept, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.house.forking", scene, *words],
        env=environment(WATCHBILL_STORE=kept.url),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: "subprocess.Popen[str]") -> str:
    """Wait for the end of a program and of its children; gives what they printed."""
    try:
        out, err = process.communicate(timeout=LONG)
    except subprocess.TimeoutExpired:
        kill_session(process)
        out, err = process.communicate()
        raise AssertionError(f"a process hangs; printed: {out} {err}") from None
    finally:
        kill_session(process)
    assert "ResourceWarning" not in err, err
    return out + err


def kill_session(process: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def server(kept: Kept) -> Iterator[None]:
    """Another process that serves."""
    process = started("serve", kept)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        yield
    finally:
        kill_session(process)
        process.communicate()


def test_forked_clients_work_beside_their_parent(kept: Kept, server: None) -> None:
    assert ended(started("clients", kept)) == "done\n"


def test_processes_of_multiprocessing_are_clients(kept: Kept, server: None) -> None:
    assert ended(started("processes", kept)) == "done\n"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_process_that_serves_is_forked_in_the_middle_of_its_work(kept: Kept, loop: str) -> None:
    assert ended(started("owner", kept, FORKS, loop)) == "done\n"


def test_child_of_a_dead_process_serves_next(kept: Kept) -> None:
    assert "locked\nserved next\n" in ended(started("successor", kept))


def test_child_of_the_owner_of_a_file_is_told_who_owns_it(tmp_path: Path) -> None:
    assert "refused by the parent\n" in ended(started("refused", Kept(f"sqlite:///{tmp_path}/store.db")))


def test_child_that_was_forked_in_the_middle_of_a_long_read_does_not_open_the_file(tmp_path: Path) -> None:
    said = ended(started("cut", Kept(f"sqlite:///{tmp_path}/store.db")))
    assert "cannot be opened in this process: it was forked while its parent was reading or writing" in said
    assert said.endswith("done\n")
