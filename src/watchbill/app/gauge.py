"""Gauge: tells now and then how things go, in the numbers of `app.metrics()`, to whoever listens to all events here.

One of those who divide the work of supervision does it. While nobody listens nothing is asked, and there is no timer.
"""

from typing import Final

from watchbill import events as happened
from watchbill.app.measuring import measured
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.store.protocol import ClientStore
from watchbill.supervisor.roster import Roster

METRICS_EVERY: Final[Micros] = 60 * SECOND  # as monitors look: what they keep is by the minute
METRICS_WITHIN: Final[Micros] = 86_400 * SECOND  # as `app.metrics()` has it, if it is not told otherwise


class Gauge(Loop):
    """Reads what trouble has left behind; while all goes well that is little."""

    name = "gauge"

    def __init__(
        self, env: Env, events: Events, *, store: ClientStore, namespace: str, roster: Roster | None = None
    ) -> None:
        super().__init__(env, events)
        self._store = store
        self._namespace = namespace
        self._roster = roster
        self._tell_at: Micros | None = None  # boot time; None: nobody listens
        self._deaf = events.when_wanted(self.wake)

    async def turn(self) -> Micros | None:
        """Tell, if it is time and somebody listens."""
        if not self.events.wanted:
            self._tell_at = None
            return None
        boot = self.env.clock.boot()
        if self._tell_at is None:
            self._tell_at = boot + METRICS_EVERY
        if boot >= self._tell_at:
            self._tell_at = boot + METRICS_EVERY
            if self._roster is None or self._roster.leads:
                await self._tell()
        return self._tell_at - boot

    async def _tell(self) -> None:
        metrics = await measured(self._store, self._namespace, METRICS_WITHIN)
        at = round(metrics.until.timestamp() * SECOND)
        self.tell([Event(happened.METRICS, at, "supervisor", value=metrics)])

    async def close(self) -> None:
        """Hear no more of who listens."""
        self._deaf()
