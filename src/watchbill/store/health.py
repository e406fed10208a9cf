"""Health: whether the store answers. One line is logged when it goes away and one when it is back, whoever asks it."""

from watchbill.clock import SECOND, Clock, Micros
from watchbill.errors import StoreUnreachableError
from watchbill.events import log


class Health:
    """Says once that the store is away, and once that it is back."""

    def __init__(self, shown: str, clock: Clock) -> None:
        self._shown = shown
        self.clock = clock
        self._away_since: Micros | None = None
        self.outages = 0

    @property
    def away(self) -> bool:
        """True when the last thing that was heard of it is that it did not answer."""
        return self._away_since is not None

    def failed(self, error: BaseException) -> None:
        """Take note that it did not answer."""
        if self._away_since is None and isinstance(error, StoreUnreachableError):
            self._away_since = self.clock.boot()
            self.outages += 1
            log.warning("%s; waiting for it", error)

    def answered(self, asked_at: Micros | None = None) -> None:
        """Take note that it answered; what was asked before it went away, on another connection, says nothing."""
        since = self._away_since
        if since is None or (asked_at is not None and asked_at < since):
            return
        self._away_since = None
        log.warning("store %r is back after %.1f s", self._shown, (self.clock.boot() - since) / SECOND)
