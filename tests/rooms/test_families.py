"""Families: what is undone, and when, where runs have started others and do not wait for them any more."""

import asyncio
import contextlib
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import (
    Ambiguous,
    App,
    Handle,
    NotDone,
    RunCancelled,
    RunFailed,
    RunNotFound,
    RunUndone,
    Step,
    Unknown,
    continue_as,
    receive,
    sleep,
)


def a_booking(app: App, did: list[str]) -> Step[..., Any]:
    """Give a step that can be undone; for a cabin that takes a while."""

    @app.step
    async def book(what: str) -> str:
        did.append(f"book {what}")
        return what

    @book.undo
    async def unbook(booked: str, what: str) -> None:
        if what == "cabin":
            await asyncio.sleep(0.7)
        did.append(f"unbook {what}")

    return book


async def is_there(child: Handle[Any]) -> Handle[Any]:
    """Wait until a child has begun to wait."""
    async with asyncio.timeout(LONG):
        while True:
            with contextlib.suppress(RunNotFound):
                if (await child.status()).state == "waiting":
                    return child
            await asyncio.sleep(LOOK_EVERY)


async def is_undone(run: Handle[Any]) -> None:
    with pytest.raises((RunCancelled, RunUndone)):
        await ends(run)


async def test_a_child_that_is_given_up_in_the_turn_in_which_a_row_is_looked_at_is_undone_first(app: App) -> None:
    """Of a run that is loaded for the sake of its rows nobody had asked for the children."""
    did: list[str] = []
    book = a_booking(app, did)

    @app.step
    async def slow() -> str:
        await asyncio.sleep(30)
        return "x"

    @slow.undo
    async def unslow(x: str | None) -> None: ...

    @app.step
    async def quick() -> None: ...

    @app.workflow
    async def cruise() -> None:
        await book("cabin")
        await sleep("1h")

    @app.workflow
    async def trip() -> None:
        async def race() -> None:
            await receive("go")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await slow()
            await quick()
            raise ValueError("no")

        await book("train")
        async with asyncio.TaskGroup() as group:
            group.create_task(cruise())
            group.create_task(race())

    async with app.rooms():
        run = await app.start(trip, id="r")
        await is_there(app.handle("r/cruise"))
        await run.send("go", None)
        await is_undone(run)
    assert did == ["book train", "book cabin", "unbook cabin", "unbook train"]


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
@pytest.mark.parametrize("again", ["rewound", "copied"])
async def test_a_child_that_nobody_has_started_is_neither_waited_for_nor_undone(
    kept: str, again: str, how: str
) -> None:
    """Its parent begins a part anew, or as a copy, and is stopped before anybody has driven it."""
    did: list[str] = []

    def family(app: App) -> Any:
        book = a_booking(app, did)

        @app.step
        async def look() -> None: ...

        @app.step
        async def refund(paid: str) -> None:
            did.append("refund")

        @app.workflow(undo=refund)
        async def child() -> str:
            await sleep("1h")
            return "x"

        @app.workflow
        async def parent() -> None:
            async def fails() -> None:
                await receive("fail")
                raise ValueError("no")

            await book("train")
            await look()
            async with asyncio.TaskGroup() as group:
                group.create_task(child())
                group.create_task(fails())

        return parent

    before, after = App(kept), App(kept)
    family(after)
    async with before.rooms():
        await before.start(family(before), id="r")
        await is_there(before.handle("r/child"))
        await becomes(before.handle("r"), lambda status: status.state == "waiting")
    run: Handle[Any] = after.handle("r")
    if again == "copied":
        run = await run.fork(after="look")
    else:
        await run.rewind(to="look")
    if how == "fails":
        await run.send("fail", None)
    else:
        await run.cancel("no more")
    async with after.rooms():
        if again == "copied" and how == "is cancelled":
            with pytest.raises(RunCancelled):
                await ends(run)  # it has never begun: what it was given is the other one's to undo
            assert did == ["book train"]
            return
        await is_undone(run)
        assert did == ["book train", "unbook train"]


