"""What the tests of the rooms share: an ear for events, and waiting without sleeping."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from watchbill import App, Event, Handle, RunStatus

LONG = 120  # seconds: reached only by a test that fails
LOOK_EVERY = 0.005  # whoever looks without a pause takes the time of what is waited for


class Ear:
    """Hears every event of an App, and can be waited on."""

    def __init__(self, app: App) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()
        self.close = app.events.subscribe(self._hear)

    def _hear(self, events: Sequence[Event]) -> None:
        self.events.extend(events)
        self._more.set()

    def of(self, kind: str, run: str | None = None) -> list[Event]:
        """Give the events of a kind, of one run or of all."""
        return [event for event in self.events if event.kind == kind and run in (None, event.run)]

    async def hears(self, kind: str, run: str | None = None, *, times: int = 1) -> list[Event]:
        """Wait until an event of that kind has been told so many times."""
        async with asyncio.timeout(LONG):
            while len(found := self.of(kind, run)) < times:
                self._more.clear()
                await self._more.wait()
        return found


async def becomes(handle: Handle[Any], fits: Callable[[RunStatus], object]) -> RunStatus:
    """Look at a run until its status fits."""
    async with asyncio.timeout(LONG):
        while not fits(status := await handle.status()):
            await asyncio.sleep(LOOK_EVERY)
    return status


async def ends(handle: Handle[Any]) -> Any:
    """Wait for a run's result, but not for ever."""
    return await handle.result(timeout=LONG)
