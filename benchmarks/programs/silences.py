"""Faults of which only silence tells, and schedulers that die: the time until somebody else goes on."""

from benchmarks.trials import QUICK_TRIALS, TRIALS, fleet
from tests.house import trials


def measure(quick: bool) -> dict[str, list[float]]:
    count = QUICK_TRIALS if quick else TRIALS
    with fleet() as there:
        took = {"cut_s": trials.cut_hosts(there, count), "frozen_s": trials.frozen_hosts(there, count)}
    with fleet(rooms=False) as there:
        took["scheduler_s"] = trials.dead_rooms(there, count)
    with fleet(rooms=False) as there:
        took["silent_scheduler_s"] = trials.dead_rooms(there, count, abroad=True)
    return took
