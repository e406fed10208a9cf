"""Waiting: everybody who waits for the end of a run, told by events and answered from the store, many at once."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from watchbill import events as happened
from watchbill.errors import StoreError
from watchbill.events import Event
from watchbill.store.protocol import ClientStore, Ending

ENDS: Final = frozenset(
    {
        happened.RUN_COMPLETED,
        happened.RUN_FAILED,
        happened.RUN_CANCELLED,
        happened.RUN_HELD,
        happened.RUN_DIVERGED,
        happened.STEP_QUARANTINED,
    }
)


LOOK_AGAIN: Final = 1.0  # seconds: where hints may be lost, one costs at most this


class Waiter(NamedTuple):
    """Somebody who waits for a run's end; `held_too`: or until it is held."""

    future: "asyncio.Future[Ending | None]"
    held_too: bool


class Waiting:
    """One read answers all that ended in one commit. `polls`: others drive runs too, and their events are not heard."""

    def __init__(self, store: ClientStore, *, polls: bool = False) -> None:
        self._store = store
        self._polls = polls
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, list[Waiter]] = {}
        self._nums: dict[str, int] = {}
        self._to_check: set[int] = set()
        self._checking: asyncio.Task[None] | None = None
        self._failure: StoreError | None = None
        self._caught_up = False  # what was held before these rooms opened may go on now: the code may fit again

    def notice(self, batch: Sequence[Event]) -> None:
        """Take note of what has ended."""
        for event in batch:
            if event.kind in ENDS and event.run in self._nums:
                self._check(self._nums[event.run])
            elif event.kind == happened.SHARDS_READY:
                self._caught_up = True
                self.look_again()

    def look_again(self) -> None:
        """Some run has ended or is held, somewhere."""
        for num in self._waiting:
            self._check(num)

    def fail(self, error: StoreError) -> None:
        """The store is gone: nobody will hear anything more."""
        self._failure = error
        for waiters in self._waiting.values():
            for waiter in waiters:
                if not waiter.future.done():
                    waiter.future.set_exception(error)

    def close(self) -> None:
        """The rooms close: whoever still waits must look for the end elsewhere."""
        for waiters in self._waiting.values():
            for waiter in waiters:
                if not waiter.future.done():
                    waiter.future.set_result(None)

    async def ending(self, id: str, num: int, *, held_too: bool) -> Ending | None:
        """Wait until the run has ended; `held_too`: or until it is held. None when the rooms closed before."""
        if self._failure is not None:
            raise self._failure
        waiter = Waiter(self._loop.create_future(), held_too)
        self._waiting.setdefault(num, []).append(waiter)
        self._nums[id] = num
        self._check(num)
        try:
            while self._polls and not waiter.future.done():
                await asyncio.wait((waiter.future,), timeout=LOOK_AGAIN)
                self._check(num)  # a hint may be lost
            return await waiter.future
        finally:
            self._leave(id, num, waiter)

    def _leave(self, id: str, num: int, waiter: Waiter) -> None:
        waiters = self._waiting[num]
        waiters.remove(waiter)
        if not waiters:
            del self._waiting[num]
            self._nums.pop(id, None)

    def _check(self, num: int) -> None:
        self._to_check.add(num)
        if self._checking is None:
            self._checking = self._loop.create_task(self._check_all())

    async def _check_all(self) -> None:
        try:
            while self._to_check:
                nums, self._to_check = sorted(self._to_check), set()
                for ending in await self._store.endings(nums):
                    if ending.status.terminal or ending.held is not None:
                        self._answer(ending)
        except StoreError as error:
            self.fail(error)
        finally:
            self._checking = None

    def _answer(self, ending: Ending) -> None:
        for waiter in self._waiting.get(ending.num, ()):
            wanted = ending.status.terminal or (waiter.held_too and self._caught_up)
            if wanted and not waiter.future.done():
                waiter.future.set_result(ending)
