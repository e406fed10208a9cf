"""Lanes: how a door gets to the file: writes through group commit, reads beside them, hints after them."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeVar, cast

from watchbill.bounds import Bounds
from watchbill.clock import SECOND, Micros
from watchbill.env import Env, Threads
from watchbill.errors import StoreError, StoreFailingError, StoreFullError, StoreReplacedError
from watchbill.events import log
from watchbill.forks import FORKS
from watchbill.store.group_commit import GroupCommit
from watchbill.store.health import Health
from watchbill.store.hints import Hints
from watchbill.store.protocol import Hint
from watchbill.store.sqlite.database import Database, Writer

T = TypeVar("T")

FIRST_PAUSE: Final[Micros] = SECOND // 10  # before a file that the disk refused is opened again
LONGEST_PAUSE: Final[Micros] = 5 * SECOND
# For commits of users' own connections, which give no hints; and for files that are deleted, moved or replaced.
WATCH_EVERY: Final[Micros] = SECOND // 2
FOLLOWED: Final[Micros] = SECOND // 20  # more than passes while the store's time is corrected


class Lanes(Protocol):
    """The two ways to the file that all doors of a store share."""

    hints: Hints
    bounds: Bounds

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

    If the disk refuses the file (full, read-only, an I/O error), it is opened again, with growing pauses, as long as it
    takes; reads go on while it is full. A file that is damaged, gone or replaced is closed, and its lock released.
    """

    def __init__(  # noqa: PLR0913 - what an owner has of its file
        self,
        url: str,
        env: Env,
        writer: Writer,
        reader: Database,
        let_go: Callable[[], None] | None = None,
        reopen: Callable[[], None] | None = None,
    ) -> None:
        self.hints = Hints()
        self.health = Health(url, env.clock)
        self._let_go = let_go  # of the owner lock, when the file can no longer be served
        self._abandoned = False
        self._url = url
        self._env = env
        self.bounds = env.bounds
        self._reopen = reopen
        self._pause = FIRST_PAUSE
        self._recovering: asyncio.TimerHandle | None = None
        self.now = writer.now
        writer.serving = reader.serving = True
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

    @property
    def lost(self) -> StoreReplacedError | None:
        """The reason why the file can no longer be served, once a check has found one."""
        return self._writer.lost

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
        return on_thread(self._readers, lambda: reader.snapshot(work), self._read_failed)

    def correct_time(self) -> None:
        """Compare the store's time with the wall clock; if it follows that clock, wake all whose time has come."""
        before = self.now()
        self.now.correct()
        if self.now() > before + FOLLOWED:
            for whom in Hint:
                self.hints.give(whom)

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
        if self._writer.lost is None:
            self._check()
        self._closed = True
        self._stop_timers()
        await self._group.close(self._closed_error())
        if self._writer.lost is not None:
            await on_thread(self._writers, self._writer.close)
        if self._reader is not self._writer:
            await on_thread(self._readers, self._reader.close)
        if self._writer.lost is None:
            await on_thread(self._writers, self._writer.close)
        if self._reader is not self._writer:
            self._reader.disconnect()  # it may have been opened again meanwhile
        self._end_threads()

    def _check(self) -> None:
        if self._closed:
            raise self._closed_error()
        if (files := self._writer.files) is not None and files.lost is not None:
            raise files.lost
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._stop_timers()
            self._end_threads()
            self._committed_before += self._group.commits
            self._attach(loop)

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._writers = Whole(self._env.threads("writer", 1))
        self._readers = Whole(self._env.threads("reader", 1)) if self._reader is not self._writer else self._writers
        self._group = GroupCommit(self._writer, self._writers, self.health, self._failed)
        if self._reader is not self._writer:
            self._watch()

    # --- a disk that refuses

    def _read_failed(self, error: BaseException) -> None:
        if isinstance(error, StoreFailingError) and not self._closed and not self._group.failing:
            self.health.failed(error)
            self._group.fail(error)

    def _failed(self, error: StoreError) -> None:
        """Begin to recover, or end all if there is nothing to recover."""
        if isinstance(error, StoreFailingError):
            self._recover_later()
        else:
            self._abandon(error)

    def _recover_later(self) -> None:
        if self._group.proven:
            self._pause, self._group.proven = FIRST_PAUSE, False
        self._recovering = self._env.call_later(self._pause, self._recover)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _recover(self) -> None:
        self._recovering = None
        if self._reopen is None:  # memory: nothing but its size can be refused, and its last transaction is undone
            self._group.resume()
            return
        if isinstance(self._group.failure, StoreFullError):  # a write failed, nothing else: reads go on
            self._reopen_writer()
        else:
            self._readers.submit(self._reader.disconnect, lambda *_: self._reopen_writer())

    def _reopen_writer(self) -> None:
        self._writers.submit(self._open_anew, self._opened)

    def _open_anew(self) -> None:
        self._writer.disconnect()
        if self._reopen is not None and not self._closed:
            self._reopen()

    def _opened(self, _: None, error: BaseException | None) -> None:
        if self._closed:
            return
        if error is None:
            self._group.resume()
            for whom in Hint:
                self.hints.give(whom)
        elif isinstance(error, StoreFailingError | OSError):
            failing = error if isinstance(error, StoreFailingError) else StoreFailingError(self._url, str(error))
            self.health.failed(failing)
            self._group.fail(failing)
            self._recover_later()
        else:
            self._group.fail(error if isinstance(error, StoreError) else StoreError(f"store {self._url!r}: {error!r}"))

    # --- commits of others

    def _watch(self) -> None:
        self._watching = self._env.call_later(WATCH_EVERY, self._look)

    def _look(self) -> None:
        self.correct_time()
        if self._group.failing:
            self._watch()
            return
        heard, writer = self.hints.heard, self._writer

        def look() -> bool:
            writer.check_files()
            writer.shorten_log()
            return heard and writer.changed_by_others()

        self._writers.submit(look, self._looked)

    def _looked(self, changed: bool | None, error: BaseException | None) -> None:
        if self._closed:
            return
        if isinstance(error, StoreReplacedError):
            self._abandon(error)
            return
        if changed or error is not None:  # what is wrong with the file, the next door will say
            for whom in Hint:
                self.hints.give(whom)
        self._watch()

    def _abandon(self, lost: StoreError) -> None:
        """Stop serving: close the files as they are, let go of the owner lock, and wake all components to hear of it.

        The writer is closed first: while the reader is connected, SQLite deletes no log.
        """
        if self._abandoned or self._closed or self._reader is self._writer:
            return
        self._abandoned = True
        log.error("%s", lost)
        self._stop_timers()

        def closed(_: None, error: BaseException | None) -> None:
            if self._let_go is not None:
                self._let_go()

        def closing(_: None, error: BaseException | None) -> None:
            self._readers.submit(self._reader.close, closed)

        self._writers.submit(self._writer.close, closing)
        for whom in Hint:
            self.hints.give(whom)

    def _stop_timers(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if self._recovering is not None:
            self._recovering.cancel()
            self._recovering = None
        for timer in self._later:
            timer.cancel()
        self._later.clear()

    def _end_threads(self) -> None:
        self._writers.close()
        if self._readers is not self._writers:
            self._readers.close()

    def _closed_error(self) -> StoreError:
        return StoreError(f"store {self._url!r} is closed: open it again to use it")


class Whole:
    """Threads whose jobs are never cut in two by a fork: it waits for their end."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._working = FORKS.lock_for_jobs()

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run `job` on a thread; then `done(result, error)` on the event loop."""
        working = self._working

        def run() -> T:
            with working:
                return job()

        self._threads.submit(run, done)

    def close(self) -> None:
        """Let the threads end once their queue is empty."""
        self._threads.close()


def on_thread(
    threads: Threads, job: Callable[[], T], failed: Callable[[BaseException], None] | None = None
) -> asyncio.Future[T]:
    """Run a job on a thread, and wait for it on the event loop; `failed` is called with the error it raises."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def done(result: T | None, error: BaseException | None) -> None:
        if error is not None and failed is not None:
            failed(error)
        if future.done():
            return  # its caller was cancelled and no longer waits
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast(T, result))

    threads.submit(job, done)
    return future
