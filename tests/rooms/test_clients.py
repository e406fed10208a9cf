"""What clients ask for that cannot be: each refusal says what was wrong, and what to do."""

import asyncio
import sqlite3
from typing import Any

import pytest

from tests.rooms.scene import becomes, ends
from watchbill import App, InvalidOptionError, RunEnded, RunNotFound, StoreError, WatchbillError, receive
from watchbill.app.hall import Hall
from watchbill.app.known import doubt_about
from watchbill.app.quotas import clear_quotas, order_quota
from watchbill.app.waiting import POLL, Waiting
from watchbill.env import SystemEnv
from watchbill.events import Event
from watchbill.model.quota import QuotaKind
from watchbill.store.open import open_store


class Shop:
    """An App with a workflow that waits, one that has a child, and one that undoes."""

    def __init__(self, url: str) -> None:
        self.app = app = App(url)
        self.undo = asyncio.Event()

        @app.step(needs="gpu=2", uses="bank")
        async def charge(n: int) -> int:
            return n

        @app.step
        async def book(n: int) -> int:
            return n

        @book.undo
        async def cancel(result: int, n: int) -> None:
            await self.undo.wait()

        @app.workflow
        async def order(n: int) -> int:
            return n

        @app.workflow
        async def waits(n: int) -> Any:
            return await receive("paid")

        @app.workflow
        async def family(n: int) -> int:
            return await order(n)

        @app.workflow
        async def trip(n: int) -> None:
            await book(n)
            raise ValueError("no")

        self.order, self.waits, self.family, self.trip = order, waits, family, trip


def hall_of(app: App) -> Hall:
    assert isinstance(app._hall, Hall)
    return app._hall


async def test_runs_that_are_not_there_are_refused_by_name(kept: str) -> None:
    app = App(kept)
    lost: Any = app.handle("nowhere")
    for asked in (lost.logs, lost.status, lambda: lost.extend("1h", reason="late")):
        with pytest.raises(RunNotFound, match="nowhere"):
            await asked()


async def test_starts_that_cannot_be_meant_are_refused(file: str) -> None:
    with pytest.raises(InvalidOptionError, match="a namespace has 1-100 characters"):
        App(file, namespace="a b")
    shop = Shop(file)
    with sqlite3.connect(file.removeprefix("sqlite:///")) as one, sqlite3.connect(":memory:") as other:
        with pytest.raises(InvalidOptionError, match=r"start_many\(\) is one commit: give every run the same tx"):
            await shop.app.start_many([(shop.order, (1,), {"tx": one}), (shop.order, (2,), {"tx": other})])
        with pytest.raises(InvalidOptionError, match=r"run\(tx=\) would wait for a run that is not there"):
            await asyncio.to_thread(shop.app.run, shop.order, 1, tx=one)


async def test_orders_to_runs_that_cannot_be_obeyed_are_refused(kept: str) -> None:
    shop = Shop(kept)
    async with shop.app.rooms():
        family = await shop.app.start(shop.family, 1, id="f-1")
        assert await ends(family) == 1
        [child] = [run.id async for run in shop.app.runs() if run.id != "f-1"]
        with pytest.raises(InvalidOptionError, match="was started by another one, and goes with it"):
            await hall_of(shop.app).delete(child)
        with pytest.raises(RunEnded, match="f-1"):
            await family.extend("1h", reason="late")

        waiting = await shop.app.start(shop.waits, 1, id="w-1", deadline="1h")
        with pytest.raises(InvalidOptionError, match="the id of a message is text of 1-"):
            await waiting.send("paid", 1, id="")
        with pytest.raises(InvalidOptionError, match="has no deadline"):
            await (await shop.app.start(shop.waits, 1, id="w-2")).extend("1h", reason="late")
        with pytest.raises(InvalidOptionError, match="'charge'"):
            await waiting.extend("1h", reason="late", call="charge")
        for id in ("w-1", "w-2"):
            await shop.app.handle(id).send("paid", 1)
            assert await ends(shop.app.handle(id)) == 1

        trip = await shop.app.start(shop.trip, 1, id="t-1")
        await becomes(trip, lambda status: status.state == "undoing")
        with pytest.raises(WatchbillError, match="'t-1' is being undone: wait for its end"):
            await trip.rewind("book")
        shop.undo.set()
        await becomes(trip, lambda status: status.state == "undone")


