"""How soon a lost step runs again, whatever it was lost by; that nobody is lost without a fault; what idling costs.

Three trials of each kind, ten in `make soak`; default settings.
`python -m benchmarks pg-deaths pg-silences` takes thirty.
"""

import asyncio
import os
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.facts import report
from tests.house import trials
from tests.house.conftest import Kept
from tests.house.trials import Fleet
from tests.servers import memory_disk, postgres_server
from tests.store.postgres import emptied

TRIALS = int(os.environ.get("WATCHBILL_TRIALS", "3"))
SECONDS_OF_IDLING = 10.0


@pytest.fixture
def fleet(kept: Kept, tmp_path: Path) -> Iterator[Fleet]:
    """A fleet with a scheduler and a supervisor in a process of their own, and no agents yet, on each store."""
    with trials.fleet(kept, tmp_path) as fleet:
        fleet.rooms()
        yield fleet


@pytest.fixture
def roomless(postgres_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """A fleet without a scheduler, on the store that several can share."""
    asyncio.run(emptied(postgres_url))
    with trials.fleet(Kept(postgres_url), tmp_path) as fleet:
        yield fleet


@pytest.fixture
def linked(roomless: Fleet) -> Fleet:
    """A fleet on the store to which there are links."""
    roomless.rooms()
    return roomless


def slowest(spans: Iterable[float]) -> float:
    """Give the longest time of all trials, and report it under the name of the test."""
    longest = max(spans)
    test = os.environ["PYTEST_CURRENT_TEST"].partition("::test_")[2].partition(" ")[0]
    report(f"{test.replace('_', ' ')}: {longest:.2f} s at most", standstill=longest)
    return longest


def test_the_step_of_a_dead_worker_runs_again_within_a_second(fleet, pace):
    assert slowest(trials.dead_workers(fleet, TRIALS)) < pace.limit(1)


def test_the_step_of_a_dead_host_runs_elsewhere_within_three_seconds(fleet, pace):
    assert slowest(trials.dead_hosts(fleet, TRIALS)) < pace.limit(3)


def test_the_step_of_a_dead_host_on_another_machine_runs_elsewhere_within_three_seconds(fleet, pace):
    assert slowest(trials.dead_hosts(fleet, TRIALS, abroad=True)) < pace.limit(3)


def test_the_step_of_a_dead_host_that_beats_often_runs_elsewhere_within_a_second(fleet, pace):
    assert slowest(trials.dead_hosts(fleet, TRIALS, "--beat", "300ms")) < pace.limit(1)


def test_the_step_of_a_host_behind_a_cut_link_runs_elsewhere_within_ten_seconds(linked, pace):
    assert slowest(trials.cut_hosts(linked, TRIALS)) < pace.limit(10)


def test_the_step_of_a_frozen_host_runs_elsewhere_within_twelve_seconds(fleet, pace):
    assert slowest(trials.frozen_hosts(fleet, TRIALS)) < pace.limit(12)


def test_a_step_that_listens_is_handed_over_within_a_second(fleet, pace):
    assert slowest(trials.drained_hosts(fleet, TRIALS)) < pace.limit(1)


def test_after_the_proven_death_of_a_scheduler_another_is_at_work_at_once(roomless, pace):
    assert slowest(trials.dead_rooms(roomless, TRIALS)) < pace.limit(2)


def test_after_the_unproven_death_of_a_scheduler_another_is_at_work_within_ten_seconds(roomless, pace):
    assert slowest(trials.dead_rooms(roomless, TRIALS, abroad=True)) < pace.limit(10)


def test_a_step_that_misbehaves_is_called_what_it_is_and_gives_its_slot_back(fleet, pace):
    assert slowest(trials.nuisances(fleet).values()) < pace.limit(5)


def test_a_step_that_stands_still_goes_on_elsewhere_two_seconds_after_its_limit(fleet, pace):
    assert slowest(trials.stalled_steps(fleet, TRIALS)) < pace.limit(2)


def test_clocks_that_are_an_hour_off_cost_nobody_its_lease(fleet):
    trials.wrong_clocks(fleet, seconds=10)


def test_an_idle_fleet_picks_up_a_run_without_waiting_for_a_timer(fleet, pace):
    # The benchmark has the figures of a quiet machine.
    assert statistics.median(trials.pickups(fleet, 50)) < pace.limit(0.1)


def test_four_agents_share_the_work_evenly(fleet):
    steps, agents = 800, 4
    fair = steps / agents
    # Steps that last: else the processor decides who gets the next one, and it has other things to do.
    shares = trials.split(fleet, agents, steps, seconds=0.25)
    assert all(abs(share - fair) <= fair / 10 for share in shares), shares


def test_a_hundred_idle_agents_cost_seventy_statements_a_second(tmp_path):
    with postgres_server(place=memory_disk(), **trials.STATEMENTS) as server:
        kept = Kept(server.url())
        asyncio.run(emptied(kept.url))
        counted = trials.idle_statements(server, kept, hosts=10, each=10, seconds=SECONDS_OF_IDLING)
    assert counted["beat"] > 40 * SECONDS_OF_IDLING  # they are there
    assert counted.total() <= 70 * SECONDS_OF_IDLING, counted
