"""Limits: no more start, and no more run at once, than the author of a step says, in whatever process."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import App, Limit, Retry, attempt
from watchbill.app.house import House
from watchbill.app.wish import Wish
from watchbill.env import SystemEnv
from watchbill.store.open import open_store
from watchbill.testing.watch import Watch

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Ledger:
    """Who is inside, by key, at each instant; a test lets them out."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.began: list[tuple[str, int]] = []
        self._changed = asyncio.Event()
        self._may_leave = 0

    async def visit(self, key: str, n: int) -> int:
        self.inside[key] += 1
        self.most[key] = max(self.most[key], self.inside[key])
        self.began.append((key, n))
        self._change()
        try:
            while not self._may_leave:
                await self._changed.wait()
            self._may_leave -= 1
        finally:
            self.inside[key] -= 1
        return n

    def let_out(self, count: int) -> None:
        self._may_leave += count
        self._change()

    async def has_begun(self, count: int) -> None:
        async with asyncio.timeout(LONG):
            while len(self.began) < count:
                await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def test_no_more_run_at_once_than_the_limit_and_the_next_begins_when_one_has_ended(app: App, ear: Ear) -> None:
    ledger = Ledger()

    @app.step(limit=Limit(at_once=2))
    async def work(n: int) -> int:
        return await ledger.visit("", n)

    @app.workflow
    async def fan() -> int:
        return sum(await asyncio.gather(*(work(n) for n in range(6))))

    async with app.rooms():
        handle = await app.start(fan)
        for begun in (2, 3, 4, 5, 6):
            await ledger.has_begun(begun)
            assert ledger.inside[""] <= 2
            ledger.let_out(1)
        ledger.let_out(1)
        assert await ends(handle) == 15
    assert ledger.most[""] == 2
    assert len(ear.of("step.completed")) == 6


async def test_each_key_has_a_limit_of_its_own(app: App) -> None:
    ledger = Ledger()

    @app.step(limit=Limit(at_once=1, key="customer"))
    async def work(customer: str, n: int) -> int:
        return await ledger.visit(customer, n)

    @app.workflow
    async def fan() -> int:
        calls = [work(customer, n) for n in range(3) for customer in ("ann", "bob", "cy")]
        return sum(await asyncio.gather(*calls))

    async with app.rooms():
        handle = await app.start(fan)
        await ledger.has_begun(3)
        assert ledger.inside == {"ann": 1, "bob": 1, "cy": 1}
        ledger.let_out(9)
        assert await ends(handle) == 9
    assert set(ledger.most.values()) == {1}


async def test_a_slot_is_free_again_after_a_failure_and_while_the_backoff_lasts(app: App) -> None:
    order: list[str] = []

    @app.step(limit=Limit(at_once=1), retry=Retry(1, backoff="1ms"))
    async def work(word: str) -> str:
        order.append(word)
        if word == "flaky" and attempt().number == 1:
            raise ConnectionError("once")
        return word

    @app.workflow
    async def fan() -> list[str]:
        return list(await asyncio.gather(work("flaky"), work("solid")))

    async with app.rooms():
        assert await ends(await app.start(fan)) == ["flaky", "solid"]
    assert order == ["flaky", "solid", "flaky"] or order == ["flaky", "flaky", "solid"]


async def test_a_slot_is_free_again_when_its_run_is_cancelled(app: App) -> None:
    ledger = Ledger()

    @app.step(limit=Limit(at_once=1))
    async def work(n: int) -> int:
        return await ledger.visit("", n)

    @app.workflow
    async def one(n: int) -> int:
        return await work(n)

    async with app.rooms():
        first = await app.start(one, 1)
        await ledger.has_begun(1)
        second = await app.start(one, 2)
        await becomes(second, lambda status: status.steps)
        await first.cancel("not wanted")
        await ledger.has_begun(2)
        ledger.let_out(1)
        assert await ends(second) == 2
    assert ledger.most[""] == 1


