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
    gated: int = 0  # rows that wait behind gates, which are not paused, as soon as these let them through
    gated_for: Micros = 0  # the first of them


class Size(NamedTuple):
    """What an operator allows, and what an agent takes."""

    least: int
    most: int
    slots: int


def load_of(queues: Sequence[QueueDepth], have: Mapping[str, int], region: str) -> Load:
    """Sum up what waits for agents that have this, in this region; what is paused waits for nobody."""
    ours = [queue for queue in queues if queue.region == region and meets(have, parse_needs(queue.needs))]
    moving = [queue for queue in ours if queue.moving]  # more agents would let none of the others start
    free = [queue for queue in moving if not queue.limited]
    gated = [queue for queue in moving if queue.limited]
    return Load(
        sum(queue.moving for queue in free),
        max((queue.age for queue in free), default=0),
        sum(queue.running for queue in ours),
        sum(queue.moving for queue in gated),
        max((queue.age for queue in gated), default=0),
    )


def size_of(fleet: Fleet, load: Load, there: int, size: Size, now: Micros) -> tuple[int, Fleet]:
    """Say how many agents there should be, and what to remember for the next time."""
    if there < size.least:
        return size.least, fleet
    if there < size.most and _must_grow(fleet, load, there, size, now):
        return min(size.most, max(1, 2 * there)), Fleet(grown_at=now)
    if there <= size.least or load.ready or load.running > (there - 1) * size.slots:
        return min(there, size.most), fleet._replace(idle_since=None)
    since = now if fleet.idle_since is None else fleet.idle_since
    if now - since < SHRINK_AFTER:
        return there, fleet._replace(idle_since=since)
    enough = max(-(-load.running // size.slots), 1 if load.gated else 0)  # somebody must be there when a gate opens
    return max(size.least, enough), fleet._replace(idle_since=None)


def _must_grow(fleet: Fleet, load: Load, there: int, size: Size, now: Micros) -> bool:
    if there == 0:
        return bool(load.ready or load.gated)
    # Agents with room take what a gate lets through at once: more of them would only wait with it.
    full = load.running >= there * size.slots
    waits = bool(load.ready) and load.oldest >= GROW_AFTER
    waits = waits or (full and bool(load.gated) and load.gated_for >= GROW_AFTER)
    return waits and now - fleet.grown_at >= GROW_EVERY
