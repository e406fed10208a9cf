"""VirtualLoop: an event loop whose time jumps, whose order is drawn from a seed, and whose processes can die.

Nothing here waits: when no callback is ready, the time becomes that of the next timer. Which of the ready callbacks
comes next is drawn. Every callback belongs to the process (the Life) in whose context it was made: those of a dead one
are dropped, so its tasks simply never go on, without any `finally`; those of a paused one are held until it resumes.
"""

import asyncio
import contextlib
import heapq
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from enum import Enum
from typing import Any, Final, TypeVar, TypeVarTuple

from watchbill.clock import SECOND, Micros
from watchbill.errors import WatchbillError
from watchbill.testing.chance import Chance

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MOST_AT_ONCE: Final = 200_000  # callbacks at one moment: far more than any burst of work needs
MOST_CLOSES: Final = 100  # code that catches GeneratorExit is asked again, but not for ever
CLOSED: Final = "the simulated world is closed"
PRUNE_AT: Final = 256  # tasks kept of one life before those that are done are let go

LIFE: ContextVar["Life | None"] = ContextVar("watchbill_life", default=None)
_RUNNING = threading.local()  # the life whose callback runs, as asyncio keeps the running loop


class StandstillError(WatchbillError):
    """Time does not go on: nothing is ready and no timer is set, or somebody goes in circles and never waits."""

    def __init__(self, at: float, why: str = "nothing is ready, and no timer is set") -> None:
        super().__init__(f"the simulated world stands still at {at:.6f} s: {why}")


class Vital(Enum):
    """Whether a process does anything."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Life:
    """One process, from its start to its death. Whatever is started in its context belongs to it."""

    def __init__(self, name: str, loop: "VirtualLoop") -> None:
        self.name = name
        self.vital = Vital.RUNNING
        self.context = Context()
        self.context.run(LIFE.set, self)
        self.fuse: tuple[int, Callable[[], None]] | None = None
        self._loop = loop
        self._held: list[asyncio.Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []  # kept, so that the collector does not close those of the dead
        self._mourners: list[Callable[[], None]] = []
        self._observers: list[Callable[[], None]] = []
        loop.lives.append(self)

    @property
    def dead(self) -> bool:
        """True when it does nothing any more."""
        return self.vital is Vital.DEAD

    @property
    def tasks(self) -> int:
        """How many of its tasks have not ended."""
        return sum(not task.done() for task in self._tasks)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as part of this process."""
        return self._loop.create_task(coroutine, context=self.context)

    def light_fuse(self, callbacks: int, act: Callable[[], None]) -> None:
        """Do this to it in the middle of something: before it has run so many callbacks more."""
        self.fuse = (callbacks, act)

    def defuse(self) -> None:
        """Let nothing of the kind happen."""
        self.fuse = None

    def burn(self) -> None:
        """Come one callback nearer."""
        if self.fuse is not None:
            left, act = self.fuse
            self.fuse = (left - 1, act) if left else None
            if not left:
                act()

    def on_death(self, mourner: Callable[[], None]) -> None:
        """Call this when it has died, from outside of it."""
        self._mourners.append(mourner)

    def die(self) -> None:
        """End now, in the middle of whatever it does; also called from inside, by code that kills its own process."""
        if self.dead:
            return
        self.vital = Vital.DEAD
        self._held.clear()
        for mourner in self._mourners:
            # Not in the context of the dead, which nothing runs in any more.
            self._loop.call_soon(mourner, context=Context())

    def on_pause(self, observer: Callable[[], None]) -> None:
        """Call this as it begins to stand still."""
        self._observers.append(observer)

    def pause(self) -> None:
        """Stand still: everything that becomes ready is held."""
        if self.vital is Vital.RUNNING:
            self.vital = Vital.PAUSED
            for observer in self._observers:
                observer()

    def resume(self) -> None:
        """Go on; for this process no time has passed."""
        if self.vital is Vital.PAUSED:
            self.vital = Vital.RUNNING
            held, self._held = self._held, []
            self._loop.put_back(held)

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep what became ready meanwhile."""
        self._held.append(handle)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Keep a task of this process."""
        self._tasks.append(task)
        if len(self._tasks) % PRUNE_AT == 0:
            self._tasks = [kept for kept in self._tasks if not kept.done()]

    def bury(self) -> None:
        """Close the tasks that never ended, in silence; only when the world has ended."""
        for task in reversed(self._tasks):
            if not task.done():
                _bury(task)
        self._tasks.clear()


