"""Sync: the same client for synchronous programs: one generic bridge, no second copy of the API."""

import asyncio
import inspect
import queue
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, cast

from watchbill.app.handle import Handle
from watchbill.env import LoopThread
from watchbill.errors import WatchbillError
from watchbill.flow.replay import current

T = TypeVar("T")

_END = object()


class Caller(Protocol):
    """The thread that waits for a coroutine on another one's event loop, and can do something for it meanwhile."""

    def __call__(self, job: Callable[[], T], /) -> Awaitable[T]:
        """Do a job on that thread: what belongs to it, like a connection, is used nowhere else."""
        ...


caller_thread: ContextVar[Caller | None] = ContextVar("watchbill_caller", default=None)

LoopOf = Callable[[], asyncio.AbstractEventLoop | None]  # of the open rooms, if there are any


class Bridge(ABC):
    """Stands for something whose functions give coroutines, and has them run to their end somewhere."""

    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the target has
        """Give the target's attribute; a function is called over there, and what it gives can be called likewise."""
        value = getattr(self._target, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed through
            return self._wrap(self._call(value, args, kwargs))

        return call

    def __repr__(self) -> str:
        """Say what it stands for."""
        return f"<{type(self).__name__} {self._target!r}>"

    @abstractmethod
    def _call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Call a function, and wait for what it gives."""

    @abstractmethod
    def _stand_for(self, handle: Handle[Any]) -> "Bridge":
        """Give a bridge of the same kind to a handle."""

    def _wrap(self, value: Any) -> Any:  # noqa: ANN401 - passed through
        if isinstance(value, list):
            return [self._wrap(item) for item in value]
        if isinstance(value, AsyncIterator):
            return self._each(value)
        return self._stand_for(value) if isinstance(value, Handle) else value

    def _each(self, values: AsyncIterator[Any]) -> Iterator[Any]:
        """Give what an asynchronous iterator gives, one by one."""
        while (value := self._call(anext, (values, _END), {})) is not _END:
            yield self._wrap(value)


class Sync(Bridge):
    """Calls the coroutines of what it stands for, on another thread's event loop, and waits for them."""

    def __init__(self, target: object, loop_of: LoopOf, own: LoopThread | None = None) -> None:
        super().__init__(target)
        self._loop_of = loop_of
        self._own = own or LoopThread("watchbill sync")

    def _call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        loop = self._loop()
        if current() is not None:
            raise WatchbillError("app.sync cannot be used inside a workflow: put it in a step")
        if _running() is loop:
            raise WatchbillError("app.sync cannot wait on the event loop it needs: use `await app.start(...)` here")

        jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

        async def run() -> Any:  # noqa: ANN401 - passed through
            caller_thread.set(cast(Caller, lambda job: _ask(jobs, job)))
            value = function(*args, **kwargs)
            return await value if inspect.isawaitable(value) else value

        future = asyncio.run_coroutine_threadsafe(run(), loop)
        future.add_done_callback(lambda _: jobs.put(None))
        while (job := jobs.get()) is not None:
            job()
        return future.result()

    def _stand_for(self, handle: Handle[Any]) -> "Sync":
        return Sync(handle, self._loop_of, self._own)

    def _loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop of the open rooms; without rooms, one of our own on a thread."""
        rooms = self._loop_of()
        return self._own.loop if rooms is None else rooms


def _ask(jobs: "queue.SimpleQueue[Callable[[], None] | None]", job: Callable[[], T]) -> "asyncio.Future[T]":
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def do() -> None:
        try:
            result = job()
        except Exception as error:
            loop.call_soon_threadsafe(_refuse, future, error)
        except BaseException:
            loop.call_soon_threadsafe(future.cancel)
            raise
        else:
            loop.call_soon_threadsafe(_settle, future, result)

    jobs.put(do)
    return future


def _settle(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():  # else nobody waits for it any more
        future.set_result(result)


def _refuse(future: "asyncio.Future[T]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
