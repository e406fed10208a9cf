"""Acting: how much longer whoever had an attempt may act by its lease. Pure: facts and the store's time in."""

from watchbill.clock import Micros
from watchbill.model.attempt import AttemptRow
from watchbill.model.lease import FOREVER
from watchbill.model.profile import INLINE_LEASE, LONGEST_LEASE


def acts_for(row: AttemptRow, now: Micros) -> Micros | None:
    """Say how much longer the lease lasts of the agent that had an attempt which has ended; None: nobody knows it.

    An agent that is alive may be cut off at this moment, with all of its lease before it; one whose connection went
    away is buried early, and keeps the end of its lease. Of one that is provably dead, or has left, that is the past.
    Whoever has renewed its lease since the attempt was taken away was told so then: no lease that it had before lasts
    longer than the longest.
    """
    until, ended_at = row.leased_until, row.ended_at
    if not until and ended_at is None:
        return None
    if not until:
        until = FOREVER - 1
    elif until >= FOREVER:
        # It owns the store, and hears of it at once; unless a step holds its interpreter.
        until = (now if ended_at is None else ended_at) + INLINE_LEASE
    if ended_at is not None:
        until = min(until, ended_at + LONGEST_LEASE)
    return max(0, until - now)


def may_act_for(acts_for: Micros | None) -> Micros:
    """Give that, of an agent that nobody knows any more as long as the longest lease that there is."""
    return LONGEST_LEASE if acts_for is None else acts_for
