"""Regions: a run is driven where it lives, and nowhere else."""

from typing import Any

import pytest

from tests.rooms.scene import Ear, becomes, ends
from watchbill import App, Handle, sleep


class Shop:
    """Some workflows, one of them at home in a region."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.fail = True

        @app.step
        async def charge(n: int) -> int:
            if n < 0 and self.fail:
                raise ConnectionError
            return n

        @app.workflow
        async def order(n: int) -> int:
            return await charge(n)

        @app.workflow(region="us")
        async def overseas(n: int) -> int:
            return await charge(n)

        @app.workflow
        async def family(n: int) -> list[int]:
            return [await order(n), await overseas(n)]

        self.order, self.overseas, self.family = order, overseas, family


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


async def states(*handles: Handle[Any]) -> list[str]:
    return [(await handle.status()).state.value for handle in handles]


async def test_rooms_serve_the_runs_of_their_region_and_no_others(app: App, shop: Shop, ear: Ear) -> None:
    here, there, far = await app.start_many(
        [(shop.order, (1,)), (shop.order, (2,), {"region": "eu"}), (shop.overseas, (3,))]
    )
    async with app.rooms(region="eu"):
        assert await ends(there) == 2
        assert await states(here, there, far) == ["scheduled", "completed", "scheduled"]
    async with app.rooms():
        assert await ends(here) == 1
        assert await states(far) == ["scheduled"]
    async with app.rooms(region="us"):
        assert await ends(far) == 3


async def test_a_run_that_nobody_serves_says_so(app: App, shop: Shop) -> None:
    there = await app.start(shop.order, 2, region="eu")
    async with app.rooms():
        explained, status = await there.explain(), await there.status()
    assert "It lives in region 'eu', and no process serves that region" in str(explained)
    assert explained.facts["region"] == "eu"
    assert status.waiting_for == "a process that serves region 'eu'"
    async with app.rooms(region="eu"):
        assert await ends(there) == 2
        assert "no process serves" not in str(await there.explain())


async def test_start_has_the_last_word(app: App, shop: Shop) -> None:
    handle = await app.start(shop.overseas, 1, region="eu")
    async with app.rooms(region="eu"):
        assert await ends(handle) == 1


async def test_children_live_with_their_parent_unless_their_workflow_says_otherwise(app: App, shop: Shop) -> None:
    parent = await app.start(shop.family, 7, region="eu", id="p")
    async with app.rooms(region="eu"):
        await becomes(parent, lambda status: "overseas" in (status.waiting_for or ""))
        assert await states(app.handle("p/order")) == ["completed"]
        assert (await app.handle("p/overseas").explain()).facts["region"] == "us"
    async with app.rooms(region="us"):
        assert await ends(app.handle("p/overseas")) == 7
    async with app.rooms(region="eu"):
        assert await ends(parent) == [7, 7]


async def test_a_copy_lives_where_its_original_did(app: App, shop: Shop) -> None:
    async with app.rooms(region="eu"):
        first = await app.start(shop.order, 5, region="eu")
        assert await ends(first) == 5
        copy = await first.rewind("charge")
        assert copy.id != first.id
        assert await ends(copy) == 5


def test_run_opens_the_rooms_of_its_region(kept: str) -> None:
    shop = Shop(App(kept))
    assert shop.app.run(shop.overseas, 4) == 4
    assert shop.app.run(shop.order, 5) == 5
    assert shop.app.run(shop.order, 6, region="eu") == 6


async def test_a_schedule_runs_where_its_workflow_is_at_home(app: App, ear: Ear) -> None:
    @app.workflow(every="1s", region="eu")
    async def tick() -> None:
        await sleep(0)

    @app.workflow
    async def other() -> None: ...

    async with app.rooms():
        await ends(await app.start(other))
        assert await app.schedules() == []
    async with app.rooms(region="eu"):
        await ear.hears("run.completed", times=2)
        by_hand = await app.run_schedule("tick")
        await ends(by_hand)
    async with app.rooms():
        await ends(await app.start(other))
        [schedule] = await app.schedules()
        assert not schedule.ended, "who serves another region does not end it"
