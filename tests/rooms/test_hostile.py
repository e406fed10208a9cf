"""Hostile workflows: code that never yields, floods of messages, cancels in every moment, code that has changed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import App, Handle, RunCancelled, RunUndone, ask, receive, sleep
from watchbill.flow import watchdog
from watchbill.scheduler.entering import Entering
from watchbill.scheduler.scheduler import Scheduler

# --- code that never yields


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the watchdog look every 20 ms."""
    monkeypatch.setattr("watchbill.scheduler.scheduler.LOOK_EVERY", 20_000)
    monkeypatch.setattr(watchdog, "MOST_LOOKS", 3)


@pytest.mark.parametrize("swallows", [False, True])
@pytest.mark.usefixtures("quick")
async def test_code_that_never_yields_is_interrupted_and_held(app: App, ear: Ear, *, swallows: bool) -> None:
    spinning = True

    @app.workflow
    async def spins() -> str:
        await receive("go")
        while spinning:
            try:
                while spinning:
                    pass
            except BaseException:
                if not swallows:
                    raise
                break
        return "done"

    @app.workflow
    async def other() -> int:
        return 5

    async with app.rooms():
        run = await app.start(spins, id="r")
        await becomes(run, lambda status: status.state == "waiting")
        await run.send("go", None)
        [held] = await ear.hears("run.held", "r")
        assert held.note == "the workflow never yields: it ran for 5 s without waiting for anything"
        assert await ends(await app.start(other)) == 5  # nobody else is stopped by it
        assert "never yields" in ((await run.status()).held or "")
        spinning = False
        await run.retry()
        assert await ends(run) == "done"


@pytest.mark.usefixtures("quick")
async def test_what_ends_just_in_time_is_not_interrupted(app: App, ear: Ear) -> None:
    """Many that are interrupted or not by a hair: what is left of an interruption hits nobody else."""
    turns = 0

    @app.workflow
    async def busy(n: int) -> int:
        nonlocal turns
        turns += 1
        sum(range(150_000 * (n % 20)))
        return n

    async with app.rooms():
        runs = [await app.start(busy, n) for n in range(60)]
        await asyncio.gather(*(_ended_or_held(run, ear) for run in runs))
    assert ear.of("turn.failed") == []


async def _ended_or_held(run: Handle[Any], ear: Ear) -> None:
    await becomes(run, lambda status: status.state == "completed" or status.held)


# --- a cancel in every moment


def everything(app: App) -> dict[str, tuple[Any, Callable[[Handle[Any]], Coroutine[Any, Any, object]]]]:
    """Give runs that wait in every way there is, and how to wait until they do."""

    @app.step
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    @slow.undo
    async def unslow(result: str | None) -> None: ...

    @app.step
    async def book() -> int:
        return 1

    undoing = asyncio.Event()

    @book.undo
    async def unbook(result: int) -> None:
        await undoing.wait()

    @app.workflow
    async def steps() -> None:
        await slow()

    @app.workflow
    async def sleeps() -> None:
        await sleep("1h")

    @app.workflow
    async def receives() -> None:
        await receive("never")

    @app.workflow
    async def child() -> None:
        await sleeps()

    @app.workflow
    async def asks() -> None:
        await ask("really?", bool)

    @app.workflow
    async def fails() -> None:
        await book()
        raise ValueError("no")

    def until(state: str) -> Callable[[Handle[Any]], Coroutine[Any, Any, object]]:
        return lambda run: becomes(run, lambda status: status.state == state)

    async def at_once(run: Handle[Any]) -> None: ...

    async def paused(run: Handle[Any]) -> None:
        await run.pause("wait")
        await becomes(run, lambda status: status.paused)

    async def undone(run: Handle[Any]) -> None:
        await becomes(run, lambda status: status.state == "undoing")
        asyncio.get_running_loop().call_later(0.2, undoing.set)

    return {
        "begin": (sleeps, at_once),
        "step": (steps, until("running")),
        "sleep": (sleeps, until("waiting")),
        "receive": (receives, until("waiting")),
        "child": (child, until("waiting")),
        "ask": (asks, until("waiting")),
        "pause": (steps, paused),
        "undo": (fails, undone),
    }


@pytest.mark.parametrize("moment", ["begin", "step", "sleep", "receive", "child", "ask", "pause", "undo"])
async def test_a_cancel_in_every_moment_ends_the_run(app: App, ear: Ear, moment: str) -> None:
    workflow, reaches = everything(app)[moment]
    async with app.rooms():
        run = await app.start(workflow, id="r")
        await reaches(run)
        await run.cancel("enough")
        if moment == "pause":
            await run.resume()
        with pytest.raises(RunUndone if moment == "undo" else RunCancelled):
            await ends(run)
        if moment == "child":
            with pytest.raises(RunCancelled):
                await ends(app.handle("r/sleeps"))
    assert ear.of("turn.failed") == []


# --- floods


async def test_a_flood_of_messages_to_one_run(app: App) -> None:
    many = 2_000

    @app.workflow
    async def reads() -> int:
        return sum([await receive("n", int) for _ in range(many)])

    async with app.rooms():
        run = await app.start(reads)
        await asyncio.gather(*(run.send("n", n) for n in range(many)))
        assert await run.result(timeout=3 * LONG) == sum(range(many))


