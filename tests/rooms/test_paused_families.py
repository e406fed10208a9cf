"""Paused families: a pause reaches the runs below a run, and a paused run does not complete."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import (
    App,
    Handle,
    InvalidOptionError,
    RunCancelled,
    RunFailed,
    RunNotFound,
    RunStatus,
    RunUndone,
    continue_as,
    receive,
    sleep,
)
from watchbill.events import RUN_PAUSED, RUN_UNPAUSED
from watchbill.model.run import FOR_RESUME
from watchbill.scheduler.scheduler import Scheduler
from watchbill.store.protocol import Turn
from watchbill.testing.watch import Watch


class Family:
    """Three generations. The last one takes steps, and the middle one can, too; each step waits for a permit."""

    def __init__(self, app: App, region: str | None = None) -> None:
        self.begun: list[str] = []
        self._permits = asyncio.Semaphore(0)

        @app.step
        async def count(name: str) -> None:
            self.begun.append(name)
            await self._permits.acquire()

        @app.workflow(region=region)
        async def child(name: str, many: int) -> str:
            for _ in range(many):
                await count(name)
            return name

        @app.workflow
        async def parent(name: str, many: int, before: int = 0) -> str:
            for _ in range(before):
                await count(f"before {name}")
            return await child(name, many)

        @app.workflow
        async def grandparent(names: list[str], many: int) -> list[str]:
            return list(await asyncio.gather(*(parent(name, many) for name in names)))

        self.child, self.parent, self.grandparent = child, parent, grandparent

    def permit(self, many: int) -> None:
        for _ in range(many):
            self._permits.release()


def is_paused(status: RunStatus) -> bool:
    return status.paused


def goes_on(status: RunStatus) -> bool:
    return not status.paused


def has_steps(states: list[str], status: RunStatus) -> bool:
    return [step.state for step in status.steps] == states


def outcome_waits(status: RunStatus) -> bool:
    return status.waiting_for == FOR_RESUME


async def until(fits: Callable[[], object]) -> None:
    async with asyncio.timeout(LONG):
        while not fits():
            await asyncio.sleep(LOOK_EVERY)


async def is_there(handle: Handle[Any], fits: Callable[[RunStatus], object]) -> RunStatus:
    """Wait until a run has been started and fits."""
    async with asyncio.timeout(LONG):
        while True:
            with contextlib.suppress(RunNotFound):
                if fits(status := await handle.status()):
                    return status
            await asyncio.sleep(LOOK_EVERY)


# --- whom it reaches


async def test_a_pause_reaches_children_and_grandchildren_and_a_resume_lets_all_complete(app: App, ear: Ear) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.grandparent, ["a", "b"], 3, id="g")
        ids = ["g", "g/parent", "g/parent.2", "g/parent/child", "g/parent.2/child"]
        tree: list[Handle[Any]] = [app.handle(id) for id in ids]
        await until(lambda: sorted(family.begun) == ["a", "b"])
        run.by = "ada"
        await run.pause("a flood")
        for one in tree:
            status = await becomes(one, is_paused)
            assert (status.paused_by, status.paused_why) == ("ada", "a flood")
            assert status.paused_with == (None if one.id == "g" else "g")
        explained = await tree[-1].explain()
        assert "It has been paused with run 'g', which is above it, by ada for " in str(explained)
        assert explained.reasons[0].next == "whoever resumes run 'g'"
        notes = [event.note for event in await tree[-1].timeline() if event.kind == "pause"]
        assert notes == ["by ada, with run 'g': a flood"]
        family.permit(2)
        for one in tree[3:]:
            await becomes(one, partial(has_steps, ["completed"]))
        assert sorted(family.begun) == ["a", "b"]
        family.permit(4)
        await run.resume()
        assert await ends(run) == ["a", "b"]
        assert [(await one.status()).paused for one in tree] == [False] * 5
    assert {event.run for event in ear.of(RUN_PAUSED)} == set(ids) == {event.run for event in ear.of(RUN_UNPAUSED)}
    assert len(ear.of(RUN_PAUSED)) == len(ear.of(RUN_UNPAUSED)) == 5
    assert sorted(family.begun) == ["a"] * 3 + ["b"] * 3


async def test_a_pause_of_the_run_alone_leaves_its_children_running(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.parent, "a", 3, id="p")
        await until(lambda: family.begun)
        await run.pause("let me look", children=False)
        await becomes(run, is_paused)
        family.permit(3)
        child: Handle[str] = app.handle("p/child")
        assert await ends(child) == "a"
        await becomes(run, outcome_waits)
        await run.resume()
        assert await ends(run) == "a"


async def test_a_second_pause_reaches_the_children_that_the_first_one_left_running(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.parent, "a", 2, id="p")
        child: Handle[str] = app.handle("p/child")
        await until(lambda: family.begun)
        await run.pause("only this one", children=False)
        await becomes(run, is_paused)
        assert not (await child.status()).paused
        await run.pause("and all below")
        await becomes(child, is_paused)
        await run.pause("this changes nothing", children=False)
        await run.resume()
        await becomes(child, goes_on)
        family.permit(2)
        assert await ends(run) == "a"


async def test_a_paused_run_starts_no_child_before_it_is_resumed(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.parent, "a", 1, 1, id="p")
        await until(lambda: family.begun)
        await run.pause()
        await becomes(run, is_paused)
        family.permit(2)
        await becomes(run, lambda status: status.waiting_for == "run 'p/child'")
        with pytest.raises(RunNotFound):
            await app.handle("p/child").status()
        await run.resume()
        assert await ends(run) == "a"


async def test_a_child_whose_start_is_under_way_in_the_turn_that_takes_in_the_pause_waits(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler is kept from its next turn until the end of a step and a pause wait for it together."""
    family = Family(app)
    both, waits = asyncio.Event(), False
    turn, starts = Scheduler._turn, list[list[str]]()

    async def patient(scheduler: Scheduler) -> Any:
        if waits:
            await both.wait()
        return await turn(scheduler)

    write = Scheduler._write

    async def seen(scheduler: Scheduler, turn: Turn, **options: bool) -> bool:
        starts.append([new.id for new in turn.starts])
        return await write(scheduler, turn, **options)

    monkeypatch.setattr(Scheduler, "_turn", patient)
    monkeypatch.setattr(Scheduler, "_write", seen)
    async with app.rooms():
        run = await app.start(family.parent, "a", 1, 1, id="p")
        await until(lambda: family.begun)
        waits = True
        await becomes(run, lambda status: status.state == "running")
        await run.pause()
        family.permit(1)
        await asyncio.sleep(0)
        both.set()
        await becomes(run, is_paused)
        await becomes(run, lambda status: status.waiting_for == "run 'p/child'")
        with pytest.raises(RunNotFound):
            await app.handle("p/child").status()
        assert not any(starts[1:])
        family.permit(1)
        await run.resume()
        assert await ends(run) == "a"


