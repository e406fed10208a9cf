"""Long replays: runs whose journal takes longer to replay than others should wait; a slice at a time, between turns."""

from collections import deque
from collections.abc import Collection
from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.scheduler.advance import Resuming

LONG: Final = 1_000  # entries: about one slice
SLICE: Final[Micros] = 5 * SECOND // 1_000


class LongReplays:
    """The runs that are being brought back. Nothing is given to them meanwhile: it stays in the store."""

    def __init__(self) -> None:
        self._waiting: deque[Resuming] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, resuming: Resuming) -> None:
        """Bring a run back, a slice after all others."""
        self._waiting.append(resuming)

    def next(self) -> Resuming:
        """Take the one whose turn it is; it is put back if a slice was not enough."""
        return self._waiting.popleft()

    def runs(self) -> set[int]:
        """Give the runs under way."""
        return {resuming.resident.num for resuming in self._waiting}

    def shards(self, *, unclean: bool = False) -> set[int]:
        """Give their shards, or of those alone whose losses are not counted yet."""
        return {each.resident.shard for each in self._waiting if each.unclean or not unclean}

    def forget(self, shards: Collection[int] | None = None) -> None:
        """Forget the runs of these shards, or all: somebody else drives them now."""
        kept: deque[Resuming] = deque()
        for resuming in self._waiting:
            if shards is None or resuming.resident.shard in shards:
                resuming.resident.loop.close()
            else:
                kept.append(resuming)
        self._waiting = kept
