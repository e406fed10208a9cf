"""Runs that are paused, tried again, rewound, forked; and code that changes under them."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from tests.rooms.test_undo import Saga
from watchbill import (
    App,
    Handle,
    InvalidOptionError,
    InvalidValueError,
    Permanent,
    Retry,
    RunCancelled,
    RunEnded,
    RunFailed,
    RunNotFound,
    RunUndoFailed,
    RunUndone,
    Switch,
    WatchbillError,
    attempt,
    continue_as,
    now,
    patched,
    random,
    receive,
    sleep,
    uuid,
)
from watchbill.events import RUN_PAUSED, RUN_UNPAUSED
from watchbill.flow import copies
from watchbill.model.facts import FactKind
from watchbill.model.run import FOR_RESUME


class Shop:
    """Three steps in a row that count how often they ran, and of which one can be told to fail."""

    def __init__(self, app: App) -> None:
        self.ran: list[str] = []
        self.broken: set[str] = set()
        self.go = asyncio.Event()

        @app.step(retry=0)
        async def one(n: int) -> int:
            self.ran.append("one")
            return n + 1

        @app.step(retry=0)
        async def two(n: int) -> int:
            self.ran.append("two")
            if "wait" in self.broken:
                await self.go.wait()
            if "two" in self.broken:
                raise Permanent("two is broken")
            return n + 1

        @app.step(retry=0)
        async def three(n: int) -> int:
            self.ran.append("three")
            return n + 1

        @app.workflow
        async def order(n: int, by: int = 1) -> int:
            return by * await three(await two(await one(n)))

        self.order = order


# --- pause


async def test_nothing_new_starts_while_a_run_is_paused(app: App, ear: Ear) -> None:
    shop = Shop(app)
    shop.broken = {"wait"}
    async with app.rooms():
        run = await app.start(shop.order, 1)
        async with asyncio.timeout(20):
            while shop.ran != ["one", "two"]:
                await asyncio.sleep(LOOK_EVERY)
        await run.pause("stop the line")
        await ear.hears(RUN_PAUSED)
        assert (await run.status()).paused
        shop.go.set()  # what runs is finished and recorded
        await becomes(run, lambda status: [step.state for step in status.steps] == ["completed", "completed"])
        assert shop.ran == ["one", "two"]
        await run.resume()
        assert await ends(run) == 4
    assert [event.note for event in ear.of(RUN_PAUSED)] == ["stop the line"]
    assert len(ear.of(RUN_UNPAUSED)) == 1


async def test_a_pause_survives_the_process(kept: str) -> None:
    before = App(kept)
    shop = Shop(before)
    run = await before.start(shop.order, 1, id="r")
    await run.pause()
    async with before.rooms():
        await becomes(run, lambda status: status.paused)
        assert shop.ran == []
    after = App(kept)
    again = Shop(after)
    async with after.rooms():
        assert (await after.handle("r").status()).paused
        await after.handle("r").resume()
        assert await ends(after.handle("r")) == 4
    assert again.ran == ["one", "two", "three"]


async def test_retries_wait_while_a_run_is_paused(app: App) -> None:
    ran = []

    @app.step(retry=5)
    async def flaky() -> int:
        ran.append(1)
        if len(ran) == 1:
            raise ValueError("once")
        return len(ran)

    @app.workflow
    async def order() -> int:
        return await flaky.options(retry=3)()

    async with app.rooms():
        run = await app.start(order)
        await becomes(run, lambda status: status.health == "retrying")
        await run.pause()
        await becomes(run, lambda status: status.paused)
        await becomes(run, lambda status: [step.state for step in status.steps] == ["ready"])  # its backoff is over
        await asyncio.sleep(0.05)
        assert ran == [1]
        await run.resume()
        assert await ends(run) == 2


async def test_time_and_messages_go_on_while_a_run_is_paused(app: App) -> None:
    @app.workflow
    async def waits() -> list[str]:
        first = await receive("m", str)
        await sleep(0.05)
        return [first]

    async with app.rooms():
        run = await app.start(waits)
        await becomes(run, lambda status: status.state == "waiting")
        await run.pause()
        await becomes(run, lambda status: status.paused)
        await run.send("m", "hello")
        await becomes(run, lambda status: status.waiting_for == FOR_RESUME)
        await run.resume()
        assert await ends(run) == ["hello"]


# --- retry


async def test_a_failed_run_is_retried_as_a_new_one_from_where_it_failed(app: App) -> None:
    shop = Shop(app)
    shop.broken = {"two"}
    async with app.rooms():
        run = await app.start(shop.order, 1, id="r")
        with pytest.raises(RunFailed):
            await ends(run)
        shop.broken = set()
        again = await run.retry()
        assert again.id == "r~2"
        assert await ends(again) == 4
        assert shop.ran == ["one", "two", "two", "three"]
        assert (await run.status()).state == "failed", "what has ended never changes"
        third = await again.retry()
        assert (third.id, await ends(third)) == ("r~3", 4)


async def test_a_run_whose_own_code_failed_keeps_all_it_has_seen(app: App) -> None:
    shop, broken = Shop(app), [True]

    @app.step
    async def count() -> int:
        shop.ran.append("count")
        return 1

    @app.workflow
    async def own() -> int:
        n = await count()
        if broken:
            raise ValueError("a bug")
        return n

    async with app.rooms():
        run = await app.start(own, id="r")
        with pytest.raises(RunFailed):
            await ends(run)
        broken.clear()
        assert await ends(await run.retry()) == 1
    assert shop.ran == ["count"]


class Trip:
    """Books, which can be undone if so wished, waits for a word, and pays; whatever happens it tidies up."""

    def __init__(self, app: App, *, undo: bool = False) -> None:
        self.ran: list[str] = []

        @app.step
        async def book(n: int) -> int:
            self.ran.append("book")
            return n

        if undo:

            @book.undo
            async def unbook(booked: int | None, n: int) -> None:
                self.ran.append("unbook")

        @app.step
        async def pay(n: int) -> int:
            self.ran.append("pay")
            return n + 1

        @app.step
        async def tidy() -> None:
            self.ran.append("tidy")

        @app.workflow
        async def trip(n: int) -> int:
            booked = await book(n)
            try:
                await receive("go")
                return await pay(booked)
            finally:
                await tidy()

        self.trip = trip

    async def waits(self, run: Handle[int]) -> None:
        """Wait until a run has booked."""
        await becomes(run, lambda status: status.waiting_for and "'go'" in status.waiting_for)

    async def cancelled(self, app: App) -> Handle[int]:
        """Give a run that was cancelled while it waited."""
        run = await app.start(self.trip, 1, id="r")
        await self.waits(run)
        await run.cancel("not now")
        with pytest.raises(RunCancelled):
            await ends(run)
        return run


async def test_a_run_that_was_cancelled_and_undone_does_again_what_was_undone(app: App) -> None:
    trip = Trip(app, undo=True)
    async with app.rooms():
        run = await trip.cancelled(app)
        assert trip.ran == ["book", "tidy", "unbook"]
        trip.ran.clear()
        again = await run.retry()
        await again.send("go", None)
        assert await ends(again) == 2
        assert [(step.key, step.state) for step in (await again.status()).steps] == [
            ("book", "completed"),
            ("pay", "completed"),
            ("tidy", "completed"),
        ]
    assert trip.ran == ["book", "pay", "tidy"]


async def test_a_run_that_was_cancelled_goes_on_as_if_it_had_not_been_though_it_has_tidied_up(app: App) -> None:
    trip = Trip(app)
    async with app.rooms():
        run = await trip.cancelled(app)
        assert trip.ran == ["book", "tidy"]
        again = await run.retry()
        await trip.waits(again)
        await again.send("go", None)
        assert await ends(again) == 2
        assert await ends(await again.retry()) == 2, "a copy can be copied"
    assert trip.ran == ["book", "tidy", "pay", "tidy"]


async def test_a_run_that_was_late_goes_on_as_if_it_had_not_been_though_it_has_tidied_up(app: App) -> None:
    ran = []

    @app.step
    async def tidy() -> None:
        ran.append("tidy")

    @app.workflow
    async def patient() -> str:
        try:
            return await receive("go", str)
        finally:
            await tidy()

    async with app.rooms():
        run = await app.start(patient, deadline=0.1)
        with pytest.raises(RunFailed, match="its deadline has passed"):
            await ends(run)
        assert ran == ["tidy"]
        again = await run.retry()
        await again.send("go", "now")
        assert await ends(again) == "now"
    assert ran == ["tidy", "tidy"]


async def test_a_message_that_came_before_a_cancel_is_not_lost_by_a_retry(app: App) -> None:
    stuck = asyncio.Event()

    @app.step
    async def stick() -> None:
        if not stuck.is_set():
            stuck.set()
            await asyncio.Event().wait()

    @app.workflow
    async def sticky() -> str:
        said = await receive("m", str)
        await stick()
        return said

    async with app.rooms():
        run = await app.start(sticky)
        await run.send("m", "hello")
        async with asyncio.timeout(LONG):
            await stuck.wait()
        await run.cancel()
        with pytest.raises(RunCancelled):
            await ends(run)
        assert await ends(await run.retry()) == "hello"


@pytest.mark.parametrize("undo", [False, True])
async def test_a_call_that_was_made_because_of_a_cancel_is_no_place_to_go_on_from(app: App, undo: bool) -> None:
    trip = Trip(app, undo=undo)
    async with app.rooms():
        run = await trip.cancelled(app)
        for act in (run.rewind, run.fork):
            for call in ("tidy", "undo:book") if undo else ("tidy",):
                with pytest.raises(InvalidOptionError, match=f"{call!r} of run 'r' .* was cancelled.*; name 'book'"):
                    await act(call)
            with pytest.raises(InvalidOptionError, match=r"no outcome of a call 'pay'; there are: book$"):
                await act("pay")
        fork = await run.fork("book")
        await fork.send("go", None)
        assert (fork.id, await ends(fork)) == ("r~2", 2)


async def test_nothing_to_retry_is_said(app: App) -> None:
    shop = Shop(app)
    async with app.rooms():
        run = await app.start(shop.order, 1)
        await ends(run)
        with pytest.raises(InvalidOptionError, match="no call of step 'two' failed"):
            await run.retry("two")


class Patient(Shop):
    """A shop whose second step fails until it is mended, and is not tried again for an hour."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.mended = False

        @app.step(retry=Retry(1, backoff="1h"))
        async def charge(n: int) -> int:
            if not self.mended:
                raise ConnectionError("the bank is down")
            return n

        @app.step(retry=0, then=[Switch(step=charge)])
        async def collect(n: int) -> int:
            raise ConnectionError("nobody collects")

        @app.workflow
        async def sale(n: int) -> int:
            return await charge(n)

        @app.workflow
        async def parcel(n: int) -> int:
            return await collect.options(key="a parcel")(n)

        self.sale, self.parcel = sale, parcel

    async def parked(self, run: Handle[int], attempts: int = 1) -> None:
        """Wait until a run waits for the next of these attempts of its call."""
        await becomes(run, lambda status: status.health == "retrying" and len(status.steps[0].attempts) == attempts)


