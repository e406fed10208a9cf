"""Clock: one of the two files that may read the time of the host."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

# Instants and spans inside the house are whole microseconds: what SQLite stores, compared and added without objects.
Micros: TypeAlias = int

SECOND: Micros = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What a host can know about time."""

    def wall(self) -> Micros:
        """Wall time since 1970. It jumps: only a store that is its own clock reads it, once, when it opens."""
        ...

    def boot(self) -> Micros:
        """Time since boot, sleep included. It never goes back."""
        ...


class SystemClock:
    """The host's own clocks."""

    def wall(self) -> Micros:
        """Wall time since 1970."""
        return time.time_ns() // 1_000

    def boot(self) -> Micros:
        """Time since boot; CLOCK_MONOTONIC would stand still while a laptop sleeps."""
        return time.clock_gettime_ns(_BOOT) // 1_000


_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def micros(span: timedelta) -> Micros:
    """Convert a span to whole microseconds, exactly."""
    return (span.days * 86_400 + span.seconds) * SECOND + span.microseconds


def to_datetime(at: Micros) -> datetime:
    """Convert an instant to an aware datetime in UTC."""
    return EPOCH + timedelta(microseconds=at)