@pytest.mark.parametrize("restart", [False, True])
async def test_a_child_that_has_not_begun_when_its_parent_is_paused_begins_after_the_resume(
    kept: str, restart: bool
) -> None:
    """Nobody serves its region at first: it lives in a shard of another scheduler."""
    here = App(kept)
    family = Family(here, region="eu")
    async with here.rooms():
        run = await here.start(family.parent, "a", 1, id="p")
        child: Handle[str] = here.handle("p/child")
        await is_there(child, lambda status: status.state == "scheduled")
        await run.pause("a flood")
        await becomes(run, is_paused)
    there = App(kept)
    other = Family(there, region="eu")
    other.permit(1)
    async with there.rooms(region="eu"):
        assert (await becomes(there.handle("p/child"), is_paused)).state == "scheduled"
    if restart:
        async with here.rooms():
            assert (await run.status()).paused
    async with here.rooms():
        await run.resume()
        await becomes(run, goes_on)
    assert other.begun == []
    async with there.rooms(region="eu"):
        assert await ends(there.handle("p/child")) == "a"
    async with here.rooms():
        assert await ends(run) == "a"
    assert other.begun == ["a"]


async def test_parent_and_child_of_two_schedulers_are_paused_and_resumed_together(
    postgres_url: str, request: Any
) -> None:
    from tests.rooms.conftest import emptied_postgres

    url = await asyncio.to_thread(emptied_postgres, request)
    here, there = App(url), App(url)
    family, other = Family(here, region="eu"), Family(there, region="eu")
    async with here.rooms(), there.rooms(region="eu"):
        run = await here.start(family.parent, "a", 3, id="p")
        child: Handle[str] = here.handle("p/child")
        await until(lambda: other.begun)
        for done in (["completed"], ["completed"] * 2):
            await run.pause()
            await becomes(child, is_paused)
            other.permit(1)
            await becomes(child, partial(has_steps, done))
            assert len(other.begun) == len(done)
            await run.resume()
            await becomes(child, partial(has_steps, [*done, "running"]))
        other.permit(1)
        assert await ends(run) == "a"


