"""Drain: runs a workflow's callbacks, in order, until nothing is ready, and nothing of the world in between."""

import gc
import logging
import sys
from asyncio import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextvars import Context, copy_context
from typing import Any, Final

from watchbill.clock import SECOND, Micros
from watchbill.flow.branches import bury_generator
from watchbill.flow.futures import Handle
from watchbill.flow.refusals import Refusals
from watchbill.flow.watchdog import NeverYields, Watchdog

MOST_HOPS: Final = 1_000_000  # of one drain: `while True: await sleep(0)` never rests
LONGEST_DRAIN: Final[Micros] = 5 * SECOND  # the same for slow hops: other runs wait meanwhile
HOPS_PER_LOOK: Final = 64  # between two looks at the clock: an ordinary drain has fewer and never looks
# Causes for which a run is held; of each a replay would not end either.
NEVER_YIELDS: Final = "the workflow never yields"
NEVER_RESTS: Final = "the workflow never rests"
ENDLESS: Final = frozenset({NEVER_YIELDS, NEVER_RESTS})
FOR_SECONDS: Final = f"it ran for {LONGEST_DRAIN // SECOND} s without waiting for anything"
GENERATORS_PER_LOOK: Final = 32  # between two looks for finished ones

# Whether one of these is raised depends on the process, not on the workflow.
FATAL: Final = (KeyboardInterrupt, SystemExit, MemoryError, RecursionError, NeverYields)

log = logging.getLogger("watchbill")


class Broken(Exception):
    """The drain ended in a way no replay could repeat: nothing of it may be journalled, the run is to be evicted."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Drain(Refusals):
    """An event loop that has callbacks and nothing else."""

    __slots__ = ("_clock", "_draining", "_generators", "_over", "_ready", "dead", "guarded", "replaying", "watchdog")

    def __init__(self, clock: Callable[[], Micros] | None) -> None:
        self._clock = clock
        self._ready: deque[Handle] = deque()
        self._generators: list[AsyncGenerator[Any, Any]] | None = None  # Any: whatever the user's generator yields
        self._over = False  # main has returned
        self.refused = None
        self._draining = False
        self.dead = False
        self.replaying = False
        self.watchdog: Watchdog | None = None
        self.guarded = False  # whoever drives it does so under a step guard, which gives the host its loop back

    def call_soon(self, callback: Callable[..., object], *args: object, context: Context | None = None) -> Handle:  # type: ignore[override]  # does all that asyncio's Handle does, at half the price
        """Run the callback after what is ready already."""
        handle = Handle(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    # Every future asks; a type is called without a frame, and bool() is False.
    get_debug = bool

    def is_running(self) -> bool:
        """Say whether the workflow's code runs now."""
        return self._draining

    def is_closed(self) -> bool:
        """Say whether the run has ended or was evicted."""
        return self.dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Log what nobody handled, once: a dead or replaying run is mute."""
        if not self.dead and not self.replaying:
            log.error("%s", context.get("message"), exc_info=context.get("exception"))

    def hold(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Keep an async generator until the run ends: one left by `break` would be closed by the collector."""
        if self._generators is None:
            self._generators = []
        elif len(self._generators) % GENERATORS_PER_LOOK == 0:
            self._generators = [kept for kept in self._generators if getattr(kept, "ag_frame", None)]
        self._generators.append(generator)

    def _bury_generators(self) -> None:
        while self._generators:
            bury_generator(self._generators.pop())

    def _drain(self) -> None:  # noqa: C901 - a call for each callback would cost more than the callback
        ready = self._ready
        hops = 0
        deadline = None
        watchdog = self.watchdog
        host = None if self.guarded else _get_running_loop()
        _set_running_loop(self)
        self._draining = True
        if watchdog is not None:
            watchdog.beat += 1
            watchdog.running = True
        try:
            while ready:
                handle = ready.popleft()
                try:
                    args = handle.args
                    if len(args) == 1:  # as mostly: `*` would make a list and a tuple
                        handle.context.run(handle.callback, args[0])
                    else:
                        handle.context.run(handle.callback, *args)
                except BaseException as error:
                    self._raised(error)
                hops += 1
                if not hops % HOPS_PER_LOOK:
                    deadline = self._look(hops, deadline)
            if self._over or self.refused is not None:
                self._end()
        finally:
            interrupted = False
            if watchdog is not None:
                try:  # first, and without a call before it: until then an interruption may still come
                    watchdog.running = False
                    interrupted = watchdog.aimed and watchdog.ended()
                except NeverYields:
                    interrupted = watchdog.ended() or True
            self._draining = False
            if not self.guarded:
                _set_running_loop(host)
            if interrupted:
                raise Broken(f"{NEVER_YIELDS}: {FOR_SECONDS}")

    def _raised(self, error: BaseException) -> None:
        if isinstance(error, FATAL):
            raise Broken(f"{type(error).__name__} left the workflow's code: {error}") from error
        self.call_exception_handler({"message": "a callback of a workflow raised", "exception": error})

    def _look(self, hops: int, deadline: Micros | None) -> Micros | None:
        if hops >= MOST_HOPS:
            raise Broken(f"{NEVER_RESTS}: it was ready again {hops:,} times without waiting for anything")
        if self._clock is None:
            return None
        now = self._clock()
        if deadline is not None and now > deadline:
            raise Broken(f"{NEVER_RESTS}: {FOR_SECONDS}")
        return now + LONGEST_DRAIN if deadline is None else deadline

    def _end(self) -> None:
        raise NotImplementedError


class StepGuard:
    """One turn without the garbage collector and without foreign hooks, and after it the host's loop again.

    The collector closed a coroutine of an evicted run in the middle of another run's step: its `finally` made a call
    there. And the host loop's hooks would run a user's aclose() on the host loop. Each run of the turn is the running
    loop while its code runs; only the guard gives that back to the host, once per turn: a system call before 3.12.
    """

    __slots__ = ("_collecting", "_hooks", "_host")

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()
        self._hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(_hold, None)
        self._host = _get_running_loop()

    def __exit__(self, *_: object) -> None:
        _set_running_loop(self._host)
        sys.set_asyncgen_hooks(*self._hooks)
        if self._collecting:
            gc.enable()


def step_guard() -> StepGuard:
    """Guard one turn: `with step_guard(): loop.feed(...)`."""
    return StepGuard()


def is_fatal(error: BaseException) -> bool:
    """Say whether an exception tells about the process instead of the workflow."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_fatal(each) for each in error.exceptions)
    return isinstance(error, FATAL)


def _hold(generator: AsyncGenerator[Any, Any]) -> None:
    loop = _get_running_loop()
    if isinstance(loop, Drain):
        loop.hold(generator)
