"""Durations as people write them: a timedelta, seconds, or text like "1h30m"."""

import math
import re
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from watchbill.clock import EPOCH, SECOND, Micros, micros
from watchbill.errors import InvalidOptionError

Duration: TypeAlias = timedelta | float | str

UNITS: Final[dict[str, Micros]] = {
    "ms": SECOND // 1_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3_600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 7 * 86_400 * SECOND,
}
LONGEST: Final[Micros] = 36_525 * 86_400 * SECOND  # a hundred years: beyond it somebody mixed up units
_PART: Final = r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)"


def to_micros(value: Duration, *, what: str, at_least: Micros = 0) -> Micros:
    """Read a duration; `what` names it in the error."""
    try:
        span = _read(value, what)
    except OverflowError:
        span = LONGEST + 1
    if not at_least <= span <= LONGEST:
        bound = "above zero" if at_least else "zero or more"
        raise InvalidOptionError(f"{what} must be {bound} and at most 100 years, got {value!r:.200}")
    return span


def to_instant(value: datetime, *, what: str) -> Micros:
    """Read a time; one without a zone could be any of forty."""
    if not isinstance(value, datetime):
        raise InvalidOptionError(f"{what} must be a datetime with a time zone, got {value!r}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidOptionError(f"{what} must have a time zone, got {value!r}: write datetime(..., tzinfo=UTC)")
    return micros(value - EPOCH)


def _read(value: Duration, what: str) -> Micros:
    if isinstance(value, timedelta):
        return micros(value)
    if isinstance(value, bool):
        raise InvalidOptionError(f"{what} must be a timedelta, seconds, or text like '1h30m', got {value!r}")
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise InvalidOptionError(f"{what} must be a finite number of seconds, got {value!r}")
        return round(value * SECOND)
    if isinstance(value, str):
        text = value.replace(" ", "")
        parts = re.findall(_PART, text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(round(float(number) * UNITS[unit]) for number, unit in parts)
        raise InvalidOptionError(f"{what} must look like '1h30m' or '250ms' (units ms s m h d w), got {value!r}")
    raise InvalidOptionError(f"{what} must be a timedelta, seconds, or text like '1h30m', got {value!r}")
