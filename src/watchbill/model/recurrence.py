"""Recurrence: when and how a workflow starts by itself, as its author wrote it."""

from enum import StrEnum

import msgspec

from watchbill.clock import Micros


class Overlap(StrEnum):
    """What becomes of a slot that comes while the run of an earlier one is live."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class Catchup(StrEnum):
    """Which of the slots that nobody was there for are made up for."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


class ScheduleSpec(msgspec.Struct, frozen=True):
    """What the author wrote: `cron` in `tz`, or `every`."""

    cron: str | None = None
    every: Micros | None = None
    tz: str = "UTC"
    overlap: Overlap = Overlap.SKIP
    catchup: Catchup = Catchup.LAST

    @property
    def timing(self) -> tuple[str | None, Micros | None, str]:
        """What decides when its slots are; if that changes, it begins anew."""
        return self.cron, self.every, self.tz