# --- long journals


async def test_a_long_replay_is_done_in_slices_between_the_turns_of_others(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, page = 1_200, 250
    monkeypatch.setattr("watchbill.scheduler.scheduler.SLICE", 0)  # a hundred entries each
    for place in ("sqlite", "postgres"):
        monkeypatch.setattr(f"watchbill.store.{place}.scheduler.JOURNAL_PAGE", page)
    pages: list[bool] = []
    read_on = Scheduler._read_on

    async def read(self: Scheduler, reading: Any) -> bool:
        pages.append(await read_on(self, reading))
        return pages[-1]

    monkeypatch.setattr(Scheduler, "_read_on", read)
    slices: list[bool] = []
    go_on = Entering.go_on

    def counted(self: Entering, *args: Any) -> bool:
        slices.append(go_on(self, *args))
        return slices[-1]

    def program(app: App) -> tuple[Any, Any]:
        @app.step
        async def one(n: int) -> int:
            return n

        @app.workflow
        async def long() -> int:
            got = await asyncio.gather(*(one(n) for n in range(many)))
            return sum(got) + await receive("more", int) + await receive("more", int)

        @app.workflow
        async def short() -> int:
            return await one(5)

        return long, short

    before = App(kept)
    async with before.rooms():
        run = await before.start(program(before)[0], id="r")
        await becomes(run, lambda status: status.state == "waiting")
    monkeypatch.setattr(Entering, "go_on", counted)
    for _ in range(2):  # the first time it is stopped in the middle
        after = App(kept)
        _, short = program(after)
        async with after.rooms():
            await after.handle("r").send("more", 1)
            assert await ends(await after.start(short)) == 5
    last = App(kept)
    program(last)
    async with last.rooms():
        assert await ends(last.handle("r")) == sum(range(many)) + 2
    assert slices.count(False) >= many // 100 - 1
    assert pages.count(False) >= many // page - 2
    assert pages.count(True) >= 1


async def test_a_long_run_that_cannot_be_driven_is_read_once_for_what_it_cannot_hear(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("sqlite", "postgres"):
        monkeypatch.setattr(f"watchbill.store.{place}.scheduler.JOURNAL_PAGE", 5)
    reads = 0
    read_on = Scheduler._read_on

    async def counted(self: Scheduler, reading: Any) -> bool:
        nonlocal reads
        reads += 1
        return await read_on(self, reading)

    monkeypatch.setattr(Scheduler, "_read_on", counted)
    first, other = App(kept), App(kept)

    @first.step
    async def one(n: int) -> int:
        return n

    @first.workflow
    async def long() -> int:
        for n in range(12):
            await one(n)
        return await receive("more", int)

    @other.workflow
    async def short() -> int:
        return 5

    async with first.rooms():
        await becomes(await first.start(long, id="r"), lambda status: status.state == "waiting")
    async with other.rooms():
        await other.handle("r").send("more", 1)
        for _ in range(20):
            assert await ends(await other.start(short)) == 5
    assert reads <= 4
    async with first.rooms():
        assert await ends(first.handle("r")) == 1


# --- code that has changed


async def test_two_versions_at_once_and_one_that_is_gone(kept: str) -> None:
    def first(app: App) -> Any:
        @app.workflow(name="wf", version=1)
        async def old() -> str:
            return f"old {await receive('n', int)}"

        return old

    def second(app: App) -> Any:
        @app.workflow(name="wf", version=2)
        async def new() -> str:
            return f"new {await receive('n', int)}"

        return new

    before = App(kept)
    old, new = first(before), second(before)
    async with before.rooms():
        runs = [await before.start(old, id="old"), await before.start(new, id="new")]
        for run in runs:
            await becomes(run, lambda status: status.state == "waiting")
    between = App(kept)
    second(between)
    async with between.rooms():
        for id in ("old", "new"):
            await between.handle(id).send("n", 1)
        assert await ends(between.handle("new")) == "new 1"
        assert (await between.handle("old").status()).state == "waiting"  # its code is not here: nobody touches it
    after = App(kept)
    first(after)
    async with after.rooms():
        assert await ends(after.handle("old")) == "old 1"


async def test_arguments_of_another_type_leave_the_run_open_until_the_code_fits(kept: str) -> None:
    def with_type(app: App, kind: type) -> Any:
        async def wf(n: Any) -> str:
            return f"{n} {await receive('go', str)}"

        wf.__annotations__["n"] = kind
        return app.workflow(wf)

    before = App(kept)
    async with before.rooms():
        run = await before.start(with_type(before, int), 5, id="r")
        await becomes(run, lambda status: status.state == "waiting")
    between = App(kept)
    with_type(between, list)
    async with between.rooms():
        await between.handle("r").send("go", "on")
        status = await becomes(between.handle("r"), lambda status: status.state == "diverged")
        assert status.state == "diverged"
    after = App(kept)
    with_type(after, int)
    async with after.rooms():
        assert await ends(after.handle("r")) == "5 on"
