"""Worlds whose supervisors divide the work: the same invariants hold, whoever of them dies, freezes or is cut off."""

import pytest

from watchbill.model.watcher import Supervision
from watchbill.testing.simulation import simulate

WORLDS = range(7, 12)  # quiet and stormy ones, with agents of their own and with one owner


@pytest.mark.parametrize("way", [Supervision.CENTRALIZED, Supervision.DISTRIBUTED])
def test_the_same_worlds_are_as_safe_with_supervisors_that_divide_the_work(way: Supervision) -> None:
    told = [simulate(seed, way).counts["watch.changed"] for seed in WORLDS]
    assert all(told), "in each of them somebody began to watch"
