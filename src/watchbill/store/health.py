"""Health: whether the store answers. One line is logged when it goes away and one when it is back, whoever asks it."""

from collections.abc import Callable
from typing import Final, TypeAlias

from watchbill.clock import SECOND, Clock, Micros
from watchbill.errors import StoreError, StoreFailingError, StoreUnreachableError
from watchbill.events import log
from watchbill.store.contact import Heartbeats

REPEAT: Final[Micros] = 600 * SECOND  # between two lines in the log about the same outage

# Called with the error when the store goes away, and with None and how long that lasted when it is back.
HealthListener: TypeAlias = Callable[[StoreError | None, Micros], None]


class Health:
    """Says once that the store is away, and once that it is back; in between only now and then."""

    def __init__(self, shown: str, clock: Clock) -> None:
        self._shown = shown
        self.clock = clock
        self._away_since: Micros | None = None
        self._said_at: Micros = 0
        self._error: StoreError | None = None
        self._listeners: list[HealthListener] = []
        self.outages = 0
        self.heartbeats = Heartbeats(clock)  # of this process

    @property
    def away(self) -> bool:
        """True when the last thing that was heard of it is that it did not answer."""
        return self._away_since is not None

    @property
    def trouble(self) -> tuple[StoreError, Micros] | None:
        """Why the store cannot be used, and for how long that has been so; None when it can be used."""
        if self._error is None or self._away_since is None:
            return None
        return self._error, self.clock.boot() - self._away_since

    def listen(self, listener: HealthListener) -> Callable[[], None]:
        """Call `listener` at every change from now on; gives the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def failed(self, error: BaseException) -> None:
        """Take note that it did not answer."""
        if not isinstance(error, StoreError):
            return
        away = isinstance(error, StoreUnreachableError)
        if self._away_since is not None:
            if away and self.clock.boot() - self._said_at >= REPEAT:
                self._say(error, self.clock.boot())
            self._error = error
        elif away:
            self._away_since = self.clock.boot()
            self._error = error
            self.outages += 1
            self._say(error, self._away_since)
            self._tell(error, 0)

    def answered(self, asked_at: Micros | None = None) -> None:
        """Take note that it answered; what was asked before it went away, on another connection, says nothing."""
        since = self._away_since
        if since is None or (asked_at is not None and asked_at < since):
            return
        self._away_since = self._error = None
        lasted = self.clock.boot() - since
        log.warning("store %r is back after %.1f s", self._shown, lasted / SECOND)
        self._tell(None, lasted)

    def _say(self, error: StoreError, boot: Micros) -> None:
        self._said_at = boot
        if isinstance(error, StoreFailingError):
            log.error("%s; nothing new starts and no result is recorded meanwhile; it is tried again", error)
        else:
            log.warning("%s; waiting for it", error)

    def _tell(self, error: StoreError | None, lasted: Micros) -> None:
        for listener in tuple(self._listeners):
            listener(error, lasted)
