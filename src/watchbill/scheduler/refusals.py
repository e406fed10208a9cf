"""Refusals: runs and schedules whose turns the store refuses, and what is to become of them."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from watchbill.clock import SECOND, Clock, Micros
from watchbill.scheduler.division import Origin

# A run whose turn is refused is loaded again once: its memory may not fit the store. Then it is held.
HELD_FROM: Final = 2
WAITS_FOR: Final[Micros] = 10 * SECOND  # if the hold is refused, too; and for a schedule, which cannot be held


class Waiting(NamedTuple):
    """A run or schedule that is tried again later."""

    shard: int | None  # of a run
    until: Micros  # in boot time


class Refusals:
    """Counts refusals by run, and remembers what is left alone for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[int, int] = {}
        self._waiting: dict[Origin, Waiting] = {}
        self.uncertain: set[int] = set()  # runs that had attempts here whose outcomes were never written

    def __bool__(self) -> bool:
        return bool(self._counts or self._waiting)

    def count(self, run: int) -> int:
        """Count one more refusal of a run's turn; gives how many there are in a row."""
        self.uncertain.add(run)
        self._counts[run] = self._counts.get(run, 0) + 1
        return self._counts[run]

    def forgive(self, runs: Iterable[int]) -> None:
        """Forget the refusals of runs whose turn was written."""
        for run in runs:
            self._counts.pop(run, None)

    def wait(self, origin: Origin, shard: int | None = None) -> None:
        """Leave a run or a schedule alone for a while."""
        self._waiting[origin] = Waiting(shard, self._clock.boot() + WAITS_FOR)

    @property
    def alone(self) -> set[int]:
        """The runs that are left alone now."""
        return {origin for origin in self._waiting if isinstance(origin, int)}

    def is_left_alone(self, schedule: str) -> bool:
        """True for a schedule that is left alone now."""
        return schedule in self._waiting

    @property
    def next_at(self) -> Micros | None:
        """When (in boot time) the next one is tried again."""
        return min([one.until for one in self._waiting.values()], default=None)

    def take_due(self) -> dict[int, int]:
        """Take the runs that are to be tried again, with their shards; schedules come with the next look."""
        now = self._clock.boot()
        due = {origin: one for origin, one in self._waiting.items() if one.until <= now}
        for origin in due:
            del self._waiting[origin]
        return {origin: one.shard for origin, one in due.items() if isinstance(origin, int) and one.shard is not None}

    def forget(self, shards: Collection[int] | None = None) -> None:
        """Forget the runs of shards that are lost, or all."""
        if shards is None:
            self._waiting.clear()
            self._counts.clear()
            self.uncertain.clear()
        else:
            self._waiting = {origin: one for origin, one in self._waiting.items() if one.shard not in shards}
