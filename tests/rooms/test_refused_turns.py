"""One run whose turn the store always refuses: it is held with the store's words, and all others go on."""

import asyncio
import os

import pytest

from tests.rooms.refusing import SAID, refusing
from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import App, StepFailed, attempt, sleep


async def test_run_that_is_refused_alone_is_held_and_all_others_go_on(app: App, ear: Ear, url: str) -> None:
    begun: list[int] = []

    @app.step
    async def good(n: int) -> int:
        begun.append(n)
        return n

    @app.step
    async def poison(n: int) -> int:
        return n

    @app.workflow
    async def fine(n: int) -> int:
        return sum([await good(n), await good(n), await good(n)])

    @app.workflow
    async def refused(n: int) -> int:
        return await good(n) + await poison(n)

    async with app.rooms():
        await ends(await app.start(fine, 0))
        async with refusing(url, "journal", "INSERT", "NEW.key = 'poison'"):
            bad = [await app.start(refused, n, id=f"bad-{n}") for n in range(2)]
            runs = await app.start_many([(fine, (n,)) for n in range(1, 40)])
            assert [await ends(run) for run in runs] == [3 * n for n in range(1, 40)]
            for run in bad:
                status = await becomes(run, lambda status: status.held)
                assert status.held is not None
                assert status.held.startswith("quarantined: the store refuses what it would write: ")
                assert SAID in status.held
            assert await ends(await app.start(fine, 50)) == 150
            incident = await _incident(app)
            assert SAID in incident
        assert ear.of("turn.failed") == ear.of("shards.lost") == []
        # What each of them had done before is not done again, and none of the others did anything twice.
        assert sorted(begun) == sorted([0, 0, 0, 50, 50, 50, 0, 1, *(n for n in range(1, 40) for _ in range(3))])
        for run in bad:
            await run.retry()
        assert [await ends(run) for run in bad] == [0, 2]


async def test_step_of_a_refused_run_begins_again_under_a_higher_fence(app: App, url: str) -> None:
    fences: list[int] = []

    @app.step
    async def poison() -> int:
        fences.append(attempt().fence)
        return 1

    @app.workflow
    async def refused() -> int:
        return await poison()

    async with app.rooms():
        async with refusing(url, "journal", "INSERT", "NEW.key = 'poison'"):
            run = await app.start(refused)
            await becomes(run, lambda status: status.held)
        await run.retry()
        assert await ends(run) == 1
    assert len(fences) > 1
    assert fences == sorted(set(fences))


async def _incident(app: App) -> str:
    async with asyncio.timeout(LONG):
        while True:
            for incident in await app.incidents():
                if incident.cause.startswith("quarantined"):
                    return incident.said
            await asyncio.sleep(0.01)


async def test_run_whose_first_turn_is_refused_is_held_and_all_others_go_on(app: App, ear: Ear, url: str) -> None:
    @app.workflow
    async def first() -> int:
        await sleep("1h")
        return 1

    @app.workflow
    async def fine() -> int:
        return 2

    async with app.rooms():
        async with refusing(url, "run", "UPDATE", "NEW.id = 'first' AND NEW.held IS NULL AND NEW.status <> 0"):
            run = await app.start(first, id="first")
            assert [await ends(await app.start(fine)) for _ in range(5)] == [2] * 5
            status = await becomes(run, lambda status: status.held)
            assert SAID in (status.held or "")
            assert await ends(await app.start(fine)) == 2
        assert ear.of("turn.failed") == []
        await run.retry()
        await becomes(run, lambda status: status.state == "waiting")


