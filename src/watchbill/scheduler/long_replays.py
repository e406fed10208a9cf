"""Long replays: runs whose journal takes longer to read or replay than others should wait; a piece at a time."""

from collections import deque
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.call import JournalEntry
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.resuming import Resuming
from watchbill.store.protocol import Loaded

LONG: Final = 1_000  # entries: about one slice
SLICE: Final[Micros] = 5 * SECOND // 1_000


class Reading:
    """A run of whose journal only a part was read; once it is complete, it goes where it was to go."""

    def __init__(self, loaded: Loaded, goes_on: Callable[[Loaded, Batch], None], *, unclean: bool) -> None:
        self.num, self.shard, self.unclean = loaded.run.num, loaded.run.shard, unclean
        self.goes_on = goes_on
        self._loaded = loaded
        self._journal = list(loaded.journal)

    @property
    def after(self) -> int:
        """The number of the last entry that was read."""
        return self._journal[-1].seq if self._journal else 0

    def read(self, page: Collection[JournalEntry]) -> None:
        """Add the next page."""
        self._journal.extend(page)

    def complete(self) -> Loaded:
        """Give the run with all that was read."""
        return msgspec.structs.replace(self._loaded, journal=tuple(self._journal), more=False)


class LongReplays:
    """The runs that are being brought back. Nothing is given to them meanwhile: it stays in the store."""

    def __init__(self) -> None:
        self._waiting: deque[Reading | Resuming] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, piece: Reading | Resuming) -> None:
        """Bring a run back, a piece after all others."""
        self._waiting.append(piece)

    def go_on_with(self, reading: Reading) -> None:
        """Read one journal to its end before the next one: each is in memory while it is read."""
        self._waiting.appendleft(reading)

    def next(self) -> Reading | Resuming:
        """Take the one whose turn it is; it is put back if a piece was not enough."""
        return self._waiting.popleft()

    def remove(self, piece: Reading | Resuming) -> None:
        """Take out one that is complete."""
        self._waiting.remove(piece)

    def runs(self) -> set[int]:
        """Give the runs under way."""
        return {each.num for each in self._waiting}

    def shards(self, *, unclean: bool = False) -> set[int]:
        """Give their shards, or of those alone whose losses are not counted yet."""
        return {each.shard for each in self._waiting if each.unclean or not unclean}

    def forget(self, shards: Collection[int] | None = None) -> None:
        """Forget the runs of these shards, or all: somebody else drives them now."""
        kept: deque[Reading | Resuming] = deque()
        for each in self._waiting:
            if shards is not None and each.shard not in shards:
                kept.append(each)
            elif isinstance(each, Resuming):
                each.resident.loop.close()
        self._waiting = kept
