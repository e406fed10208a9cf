"""Marks: where the living begin in an index whose dead entries cannot be removed yet.

While somebody keeps an old snapshot open (a dump, a long report), every row that was leased or consumed stays in its
index, and whoever begins at the head of a queue reads all of them again, more each second. So a process remembers where
it found something last, and begins there.

A mark saves reading and decides nothing. All is read again every RESCAN, and at once when nothing was found behind a
mark. A row that becomes ready before a mark (an urgent call, a retry) counts a jump in the store: a lease that finds
more jumps than it knows reads all in the same statement. So an urgent call is the next one, whatever process made it.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from watchbill.clock import SECOND, Clock, Micros

RESCAN: Final[Micros] = 2 * SECOND
COSTLY: Final[Micros] = SECOND // 20  # a lease that reads all takes longer if very many dead entries are there,
BY_FAR: Final = 5  # and then it takes so many times as long as one by marks: on a busy machine both are slow
UNKNOWN: Final = -1  # no number of jumps: the first lease reads all
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


class Sight(NamedTuple):
    """What a lease has seen of the store beside its queues."""

    jumps: int
    transaction: int  # its own number; greater than that of each transaction that had a number before
    oldest: int  # all transactions with lower numbers had ended when it began


class Jumps:
    """The number of jumps up to which an agent has seen all rows.

    A jump is counted before its row is committed. So a new number is known only when a later lease has read all, and
    all transactions that may have counted up to it had ended by then. Until then every lease reads all.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known = UNKNOWN
        self._next: int | None = None  # the number that will be known
        self._horizon: int | None = None  # when transactions below this one have ended
        self._since: Micros = 0
        self._costly = 0  # leases in a row for which reading all took long
        self._by_marks: Micros = 0  # the slowest of the latest leases that began at their marks
        self._ignored_until: Micros = 0

    @property
    def known(self) -> int | None:
        """The number to compare; None: reading all has just taken long, so marks count whatever has jumped."""
        return None if self._clock.boot() < self._ignored_until else self._known

    def saw(self, sight: Sight, took: Micros) -> None:
        """Take note of what a lease has seen, and how long it took."""
        ignored = self._clock.boot() < self._ignored_until
        if ignored or sight.jumps == self._known:
            self._by_marks = max(took, self._by_marks * 3 // 4)
            if not ignored:
                self._next = None
            return
        self._costly = self._costly + 1 if took > max(COSTLY, BY_FAR * self._by_marks) else 0
        if self._costly > 1:  # one may be an accident
            self._ignored_until = self._clock.boot() + RESCAN
        if self._next is None:
            self._next, self._horizon, self._since = sight.jumps, None, self._clock.boot()
        elif self._horizon is None:
            self._horizon = sight.transaction
        elif sight.oldest >= self._horizon or self._clock.boot() - self._since >= RESCAN:
            self._known, self._next = self._next, None


class Heads:
    """Where the queues of one agent begin."""

    def __init__(self, clock: Clock) -> None:
        self.jumps = Jumps(clock)
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