async def test_run_that_cannot_even_be_held_stops_no_other_and_goes_on_later(
    app: App, ear: Ear, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchbill.scheduler.refusals.WAITS_FOR", 50_000)

    @app.workflow
    async def first() -> int:
        return 1

    @app.workflow
    async def fine() -> int:
        return 2

    async with app.rooms():
        async with refusing(url, "run", "UPDATE", "NEW.id = 'first'"):
            run = await app.start(first, id="first")
            [held, *_] = await ear.hears("run.held", "first", times=2)
            assert SAID in held.note
            assert "cannot be held" in held.note
            assert [await ends(await app.start(fine)) for _ in range(5)] == [2] * 5
        status = await becomes(run, lambda status: status.state == "completed" or status.held)
        if status.held:  # the store took its hold first
            await run.retry()
        assert await ends(run) == 1
    assert ear.of("turn.failed") == []


async def test_steps_of_other_runs_run_on_when_a_turn_is_refused(app: App, ear: Ear, url: str) -> None:
    """Nothing in memory is dropped but the run that is refused: what runs for others runs on."""
    running, go_on, begun = asyncio.Event(), asyncio.Event(), 0

    @app.step(timeout="1h")
    async def long() -> str:
        nonlocal begun
        begun += 1
        running.set()
        await go_on.wait()
        return "long"

    @app.step
    async def poison() -> int:
        return 1

    @app.workflow
    async def waits() -> str:
        return await long()

    @app.workflow
    async def refused() -> int:
        return await poison()

    async with app.rooms():
        run = await app.start(waits)
        await running.wait()
        async with refusing(url, "journal", "INSERT", "NEW.key = 'poison'"):
            await becomes(await app.start(refused), lambda status: status.held)
        go_on.set()
        assert await ends(run) == "long"
    assert begun == 1
    assert ear.of("step.lost", run.id) == ear.of("shards.lost") == []


@pytest.mark.parametrize("name", [os.fsdecode(b"caf\xe9.txt"), "a\0b", "\ud800/x", "caf\u00e9"])
async def test_any_name_of_a_task_can_be_stored(app: App, ear: Ear, name: str) -> None:
    @app.step
    async def read(n: int) -> int:
        if n == 2:
            raise ValueError("two")
        return n

    @app.workflow
    async def reads() -> str:
        one = asyncio.create_task(_read(1), name=name)
        two = asyncio.create_task(_read(2), name=name)
        await sleep(0.001)
        assert asyncio.current_task() is not None
        assert one.get_name() == name  # as the workflow named it
        try:
            return f"{await one + await two}"
        except StepFailed as failed:
            return f"{await one} {failed.type}"

    async def _read(n: int) -> int:
        return await read.options(retry=0)(n) if n == 2 else await read(n)

    async with app.rooms():
        run = await app.start(reads)
        assert await ends(run) == "1 ValueError"
    assert ear.of("turn.failed") == ear.of("run.held") == []


async def test_report_that_is_refused_alone_goes_to_a_person_and_stops_no_other(app: App, ear: Ear, url: str) -> None:
    together = asyncio.Barrier(3)

    @app.step(idempotent=False, retry=0)
    async def charge(n: int) -> int:
        await together.wait()  # so that they are reported at once
        return n

    @app.workflow
    async def charges(n: int) -> int:
        return await charge(n)

    async with app.rooms(), refusing(url, "attempt", "UPDATE", "NEW.run_id = 'bad' AND NEW.state = 4"):
        good = [await app.start(charges, n) for n in range(2)]
        bad = await app.start(charges, 2, id="bad")
        assert [await ends(run) for run in good] == [0, 1]
        [opened] = await ear.hears("incident.opened")
        assert "the store refuses to write its outcome" in opened.note
        assert SAID in opened.note
        assert (await bad.status()).state == "waiting"  # it took effect once: it is not tried again blindly
    assert ear.of("turn.failed") == []


async def test_schedule_that_is_refused_alone_stops_no_other(app: App, ear: Ear, url: str) -> None:
    @app.workflow(every="1h")
    async def hourly() -> int:
        return 1

    @app.workflow(every="1s")
    async def often() -> int:
        return 2

    async with refusing(url, "schedule", "INSERT", "NEW.name = 'hourly'"), app.rooms():
        [refused] = await ear.hears("schedule.refused", "hourly")
        assert SAID in refused.note
        await ear.hears("run.completed")
    assert ear.of("turn.failed") == []


async def test_schedule_whose_slots_are_refused_stops_no_other(app: App, ear: Ear, url: str) -> None:
    @app.workflow(every="1s")
    async def bad() -> int:
        return 1

    @app.workflow(every="1s")
    async def often() -> int:
        return 2

    async with app.rooms():
        await ear.hears("run.completed")
        async with refusing(url, "run", "INSERT", "NEW.workflow = 'bad'"):
            [refused, *_] = await ear.hears("schedule.refused", "bad")
            assert SAID in refused.note
            await ear.hears("run.completed", times=len(ear.of("run.completed")) + 2)
    assert ear.of("turn.failed") == []
