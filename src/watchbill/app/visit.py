"""Visit: the way of one event loop to a file that another process may own: through it, or as the owner for a moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, TypeVar

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreOwnedError
from watchbill.store.open import Guest, open_store, visit_owner
from watchbill.store.protocol import ClientStore, Store

T = TypeVar("T")

PATIENCE: Final[Micros] = 30 * SECOND  # how long a request waits for a store that is away; it may be repeated safely
ONE_DOOR: Final[Micros] = SECOND // 50  # about what a client without rooms needs for its one door as the owner
LONGEST_STAY: Final[Micros] = SECOND // 4  # of such clients, however many come: somebody may want to open rooms


class Visit:
    """Finds the owner of a file and stays connected to it; while there is none, it is the owner for those who write.

    All who write at the same time share that, and a commit; it ends with the last of them, or for newcomers after a
    quarter of a second.
    """

    def __init__(self, url: str, env: Env) -> None:
        self._url = url
        self._env = env
        self._own: Store | None = None
        self._inside = 0  # so many use it
        self._until: Micros = 0  # nobody else comes in after that
        self._entrance = asyncio.Lock()
        self._left = asyncio.Event()  # it is not ours, and may be opened
        self._left.set()
        self._finding: asyncio.Task[Guest | None] | None = None

    async def guest(self) -> Guest | None:
        """Give the connection to the owner, which all share; None when nobody owns the file, or takes in guests."""
        finding = self._finding
        if finding is None or _found_nobody(finding):
            finding = self._finding = asyncio.get_running_loop().create_task(visit_owner(self._url, self._env))
        return await asyncio.shield(finding)

    @contextlib.asynccontextmanager
    async def doors(self) -> AsyncIterator[ClientStore]:
        """Give the doors for one write."""
        way = await self._enter()
        try:
            yield way.client
        finally:
            if not isinstance(way, Guest):
                await self._leave(way)

    async def close(self) -> None:
        """Hang up."""
        finding, self._finding = self._finding, None
        if finding is not None:
            with contextlib.suppress(StoreError):  # it was not found: there is nothing to close
                guest = await finding
                if guest is not None:
                    await guest.close()

    async def _enter(self) -> Guest | Store:
        if self._own is None and (guest := await self.guest()) is not None:
            return guest
        async with self._entrance:
            if self._own is not None and self._env.clock.boot() >= self._until:
                await self._left.wait()
                await self._env.wait(asyncio.Event(), ONE_DOOR)  # for whoever waits to own it
            if self._own is None:
                await self._left.wait()
                way = await self._open()
                if isinstance(way, Guest):
                    return way
                self._own, self._until = way, self._env.clock.boot() + LONGEST_STAY
                self._left.clear()
            self._inside += 1
            return self._own

    async def _leave(self, own: Store) -> None:
        self._inside -= 1
        if self._inside:
            return
        self._own = None
        try:
            await own.close()
        finally:
            self._left.set()

    async def _open(self) -> Guest | Store:
        """Become the owner, or find it; who owns the file without taking in guests does so for a moment only."""
        until = self._env.clock.boot() + PATIENCE
        while True:
            try:
                return await open_store(self._url, self._env)
            except StoreOwnedError:
                guest = await self.guest()
                if guest is not None:
                    return guest
                if self._env.clock.boot() >= until:
                    raise
            await self._env.wait(asyncio.Event(), ONE_DOOR)


def _found_nobody(finding: "asyncio.Task[Guest | None]") -> bool:
    """Say whether it is time to look again: nobody was there, or is there any more."""
    if not finding.done():
        return False
    guest = None if finding.cancelled() or finding.exception() is not None else finding.result()
    return guest is None or guest.gone.is_set()


async def open_to_own(url: str, env: Env) -> Store:
    """Open a store; a client that owns a file for one door, or an owner that is closing, is waited for."""
    until, named = env.clock.boot() + PATIENCE, None
    while True:
        try:
            return await open_store(url, env)
        except StoreOwnedError as owned:
            # Asked twice: in the moment before a new owner has signed, a dead one may still be named.
            if (owned.address is not None and owned.pid == named) or env.clock.boot() >= until:
                raise
            named = owned.pid
        await env.wait(asyncio.Event(), ONE_DOOR)


async def while_there(guest: Guest, work: Coroutine[Any, Any, T]) -> T | None:
    """Wait for something while the owner is there; None when it is gone before."""
    loop = asyncio.get_running_loop()
    working, gone = loop.create_task(work), loop.create_task(guest.gone.wait())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        gone.cancel()