class VirtualLoop(asyncio.BaseEventLoop):
    """Virtual time, seeded order, processes.

    A world makes ten thousand callbacks and more: so they are made and run here with as little ado as can be.
    """

    def __init__(self, chance: Chance) -> None:
        super().__init__()
        self.lives: list[Life] = []
        self.callbacks = 0  # that have run
        self._chance = chance
        self.now: Micros = 0  # the virtual time
        self._instant = 0.0  # the same in seconds
        self._closed = False
        self._ready: list[asyncio.Handle] = []
        # With its time before it two timers are compared without a call; at one moment they are as handles are.
        self._scheduled: list[tuple[float, asyncio.TimerHandle]] = []
        self._looks: list[tuple[float, int, asyncio.TimerHandle]] = []  # apart: they are no part of the order
        self._looks_made = 0
        self._stopping = False
        self.set_task_factory(_make_task)  # type: ignore[arg-type] # the loop passes what it gets: nothing, or a context

    def time(self) -> float:
        """Give the virtual time in seconds."""
        return self._instant

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Make a callback ready."""
        if self._closed:
            raise RuntimeError(CLOSED)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Make a callback ready when a time has passed."""
        return self.call_at(self._instant + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Make a callback ready at a time."""
        if self._closed:
            raise RuntimeError(CLOSED)
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, (when, timer))
        return timer

    def play(self, life: Life, coroutine: Coroutine[Any, Any, T]) -> T | None:
        """Run until the coroutine has ended, and give its result; None when somebody stopped the loop before."""
        task = life.start(coroutine)
        task.add_done_callback(lambda _: self.stop())
        self.run_forever()
        return task.result() if task.done() else None

    def look_later(self, seconds: float, look: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `look` then, between all others: nothing is drawn for it, and no fuse burns by it."""
        self._looks_made += 1
        when = self._instant + seconds
        handle = asyncio.TimerHandle(when, look, [], self, copy_context())
        heapq.heappush(self._looks, (when, self._looks_made, handle))
        return handle

    def put_back(self, handles: list[asyncio.Handle]) -> None:
        """Make these ready again."""
        self._ready.extend(handles)

    def bury_all(self) -> None:
        """Close what the dead, and those who were still alive at the end, left behind."""
        for life in self.lives:
            life.vital = Vital.DEAD
        for life in self.lives:
            life.bury()
        self.lives.clear()
        self._ready.clear()
        self._looks.clear()

    def _run_once(self) -> None:
        ready, below = self._ready, self._chance.below
        while not self._stopping:
            if not ready:
                self._move_on()
            most = self.callbacks + MOST_AT_ONCE
            while ready and not self._stopping:
                if self.callbacks > most:
                    why = f"{MOST_AT_ONCE:,} callbacks, and no time has passed: {ready[-1]}"
                    raise StandstillError(self._instant, why)
                if len(ready) > 1:
                    chosen = below(len(ready))
                    ready[chosen], ready[-1] = ready[-1], ready[chosen]
                self._run_one(ready.pop())

    def _run_one(self, handle: asyncio.Handle) -> None:
        if handle._cancelled:  # noqa: SLF001 - what a loop does
            return
        life: Life | None = handle._context.get(LIFE)  # type: ignore[attr-defined] # noqa: SLF001 - whose it is
        if life is not None:
            if life.fuse is not None and life.vital is Vital.RUNNING:
                life.burn()
            if life.vital is not Vital.RUNNING:
                if life.vital is Vital.PAUSED:
                    life.hold(handle)
                return
        self.callbacks += 1
        _RUNNING.life = life
        handle._run()  # noqa: SLF001 - what a loop does
        _RUNNING.life = None

    def _move_on(self) -> None:
        """Let the time jump to the next timer."""
        due = self._next_at()
        while due is not None and self._looks and self._looks[0][0] <= due:
            when, _, look = heapq.heappop(self._looks)
            self._set(when)
            self._look(look)
            if self._ready:
                return
            due = self._next_at()
        if due is None:
            raise StandstillError(self._instant)
        self._set(due)
        scheduled = self._scheduled
        while scheduled and scheduled[0][0] <= due:
            self._ready.append(heapq.heappop(scheduled)[1])

    def _set(self, instant: float) -> None:
        self._instant = instant
        self.now = round(instant * SECOND)

    def _look(self, handle: asyncio.Handle) -> None:
        life: Life | None = handle._context.get(LIFE)  # type: ignore[attr-defined] # noqa: SLF001 - whose it is
        if handle.cancelled() or (life is not None and life.dead):
            return
        if life is not None and life.vital is Vital.PAUSED:
            life.hold(handle)
            return
        _RUNNING.life = life
        handle._run()  # noqa: SLF001 - what a loop does
        _RUNNING.life = None

    def _next_at(self) -> float | None:
        """Give the time of the next timer, which is never in the past."""
        scheduled = self._scheduled
        while scheduled and scheduled[0][1].cancelled():
            heapq.heappop(scheduled)
        return max(self._instant, scheduled[0][0]) if scheduled else None

    def _write_to_self(self) -> None:
        """Do nothing: nobody sleeps, so nobody needs to be woken from another thread."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: cancelled timers are dropped when their time comes."""


def current_life() -> Life | None:
    """Give the process that runs this code; a workflow's own context does not know it."""
    return getattr(_RUNNING, "life", None)


async def rest(seconds: float) -> None:
    """Let virtual time pass."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _wake, future)
    try:
        await future
    finally:
        timer.cancel()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], *, context: Context | None = None
) -> asyncio.Task[Any]:
    task = asyncio.Task(coroutine, loop=loop, context=context)
    life = LIFE.get() if context is None else context.get(LIFE)
    if life is not None:
        life.keep(task)
    return task


def _bury(task: asyncio.Task[Any]) -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined] # noqa: SLF001 - it is pending for ever, by intent
    coroutine = task.get_coro()
    for _ in range(MOST_CLOSES):
        with contextlib.suppress(BaseException):
            coroutine.close()
            return