@pytest.mark.parametrize("waits_for", ["its probe", "a person"])
async def test_a_paused_child_that_is_stopped_ends(app: App, waits_for: str) -> None:
    """What it has to wait for is held back by the pause, and nobody can resume what is being stopped."""
    did: list[str] = []
    book, fail = a_booking(app, did), asyncio.Event()

    async def was_paid() -> NotDone | Unknown:
        return NotDone() if waits_for == "its probe" else Unknown()

    @app.step(probe=was_paid, retry=0)
    async def pay() -> str:
        if waits_for == "its probe":
            await fail.wait()
        raise Ambiguous("no answer")

    @app.workflow
    async def pays() -> None:
        await pay()

    @app.workflow
    async def trip() -> None:
        await book("train")
        await pays()

    async with app.rooms():
        run = await app.start(trip, id="r")
        child: Handle[Any] = app.handle("r/pays")
        if waits_for == "its probe":
            await becomes(run, lambda status: status.state == "waiting")
            await becomes(child, lambda status: status.steps)
        else:
            await becomes(run, lambda status: status.state == "waiting")
            await becomes(child, lambda status: status.health == "waiting_for_person")
        await child.pause("let me look")
        await becomes(child, lambda status: status.paused)
        fail.set()
        if waits_for == "its probe":
            await becomes(child, lambda status: status.steps[0].attempts and status.steps[0].attempts[0].ended_at)
        await run.cancel("no more")
        await is_undone(run)
    assert did == ["book train", "unbook train"]


async def test_a_child_that_keeps_what_it_did_still_ends_after_those_that_it_gave_up(app: App) -> None:
    did: list[str] = []
    book = a_booking(app, did)

    @app.workflow
    async def cruise() -> None:
        await book("cabin")
        await sleep("1h")

    @app.workflow(on_failure="keep")
    async def middle() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await cruise()
        raise ValueError("no")

    @app.workflow
    async def trip() -> None:
        await book("train")
        await middle()

    async with app.rooms():
        await is_undone(await app.start(trip))
    assert did == ["book train", "book cabin", "unbook cabin", "unbook train"]


async def test_a_child_of_the_part_before_a_rewind_is_undone_first(app: App) -> None:
    did: list[str] = []
    book = a_booking(app, did)

    @app.step
    async def look() -> bool:
        did.append("look")
        return did.count("look") == 1

    @app.workflow
    async def cruise() -> None:
        await book("cabin")
        await sleep("1h")

    @app.workflow
    async def trip() -> None:
        await book("train")
        if await look():
            await cruise()
        raise ValueError("no")

    async with app.rooms():
        run = await app.start(trip, id="r")
        await is_there(app.handle("r/cruise"))
        await run.rewind(to="look")
        with pytest.raises(RunFailed):
            await ends(run)
    assert did == ["book train", "look", "book cabin", "look", "unbook cabin", "unbook train"]


async def test_the_end_of_a_child_that_the_part_before_gave_up_is_nothing_to_the_next_part(app: App, ear: Ear) -> None:
    did: list[str] = []
    book = a_booking(app, did)

    @app.step
    async def refund(cruised: str) -> None:
        did.append("refund")

    @app.workflow(undo=refund)
    async def cruise() -> str:
        await book("cabin")
        await sleep("1h")
        return "seen"

    @app.workflow
    async def rest() -> None:
        await book("train")
        await receive("go")
        raise ValueError("no")

    @app.workflow
    async def trip() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await cruise()
        await sleep(0.1)  # it is given up while this part goes on
        await continue_as(rest)

    async with app.rooms():
        run = await app.start(trip, id="r")
        await is_there(app.handle("r/cruise"))
        await becomes(app.handle("r/cruise"), lambda status: status.state == "cancelled")
        await run.send("go", None)
        await is_undone(run)
    assert ear.of("turn.failed") == []
    assert did.index("unbook cabin") < did.index("unbook train")
    assert "refund" not in did


async def test_who_has_given_a_child_up_and_goes_on_does_not_say_that_it_waits_for_it(app: App) -> None:
    did: list[str] = []
    book = a_booking(app, did)

    @app.workflow
    async def cruise() -> None:
        await book("cabin")
        await sleep("1h")

    @app.workflow
    async def trip() -> None:
        await book("train")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await cruise()
        await receive("go")

    async with app.rooms():
        run = await app.start(trip, id="r")
        await is_there(app.handle("r/cruise"))
        await becomes(app.handle("r/cruise"), lambda status: status.state == "undoing")
        await becomes(run, lambda status: status.state == "waiting")
        assert "r/cruise" not in str(await run.explain())
        await run.send("go", None)
        await ends(run)
