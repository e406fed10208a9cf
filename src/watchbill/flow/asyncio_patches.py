"""Patches of asyncio: four functions that would differ between replays or between Python versions.

Each asks first whether a workflow is running, and is asyncio's own function otherwise.
"""

import asyncio
import inspect
from asyncio import _get_running_loop
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator
from functools import wraps
from operator import attrgetter
from typing import TypeVar

from watchbill.flow.futures import Call
from watchbill.flow.refusals import Refusals

T = TypeVar("T")

_wait_for = asyncio.wait_for
_as_completed = asyncio.as_completed
_ensure_future = asyncio.ensure_future
_children_of = attrgetter("_children")
_Gathering = vars(asyncio.tasks)["_GatheringFuture"]


def _in_workflow() -> bool:
    return isinstance(_get_running_loop(), Refusals)


@wraps(_wait_for)
async def wait_for(fut: Awaitable[T], timeout: float | None) -> T:
    """Be 3.12's everywhere: 3.11 wraps a coroutine in a task of its own, which makes other keys."""
    if not _in_workflow():
        return await _wait_for(fut, timeout)
    if timeout is not None and timeout <= 0:
        future = asyncio.ensure_future(fut)
        if not future.done():
            future.cancel()
            await asyncio.wait([future])
        try:
            return future.result()
        except asyncio.CancelledError as cancelled:
            raise TimeoutError from cancelled
    async with asyncio.timeout(timeout):
        return await fut


@wraps(_as_completed)
def as_completed(
    fs: Iterable[Awaitable[T]], *, timeout: float | None = None
) -> Iterable[Coroutine[object, object, T] | asyncio.Future[T]]:
    """Take the awaitables in the order given: asyncio makes a set of coroutines, whose order is their address."""
    return AsCompleted(fs, timeout) if _in_workflow() else _as_completed(fs, timeout=timeout)


@wraps(_ensure_future)
def ensure_future(coro_or_future: Awaitable[T], *, loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[T]:
    """Start a call like the coroutine it stands for: asyncio hands a future back as it is."""
    if isinstance(coro_or_future, Call):
        coro_or_future.start()
    return _ensure_future(coro_or_future, loop=loop)


def hash_gathering(gathering: asyncio.Future[object]) -> int:
    """Give the future of a gather() its first child's hash: the address would be another one in each replay."""
    if isinstance(gathering.get_loop(), Refusals):
        return hash(_children_of(gathering)[0])
    return object.__hash__(gathering)


class AsCompleted(Iterator[Coroutine[object, object, T]], AsyncIterator[asyncio.Future[T]]):
    """Gives awaitables as they complete: for a plain `for` as in 3.11, for `async for` as in 3.13."""

    def __init__(self, fs: Iterable[Awaitable[T]], timeout: float | None) -> None:
        if inspect.isawaitable(fs):
            raise TypeError(f"expect an iterable of futures, not {type(fs).__name__}")
        self._done: asyncio.Queue[asyncio.Future[T] | None] = asyncio.Queue()
        self._waiting = dict.fromkeys([asyncio.ensure_future(each) for each in dict.fromkeys(fs)])
        self._left = len(self._waiting)
        self._timer: asyncio.TimerHandle | None = None
        for future in self._waiting:
            future.add_done_callback(self._on_completion)
        if self._waiting and timeout is not None:
            self._timer = asyncio.get_running_loop().call_later(timeout, self._on_timeout)

    def __iter__(self) -> Iterator[Coroutine[object, object, T]]:
        return self

    def __aiter__(self) -> AsyncIterator[asyncio.Future[T]]:
        return self

    def __next__(self) -> Coroutine[object, object, T]:
        if not self._left:
            raise StopIteration
        self._left -= 1
        return self._result_of_next()

    async def __anext__(self) -> asyncio.Future[T]:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return await self._next()

    async def _result_of_next(self) -> T:
        return (await self._next()).result()

    async def _next(self) -> asyncio.Future[T]:
        future = await self._done.get()
        if future is None:
            raise TimeoutError
        return future

    def _on_timeout(self) -> None:
        for future in self._waiting:
            future.remove_done_callback(self._on_completion)
            self._done.put_nowait(None)
        self._waiting.clear()

    def _on_completion(self, future: asyncio.Future[T]) -> None:
        if future not in self._waiting:
            return  # the time was up first
        del self._waiting[future]
        self._done.put_nowait(future)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()


def apply() -> None:
    """Put them in place; what was imported by name before keeps asyncio's own."""
    for place in (asyncio, asyncio.tasks):
        vars(place).update(wait_for=wait_for, as_completed=as_completed, ensure_future=ensure_future)
    _Gathering.__hash__ = hash_gathering
