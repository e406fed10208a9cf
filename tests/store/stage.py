"""Stage: one database on which an interleaving is played step by step, every step waited for by what the server shows.

A door is held inside by a pin: another connection that has locked what the door needs next. `waits` returns when the
server shows that the door waits there, `goes_through` when it is done; each says at once when it is the other way.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.store.postgres import address_of, emptied
from tests.store.wire import Wire
from watchbill.store.open import open_store
from watchbill.store.postgres.connections import PLAIN, Connection, Session, connect
from watchbill.store.postgres.statements import Statement, in_schema
from watchbill.store.postgres.store import PostgresStore
from watchbill.store.protocol import Store
from watchbill.testing.conformance.scene import HandClock, HandEnv, Scene

T = TypeVar("T")

OURS = "application_name = 'watchbill' AND datname = current_database()"
PATIENCE = 120.0  # seconds: reached only by a test that fails
LOOK_EVERY = 0.005


class Pin:
    """A transaction that somebody keeps open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def release(self) -> None:
        """Roll it back: whoever waits for it goes on as if it had never been."""
        if not self._connection.is_closed():
            await self._connection.execute("ROLLBACK")
            await self._connection.close()

    async def commit(self) -> None:
        """Make it true."""
        await self._connection.execute("COMMIT")
        await self._connection.close()


class Stage:
    """Stores, wires, pins and doors under way on one database."""

    def __init__(self, url: str, folder: Path, server: Connection) -> None:
        self.url = url
        self.clock = HandClock()
        self.schema = address_of(url).schema
        self._folder = folder
        self._server = server
        self._stores: list[PostgresStore] = []
        self._wires: list[Wire] = []
        self._pins: list[Pin] = []
        self._under_way: list[asyncio.Task[Any]] = []
        self._waiting: set[int] = set()  # processes of the server, behind doors that are known to wait

    # --- who is on it

    async def store(self, url: str | None = None) -> PostgresStore:
        """Open the store once more, as another process would."""
        env = HandEnv(self.clock)
        store = await open_store(url or self.url, env, clock=self.clock)
        assert isinstance(store, PostgresStore)
        self._stores.append(store)
        return store

    async def scene(self, store: PostgresStore | None = None) -> Scene:
        """Let a scheduler take every shard, and an agent join."""
        scene = Scene(store or await self.store(), self.clock)
        await scene.open()
        return scene

    async def wire(self) -> Wire:
        """Lay a wire to the server."""
        wire = Wire(Path(tempfile.mkdtemp(dir=self._folder)), self.url)
        self._wires.append(wire)
        await wire.open()
        return wire

    # --- doors under way

    def begin(self, door: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Let somebody go through a door, and not wait for it."""
        task = asyncio.get_running_loop().create_task(door)
        self._under_way.append(task)
        return task

    async def pin(self, sql: str, *values: object, begin: str = "BEGIN") -> Pin:
        """Lock something, and keep it."""
        connection = await connect(address_of(self.url), PLAIN)
        pin = Pin(connection)
        self._pins.append(pin)
        await connection.execute(begin)
        await connection.fetch(in_schema(sql, self.schema), *values)
        return pin

    async def old_snapshot(self) -> Pin:
        """Keep a snapshot open from now on, as a dump does: what dies meanwhile cannot be removed."""
        return await self.pin("SELECT 1", begin="BEGIN ISOLATION LEVEL REPEATABLE READ")

    async def waits(self, door: "asyncio.Task[Any]") -> int:
        """Wait until this door waits for a lock, inside the server; gives the number of its process there."""
        async with asyncio.timeout(PATIENCE):
            while not (new := await self._new_waiters()):
                assert not door.done(), f"it did not wait: {door!r}"
        assert len(new) == 1, "one door at a time begins to wait"
        self._waiting |= new
        return new.pop()

    async def goes_through(self, door: "asyncio.Task[T]") -> T:
        """Wait until this door is done, without having waited for anybody."""
        async with asyncio.timeout(PATIENCE):
            while not door.done():
                assert not await self._new_waiters(), "it waits for somebody"
        return await door

    async def ended(self, door: "asyncio.Task[T]") -> T:
        """Wait until this door is done."""
        async with asyncio.timeout(PATIENCE):
            return await door

    async def _new_waiters(self) -> set[int]:
        found = await self._server.fetch(f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND wait_event_type = 'Lock'")
        waiting = {int(str(pid)) for (pid,) in found}
        self._waiting &= waiting
        return waiting - self._waiting

    # --- what the server shows, and what is done there by hand

    async def sql(self, sql: str, *values: object) -> list[Any]:
        """Run one statement by hand."""
        return list(await self._server.fetch(in_schema(sql, self.schema), *values))

    async def becomes(self, sql: str, *values: object) -> list[Any]:
        """Ask until there is an answer."""
        async with asyncio.timeout(PATIENCE):
            while not (found := await self.sql(sql, *values)):
                await asyncio.sleep(LOOK_EVERY)
        return found

    async def entries_read(self, store: Store, index: str) -> int:
        """Count the entries of an index that were read so far, those of dead rows included."""
        assert isinstance(store, PostgresStore)
        lines = store._lines
        for pool in (lines.turns, lines.beats, lines.others, lines.inspections, lines.loads):
            all_at_once = asyncio.Barrier(len(pool._lines))

            async def flush(db: Session, barrier: asyncio.Barrier = all_at_once) -> None:
                await barrier.wait()
                await db.rows(Statement("SELECT pg_stat_force_next_flush()", ()), {})

            await asyncio.gather(*(lines.run(pool, flush) for _ in pool._lines))
        [(read,)] = await self.sql("SELECT pg_stat_get_tuples_returned(to_regclass($1))", f"{self.schema}.{index}")
        return int(read)

    async def kill(self, pid: int) -> None:
        """End a process of the server, and wait until it is gone."""
        await self.sql("SELECT pg_terminate_backend($1::integer, 10000)", pid)

    async def clear(self) -> None:
        """Let everything go, those first for whom others may wait."""
        for held in self._pins:
            await held.release()
        for wire in self._wires:
            await wire.close()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        for store in self._stores:
            await store.close()


@contextlib.asynccontextmanager
async def a_stage(url: str) -> AsyncIterator[Stage]:
    """Set the stage on an empty store, and clear it, however the play has ended."""
    await emptied(url)
    server = await connect(address_of(url), PLAIN)
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        stage = Stage(url, Path(folder), server)
        try:
            yield stage
        finally:
            await stage.clear()
            await server.close()
