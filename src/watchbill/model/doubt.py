"""Doubt: whether an attempt that failed may have taken effect all the same. Pure: agents and supervisors ask alike."""

from watchbill.model.failure import Cause, Failure, Remedy
from watchbill.model.policy import Policy


def is_in_doubt(failure: Failure, policy: Policy) -> bool:
    """Say whether an attempt may have taken effect, and its author does not want it tried again because of that."""
    if failure.cause is Cause.UNKNOWN:
        return True  # it says so itself
    if policy.idempotent or failure.cause is not Cause.RAISED:
        return not policy.idempotent
    named = bool(policy.on) and failure.remedy is Remedy.RETRY
    return not named and failure.remedy not in (Remedy.GIVE_UP, Remedy.WAIT)
