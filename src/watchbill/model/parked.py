"""Parked: why a row is parked, and for whom. Whoever adds a reason says in `explain` who acts next."""

from typing import Final

import msgspec

from watchbill.model.policy import decode_policy

BACKOFF: Final = "backoff"
SETTLE: Final = "settle"  # whoever had it may still act
QUARANTINE: Final = "quarantine"
ESCALATE: Final = "escalate"
DOUBT: Final = "doubt"
FOR_PERSONS: Final = frozenset({QUARANTINE, ESCALATE, DOUBT})  # the statements of the stores say the same


def group_of(why: str, rung: int, policy: bytes) -> str:
    """Say which group of people a call waits for, by its author's ladder; "" is everybody."""
    if why == QUARANTINE:
        return ""
    try:
        later = decode_policy(policy).ladder[max(rung - 1, 0) :]
    except msgspec.DecodeError:
        return ""  # written by another version: everybody should know of it then
    return next((one.to for one in later if one.to is not None), "")
