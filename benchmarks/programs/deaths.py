"""Workers and hosts that die, freeze and drain: the time until the step runs again."""

from benchmarks.trials import QUICK_TRIALS, TRIALS, fleet
from tests.house import trials


def measure(quick: bool) -> dict[str, list[float]]:
    count = QUICK_TRIALS if quick else TRIALS
    with fleet() as there:
        return {
            "worker_s": trials.dead_workers(there, count),
            "host_s": trials.dead_hosts(there, count),
            "abroad_s": trials.dead_hosts(there, count, abroad=True),
            "often_s": trials.dead_hosts(there, count, "--beat", "300ms"),
            "frozen_s": trials.frozen_hosts(there, count),
            "drained_s": trials.drained_hosts(there, count),
        }
