"""Waiting: everybody who waits for the end of a run, told by events and answered from the store, many at once."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreUnreachableError
from watchbill.events import Event
from watchbill.store.protocol import ClientStore, Ending

ENDS: Final = frozenset(
    {
        happened.RUN_COMPLETED,
        happened.RUN_FAILED,
        happened.RUN_CANCELLED,
        happened.RUN_UNDONE,
        happened.RUN_UNDO_FAILED,
        happened.RUN_HELD,
        happened.RUN_DIVERGED,
        happened.STEP_QUARANTINED,
    }
)

POLL: Final[Micros] = SECOND // 5  # who does not hear of an end by events, hears of it this much later
LOOK: Final[Micros] = SECOND  # hints may be lost: that costs at most this


class Waiter(NamedTuple):
    """Somebody who waits for a run's end; `held_too`: or until it is held."""

    future: "asyncio.Future[Ending | None]"
    held_too: bool


class Waiting:
    """One read answers all that ended in one commit. `shared`: other processes end runs, too, and tell no events."""

    def __init__(self, env: Env, store: ClientStore, *, shared: bool) -> None:
        self._env = env
        self._store = store
        self._shared = shared
        self._polling: asyncio.Task[None] | None = None
        self._news = False  # another process has ended a run, perhaps one of ours
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
                for num in self._waiting:
                    self._check(num)

    def hint(self) -> None:
        """Another process has ended a run, or holds it."""
        self._news = True

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
        if self._shared and self._polling is None:
            self._polling = self._loop.create_task(self._poll())
        try:
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
                try:
                    endings = await self._store.endings(nums)
                except StoreUnreachableError:
                    # Nobody knows more than before: ask again, for those who still wait.
                    await self._env.wait(asyncio.Event(), POLL)
                    self._to_check.update(num for num in nums if num in self._waiting)
                    continue
                if len(endings) < len(nums):
                    self._let_go(set(nums) - {ending.num for ending in endings})
                for ending in endings:
                    if ending.status.terminal or ending.held is not None:
                        self._answer(ending)
        except StoreError as error:
            self.fail(error)
        finally:
            self._checking = None

    def _let_go(self, gone: set[int]) -> None:
        """Let clients look for runs themselves that are no longer there: deleted, or lost with a server."""
        for num in gone:
            for waiter in self._waiting.get(num, ()):
                if not waiter.future.done():
                    waiter.future.set_result(None)

    async def _poll(self) -> None:
        never = asyncio.Event()
        look_at = self._env.clock.boot() + LOOK
        try:
            while self._waiting:
                await self._env.wait(never, POLL)
                boot = self._env.clock.boot()
                if self._news or boot >= look_at:
                    self._news, look_at = False, boot + LOOK
                    for num in self._waiting:
                        self._check(num)
        finally:
            self._polling = None

    def _answer(self, ending: Ending) -> None:
        for waiter in self._waiting.get(ending.num, ()):
            wanted = ending.status.terminal or (waiter.held_too and self._caught_up)
            if wanted and not waiter.future.done():
                waiter.future.set_result(ending)
