"""A workflow with a schedule starts by itself, each slot once, as its options say."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.rooms.scene import LONG, Ear, ends
from watchbill import App, ImpureWorkflowError, InvalidOptionError, current_run
from watchbill import events as happened


def slot_of(id: str) -> datetime:
    return datetime.fromisoformat(id.partition("@")[2])


def slots(ear: Ear) -> list[datetime]:
    return [slot_of(event.run) for event in ear.of(happened.RUN_COMPLETED)]


async def the_schedule(app: App) -> Any:
    [schedule] = await app.schedules()
    return schedule


async def becomes(app: App, fits: Any) -> Any:
    """Look at the only schedule until it is there and fits."""
    async with asyncio.timeout(LONG):
        while not (found := await app.schedules()) or not fits(found[0]):
            await asyncio.sleep(0.01)
    return found[0]


async def test_a_schedule_starts_a_run_for_each_slot_at_its_time(app, ear):
    @app.workflow(every="1s")
    async def tick() -> str:
        return "tock"

    async with app.rooms():
        await ear.hears(happened.RUN_COMPLETED, times=3)
        first, second, third, *_ = slots(ear)
        assert (second - first, third - second) == (timedelta(seconds=1), timedelta(seconds=1))
        for event in ear.of(happened.RUN_STARTED)[:3]:
            at = datetime.fromtimestamp(event.at / 1e6, UTC)
            assert timedelta() <= at - slot_of(event.run) < timedelta(seconds=1)
        assert await app.handle(f"tick@{first:%Y-%m-%dT%H:%M:%S}Z", tick).result() == "tock"


async def test_a_new_schedule_does_not_make_up_for_the_time_before_it(app, ear):
    @app.workflow(cron="* * * * *", catchup="all")
    async def tick() -> None: ...

    async with app.rooms():
        schedule = await becomes(app, lambda found: found.next)
        assert ear.of(happened.RUN_STARTED) == []
        assert (schedule.cron, schedule.every, schedule.tz, schedule.ended) == ("* * * * *", None, "UTC", False)
        assert [at.second for at in schedule.next] == [0, 0, 0]


async def test_with_skip_no_slot_starts_while_a_run_is_live(app, ear):
    gate, begun = asyncio.Event(), []

    @app.step
    async def wait() -> None:
        begun.append(1)
        await gate.wait()

    @app.workflow(every="1s")
    async def slow() -> None:
        await wait()

    async with app.rooms():
        await ear.hears(happened.SLOTS_SKIPPED, times=2)
        assert len(begun) == 1
        assert (await the_schedule(app)).running
        gate.set()
        await ear.hears(happened.RUN_COMPLETED, times=2)


async def test_with_queue_every_slot_runs_one_after_another(app, ear):
    gate, running = asyncio.Event(), []

    @app.step
    async def wait() -> int:
        running.append(1)
        await gate.wait()
        return len(running)

    @app.workflow(every="1s", overlap="queue")
    async def slow() -> int:
        return await wait()

    async with app.rooms():
        await becomes(app, lambda found: found.waiting >= 2)
        assert len(running) == 1
        gate.set()
        await ear.hears(happened.RUN_COMPLETED, times=4)
        assert ear.of(happened.SLOTS_SKIPPED) == []
        found = slots(ear)
        assert found == [found[0] + timedelta(seconds=n) for n in range(len(found))]


async def test_with_allow_runs_overlap(app, ear):
    gate = asyncio.Event()

    @app.step
    async def wait() -> None:
        await gate.wait()

    @app.workflow(every="1s", overlap="allow")
    async def slow() -> None:
        await wait()

    async with app.rooms():
        await ear.hears(happened.RUN_STARTED, times=2)
        assert ear.of(happened.RUN_COMPLETED) == []
        gate.set()


def a_ticker(url: str, every: str = "1s", **options: Any) -> App:
    app = App(url)

    @app.workflow(every=every, name="tick", **options)
    async def tick() -> None: ...

    return app


async def test_what_was_missed_while_nobody_was_there_is_made_up_for(kept):
    first = a_ticker(kept, catchup="all", overlap="allow")
    ear = Ear(first)
    async with first.rooms():
        await ear.hears(happened.RUN_COMPLETED)
    before = slots(ear)
    await asyncio.sleep(2.5)
    second = a_ticker(kept, catchup="all", overlap="allow")
    later = Ear(second)
    async with second.rooms():
        await later.hears(happened.RUN_COMPLETED, times=3)
    found = sorted({*before, *slots(later)})
    assert len(found) == len(before) + len(slots(later)), "no slot ran twice"
    assert found == [found[0] + timedelta(seconds=n) for n in range(len(found))], "none was left out"


async def test_a_paused_schedule_rests_and_a_resumed_one_goes_on(kept):
    app = a_ticker(kept)
    ear = Ear(app)
    async with app.rooms():
        await ear.hears(happened.RUN_COMPLETED)
        await app.pause_schedule("tick", "holidays", by="ada")
        schedule = await the_schedule(app)
        assert (schedule.paused_by, schedule.paused_why, schedule.next) == ("ada", "holidays", ())
        count = len(ear.of(happened.RUN_STARTED))
        await asyncio.sleep(1.2)
        assert len(ear.of(happened.RUN_STARTED)) <= count + 1, "one may have been decided before"
        await app.resume_schedule("tick", "back again", by="bob")
        assert (await the_schedule(app)).paused_by is None
        logged = [(one.by, one.kind, one.name, one.act, one.reason) for one in await app.logbook()]
        assert logged == [
            ("bob", "schedule", "tick", "resume", "back again"),
            ("ada", "schedule", "tick", "pause", "holidays"),
        ]
        await ear.hears(happened.RUN_COMPLETED, times=count + 2)


async def test_a_run_by_hand_is_beside_the_slots(app, ear):
    @app.workflow(cron="0 0 1 1 *")
    async def yearly(who: str = "nobody") -> str:
        return f"for {who}"

    async with app.rooms():
        await becomes(app, lambda found: found)
        handle = await app.run_schedule("yearly")
        assert handle.id.startswith("yearly@now-")
        assert await handle.result(timeout=LONG) == "for nobody"


@pytest.mark.parametrize("overlap", ["skip", "queue", "allow"])
async def test_a_backfill_runs_the_slots_of_a_time_that_is_over_each_once(app, ear, overlap):
    @app.workflow(cron="0 2 * * *", tz="Europe/Berlin", overlap=overlap)
    async def nightly() -> None: ...

    since, until = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC)
    async with app.rooms():
        await becomes(app, lambda found: found.next)
        handles = await app.backfill_schedule("nightly", since, until, "the disk was full", by="ada")
        [logged] = await app.logbook()
        assert (logged.by, logged.act, logged.reason) == ("ada", "backfill", "the disk was full")
        assert logged.detail == f"{since:%Y-%m-%dT%H:%M}Z to {until:%Y-%m-%dT%H:%M}Z"
        assert [handle.id for handle in handles] == [
            "nightly@2026-03-28T01:00:00Z",
            "nightly@2026-03-29T01:00:00Z",
            "nightly@2026-03-30T00:00:00Z",
        ]
        for handle in handles:
            await ear.hears(happened.RUN_COMPLETED, handle.id)
        await app.backfill_schedule("nightly", since, until)
        await becomes(app, lambda found: not found.waiting)
        assert len(ear.of(happened.RUN_STARTED)) == 3


async def test_orders_that_cannot_be_meant_are_refused(app):
    @app.workflow(every="1m")
    async def tick() -> None: ...

    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    async with app.rooms():
        await becomes(app, lambda found: found)
        with pytest.raises(InvalidOptionError, match="no schedule 'tock' in this store; did you mean 'tick'"):
            await app.pause_schedule("tock")
        with pytest.raises(InvalidOptionError, match="cannot be paused by nobody"):
            await app.pause_schedule("tick", by="")
        for order in (
            lambda **why: app.pause_schedule("tick", **why),
            lambda **why: app.resume_schedule("tick", **why),
            lambda **why: app.backfill_schedule("tick", noon, noon + timedelta(minutes=1), **why),
        ):
            with pytest.raises(InvalidOptionError, match="reason is text of"):
                await order(reason="\0")
            with pytest.raises(InvalidOptionError, match="by is a name of"):
                await order(by="\n")
        assert await app.logbook() == []
        with pytest.raises(InvalidOptionError, match="from a time to a later one"):
            await app.backfill_schedule("tick", noon, noon)
        with pytest.raises(InvalidOptionError, match="come by themselves"):
            await app.backfill_schedule("tick", noon, noon.replace(year=2300))
        with pytest.raises(InvalidOptionError, match="more than 1,000 slots waiting"):
            await app.backfill_schedule("tick", noon, noon + timedelta(days=1))


async def test_a_schedule_ends_with_its_option_and_its_code(kept):
    before = a_ticker(kept, every="1m")
    async with before.rooms():
        await becomes(before, lambda found: found.next)
    without = App(kept)

    @without.workflow(name="tick")
    async def tick() -> None: ...

    async with without.rooms():
        schedule = await becomes(without, lambda found: found.ended)
        assert (schedule.known, schedule.next) == (True, ())
    gone = App(kept)

    @gone.workflow
    async def other() -> None: ...

    async with gone.rooms():
        schedule = await becomes(gone, lambda found: not found.known)
        assert schedule.next == ()


async def test_default_of_a_wrong_type_is_refused_by_the_decorator(app):
    with pytest.raises(InvalidOptionError, match="size"):

        @app.workflow(every="1s")
        async def greedy(size: int = "much") -> None:  # type: ignore[assignment]
            ...


async def test_arguments_whose_types_are_not_there_yet_are_checked_when_the_rooms_open(app):
    @app.workflow(every="1s", arguments={"size": "much"})
    async def greedy(size: "Size") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    greedy.plain.__globals__["Size"] = int
    try:
        with pytest.raises(InvalidOptionError, match="size"):
            async with app.rooms():
                pass
    finally:
        del greedy.plain.__globals__["Size"]


async def test_impure_code_is_refused_when_the_rooms_open(app):
    @app.workflow(every="1s")
    async def impure() -> float:
        import time

        return time.time()

    with pytest.raises(ImpureWorkflowError):
        async with app.rooms():
            pass


@pytest.mark.parametrize(
    ("zone", "cron", "since", "until", "expected"),
    [
        # The clock leaves out 2:30: the slot is at the next minute that exists.
        ("Europe/Berlin", "30 2 * * *", "2025-03-29", "2025-04-01", ["29T01:30", "30T01:00", "31T00:30"]),
        ("America/New_York", "30 2 * * *", "2025-03-08", "2025-03-11", ["08T07:30", "09T07:00", "10T06:30"]),
        # The clock shows the time twice: the slot is the first of both.
        ("Europe/Berlin", "30 2 * * *", "2025-10-25", "2025-10-28", ["25T00:30", "26T00:30", "27T01:30"]),
        ("America/New_York", "30 1 * * *", "2025-11-01", "2025-11-04", ["01T05:30", "02T05:30", "03T06:30"]),
        # The beginning is left out by the clock, or is shown twice, and belongs to the backfill; the end does not.
        ("Europe/Berlin", "30 2 * * *", "2025-03-30T02:15", "2025-03-31T02:30", ["30T01:00"]),
        ("America/New_York", "30 1 * * *", "2025-11-02T01:30", "2025-11-03T01:30", ["02T05:30"]),
    ],
)
async def test_backfill_reads_times_in_the_zone_of_its_schedule(app, zone, cron, since, until, expected):
    @app.workflow(cron=cron, tz=zone, overlap="allow")
    async def nightly() -> str:
        slot = current_run().slot
        assert slot is not None
        return slot.isoformat()

    async with app.rooms():
        await becomes(app, lambda found: found)
        times = [datetime.fromisoformat(text) for text in (since, until)]
        handles = await app.backfill_schedule("nightly", *times)
        found = [await ends(handle) for handle in handles]
    assert [slot[8:16] for slot in found] == expected
    assert all(slot.endswith("+00:00") for slot in found)
