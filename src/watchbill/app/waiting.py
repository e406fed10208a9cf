"""Waiting: everybody who waits for the end of a run, told by events and answered from the store, many at once."""

import asyncio
from collections.abc import Sequence
from typing import Final

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


class Waiting:
    """One read answers all that ended in one commit."""

    def __init__(self, store: ClientStore) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, list[asyncio.Future[Ending]]] = {}
        self._nums: dict[str, int] = {}
        self._to_check: set[int] = set()
        self._checking: asyncio.Task[None] | None = None
        self._failure: StoreError | None = None

    def notice(self, batch: Sequence[Event]) -> None:
        """Take note of what has ended."""
        for event in batch:
            if event.kind in ENDS and event.run in self._nums:
                self._check(self._nums[event.run])

    def fail(self, error: StoreError) -> None:
        """The store is gone: nobody will hear anything more."""
        self._failure = error
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)

    async def ending(self, id: str, num: int, *, held_too: bool) -> Ending:
        """Wait until the run has ended; `held_too`: or until it is held."""
        while True:
            if self._failure is not None:
                raise self._failure
            future: asyncio.Future[Ending] = self._loop.create_future()
            self._waiting.setdefault(num, []).append(future)
            self._nums[id] = num
            self._check(num)
            try:
                ending = await future
            finally:
                self._leave(id, num, future)
            if ending.status.terminal or held_too:
                return ending

    def _leave(self, id: str, num: int, future: "asyncio.Future[Ending]") -> None:
        futures = self._waiting.get(num, [])
        if future in futures:
            futures.remove(future)
        if not futures:
            self._waiting.pop(num, None)
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
        for future in self._waiting.pop(ending.num, []):
            if not future.done():
                future.set_result(ending)