async def test_a_step_of_which_a_live_run_knows_nothing_is_refused_and_nothing_is_changed(app: App) -> None:
    shop = Patient(app)
    async with app.rooms():
        run = await app.start(shop.sale, 1, id="r")
        await shop.parked(run)
        with pytest.raises(InvalidOptionError) as refused:
            await run.retry("chrage", reason="x")
        assert str(refused.value) == (
            "no call of a step 'chrage' is open in run 'r': nothing was changed; did you mean 'charge'?"
        )
        with pytest.raises(InvalidOptionError, match=r"'zzz' is open in run 'r': .*; there are: charge$"):
            await run.retry("zzz")
        assert [event for event in await run.timeline() if event.kind == "retry"] == []
        shop.mended = True
        await run.retry("charge")
        assert await ends(run) == 1


@pytest.mark.parametrize("step", ["collect", "a parcel"])
async def test_a_call_is_known_by_its_step_also_when_another_one_is_called_in_its_place(app: App, step: str) -> None:
    shop, stranger = Patient(app), App(app.url)  # who has none of the code, as a command without --app
    async with app.rooms():
        run = await app.start(shop.parcel, 1, id="r")
        await shop.parked(run, attempts=2)
        with pytest.raises(InvalidOptionError, match=r"there are: a parcel$"):
            await stranger.handle("r").retry("zzz")
        shop.mended = True
        await stranger.handle("r").retry(step)
        assert await ends(run) == 1


