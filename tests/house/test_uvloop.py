"""Components as processes on uvloop: hosts of agents, their workers, and the death of both."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house import yard
from tests.house.commands import PATIENCE, REPOSITORY, Command, Crowd, crowd
from tests.house.conftest import Kept, client_of

YARD = "tests.house.yard:app"


@pytest.fixture
def there(kept: Kept) -> Iterator[Crowd]:
    """Processes on a store."""
    with crowd(kept.url) as processes:
        yield processes


@pytest.fixture
def client(kept: Kept) -> Iterator[Any]:
    with client_of(yard.app, kept.url) as client:
        yield client


def on_uvloop(there: Crowd, *words: str) -> Command:
    """Start a command on uvloop."""
    return there._heard(
        subprocess.Popen(
            [sys.executable, "-m", "tests.house.on_uvloop", *words],
            cwd=REPOSITORY,
            env=there._environment({}),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    )


def test_agent_with_workers_runs_steps_and_survives_deaths_on_uvloop(there: Crowd, client: Any, tmp_path: Path) -> None:
    on_uvloop(there, "up", YARD, "--rooms", "scheduler,supervisor").wait_for("scheduler, supervisor on")
    agent = on_uvloop(there, "agent", YARD, "--workers", "2")
    agent.wait_for("is at work")
    place = client.start(yard.look).result(timeout=PATIENCE)
    assert place["parent"] == agent.pid
    assert place["pid"] in agent.children()
    os.kill(place["pid"], signal.SIGKILL)
    assert client.start(yard.die, str(tmp_path)).result(timeout=PATIENCE) == 2
    assert agent.end() == 0
