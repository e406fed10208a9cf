"""An id that belongs to another row is refused by the store and drawn again: nothing is lost, and nothing restarts."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import App, ask, receive
from watchbill import events as happened
from watchbill.store.protocol import Store


class SharedNumber:
    """Lets an App draw ids of another process, as if both had the same number, until it takes another number."""

    def __init__(self, app: App) -> None:
        hall: Any = app._hall
        self._env = hall.env
        self._new_id, self._renumber = self._env.new_id, self._env.renumber
        self._taken: list[int] = []
        self.redrawn = 0
        self._env.new_id, self._env.renumber = self._draw, self._draw_again

    def draws(self, id: int, times: int = 3) -> None:
        """Let the next draws give a taken id."""
        self._taken = [id] * times

    def _draw(self) -> int:
        drawn: int = self._taken.pop() if self._taken else self._new_id()
        return drawn

    def _draw_again(self, number: int | None = None) -> None:
        if number is None:
            self._taken.clear()
            self.redrawn += 1
        self._renumber(number)


def store_of(app: App) -> Store:
    hall: Any = app._hall
    store: Store = hall._store
    return store


async def number_of(app: App, id: str) -> int:
    run = await store_of(app).client.find("default", id)
    assert run is not None
    return run.num


async def row_of(app: App, id: str) -> int:
    """Wait for the row of the only open call of a run."""
    async with asyncio.timeout(LONG):
        while True:
            record = await store_of(app).client.record("default", id)
            if record is not None and record.attempts:
                return record.attempts[0].id
            await asyncio.sleep(LOOK_EVERY)


@pytest.fixture
def shared(app: App) -> SharedNumber:
    return SharedNumber(app)


async def test_a_child_whose_number_is_taken_runs_under_another_one(app: App, shared: SharedNumber) -> None:
    @app.workflow
    async def other() -> None:
        await receive("end")

    @app.workflow
    async def child() -> int:
        return 5

    @app.workflow
    async def parent() -> int:
        await receive("go")
        return await child()

    async with app.rooms():
        beside, run = await app.start(other, id="other"), await app.start(parent, id="p")
        await becomes(run, lambda status: status.state == "waiting")
        taken = await number_of(app, "other")
        await run.send("go", None)
        shared.draws(taken)
        assert await ends(run) == 5
        assert shared.redrawn == 1
        assert await number_of(app, "p/child") != taken
        assert (await beside.status()).state == "waiting"


async def test_a_slot_whose_number_is_taken_runs_under_another_one(app: App, ear: Ear, shared: SharedNumber) -> None:
    @app.workflow
    async def other() -> None:
        await receive("end")

    @app.workflow(every="1s")
    async def tick() -> None: ...

    async with app.rooms():
        await app.start(other, id="other")
        taken = await number_of(app, "other")
        await ear.hears(happened.RUN_COMPLETED)
        shared.draws(taken, 1)
        async with asyncio.timeout(LONG):
            while not shared.redrawn:
                await asyncio.sleep(LOOK_EVERY)
        before = len(ear.of(happened.RUN_COMPLETED))
        ran = await ear.hears(happened.RUN_COMPLETED, times=before + 2)
    seconds = [int(event.run.rpartition(":")[2].rstrip("Z")) for event in ran]
    assert {(later - earlier) % 60 for earlier, later in pairwise(seconds)} == {1}, "no slot is missing"


async def test_a_run_whose_number_is_taken_starts_under_another_one(app: App, shared: SharedNumber) -> None:
    @app.workflow
    async def echo(n: int) -> int:
        return n

    async with app.rooms():
        assert await ends(await app.start(echo, 1, id="other")) == 1
        taken = await number_of(app, "other")
        shared.draws(taken)
        run = await app.start(echo, 2, id="mine")
        assert await ends(run) == 2
        shared.draws(taken, 2)  # the first draw is for an id, the second one for a number
        many = await app.start_many([(echo, (n,)) for n in (3, 4, 5)])
        assert [await ends(one) for one in many] == [3, 4, 5]
        assert shared.redrawn == 2


async def test_starts_without_an_id_are_two_runs_though_their_numbers_are_the_same(
    app: App, shared: SharedNumber
) -> None:
    @app.workflow
    async def echo(n: int) -> int:
        return n

    async with app.rooms():
        first = await app.start(echo, 1)
        shared.draws(await number_of(app, first.id), 4)
        second = await app.start(echo, 1)
        assert first.id != second.id
        assert await number_of(app, first.id) != await number_of(app, second.id)
        assert [await ends(first), await ends(second)] == [1, 1]


async def test_messages_whose_numbers_are_the_same_all_arrive(app: App, shared: SharedNumber) -> None:
    @app.workflow
    async def hears() -> list[int]:
        return [await receive("n", int) for _ in range(3)]

    async with app.rooms():
        run = await app.start(hears, id="h")
        await becomes(run, lambda status: status.state == "waiting")
        for n in range(3):
            shared.draws(12345, 1)
            await run.send("n", n)
        assert await ends(run) == [0, 1, 2]


async def test_a_retry_whose_number_is_taken_goes_on_under_another_one(app: App, shared: SharedNumber) -> None:
    fails = [True]

    @app.step(retry=0)
    async def flaky() -> int:
        if fails:
            fails.clear()
            raise ValueError("once")
        return 7

    @app.workflow
    async def work() -> int:
        return await flaky()

    async with app.rooms():
        run = await app.start(work, id="w")
        await becomes(run, lambda status: status.state == "failed")
        shared.draws(await number_of(app, "w"))
        again = await run.retry()
        assert again.id == "w~2"
        assert await ends(again) == 7
        assert shared.redrawn == 1


async def test_rows_whose_ids_are_taken_restart_nothing_that_runs(app: App, ear: Ear, shared: SharedNumber) -> None:
    began: list[int] = []
    release = asyncio.Event()

    @app.step
    async def long(n: int) -> int:
        began.append(n)
        await release.wait()
        return n

    @app.workflow
    async def asks() -> str:
        return await ask("yes?", str)

    @app.workflow
    async def work() -> list[int]:
        return await asyncio.gather(*(long(n) for n in range(4)))

    async with app.rooms():
        await app.start(asks, id="asks")
        taken = await row_of(app, "asks")
        run = await app.start(work, id="w")
        async with asyncio.timeout(LONG):
            while len(began) < 4:
                await asyncio.sleep(LOOK_EVERY)
            shared.draws(taken, 1)  # for one of the rows that they get after a second
            while not shared.redrawn:
                await asyncio.sleep(LOOK_EVERY)
        release.set()
        assert await ends(run) == [0, 1, 2, 3]
        assert sorted(began) == [0, 1, 2, 3], "each began once"
        assert ear.of(happened.SHARDS_LOST) == []
        assert len(await app.inbox()) == 1
