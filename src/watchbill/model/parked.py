"""Parked: why a row is parked. Whoever adds a reason says in `explain` who acts next."""

from typing import Final

BACKOFF: Final = "backoff"
SETTLE: Final = "settle"  # whoever had it may still act
QUARANTINE: Final = "quarantine"
ESCALATE: Final = "escalate"
DOUBT: Final = "doubt"
FOR_PERSONS: Final = frozenset({QUARANTINE, ESCALATE, DOUBT})  # the statements of the stores say the same
