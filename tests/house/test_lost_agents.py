"""An agent is killed while it does nothing: somebody is told of that once, and once that another one is there."""

import json
import signal
import time
from collections.abc import Iterator

import pytest

from tests.house.commands import PATIENCE, Crowd, crowd
from tests.house.conftest import Kept
from tests.rooms.listener import Listener

YARD = "tests.house.yard:app"
LONG = 2 * PATIENCE  # who replaces another one must have stayed


@pytest.fixture
def there(kept: Kept) -> Iterator[Crowd]:
    """Processes on a store."""
    with crowd(kept.url) as processes:
        yield processes


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Somebody outside who is told."""
    listener = Listener()
    yield listener
    listener.server.shutdown()
    listener.server.server_close()


def heard(listener: Listener, count: int, within: float = PATIENCE) -> list[dict[str, str]]:
    """Wait until so many alerts about lost agents were posted."""
    end = time.monotonic() + within
    while True:
        found = [json.loads(body) for _, body in list(listener.heard)]
        found = [one for one in found if "lost agents" in json.dumps(one)]
        if len(found) >= count:
            return found
        assert time.monotonic() < end, listener.heard
        time.sleep(0.02)


def test_an_idle_agent_that_is_killed_is_told_of_once_and_one_of_its_name_resolves_it(
    there: Crowd, listener: Listener
) -> None:
    rooms = there.rooms(YARD, WATCHBILL_ALERTS=listener.url)
    agent = there.agent(YARD, "--name", "rack-1", "--workers", "1")
    agent.kill()
    lost = rooms.wait_for("agent.lost")
    assert "'rack-1': its process is gone" in lost
    assert lost.rstrip().endswith("it held nothing")
    [alert] = heard(listener, 1)
    assert "an agent was lost: 'rack-1' at " in json.dumps(alert)
    there.agent(YARD, "--name", "rack-1", "--workers", "1")
    assert len(heard(listener, 2, LONG)) == 2, "that it was lost, and that another one is there"
    drained = there.agent(YARD, "--name", "rack-2", "--workers", "1")
    drained.signal(signal.SIGTERM)
    drained.end()
    killed = there.agent(YARD, "--name", "rack-3", "--workers", "1")
    killed.kill()
    assert "'rack-3'" in json.dumps(heard(listener, 3)[-1])
    assert not rooms.says("'rack-2'"), "who leaves in peace is not lost"
