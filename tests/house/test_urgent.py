"""Urgent runs behind 300 ordinary ones on one slot of a real agent: the urgent ones start next.

A step holds the slot until all urgent calls are in the store, so the test looks at no clock.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house import counter
from tests.house.commands import Crowd, crowd
from tests.house.conftest import Kept
from watchbill.app.hall import Hall

PROGRAM = "tests.house.counter:app"
ORDINARY = 300
URGENT = 10
PRIORITY = 5
PATIENCE = 120.0  # seconds: reached only by a test that fails


@pytest.fixture
def there(kept: Kept) -> Iterator[Crowd]:
    with crowd(kept.url) as processes:
        yield processes


class Counter:
    """One agent with one slot, and those who wait for it."""

    def __init__(self, kept: Kept, there: Crowd, folder: Path) -> None:
        self._kept = kept
        self.there = there
        self.folder = folder
        there.rooms(PROGRAM)
        there.agent(PROGRAM, "--workers", "1", "--slots", "1")
        app = counter.app
        app.meet_in(Hall(kept.url, app.namespace, app.registry, app.events))
        self._client = app.sync

    def started(self) -> list[str]:
        """Give the names of all that have started, in order."""
        order = self.folder / "order"
        return order.read_text().split() if order.exists() else []

    def queue(self, step: str, kind: str, count: int, priority: int = 0) -> None:
        """Start runs of one step."""
        calls = [(counter.order, (step, str(self.folder), f"{kind}-{n}")) for n in range(count)]
        if priority:
            for workflow, arguments in calls:
                self._client.start(workflow, *arguments, priority=priority)
        else:
            self._client.start_many(calls)

    def hold(self) -> None:
        """Have the next step that starts hold the slot, and wait until it does."""
        (self.folder / "stop").touch()
        becomes((self.folder / "waiting").exists, "a step holds the slot")

    def let_go(self) -> None:
        (self.folder / "stop").unlink()

    def ready(self, step: str, count: int, where: str = "true") -> None:
        """Wait until so many calls of a step are ready in the store."""
        sql = f"SELECT count(*) FROM watchbill.attempt WHERE step = '{step}' AND state = 0 AND {where}"
        becomes(lambda: self._kept.ask(sql)[0][0] >= count, f"{count} calls of {step} are ready")

    def next(self, count: int) -> list[str]:
        """Let the slot go, and give the kinds of those that start next."""
        before = len(self.started())
        self.let_go()
        becomes(lambda: len(self.started()) >= before + count, "the next ones start")
        return [name.split("-")[0] for name in self.started()[before : before + count]]

    def close(self) -> None:
        self._client.close()


def becomes(condition: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.02)


@pytest.fixture
def desk(kept: Kept, there: Crowd, tmp_path: Path) -> Iterator[Counter]:
    desk = Counter(kept, there, tmp_path)
    yield desk
    desk.close()


def under_way(desk: Counter, step: str) -> None:
    """Queue ordinary calls, and have some of them start, so that the agent is past the head of the queue."""
    desk.queue(step, "ordinary", ORDINARY)
    becomes(lambda: len(desk.started()) >= 10, "ordinary calls start")


@pytest.mark.parametrize("step", ["serve", "serve_one", "pay"])
def test_urgent_runs_start_before_all_ordinary_ones_that_have_not_begun(desk, step):
    """Without a limit, behind a limit, and before a dependency."""
    under_way(desk, step)
    desk.hold()
    waiting = desk._kept.ask("SELECT count(*) FROM watchbill.attempt WHERE state = 0")[0][0]
    desk.queue(step, "urgent", URGENT, PRIORITY)
    desk.ready(step, waiting + URGENT)
    assert desk.next(URGENT + 1) == ["urgent"] * URGENT + ["ordinary"]


def test_urgent_call_that_comes_back_from_a_retry_pause_is_the_next_one(desk):
    under_way(desk, "serve")
    desk.queue("falter", "urgent", 1, PRIORITY)
    becomes((desk.folder / "waiting").exists, "a step holds the slot after the first attempt has failed")
    if "urgent-0" not in desk.started():  # else the pause was over before the next ordinary call was leased
        desk.ready("falter", 1, "failures = 1")
        assert desk.next(2) == ["urgent", "ordinary"]


def test_urgent_calls_whose_step_was_paused_are_the_next_ones(desk):
    under_way(desk, "serve")
    desk.there.run("gates", "pause", "step:oblige", "--reason", "a flood")
    desk.queue("oblige", "urgent", URGENT, PRIORITY)
    desk.ready("oblige", URGENT)
    desk.hold()
    assert "urgent-0" not in desk.started()
    desk.there.run("gates", "open", "step:oblige")
    assert desk.next(URGENT + 1) == ["urgent"] * URGENT + ["ordinary"]


def test_urgent_calls_are_the_first_ones_when_their_dependency_is_up_again(desk):
    under_way(desk, "pay")
    desk.hold()
    desk.there.run("gates", "close", "uses:bank", "--reason", "maintenance")
    waiting = desk._kept.ask("SELECT count(*) FROM watchbill.attempt WHERE state = 0")[0][0]
    desk.queue("pay", "urgent", URGENT, PRIORITY)
    desk.ready("pay", waiting + URGENT)
    desk.there.run("gates", "open", "uses:bank")
    assert desk.next(URGENT + 1) == ["urgent"] * URGENT + ["ordinary"]
