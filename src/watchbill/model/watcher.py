"""Watcher: a supervisor among others, and which shards are its to watch. Pure: everybody computes it from one list.

Nothing correct rests on it. A verdict repeats its evidence, so two who watch the same shard for a moment decide once.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError

# Others are at work within ten seconds of a death that nobody can prove: a lease, a beat, and a look. Nothing is lost
# by taking over from somebody who was merely slow, so it is short also for a process that runs steps.
WATCH_LEASE: Final[Micros] = 6 * SECOND
WATCH_BEAT: Final[Micros] = 2 * SECOND
# An embedded supervisor divides nothing: nobody takes over from it, and its row is for people alone.
EMBEDDED_LEASE: Final[Micros] = 30 * SECOND
EMBEDDED_BEAT: Final[Micros] = 10 * SECOND
SLACK: Final = 1  # shards above the even share that somebody may have: with none, far more would move at every change

_BITS: Final = (1 << 64) - 1


class Supervision(StrEnum):
    """How supervisors divide the work."""

    EMBEDDED = "embedded"  # each watches everything, and needs to know of nobody else
    CENTRALIZED = "centralized"  # one watches everything, the others wait for its end
    DISTRIBUTED = "distributed"  # each watches its share of the shards


def supervision_named(name: object) -> Supervision:
    """Find a way of supervision."""
    if not isinstance(name, str) or name not in tuple(Supervision):
        raise InvalidOptionError(f"supervision is one of {', '.join(Supervision)}, got {name!r}")
    return Supervision(name)


class Watcher(msgspec.Struct, frozen=True):
    """A supervisor that is there; others of its way divide the work with it, unless each is embedded."""

    id: int
    way: Supervision
    region: str  # that its process serves: those of different regions may see different rows, and share nothing
    info: bytes  # the identity of its process, as JSON: a neighbour can prove its death
    lag: Micros = 0  # how late it was at worst since it said so before


class Standing(msgspec.Struct, frozen=True):
    """Who stands watch, and over what."""

    watchers: tuple[Watcher, ...]  # in time, by id
    shards: tuple[int, ...]  # all there are, sorted
    now: Micros


def leader(watchers: Iterable[Watcher]) -> int | None:
    """Say who does what is done once for all: whoever is there longest, since ids are made in the order of time."""
    return min([watcher.id for watcher in watchers], default=None)


def shares(watchers: Iterable[Watcher], shards: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Divide the shards: about evenly, and so that little moves when somebody comes or goes.

    Each shard likes every watcher to its own degree, which depends on the two alone; the strongest likings are served
    first, as long as there is room.
    """
    ids = [watcher.id for watcher in watchers]
    most = -(-len(shards) // max(1, len(ids))) + SLACK
    held: Counter[int] = Counter()
    watched: dict[int, int] = {}
    for _, shard, id in sorted(((_liking(id, shard), shard, id) for shard in shards for id in ids), reverse=True):
        if shard not in watched and held[id] < most:
            watched[shard] = id
            held[id] += 1
    return {id: tuple([shard for shard in shards if watched.get(shard) == id]) for id in ids}


def _liking(watcher: int, shard: int) -> int:
    """Mix two numbers: the same everywhere, and like chance."""
    mixed = (watcher * 0x9E3779B97F4A7C15 ^ shard * 0xC2B2AE3D27D4EB4F) & _BITS
    mixed = (mixed ^ mixed >> 31) * 0xBF58476D1CE4E5B9 & _BITS
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _BITS
    return mixed ^ mixed >> 31
