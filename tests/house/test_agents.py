"""Agents as processes: a host without user code, worker children, and what becomes of steps when these die or drain."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house import yard
from tests.house.commands import PATIENCE, Crowd, crowd, is_alive
from tests.house.conftest import Kept, client_of
from watchbill import RunCancelled, RunFailed

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


def until(place: Path, within: float = PATIENCE) -> int:
    """Wait until a step has come so far; gives its process."""
    end = time.monotonic() + within
    while not place.exists():
        assert time.monotonic() < end, (
            f"nobody made {place}; there are {sorted(p.name for p in place.parent.iterdir())}"
        )
        time.sleep(0.01)
    return int(place.read_text())


def gone(pid: int, within: float = PATIENCE) -> bool:
    """Wait until a process is gone."""
    end = time.monotonic() + within
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_alive(pid)


def test_steps_run_in_children_of_a_host_each_with_the_lifespan(there, client):
    there.rooms(YARD)
    agent = there.start_script("agent", YARD, "--workers", "2")
    agent.wait_for("is at work")
    seen = [client.start(yard.look).result(timeout=PATIENCE) for _ in range(4)]
    for place in seen:
        assert place["parent"] == agent.pid
        assert place["lifespan"] == place["pid"]
        assert place["pid"] in agent.children()


def test_a_step_that_kills_its_worker_is_tried_again_and_the_worker_replaced(there, client, tmp_path):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "2")
    handle = client.start(yard.die, str(tmp_path))
    assert handle.result(timeout=PATIENCE) == 2
    (step,) = handle.status().steps
    assert [attempt.cause for attempt in step.attempts] == ["killed", None]
    died = until(tmp_path / "dies-1")
    assert gone(died)
    end = time.monotonic() + PATIENCE
    while len(agent.children()) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    assert len(agent.children()) == 2


def test_a_host_killed_with_a_step_at_work_takes_its_children_along_and_the_step_goes_on_elsewhere(
    there, client, tmp_path
):
    there.rooms(YARD)
    first = there.agent(YARD, "--workers", "1")
    handle = client.start(yard.count, str(tmp_path), 7)
    worker = until(tmp_path / "counts-5-1")
    second = there.agent(YARD, "--workers", "1")
    killed_at = time.monotonic()
    first.kill()
    assert gone(worker, within=5)
    (tmp_path / "go").touch()
    result = handle.result(timeout=PATIENCE)
    assert time.monotonic() - killed_at < PATIENCE
    assert result["number"] == 2
    assert result["first"] >= 5  # from the checkpoint
    assert result["pid"] in second.children()


def test_a_step_that_holds_the_interpreter_dies_with_its_host(there, client, tmp_path):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "1")
    client.start(yard.block, str(tmp_path), 600.0)
    worker = until(tmp_path / "blocks-1")
    agent.kill()
    assert gone(worker, within=5)


def test_a_drained_agent_hands_back_what_it_had_with_its_checkpoint_and_it_costs_nothing(there, client, tmp_path):
    there.rooms(YARD)
    first = there.agent(YARD, "--workers", "1")
    handle = client.start(yard.count, str(tmp_path), 7)
    until(tmp_path / "counts-5-1")
    second = there.agent(YARD, "--workers", "1")
    assert first.end(within=10) == 0
    (tmp_path / "go").touch()
    result = handle.result(timeout=PATIENCE)
    assert result["number"] == 1
    assert result["first"] >= 5
    assert result["pid"] in second.children()


@pytest.mark.parametrize("kept", ["file"], indirect=True)
def test_an_agent_that_is_drained_while_the_rooms_are_away_hands_back_when_they_are_there_again(
    there, client, tmp_path
):
    rooms = there.rooms(YARD)
    first = there.agent(YARD, "--workers", "1", "--grace", "30s")
    handle = client.start(yard.count, str(tmp_path), 7)
    until(tmp_path / "counts-5-1")
    rooms.kill()
    first.signal(signal.SIGTERM)
    first.wait_for("is gone; waiting for it")
    there.rooms(YARD)
    assert first.process.wait(PATIENCE) == 0
    there.agent(YARD, "--workers", "1")
    (tmp_path / "go").touch()
    result = handle.result(timeout=PATIENCE)
    assert (result["number"], result["first"]) == (1, 6)


def test_an_agent_that_drains_for_longer_than_its_lease_is_not_lost(there, client, tmp_path, kept):
    there.rooms(YARD)
    first = there.agent(YARD, "--workers", "1", "--beat", "500ms", "--grace", "30s")  # a lease of two seconds
    handle = client.start(yard.block, str(tmp_path), 6.0)
    until(tmp_path / "blocks-1")
    first.signal(signal.SIGTERM)
    there.agent(YARD, "--workers", "1")
    assert handle.result(timeout=PATIENCE) == 1
    assert first.process.wait(PATIENCE) == 0
    assert kept.ask("SELECT count(*) FROM watchbill.agent WHERE state = 2") == [(0,)]


def test_a_second_signal_does_not_wait_for_a_deaf_step(there, client, tmp_path):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "1", "--grace", "1h")
    client.start(yard.hang, str(tmp_path))
    worker = until(tmp_path / "deaf-1")
    agent.signal(signal.SIGTERM)
    agent.wait_for("draining")
    agent.signal(signal.SIGTERM)
    assert agent.process.wait(10) == 0
    assert gone(worker, within=5)


def test_a_step_that_does_not_hear_a_cancel_is_killed_after_the_grace_and_its_neighbour_is_handed_back(
    there, client, tmp_path
):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "1", "--grace", "300ms")
    handle = client.start(yard.hang, str(tmp_path))
    worker = until(tmp_path / "deaf-1")
    neighbour = client.start(yard.wait, str(tmp_path))
    assert until(tmp_path / "waits-1") == worker
    handle.cancel("enough")
    with pytest.raises(RunCancelled):
        handle.result(timeout=PATIENCE)
    assert gone(worker, within=10)
    (tmp_path / "go").touch()
    assert neighbour.result(timeout=PATIENCE) == 1  # it costs nothing
    assert worker not in agent.children()


def test_a_step_that_blocks_its_worker_does_not_stop_the_beat(there, client, tmp_path, kept):
    there.rooms(YARD)
    there.agent(YARD, "--workers", "2", "--beat", "200ms")  # a lease of 0.8 s
    blocked = client.start(yard.block, str(tmp_path), 3.0)
    until(tmp_path / "blocks-1")
    others = [client.start(yard.look).result(timeout=PATIENCE) for _ in range(3)]
    assert len(others) == 3
    assert blocked.result(timeout=PATIENCE) == 1  # nobody took it over
    assert kept.ask("SELECT state FROM watchbill.agent WHERE state <> 1") == []


def test_workers_are_recycled_after_their_share(there, client):
    there.rooms(YARD)
    there.agent(YARD, "--workers", "1", "--recycle-after", "3")
    seen = [client.start(yard.look).result(timeout=PATIENCE)["pid"] for _ in range(7)]
    assert len(set(seen)) >= 3


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("tests.house.nowhere:app", "nowhere"),
        ("tests.house.yard:nobody", "no App called 'nobody'"),
        ("tests/house/nofile.py", "no file"),
    ],
)
def test_a_program_that_is_not_there_is_named(there, program, says):
    agent = there.start("agent", program)
    agent.wait_for(says)
    assert agent.process.wait(PATIENCE) in (1, 2)


def test_up_keeps_an_agent_running_and_ends_it_with_itself(there, client):
    house = there.start("up", YARD, "--workers", "1", "--slots", "3")
    house.wait_for("scheduler, agent, supervisor on")
    first = client.start(yard.look).result(timeout=PATIENCE)
    os.kill(first["parent"], signal.SIGKILL)
    house.wait_for("agent.ended")
    second = client.start(yard.look).result(timeout=PATIENCE)
    assert second["parent"] != first["parent"]
    assert second["parent"] in house.children()
    assert house.end() == 0
    assert gone(second["parent"], within=1)
    assert gone(second["pid"], within=1)


@pytest.mark.parametrize("fails", [False, True], ids=["well", "badly"])
def test_what_a_step_logs_and_prints_is_kept_however_it_ends(there, client, kept, fails):
    there.rooms(YARD)
    there.agent(YARD, "--workers", "1")
    handle = client.start(yard.talk, fails)
    with contextlib.suppress(RunFailed):
        handle.result(timeout=PATIENCE)
    (log,) = handle.logs()
    assert (log.step, log.attempt) == ("talks", 1)
    assert "I am attempt 1" in log.text
    assert "printed\n" in log.text
    assert "a warning of a library" in log.text
    shown = there.run("run", "logs", handle.id)
    assert "talks, attempt 1, ended" in shown
    assert "printed" in shown


def test_agents_are_listed_with_what_they_have_and_do(there, client, tmp_path):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "2", "--slots", "5", "--needs", "gpu=2,eu", "--name", "first")
    handle = client.start(yard.wait, str(tmp_path))
    until(tmp_path / "waits-1")
    (shown,) = client.agents()
    assert (shown.name, shown.state, shown.pid, shown.slots, shown.running) == ("first", "busy", agent.pid, 5, 1)
    assert shown.needs == ["eu", "gpu=2"]
    assert shown.workers in (1, 2)  # the second may have to read the program yet
    assert [(step.run, step.call) for step in shown.steps] == [(handle.id, "waits")]
    table = there.run("agents", "list")
    assert "first" in table
    assert "1 of 5" in table
    (tmp_path / "go").touch()
    assert handle.result(timeout=PATIENCE) == 1


def test_a_capability_that_is_added_while_an_agent_runs_releases_what_waits_for_it(there, client):
    there.rooms(YARD)
    there.agent(YARD, "--workers", "1", "--name", "plain")
    handle = client.start(yard.paint)
    assert client.start(yard.look).result(timeout=PATIENCE)  # others go on
    assert handle.status().health == "waiting_for_agent"
    there.run("agents", "needs", "plain", "gpu=1")
    assert handle.result(timeout=PATIENCE) == "painted"


def test_an_agent_that_is_told_to_drain_hands_over_and_ends(there, client, tmp_path):
    there.rooms(YARD)
    first = there.agent(YARD, "--workers", "1", "--name", "first")
    handle = client.start(yard.count, str(tmp_path), 7)
    until(tmp_path / "counts-5-1")
    there.agent(YARD, "--workers", "1", "--name", "second")
    there.run("agents", "drain", "first")
    assert first.process.wait(PATIENCE) == 0
    (tmp_path / "go").touch()
    result = handle.result(timeout=PATIENCE)
    assert (result["number"], result["first"]) == (1, 6)


def test_a_quarantined_agent_gets_nothing_more_until_it_is_released(there, client, tmp_path):
    there.rooms(YARD)
    there.agent(YARD, "--workers", "1", "--name", "only")
    there.run("agents", "quarantine", "only", "--by", "ann", "--reason", "it is hot")
    handle = client.start(yard.look)
    with pytest.raises(TimeoutError):
        handle.result(timeout=1)
    assert client.agents()[0].state == "quarantined"
    there.run("agents", "release", "only", "--by", "bob")
    assert handle.result(timeout=PATIENCE)
    logged = json.loads(there.run("logbook", "-o", "json"))
    assert [(one["by"], one["kind"], one["name"], one["act"], one["reason"]) for one in logged] == [
        ("bob", "agent", "only", "release", ""),
        ("ann", "agent", "only", "quarantine", "it is hot"),
    ]


def test_a_fleet_has_no_agent_without_work_and_one_as_soon_as_there_is_some(there, client):
    there.rooms(YARD)
    fleet = there.start("fleet", YARD, "--min", "0", "--max", "2", "--workers", "1")
    fleet.wait_for("from 0 to 2 agents")
    assert client.agents() == []
    first = client.start(yard.look).result(timeout=PATIENCE)
    assert first["parent"] in fleet.children()
    os.kill(first["parent"], signal.SIGKILL)
    fleet.wait_for("agent.ended")
    assert client.start(yard.look).result(timeout=PATIENCE)["parent"] != first["parent"]
    agents = fleet.children()
    assert fleet.end() == 0
    assert all(gone(pid, within=1) for pid in agents)


def test_what_an_agent_has_seen_of_its_steps_is_remembered_when_it_has_left(there, client, tmp_path):
    there.rooms(YARD)
    agent = there.agent(YARD, "--workers", "2")
    for _ in range(3):
        client.start(yard.look).result(timeout=PATIENCE)
    assert client.start(yard.die, str(tmp_path)).result(timeout=PATIENCE) == 2
    assert agent.end(within=10) == 0
    seen = {one.step: (one.succeeded, one.failed) for one in client.suggestions()}
    assert seen == {"where": (3, 0), "dies": (1, 1)}
