"""Group commit without a timer: what arrives during one commit goes into the next.

A commit costs a disk flush, whether it carries one door or a thousand. So a door never commits by itself: it is
appended here, and if the writer is idle, it leaves on the next turn of the event loop, together with all that was
appended in this one. When the writer is busy, it waits; the moment the commit returns, everything that gathered goes
into the next. Alone it pays no delay, in company it pays a share: there is nothing to tune.

The doors of a batch share one transaction. If one of them raises, all is rolled back and each is run again alone, so
that only the guilty one fails. If the disk refuses the file, nobody can say what is on the disk: every operation fails
with StoreFailingError until the file was opened again (`resume`). If the file itself is damaged or gone, every later
operation fails. Nobody hears of a result before its commit.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from watchbill.env import Threads
from watchbill.errors import StoreError, StoreFailingError, StoreUnreachableError
from watchbill.store.health import Health

T = TypeVar("T")


class Transactions(Protocol):
    """The writer's side of a file; each method runs on the writer thread."""

    def begin(self, *, durable: bool) -> None:
        """Begin to write; raises StoreUnreachableError when somebody else keeps the file locked.

        What is not durable survives the death of the process, not that of the machine, and costs no disk flush.
        """
        ...

    def commit(self) -> bool:
        """Make it durable; false when there was nothing to write. Raises StoreError: then the file has failed."""
        ...

    def rollback(self) -> None:
        """Undo everything since `begin`; never raises."""
        ...

    def failure(self, error: BaseException) -> StoreError | None:
        """Give the failure of the file behind an error, or None when the door itself is to blame."""
        ...


class Pending(Protocol):
    """A door on its way through a commit, whatever its result is."""

    durable: bool
    committed: bool
    refused: Exception | None

    def work(self) -> None:
        """Run inside the transaction."""
        ...

    def settle(self, failed: BaseException | None) -> None:
        """Tell the caller: its result, its own error, or that the commit failed."""
        ...

    def follow(self) -> None:
        """Run what comes after the commit."""
        ...


class _Door(Generic[T]):
    __slots__ = ("_after", "_future", "_result", "_work", "committed", "durable", "refused")

    def __init__(
        self, work: Callable[[], T], after: Callable[[T], None] | None, future: asyncio.Future[T], *, durable: bool
    ) -> None:
        self.durable = durable
        self._work = work
        self._after = after
        self._future = future
        self.committed = False
        self.refused: Exception | None = None

    def work(self) -> None:
        self._result = self._work()

    def settle(self, failed: BaseException | None) -> None:
        if self._future.done():
            return  # its caller was cancelled and no longer waits
        if self.committed:
            self._future.set_result(self._result)
        elif (error := self.refused or failed) is not None:
            self._future.set_exception(error)

    def follow(self) -> None:
        if self.committed and self._after is not None:
            self._after(self._result)


class GroupCommit:
    """Gathers doors on the event loop and commits them in batches on one writer thread."""

    def __init__(
        self,
        file: Transactions,
        writer: Threads,
        health: Health | None = None,
        on_failure: Callable[[StoreError], None] | None = None,
    ) -> None:
        self.commits = 0  # that wrote something
        self.proven = True  # a commit has succeeded since somebody said no
        self._file = file
        self._writer = writer
        self._health = health
        self._on_failure = on_failure  # called once per failure, with the error
        self._failing: StoreFailingError | None = None
        self._waiting: list[Pending] = []
        self._busy = False
        self._broken: BaseException | None = None
        self._idle: asyncio.Future[None] | None = None

    def run(
        self, work: Callable[[], T], after: Callable[[T], None] | None = None, *, durable: bool = True
    ) -> asyncio.Future[T]:
        """Run `work` in the next transaction; after the commit call `after` with its result, waited for or not.

        `work` may be run twice, and must change nothing but the file.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if (refusal := self._broken or self._failing) is not None:
            future.set_exception(refusal)
            return future
        self._waiting.append(_Door(work, after, future, durable=durable))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._flush)
        return future

    @property
    def failure(self) -> BaseException | None:
        """The error with which operations are refused at the moment."""
        return self._broken or self._failing

    @property
    def failing(self) -> bool:
        """True while operations are refused."""
        return self.failure is not None

    def fail(self, error: StoreError) -> None:
        """Refuse operations: until `resume` after a StoreFailingError, for ever after any other error."""
        if isinstance(error, StoreFailingError):
            known, self._failing = self._failing is not None, error
        else:
            known, self._broken = self._broken is not None, self._broken or error
        waiting, self._waiting = self._waiting, []
        for door in waiting:
            door.settle(error)
        if not known and self._on_failure is not None:
            self._on_failure(error)

    def resume(self) -> None:
        """Let operations in again: the file was opened anew."""
        self._failing = None

    async def close(self, refusal: StoreError) -> None:
        """Refuse every door from now on, and wait until those that are waiting are through."""
        self._broken = self._broken or refusal
        if self._busy:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def _flush(self) -> None:
        doors, self._waiting = self._waiting, []
        self._writer.submit(lambda: self._commit(doors), lambda _, error: self._committed(doors, error))

    def _commit(self, doors: list[Pending]) -> None:
        try:
            self._transact(doors)
        except StoreError:
            raise
        except Exception as error:
            if len(doors) == 1:
                doors[0].refused = error
                return
            for door in doors:
                self._commit([door])

    def _transact(self, doors: list[Pending]) -> None:
        self._file.begin(durable=any(door.durable for door in doors))
        try:
            for door in doors:
                door.work()
        except BaseException as error:
            self._file.rollback()
            failure = self._file.failure(error)
            if failure is not None:
                raise failure from error
            raise
        self.commits += self._file.commit()
        for door in doors:
            door.committed = True

    def _committed(self, doors: list[Pending], error: BaseException | None) -> None:
        if error is None:
            self.proven = True
        if self._health is not None and error is not None:
            self._health.failed(error)
        elif self._health is not None:
            self._health.answered()
        if isinstance(error, StoreFailingError) or not isinstance(error, StoreUnreachableError | None):
            self.fail(error if isinstance(error, StoreError) else StoreError(f"the writer failed: {error!r}"))
        for door in doors:
            door.settle(error)
        if self._waiting:
            self._flush()
        else:
            self._busy = False
            if self._idle is not None and not self._idle.done():
                self._idle.set_result(None)
        for door in doors:
            door.follow()
