"""StoreTime: the store's time as this process knows it, between two answers."""

from typing import Final

from watchbill.clock import SECOND, Clock, Micros

STILL: Final[Micros] = SECOND  # what this process was ahead by stands still for so long; of more it goes back


class StoreTime:
    """The store's time, from its answers and the boot time elapsed since.

    An answer bounds it: it was not later when the question was sent, and is not earlier when the answer arrives. So an
    answer that was under way for long, or that a process reads after it stood still, moves nothing back. If the store's
    time is behind what this process had, its clock was put right, or passes slowly: this process follows.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset: Micros | None = None  # of the store's time to boot time
        self._last: Micros = 0

    def saw(self, now: Micros, asked: Micros) -> None:
        """Take in a time that the store answered; `asked`: the boot time when the question was sent."""
        least = now - self._clock.boot()
        self._offset = least if self._offset is None else min(max(self._offset, least), now - asked)

    def until(self, at: Micros) -> Micros:
        """Give how long it is until the store's time reaches `at`; below 0 when it has.

        While the store's time passes slowly, its answers are behind `now()`, which stands still then.
        """
        return at - self._now()

    def now(self) -> Micros:
        """Give the store's time; it goes back only if this process was ahead of it by more than a second."""
        now = self._now()
        if not self._last - STILL <= now <= self._last:
            self._last = now
        return self._last

    def _now(self) -> Micros:
        return self._clock.boot() + (self._offset or 0)
