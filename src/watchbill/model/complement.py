"""Complement: all who belong aboard: agents that are there, those that were lost of late, and threads that run on."""

from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.lost import Found

# How long somebody who was lost and has not been replaced is missed. A machine that comes back is back long before, and
# who was told has seen it; one that an autoscaler took away never comes back. If its work needs it, that waits, and is
# an incident of its own.
AWAY_FOR: Final[Micros] = 3_600 * SECOND
LOST_AGENTS: Final = "lost agents"  # the cause of the incident about them, of which a namespace has one at most
ABANDONED: Final = "abandoned threads"  # how the causes of those incidents begin that are about one agent's threads
MOST_SAID: Final = 20  # abandoned threads that an agent speaks of, one by one


class Abandoned(msgspec.Struct, frozen=True):
    """A thread that runs on though somebody else has its call: it cannot be stopped."""

    run: str  # its id
    call: str
    step: str
    started_at: Micros
    since: Micros  # when it was abandoned, by the store's time as that process knows it


class Inline(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent says of itself that runs steps in its own process; `abandoned` is written first, see SAYS_SO."""

    abandoned: tuple[Abandoned, ...] = ()
    threads: int = 0  # so many in all


SAYS_SO: Final = b'{"abandoned":'  # how it begins when there are some: so far a store reads it


class Hand(NamedTuple):
    """An agent: one that is there, or one that was lost of late."""

    id: int
    namespace: str
    region: str
    name: str
    info: bytes  # the identity of its process
    needs: tuple[str, ...]  # what it has
    joined_at: Micros
    beat_at: Micros
    here: bool  # alive and in time
    found: Found  # by which evidence it is not
    lost_at: Micros
    told: bool  # it was written down as lost, and somebody told so
    held: int  # attempts that were taken from it since, or are about to be
    said: bytes  # of itself, if it has abandoned threads


class Complement(msgspec.Struct, frozen=True):
    """All of them, at a time."""

    hands: tuple[Hand, ...]
    incidents: bool  # one is open that is about any of them
    now: Micros


def says_so(said: bytes) -> bool:
    """Say whether an agent speaks of threads that it has abandoned."""
    return said.startswith(SAYS_SO)


_decode: Final = msgspec.json.Decoder(Inline).decode


def read_abandoned(said: bytes) -> Inline:
    """Read what an agent says of its abandoned threads; what only a newer version understands is nothing."""
    try:
        return _decode(said) if said else Inline()
    except msgspec.DecodeError:
        return Inline()
