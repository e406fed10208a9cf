"""Lanes: how a door gets to the file: writes through group commit, reads beside them, hints after them."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeVar, cast

from watchbill.clock import SECOND, Micros
from watchbill.env import Env, Threads
from watchbill.errors import StoreError
from watchbill.store.group_commit import GroupCommit
from watchbill.store.health import Health
from watchbill.store.hints import Hints
from watchbill.store.protocol import Hint
from watchbill.store.sqlite.database import Database, Writer

T = TypeVar("T")

WATCH_EVERY: Final[Micros] = SECOND // 2  # for commits of users' own connections, which give no hints


class Lanes(Protocol):
    """The two ways to the file that all doors of a store share."""

    hints: Hints

    def write(
        self, work: Callable[[Writer], T], after: Callable[[T], None] | None = None, *, durable: bool = True
    ) -> asyncio.Future[T]:
        """Run `work` in the next commit; after it, on the event loop, call `after` with the result."""
        ...

    def read(self, work: Callable[[Database], T]) -> asyncio.Future[T]:
        """Run `work` on one snapshot; commits go on meanwhile."""
        ...


class OwnerLanes:
    """The lanes of the file's owner: one thread that writes, one that reads.

    Memory has one connection, so there reads and writes take turns on one thread. A store in memory may outlive the
    event loop that opened it (two `asyncio.run` in one program): threads report to one loop, a new one gets its own.
    """

    def __init__(self, url: str, env: Env, writer: Writer, reader: Database) -> None:
        self.hints = Hints()
        self._url = url
        self._env = env
        self._health = Health(url, env.clock)
        self.now = writer.now
        self._writer = writer
        self._reader = reader
        self._closed = False
        self._committed_before = 0
        self._watching: asyncio.TimerHandle | None = None
        self._later: set[asyncio.TimerHandle] = set()
        self._attach(asyncio.get_running_loop())

    @property
    def commits(self) -> int:
        """How many commits have written something."""
        return self._committed_before + self._group.commits

    def write(
        self, work: Callable[[Writer], T], after: Callable[[T], None] | None = None, *, durable: bool = True
    ) -> asyncio.Future[T]:
        """Run `work` in the next commit; after it, on the event loop, call `after` with the result."""
        self._check()
        writer = self._writer
        return self._group.run(lambda: work(writer), after, durable=durable)

    def read(self, work: Callable[[Database], T]) -> asyncio.Future[T]:
        """Run `work` on one snapshot; commits go on meanwhile."""
        self._check()
        reader = self._reader
        return on_thread(self._readers, lambda: reader.snapshot(work))

    def give_later(self, whom: Hint, span: Micros) -> None:
        """Wake those who listen when a time has passed that a commit has set."""

        def give() -> None:
            self._later.discard(timer)
            self.hints.give(whom)

        timer = self._env.call_later(span, give)
        self._later.add(timer)

    async def close(self) -> None:
        """Let what is under way end, then close both connections; the writer's last, so that it tidies the file up."""
        if self._closed:
            return
        self._check()
        self._closed = True
        self._stop_timers()
        await self._group.close(self._closed_error())
        if self._reader is not self._writer:
            await on_thread(self._readers, self._reader.close)
        await on_thread(self._writers, self._writer.close)
        self._end_threads()

    def _check(self) -> None:
        if self._closed:
            raise self._closed_error()
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._stop_timers()
            self._end_threads()
            self._committed_before += self._group.commits
            self._attach(loop)

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._writers = self._env.threads("writer", 1)
        self._readers = self._env.threads("reader", 1) if self._reader is not self._writer else self._writers
        self._group = GroupCommit(self._writer, self._writers, self._health)
        if self._reader is not self._writer:
            self._watch()

    # --- commits of others

    def _watch(self) -> None:
        self._watching = self._env.call_later(WATCH_EVERY, self._look)

    def _look(self) -> None:
        if self.hints.heard:
            self._writers.submit(self._writer.changed_by_others, self._looked)
        else:
            self._watch()

    def _looked(self, changed: bool | None, error: BaseException | None) -> None:
        if self._closed:
            return
        if changed or error is not None:  # what is wrong with the file, the next door will say
            for whom in Hint:
                self.hints.give(whom)
        self._watch()

    def _stop_timers(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        for timer in self._later:
            timer.cancel()
        self._later.clear()

    def _end_threads(self) -> None:
        self._writers.close()
        if self._readers is not self._writers:
            self._readers.close()

    def _closed_error(self) -> StoreError:
        return StoreError(f"store {self._url!r} is closed: open it again to use it")


def on_thread(threads: Threads, job: Callable[[], T]) -> asyncio.Future[T]:
    """Run a job on a thread, and wait for it on the event loop."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def done(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return  # its caller was cancelled and no longer waits
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast(T, result))

    threads.submit(job, done)
    return future
