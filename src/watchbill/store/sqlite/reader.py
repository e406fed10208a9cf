"""Reader: reads a store's file beside its living owner. It writes nothing and takes no lock."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from watchbill.bounds import BOUNDS
from watchbill.env import Threads
from watchbill.errors import StoreReadOnlyError
from watchbill.store.hints import Hints
from watchbill.store.sqlite.client import SqliteClient
from watchbill.store.sqlite.database import Database, Writer
from watchbill.store.sqlite.lanes import on_thread

T = TypeVar("T")


class ReaderLanes:
    """One thread that reads; the file is opened there, at the first read, because opening may wait for the disk."""

    def __init__(self, url: str, threads: Threads, connect: Callable[[], Database]) -> None:
        self.hints = Hints()
        self.bounds = BOUNDS
        self._url = url
        self._threads = threads
        self._connect = connect
        self._database: Database | None = None
        self._asked = False

    def write(
        self, work: Callable[[Writer], T], after: Callable[[T], None] | None = None, *, durable: bool = True
    ) -> asyncio.Future[T]:
        """Refuse."""
        raise StoreReadOnlyError(self._url, "it was opened to read only")

    def read(self, work: Callable[[Database], T]) -> asyncio.Future[T]:
        """Run `work` on one snapshot."""
        self._asked = True
        return on_thread(self._threads, lambda: self._opened().snapshot(work))

    async def close(self) -> None:
        """Let go of the file."""
        try:
            if self._asked:  # a read whose caller was cancelled may still be opening the file
                self._asked = False
                await on_thread(self._threads, self._close)
        finally:
            self._threads.close()

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _opened(self) -> Database:
        self._database = self._database or self._connect()
        return self._database


class SqliteReader(SqliteClient):
    """The client's doors, of which only those that read will open."""

    def __init__(self, lanes: ReaderLanes) -> None:
        super().__init__(lanes)
        self._reading = lanes

    async def close(self) -> None:
        """Let go of the file."""
        await self._reading.close()
