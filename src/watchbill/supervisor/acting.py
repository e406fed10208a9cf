"""Acting: how much longer whoever had an attempt may act by its lease. Pure: facts and the store's time in."""

from watchbill.clock import Micros
from watchbill.model.attempt import AttemptRow
from watchbill.model.lease import FOREVER
from watchbill.model.profile import INLINE_LEASE, LONGEST_LEASE


def acts_for(row: AttemptRow, now: Micros) -> Micros | None:
    """Say how much longer the lease lasts of the agent that had an attempt which has ended; None: nobody knows it.

    An agent that is alive may be cut off at this moment, with all of its lease before it; one whose connection went
    away is buried early, and keeps the end of its lease. Of one that is provably dead, or has left, that is the past.
    """
    until = row.leased_until
    if not until:
        return None
    if until >= FOREVER:
        # It owns the store, and hears of it at once; unless a step holds its interpreter.
        until = (now if row.ended_at is None else row.ended_at) + INLINE_LEASE
    return max(0, until - now)


def may_act_for(acts_for: Micros | None) -> Micros:
    """Give that, of an agent that nobody knows any more as long as the longest lease that there is."""
    return LONGEST_LEASE if acts_for is None else acts_for
