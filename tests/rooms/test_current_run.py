"""Workflow code can read which run it is: its id, its slot, its parent; the same in every replay."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.rooms.scene import Ear, ends
from watchbill import App, CurrentRun, Handle, WatchbillError, attempt, continue_as, current_run, in_workflow, receive
from watchbill import events as happened


def shown() -> dict[str, Any]:
    """Give all that a run can read about itself, as JSON."""
    run = current_run()
    assert isinstance(run, CurrentRun)
    assert in_workflow()
    slot = None if run.slot is None else run.slot.isoformat()
    return {
        **{name: getattr(run, name) for name in ("id", "workflow", "version", "parent")},
        "slot": slot,
        "tags": [*run.tags],
    }


def slot_in(id: str) -> datetime:
    return datetime.fromisoformat(id.partition("@")[2].partition("~")[0])


async def test_a_run_that_was_started_by_hand_has_no_slot(app: App) -> None:
    @app.workflow(version=3)
    async def report() -> dict[str, Any]:
        return shown()

    async with app.rooms():
        assert await ends(await app.start(report, id="r-1", tags=["eu"])) == {
            "id": "r-1", "workflow": "report", "version": 3, "parent": None, "slot": None, "tags": ["eu"],
        }  # fmt: skip


async def test_a_scheduled_run_has_the_slot_that_its_id_names(app: App, ear: Ear) -> None:
    @app.workflow(every="1s")
    async def tick() -> dict[str, Any]:
        return shown()

    async with app.rooms():
        for done in await ear.hears(happened.RUN_COMPLETED, times=2):
            found = await ends(app.handle(done.run, tick))
            assert datetime.fromisoformat(found["slot"]) == slot_in(done.run)
            assert datetime.fromisoformat(found["slot"]).tzinfo is not None
            assert found["id"] == done.run


async def test_a_run_of_a_schedule_by_hand_has_no_slot(app: App) -> None:
    @app.workflow(cron="0 0 1 1 *")
    async def yearly() -> dict[str, Any]:
        return shown()

    async with app.rooms():
        await scheduled(app)
        assert (await ends(await app.run_schedule("yearly")))["slot"] is None


async def test_each_backfilled_run_has_its_own_slot(app: App) -> None:
    @app.workflow(cron="0 2 * * *", tz="Europe/Berlin", overlap="allow")
    async def nightly() -> dict[str, Any]:
        return shown()

    async with app.rooms():
        await scheduled(app)
        since = datetime(2026, 3, 28, tzinfo=UTC)
        handles = await app.backfill_schedule("nightly", since, since + timedelta(days=3))
        found = [(await ends(handle))["slot"] for handle in handles]
        assert found == ["2026-03-28T01:00:00+00:00", "2026-03-29T01:00:00+00:00", "2026-03-30T00:00:00+00:00"]


async def test_a_child_has_its_parent_and_no_slot(app: App) -> None:
    @app.workflow
    async def child() -> dict[str, Any]:
        return shown()

    @app.workflow(every="1s", overlap="skip")
    async def parent() -> list[Any]:
        return [shown(), await child()]

    async with app.rooms():
        done = await the_first(app, happened.RUN_COMPLETED, "parent")
        own, of_child = await ends(app.handle(done, parent))
        assert own["slot"] is not None
        assert (of_child["parent"], of_child["slot"], of_child["workflow"]) == (own["id"], None, "child")


async def test_a_replay_reads_the_same(kept: str) -> None:
    """A second process takes the run over, after a step that was given all that the run knows."""

    def reporting(app: App) -> Any:
        @app.step
        async def keep(told: dict[str, Any]) -> dict[str, Any]:
            return told

        @app.workflow(every="1s", overlap="skip")
        async def report() -> list[Any]:
            return [shown(), await keep(shown()), await receive("go", int)]

        return report

    before = App(kept)
    report = reporting(before)
    async with before.rooms():
        run = await the_waiting(before)
    after = App(kept)
    report = reporting(after)
    async with after.rooms():
        await after.handle(run.id).send("go", 1)
        first, kept_by_step, _ = await ends(after.handle(run.id, report))
        assert first == kept_by_step
        assert datetime.fromisoformat(first["slot"]) == slot_in(run.id)


async def test_a_continued_run_keeps_its_slot(app: App) -> None:
    @app.workflow
    async def second() -> dict[str, Any]:
        return shown()

    @app.workflow(every="1s", overlap="skip")
    async def first() -> dict[str, Any]:
        await continue_as(second)

    async with app.rooms():
        done = await the_first(app, happened.RUN_COMPLETED, "first")
        found = await ends(app.handle(done))
        assert found["workflow"] == "second"
        assert datetime.fromisoformat(found["slot"]) == slot_in(done)


class Fragile:
    """A scheduled workflow that passes all that it knows of its run to steps, of which the second fails at first."""

    def __init__(self, app: App) -> None:
        self.broken = True

        @app.step
        async def keep(told: dict[str, Any]) -> dict[str, Any]:
            return told

        @app.step(retry=0)
        async def fragile(told: dict[str, Any]) -> dict[str, Any]:
            if self.broken:
                raise RuntimeError("broken")
            return told

        @app.workflow(every="1s", overlap="skip")
        async def report() -> list[Any]:
            return [await keep(shown()), await fragile(shown()), shown()]

        self.report = report


async def test_a_retry_and_a_fork_stand_for_the_same_slot_and_have_ids_of_their_own(app: App) -> None:
    """The calls that they keep were given the original's id, and they go on all the same."""
    shop = Fragile(app)
    async with app.rooms():
        failed = app.handle(await the_first(app, happened.RUN_FAILED, "report"), shop.report)
        shop.broken = False
        again = await failed.retry()
        kept, fragile, own = await ends(again)
        assert (kept["id"], fragile["id"], own["id"]) == (failed.id, again.id, again.id)
        assert kept["slot"] == fragile["slot"] == own["slot"]
        assert datetime.fromisoformat(own["slot"]) == slot_in(failed.id)
        fork = await again.fork("keep")
        kept, fragile, own = await ends(fork)
        assert (kept["id"], fragile["id"], own["id"]) == (failed.id, fork.id, fork.id)
        assert datetime.fromisoformat(own["slot"]) == slot_in(failed.id)
        rewound = await fork.rewind("fragile")
        kept, fragile, own = await ends(rewound)
        assert (kept["id"], own["id"], own["slot"]) == (failed.id, rewound.id, kept["slot"])


