"""Children: runs that a run starts and waits for, once, whoever drives it."""

import asyncio
from typing import Any

import pytest

from tests.rooms.scene import Ear, becomes, ends
from watchbill import App, RunCancelled, RunFailed, State, receive, sleep
from watchbill.events import RUN_STARTED


def a_family(app: App) -> Any:
    @app.step
    async def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def child(n: int) -> int:
        return await double(n)

    @app.workflow
    async def parent(count: int) -> list[int]:
        return await asyncio.gather(*(child(n) for n in range(count)))

    return parent


async def test_a_child_is_a_run_of_its_own(app: App, ear: Ear) -> None:
    parent = a_family(app)
    async with app.rooms():
        assert await ends(await app.start(parent, 3, id="p")) == [0, 2, 4]
        for id in ("p/child", "p/child.2", "p/child.3"):
            assert (await app.handle(id).status()).state == "completed"
    assert len(ear.of(RUN_STARTED)) == 4


async def test_a_hundred_children(app: App) -> None:
    parent = a_family(app)
    async with app.rooms():
        assert await ends(await app.start(parent, 100)) == [2 * n for n in range(100)]


async def test_a_parent_says_for_whom_it_waits(app: App) -> None:
    @app.workflow
    async def child() -> int:
        return await receive("n", int)

    @app.workflow
    async def parent() -> int:
        return await child()

    async with app.rooms():
        run = await app.start(parent, id="p")
        status = await becomes(run, lambda status: status.waiting_for == "run 'p/child'")
        assert status.state == "waiting"
        await app.handle("p/child").send("n", 5)
        assert await ends(run) == 5


async def test_a_child_that_fails_fails_where_it_is_awaited(app: App) -> None:
    @app.workflow
    async def child() -> None:
        raise ValueError("no")

    @app.workflow
    async def parent() -> str:
        try:
            await child()
        except RunFailed as failed:
            return f"{failed.id} {failed.error.type} {failed.error.message}"
        return "never"

    async with app.rooms():
        assert await ends(await app.start(parent, id="p")) == "p/child ValueError no"


async def test_children_are_cancelled_with_their_parent(app: App) -> None:
    @app.workflow
    async def child() -> None:
        await sleep("1h")

    @app.workflow
    async def parent() -> None:
        await asyncio.gather(child(), child())

    async with app.rooms():
        run = await app.start(parent, id="p")
        await becomes(run, lambda status: status.state == "waiting")
        await run.cancel("enough")
        with pytest.raises(RunCancelled):
            await ends(run)
        for id in ("p/child", "p/child.2"):
            with pytest.raises(RunCancelled, match="does not wait for it any more"):
                await ends(app.handle(id))


async def test_a_child_that_nobody_waits_for_any_more_is_cancelled(app: App) -> None:
    @app.workflow
    async def child() -> None:
        await sleep("1h")

    @app.workflow
    async def parent() -> str:
        try:
            async with asyncio.timeout(0.05):
                await child()
        except TimeoutError:
            return "gone on"
        return "never"

    async with app.rooms():
        assert await ends(await app.start(parent, id="p")) == "gone on"
        with pytest.raises(RunCancelled):
            await ends(app.handle("p/child"))


async def test_a_cancelled_child_is_an_error_of_its_own(app: App) -> None:
    @app.workflow
    async def child() -> None:
        await sleep("1h")

    @app.workflow
    async def parent() -> str:
        try:
            await child()
        except RunCancelled as cancelled:
            return cancelled.reason
        return "never"

    async with app.rooms():
        run = await app.start(parent, id="p")
        await becomes(run, lambda status: status.waiting_for == "run 'p/child'")
        await app.handle("p/child").cancel("by hand")
        assert await ends(run) == "by hand"


async def test_recursion_ends_with_a_clear_error(app: App) -> None:
    @app.workflow
    async def deeper(n: int) -> int:
        return await deeper(n + 1)

    async with app.rooms():
        with pytest.raises(RunFailed, match="nested too deep"):
            await ends(await app.start(deeper, 0, id="d"))


async def test_parents_and_children_survive_the_process(kept: str) -> None:
    def family(app: App) -> Any:
        @app.workflow
        async def child(n: int) -> int:
            return n + await receive("n", int)

        @app.workflow
        async def parent() -> list[int]:
            return list(await asyncio.gather(child(1), child(2)))

        return parent

    before = App(kept)
    async with before.rooms():
        run = await before.start(family(before), id="p")
        await becomes(run, lambda status: status.state == State.WAITING)
        await becomes(before.handle("p/child"), lambda status: status.state == State.WAITING)
        await before.handle("p/child").send("n", 10)
        await ends(before.handle("p/child"))
    after = App(kept)
    family(after)
    async with after.rooms():
        await after.handle("p/child.2").send("n", 20)
        assert await ends(after.handle("p")) == [11, 22]
