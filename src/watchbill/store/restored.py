"""Restored: a store that was restored from a backup gets fences above all that outside systems have seen.

Terms were drawn after the backup was made. Outside systems have seen their fences, and reject lower ones. The new term
is at least the time of the restore in units of 1,024 microseconds: no store draws a thousand terms a second for long,
so it is above all terms of the lost past, also when the same backup is restored twice.
"""

from typing import Final, NamedTuple

from watchbill.clock import Micros

LEAST_RAISE: Final = 1 << 20  # terms: for a clock that is wrong
_UNIT_BITS: Final = 10  # of microseconds: so terms and fences have room in 63 bits until the year 2255


class Raised(NamedTuple):
    """The new term of a restored store, and how many open attempts have been moved into it."""

    term: int
    attempts: int


def floor_of_terms(now: Micros) -> int:
    """Give a term that no store can have reached before this time."""
    return now >> _UNIT_BITS
