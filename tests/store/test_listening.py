"""A process listens again after every loss of its listening connection, however the connection is lost.

These tests open stores without components: nothing polls, so a wake-up can come from a hint alone.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import asyncpg
import pytest

from tests.facts import report
from tests.servers import PostgresServer, memory_disk, postgres_server
from tests.store.postgres import LISTENING, emptied
from tests.store.stage import OURS, Stage, a_stage
from watchbill.app.measuring import measured
from watchbill.cli.checks import listening
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.model.watcher import Supervision, Watcher
from watchbill.store.open import open_store
from watchbill.store.postgres import hints
from watchbill.store.postgres.connections import Connection
from watchbill.store.postgres.store import PostgresStore
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import a_run

LISTEN = b"LISTEN"
SESSION = f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND {LISTENING}"
PATIENCE = 120.0  # seconds: reached only by a test that fails
STORES = 4
RESTARTS = int(os.environ.get("WATCHBILL_RESTARTS", "3"))
CUTS = int(os.environ.get("WATCHBILL_CUTS", "10"))
HEARS_WITHIN = 10.0  # seconds; after a crash, on a machine that does little else


@pytest.fixture
async def stage(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(hints, "CHECK_EVERY", SECOND // 5)
    monkeypatch.setattr(hints, "CHECK_WITHIN", 0.5)
    async with a_stage(postgres_url) as stage:
        yield stage


class Ear:
    """Waits for hints from other processes."""

    def __init__(self, store: PostgresStore) -> None:
        self._woken = asyncio.Event()
        self.store = store
        self.stop = store.listen(Hint.SUPERVISOR, self._woken.set, elsewhere=True)

    @property
    def connection(self) -> Connection:
        """The connection on which it listens now."""
        connection = self.store._hints._connection
        assert connection is not None
        return connection

    async def hears(self, speak: Callable[[], None]) -> None:
        """Speak until it is heard: a hint that is sent while the connection is down is lost."""
        self._woken.clear()
        async with asyncio.timeout(PATIENCE):
            while not self._woken.is_set():
                speak()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), 0.05)


@contextlib.asynccontextmanager
async def an_ear(stage: Stage) -> AsyncIterator[tuple[Ear, Any]]:
    """A process that listens through a wire, and the wire."""
    wire = await stage.wire()
    store = await open_store(wire.url(), SystemEnv())
    assert isinstance(store, PostgresStore)
    try:
        ear = Ear(store)
        async with asyncio.timeout(PATIENCE):
            while store._hints._connection is None:  # the session is there earlier than this process knows
                await asyncio.sleep(0.01)
        yield ear, wire
    finally:
        wire.cut()
        await store.close()


@pytest.fixture
async def elsewhere(stage: Stage) -> AsyncIterator[PostgresStore]:
    store = await open_store(stage.url, SystemEnv())
    assert isinstance(store, PostgresStore)
    yield store
    await store.close()


async def hears_again(ear: Ear, elsewhere: PostgresStore) -> None:
    await ear.hears(lambda: elsewhere._hints.give(Hint.SUPERVISOR))


async def test_process_listens_again_when_a_hint_is_sent_between_the_goodbye_and_the_end_of_file(stage, elsewhere):
    """The driver closes such a connection without telling its listeners."""
    async with an_ear(stage) as (ear, wire):
        closed = ear.connection
        wire.say_goodbye(LISTEN)
        async with asyncio.timeout(PATIENCE):
            while not closed.is_closed():
                ear.store._hints.give(Hint.AGENT)
                await asyncio.sleep(0.001)
        await hears_again(ear, elsewhere)


async def test_process_listens_again_when_its_connection_is_half_open(stage, elsewhere):
    async with an_ear(stage) as (ear, wire):
        wire.silence(LISTEN)
        await hears_again(ear, elsewhere)


async def test_process_listens_again_when_it_is_cut_off_during_listen(stage, elsewhere):
    async with an_ear(stage) as (ear, wire):
        wire.freeze_before(LISTEN)
        [(pid,)] = await stage.becomes(SESSION)
        await stage.kill(pid)
        await wire.frozen()
        wire.cut()
        await hears_again(ear, elsewhere)


async def test_process_listens_again_when_its_session_stops_listening(stage, elsewhere):
    """As after `DISCARD ALL` by a pooler that lends the session to others."""
    async with an_ear(stage) as (ear, _):
        await ear.connection.execute("UNLISTEN *")
        await hears_again(ear, elsewhere)


@pytest.mark.parametrize("error", [AttributeError("a fault of the driver"), asyncio.CancelledError()])
async def test_process_listens_again_after_an_error_that_no_one_expects(stage, elsewhere, monkeypatch, error, caplog):
    connect, failures = asyncpg.connect, 3

    async def fail(*arguments: object, **options: object) -> object:
        nonlocal failures
        if not failures:
            return await connect(*arguments, **options)
        failures -= 1
        raise error

    async with an_ear(stage) as (ear, _):
        monkeypatch.setattr(asyncpg, "connect", fail)
        [(pid,)] = await stage.becomes(SESSION)
        await stage.kill(pid)
        async with asyncio.timeout(PATIENCE):
            while failures:
                await asyncio.sleep(0.01)
        await hears_again(ear, elsewhere)
    if isinstance(error, AttributeError):
        [said] = [record for record in caplog.records if "cannot listen" in record.getMessage()]
        assert "a fault of the driver" in said.getMessage()


# --- a server that crashes under load


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server(place=memory_disk()) as server:
        yield server


@pytest.mark.timeout(400 + 10 * RESTARTS + 5 * CUTS)
async def test_every_process_listens_after_every_crash_and_every_cut_under_load(server: PostgresServer) -> None:
    url = server.url()
    await emptied(url)
    stores = [await open_store(url, SystemEnv()) for _ in range(STORES)]
    over = False

    async def load(store: PostgresStore, first: int) -> None:
        number = first
        while not over:
            number += 1
            with contextlib.suppress(StoreUnreachableError):
                await store.client.submit([a_run(number, f"o-{number}")])
            await asyncio.sleep(0)

    ears = [Ear(store) for store in stores if isinstance(store, PostgresStore)]
    loads = [asyncio.ensure_future(load(ear.store, 1_000_000 * n)) for n, ear in enumerate(ears, 1)]

    longest = 0.0

    async def all_hear() -> None:
        nonlocal longest
        begun = time.monotonic()
        for n, ear in enumerate(ears):
            await hears_again(ear, ears[n - 1].store)
        longest = max(longest, time.monotonic() - begun)

    try:
        await all_hear()
        for _ in range(RESTARTS):
            await asyncio.to_thread(server.stop, signal.SIGQUIT)
            await asyncio.to_thread(server.start)
            await all_hear()
        for _ in range(CUTS):
            await asyncio.to_thread(
                server.sql,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'watchbill' ORDER BY random() LIMIT 4",
            )
            await all_hear()
    finally:
        over = True
        await asyncio.gather(*loads)
        for store in stores:
            await store.close()
    report(
        f"hints: {RESTARTS} crashes, {CUTS} cuts: all {STORES} processes hear again within {longest:.1f} s",
        restarts=RESTARTS,
        cuts=CUTS,
        standstill=longest,
    )
    assert longest < HEARS_WITHIN or "WATCHBILL_RESTARTS" not in os.environ


# --- a process that lives on polling is named


async def test_doctor_and_metrics_name_processes_that_live_on_polling_and_no_others(stage: Stage):
    async with an_ear(stage) as (ear, wire):
        store = ear.store

        async def heard() -> None:
            await store.scheduler.attend(7, "default", "", ("order",), b"{}", 60 * SECOND)
            await store.supervisor.stand(Watcher(7, Supervision.DISTRIBUTED, "", b"{}"), 60 * SECOND)
            await store.supervisor.stand(Watcher(8, Supervision.DISTRIBUTED, "", b"{'pid': 8}"), 60 * SECOND)
            await store.agent.beat(9, 60 * SECOND, [])

        await store.agent.join(9, "default", "", "north", b"{}", 60 * SECOND)
        await heard()
        assert (await store.client.checkup("default", 10)).polling == ()
        wire.lose(LISTEN)
        [(pid,)] = await stage.becomes(SESSION)
        await stage.kill(pid)
        async with asyncio.timeout(PATIENCE):
            while store._hints.listens:
                await asyncio.sleep(0.01)
        await heard()
        seen = await store.client.checkup("default", 10)
        # The supervisor 7 runs in the process of the scheduler 7.
        assert seen.polling == ("agent north", "scheduler 7", "supervisor 8")
        assert [finding.level for finding in listening(seen)] == ["warn", "warn", "warn"]
        assert (await measured(store.client, "default", SECOND)).polling == seen.polling
        wire.cut()
        async with asyncio.timeout(PATIENCE):
            while not store._hints.listens:
                await asyncio.sleep(0.01)
        await heard()
        assert (await store.client.checkup("default", 10)).polling == (), "one heartbeat after it listens again"


async def test_doctor_names_an_embedded_supervisor_as_polling_only_while_it_hears_no_hints(stage: Stage):
    async with an_ear(stage) as (ear, wire):
        store = ear.store

        async def named() -> list[str]:
            await store.supervisor.stand(Watcher(8, Supervision.EMBEDDED, "", b"{}"), 60 * SECOND)
            seen = await store.client.checkup("default", 10)
            assert [watcher.id for watcher in seen.watchers] == [8]
            return [who.split()[0] for who in seen.polling]

        assert await named() == []
        wire.lose(LISTEN)
        for (pid,) in await stage.sql(SESSION):  # none, if a slow machine has lost it already
            await stage.kill(pid)
        async with asyncio.timeout(PATIENCE):
            while store._hints.listens:
                await asyncio.sleep(0.01)
        assert await named() == ["supervisor"]
        assert await named() == ["supervisor"]
        wire.cut()
        async with asyncio.timeout(PATIENCE):
            while not store._hints.listens:
                await asyncio.sleep(0.01)
        assert await named() == [], "one heartbeat after it listens again"


async def test_doctor_names_processes_behind_a_transaction_pooler(stage: Stage):
    wire = await stage.wire()
    store = await open_store(wire.url(pooler="transaction"), SystemEnv())
    try:
        await store.scheduler.attend(7, "default", "", ("order",), b"{}", 60 * SECOND)
        [finding] = listening(await store.client.checkup("default", 10))
        assert "scheduler 7 hears no hints" in finding.said
        assert "?pooler=transaction" in finding.remedy
    finally:
        await store.close()
