"""Lost hints: a process whose listening connection was killed, and does not come back, works on, by looking itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.store.postgres import LISTENING
from tests.store.stage import Stage, a_stage
from watchbill import App, Retry, attempt
from watchbill.app.house import House
from watchbill.app.wish import Wish
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.events import RUN_COMPLETED, Event
from watchbill.scheduler.scheduler import POLL
from watchbill.store.open import open_store
from watchbill.store.protocol import Store

WITHIN = 3 * POLL / SECOND  # a look takes some time, too, on a busy machine

SESSION = f"SELECT pid FROM pg_stat_activity WHERE application_name = 'watchbill' AND {LISTENING}"


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


class Shop:
    """A program with one workflow; its runs are started, and driven, by whoever opens the store."""

    def __init__(self) -> None:
        self.app = App("sqlite:///:memory:")
        self.fails = False  # each step once
        self._ended: dict[str, asyncio.Event] = {}

        @self.app.step(retry=Retry(1, backoff="1ms"))
        async def charge(n: int) -> int:
            if self.fails and attempt().number == 1:
                raise ConnectionError("once more")
            return n

        @self.app.workflow
        async def order(n: int) -> int:
            return await charge(n)

        self.app.events.subscribe(self._hear)

    def house(self, store: Store, **rooms: bool) -> House:
        return House(SystemEnv(), store, self.app.registry, self.app.events, namespace="default", **rooms)  # type: ignore[arg-type]

    async def runs_to_its_end(self, store: Store, n: int) -> None:
        """Start a run; it must end although nobody is told of it."""
        ended = self._ended[f"o-{n}"] = asyncio.Event()
        await store.client.submit(
            [self.app._new_run(self.app.registry.workflows["order"], (n,), {}, Wish(f"o-{n}"))[1]]
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), WITHIN)
        assert ended.is_set(), "nobody looked"

    def _hear(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == RUN_COMPLETED:
                self._ended[event.run].set()


@contextlib.asynccontextmanager
async def a_deaf_process(stage: Stage, shop: Shop, **rooms: bool) -> AsyncIterator[None]:
    """Open rooms in a process of their own, and kill the connection on which they listen; it cannot be had again."""
    wire = await stage.wire()
    store = await open_store(wire.url(), SystemEnv())
    house = shop.house(store, **rooms)
    await house.start()
    try:
        [(pid,)] = await stage.becomes(SESSION)
        wire.lose(b"LISTEN")
        await stage.kill(pid)
        yield
    finally:
        wire.cut()
        await house.stop()
        await store.close()


async def test_a_scheduler_that_hears_nothing_finds_new_runs(stage: Stage):
    shop, elsewhere = Shop(), await open_store(stage.url, SystemEnv())
    async with a_deaf_process(stage, shop):
        try:
            for n in (1, 2):
                await shop.runs_to_its_end(elsewhere, n)
        finally:
            await elsewhere.close()


async def test_an_agent_that_hears_nothing_finds_ready_rows(stage: Stage):
    shop, elsewhere = Shop(), await open_store(stage.url, SystemEnv())
    async with a_deaf_process(stage, shop, scheduler=False, supervisor=False):
        house = shop.house(elsewhere, agent=False)
        await house.start()
        try:
            for n in (1, 2):
                await shop.runs_to_its_end(elsewhere, n)
        finally:
            await house.stop()
            await elsewhere.close()


async def test_a_supervisor_that_hears_nothing_finds_what_has_failed(stage: Stage):
    shop, elsewhere = Shop(), await open_store(stage.url, SystemEnv())
    shop.fails = True
    async with a_deaf_process(stage, shop, scheduler=False, agent=False):
        house = shop.house(elsewhere, supervisor=False)
        await house.start()
        try:
            for n in (1, 2):
                await shop.runs_to_its_end(elsewhere, n)
        finally:
            await house.stop()
            await elsewhere.close()