async def test_of_a_run_in_which_nothing_is_open_that_is_said(app: App) -> None:
    shop = Trip(app)
    async with app.rooms():
        run = await app.start(shop.trip, 1, id="r")
        await shop.waits(run)
        with pytest.raises(InvalidOptionError, match=r"'zzz' is open in run 'r': .*; no call of it is known"):
            await run.retry("zzz")
        await run.retry("book")  # it is done, but no misspelt word
        await run.retry("tidy")  # the code has it
        await run.send("go", None)
        assert await ends(run) == 2


async def test_a_step_that_did_not_fail_in_a_run_that_was_undone_is_refused(app: App) -> None:
    trip = Saga(app)
    trip.broken = {"hotel"}
    async with app.rooms():
        run = await app.start(trip.trip, "train", "hotel", id="r")
        with pytest.raises(RunUndone):
            await ends(run)
        for step in ("nope", "unbook", "undo:nope"):
            with pytest.raises(InvalidOptionError, match=f"no call of step {step!r} failed in run 'r'"):
                await run.retry(step)
        trip.broken = set()
        again = await run.retry("book")
        assert (again.id, await ends(again)) == ("r~2", ["train-1", "hotel-1"])
        assert [run.id async for run in app.runs()] == ["r~2", "r"], "what was refused has made none"


@pytest.mark.parametrize("step", ["undo:book", "unbook"])
async def test_the_undo_of_a_run_that_has_ended_is_not_tried_again_by_itself(app: App, step: str) -> None:
    trip = Saga(app)
    trip.broken = {"hotel", "undo train"}
    async with app.rooms():
        run = await app.start(trip.trip, "train", "hotel", id="r")
        with pytest.raises(RunUndoFailed):
            await ends(run)
        with pytest.raises(InvalidOptionError) as refused:
            await run.retry(step)
        assert str(refused.value) == (
            f"run 'r' has ended, and its undo {step!r} cannot be tried again by itself: undo by hand what the run names"
            " as not undone, then `watchbill incidents skip`; or retry it without a step, which does all of it again"
        )
        with pytest.raises(InvalidOptionError, match="no call of step 'nope' failed in run 'r'"):
            await run.retry("nope")
        trip.broken = set()
        assert await ends(await run.retry()) == ["train-1", "hotel-1"]


