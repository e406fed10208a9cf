"""Children: runs that a run starts and waits for, once, whoever drives it."""

import asyncio
import contextlib
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import App, Handle, Retry, RunCancelled, RunEnded, RunFailed, State, receive, sleep
from watchbill.events import RUN_STARTED
from watchbill.scheduler.scheduler import Scheduler
from watchbill.store.protocol import Turn


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


@pytest.mark.parametrize("how", ["cancelled", "failed", "rewound", "undone"])
@pytest.mark.parametrize("where", ["asleep", "somewhere else"])
async def test_children_are_cancelled_also_when_what_stops_their_parent_brings_it_into_memory(
    kept: str, how: str, where: str
) -> None:
    """It starts what it waits for once more then, as if for the first time; but it has started that before."""

    def family(app: App) -> Any:
        @app.step
        async def book() -> str:
            return "booked"

        if how == "undone":

            @book.undo
            async def unbook(booked: str) -> None: ...

        @app.workflow
        async def child() -> None:
            await sleep("1h")

        @app.workflow
        async def parent() -> None:
            async def fails() -> None:
                await receive("fail")
                raise ValueError("no")

            await book()
            async with asyncio.timeout(3600):
                await asyncio.gather(child(), fails())

        return parent

    async def stop(run: Handle[Any]) -> None:
        if how == "cancelled":
            await run.cancel("enough")
        elif how == "rewound":
            await run.rewind(to="book")
        else:
            await run.send("fail", None)

    before, after = App(kept), App(kept)
    family(after)
    async with before.rooms():
        run = await before.start(family(before), id="p")
        await becomes(run, lambda status: status.state == "waiting")
        if where == "asleep":
            await stop(run)
            await becomes(before.handle("p/child"), lambda status: status.state == "cancelled")
    if where == "somewhere else":
        await stop(after.handle("p"))
        async with after.rooms():
            await becomes(after.handle("p/child"), lambda status: status.state == "cancelled")


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


async def test_a_child_that_ends_while_its_parent_is_paused_and_was_loaded_again(kept: str) -> None:
    def family(app: App) -> Any:
        @app.step
        async def double(n: int) -> int:
            return 2 * n

        @app.workflow
        async def child() -> int:
            return await receive("n", int)

        @app.workflow
        async def parent() -> int:
            return await double(await child())

        return parent

    before = App(kept)
    async with before.rooms():
        run = await before.start(family(before), id="p")
        await becomes(run, lambda status: status.waiting_for == "run 'p/child'")
        await run.pause("wait", children=False)
        await becomes(run, lambda status: status.paused)
    after = App(kept)
    family(after)
    async with after.rooms():
        await after.handle("p/child").send("n", 3)
        assert await ends(after.handle("p/child")) == 3
        await becomes(after.handle("p"), lambda status: status.waiting_for is None)  # it has heard of it
        await after.handle("p").resume()
        assert await ends(after.handle("p")) == 6


