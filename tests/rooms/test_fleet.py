"""Several houses around one store, in real time: shards move under load, and nothing is lost or repeated."""

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from tests.rooms.scene import LONG, Ear
from tests.simulation.mutants import m8_recovery_from_a_stale_read
from watchbill import App
from watchbill.app.house import House
from watchbill.app.wish import Wish
from watchbill.env import SystemEnv
from watchbill.model.profile import INLINE_LEASE
from watchbill.model.run import SHARDS_PER_REGION
from watchbill.scheduler.scheduler import Scheduler
from watchbill.store.open import open_store
from watchbill.store.protocol import Store


class Shop:
    """One program, of which several processes could run; it counts what is really done."""

    def __init__(self) -> None:
        self.app = app = App("sqlite:///:memory:")
        self.called: Counter[tuple[str, int]] = Counter()
        self.may_end = threading.Event()
        self.ends = asyncio.Event()

        @app.step
        async def pick(order: int, place: int) -> int:
            self.called["pick", 100 * order + place] += 1
            await asyncio.sleep(0.02)
            return place

        @app.step
        async def carry(order: int) -> int:
            self.called["carry", order] += 1
            await self.ends.wait()
            return order

        @app.step
        def press(order: int) -> int:
            self.called["press", order] += 1
            self.may_end.wait(LONG)
            return order

        @app.workflow
        async def busy(order: int) -> int:
            return sum([await pick(order, place) for place in range(8)])

        @app.workflow
        async def long(order: int) -> int:
            return sum(await asyncio.gather(carry(order), press(order)))

        self.busy, self.long = busy, long