async def test_a_run_that_is_deleted_while_it_is_copied_is_not_found(app: App) -> None:
    shop = Shop(app)
    shop.broken.add("two")
    hall: Any = app._hall
    async with app.rooms():
        run = await app.start(shop.order, 1, id="gone")
        with pytest.raises(RunFailed):
            await ends(run)
        record = await hall._readable(run.id)
        await hall.delete(run.id, "", by="test")
        for origin in (copies.failed(record, None), copies.before(record, "one"), copies.after(record, "one")):
            with pytest.raises(RunNotFound, match="'gone'"):
                async with asyncio.timeout(LONG):
                    await hall._copy(record, origin, None, {})
    assert [run.id async for run in app.runs()] == []


async def test_a_run_that_somebody_has_seen_to_with_all_of_its_incident_is_not_retried_beside_it(app: App) -> None:
    shop = Shop(app)
    shop.broken.add("two")
    hall: Any = app._hall
    async with app.rooms():
        run = await app.start(shop.order, 1, id="o")
        with pytest.raises(RunFailed):
            await ends(run)
        async with asyncio.timeout(LONG):
            while not (incidents := await app.incidents()):
                await asyncio.sleep(LOOK_EVERY)
        record = await hall._readable(run.id)
        await app.resolve(incidents[0].id, "skip", by="ada", reason="nobody wants it")
        async with asyncio.timeout(LONG):
            while await app.incidents():
                await asyncio.sleep(LOOK_EVERY)
        with pytest.raises(WatchbillError, match="somebody has seen to run 'o' meanwhile"):
            await hall._copy(record, copies.failed(record, None), None, {}, member=record.incident)
        assert [run.id async for run in app.runs()] == ["o"]
        assert (await run.retry()).id == "o~2"


# --- rewind


async def test_a_live_run_is_rewound_in_place(app: App) -> None:
    keys = []

    @app.step
    async def one() -> str:
        keys.append(attempt().key)
        return "one"

    @app.step
    async def two() -> str:
        keys.append(attempt().key)
        return "two"

    @app.workflow
    async def order() -> list[str]:
        return [await one(), await two(), await receive("go", str)]

    async with app.rooms():
        run = await app.start(order, id="r")
        await becomes(run, lambda status: status.waiting_for == "a message on 'go'")
        assert await run.rewind("two") is run
        await becomes(run, lambda status: len(keys) == 3 and status.waiting_for == "a message on 'go'")
        await run.send("go", "now")
        assert await ends(run) == ["one", "two", "now"]
    assert [key.split(":")[3] for key in keys] == ["one", "two", "two"]
    assert keys[1] != keys[2], "what is done again is another effect"


async def test_messages_are_not_lost_by_a_rewind(app: App) -> None:
    ran = []

    @app.step
    async def work() -> int:
        ran.append(1)
        return len(ran)

    @app.workflow
    async def order() -> list[Any]:
        return [await work(), await receive("m", str), await receive("go", str)]

    async with app.rooms():
        run = await app.start(order)
        await run.send("m", "hello")
        await becomes(run, lambda status: status.waiting_for == "a message on 'go'")
        await run.rewind("work")
        await becomes(run, lambda status: len(ran) == 2 and status.waiting_for == "a message on 'go'")
        await run.send("go", "now")
        assert await ends(run) == [2, "hello", "now"]


async def test_a_rewind_survives_the_process(kept: str) -> None:
    def shop(app: App, ran: list[str]) -> Any:
        @app.step
        async def one() -> int:
            ran.append("one")
            return len(ran)

        @app.workflow
        async def order() -> int:
            first = await one()
            await receive("go")
            return first

        return order

    ran: list[str] = []
    before = App(kept)
    async with before.rooms():
        run = await before.start(shop(before, ran), id="r")
        await becomes(run, lambda status: status.state == "waiting")
        await run.rewind("one")
        await becomes(run, lambda status: len(ran) == 2 and status.state == "waiting")
    after = App(kept)
    shop(after, ran)
    async with after.rooms():
        await after.handle("r").send("go", None)
        assert await ends(after.handle("r")) == 2
    assert ran == ["one", "one"]


