"""Lease: who drives a shard, under which term."""

from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros

HOST_LEASE: Final[Micros] = (
    8 * SECOND
)  # of agents that run no steps in their own process: nothing keeps them from beating
FOREVER: Final[Micros] = 1 << 62  # the end of a lease that does not end; later than any time, and a sum with it fits


GONE: Final[Micros] = 1  # when the lease ended of who is provably dead, or has left: long ago, as statements say


class Taken(msgspec.Struct, frozen=True):
    """A shard that a `take` won."""

    shard: int
    term: int
    unclean: bool  # the owner before did not release it: what it was doing counts as lost
    doing: int | None  # the run that owner had named before it died
    owner: int | None = None  # that owner, if it is known


class Member(msgspec.Struct, frozen=True):
    """A scheduler that is there, among those that share the shards of a (namespace, region)."""

    id: int
    knows: tuple[str, ...]  # the workflows that its code has, sorted
    info: bytes  # the identity of its process, as JSON: a neighbour can prove its death


class Terms(msgspec.Struct, frozen=True):
    """The answer to `take`."""

    taken: tuple[Taken, ...]
    now: Micros
    uploads: bool = False  # there are uploads that no turn has taken: some may be garbage of earlier terms
