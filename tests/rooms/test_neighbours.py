"""Two different programs on one database, each in a namespace of its own, at the same time."""

import asyncio
import contextlib
import sqlite3
from collections import Counter

import pytest

from tests.rooms.conftest import emptied_postgres
from tests.rooms.crowded import NUMBERS
from tests.rooms.scene import LONG, Ear, ends
from tests.store.postgres import by_hand
from watchbill import App, Retry

QUEUED = 100_000


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


# One run of namespace `crowd` that has a row, copied: as if it had called the step very often.
COPIES = """
INSERT INTO watchbill.attempt (id, run, run_id, part, shard, call, step, queue, rank, state, fence, policy, args)
{numbers}
SELECT
    one.id + n, one.run, one.run_id, one.part, one.shard, one.call || '#' || n, one.step, one.queue, one.rank, 0,
    one.fence, one.policy, one.args
FROM s
CROSS JOIN (SELECT * FROM watchbill.attempt WHERE state = 0) AS one
"""


async def by_sql(url: str, sql: str) -> list[tuple[object, ...]]:
    if not url.startswith("sqlite"):
        return [tuple(row) for row in await by_hand(url, sql)]
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as hand:
        return hand.execute(sql.replace("watchbill.", "")).fetchall()


class Crowd:
    """A namespace with very many queued calls, of which its agent executes five that do not end."""

    def __init__(self, url: str) -> None:
        self.app = app = App(url, namespace="crowd")
        self.url = url
        self.begun: list[int] = []
        self.full = asyncio.Event()
        self.release = asyncio.Event()

        @app.step(needs="bulk")
        async def grind(n: int) -> int:
            self.begun.append(n)
            if len(self.begun) == 5:
                self.full.set()
            await self.release.wait()
            return n

        @app.workflow
        async def flood(n: int) -> int:
            return await grind(n)

        self.flood = flood

    async def queue(self) -> None:
        """Put the calls into the queue."""
        async with self.app.rooms(agent=False, supervisor=False):
            await self.app.start(self.flood, 1, id="crowd")
            async with asyncio.timeout(LONG):
                while not await by_sql(self.url, "SELECT 1 FROM watchbill.attempt WHERE state = 0"):
                    await asyncio.sleep(0.01)
        numbers = NUMBERS["sqlite" if self.url.startswith("sqlite") else "postgres"]
        await by_sql(self.url, COPIES.format(numbers=numbers.format(first=1, last=QUEUED)))

    async def empty(self) -> None:
        """Take the copies out of the queue: no workflow has made those calls."""
        await by_sql(self.url, "DELETE FROM watchbill.attempt WHERE call LIKE '%#%'")


async def test_run_of_one_namespace_ends_while_another_has_very_many_queued_calls(kept: str) -> None:
    crowd, single = Crowd(kept), App(kept, namespace="single")

    @single.step
    async def step(n: int) -> int:
        return n

    @single.step(needs="mail")
    async def leased_step(n: int) -> int:
        return n

    @single.workflow
    async def one_call(n: int) -> int:
        return await step(n) + await leased_step(n)

    await crowd.queue()
    async with contextlib.AsyncExitStack() as stack:
        if not kept.startswith("sqlite"):  # the owner of a file serves one namespace
            agent = crowd.app.rooms(scheduler=False, supervisor=False, slots=5, needs="bulk")
            await stack.enter_async_context(agent)
            await asyncio.wait_for(crowd.full.wait(), LONG)
        await stack.enter_async_context(single.rooms(scheduler=True, agent=True, needs="mail"))
        assert await ends(await single.start(one_call, 4)) == 8
        [(left,)] = await by_sql(kept, "SELECT count(*) FROM watchbill.attempt WHERE state = 0")
        assert left in (QUEUED + 1, QUEUED - 4)
        crowd.release.set()
    await crowd.empty()


async def test_clients_of_another_namespace_start_runs_beside_the_owner_of_a_file(file: str) -> None:
    crowd, single = Crowd(file), App(file, namespace="single")

    @single.workflow
    async def wf(n: int) -> int:
        return n

    async with single.rooms():
        handle = await crowd.app.start(crowd.flood, 1, id="later")
        assert await ends(await single.start(wf, 4)) == 4
        assert (await handle.status()).state == "scheduled"
    crowd.release.set()
    async with crowd.app.rooms(needs="bulk"):
        assert await ends(handle) == 1