class Tidy:
    """A workflow that tidies up when it is stopped, for as long as it is let."""

    def __init__(self, app: App, first: str = "one") -> None:
        self.ran: list[str] = []
        self.go = asyncio.Event()

        @app.step(name=first)
        async def one() -> None:
            self.ran.append("one")

        @app.step
        async def tidy() -> None:
            self.ran.append("tidy")
            await self.go.wait()

        @app.workflow
        async def order() -> None:
            await one()
            try:
                await receive("go")
            finally:
                await tidy()

        self.order = order


async def refusals_of(run: Handle[Any]) -> list[str]:
    return [one.note for one in await run.timeline() if one.kind == "refused"]


@pytest.mark.parametrize("late", [False, True], ids=["cancelled", "late"])
async def test_a_rewind_takes_back_neither_a_cancel_nor_a_deadline(app: App, late: bool) -> None:
    tidy = Tidy(app)
    why = "its deadline has passed" if late else "it was cancelled"
    async with app.rooms():
        run = await app.start(tidy.order, id="r", deadline=1.0 if late else None)
        if not late:
            await becomes(run, lambda status: status.waiting_for == "a message on 'go'")
            await run.cancel("enough")
        await becomes(run, lambda _: "tidy" in tidy.ran)
        with pytest.raises(WatchbillError, match=f"run 'r' is being stopped: {why}"):
            await run.rewind("one")
        # Somebody may have asked in the moment before: it is too late, and is told to have been.
        await app._hall.tell(run.id, FactKind.REWIND, "one")
        while not (refused := await refusals_of(run)):
            await asyncio.sleep(LOOK_EVERY)
        assert refused == [f"a rewind to 'one' by client came too late: the run is being stopped: {why}"]
        tidy.go.set()
        with pytest.raises(RunFailed if late else RunCancelled):
            await ends(run)
    assert tidy.ran == ["one", "tidy"]


async def test_a_cancel_and_a_rewind_at_once_end_the_run(app: App) -> None:
    tidy = Tidy(app)
    tidy.go.set()
    async with app.rooms():
        run = await app.start(tidy.order)
        await becomes(run, lambda status: status.waiting_for == "a message on 'go'")
        await asyncio.gather(run.cancel("enough"), app._hall.tell(run.id, FactKind.REWIND, "one"))
        with pytest.raises(RunCancelled):
            await ends(run)


async def test_a_rewind_takes_back_no_cancel_of_a_run_whose_code_no_longer_fits(kept: str) -> None:
    before, after = App(kept), App(kept)
    async with before.rooms():
        tidy = Tidy(before)
        run = await before.start(tidy.order, id="r")
        await becomes(run, lambda status: status.waiting_for == "a message on 'go'")
        await run.cancel("enough")
        await becomes(run, lambda _: "tidy" in tidy.ran)
    other = Tidy(after, first="other")
    async with after.rooms():
        run = after.handle("r")
        await becomes(run, lambda status: status.state == "diverged")
        assert "`cancel` ends it without its code" in str(await run.explain())
        with pytest.raises(WatchbillError, match="run 'r' is being stopped: it was cancelled"):
            await run.rewind("one")
        await after._hall.tell(run.id, FactKind.REWIND, "one")
        while not await refusals_of(run):
            await asyncio.sleep(LOOK_EVERY)
        assert (await run.status()).state == "diverged"
        await run.cancel("enough")
        with pytest.raises(RunCancelled):
            await ends(run)
    assert other.ran == []


async def test_a_call_that_is_not_there_is_named(app: App) -> None:
    shop = Shop(app)
    async with app.rooms():
        run = await app.start(shop.order, 1)
        await ends(run)
        for act in (run.rewind, run.fork):
            with pytest.raises(InvalidOptionError, match="no outcome of a call 'tow'; did you mean 'two'"):
                await act("tow")


# --- fork


async def test_a_fork_keeps_what_was_seen_and_changes_arguments(app: App) -> None:
    shop = Shop(app)
    async with app.rooms():
        run = await app.start(shop.order, 1, id="r")
        assert await ends(run) == 4
        fork = await run.fork("two", by=10)
        assert (fork.id, await ends(fork)) == ("r~2", 40)
        assert shop.ran == ["one", "two", "three", "three"]
        with pytest.raises(InvalidValueError, match="has no parameter 'bye'; did you mean 'by'"):
            await run.fork("two", bye=1)


async def test_a_fork_of_a_live_run_leaves_it_alone(app: App) -> None:
    shop = Shop(app)
    shop.broken = {"wait"}
    async with app.rooms():
        run = await app.start(shop.order, 1, id="r")
        await becomes(run, lambda status: len(status.steps) == 1)
        shop.broken = set()
        assert await ends(await run.fork("one")) == 4
        shop.go.set()
        assert await ends(run) == 4


async def test_what_has_ended_hears_nothing(app: App) -> None:
    shop = Shop(app)
    async with app.rooms():
        run = await app.start(shop.order, 1)
        await ends(run)
        for act in (run.pause, run.resume):
            with pytest.raises(RunEnded):
                await act()


