"""How much work the throughput programs do; apart from the rest so that a rival's process loads nothing of ours."""

from dataclasses import dataclass

STEPS = 10  # of each run
IN_FLIGHT = 1_000


@dataclass(frozen=True)
class Load:
    """A number of runs, of ten steps each unless said otherwise."""

    runs: int
    steps_each: int = STEPS

    @property
    def steps(self) -> int:
        return self.runs * self.steps_each


FULL = Load(runs=5_000)
QUICK = Load(runs=500)