async def test_copies_need_an_id_that_fits_and_the_code_of_changed_arguments(kept: str) -> None:
    shop = Shop(kept)
    async with shop.app.rooms():
        long = await shop.app.start(shop.order, 1, id="x" * 200)
        assert await ends(long) == 1
        with pytest.raises(WatchbillError, match="has too long an id for a copy"):
            await long.retry()
        ended = await shop.app.start(shop.family, 1, id="f-1")
        await ends(ended)
    other = App(kept)
    with pytest.raises(WatchbillError, match="arguments of workflow 'family' version 1 cannot be changed here"):
        await other.handle("f-1").fork("order", n=2)


async def test_all_quotas_of_a_namespace_are_cleared_together(kept: str) -> None:
    app = App(kept)
    with pytest.raises(InvalidOptionError, match="namespace 'default' has no quota"):
        await clear_quotas(hall_of(app), by="ada", reason="enough")
    for kind in QuotaKind:
        await order_quota(hall_of(app), 5, by="ada", reason="too many", kind=kind)
    await clear_quotas(hall_of(app), by="ada", reason="enough")
    assert [one async for one in _quotas(app)] == []


async def _quotas(app: App) -> Any:
    for one in await app._hall.read(lambda client: client.quotas()):
        yield one


async def test_names_of_gates_that_nobody_knows_are_doubted(kept: str) -> None:
    shop, stranger = Shop(kept), App(kept)
    known, unknown = shop.app.registry, stranger.registry
    for gate in ("step:charge", "workflow:order", "needs:gpu", "uses:bank", "limit:charge"):
        assert await doubt_about(gate, shop.app._hall, known) is None
    for gate, called in (
        ("step:chrge", "a step 'chrge'"),
        ("workflow:ordr", "a workflow 'ordr'"),
        ("needs:gpu", "a capability 'gpu'"),
        ("uses:bank", "a dependency 'bank'"),
    ):
        doubt = await doubt_about(gate, stranger._hall, unknown)
        assert doubt is not None
        assert doubt.startswith(f"nobody knows {called} yet")
    async with shop.app.rooms(agent=False):  # what the store has met is known to everybody
        await ends(await shop.app.start(shop.order, 1))
    doubt = await doubt_about("workflow:ordr", stranger._hall, unknown)
    assert doubt is not None
    assert doubt.endswith("did you mean 'order'?")


async def test_clients_that_wait_hear_that_the_store_is_gone(file: str) -> None:
    shop, env = Shop(file), SystemEnv()
    handle = await shop.app.start(shop.waits, 1, id="w-1")
    store = await open_store(file, env)
    try:
        [row] = await store.client.runs("default", limit=1)
        waiting = Waiting(env, store.client, shared=True)
        asked = [asyncio.ensure_future(waiting.ending(handle.id, row.num, held_too=False)) for _ in range(2)]
        gone = asyncio.ensure_future(waiting.ending("gone", 4711, held_too=False))
        assert await asyncio.wait_for(gone, 20) is None  # it is not there: whoever asked looks elsewhere
        waiting.hint()
        await env.wait(asyncio.Event(), 2 * POLL)
        asked[0].cancel()
        waiting.notice([Event("run.completed", 0, "scheduler", "w-1")])
        waiting.fail(StoreError("the file is gone"))
        waiting.fail(StoreError("and again"))
        waiting.close()
        with pytest.raises(StoreError, match="the file is gone"):
            await asked[1]
        with pytest.raises(StoreError, match="and again"):
            await waiting.ending(handle.id, row.num, held_too=False)
    finally:
        await store.close()
