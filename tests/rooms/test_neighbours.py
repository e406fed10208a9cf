"""Two different programs on one database, each in a namespace of its own, at the same time."""

import asyncio
from collections import Counter

import pytest

from tests.rooms.conftest import emptied_postgres
from tests.rooms.scene import LONG, Ear, ends
from watchbill import App, Retry


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> str:
    return emptied_postgres(request)


async def test_two_programs_in_two_namespaces_do_not_disturb_each_other(shared: str) -> None:
    bank, shop = App(shared, namespace="bank"), App(shared, namespace="shop")
    ran: Counter[str] = Counter()

    # The same names, other code: nobody may run the other's.
    @bank.step(name="work", retry=Retry(3, backoff="10ms"))
    async def pay(n: int) -> str:
        ran[f"bank {n}"] += 1
        if ran[f"bank {n}"] == 1 and n % 5 == 0:
            raise ConnectionError("once more")  # a row: it goes through the queue, where the other's agent looks, too
        return f"paid {n}"

    @shop.step(name="work", retry=Retry(3, backoff="10ms"))
    def ship(n: int) -> str:
        ran[f"shop {n}"] += 1
        if ran[f"shop {n}"] == 1 and n % 5 == 0:
            raise ConnectionError("once more")
        return f"shipped {n}"

    @bank.workflow(name="order")
    async def of_bank(n: int) -> str:
        return await pay(n)

    @shop.workflow(name="order")
    async def of_shop(n: int) -> str:
        return await ship(n)

    heard = {"bank": Ear(bank), "shop": Ear(shop)}
    async with asyncio.timeout(2 * LONG), bank.rooms(), shop.rooms():
        paid = [await bank.start(of_bank, n, id=f"o-{n}") for n in range(40)]
        shipped = [await shop.start(of_shop, n, id=f"o-{n}") for n in range(40)]
        assert [await ends(handle) for handle in paid] == [f"paid {n}" for n in range(40)]
        assert [await ends(handle) for handle in shipped] == [f"shipped {n}" for n in range(40)]
    assert ran == {f"{whose} {n}": 2 if n % 5 == 0 else 1 for whose in ("bank", "shop") for n in range(40)}
    for ear in heard.values():
        assert len(ear.of("run.completed")) == 40
        assert not ear.of("run.held")
        ear.close()