async def test_limited_and_other_steps_have_their_turns_in_one_slot(app: App) -> None:
    done: list[str] = []

    @app.step(limit=Limit(at_once=5))
    async def limited(n: int) -> None:
        done.append("limited")

    @app.step(isolation="auto", retry=0)
    async def plain(n: int) -> None:
        attempt().progress(n)  # it has a row, too
        done.append("plain")

    @app.workflow
    async def fan() -> None:
        await asyncio.gather(*(limited(n) for n in range(10)), *(plain(n) for n in range(10)))

    async with app.rooms(slots=1):
        await ends(await app.start(fan))
    assert Counter(done) == {"limited": 10, "plain": 10}


async def test_two_agents_never_exceed_a_limit_together(kept: str) -> None:
    ledger, app = Ledger(), App("sqlite:///:memory:")

    @app.step(limit=Limit(at_once=3, key="key"))
    async def work(key: str, n: int) -> int:
        return await ledger.visit(key, n)

    @app.workflow
    async def fan(keys: list[str]) -> int:
        return sum(await asyncio.gather(*(work(key, n) for n in range(20) for key in keys)))

    store = await open_store(kept, SystemEnv(), lasting_leases=False)
    ear = Ear(app)
    houses = [
        House(SystemEnv(), store, app.registry, app.events, namespace="default", scheduler=first, slots=4)
        for first in (True, False)
    ]
    for house in houses:
        await house.start()
    runs = [app._new_run(fan, (["a", "b"],), {}, Wish(f"fan-{n}"))[1] for n in range(4)]
    await store.client.submit(runs)
    for begun in range(6, 161):
        await ledger.has_begun(begun)
        ledger.let_out(1)
    ledger.let_out(6)
    await ear.hears("run.completed", times=4)
    for house in houses:
        await house.stop()
    await store.close()
    assert ledger.most == {"a": 3, "b": 3}


# --- in virtual time

timed = App("sqlite:///:memory:")
starts: list[datetime] = []
world: list[Watch] = []


@timed.step(limit=Limit("4/s"))
async def brisk(n: int) -> int:
    starts.append(world[-1].now)
    return n


@timed.step(limit=Limit("6/m", at_once=1))
async def slow(n: int) -> int:
    starts.append(world[-1].now)
    await asyncio.sleep(1)
    return n


@timed.workflow
async def briskly(count: int) -> int:
    return sum(await asyncio.gather(*(brisk(n) for n in range(count))))


@timed.workflow
async def slowly(count: int) -> int:
    return sum(await asyncio.gather(*(slow(n) for n in range(count))))


@pytest.fixture
def clocked(watch: Watch) -> Watch:
    starts.clear()
    world.append(watch)
    watch.at(NOON)
    return watch


def test_a_rate_is_kept_at_any_instant_and_nothing_waits_longer_than_it_must(clocked: Watch) -> None:
    assert clocked.run(briskly, 20) == 190
    for begin in starts:
        for seconds in (0, 0.5, 1, 2, 4):
            inside = [at for at in starts if begin <= at <= begin + timedelta(seconds=seconds)]
            assert len(inside) <= 4 + 4 * seconds + 1e-3
    assert starts[-1] - NOON == pytest.approx(timedelta(seconds=4), abs=timedelta(milliseconds=20))


def test_a_slow_rate_starts_one_at_a_time(clocked: Watch) -> None:
    assert clocked.run(slowly, 4) == 6
    gaps = [after - before for before, after in pairwise(starts)]
    assert all(timedelta(seconds=10) <= gap < timedelta(seconds=10.1) for gap in gaps), gaps


def test_whatever_dies_whenever_its_slot_comes_back(watch: Watch) -> None:
    world.append(watch)
    assert watch.crash_everywhere(slowly, (3,), lambda result, _: result == 3, fresh=starts.clear) > 10