# --- the code changes


async def test_a_run_stays_with_the_version_it_began_with(app: App) -> None:
    @app.workflow(name="greet")
    async def old() -> str:
        await receive("go")
        return "old"

    @app.workflow(name="greet", version=2)
    async def new() -> str:
        return "new"

    async with app.rooms():
        first = await app.start(old, id="a")
        assert await ends(await app.start(new, id="b")) == "new"
        await first.send("go", None)
        assert await ends(first) == "old"


async def test_a_version_that_is_not_here_waits_for_its_code(kept: str) -> None:
    before = App(kept)

    @before.workflow(name="greet")
    async def one() -> str:
        await receive("go")
        return "one"

    async with before.rooms():
        await becomes(await before.start(one, id="r"), lambda status: status.state == "waiting")
    after = App(kept)

    @after.workflow(name="greet", version=2)
    async def two() -> str:
        return "two"

    async with after.rooms():
        await after.handle("r").send("go", None)
        assert await ends(await after.start(two, id="s")) == "two"
        status = await becomes(after.handle("r"), lambda status: status.health == "waiting_for_code")
        assert status.state == "waiting"


async def test_patched_is_true_for_runs_that_had_not_passed(kept: str) -> None:
    def greet(app: App, *, new: bool) -> Any:
        @app.step
        async def step() -> str:
            return "step"

        @app.step
        async def extra() -> str:
            return "extra"

        @app.workflow
        async def order() -> list[str]:
            said = [await step()]
            if new and patched("extra"):
                said.append(await extra())
            await receive("go")
            if new and patched("late"):
                said.append("late")
            return said

        return order

    before = App(kept)
    order = greet(before, new=False)
    async with before.rooms():
        await becomes(await before.start(order, id="old"), lambda status: status.state == "waiting")
    after = App(kept)
    order = greet(after, new=True)
    async with after.rooms():
        await becomes(await after.start(order, id="new"), lambda status: status.state == "waiting")
    last = App(kept)
    greet(last, new=True)
    async with last.rooms():
        for id in ("old", "new"):
            await last.handle(id).send("go", None)
        assert await ends(last.handle("old")) == ["step", "late"]
        assert await ends(last.handle("new")) == ["step", "extra", "late"]


async def test_time_and_chance_are_the_same_in_every_replay(kept: str) -> None:
    def lucky(app: App) -> Any:
        @app.workflow
        async def lucky() -> list[str]:
            drawn = [str(random()), str(uuid()), now().isoformat(), str(random())]
            seen = await receive("before", list[str])
            return ["same" if seen == drawn else f"{seen} {drawn}", *drawn]

        return lucky

    before = App(kept)
    async with before.rooms():
        run = await before.start(lucky(before), id="r")
        await becomes(run, lambda status: status.state == "waiting")
    after = App(kept)
    lucky(after)
    other = App(kept)
    async with after.rooms():
        await after.handle("r").send("before", [])
        drawn = (await ends(after.handle("r")))[1:]
        fork = await after.start(after.registry.workflow("lucky"), id="s")
        await fork.send("before", drawn)
        assert (await ends(fork))[0] != "same", "another run, other chance"
    assert 0 <= float(drawn[0]) < 1
    assert drawn[0] != drawn[3]
    assert other is not after


# --- parts


async def test_a_run_continues_as_another_workflow(app: App) -> None:
    @app.step
    async def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def countdown(n: int, total: int = 0) -> int:
        total += await double(n)
        if n:
            await continue_as(countdown, n - 1, total=total)
        return total

    async with app.rooms():
        run = await app.start(countdown, 5)
        assert await ends(run) == 30


async def test_unread_messages_go_on_to_the_next_part(kept: str) -> None:
    def reader(app: App) -> Any:
        @app.workflow
        async def reads(left: int, seen: list[int]) -> list[int]:
            seen = [*seen, await receive("n", int)]
            if left > 1:
                await continue_as(reads, left - 1, seen)
            return seen

        return reads

    before = App(kept)
    run = await before.start(reader(before), 5, [], id="r")
    for n in range(3):
        await run.send("n", n)
    async with before.rooms():
        await becomes(run, lambda status: status.state == "waiting")
    after = App(kept)
    reader(after)
    async with after.rooms():
        for n in (3, 4):
            await after.handle("r").send("n", n)
        assert await ends(after.handle("r")) == [0, 1, 2, 3, 4]


