"""Schedules that are created at run time: stored with their arguments, and served by every scheduler with the code."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.keys import FIRST
from tests.rooms.scene import LONG, Ear, ends
from tests.rooms.test_secrets import everything_in
from watchbill import (
    App,
    Handle,
    ImpureWorkflowError,
    InvalidOptionError,
    InvalidValueError,
    ScheduleStatus,
    current_run,
)
from watchbill import events as happened
from watchbill.app.hall import Hall

WORD = "xyzzy"


def reporting(app: App, **options: Any) -> Any:
    """Add a workflow that gives back its arguments and its slot."""

    @app.workflow(name="report", **options)
    async def report(place: str, days: int = 1) -> list[Any]:
        run = current_run()
        return [place, days, None if run.slot is None else run.slot.isoformat(), run.workflow]

    return report


async def names(app: App) -> list[str]:
    return [schedule.name for schedule in await app.schedules()]


async def a_run_of(app: App, id: str) -> Handle[Any]:
    """Wait for a run of a schedule that has completed."""
    async with asyncio.timeout(LONG):
        while True:
            async for run in app.runs(status="completed"):
                if run.id.startswith(f"{id}@"):
                    return run
            await asyncio.sleep(0.01)


async def test_created_schedule_starts_its_workflow_with_its_arguments_and_slots(app: App) -> None:
    report = reporting(app)
    async with app.rooms():
        made = await app.schedule(report, "eu", id="report-eu", every="1s", overlap="allow")
        assert isinstance(made, ScheduleStatus)
        assert (made.name, made.workflow, made.created, made.every, made.known) == (
            "report-eu",
            "report",
            True,
            1.0,
            True,
        )
        await app.schedule(report, "us", days=7, id="report-us", every="1s", overlap="allow")
        for id, region, days in (("report-eu", "eu", 1), ("report-us", "us", 7)):
            run = await a_run_of(app, id)
            slot = datetime.fromisoformat(run.id.partition("@")[2])
            assert await ends(run) == [region, days, slot.isoformat(), "report"]
        assert await names(app) == ["report-eu", "report-us"]


async def test_created_schedule_survives_restarts_and_is_served_by_another_process(kept: str) -> None:
    before = App(kept)
    report = reporting(before)
    await before.schedule(report, "eu", id="report-eu", every="1s")  # before any scheduler has served this store
    await before.close()
    for _ in range(2):
        app = App(kept)
        ear = Ear(app)
        reporting(app)
        async with app.rooms():
            [done, *_] = await ear.hears(happened.RUN_COMPLETED)
            assert done.run.startswith("report-eu@")
            assert ear.of(happened.SCHEDULE_REFUSED) == []


async def test_the_same_schedule_again_changes_nothing_and_another_one_replaces_it(app: App) -> None:
    report = reporting(app)
    async with app.rooms():
        await app.schedule(report, "eu", id="r", cron="0 2 * * *", by="ada", reason="new region")
        [first] = await app.logbook()
        assert (first.kind, first.name, first.act, first.by, first.reason) == (
            "schedule",
            "r",
            "create",
            "ada",
            "new region",
        )
        assert (
            await app.schedule(report, place="eu", days=1, id="r", cron="0 2 * * *", by="bob")
            == (await app.schedules())[0]
        )
        assert await app.logbook() == [first]
        changed = await app.schedule(
            report, "eu", id="r", cron="0 2 * * *", tz="Europe/Berlin", catchup="all", by="bob"
        )
        assert (changed.tz, changed.catchup) == ("Europe/Berlin", "all")
        await app.schedule(report, "eu", 2, id="r", cron="0 2 * * *", tz="Europe/Berlin", catchup="all", by="bob")
        assert [(one.act, one.by) for one in await app.logbook()] == [
            ("change", "bob"),
            ("change", "bob"),
            ("create", "ada"),
        ]
        assert (await ends(await app.run_schedule("r")))[:2] == ["eu", 2]


async def test_unscheduled_it_starts_nothing_more_and_its_runs_stay(app: App, ear: Ear) -> None:
    report = reporting(app)
    async with app.rooms():
        await app.schedule(report, "eu", id="r", every="1s")
        run = await a_run_of(app, "r")
        await app.unschedule("r", "moved", by="ada")
        begun = len(ear.of(happened.RUN_STARTED))
        assert await names(app) == []
        assert (await ends(run))[0] == "eu"
        [deleted, _] = await app.logbook()
        assert (deleted.act, deleted.by, deleted.reason) == ("delete", "ada", "moved")
        with pytest.raises(InvalidOptionError, match="no schedule 'r'"):
            await app.unschedule("r")
        await app.schedule(report, "us", id="later", every="1s", overlap="allow")
        await a_run_of(app, "later")
        assert [event.run for event in ear.of(happened.RUN_STARTED)[begun:] if event.run.startswith("r@")] == []


async def test_orders_work_as_for_schedules_in_code(app: App) -> None:
    report = reporting(app)
    async with app.rooms():
        await app.schedule(report, "eu", id="r", cron="0 2 * * *", overlap="allow")
        await app.pause_schedule("r", "holidays", by="ada")
        assert (await app.schedules())[0].paused_by == "ada"
        await app.schedule(report, "us", id="r", cron="0 2 * * *", overlap="allow")
        assert (await app.schedules())[0].paused_by == "ada", "a change does not resume it"
        await app.resume_schedule("r")
        handles = await app.backfill_schedule("r", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))
        assert [await ends(handle) for handle in handles] == [
            ["us", 1, f"2026-03-0{day}T02:00:00+00:00", "report"] for day in (1, 2)
        ]
        assert (await ends(await app.run_schedule("r"))) == ["us", 1, None, "report"]


async def test_code_that_starts_again_does_not_end_it(kept: str) -> None:
    """Its workflow has no schedule in code, and never had one."""
    before = App(kept)
    report = reporting(before)
    async with before.rooms():
        await before.schedule(report, "eu", id="r", every="1s")
        await a_run_of(before, "r")
    after = App(kept)
    ear = Ear(after)
    reporting(after)
    async with after.rooms():
        await ear.hears(happened.RUN_COMPLETED)
        [schedule] = await after.schedules()
        assert (schedule.ended, schedule.known) == (False, True)


async def test_it_goes_on_with_the_newest_version_of_its_workflow(kept: str) -> None:
    before = App(kept)
    report = reporting(before)
    await before.schedule(report, "eu", id="r", every="1s")
    await before.close()
    after = App(kept)
    ear = Ear(after)

    @after.workflow(name="report", version=2)
    async def newer(place: str, days: int = 1) -> int:
        return current_run().version

    async with after.rooms():
        [done, *_] = await ear.hears(happened.RUN_COMPLETED)
        assert await ends(after.handle(done.run, newer)) == 2


async def test_schedules_in_code_and_created_ones_do_not_take_each_others_names(kept: str) -> None:
    app = App(kept)
    nightly = reporting(app, cron="0 2 * * *", arguments={"place": "eu"})
    async with app.rooms():
        while not await app.schedules():
            await asyncio.sleep(0.01)
        with pytest.raises(InvalidOptionError, match=r"'report' is in the code of its workflow.*another id"):
            await app.schedule(nightly, "us", id="report", every="1h")
        with pytest.raises(InvalidOptionError, match=r"'report' is in the code of its workflow.*or pause it"):
            await app.unschedule("report")
        assert await app.logbook() == []
        [schedule] = await app.schedules()
        assert (schedule.created, schedule.cron) == (False, "0 2 * * *")
        assert (await ends(await app.run_schedule("report")))[0] == "eu"


async def test_code_cannot_take_the_name_of_a_created_schedule(kept: str) -> None:
    before = App(kept)
    report = reporting(before)
    await before.schedule(report, "us", id="report", cron="0 3 * * *")
    await before.close()
    after = App(kept)
    ear = Ear(after)
    reporting(after, cron="0 2 * * *", arguments={"place": "eu"})
    async with after.rooms():
        [refused] = await ear.hears(happened.SCHEDULE_REFUSED, "report")
        assert "`watchbill schedules delete`" in refused.note
        [schedule] = await after.schedules()
        assert (schedule.created, schedule.cron) == (True, "0 3 * * *")


async def test_schedule_that_has_ended_in_code_can_be_created_anew_or_deleted(kept: str) -> None:
    before = App(kept)
    reporting(before, cron="0 2 * * *", arguments={"place": "eu"})
    async with before.rooms():
        while not await before.schedules():
            await asyncio.sleep(0.01)
    after = App(kept)
    report = reporting(after)
    async with after.rooms():
        while not (await after.schedules())[0].ended:
            await asyncio.sleep(0.01)
        made = await after.schedule(report, "us", id="report", cron="0 2 * * *")
        assert (made.created, made.ended) == (True, False)
        assert made.last_slot > datetime.now(UTC) - timedelta(minutes=5)
        await after.unschedule("report")
        assert await after.schedules() == []


async def test_clients_that_create_the_same_one_at_once_make_one(kept: str) -> None:
    apps = [App(kept) for _ in range(4)]
    reports = [reporting(app) for app in apps]
    try:
        made = await asyncio.gather(
            *(app.schedule(report, "eu", id="r", cron="0 2 * * *") for app, report in zip(apps, reports, strict=True))
        )
        assert {schedule.name for schedule in made} == {"r"}
        assert len(await apps[0].logbook()) == 1
    finally:
        for app in apps:
            await app.close()


async def test_arguments_are_sealed(kept: str) -> None:
    app = App(kept, keys=FIRST)
    report = reporting(app)
    async with app.rooms():
        await app.schedule(report, WORD, id="r", every="1s")
        assert (await ends(await a_run_of(app, "r")))[0] == WORD
        await app.schedule(report, WORD, id="r", every="1s")
        assert [entry.act for entry in await app.logbook()] == ["create"], "equal arguments are found equal"
        stored = await everything_in(kept)
        assert b"r@2" in stored
        assert WORD.encode() not in stored


async def test_bad_input_is_refused_and_creates_nothing(app: App) -> None:
    report = reporting(app)

    @app.workflow
    async def impure() -> float:
        import time

        return time.time()

    stranger = reporting(App(app.url))
    refused = [
        ({"id": "r"}, "schedule 'r' needs cron= or every="),
        ({"id": "r", "cron": "0 2 * *"}, "schedule 'r': cron='0 2 \\* \\*' must have five fields"),
        ({"id": "r", "cron": "0 2 * * *", "tz": "Berlin"}, "schedule 'r': there is no time zone 'Berlin'"),
        ({"id": "r", "every": "1h", "overlap": "que"}, "schedule 'r': overlap= cannot be 'que'"),
        ({"id": "r@1", "every": "1h"}, "are kept for"),
        ({"id": "r" * 190, "every": "1h"}, "the id of a schedule is the beginning of its runs' ids: 1-172"),
        ({"id": "r", "every": "1h", "by": ""}, "by is a name"),
    ]
    for options, complaint in refused:
        with pytest.raises(InvalidOptionError, match=complaint):
            await app.schedule(report, "eu", **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="'days' of workflow 'report' must be int"):
        await app.schedule(report, "eu", "many", id="r", every="1h")
    with pytest.raises(TypeError, match="'place'"):
        await app.schedule(report, id="r", every="1h")
    with pytest.raises(InvalidOptionError, match="belongs to another App: schedule it there"):
        await app.schedule(stranger, "eu", id="r", every="1h")
    with pytest.raises(InvalidOptionError, match=r"schedule\(\) takes a workflow"):
        await app.schedule("report", "eu", id="r", every="1h")  # type: ignore[arg-type]
    with pytest.raises(ImpureWorkflowError):
        await app.schedule(impure, id="r", every="1h")
    async with app.rooms():
        assert await app.schedules() == []
        assert await app.logbook() == []


def test_synchronous_programs_have_them_too(kept: str) -> None:
    app = App(kept)
    report = reporting(app)
    made = app.sync.schedule(report, "eu", id="r", every="1h")
    assert [schedule.name for schedule in app.sync.schedules()] == [made.name] == ["r"]
    app.sync.unschedule("r")
    assert app.sync.schedules() == []
    app.sync.close()


async def test_delete_whose_answer_is_lost_is_no_error(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is repeated, and finds that it was carried out."""
    report = reporting(app)
    plain = Hall.write

    async def twice(hall: Hall, work: Any) -> Any:
        await plain(hall, work)
        return await plain(hall, work)

    async with app.rooms():
        for act in (lambda: app.schedule(report, "eu", id="r", every="1h"), lambda: app.unschedule("r")):
            with monkeypatch.context() as patch:
                patch.setattr(Hall, "write", twice)
                await act()
        assert await app.schedules() == []
        assert [entry.act for entry in await app.logbook()] == ["delete", "create"]
