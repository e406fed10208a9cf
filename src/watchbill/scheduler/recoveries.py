"""Recoveries: tells of calls that are done though an attempt before was not, and how long that took, to who listens.

When their trouble began is read from what was decided about them. A loop of its own: in the scheduler's turn, a read
that is not answered would have its leases renewed too late. While nobody listens to all that happens, nothing is read.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.metrics import Onset, onsets_of
from watchbill.store.protocol import SchedulerStore

READ_AT_ONCE: Final = 500  # calls: a search in an index for each
MOST_KEPT: Final = 5_000  # that wait to be told: of more, while the store does not answer, it is not said how long


class Recovered(NamedTuple):
    """A call that is done, as it is told."""

    event: Event
    done: tuple[int, str, int]  # its run, key and fence


class Recoveries(Loop):
    """One beside each scheduler."""

    name = "recoveries"

    def __init__(self, env: Env, events: Events, *, store: SchedulerStore) -> None:
        super().__init__(env, events)
        self._store = store
        self._waiting: list[Recovered] = []

    def add(self, recovered: Sequence[Recovered]) -> None:
        """Tell of these: after the commit that made them true."""
        if not self.events.wanted or len(self._waiting) + len(recovered) > MOST_KEPT:
            self.tell([one.event for one in recovered])
            return
        self._waiting += recovered
        self.wake()

    async def turn(self) -> None:
        """Tell of those that wait."""
        while self._waiting:
            some = self._waiting[:READ_AT_ONCE]
            onsets = await self._store.onsets([one.done for one in some])
            del self._waiting[: len(some)]
            found = onsets_of(onsets)
            self.tell([_measured(event, found.get((run, call))) for event, (run, call, _) in some])

    async def close(self) -> None:
        """Tell of the rest; if nobody answers, without how long it took."""
        try:
            await self.turn()
        except StoreUnreachableError:
            self.tell([one.event for one in self._waiting])


def _measured(event: Event, onset: Onset | None) -> Event:
    if onset is None:
        return event
    duration = max(0, event.at - (onset.found_at if onset.since is None else onset.since))
    return msgspec.structs.replace(event, duration=duration, detected=onset.detected)
