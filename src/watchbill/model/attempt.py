"""Attempt: one call's row while it is not simply a first try that succeeds at once."""

from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.states import AttemptState

FENCE_BITS: Final = 20
STARVED: Final = "starved"  # as a symptom: its worker does not turn
SLOW: Final = "slow"  # why a running row is looked at no more for being beyond what is usual: it has been told
UNWANTED: Final = "unwanted"  # it waited, its last attempt judged, when its run was stopped: it is judged once more


class RowKind(IntEnum):
    """Who answers a call's row."""

    STEP = 0  # an agent
    ASK = 1  # a person
    PROBE = 2  # an agent, which asks the outside world whether an earlier attempt took effect


def first_fence(term: int) -> int:
    """Give the fence of a new row of that term; each lease adds 1, so fences grow through crashes and takeovers."""
    return term << FENCE_BITS


def leases_of(fence: int) -> int:
    """Say how often a row was leased within its term, or which attempt of its term it is."""
    return fence & ((1 << FENCE_BITS) - 1)


class NewAttempt(NamedTuple):
    """A row to insert, by a scheduler, under its term; spans are relative to the store's time of the commit."""

    id: int
    run: int
    run_id: str  # with `part`, all an agent needs for the idempotency key: agents never read runs
    part: int
    shard: int
    call: str
    step: str
    queue: int
    state: int
    fence: int
    agent: int | None
    failures: int
    losses: int
    alone: bool  # its author wants a process of its own for it
    span: int  # milliseconds from a lease to the first look
    started_ago: Micros | None
    watch_in: Micros | None
    progress: bytes | None
    policy: bytes
    args: bytes
    result: bytes | None  # a Failure when state is failed
    kind: int = 0
    why: str | None = None
    rank_ahead: Micros = 0  # its head start, by priority
    held: bool = False  # its run is paused
    gate: str | None = None  # that it must pass to start
    unsure: bool = False  # an attempt before may have taken effect
    acts_until: Micros | None = None  # and may act until then
    cancel: bool = False  # nobody wants it any more


class AttemptRow(msgspec.Struct, frozen=True):
    """A row as it is read."""

    id: int
    run: int
    run_id: str
    part: int
    shard: int
    call: str
    step: str
    queue: int
    state: AttemptState
    fence: int
    agent: int | None
    failures: int
    losses: int
    rung: int
    cancel: bool
    why: str | None
    started_at: Micros | None
    ended_at: Micros | None
    watch_at: Micros | None
    progress_at: Micros | None
    progress: bytes | None
    checkpoint: bytes | None
    policy: bytes
    args: bytes
    result: bytes | None
    kind: int = 0
    held: bool = False
    symptom: str | None = None  # what its agent last said is wrong with it, while it runs
    earlier: int = (
        0  # attempts that neither budget counts: of rungs before this one, and of those that were told to wait
    )
    doubt: bytes | None = None  # a Doubt, while nobody knows whether an attempt took effect
    unsure: bool = False  # an attempt that is over may have taken effect: whatever follows, it must be undone
    acts_until: Micros | None = None  # one that was taken from its agent may act until then
    leased_until: Micros | None = None  # when it is judged: the end of the lease of whoever had it; None: unknown

    @property
    def number(self) -> int:
        """The attempt's number, from 1: the budgets are arithmetic, each try is in exactly one of them.

        A probe has the number of the attempt that it asks about.
        """
        waits = self.state in (AttemptState.READY, AttemptState.PARKED)
        probing = self.kind == RowKind.PROBE and not waits
        return self.earlier + self.failures + self.losses - int(probing)


class Progress(msgspec.Struct, frozen=True):
    """How far a step says it is."""

    done: float
    total: float | None = None
    note: str = ""


def how_far(progress: Progress) -> str:
    """Say how far a step is, as it counts it."""
    return f"{progress.done:g}" + ("" if progress.total is None else f" of {progress.total:g}")


class Mark(Progress, frozen=True, omit_defaults=True):
    """All that a step says about itself while it runs, as its row has it: how far it is, and how long it may take."""

    extended: Micros = 0  # added to its timeout, in all
    quiet_until: Micros | None = None  # in store time: it says nothing on purpose
    quiet_for: str = ""  # what for
    begun: bool = True  # False: it has said nothing yet about how far it is


def has_moved(before: Mark | None, after: Mark) -> bool:
    """Say whether a step has moved on: by an increase of `done`, or because it is no longer quiet on purpose."""
    if before is not None and before.quiet_until is not None and after.quiet_until is None:
        return True
    if not after.begun:
        return False
    return before is None or not before.begun or after.done > before.done
