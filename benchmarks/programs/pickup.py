"""An idle fleet: how long from `start`, in a process without rooms, to the first line of the step."""

import statistics

from benchmarks.trials import fleet
from tests.house import trials

SAMPLES = 200


def measure(quick: bool) -> dict[str, float]:
    with fleet() as there:
        took = trials.pickups(there, SAMPLES // 4 if quick else SAMPLES)
    return {"p50_s": statistics.median(took), "p99_s": statistics.quantiles(took, n=100)[98]}
