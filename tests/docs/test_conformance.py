"""The conformance suite, used by a stranger as its docstring says: in a project of their own, on a store of theirs."""

import subprocess
import sys
from pathlib import Path

from watchbill.testing.conformance import SUITES

CONFTEST = """
import pytest
from watchbill.env import SystemEnv
from watchbill.store.open import open_store
from watchbill.testing.conformance.fixtures import clock, scene

@pytest.fixture
async def store(clock):
    store = await open_store("sqlite:///:memory:", SystemEnv(), clock=clock)
    yield store
    await store.close()
"""


RUN = ("client", "schedules", "transitions")  # of all of them that can be collected: tests/store runs the rest


def test_a_stranger_can_run_it(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for suite in SUITES:
        (tmp_path / f"test_{suite}.py").write_text(f"from watchbill.testing.conformance.{suite} import *\n")
    collected = pytest_in(tmp_path, "--collect-only")
    assert int(collected.partition(" tests collected")[0]) > 400
    passed = pytest_in(tmp_path, *(f"test_{suite}.py" for suite in RUN))
    assert int(passed.partition(" passed")[0]) > 50


def pytest_in(folder: Path, *words: str) -> str:
    """Run pytest there; gives its last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()[-1]
