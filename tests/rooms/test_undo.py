"""Undo: what a run that failed has done is undone, in reverse order of start, one at a time."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import (
    Ambiguous,
    App,
    Escalate,
    NotDone,
    Permanent,
    Retry,
    RunCancelled,
    RunFailed,
    RunUndoFailed,
    RunUndone,
    WatchbillError,
    receive,
    sleep,
)
from watchbill.model.facts import FactKind
from watchbill.testing.watch import Watch, Watched


class Saga:
    """Steps that can be undone, and a list of all that happened."""

    def __init__(self, app: App, *, on_failure: Any = "undo") -> None:
        self.did: list[str] = []
        self.broken: set[str] = set()

        @app.step(retry=0)
        async def book(what: str) -> str:
            if what in self.broken:
                raise Permanent(f"no {what}")
            self.did.append(f"book {what}")
            return f"{what}-1"

        @book.undo
        async def unbook(booked: str, what: str) -> None:
            if f"undo {what}" in self.broken:
                raise Permanent(f"{what} stays")
            self.did.append(f"unbook {what} {booked}")

        @app.workflow(on_failure=on_failure)
        async def trip(*places: str) -> list[str]:
            return [await book(place) for place in places]

        self.trip = trip


async def test_what_was_done_is_undone_in_reverse_order(app: App) -> None:
    saga = Saga(app)
    saga.broken = {"car"}
    async with app.rooms():
        run = await app.start(saga.trip, "train", "hotel", "car", "boat")
        with pytest.raises(RunUndone, match="no car") as caught:
            await ends(run)
        assert isinstance(caught.value, RunFailed)
        assert caught.value.step == "book"
        assert (await run.status()).state == "undone"
    assert saga.did == ["book train", "book hotel", "unbook hotel hotel-1", "unbook train train-1"]


async def test_with_nothing_to_undo_it_simply_failed(app: App) -> None:
    saga = Saga(app)
    saga.broken = {"train"}
    async with app.rooms():
        with pytest.raises(RunFailed) as caught:
            await ends(await app.start(saga.trip, "train"))
    assert type(caught.value) is RunFailed


async def test_what_is_kept_is_not_undone(app: App) -> None:
    saga = Saga(app, on_failure="keep")
    saga.broken = {"hotel"}
    async with app.rooms():
        with pytest.raises(RunFailed):
            await ends(await app.start(saga.trip, "train", "hotel"))
    assert saga.did == ["book train"]


async def test_an_undo_that_fails_does_not_stop_the_others(app: App) -> None:
    saga = Saga(app)
    saga.broken = {"car", "undo hotel"}
    async with app.rooms():
        run = await app.start(saga.trip, "train", "hotel", "car")
        with pytest.raises(RunUndoFailed, match="hotel stays"):
            await ends(run)
        assert (await run.status()).state == "undo_failed"
    assert saga.did[-1] == "unbook train train-1"


async def test_an_undo_that_keeps_failing_is_tried_again_and_then_waits_for_a_person(app: App, ear: Ear) -> None:
    did: list[str] = []
    mended = [False]

    @app.step(retry=Retry(1, backoff="1ms"), then=[Escalate("travel")])
    async def unbook(result: str, what: str) -> None:
        did.append(f"unbook {what}")
        if what == "hotel" and not mended[0]:
            raise ConnectionError("no line")

    @app.step(undo=unbook)
    async def book(what: str) -> str:
        return what

    @app.workflow
    async def trip() -> None:
        for what in ("train", "hotel"):
            await book(what)
        raise ValueError("no")

    async with app.rooms():
        run = await app.start(trip, id="r")
        [told] = await ear.hears("step.escalated", "r")
        assert told.step == "unbook"
        status = await run.status()
        assert (status.state, status.health) == ("undoing", "waiting_for_person")
        mended[0] = True
        await run.retry()
        with pytest.raises(RunUndone):
            await ends(run)
    assert did == ["unbook hotel", "unbook hotel", "unbook hotel", "unbook train"]


async def test_a_cancelled_run_is_undone_too(app: App) -> None:
    saga = Saga(app)

    @app.workflow
    async def waits() -> None:
        await saga.trip.plain("train")
        await sleep("1h")

    async with app.rooms():
        run = await app.start(waits)
        await becomes(run, lambda status: status.state == "waiting")
        await run.cancel("no")
        with pytest.raises(RunCancelled, match="no"):
            await ends(run)
    assert saga.did == ["book train", "unbook train train-1"]


async def test_an_undo_waits_until_what_runs_has_ended(app: App) -> None:
    """A thread cannot be stopped: its result comes all the same, and is undone, not before."""
    did: list[str] = []
    begun, go = threading.Event(), threading.Event()

    @app.step
    def slow() -> str:
        begun.set()
        go.wait(20)
        did.append("slow")
        return "s-1"

    @slow.undo
    async def unslow(result: str) -> None:
        did.append(f"unslow {result}")

    @app.step(retry=0)
    async def fails() -> None:
        await asyncio.to_thread(begun.wait, 20)
        raise Permanent("no")

    @app.workflow
    async def both() -> None:
        await asyncio.gather(slow(), fails())

    async with app.rooms():
        run = await app.start(both)
        await becomes(run, lambda status: status.state == "undoing")
        assert did == []
        go.set()
        with pytest.raises(RunUndone):
            await ends(run)
    assert did == ["slow", "unslow s-1"]


async def test_an_async_step_that_was_stopped_is_undone_without_a_result(app: App) -> None:
    did: list[object] = []

    @app.step
    async def slow() -> str:
        await asyncio.sleep(60)
        return "never"

    @slow.undo
    async def unslow(result: str | None) -> None:
        did.append(result)

    @app.step(retry=0)
    async def fails() -> None:
        raise Permanent("no")

    @app.workflow
    async def both() -> None:
        await asyncio.gather(slow(), fails())

    async with app.rooms():
        with pytest.raises(RunUndone):
            await ends(await app.start(both))
    assert did == [None], "it began, and nobody knows how far it came"


async def test_a_visible_attempt_is_stopped_and_waited_for(app: App) -> None:
    did: list[object] = []

    @app.step
    async def slow() -> str:
        await asyncio.sleep(60)
        return "never"

    @slow.undo
    async def unslow(result: str | None) -> None:
        did.append(result)

    @app.workflow
    async def both() -> None:
        running = asyncio.create_task(slow())
        await receive("fail")
        running.add_done_callback(lambda _: None)
        raise ValueError("no")

    async with app.rooms():
        run = await app.start(both)
        await becomes(run, lambda status: [step.state for step in status.steps] == ["running"])  # it has a row by now
        await run.send("fail", None)
        with pytest.raises(RunUndone):
            await ends(run)
    assert did == [None]


async def test_an_undo_goes_on_after_a_restart(kept: str) -> None:
    def saga(app: App, did: list[str], *, stuck: bool) -> Any:
        @app.step
        async def book(n: int) -> int:
            did.append(f"book {n}")
            return n

        @book.undo
        async def unbook(result: int, n: int) -> None:
            did.append(f"unbook {n}")
            if n == 2 and stuck:
                await asyncio.sleep(60)

        @app.workflow
        async def trip() -> None:
            for n in (1, 2, 3):
                await book(n)
            raise ValueError("no")

        return trip

    did: list[str] = []
    before = App(kept)
    async with before.rooms():
        run = await before.start(saga(before, did, stuck=True), id="r")
        async with asyncio.timeout(20):
            while "unbook 2" not in did:
                await asyncio.sleep(LOOK_EVERY)
        assert (await run.status()).state == "undoing"
    after = App(kept)
    saga(after, did, stuck=False)
    async with after.rooms():
        with pytest.raises(RunUndone):
            await ends(after.handle("r"))
    assert did == ["book 1", "book 2", "book 3", "unbook 3", "unbook 2", "unbook 2", "unbook 1"]


async def test_a_completed_child_is_undone_by_its_workflows_undo(app: App) -> None:
    did: list[str] = []

    @app.step
    async def refund(result: str, n: int) -> None:
        did.append(f"refund {result} {n}")

    @app.workflow(undo=refund)
    async def pay(n: int) -> str:
        return f"paid {n}"

    @app.workflow
    async def order() -> None:
        await pay(7)
        raise ValueError("no")

    async with app.rooms():
        with pytest.raises(RunUndone):
            await ends(await app.start(order))
    assert did == ["refund paid 7 7"]


async def test_an_undo_waits_for_an_attempt_that_the_workflow_had_given_up(app: App) -> None:
    """A thread cannot be stopped: what is undone while it still acts is not undone."""
    did: list[str] = []
    begun, go = threading.Event(), threading.Event()

    @app.step
    def slow() -> str:
        begun.set()
        go.wait(LONG)
        did.append("slow")
        return "s-1"

    @slow.undo
    async def unslow(result: str | None) -> None:
        did.append("unslow")

    @app.workflow
    async def gives_up() -> None:
        running = asyncio.ensure_future(slow())
        await receive("enough")
        running.cancel()
        raise ValueError("no")

    async with app.rooms():
        run = await app.start(gives_up)
        await asyncio.to_thread(begun.wait, LONG)
        await run.send("enough", None)
        await becomes(run, lambda status: status.state == "undoing")
        await becomes(run, lambda status: [step.state for step in status.steps] == ["cancelled"])  # so says its row
        assert did == []
        go.set()
        with pytest.raises(RunUndone):
            await ends(run)
    assert did == ["slow", "unslow"]


async def test_an_undo_waits_for_a_given_up_attempt_also_after_a_restart(kept: str) -> None:
    """Its row says that it runs until whoever runs it says otherwise, or is dead: here it is, with the first rooms."""

    def saga(app: App, did: list[str], begun: asyncio.Event) -> Any:
        @app.step
        async def stubborn() -> str:
            begun.set()
            while not did:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)
            did.append("stubborn")
            return "s"

        @stubborn.undo
        async def unstubborn(result: str | None) -> None:
            did.append("undo")

        @app.workflow
        async def gives_up() -> None:
            running = asyncio.ensure_future(stubborn())
            await receive("enough")
            running.cancel()
            await receive("fail")
            raise ValueError("no")

        return gives_up

    did: list[str] = []
    begun = asyncio.Event()
    before = App(kept)
    async with before.rooms():
        run = await before.start(saga(before, did, begun), id="r")
        await asyncio.wait_for(begun.wait(), LONG)
        await run.send("enough", None)
        await becomes(run, lambda status: "fail" in (status.waiting_for or ""))
        did.append("let go")
    after = App(kept)
    saga(after, did, begun)
    async with after.rooms():
        await after.handle("r").send("fail", None)
        with pytest.raises(RunUndone):
            await ends(after.handle("r"))
    assert did == ["let go", "stubborn", "undo"]


async def test_a_child_that_was_never_started_is_not_waited_for(app: App) -> None:
    """What starts it and what fails the run arrive in one turn: it is not started, and nobody will tell of its end."""
    saga = Saga(app)
    both = asyncio.Barrier(2)

    @app.step
    async def together() -> None:
        await both.wait()

    @app.workflow
    async def child() -> None:
        await sleep("1h")

    @app.workflow
    async def parent() -> None:
        async def starts() -> None:
            await together()
            await child()

        async def fails() -> None:
            await together()
            raise ValueError("no")

        await saga.trip.plain("train")
        await asyncio.gather(starts(), fails())

    async with app.rooms():
        with pytest.raises(RunUndone):
            await ends(await app.start(parent))
    assert saga.did[-1] == "unbook train train-1"


async def test_a_child_that_a_pause_held_back_is_not_waited_for(app: App) -> None:
    saga = Saga(app)

    @app.workflow
    async def child() -> None:
        await sleep("1h")

    @app.workflow
    async def parent() -> None:
        async def starts() -> None:
            await receive("start")
            await child()

        async def fails() -> None:
            await receive("fail")
            raise ValueError("no")

        await saga.trip.plain("train")
        await asyncio.gather(starts(), fails())

    async with app.rooms():
        run = await app.start(parent)
        await becomes(run, lambda status: status.state == "waiting")
        await run.pause("wait")
        await run.send("start", None)
        await run.send("fail", None)
        await becomes(run, lambda status: status.state == "undoing")
        assert saga.did == ["book train"]
        await run.resume()
        with pytest.raises(RunUndone):
            await ends(run)
    assert saga.did[-1] == "unbook train train-1"


class Voyage:
    """A run that books, and then waits for another one which does, and takes its time to undo that."""

    def __init__(self, app: App) -> None:
        self.did: list[str] = []
        self.go = asyncio.Event()

        @app.step
        async def book(what: str) -> str:
            self.did.append(f"book {what}")
            return what

        @book.undo
        async def unbook(booked: str, what: str) -> None:
            if what == "cabin":
                await self.go.wait()
            self.did.append(f"unbook {what}")

        @app.step
        async def refund(cruised: str) -> None:
            self.did.append("refund")

        @app.workflow(undo=refund)
        async def cruise() -> str:
            await book("cabin")
            await sleep("1h")
            return "seen"

        @app.workflow
        async def trip(patience: float) -> None:
            await book("train")
            async with asyncio.timeout(patience):
                await cruise()

        self.trip = trip


@pytest.mark.parametrize("how", ["cancelled", "late", "given up by the workflow"])
async def test_what_a_child_did_is_undone_first(app: App, how: str) -> None:
    """It began later. So its parent waits until it has ended, also when its code waits for it no more."""
    voyage = Voyage(app)
    async with app.rooms():
        patience = 0.5 if how == "given up by the workflow" else 3600.0
        run = await app.start(voyage.trip, patience, id="r", deadline=0.5 if how == "late" else None)
        child: Any = app.handle("r/cruise")
        await becomes(run, lambda status: status.state == "waiting")
        await becomes(child, lambda status: status.state == "waiting")
        if how == "cancelled":
            await run.cancel("not any more")
        await becomes(child, lambda status: status.state == "undoing")
        await becomes(run, lambda status: status.state == "undoing")
        explained = await run.explain()
        assert "waits for run 'r/cruise' to end" in str(explained)
        assert "run explain r/cruise" in str(explained)
        voyage.go.set()
        with pytest.raises((RunCancelled, RunUndone)):
            await ends(run)
        await run.graph()  # by a replay of its journal
    assert voyage.did == ["book train", "book cabin", "unbook cabin", "unbook train"]


async def test_what_a_child_did_is_undone_first_also_after_a_restart(kept: str) -> None:
    before = App(kept)
    voyage = Voyage(before)
    async with before.rooms():
        run = await before.start(voyage.trip, 3600.0, id="r")
        await becomes(run, lambda status: status.state == "waiting")
        await becomes(before.handle("r/cruise"), lambda status: status.state == "waiting")
        await run.cancel("not any more")
        await becomes(run, lambda status: status.state == "undoing")
    assert voyage.did == ["book train", "book cabin"]
    after = App(kept)
    voyage = Voyage(after)
    async with after.rooms():
        run = after.handle("r")
        await becomes(after.handle("r/cruise"), lambda status: [step.state for step in status.steps][-1] == "running")
        assert "waits for run 'r/cruise' to end" in str(await run.explain())
        assert voyage.did == []
        voyage.go.set()
        with pytest.raises(RunCancelled):
            await ends(run)
    assert voyage.did == ["unbook cabin", "unbook train"]


class Crossing:
    """A run that books, and then another one, with nothing to undo of its own, in which a thread does not stop."""

    def __init__(self, app: App, how: str) -> None:
        self.did: list[str] = []
        self.begun, self.go = threading.Event(), threading.Event()

        @app.step
        async def book() -> str:
            return "booked"

        @book.undo
        async def unbook(booked: str) -> None:
            self.did.append("unbook")

        @app.step
        def row() -> None:
            self.begun.set()
            self.go.wait()
            self.did.append("rowed")

        @app.step
        async def look() -> None: ...

        @app.workflow
        async def rows() -> None:
            await row()

        @app.workflow
        async def crosses() -> None:
            async def sinks() -> None:
                await receive("sink", str)
                raise ValueError("no")

            await look()
            await asyncio.gather(rows() if how == "cancelled, below it" else row(), sinks())

        @app.workflow
        async def trip() -> None:
            await book()
            await crosses()

        self.trip = trip

    async def until_it_rows(self) -> None:
        async with asyncio.timeout(LONG):
            while not self.begun.is_set():
                await asyncio.sleep(LOOK_EVERY)


@pytest.mark.parametrize("how", ["cancelled", "cancelled, below it", "failed"])
async def test_nothing_is_undone_while_an_attempt_of_a_child_runs(app: App, how: str) -> None:
    """A child ends when nothing of it runs any more: the run that started it may undo what that uses."""
    crossing = Crossing(app, how)
    try:
        async with app.rooms():
            run = await app.start(crossing.trip, id="r")
            child: Any = app.handle("r/crosses")
            await crossing.until_it_rows()
            if how == "failed":
                await child.send("sink", "now")
            else:
                await run.cancel("not any more")
            await becomes(child, lambda status: status.state == "undoing")
            # What comes now is too late for its code, and must not disturb what waits.
            await child.send("sink", "once more")
            await child.pause("wait")
            await child.cancel("and again")
            with pytest.raises(WatchbillError, match="wait for its end"):
                await child.rewind(to="look")
            await child._client.tell("r/crosses", FactKind.REWIND, "look")  # said before anybody could know
            async with asyncio.timeout(LONG):
                while (await child.explain()).facts["told"]:
                    await asyncio.sleep(LOOK_EVERY)
            assert (await child.status()).state == "undoing"
            assert crossing.did == []
            crossing.go.set()
            with pytest.raises((RunCancelled, RunUndone)):
                await ends(run)
            assert (await child.status()).state == ("failed" if how == "failed" else "cancelled")
            assert [event.kind for event in await child.timeline()].count("refused") == 1, "to rewind it"
            await child.graph()  # by a replay of its journal
    finally:
        crossing.go.set()
    assert crossing.did == ["rowed", "unbook"]


async def test_a_child_waits_for_what_it_has_stopped_also_after_a_restart(kept: str) -> None:
    before = App(kept)
    crossing = Crossing(before, "cancelled")
    try:
        async with before.rooms():
            run = await before.start(crossing.trip, id="r")
            await crossing.until_it_rows()
            await run.cancel("not any more")
            await becomes(before.handle("r/crosses"), lambda status: status.state == "undoing")
            asyncio.get_running_loop().call_later(1, crossing.go.set)
    finally:
        crossing.go.set()
    assert crossing.did == ["rowed"]
    after = App(kept)
    crossing = Crossing(after, "cancelled")
    async with after.rooms():
        with pytest.raises(RunCancelled):
            await ends(after.handle("r"))
        assert (await after.handle("r/crosses").status()).state == "cancelled"
    assert crossing.did == ["unbook"]


async def test_a_child_that_completed_though_it_was_cancelled_is_undone(app: App) -> None:
    did: list[object] = []

    @app.step
    async def book() -> str:
        return "booked"

    @book.undo
    async def unbook(booked: str) -> None:
        did.append("unbook")

    @app.step
    async def refund(paid: str | None) -> None:
        did.append(paid)

    @app.workflow(undo=refund)
    async def pay() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await sleep("1h")
        await sleep(0.1)
        return "paid"

    @app.workflow
    async def order() -> None:
        await book()
        await pay()

    async with app.rooms():
        run = await app.start(order, id="r")
        await becomes(run, lambda status: status.state == "waiting")
        await becomes(app.handle("r/pay"), lambda status: status.state == "waiting")
        await run.cancel("not any more")
        with pytest.raises(RunCancelled):
            await ends(run)
    assert did == [None, "unbook"]


async def test_a_deadline_that_passes_during_the_undo_changes_nothing(app: App) -> None:
    slowly = asyncio.Event()

    @app.step
    async def book() -> int:
        return 1

    @book.undo
    async def unbook(result: int) -> None:
        await slowly.wait()

    @app.workflow(deadline=1)
    async def trip() -> None:
        await book()
        raise ValueError("no seat")

    async with app.rooms():
        run = await app.start(trip)
        await becomes(run, lambda status: status.state == "undoing")
        asyncio.get_running_loop().call_later(1.1, slowly.set)
        with pytest.raises(RunUndone, match="no seat"):
            await ends(run)


async def test_what_is_being_undone_is_not_rewound(app: App, ear: Ear) -> None:
    slowly = asyncio.Event()

    @app.step
    async def book() -> int:
        return 1

    @book.undo
    async def unbook(result: int) -> None:
        await slowly.wait()

    @app.workflow
    async def trip() -> None:
        await book()
        raise ValueError("no seat")

    async with app.rooms():
        run = await app.start(trip)
        await becomes(run, lambda status: status.state == "undoing")
        with pytest.raises(WatchbillError, match="is being undone: wait for its end"):
            await run.rewind("book")
        # Somebody may have asked in the moment before: it is too late, and nobody else is hurt by it.
        await app._hall.tell(run.id, FactKind.REWIND, "book")
        slowly.set()
        with pytest.raises(RunUndone):
            await ends(run)
    assert ear.of("turn.failed") == []


async def test_an_undo_that_cannot_even_be_called_fails_the_undo_and_nothing_else(app: App, ear: Ear) -> None:
    """What it is to be given does not fit: the run passes through the whole of its undo in one turn."""

    @app.step
    async def slow() -> int:
        await asyncio.sleep(60)
        return 1

    @slow.undo
    async def unslow(result: int) -> None: ...

    @app.workflow
    async def both() -> None:
        running = asyncio.ensure_future(slow())
        await receive("fail")
        running.cancel()
        raise ValueError("no")

    async with app.rooms():
        run = await app.start(both)
        await becomes(run, lambda status: status.state == "running")
        await run.send("fail", None)
        with pytest.raises(RunUndoFailed, match="'slow' is not undone"):
            await ends(run)
        [said] = [event for event in await run.timeline() if event.step == "undo:slow"]
        assert "argument 'result' of step 'unslow' must be int" in said.note
        assert (await run.explain()).facts["not_undone"] == ["slow"]
        assert (await run.graph()).nodes  # by a replay of its journal
    assert ear.of("turn.failed") == []


async def test_a_call_of_any_key_is_undone(app: App) -> None:
    """That of its undo is longer, and it may be in a branch that has a name as no key may be."""
    saga = Saga(app)
    book = app.registry.steps["book"]

    @app.workflow
    async def journey() -> None:
        await book.options(key="k" * 200)("train")
        await asyncio.create_task(_of(book, "hotel"), name="a\nb" * 100)
        raise ValueError("no")

    async with app.rooms():
        run = await app.start(journey)
        with pytest.raises(RunUndone):
            await ends(run)
    assert saga.did == ["book train", "book hotel", "unbook hotel hotel-1", "unbook train train-1"]


async def _of(step: Any, what: str) -> str:
    booked: str = await step(what)
    return booked


async def test_an_undo_whose_key_is_taken_fails_and_the_others_run(app: App) -> None:
    saga = Saga(app)
    book = app.registry.steps["book"]

    @app.workflow
    async def journey() -> None:
        await book("train")
        await book.options(key="undo:book")("hotel")
        raise ValueError("no")

    async with app.rooms():
        with pytest.raises(RunUndoFailed, match="key 'undo:book' was used before in this run"):
            await ends(await app.start(journey))
    assert saga.did == ["book train", "book hotel", "unbook hotel hotel-1"]


# --- what may have taken effect, in virtual time

virtual = App("sqlite:///:memory:")
did: list[str] = []


@virtual.step
async def take_back(receipt: str | None, order: str) -> None:
    did.append("undo")


async def not_done(order: str) -> NotDone:
    did.append("probe")
    return NotDone()


async def slowly_not_done(order: str) -> NotDone:
    did.append("probe")
    await asyncio.sleep(10)
    return NotDone()


async def _holds_on(order: str) -> str:
    did.append("charge")
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        await asyncio.sleep(8)  # it has been told, and still acts
        did.append("stopped")
        raise
    return "paid"


holds_on = virtual.step(name="holds_on", idempotent=False, undo=take_back, timeout="5s", probe=not_done)(_holds_on)
blind = virtual.step(
    name="blind", idempotent=False, undo=take_back, timeout="5s", then=[Escalate("clerks", within="1h")]
)(_holds_on)

again = virtual.step(name="again", undo=take_back, timeout="5s", retry=Retry(1, backoff="1h"))(_holds_on)


@virtual.step(undo=take_back, probe=slowly_not_done)
async def ambiguous(order: str) -> str:
    did.append("charge")
    raise Ambiguous("no answer")


@virtual.step(retry=0)
async def fails(order: str) -> str:
    raise Permanent("no")


STEPS = {"holds on": holds_on, "blind": blind, "again": again, "ambiguous": ambiguous}


@virtual.workflow
async def alone(which: str) -> str:
    return await STEPS[which]("o-1")


@virtual.workflow
async def beside(which: str, after: int) -> Any:
    async def late() -> None:
        await sleep(after)
        await fails("x")

    return await asyncio.gather(STEPS[which]("o-1"), late())


def stopped(watch: Watch, how: str, which: str, after: int) -> Watched:
    """Let a run be stopped so many seconds after it began, by a person or because something else in it fails."""
    did.clear()
    run = watch.start(alone, which, id="r") if how == "cancel" else watch.start(beside, which, after, id="r")
    watch.jump(after)
    if how == "cancel":
        run.cancel("not any more")
    return run


BOTH = pytest.mark.parametrize("how", ["cancel", "sibling"])


@BOTH
def test_what_may_still_act_when_its_run_is_stopped_is_asked_about_when_it_cannot(watch: Watch, how: str) -> None:
    run = stopped(watch, how, "holds on", 7)
    watch.jump("2s")
    assert "it may still act until" in str(run.explain())
    assert "then its probe is asked" in str(run.explain())
    watch.jump("2m")
    with pytest.raises((RunCancelled, RunFailed)):
        run.result()
    assert did == ["charge", "stopped", "probe"], "and what did not take effect is not undone"


@BOTH
@pytest.mark.parametrize("which", ["blind", "again"])
def test_what_nobody_knows_when_its_run_is_stopped_is_undone_when_it_can_no_longer_act(
    watch: Watch, how: str, which: str
) -> None:
    """Whether it waits for a person, or for its next try."""
    run = stopped(watch, how, which, 7)
    watch.jump("2s")
    assert "nothing is undone before that" in str(run.explain())
    watch.jump("2m")
    with pytest.raises((RunCancelled, RunUndone)):
        run.result()
    assert did == ["charge", "stopped", "undo"]


@BOTH
def test_what_a_probe_says_did_not_take_effect_is_not_undone_however_its_run_was_stopped(
    watch: Watch, how: str
) -> None:
    run = stopped(watch, how, "ambiguous", 3)
    watch.jump("1m")
    with pytest.raises((RunCancelled, RunFailed)) as caught:
        run.result()
    assert type(caught.value) is (RunCancelled if how == "cancel" else RunFailed), "nothing was undone"
    assert "undo" not in did
    assert [event.kind for event in run.timeline()].count("not_undone") == int(how == "cancel")


def test_that_it_is_not_undone_survives_crashes_anywhere(watch: Watch) -> None:
    """Cancelled by its own workflow, a call has no outcome there: that it took no effect is an entry of its own."""

    def check(result: str, _: Any) -> None:
        assert result == "no"
        assert "undo" not in did

    watch.crash_everywhere(gives_up, (), check, fresh=did.clear)


@virtual.workflow
async def gives_up() -> str:
    async def part() -> None:
        async with asyncio.timeout(3):
            await ambiguous("o-1")

    with contextlib.suppress(TimeoutError):
        await part()
    await sleep(60)
    return "no"


def test_an_undo_that_does_not_take_none_fails_where_it_is_needed_and_there_alone_whenever_it_crashes(
    watch: Watch,
) -> None:
    """Of three calls one completed, one was stopped while it ran, and one took no effect, as its probe says."""

    def check(result: str, _: Any) -> None:
        assert result.startswith("RunUndoFailed")
        assert result.count("is not undone") == 1
        assert "'stopped_while_it_runs' is not undone" in result
        assert did.count("undo paid") >= 1
        assert "undo None" not in did

    watch.crash_everywhere(tells, (), check, fresh=did.clear)


@virtual.step
async def give_back(receipt: str, order: str) -> None:
    did.append(f"undo {receipt}")


@virtual.step(undo=give_back)
async def paid(order: str) -> str:
    return "paid"


@virtual.step(undo=give_back)
async def stopped_while_it_runs(order: str) -> str:
    await asyncio.sleep(60)
    return "paid"


@virtual.step(undo=give_back, probe=slowly_not_done)
async def without_effect(order: str) -> str:
    raise Ambiguous("no answer")


@virtual.workflow
async def pays() -> None:
    await paid("o-1")
    async with asyncio.timeout(3):
        await asyncio.gather(stopped_while_it_runs("o-1"), without_effect("o-1"))


@virtual.workflow
async def tells() -> str:
    try:
        await pays()
    except RunFailed as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


@pytest.mark.parametrize("taken", [str, str | None])
@pytest.mark.parametrize("how", ["cancelled", "late", "given up by the workflow", "paused"])
async def test_what_had_not_begun_when_its_run_was_stopped_is_not_undone(app: App, how: str, taken: Any) -> None:
    did: list[str] = []

    @app.step(needs="crane")
    async def lift(what: str) -> str:
        did.append(f"lift {what}")
        return what

    @lift.undo
    async def lower(lifted: taken, what: str) -> None:
        did.append(f"lower {what}")

    @app.workflow
    async def load(what: str) -> str:
        if how != "given up by the workflow":
            return await lift(what)
        try:
            async with asyncio.timeout(0.2):
                return await lift(what)
        except TimeoutError:
            raise ValueError("nobody came") from None

    async with app.rooms():
        run = await app.start(load, "box", deadline=0.5 if how == "late" else None)
        if how == "paused":
            await run.pause("wait")
        if how in ("cancelled", "paused"):
            await becomes(run, lambda status: status.health == "waiting_for_agent" or status.paused)
            await run.cancel("not wanted")
        with pytest.raises((RunCancelled, RunFailed)) as stopped:
            await ends(run)
        assert not isinstance(stopped.value, RunUndone | RunUndoFailed)
        assert did == []
        assert (await run.explain()).facts["undone"] == []
        await run.graph()  # by a replay of its journal


async def test_what_is_still_to_be_asked_about_when_a_paused_run_ends_is_asked_and_gone(app: App) -> None:
    asked, stops = asyncio.Event(), asyncio.Event()

    async def was_paid(what: str) -> NotDone:
        asked.set()
        return NotDone()

    @app.step(idempotent=False, probe=was_paid)
    async def pay(what: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await stops.wait()

    @app.workflow
    async def buy(what: str) -> None:
        await pay(what)

    async with app.rooms():
        run = await app.start(buy, "o-1")
        await becomes(run, lambda status: any(step.state == "running" for step in status.steps))
        await run.pause("wait")
        await becomes(run, lambda status: status.paused)
        await run.cancel("not wanted")
        await becomes(run, lambda status: status.state == "cancelled")
        stops.set()
        async with asyncio.timeout(LONG):
            await asked.wait()
            store = app._hall._store  # type: ignore[attr-defined]
            while (await store.client.record("default", run.id)).attempts:
                await asyncio.sleep(LOOK_EVERY)


async def test_nothing_is_undone_while_another_step_runs_that_has_no_undo(app: App, ear: Ear) -> None:
    """It may use what is undone: also one that does not stop is waited for."""
    did: list[str] = []
    stops = asyncio.Event()

    @app.step
    async def book() -> None: ...

    @book.undo
    async def unbook(booked: None) -> None:
        did.append("unbook")

    @app.step
    async def use() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await stops.wait()
            did.append("used")

    @app.step(retry=0)
    async def fail() -> None:
        raise ValueError("no")

    @app.workflow
    async def order(how: str) -> None:
        await book()
        await asyncio.gather(use(), fail() if how == "sibling" else sleep(3_600))

    @app.workflow
    async def rests() -> None:
        await sleep(0.05)

    async with app.rooms():
        for how in ("sibling", "cancel"):
            run = await app.start(order, how, id=how)
            await becomes(run, lambda status: any(step.key == "use" for step in status.steps))
            if how == "cancel":
                await run.cancel("enough")
            await becomes(run, lambda status: status.state == "undoing")
            await ends(await app.start(rests))  # some turns later
            assert did == []
            stops.set()
            with pytest.raises((RunUndone, RunCancelled)):
                await ends(run)
            assert did == ["used", "unbook"]
            did.clear()
            stops.clear()
