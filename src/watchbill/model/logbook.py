"""Logbook: what people ordered that is about no single run: who, when, what and why; kept when it is over, too.

What is ordered of a run is in its own timeline, but for its deletion, which takes the timeline with it.
"""

from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros

KEPT_FOR: Final[Micros] = 365 * 86_400 * SECOND  # who is asked about last year's outage finds who paused what
FORGOTTEN_AT_ONCE: Final = 1_000
LONGEST: Final = 100_000  # lines that are read at once


class LogEntry(NamedTuple):
    """An order, to be written with what it orders."""

    kind: str  # gate, policy, quota, agent, schedule, incident or run
    name: str
    act: str
    by: str
    reason: str = ""
    detail: str = ""


class Logged(msgspec.Struct, frozen=True):
    """An order, for people."""

    at: datetime
    by: str
    kind: str
    name: str
    act: str
    detail: str
    reason: str
