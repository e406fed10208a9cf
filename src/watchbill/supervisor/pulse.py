"""Pulse: how punctual a supervisor is. Pure: it is told what time it is.

Late is a loop that does not come round when it wanted to, a turn that does not end, and a row that was looked at after
its time.
"""

from typing import Final

from watchbill.clock import SECOND, Micros

LATE_FROM: Final[Micros] = 10 * SECOND  # somebody should hear of it: what is lost is found that much later


class Pulse:
    """When a supervisor looked, when it wants to again, and how late it was at worst; all in boot time."""

    def __init__(self) -> None:
        self._began_at: Micros | None = None  # a turn that has not ended well yet
        self._due_at: Micros | None = None
        self._overdue: Micros = 0  # of what the last look found
        self._worst: Micros = 0
        self.beats = False  # it has looked at all

    def begin(self, boot: Micros) -> None:
        """Take note that a turn begins."""
        self._worst = max(self._worst, self.lag(boot))
        if self._began_at is None:
            self._began_at = boot if self._due_at is None else min(boot, self._due_at)

    def found(self, overdue: Micros) -> None:
        """Take note of how long the oldest of what is due has waited for this look."""
        self._overdue = max(0, overdue)
        self._worst = max(self._worst, self._overdue)

    def end(self, boot: Micros, wish: Micros | None) -> None:
        """Take note that a turn has ended well, and of when the next one is wanted."""
        self._worst = max(self._worst, self.lag(boot))
        self._began_at = None
        self._due_at = None if wish is None else boot + wish
        self.beats = True

    def lag(self, boot: Micros) -> Micros:
        """Say how late it is now."""
        since = self._due_at if self._began_at is None else self._began_at
        return max(self._overdue, 0 if since is None else boot - since)

    def take_worst(self) -> Micros:
        """Say how late it was at worst since this was asked before."""
        worst, self._worst = self._worst, 0
        return worst

    def is_on_time(self, boot: Micros, interval: Micros) -> bool:
        """Say whether it looks, and lags behind by no more than two intervals."""
        return self.beats and self.lag(boot) <= 2 * interval