async def test_a_retried_child_names_the_same_parent(app: App) -> None:
    broken = True

    @app.step(retry=0)
    async def fragile(parent: str | None) -> str | None:
        if broken:
            raise RuntimeError("broken")
        return parent

    @app.workflow
    async def child() -> str | None:
        return await fragile(current_run().parent)

    @app.workflow
    async def parent() -> None:
        await child()

    async with app.rooms():
        with pytest.raises(Exception, match="broken"):
            await ends(await app.start(parent, id="p"))
        broken = False
        [failed] = [run async for run in app.runs(workflow="child")]
        assert await ends(await failed.retry()) == "p"


async def test_outside_a_workflow_there_is_no_run(app: App) -> None:
    found: list[Any] = []

    @app.step
    async def on_the_loop() -> None:
        found.append(in_workflow())
        with pytest.raises(WatchbillError, match=r"call it in workflow code.*attempt\(\).run"):
            current_run()

    @app.step
    def in_a_thread() -> str:
        found.append(in_workflow())
        with pytest.raises(WatchbillError, match="where no workflow runs"):
            current_run()
        return attempt().run  # type: ignore[union-attr]

    @app.workflow
    async def order() -> bool:
        await on_the_loop()
        assert await in_a_thread() == current_run().id
        return in_workflow()

    async with app.rooms():
        assert await ends(await app.start(order))
    assert found == [False, False]
    assert not in_workflow()
    with pytest.raises(WatchbillError, match="where no workflow runs"):
        current_run()


async def scheduled(app: App) -> None:
    while not await app.schedules():
        await asyncio.sleep(0.01)


async def the_first(app: App, kind: str, workflow: str) -> str:
    """Wait for the event of a run of a schedule, and give the run's id."""
    ear = Ear(app)
    while not (
        found := [event.run for event in ear.of(kind) if event.run.startswith(f"{workflow}@") and "/" not in event.run]
    ):
        await ear.hears(kind, times=len(ear.of(kind)) + 1)
    return found[0]


async def the_waiting(app: App) -> Handle[Any]:
    """Find the run that waits for a message."""
    while not (found := [run async for run in app.runs(status="waiting")]):
        await asyncio.sleep(0.01)
    return found[0]
