"""Steps that misbehave: the time until the slot of each is free again, or the step goes on elsewhere."""

from benchmarks.trials import QUICK_TRIALS, TRIALS, fleet
from tests.house import trials


def measure(quick: bool) -> dict[str, list[float]]:
    count = QUICK_TRIALS if quick else TRIALS
    with fleet() as there:
        laps = [trials.nuisances(there) for _ in range(count)]
        took = {f"{kind}_s": [lap[kind] for lap in laps] for kind in laps[0]}
        took["stalled_s"] = trials.stalled_steps(there, count)
        trials.wrong_clocks(there, seconds=10)
    return took
