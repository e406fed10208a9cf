"""Fleet: how many agents there should be, from how long work waits. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from watchbill.clock import SECOND, Micros
from watchbill.model.needs import meets, parse_needs
from watchbill.model.queue import QueueDepth

GROW_AFTER: Final[Micros] = 2 * SECOND  # work that waits longer waits for want of agents, not for its turn
GROW_EVERY: Final[Micros] = 5 * SECOND  # a new agent needs a moment before it shows
SHRINK_AFTER: Final[Micros] = 30 * SECOND  # a lull is not the end


class Fleet(NamedTuple):
    """What the last decisions were made on."""

    grown_at: Micros = -GROW_EVERY
    idle_since: Micros | None = None  # since when fewer would do


class Load(NamedTuple):
    """What there is to do for these agents."""

    ready: int  # rows that wait for an agent
    oldest: Micros  # for how long the first of them
    running: int


class Size(NamedTuple):
    """What an operator allows, and what an agent takes."""

    least: int
    most: int
    slots: int


def load_of(queues: Sequence[QueueDepth], have: Mapping[str, int], region: str) -> Load:
    """Sum up what waits for agents that have this, in this region."""
    ours = [queue for queue in queues if queue.region == region and meets(have, parse_needs(queue.needs))]
    waiting = [queue for queue in ours if not queue.stopped]  # more agents would let none of the others start
    return Load(
        sum(queue.depth for queue in waiting),
        max((queue.oldest for queue in waiting), default=0),
        sum(queue.running for queue in ours),
    )


def size_of(fleet: Fleet, load: Load, there: int, size: Size, now: Micros) -> tuple[int, Fleet]:
    """Say how many agents there should be, and what to remember for the next time."""
    if there < size.least:
        return size.least, fleet
    if load.ready and there < size.most and _must_grow(fleet, load, there, now):
        return min(size.most, max(1, 2 * there)), Fleet(grown_at=now)
    if there <= size.least or load.ready or load.running > (there - 1) * size.slots:
        return min(there, size.most), fleet._replace(idle_since=None)
    since = now if fleet.idle_since is None else fleet.idle_since
    if now - since < SHRINK_AFTER:
        return there, fleet._replace(idle_since=since)
    enough = -(-load.running // size.slots)
    return max(size.least, enough), fleet._replace(idle_since=None)


def _must_grow(fleet: Fleet, load: Load, there: int, now: Micros) -> bool:
    if there == 0:
        return True
    return load.oldest >= GROW_AFTER and now - fleet.grown_at >= GROW_EVERY
