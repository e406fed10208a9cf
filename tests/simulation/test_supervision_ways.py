"""Worlds whose supervisors divide the work: the same invariants hold, whoever of them dies, freezes or is cut off."""

from collections import Counter
from itertools import islice

import pytest

from watchbill.model.watcher import Supervision
from watchbill.testing.simulation import is_troubled, simulate

WORLDS = range(7, 12)  # quiet and stormy ones, with agents of their own and with one owner
TROUBLED = tuple(islice(filter(is_troubled, range(1_000)), 6))  # likewise, and with cures for everything

# What the troubled ones show together in each way, so that nobody who cures nothing has judged nothing.
LEAST = {"rungs climbed": 5, "probes begun": 3, "effects": 5, "decided by people": 2, "step.late": 1, "faults": 6}


@pytest.mark.parametrize("way", [Supervision.CENTRALIZED, Supervision.DISTRIBUTED])
def test_the_same_worlds_are_as_safe_with_supervisors_that_divide_the_work(way: Supervision) -> None:
    told = [simulate(seed, way).counts["watch.changed"] for seed in WORLDS]
    assert all(told), "in each of them somebody began to watch"


@pytest.mark.parametrize("way", [Supervision.CENTRALIZED, Supervision.DISTRIBUTED])
def test_troubles_are_cured_as_safely_by_supervisors_that_divide_the_work(way: Supervision) -> None:
    shown: Counter[str] = Counter()
    for seed in TROUBLED:
        counts = simulate(seed, way).counts
        assert counts["watch.changed"], f"in {seed} nobody began to watch"
        shown += counts
    assert {what: shown[what] for what, count in LEAST.items() if shown[what] < count} == {}