class Diary:
    """Reads in two parts: the second one begins with what the first has left unread."""

    def __init__(self, app: App) -> None:
        self.ran: list[str] = []
        self.broken: set[str] = set()

        @app.step(retry=0)
        async def note(word: str) -> str:
            self.ran.append(f"note {word}")
            if word in self.broken:
                raise Permanent(f"{word} is smudged")
            return f"{word}!"

        @note.undo
        async def erase(noted: str | None, word: str) -> None:
            self.ran.append(f"erase {word}")

        @app.workflow
        async def second(day: str, by: str = "") -> list[str]:
            began = now().isoformat()
            first = await receive("line", str, timeout="1h")  # it is there: no timer begins
            said = [day, by, began, await note(first)]
            said.append(await receive("line", str))
            return [*said, await note(said[-1])]

        @app.workflow
        async def first(day: str) -> list[str]:
            await receive("go")
            await sleep(0.01)  # the second part begins later than the run
            day += await receive("line", str)
            return await continue_as(second, day)

        self.first = first

    async def begin(self, app: App, *lines: str) -> Handle[list[str]]:
        """Start a run, with lines that are known by themselves."""
        run = await app.start(self.first, "monday ", id="r")
        for line in lines:
            await run.send("line", line, id=line)
        await run.send("go", None)
        return run


async def test_a_fork_of_a_run_that_had_continued_keeps_what_its_last_part_was_given(app: App) -> None:
    diary = Diary(app)
    async with app.rooms():
        run = await diary.begin(app, "a", "b", "c")
        day, by, began, *noted = await ends(run)
        assert (day, by, noted) == ("monday a", "", ["b!", "c", "c!"])
        assert diary.ran == ["note b", "note c"]
        fork = await run.fork("note")
        assert await ends(fork) == [day, by, began, *noted], "the same mailbox, and the same time"
        assert await ends(await run.fork("note", by="ada")) == [day, "ada", began, *noted]
        assert await ends(await fork.fork("note")) == [day, by, began, *noted], "a copy can be copied"
    assert diary.ran == ["note b", "note c", "note c", "note c", "note c"]


async def test_a_copy_of_a_run_that_had_continued_says_so(app: App) -> None:
    diary = Diary(app)
    async with app.rooms():
        run = await diary.begin(app, "a", "b", "c")
        await ends(run)
        fork = await run.fork("note")
        await ends(fork)
        status = await fork.status()
        assert (status.workflow, [step.key for step in status.steps]) == ("second", ["note", "note.2"])
        events = [event.kind for event in await fork.timeline()]
        assert events.count("continued") == 1
        assert events.index("continued") < events.index("step_completed")
        assert await fork.graph() == await run.graph()


async def test_a_rewind_of_a_run_that_had_continued_and_ended_keeps_its_messages(app: App) -> None:
    diary = Diary(app)
    async with app.rooms():
        run = await diary.begin(app, "a", "b", "c")
        said = await ends(run)
        assert await ends(await run.rewind("note")) == said
        assert await ends(await run.rewind("note.2")) == said
    assert diary.ran == ["note b", "note c", "note b", "note c", "note c"]


async def test_a_retry_of_a_run_that_had_continued_keeps_its_messages_also_when_all_was_undone(app: App) -> None:
    diary = Diary(app)
    diary.broken = {"c"}
    async with app.rooms():
        run = await diary.begin(app, "a", "b")
        await becomes(run, lambda status: status.waiting_for == "a message on 'line'")
        await run.send("line", "c")  # to the second part
        with pytest.raises(RunUndone):
            await ends(run)
        diary.broken = set()
        again = await run.retry()
        assert (await ends(again))[3:] == ["b!", "c", "c!"]
    assert diary.ran == ["note b", "note c", "erase b", "note b", "note c"]


async def test_a_message_that_an_earlier_part_has_received_is_known_in_a_copy(app: App) -> None:
    diary = Diary(app)
    async with app.rooms():
        run = await diary.begin(app, "a", "b")
        await becomes(run, lambda status: status.waiting_for == "a message on 'line'")
        copy = await run.fork("note")
        await becomes(copy, lambda status: status.waiting_for == "a message on 'line'")
        for line in ("a", "b", "c"):
            await copy.send("line", line, id=line)
        assert (await ends(copy))[4] == "c", "the others were received before"


async def test_a_copy_of_a_run_that_had_continued_goes_on_after_a_restart(kept: str) -> None:
    before = App(kept)
    diary = Diary(before)
    async with before.rooms():
        run = await diary.begin(before, "a", "b")
        await becomes(run, lambda status: status.waiting_for == "a message on 'line'")
        copy = await run.fork("note")
        await becomes(copy, lambda status: status.waiting_for == "a message on 'line'")
    after = App(kept)
    again = Diary(after)
    async with after.rooms():
        for id in ("r", "r~2"):
            await after.handle(id).send("line", "c")
        original, copied = [await ends(after.handle(id)) for id in ("r", "r~2")]
        assert original == copied
        assert original[3:] == ["b!", "c", "c!"]
    assert (diary.ran, again.ran) == (["note b"], ["note c", "note c"])