async def test_a_thousand_children_are_paused_and_resumed_by_few_transactions(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.workflow
    async def child(n: int) -> int:
        await receive("go")
        return n

    @app.workflow
    async def parent(many: int) -> int:
        return len(await asyncio.gather(*(child(n) for n in range(many))))

    written = 0
    write = Scheduler._write

    async def counted(scheduler: Scheduler, turn: Turn, **options: bool) -> bool:
        nonlocal written
        written += 1
        return await write(scheduler, turn, **options)

    async with app.rooms():
        run = await app.start(parent, 1_000, id="p")
        children: list[Handle[int]] = [app.handle(id) for id in ("p/child", *(f"p/child.{n}" for n in range(2, 1_001)))]
        for one in children:
            await is_there(one, lambda status: status.state == "waiting")
        monkeypatch.setattr(Scheduler, "_write", counted)
        await run.pause()
        for one in children:
            await becomes(one, is_paused)
        assert written < 50
        written = 0
        await run.resume()
        for one in children:
            await becomes(one, goes_on)
        assert written < 50
        await asyncio.gather(*(one.send("go", None) for one in children))
        assert await ends(run) == 1_000


# --- what a resume lets go on


async def test_a_child_that_was_paused_itself_stays_paused_when_its_parent_is_resumed(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.parent, "a", 2, id="p")
        child: Handle[str] = app.handle("p/child")
        await until(lambda: family.begun)
        child.by, run.by = "bob", "ada"
        await child.pause("my own")
        await becomes(child, is_paused)
        await run.pause("a flood")
        status = await becomes(child, lambda status: status.paused_with)
        assert (status.paused_by, status.paused_why, status.paused_with) == ("bob", "my own", "p")
        explained = str(await child.explain())
        assert "It has been paused by bob for " in explained
        assert "It has been paused with run 'p', which is above it, by ada for " in explained
        await run.resume()
        status = await becomes(child, lambda status: status.paused_with is None)
        assert (status.paused, status.paused_by) == (True, "bob")
        assert not (await run.status()).paused
        await child.resume()
        await becomes(child, goes_on)
        family.permit(2)
        assert await ends(run) == "a"


async def test_a_resume_of_a_child_that_is_paused_with_its_parent_changes_nothing_and_says_so(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.parent, "a", 2, id="p")
        child: Handle[str] = app.handle("p/child")
        await until(lambda: family.begun)
        await run.pause()
        await becomes(child, is_paused)
        child.by = "bob"
        await child.resume()
        async with asyncio.timeout(LONG):
            while not (refused := [event for event in await child.timeline() if event.kind == "refused"]):
                await asyncio.sleep(LOOK_EVERY)
        assert refused[0].note == (
            "a resume by bob changed nothing: the run is paused with the run above it, and goes on with that"
        )
        assert (await child.status()).paused
        await run.resume()
        family.permit(2)
        assert await ends(run) == "a"


async def test_the_last_of_many_orders_counts(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.grandparent, ["a"], 2, id="g")
        child: Handle[str] = app.handle("g/parent/child")
        await until(lambda: family.begun)
        for _ in range(10):
            await run.pause()
            await run.resume()
        await run.pause()
        await becomes(child, is_paused)
        family.permit(1)
        await becomes(child, partial(has_steps, ["completed"]))
        assert (await child.status()).paused
        await run.resume()
        family.permit(1)
        assert await ends(run) == ["a"]


# --- a paused run does not complete


@pytest.mark.parametrize("fails", [False, True])
async def test_the_outcome_of_a_paused_run_waits_across_a_restart(kept: str, fails: bool) -> None:
    def program(app: App) -> Any:
        @app.workflow
        async def waits() -> str:
            said = await receive("m", str)
            if fails:
                raise ValueError(said)
            return said

        @app.workflow
        async def parent() -> str:
            return await waits()

        return parent

    before = App(kept)
    async with before.rooms():
        run = await before.start(program(before), id="p")
        child: Handle[str] = before.handle("p/waits")
        await is_there(child, lambda status: status.state == "waiting")
        await run.pause()
        await becomes(child, is_paused)
        await child.send("m", "hello")
        assert (await becomes(child, outcome_waits)).state == "waiting"
        assert "Its code has ended. The run ends with that outcome when it is resumed." in str(await child.explain())
    after = App(kept)
    program(after)
    async with after.rooms():
        run, child = after.handle("p"), after.handle("p/waits")
        await child.send("m", "too late")
        assert outcome_waits(await child.status())
        assert (await run.status()).waiting_for == "run 'p/waits'"
        await run.resume()
        if fails:
            with pytest.raises(RunFailed, match="hello"):
                await ends(run)
        else:
            assert await ends(run) == "hello"


async def test_a_cancel_after_the_outcome_of_a_paused_run_ends_it_with_that(app: App) -> None:
    @app.workflow
    async def waits() -> str:
        return await receive("m", str)

    async with app.rooms():
        run = await app.start(waits)
        await becomes(run, lambda status: status.state == "waiting")
        await run.pause()
        await becomes(run, is_paused)
        await run.send("m", "hello")
        await becomes(run, outcome_waits)
        await run.cancel("too late")
        assert await ends(run) == "hello"
        assert not (await run.status()).paused


async def test_a_run_whose_outcome_waits_is_rewound(app: App) -> None:
    ran = []

    @app.step
    async def one() -> int:
        ran.append(1)
        return len(ran)

    @app.workflow
    async def waits() -> tuple[int, str]:
        return await one(), await receive("m", str)

    async with app.rooms():
        run = await app.start(waits)
        await becomes(run, lambda status: status.state == "waiting")
        await run.pause()
        await becomes(run, is_paused)
        await run.send("m", "hello")
        await becomes(run, outcome_waits)
        await run.rewind("one")
        await becomes(run, lambda status: not outcome_waits(status))
        assert (await run.status()).paused
        await run.resume()
        assert await ends(run) == (2, "hello")


timed = App("sqlite:////nowhere/at/all.db")


@timed.workflow(deadline="1h")
async def waits_an_hour() -> str:
    return await receive("m", str)


def test_the_deadline_of_a_paused_run_passes_and_it_fails_when_it_is_resumed(watch: Watch) -> None:
    run = watch.start(waits_an_hour)
    run.pause()
    assert run.status().paused
    watch.jump("2h")
    assert outcome_waits(run.status())
    run.resume()
    with pytest.raises(RunFailed, match="deadline"):
        run.result()


async def test_a_paused_run_goes_on_as_its_next_part_and_starts_nothing(app: App) -> None:
    family = Family(app)
    family.permit(1)

    @app.workflow
    async def parts(n: int) -> str:
        await receive("next")
        if n == 0:
            await continue_as(parts, 1)
        return await family.child("a", 1)

    async with app.rooms():
        run = await app.start(parts, 0, id="r")
        await becomes(run, lambda status: status.state == "waiting")
        await run.pause()
        await becomes(run, is_paused)
        await run.send("next", None)
        await run.send("next", None)
        await becomes(run, lambda status: status.waiting_for == "run 'r/child~2'")
        assert family.begun == []
        await run.resume()
        assert await ends(run) == "a"


# --- how a paused run is stopped


async def test_a_cancel_of_a_paused_tree_ends_all_of_it(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.grandparent, ["a", "b"], 2, id="g")
        await until(lambda: len(family.begun) == 2)
        await run.pause()
        tree: list[Handle[Any]] = [app.handle(id) for id in ("g/parent", "g/parent/child", "g/parent.2/child", "g")]
        for one in tree:
            await becomes(one, is_paused)
        await run.cancel("not wanted")
        for one in tree:
            status = await becomes(one, lambda status: status.state == "cancelled")
            assert not status.paused
    assert len(family.begun) == 2


@pytest.mark.parametrize("undoes", ["parent", "child"])
async def test_what_a_cancelled_paused_tree_did_is_undone(app: App, undoes: str) -> None:
    """A parent that waits for its child to be undone is resumed; one that has ended has let its child go on."""
    did: list[str] = []

    @app.step
    async def book(what: str) -> str:
        did.append(f"book {what}")
        return what

    @book.undo
    async def unbook(booked: str | None, what: str) -> None:
        did.append(f"unbook {what}")

    @app.workflow
    async def child() -> None:
        await book("cabin")
        await sleep("1h")

    @app.workflow
    async def parent() -> None:
        if undoes == "parent":
            await book("train")
        await child()

    async with app.rooms():
        run = await app.start(parent, id="p")
        below: Handle[None] = app.handle("p/child")
        await is_there(below, lambda status: status.state == "waiting")
        await run.pause()
        await becomes(below, is_paused)
        await run.cancel("not wanted")
        if undoes == "parent":
            await becomes(below, lambda status: status.state == "undoing")
            assert not [word for word in did if word.startswith("unbook")]
            await run.resume()
        with pytest.raises((RunCancelled, RunUndone)):
            await ends(run)
        with pytest.raises(RunCancelled):
            await ends(below)
    assert [word for word in did if word.startswith("unbook")] == (
        ["unbook cabin", "unbook train"] if undoes == "parent" else ["unbook cabin"]
    )


async def test_a_run_that_fails_while_it_is_paused_is_undone_when_it_is_resumed(app: App) -> None:
    did: list[str] = []

    @app.step
    async def book() -> None:
        did.append("book")

    @book.undo
    async def unbook(booked: None) -> None:
        did.append("unbook")

    @app.workflow
    async def trip() -> None:
        await book()
        await receive("m")
        raise ValueError("no")

    async with app.rooms():
        run = await app.start(trip)
        await becomes(run, lambda status: status.state == "waiting")
        await run.pause()
        await becomes(run, is_paused)
        await run.send("m", None)
        status = await becomes(run, lambda status: status.state == "undoing")
        assert status.paused
        assert did == ["book"]
        await run.resume()
        with pytest.raises(RunUndone):
            await ends(run)
    assert did == ["book", "unbook"]


async def test_a_copy_of_a_paused_run_is_not_paused(app: App) -> None:
    family = Family(app)
    family.permit(1)
    async with app.rooms():
        run = await app.start(family.child, "a", 2, id="r")
        await until(lambda: len(family.begun) == 2)
        await run.pause()
        await becomes(run, is_paused)
        family.permit(2)
        copy = await run.fork("count")
        assert await ends(copy) == "a"
        assert (await run.status()).paused


async def test_a_child_whose_code_does_not_fit_is_paused_and_resumed_with_its_parent(kept: str) -> None:
    def program(app: App, *, fits: bool) -> Any:
        @app.step
        async def one() -> int:
            return 1

        @app.step
        async def other() -> int:
            return 1

        @app.workflow
        async def child() -> str:
            await (one if fits else other)()
            return await receive("m", str)

        @app.workflow
        async def parent() -> str:
            return await child()

        return parent

    before = App(kept)
    async with before.rooms():
        run = await before.start(program(before, fits=True), id="p")
        await is_there(before.handle("p/child"), lambda status: status.state == "waiting")
    between = App(kept)
    program(between, fits=False)
    async with between.rooms():
        child: Handle[str] = between.handle("p/child")
        await child.send("m", "hello")
        await becomes(child, lambda status: status.state == "diverged")
        await between.handle("p").pause()
        await becomes(child, is_paused)
    after = App(kept)
    program(after, fits=True)
    async with after.rooms():
        run, child = after.handle("p"), after.handle("p/child")
        await becomes(child, outcome_waits)
        await run.resume()
        assert await ends(run) == "hello"


# --- how it is asked for


async def test_what_is_no_yes_or_no_is_refused(app: App) -> None:
    family = Family(app)
    run = await app.start(family.child, "a", 1)
    with pytest.raises(InvalidOptionError, match=r"pause\(children=\) is True or False, got 'no'"):
        await run.pause(children="no")  # type: ignore[arg-type]


async def test_a_synchronous_program_pauses_a_run_alone(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.parent, "a", 1, id="p")
        await until(lambda: family.begun)
        await asyncio.to_thread(lambda: app.sync.handle("p").pause("a flood", children=False))
        await becomes(run, is_paused)
        assert not (await app.handle("p/child").status()).paused
        await asyncio.to_thread(lambda: app.sync.handle("p").resume())
        family.permit(1)
        assert await ends(run) == "a"
