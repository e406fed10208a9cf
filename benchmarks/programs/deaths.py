"""Deaths that can be proven, and a drain: the time until the step runs again."""

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
            "drained_s": trials.drained_hosts(there, count),
        }
