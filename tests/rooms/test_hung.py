"""Attempts that do not stop when they are asked to, and cannot be made to: an undo waits until they have returned."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rooms import alone
from tests.rooms.scene import LONG, LOOK_EVERY, becomes, ends
from watchbill import App, Handle, Permanent, Retry, RunCancelled, RunFailed, RunUndone, attempt, receive

GRACE = 200_000  # instead of ten seconds


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("sqlite.scheduler", "postgres.turn"):
        monkeypatch.setattr(f"watchbill.store.{place}.CANCEL_GRACE", GRACE)


class Trip:
    """A step that hangs until it is let go, in a thread or on the loop, beside one that fails when it is told to."""

    def __init__(self, app: App) -> None:
        self.did: list[str] = []
        self.begun, self.go, self.returned = threading.Event(), threading.Event(), threading.Event()

        @app.step(retry=Retry(1, backoff="1ms"))
        def hangs(fails: int = 0) -> str:
            if attempt().number <= fails:
                raise ConnectionError
            self.begun.set()
            self.go.wait(LONG)
            self.did.append("hung")
            self.returned.set()
            return "h-1"

        @hangs.undo
        async def unhangs(result: str | None, fails: int = 0) -> None:
            self.did.append(f"undo {result}")

        @app.step
        async def swallows() -> str:
            self.begun.set()
            while not self.go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)
            self.did.append("hung")
            self.returned.set()
            return "s-1"

        @swallows.undo
        async def unswallows(result: str | None) -> None:
            self.did.append(f"undo {result}")

        @app.workflow
        async def trip(kind: str, tries: int = 0) -> None:
            async def fails() -> None:
                await receive("fail")
                raise Permanent("no")

            await asyncio.gather(hangs(tries) if kind == "thread" else swallows(), fails())

        @app.workflow
        async def gives_up(kind: str) -> None:
            running = asyncio.ensure_future(hangs() if kind == "thread" else swallows())
            await receive("fail")
            running.cancel()
            raise Permanent("no")

        self.trip, self.gives_up = trip, gives_up

    async def hung(self) -> None:
        """Wait until the step hangs."""
        assert await asyncio.to_thread(self.begun.wait, LONG)


@pytest.fixture
def trip(app: App) -> Iterator[Trip]:
    trip = Trip(app)
    yield trip
    trip.go.set()


async def is_undone(run: Handle[Any]) -> None:
    with pytest.raises(RunUndone):
        await ends(run)


async def is_left_to_end(run: Handle[Any]) -> None:
    """Wait until the grace is over, and the supervisor has said that it waits."""
    async with asyncio.timeout(LONG):
        while not any(event.kind == "let_it_end" for event in await run.timeline()):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("visible", [False, True])
@pytest.mark.parametrize("kind", ["thread", "loop"])
async def test_an_undo_waits_for_what_does_not_stop_until_it_has_returned(
    app: App, trip: Trip, *, kind: str, visible: bool
) -> None:
    async with app.rooms():
        run = await app.start(trip.trip, kind)
        await trip.hung()
        if visible:
            await becomes(run, lambda status: [step.state for step in status.steps] == ["running"])  # it has a row
        await run.send("fail", None)
        await is_left_to_end(run)
        assert trip.did == []
        trip.go.set()
        await is_undone(run)
        assert trip.did[0] == "hung"
        assert len(trip.did) == 2


@pytest.mark.parametrize("kind", ["thread", "loop"])
async def test_a_cancelled_run_is_undone_when_what_does_not_stop_has_returned(
    app: App, trip: Trip, *, kind: str
) -> None:
    async with app.rooms():
        run = await app.start(trip.trip, kind)
        await trip.hung()
        await run.cancel("enough")
        await is_left_to_end(run)
        assert trip.did == []
        trip.go.set()
        with pytest.raises(RunCancelled, match="enough"):
            await ends(run)
        assert trip.did[0] == "hung"


@pytest.mark.parametrize("kind", ["thread", "loop"])
async def test_an_undo_waits_for_what_the_workflow_had_given_up(app: App, trip: Trip, *, kind: str) -> None:
    async with app.rooms():
        run = await app.start(trip.gives_up, kind)
        await trip.hung()
        await run.send("fail", None)
        await is_left_to_end(run)
        assert trip.did == []
        trip.go.set()
        await is_undone(run)
        assert trip.did[0] == "hung"


async def test_an_undo_waits_for_a_leased_attempt_in_a_thread(app: App, trip: Trip) -> None:
    async with app.rooms():
        run = await app.start(trip.trip, "thread", 1)
        await trip.hung()
        await run.send("fail", None)
        await is_left_to_end(run)
        assert trip.did == []
        trip.go.set()
        await is_undone(run)
        assert trip.did[0] == "hung"


async def test_what_does_not_stop_is_not_tried_again_however_short_its_timeout(app: App) -> None:
    begun: list[int] = []
    hangs, did = threading.Event(), threading.Event()

    @app.step(timeout="3s", retry=Retry(3, backoff="1ms"))  # longer than it takes to have a row
    def stubborn() -> None:
        begun.append(attempt().number)
        hangs.wait(LONG)

    @stubborn.undo
    async def undo(result: None) -> None:
        did.set()

    @app.workflow
    async def trip() -> None:
        async def fails() -> None:
            await receive("fail")
            raise Permanent("no")

        await asyncio.gather(stubborn(), fails())

    async with app.rooms():
        run = await app.start(trip)
        async with asyncio.timeout(LONG):
            while not begun:
                await asyncio.sleep(LOOK_EVERY)
        await run.send("fail", None)
        await is_left_to_end(run)
        hangs.set()
        await is_undone(run)
        assert (begun, did.is_set()) == ([1], True)


async def test_what_waits_for_a_thread_that_hangs_has_not_begun_and_is_not_waited_for(app: App, trip: Trip) -> None:
    occupied = threading.Event()

    @app.step
    def occupies() -> None:
        occupied.set()
        trip.go.wait(LONG)

    @app.workflow
    async def first() -> None:
        await occupies()

    async with app.rooms(threads=1):
        blocks = await app.start(first)
        assert await asyncio.to_thread(occupied.wait, LONG)
        run = await app.start(trip.trip, "thread")
        await becomes(run, lambda status: status.state == "running")
        await run.send("fail", None)
        with pytest.raises(RunFailed) as caught:
            await ends(run)
        assert type(caught.value) is RunFailed, "there was nothing to undo"
        trip.go.set()
        await ends(blocks)
    assert trip.did == []


async def test_a_process_that_ignores_signals_is_killed_and_then_undone(kept: str, folder: Path) -> None:
    app = App(kept)
    lives: list[bool] = []
    mark = folder / "pid"
    ignores = app.step(isolation="own", retry=0)(alone.ignores_signals.plain)

    @ignores.undo
    def undo(result: None, mark: str) -> None:
        lives.append(Path(f"/proc/{Path(mark).read_text()}").exists())

    @app.workflow
    async def trip() -> None:
        async def fails() -> None:
            await receive("fail")
            raise Permanent("no")

        await asyncio.gather(ignores(str(mark)), fails())

    async with app.rooms():
        run = await app.start(trip)
        async with asyncio.timeout(LONG):
            while not mark.exists():
                await asyncio.sleep(0.01)
        await run.send("fail", None)
        await is_undone(run)
    assert lives == [False], "it is gone before anything is undone"
