"""StoreTime: the store's time as this process knows it, between two answers."""

from watchbill.clock import Clock, Micros


class StoreTime:
    """The last store time seen plus the boot time elapsed since; it never goes back, whatever the wall clock does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset: Micros = 0
        self._last: Micros = 0

    def saw(self, now: Micros) -> None:
        """Take in a time that the store answered."""
        self._offset = now - self._clock.boot()

    def until(self, at: Micros) -> Micros:
        """Give how long it is until the store's time reaches `at`; below 0 when it has.

        While the store's time passes slowly, its answers are behind `now()`, which stands still then.
        """
        return at - self._clock.boot() - self._offset

    def now(self) -> Micros:
        """Give the store's time."""
        self._last = max(self._last, self._clock.boot() + self._offset)
        return self._last
