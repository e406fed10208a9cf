"""Doings: how what an agent did has ended of late, as it says with its beats. By them it is compared with others.

Counted are attempts that were leased: those that were done, and those that raised what would be retried. What its
author calls hopeless, busy, rejected or unknown says nothing of the host; a loss has its own cure.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import IN_A_ROW, SHARE
from watchbill.model.failure import Cause, Failure, Remedy

SLOT: Final[Micros] = 5 * SECOND  # what ends within one ends at the same time: it is compared
REMEMBERED: Final[Micros] = 60 * SECOND  # long enough for what is seldom done to be many
MOST_WORKS: Final = 10  # that one agent tells of, the most frequent: a beat stays small
ILL_SLOTS: Final = 3  # in which it fails and others do not: a dependency that was away for a moment may meet one alone
MOST_RUNS: Final = 3  # whose failures are named, of each: two are enough


class Work(NamedTuple):
    """What is compared: the same step and rung, from the same queue, so that all who do it have what it needs."""

    queue: int
    step: str
    rung: int


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """How what an agent did of one kind has ended within one slot."""

    slot: int  # the store's time, in slots
    work: Work
    done: int = 0
    failed: int = 0
    cured: int = 0  # of those done: had failed before
    in_vain: int = 0  # of those that failed: had failed before
    runs: tuple[str, ...] = ()  # of those that failed, some


class Trial(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of letting a suspended agent try."""

    since: Micros  # of the suspension that it tried to end
    well: bool
    error: str = ""


class Doings(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that an agent says of it."""

    tallies: tuple[Tally, ...] = ()
    error: str = ""  # what the last one failed with, by its type: a message may be nobody else's business
    trial: Trial | None = None
    ill: bool | None = (
        None  # it fails enough to be compared; None: it did nothing, or is of a version that says nothing
    )


class Glance(msgspec.Struct, frozen=True):
    """What is read of all: whoever reads every tally of a thousand agents that are well does nothing else."""

    ill: bool = True


class Doer(NamedTuple):
    """An agent that is alive, as supervisors compare it."""

    id: int
    namespace: str
    name: str
    doings: bytes
    suspension: bytes | None
    beat_at: Micros  # when it said so
    judged_from: Micros  # what it did before that is forgiven
    wanted: bool  # no operator keeps work from it
    region: str = ""
    needs: tuple[str, ...] = ()  # what it has


class Roll(msgspec.Struct, frozen=True):
    """All of them, at a time."""

    doers: tuple[Doer, ...]
    now: Micros


class Suspending(NamedTuple):
    """What a supervisor makes of an agent, if it is still as it was seen."""

    agent: int
    seen: bytes | None  # its suspension
    doings: bytes  # what it had said
    after: bytes | None  # its suspension from now on; None: it works again
    others: tuple[int, ...] = ()  # who did what it failed: one of them must still be there for it to be suspended
    alone: bool = (
        False  # it works again because nobody else is left for what it failed: `others`, who cannot do that, may be
    )


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Doings).decode
_glance: Final = msgspec.json.Decoder(Glance).decode


def encode(doings: Doings) -> bytes:
    """Write what an agent says, and whether it fails enough to be compared."""
    return _encode(msgspec.structs.replace(doings, ill=fails_much(doings.tallies)) if doings.tallies else doings)


def fails_much(tallies: Iterable[Tally]) -> bool:
    """Say whether somebody fails enough of some work, for long enough, to be compared: without it nothing is shown."""
    failed, ill = dict[Work, int](), dict[Work, int]()
    for tally in tallies:
        if tally.failed:
            failed[tally.work] = failed.get(tally.work, 0) + tally.failed
            ill[tally.work] = ill.get(tally.work, 0) + fails_most(tally)
    return any(count >= IN_A_ROW and ill[work] >= ILL_SLOTS for work, count in failed.items())


def fails_most(tally: Tally) -> bool:
    """Say whether most of what ended in a slot has failed."""
    return tally.failed > 0 and tally.failed >= SHARE * (tally.done + tally.failed)


NOTHING: Final = Doings()
NOTHING_SAID: Final = encode(NOTHING)  # as an agent says it that had said more before


def read_doings(body: bytes) -> Doings:
    """Read what an agent said; one that has said nothing, or what only a newer version understands, did nothing."""
    try:
        return _decode(body) if body else NOTHING
    except msgspec.DecodeError:
        return NOTHING


def may_be_ill(body: bytes) -> bool:
    """Say, at a glance, whether somebody fails enough to be compared."""
    try:
        return bool(body) and _glance(body).ill
    except msgspec.DecodeError:
        return False


def slot_of(at: Micros) -> int:
    """Give the slot of a time."""
    return at // SLOT


def tells_against(failure: Failure) -> bool:
    """Say whether a failure may be the host's: it was raised, and would be retried."""
    return failure.cause is Cause.RAISED and failure.remedy is Remedy.RETRY