class Noting:
    """A store that notes which operations of schedulers are asked, in their order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def scheduler(self) -> Any:
        return NotingScheduler(self._store.scheduler, self.asked)


class NotingScheduler:
    def __init__(self, scheduler: Any, asked: list[str]) -> None:
        self._scheduler = scheduler
        self._asked = asked

    def __getattr__(self, operation: str) -> Any:
        self._asked.append(operation)
        return getattr(self._scheduler, operation)


class Fleet:
    """Houses around one store whose leases end, as a store that many processes share has them."""

    def __init__(self, store: Store, shop: Shop) -> None:
        self.store = store
        self.shop = shop
        self.houses: list[House] = []

    async def join(self) -> House:
        house = House(SystemEnv(), self.store, self.shop.app.registry, self.shop.app.events, namespace="default")
        self.houses.append(house)
        await house.start()
        return house

    async def leave(self, house: House) -> None:
        self.houses.remove(house)
        await house.stop()

    async def start(self, workflow: Any, *orders: int) -> list[str]:
        runs = [self.shop.app._new_run(workflow, (n,), {}, Wish(f"{workflow.name}-{n}"))[1] for n in orders]
        await self.store.client.submit(runs)
        return [run.id for run in runs]

    def held(self) -> list[int]:
        """How many shards each house holds."""
        return [len(room._leases.terms) for room in self._schedulers()]

    def members(self) -> list[int]:
        """Whom the first house knows to attend."""
        return [member.id for member in self._schedulers()[0]._attendance.members]

    def _schedulers(self) -> list[Scheduler]:
        return [room for house in self.houses for room in house.rooms if isinstance(room, Scheduler)]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def ear(shop: Shop) -> Ear:
    return Ear(shop.app)


@pytest.fixture
async def fleet(shop: Shop, url: str) -> AsyncIterator[Fleet]:
    store = await open_store(url, SystemEnv(), lasting_leases=False)
    fleet = Fleet(store, shop)
    yield fleet
    shop.may_end.set()
    shop.ends.set()
    for house in list(fleet.houses):
        await fleet.leave(house)
    await store.close()


async def until(fleet: Fleet, held: list[int]) -> None:
    async with asyncio.timeout(LONG):
        while sorted(fleet.held()) != sorted(held):
            await asyncio.sleep(0.01)


async def ended(fleet: Fleet, ear: Ear, ids: list[str]) -> None:
    async with asyncio.timeout(LONG):
        while {event.run for event in ear.of("run.completed")} < set(ids):
            await asyncio.sleep(0.01)


async def test_shards_given_away_under_load_lose_and_repeat_nothing(fleet: Fleet, shop: Shop, ear: Ear):
    await fleet.join()
    await until(fleet, [SHARDS_PER_REGION])
    ids = await fleet.start(shop.long, *range(12))
    async with asyncio.timeout(LONG):
        while shop.called.total() < 24:
            await asyncio.sleep(0.01)
    ids += await fleet.start(shop.busy, *range(100))
    newcomer = await fleet.join()
    await until(fleet, [8, 8])
    await fleet.join()
    await until(fleet, [6, 5, 5])
    await fleet.leave(newcomer)
    await until(fleet, [8, 8])
    shop.ends.set()
    shop.may_end.set()
    await ended(fleet, ear, ids)
    assert len(shop.called) == 24 + 800
    assert set(shop.called.values()) == {1}, "every step ran once, wherever its run went meanwhile"
    assert ear.of("step.lost") == ear.of("shards.lost") == ear.of("step.failed") == []
    assert len(ear.of("shards.given")) >= 3


async def test_a_house_that_stops_leaves_its_shards_to_the_others_at_once(fleet: Fleet, shop: Shop, ear: Ear):
    first = await fleet.join()
    await fleet.join()
    await until(fleet, [8, 8])
    await fleet.leave(first)
    async with asyncio.timeout(INLINE_LEASE / 1_000_000 / 3):
        await until(fleet, [16])
        await ended(fleet, ear, await fleet.start(shop.busy, *range(20)))


async def test_a_scheduler_reads_runs_only_after_it_has_their_shards(fleet: Fleet, shop: Shop, ear: Ear):
    first = await fleet.join()
    await until(fleet, [SHARDS_PER_REGION])
    ids = await fleet.start(shop.busy, *range(20))
    async with asyncio.timeout(LONG):
        while shop.called.total() < 20:
            await asyncio.sleep(0.001)
    await fleet.leave(first)
    noting = Noting(fleet.store)
    fleet.store = cast(Store, noting)
    await fleet.join()
    await ended(fleet, ear, ids)
    before, _, after = "|".join(noting.asked).partition("take")
    assert "live" not in before, "what is read before may be outdated when the shards are taken"
    assert "load" not in before
    assert "live" in after


async def test_m8_recovery_from_a_stale_read_is_caught(fleet: Fleet, shop: Shop, ear: Ear, monkeypatch):
    m8_recovery_from_a_stale_read(monkeypatch)
    with pytest.raises(AssertionError, match="may be outdated"):
        await test_a_scheduler_reads_runs_only_after_it_has_their_shards(fleet, shop, ear)


@pytest.mark.parametrize("hints", [True, False])
async def test_a_handle_hears_of_a_run_that_another_house_drives(fleet: Fleet, hints: bool, monkeypatch):
    driver, asker = fleet.shop, Shop()
    if not hints:
        monkeypatch.setattr(fleet.store, "listen", lambda whom, wake, **_: lambda: None)
    hall: Any = asker.app._hall
    hall._store = fleet.store  # as a store that many processes open
    async with asker.app.rooms(scheduler=False, agent=False, supervisor=False):
        handle = await asker.app.start(asker.busy, 1)
        waiting = asyncio.ensure_future(handle.result(timeout=LONG))
        await fleet.join()
        assert await waiting == sum(range(8))
    assert (driver.called.total(), asker.called.total()) == (8, 0)
    hall._store = None


async def test_what_a_killed_neighbour_held_is_taken_at_once(fleet: Fleet, shop: Shop, ear: Ear):
    program = "from watchbill.env import SystemEnv; print(SystemEnv().process_identity().decode(), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdin is not None
    identity = child.stdout.readline().strip()
    assert json.loads(identity)["pid"] == child.pid
    doors, neighbour = fleet.store.scheduler, 4_711
    shards = await doors.shards("default", "")
    await doors.attend(neighbour, "default", "", ("busy", "long"), identity, INLINE_LEASE)
    await doors.take(neighbour, shards, INLINE_LEASE)
    await fleet.join()
    ids = await fleet.start(shop.busy, *range(5))
    async with asyncio.timeout(LONG):
        while len(fleet.members()) < 2:
            await asyncio.sleep(0.01)
    assert fleet.held() == [0], "it lives, and holds them"
    child.kill()
    child.wait()
    child.stdout.close()
    child.stdin.close()
    async with asyncio.timeout(INLINE_LEASE / 1_000_000 / 3):
        await ended(fleet, ear, ids)
    assert ear.of("process.buried")
