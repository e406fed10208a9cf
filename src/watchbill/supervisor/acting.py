"""Acting: how much longer whoever had an attempt that failed may act. Pure: facts and the store's time in."""

from typing import Final

from watchbill.clock import Micros
from watchbill.model.attempt import UNWANTED, AttemptRow, RowKind
from watchbill.model.failure import Cause
from watchbill.model.lease import FOREVER, GONE
from watchbill.model.limits import overdue_at
from watchbill.model.policy import Policy
from watchbill.model.profile import LONGEST_LEASE, SILENCE, STOPS_WITHIN

# An attempt that was taken from whoever had it, who may still act: it hears of it with a beat, at the latest when its
# lease has ended, and then stops it, or kills it. All others were reported by whoever had them.
TAKEN_AWAY: Final = frozenset({Cause.LOST, Cause.LATE, Cause.STALLED})


def settles_in(row: AttemptRow, cause: Cause | None, policy: Policy, now: Micros) -> Micros:
    """Say how long it is until no attempt of a row that has failed can act; 0: none can.

    `cause`: of the last one; None: nobody can read it.
    """
    before = max(0, (row.acts_until or 0) - now)
    judged = row.kind == RowKind.PROBE or row.why == UNWANTED  # a probe acts not, and of what waited it is known
    if judged or (cause is not None and cause not in TAKEN_AWAY):
        return before
    return max(before, _acts_for(row, policy, now) + STOPS_WITHIN)


def _acts_for(row: AttemptRow, policy: Policy, now: Micros) -> Micros:
    """Say how much longer the agent that had an attempt may act on it, before it begins to stop it.

    An agent that is alive may be cut off at this moment, with all of its lease before it; one whose connection went
    away is buried early, and keeps the end of its lease. Of one that is provably dead, or has left, that is long past.
    Whoever has renewed its lease since the attempt was taken away was told so then: no lease that it had before lasts
    longer than the longest. Who cannot be heard stops at the end of its lease what must not happen twice, and what has
    had its time; all else goes on for a while, for perhaps it is the store that is away.
    """
    until, taken_at = row.leased_until or FOREVER - 1, now if row.ended_at is None else row.ended_at
    if until == GONE or until >= FOREVER:
        return 0  # who owns the store hears of it at once: it is in the process of whoever judges
    until = min(until, taken_at + LONGEST_LEASE)
    if policy.idempotent and not _has_had_its_time(row, policy):
        until = max(until, taken_at) + SILENCE  # a scheduler may have handed it over when that lease was over
    return max(0, until - now)


def _has_had_its_time(row: AttemptRow, policy: Policy) -> bool:
    """Say whether its agent knows that it is late: by what its author wants, as it was when it began."""
    overdue = overdue_at(row)
    return row.ended_at is not None and overdue is not None and policy.override is None and overdue <= row.ended_at
