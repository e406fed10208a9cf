"""Loop: the only background loop of the house. A room writes `turn`; starting, waking, surviving is here."""

import asyncio
import contextlib
from collections.abc import Sequence

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreUnreachableError
from watchbill.events import TURN_FAILED, UNANSWERED, Event, Events

FIRST_PAUSE: Micros = SECOND // 20  # after a failed turn: long enough not to spin, short enough not to be noticed
LONGEST_PAUSE: Micros = SECOND  # a store that is back is used within a second


class Loop:
    """Runs `turn` again and again: when woken, when the turn's own wish is due, and after a pause when it failed."""

    name = "loop"

    def __init__(self, env: Env, events: Events) -> None:
        self.env = env
        self.events = events
        self._woken = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def turn(self) -> Micros | None:
        """Do what there is to do; give the time until the next turn is wanted, or None to wait for a wake."""
        raise NotImplementedError

    async def open(self) -> None:
        """Run once before the first turn."""

    async def close(self) -> None:
        """Run once after the last turn, unless the store itself failed."""

    def abandon(self) -> None:
        """Run instead of close when the store itself failed: stop what runs; nothing can be written any more."""

    def wake(self) -> None:
        """Ask for a turn soon. A hint: losing it costs time, never correctness."""
        self._woken.set()

    def start(self) -> asyncio.Task[None]:
        """Start the loop as a task of the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"watchbill {self.name}")
        return self._task

    async def stop(self) -> None:
        """Finish the turn under way, close, and return; raises what ended the loop, if anything did."""
        self._stopping = True
        self.wake()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        opened = False
        pause = FIRST_PAUSE
        while not self._stopping:
            self._woken.clear()
            try:
                if not opened:
                    await self.open()
                    opened = True
                wish = await self.turn()
                pause = FIRST_PAUSE
            except StoreUnreachableError as lost:
                wish, pause = pause, min(pause * 2, LONGEST_PAUSE)
                self._tell_failed(lost)
            except StoreError as error:
                # The store itself is gone (corrupt, replaced, taken): going on would only repeat it.
                self._tell_failed(error)
                self.abandon()
                raise
            except Exception as error:
                wish, pause = pause, min(pause * 2, LONGEST_PAUSE)
                self._tell_failed(error)
            if not self._stopping:
                await self.env.wait(self._woken, wish)
        if opened:
            with contextlib.suppress(StoreUnreachableError):
                await self.close()

    def _tell_failed(self, error: Exception) -> None:
        kind = type(error).__name__
        cause = UNANSWERED if isinstance(error, StoreUnreachableError) else kind
        self.tell([Event(TURN_FAILED, self.env.clock.boot(), self.name, cause=cause, note=f"{kind}: {error}")])

    def tell(self, events: Sequence[Event]) -> None:
        """Tell events; only after the commit that made them true."""
        if events:
            self.events.tell(events)
