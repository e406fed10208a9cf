"""Supervisors as real processes: whichever of them dies or freezes, others are at work within ten seconds."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.house import trials, trouble
from tests.house.commands import PATIENCE, Command
from tests.house.conftest import Kept
from tests.house.trials import SECONDS, TROUBLE, Fleet, far_away
from tests.house.trouble import boot_time
from tests.store.postgres import emptied

AT_WORK_WITHIN = 10
THERE = "SELECT id, info FROM watchbill.supervisor WHERE until > watchbill.at(NULL) ORDER BY id"
TWICE = """
SELECT run, call, fence, convert_from(body, 'UTF8')::json ->> 'chosen', count(*)
FROM watchbill.decision GROUP BY 1, 2, 3, 4 HAVING count(*) > 1
"""


@pytest.fixture
def fleet(postgres_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """A scheduler, and an agent with two workers, on the store that several supervisors can share."""
    asyncio.run(emptied(postgres_url))
    with trials.fleet(Kept(postgres_url), tmp_path) as fleet:
        scheduler = fleet.processes.start("up", TROUBLE, "--rooms", "scheduler")
        fleet.agents(1, "--workers", "2")
        scheduler.wait_for("scheduler on")
        yield fleet


def on_watch(fleet: Fleet) -> list[int]:
    """Give the processes that stand watch, the one first that is there longest."""
    return [msgspec.json.decode(info)["pid"] for _, info in fleet.kept.ask(THERE)]


def seconds_to_the_next_attempt(fleet: Fleet, victim: Command, sign: signal.Signals) -> float:
    """Do something to a supervisor and, at the same time, kill the worker that has a step."""
    name, handle = fleet.start(trouble.holding)
    worker = fleet.mark(name)
    fault = boot_time()
    victim.signal(sign)
    os.kill(worker.pid, signal.SIGKILL)
    again = fleet.mark(name, 2)
    assert handle.result(timeout=PATIENCE) == 2
    return (again.at - fault) * SECONDS


@pytest.mark.parametrize("way", ["centralized", "distributed"])
def test_whoever_dies_or_freezes_others_are_at_work_within_ten_seconds_and_nothing_is_judged_twice(fleet, way, pace):
    started = [
        # Each on a machine of its own: nobody can prove anything about the others.
        fleet.processes.start("up", TROUBLE, "--rooms", "supervisor", "--supervision", way, **far_away(f"machine-{n}"))
        for n in range(3)
    ]
    fleet.wait(lambda: len(on_watch(fleet)) == len(started), "three that stand watch")
    watchmen = {command.pid: command for command in started}
    first = watchmen[on_watch(fleet)[0]]
    assert seconds_to_the_next_attempt(fleet, first, signal.SIGKILL) < pace.limit(AT_WORK_WITHIN)
    fleet.wait(lambda: first.pid not in on_watch(fleet), "the dead one is forgotten")
    second = watchmen[on_watch(fleet)[0]]
    assert seconds_to_the_next_attempt(fleet, second, signal.SIGSTOP) < pace.limit(AT_WORK_WITHIN)
    fleet.wait(lambda: second.pid not in on_watch(fleet), "the frozen one is forgotten")
    second.signal(signal.SIGCONT)
    fleet.wait(lambda: second.pid in on_watch(fleet), "the one that woke stands watch again")
    assert seconds_to_the_next_attempt(fleet, second, signal.SIGCONT) < pace.limit(AT_WORK_WITHIN)
    assert fleet.kept.ask(TWICE) == []
