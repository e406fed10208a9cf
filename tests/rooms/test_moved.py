"""A store that becomes another server, as PostgreSQL does at a failover: a scheduler takes its shards anew."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from tests.rooms.scene import LONG, Ear
from tests.rooms.test_fleet import Fleet, Shop, ended, until
from tests.rooms.test_forgotten import Till, change
from tests.simulation.mutants_of_the_store import (
    a_turn_goes_on_with_what_another_server_said,
    another_server_counts_as_the_same,
)
from watchbill.env import SystemEnv
from watchbill.flow.execute import DEFAULT_THREADS, Executor
from watchbill.model.run import SHARDS_PER_REGION
from watchbill.model.states import RunState
from watchbill.scheduler.scheduler import Scheduler
from watchbill.store.open import open_store
from watchbill.store.protocol import Store

NEVER = 1 << 62


class Moving:
    """A store that can become another server, and notes what schedulers ask it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.moves = 0
        self.asked: list[str] = []
        self.moves_with_a_find = False  # the next look that finds a run reaches another server
        self.answers_about_shards = asyncio.Event()
        self.answers_about_shards.set()
        self.loses_a_release: Callable[[int, dict[int, int]], Awaitable[None]] | None = None  # called with the next one
        self.scheduler = MovingScheduler(store.scheduler, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def answers(self, operation: str, answer: Any) -> None:
        self.asked.append(operation)
        if self.moves_with_a_find and operation == "look" and answer.due:
            self.moves_with_a_find = False
            self.move()

    def move(self) -> None:
        self.moves += 1
        self.asked.clear()

    async def has_answered(self, operation: str, times: int) -> None:
        async with asyncio.timeout(LONG):
            while self.asked.count(operation) < times:
                await asyncio.sleep(0.01)


class MovingScheduler:
    def __init__(self, scheduler: Any, server: Moving) -> None:
        self._scheduler = scheduler
        self._server = server

    def moves(self) -> int:
        return self._server.moves

    def __getattr__(self, operation: str) -> Any:
        async def ask(*args: Any, **kwargs: Any) -> Any:
            if operation == "shards":
                await self._server.answers_about_shards.wait()
            answer = await getattr(self._scheduler, operation)(*args, **kwargs)
            asks = operation == "turn" and not args[0].terms  # it only asks whether the server has its newest entries
            self._server.answers("entries" if asks else operation, answer)
            loses, self._server.loses_a_release = self._server.loses_a_release, None
            if operation == "release" and loses is not None:
                await loses(*args[:2])
                self._server.move()
            elif loses is not None:
                self._server.loses_a_release = loses
            return answer

        return ask


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def till(shop: Shop) -> Till:
    return Till(shop.app)


@pytest.fixture
async def fleet(url: str, shop: Shop, till: Till) -> AsyncIterator[Fleet]:
    store = await open_store(url, SystemEnv(), lasting_leases=False)
    fleet = Fleet(cast(Store, Moving(store)), shop)
    await fleet.join()
    await until(fleet, [SHARDS_PER_REGION])
    yield fleet
    cast(Moving, fleet.store).answers_about_shards.set()
    fleet.shop.may_end.set()
    fleet.shop.ends.set()
    for house in list(fleet.houses):
        await fleet.leave(house)
    await store.close()


@pytest.fixture
def ear(fleet: Fleet) -> Ear:
    return Ear(fleet.shop.app)


@pytest.fixture
def server(fleet: Fleet) -> Moving:
    return cast(Moving, fleet.store)


def terms(fleet: Fleet) -> set[int]:
    [scheduler] = [room for room in fleet.houses[0].rooms if isinstance(room, Scheduler)]
    return set(scheduler._leases.terms.values())


def executor(fleet: Fleet) -> Executor:
    [scheduler] = [room for room in fleet.houses[0].rooms if isinstance(room, Scheduler)]
    assert scheduler._lane is not None
    return scheduler._lane.executor


def pressed(shop: Shop) -> int:
    """How many attempts of the step that runs in a thread have begun."""
    return sum([times for (step, _), times in shop.called.items() if step == "press"])


async def test_scheduler_takes_its_shards_under_new_terms_from_another_server(fleet: Fleet, server: Moving, ear: Ear):
    shop, before = fleet.shop, terms(fleet)
    ids = await fleet.start(shop.long, 1)
    async with asyncio.timeout(LONG):
        while shop.called.total() < 2:
            await asyncio.sleep(0.01)
    server.move()
    await server.has_answered("look", 3)
    assert min(terms(fleet)) > max(before), "the other server may have lost what memory was made from"
    shop.ends.set()
    shop.may_end.set()
    await ended(fleet, ear, ids)
    assert set(shop.called.values()) == {1}, "this one had lost nothing"
    assert [event.cause for event in ear.of("shards.lost")] == ["moved"]
    assert ear.of("step.lost") == []


@pytest.mark.usefixtures("acts_no_longer")
async def test_payment_that_was_lost_with_the_release_of_its_shard_is_asked_about(
    fleet: Fleet, server: Moving, till: Till, url: str
):
    [id] = await fleet.start(till.buy_now, 1)
    async with asyncio.timeout(LONG):
        while (run := await fleet.store.client.find("default", id)) is None or run.status is not RunState.WAITING:
            await asyncio.sleep(0.01)

    async def lose(owner: int, terms: dict[int, int]) -> None:
        """Have the store lose the newest commits: what the run did, and that its shard was released."""
        await till.lose(url, id, all_of_it=True)
        held = " ".join([f"WHEN {shard} THEN {term}" for shard, term in terms.items()])
        these = ", ".join(map(str, terms))
        await change(
            url,
            f"UPDATE watchbill.lease SET owner = {owner}, until = {NEVER}, unclean = false,"
            f" term = CASE shard {held} END WHERE role = 'scheduler' AND shard IN ({these})",
        )

    server.loses_a_release = lose
    server.move()
    async with asyncio.timeout(LONG):
        while len(till.did) < 2:
            await asyncio.sleep(0.01)
    assert till.did == ["paid 1", "asked about 1"]


async def test_nothing_read_from_another_server_is_written_under_old_terms(fleet: Fleet, server: Moving, ear: Ear):
    server.moves_with_a_find = True
    await ended(fleet, ear, await fleet.start(fleet.shop.busy, 1))
    assert server.moves == 1
    before_the_take = server.asked[: server.asked.index("take")]
    assert "turn" not in before_the_take, "a run that was found there began under an old term"
    assert set(fleet.shop.called.values()) == {1}


async def test_attempt_that_waits_for_a_thread_when_the_store_moves_begins_under_a_new_term(
    fleet: Fleet, server: Moving, ear: Ear
):
    shop = fleet.shop
    shop.ends.set()
    ids = await fleet.start(shop.long, *range(DEFAULT_THREADS + 1))
    threads = executor(fleet).in_threads
    async with asyncio.timeout(LONG):
        while pressed(shop) < DEFAULT_THREADS or len(threads) <= DEFAULT_THREADS:
            await asyncio.sleep(0.01)
    server.answers_about_shards.clear()  # the scheduler has not followed the store when there are threads again
    server.move()
    shop.may_end.set()
    async with asyncio.timeout(LONG):
        while threads:
            await asyncio.sleep(0.01)
    assert pressed(shop) == DEFAULT_THREADS, "the other server may have lost what the last one comes after"
    server.answers_about_shards.set()
    await ended(fleet, ear, ids)
    assert set(shop.called.values()) == {1}
    assert [event.cause for event in ear.of("shards.lost")] == ["moved"]


async def test_mutant_another_server_counts_as_the_same_is_caught(fleet: Fleet, server: Moving, ear: Ear, monkeypatch):
    another_server_counts_as_the_same(monkeypatch)
    with pytest.raises(AssertionError, match="may have lost what memory was made from"):
        await test_scheduler_takes_its_shards_under_new_terms_from_another_server(fleet, server, ear)


async def test_mutant_a_turn_goes_on_with_what_another_server_said_is_caught(
    fleet: Fleet, server: Moving, ear: Ear, monkeypatch
):
    a_turn_goes_on_with_what_another_server_said(monkeypatch)
    with pytest.raises(AssertionError, match="began under an old term"):
        await test_nothing_read_from_another_server_is_written_under_old_terms(fleet, server, ear)
