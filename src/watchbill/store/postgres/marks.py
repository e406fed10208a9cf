"""Marks: where the living begin in an index whose dead entries cannot be removed yet.

While somebody keeps an old snapshot open (a dump, a long report), every row that was leased or consumed stays in its
index, and whoever begins at the head of a queue reads all of them again, more each second. So a process remembers where
it found something last, and begins there.

A mark saves reading and decides nothing. All is read again every RESCAN, and at once when nothing was found behind a
mark; so what lies before one (a row that is tried again keeps its rank; a row that another process made) waits for that
long at most, and only while there is other work.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

from watchbill.clock import SECOND, Clock, Micros

RESCAN: Final[Micros] = 2 * SECOND
NOWHERE: Final = 1 << 62  # behind every id

Place = tuple[int, int]  # rank and id: the order of a queue
FIRST: Final[Place] = (-NOWHERE, 0)  # before every rank, also of a clock that was wrong

Queue = tuple[int, bool]  # its number, and whether of those who need a process of their own: they wait apart


class Rescans:
    """Says when marks may be used: not when all must be read again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_at: Micros | None = None  # unknown: the first time all is read

    def due(self) -> bool:
        """Say whether all must be read now; then the next time is counted from here."""
        boot = self._clock.boot()
        if self._next_at is not None and boot < self._next_at:
            return False
        self._next_at = boot + RESCAN
        return True

    def ask(self) -> None:
        """Have all read the next time."""
        self._next_at = None


class Heads:
    """Where the queues of one agent begin."""

    def __init__(self, clock: Clock) -> None:
        self._rescans = Rescans(clock)
        self._places: dict[Queue, Place] = {}

    def begin(self, queues: Sequence[int]) -> dict[Queue, Place]:
        """Give the places to begin at."""
        if self._rescans.due():
            self._places.clear()
        return {
            (queue, lonely): self._places.get((queue, lonely), FIRST) for queue in queues for lonely in (False, True)
        }

    def found(self, rows: Iterable[tuple[Queue, Place]]) -> None:
        """Remember the first of these rows, which are in order, in each queue."""
        self._places.update(reversed(list(rows)))

    def found_nothing(self) -> bool:
        """Read all again, also the next time; says whether a mark was used, so that it may help."""
        marked = bool(self._places)
        self._rescans.ask()
        return marked


class OpenRows:
    """The rows of each shard that this process knows and nobody has consumed: no other can become final."""

    def __init__(self, clock: Clock) -> None:
        self._rescans = Rescans(clock)
        self._by_shard: dict[int, OrderedDict[int, None]] = {}  # ids in order, unless the shard is among the unordered
        self._unordered: set[int] = set()
        self._shards: dict[int, int] = {}

    def begin(self, shards: Sequence[int]) -> list[int]:
        """Give the lowest id, for each shard, that a final row of it can have."""
        if self._rescans.due():
            return [0] * len(shards)
        return [self._lowest(shard) for shard in shards]

    def found_nothing(self) -> None:
        """Read all the next time."""
        self._rescans.ask()

    def open(self, rows: Iterable[tuple[int, int]]) -> None:
        """Take note of new rows, each with its shard."""
        for id, shard in rows:
            if id in self._shards:
                continue
            ids = self._by_shard.setdefault(shard, OrderedDict())
            if ids and id < next(reversed(ids)):
                self._unordered.add(shard)
            ids[id] = None
            self._shards[id] = shard

    def close(self, ids: Iterable[int]) -> None:
        """Take note that rows are gone. One that still runs, and was asked to stop, is found without a mark."""
        for id in ids:
            shard = self._shards.pop(id, None)
            if shard is not None:
                del self._by_shard[shard][id]

    def forget(self, shards: Iterable[int]) -> None:
        """Forget shards that were lost, given back, or just taken: what becomes of their rows is not known."""
        for shard in shards:
            for id in self._by_shard.pop(shard, ()):
                del self._shards[id]
            self._unordered.discard(shard)

    def _lowest(self, shard: int) -> int:
        ids = self._by_shard.get(shard)
        if not ids:
            return NOWHERE
        if shard in self._unordered:
            self._unordered.discard(shard)
            ids = self._by_shard[shard] = OrderedDict.fromkeys(sorted(ids))
        return next(iter(ids))
