"""The owner of a file is killed while a step runs in a process of its own: whoever comes next goes on at once."""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import Forked, fork
from tests.house import deck
from tests.house.commands import PATIENCE, is_alive
from tests.house.conftest import Kept
from tests.house.ledger import Ledger, Line
from tests.house.loner import RUN


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


def live(kept: Kept, ledger: Ledger, step: str) -> Forked:
    env = {**os.environ, "WATCHBILL_STORE": kept.url, deck.LEDGER: ledger.address}
    return fork("tests.house.loner", step, env=env, stdout=subprocess.PIPE)


def began(ledger: Ledger) -> Line:
    """Wait until the first attempt has begun."""
    end = time.monotonic() + PATIENCE
    while not (lines := ledger.lines()):
        assert time.monotonic() < end, "no step has begun"
        time.sleep(0.01)
    return lines[0]


@pytest.mark.parametrize("step", ["blocks", "waits"])
def test_a_script_that_is_killed_beside_the_child_of_its_step_is_finished_by_the_next(
    tmp_path: Path, ledger: Ledger, step: str
) -> None:
    kept = Kept(f"sqlite:///{tmp_path}/store.db")
    with live(kept, ledger, step) as first:
        try:
            before = began(ledger)
        finally:
            first.kill()
    assert before.host == first.pid
    with open(tmp_path / "store.db.owner", "r+") as owner:
        fcntl.lockf(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if anybody has it: a child, for instance
    with live(kept, ledger, step) as second:
        try:
            # Of an owner the lease lasts for ever: who waited for its end would wait longer than this.
            said, _ = second.communicate(timeout=PATIENCE)
        finally:
            second.kill()
    assert second.returncode == 0
    assert not is_alive(before.pid), "the child has outlived its host"
    again = ledger.lines()[1:]
    assert [line.what for line in again] == ["BEGIN", "EFFECT", "END"]
    assert {line.host for line in again} == {second.pid}
    [fence] = {line.fence for line in again}
    assert before.fence < fence
    assert said == f"{fence}\n"
    assert kept.ask("SELECT fence FROM watchbill.journal WHERE kind = 0") == [(fence,)]
    assert kept.ask("SELECT id, status FROM watchbill.run") == [(RUN, 10)]
