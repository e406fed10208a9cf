"""Suspects: what is to be done with runs that may kill their process, to be advanced alone, one after the other."""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

from watchbill.scheduler.batch import Batch
from watchbill.scheduler.plan import SUSPECT_FROM


class Careful(NamedTuple):
    """One thing to be done with one run."""

    shard: int
    run: int
    work: Callable[[Batch], None]


class Suspects:
    """Who was named at a death before comes after everybody else.

    A process that is killed from outside, soon after each start, would otherwise name the same innocent every time: the
    one that comes first. So all others are cleared before anybody is named again.
    """

    def __init__(self) -> None:
        self._first: deque[Careful] = deque()
        self._last: deque[Careful] = deque()
        self._uncounted: dict[int, int] = {}  # runs among them, with their shards, whose losses are not counted yet

    def __bool__(self) -> bool:
        return bool(self._first or self._last)

    def add(self, shard: int, run: int, losses: int, work: Callable[[Batch], None], *, uncounted: bool = False) -> None:
        """Let something wait for its turn: for one run in the order of the calls."""
        if uncounted:
            self._uncounted[run] = shard
        waiting = self._last if losses > SUSPECT_FROM else self._first
        waiting.append(Careful(shard, run, work))

    def next(self) -> Careful:
        """Take what comes next."""
        return (self._first or self._last).popleft()

    def counted(self, run: int) -> None:
        """Hear that the losses of a run are in the store."""
        self._uncounted.pop(run, None)

    def runs(self) -> set[int]:
        """Give the runs for which something waits."""
        return {item.run for item in chain(self._first, self._last)}

    def shards(self) -> set[int]:
        """Give the shards that have something here which is in no store: outcomes that wait, losses not counted."""
        return {item.shard for item in chain(self._first, self._last)} | self.uncounted_shards()

    def uncounted_shards(self) -> set[int]:
        """Give the shards with losses that are not counted yet."""
        return set(self._uncounted.values())

    def forget(self, shards: Iterable[int]) -> None:
        """Forget the runs of these shards: somebody else drives them now."""
        gone = set(shards)
        self._first = deque(item for item in self._first if item.shard not in gone)
        self._last = deque(item for item in self._last if item.shard not in gone)
        self._uncounted = {run: shard for run, shard in self._uncounted.items() if shard not in gone}

    def clear(self) -> None:
        """Forget everything."""
        self._first.clear()
        self._last.clear()
        self._uncounted.clear()