async def test_a_live_run_that_has_continued_is_rewound_in_place_with_its_messages(app: App) -> None:
    diary = Diary(app)
    async with app.rooms():
        run = await diary.begin(app, "a", "b")
        await becomes(run, lambda status: status.waiting_for == "a message on 'line'")
        assert await run.rewind("note") is run
        await becomes(run, lambda status: len(diary.ran) == 2 and status.waiting_for == "a message on 'line'")
        await run.send("line", "b", id="b")  # once more: it is the same one
        await run.send("line", "c", id="c")
        assert (await ends(run))[3:] == ["b!", "c", "c!"]
    assert diary.ran == ["note b", "note b", "note c"]


# --- wishes


async def test_a_run_begins_when_it_was_asked_to(app: App) -> None:
    shop = Shop(app)
    async with app.rooms():
        later = await app.start(shop.order, 1, delay=0.2)
        at = datetime.now(UTC) + timedelta(seconds=0.2)
        timed = await app.start(shop.order, 1, at=at)
        assert (await later.status()).state == "scheduled"
        await ends(later)
        await ends(timed)
        assert datetime.now(UTC) >= at


async def test_a_run_that_is_late_is_stopped_and_fails(app: App) -> None:
    cleaned = []

    @app.step
    async def clean() -> None:
        cleaned.append(1)

    @app.workflow(deadline=0.1)
    async def slow() -> None:
        try:
            await sleep("1h")
        finally:
            await clean()

    async with app.rooms():
        with pytest.raises(RunFailed, match=r"\(late\).*its deadline has passed"):
            await ends(await app.start(slow))
    assert cleaned == [1]


async def test_a_deadline_that_has_passed_does_not_pass_again_in_the_next_part(kept: str) -> None:
    def program(app: App) -> Any:
        @app.workflow
        async def second() -> int:
            return await receive("go", int)

        @app.workflow(deadline=0.1)
        async def first() -> int:
            try:
                await sleep("1h")
            except asyncio.CancelledError:
                return await continue_as(second)
            return 0

        return first

    before, after = App(kept), App(kept)
    async with before.rooms():
        handle = await before.start(program(before), id="r")
        await becomes(handle, lambda status: status.waiting_for and "'go'" in status.waiting_for)
    program(after)
    async with after.rooms():
        await after.handle("r").send("go", 7)
        assert await ends(after.handle("r")) == 7


async def test_why_something_is_tried_again_is_kept_with_the_run(app: App) -> None:
    shop = Shop(app)
    shop.broken.add("two")
    async with app.rooms():
        handle = await app.start(shop.order, 1, id="r")
        with pytest.raises(RunFailed):
            await ends(handle)
        shop.broken = {"wait"}
        copy = await handle.retry(reason="two is mended")
        async with asyncio.timeout(20):
            while not (told := [event for event in await copy.timeline() if event.kind == "retry"]):
                await asyncio.sleep(LOOK_EVERY)
        assert (told[0].note, told[0].actor) == ("by client: two is mended", "client")
        await copy.retry("two", reason="be quick")
        async with asyncio.timeout(20):
            while "by client: two: be quick" not in [event.note for event in await copy.timeline()]:
                await asyncio.sleep(LOOK_EVERY)
        shop.go.set()
        assert await ends(copy) == 4


async def test_a_run_for_the_beginning_of_time_begins_also_after_a_pause(app: App) -> None:
    shop = Shop(app)
    handle = await app.start(shop.order, 1, at=datetime(1970, 1, 1, tzinfo=UTC))
    await handle.pause()
    async with app.rooms():
        await becomes(handle, lambda status: status.paused)
        await handle.resume()
        await ends(handle)


async def test_the_more_urgent_runs_are_served_first(app: App) -> None:
    order: list[str] = []

    @app.step
    async def work(name: str) -> None:
        order.append(name)

    @app.workflow
    async def job(name: str) -> None:
        await work(name)

    low = [(job, ("low",)) for _ in range(1_000)]
    high = [(job, ("high",), {"priority": 10}) for _ in range(10)]
    handles = await app.start_many([*low, *high])
    async with app.rooms(slots=1):
        await asyncio.gather(*(ends(handle) for handle in handles))
    assert len(order) == 1_010
    assert order[:30].count("high") == 10  # a look takes in a thousand runs: a few may begin before the rest is seen


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"priority": 101}, "from -100 to 100"),
        ({"priority": "high"}, "from -100 to 100"),
        ({"at": datetime(2030, 1, 1)}, "must have a time zone"),
        ({"delay": -1}, "zero or more"),
        ({"deadline": 0}, "above zero"),
        ({"tags": "one"}, "a list of texts"),
        ({"tags": ["a\nb"]}, "a tag is text"),
        ({"region": "e u"}, "is a name of 1-100 characters"),
    ],
)
async def test_odd_wishes_are_refused(app: App, wish: dict[str, Any], said: str) -> None:
    shop = Shop(app)
    with pytest.raises(InvalidOptionError, match=said):
        await app.start(shop.order, 1, **wish)