async def test_the_end_of_a_child_waits_for_a_parent_whose_code_does_not_fit(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And costs nothing meanwhile: nobody writes the same turn again and again."""

    def family(app: App, *, fits: bool) -> Any:
        @app.step
        async def one() -> int:
            return 1

        @app.step
        async def other() -> int:
            return 1

        @app.workflow
        async def child() -> int:
            return await receive("n", int)

        @app.workflow
        async def parent() -> int:
            await (one if fits else other)()
            return await child()

        return parent

    first = App(kept)
    async with first.rooms():
        run = await first.start(family(first, fits=True), id="p")
        await becomes(run, lambda status: status.waiting_for == "run 'p/child'")
    writes = 0
    write = Scheduler._write

    async def count(scheduler: Scheduler, turn: Turn, **options: bool) -> bool:
        nonlocal writes
        writes += 1
        return await write(scheduler, turn, **options)

    monkeypatch.setattr(Scheduler, "_write", count)
    second = App(kept)
    family(second, fits=False)
    async with second.rooms():
        await second.handle("p").send("wake", None)
        await becomes(second.handle("p"), lambda status: status.state == State.DIVERGED)
        await second.handle("p/child").send("n", 3)
        assert await ends(second.handle("p/child")) == 3
        writes = 0
        await asyncio.sleep(0.3)  # nothing to wait for: that nothing happens is what is to be seen
        assert writes < 5
    third = App(kept)
    family(third, fits=True)
    async with third.rooms():
        with contextlib.suppress(RunEnded):  # code that fits takes it up by itself, and may be quicker
            await third.handle("p").retry()
        assert await ends(third.handle("p")) == 3


async def test_children_of_a_run_that_is_cancelled_without_its_code_are_cancelled_too(kept: str) -> None:
    def program(app: App, *, changed: bool) -> None:
        @app.step
        async def first() -> None: ...

        @app.step
        async def other() -> None: ...

        @app.workflow
        async def below(n: int) -> None:
            await sleep("1h")

        @app.workflow
        async def above() -> None:
            await (other if changed else first)()
            await asyncio.gather(below(1), below(2))

    before, after = App(kept), App(kept)
    program(before, changed=False)
    program(after, changed=True)
    async with before.rooms():
        handle = await before.start(before.registry.workflow("above"), id="p")
        await becomes(handle, lambda status: status.state == "waiting")
        for id in ("p/below", "p/below.2"):
            await becomes(before.handle(id), lambda status: status.state == "waiting")
    async with after.rooms():
        await after.handle("p").send("wake", 1)  # so that it is brought back, and found not to fit
        await becomes(after.handle("p"), lambda status: status.state == "diverged")
        await after.handle("p").cancel("no more")
        for id in ("p", "p/below", "p/below.2"):
            status = await becomes(after.handle(id), lambda status: status.state == "cancelled")
            assert status.state == "cancelled"


async def test_a_run_whose_child_cannot_have_an_id_ends_once(app: App) -> None:
    @app.workflow
    async def below() -> int:
        return 1

    @app.workflow
    async def above() -> int:
        return await below()

    async with app.rooms():
        handle = await app.start(above, id="x" * 199)
        with pytest.raises(RunFailed):
            await ends(handle)
        assert [event.kind for event in await handle.timeline()].count("run_failed") == 1


async def test_a_parent_that_is_rewound_has_a_new_child_though_the_first_was_copied(app: App) -> None:
    worked: list[str] = []

    @app.step
    async def work() -> int:
        worked.append("work")
        return len(worked)

    @app.workflow
    async def child() -> int:
        return await work()

    @app.workflow
    async def parent() -> int:
        result = await child()
        await receive("go")
        return result

    async with app.rooms():
        run = await app.start(parent, id="p")
        await becomes(run, lambda status: status.waiting_for == "a message on 'go'")
        copy: Handle[int] = await app.handle("p/child").fork("work")
        assert (copy.id, await ends(copy)) == ("p/child~~2", 1)
        await run.rewind("child")
        await becomes(run, lambda status: len(worked) == 2 and status.waiting_for == "a message on 'go'")
        again: Handle[int] = await app.handle("p/child~2").fork("work")
        assert (again.id, await ends(again)) == ("p/child~2~~2", 2)
        assert [one.note for one in await again.timeline() if one.kind == "run_created"] == [
            "as a copy of run 'p/child~2'"
        ]
        await run.send("go", None)
        assert await ends(run) == 2


@pytest.mark.parametrize("late", [False, True])
async def test_the_end_of_a_child_that_the_parent_breaks_on_is_heard_when_its_code_is_mended(
    kept: str, late: bool
) -> None:
    """Also when it says until when an attempt of it may act, which is written down before it."""

    def program(*, broken: bool) -> tuple[App, Any]:
        app = App(kept)
        slow = iter([True] if late and broken else [])

        @app.step(timeout=0.3, retry=Retry(1, backoff="1ms"))
        async def charge() -> int:
            if next(slow, False):
                await asyncio.sleep(60)
            return 2

        @app.workflow
        async def charging() -> int:
            return await charge()

        @app.workflow
        async def order() -> int:
            charged: int = await charging()
            if broken:
                raise SystemExit("a mistake in the workflow")
            return charged

        return app, order

    app, order = program(broken=True)
    async with app.rooms():
        run = await app.start(order, id="r")
        async with asyncio.timeout(LONG):
            while "a mistake" not in str(await run.explain()):
                await asyncio.sleep(LOOK_EVERY)
    await app.close()
    app, order = program(broken=False)
    async with app.rooms():
        assert await ends(await app.start(order, id="r")) == 2
    await app.close()
