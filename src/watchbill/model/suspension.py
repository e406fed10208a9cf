"""Suspension: why an agent gets nothing that others can do, until when, and what it is tried with. Pure."""

from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros

FIRST_WAIT: Final[Micros] = 10 * SECOND  # before it is tried: a mount that hangs for a moment is back by then
LONGEST_WAIT: Final[Micros] = 300 * SECOND  # what somebody has repaired is back within five minutes
RELAPSE: Final[Micros] = 600 * SECOND  # suspended again within that, it waits twice as long as the last time
CANARIES: Final = 3  # attempts, one after the other, that must be done before it gets all it has room for
ANYTHING_AFTER: Final[Micros] = 60 * SECOND  # without what it failed at, it is tried with what there is


class Suspension(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an agent gets no work but what it is tried with, and what nobody else can do."""

    since: Micros  # of this pause
    opened_at: Micros
    wait: Micros
    why: str
    steps: tuple[str, ...]  # that it failed: it is tried with these
    error: str = ""  # the last failure, by its type
    tried: int = 0  # in vain, so often
    runs: tuple[str, ...] = ()  # some that it has failed
    needs: tuple[str, ...] = ()  # of the queue of which it failed something: who has them could do it

    @property
    def next_at(self) -> Micros:
        """When it may try."""
        return self.since + self.wait


encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Suspension).decode


def read_suspension(body: bytes | None) -> Suspension | None:
    """Read why an agent is suspended, if it is."""
    return None if body is None else _decode(body)


def first_wait(last: tuple[Micros, Micros] | None, now: Micros) -> Micros:
    """Say how long to wait before the first try; `last`: how long it was the last time, and when that ended."""
    if last is None or now - last[1] > RELAPSE:
        return FIRST_WAIT
    return min(LONGEST_WAIT, 2 * last[0])


def tried_in_vain(suspension: Suspension, error: str, now: Micros) -> Suspension:
    """Let it wait for twice as long."""
    return msgspec.structs.replace(
        suspension,
        since=now,
        wait=min(LONGEST_WAIT, 2 * suspension.wait),
        error=error or suspension.error,
        tried=suspension.tried + 1,
    )


def steps_to_try(suspension: Suspension, known: tuple[str, ...], now: Micros) -> tuple[str, ...]:
    """Give what it may be tried with."""
    if now >= suspension.next_at + ANYTHING_AFTER:
        return known
    return tuple([step for step in known if step in suspension.steps])
