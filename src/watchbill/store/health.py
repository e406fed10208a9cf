"""Health: whether the store answers. One line is logged when it goes away and one when it is back, whoever asks it."""

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.events import log


class Health:
    """Says once that the store is away, and once that it is back."""

    def __init__(self, shown: str, env: Env) -> None:
        self._shown = shown
        self.clock = env.clock
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

    def answered(self) -> None:
        """Take note that it answered."""
        if self._away_since is not None:
            away, self._away_since = (self.clock.boot() - self._away_since) / SECOND, None
            log.warning("store %r is back after %.1f s", self._shown, away)
