"""Cancelling a run: CancelledError where it waits, time to clean up, and an end that says why."""

import asyncio
import threading

import pytest

from tests.rooms import alone
from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import App, RunCancelled, RunNotFound, attempt, sleep
from watchbill.flow import drain


async def cancelled(app: App, id: str) -> RunCancelled:
    with pytest.raises(RunCancelled) as caught:
        await ends(app.handle(id))
    return caught.value


async def test_cancelling_a_running_run_stops_its_step_and_says_why(app: App) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.step
    async def slow() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @app.workflow
    async def wf() -> None:
        await slow()

    async with app.rooms():
        handle = await app.start(wf, id="r")
        await asyncio.wait_for(begun.wait(), LONG)
        await handle.cancel("changed my mind")
        error = await cancelled(app, "r")
        assert (error.id, error.reason) == ("r", "changed my mind")
        assert str(error) == "run 'r' was cancelled: changed my mind"
        await asyncio.wait_for(stopped.wait(), LONG)
        assert (await handle.status()).state == "cancelled"


async def test_a_finally_may_call_steps_before_the_run_ends(app: App) -> None:
    cleaned: list[str] = []
    begun = asyncio.Event()

    @app.step
    async def slow() -> None:
        begun.set()
        await asyncio.Event().wait()

    @app.step
    async def clean(what: str) -> str:
        cleaned.append(what)
        return what

    @app.workflow
    async def wf() -> None:
        try:
            await slow()
        finally:
            await clean("desk")
            await sleep("1ms")
            await clean("floor")

    async with app.rooms():
        handle = await app.start(wf, id="r")
        await asyncio.wait_for(begun.wait(), LONG)
        await handle.cancel()
        assert (await cancelled(app, "r")).reason == ""
    assert cleaned == ["desk", "floor"]


async def test_a_workflow_sees_cancelled_error_where_it_waits_and_may_end_well(app: App) -> None:
    @app.workflow
    async def wf() -> str:
        try:
            await sleep("1d")
        except asyncio.CancelledError as error:
            return f"cancelled: {error}"
        return "slept"

    async with app.rooms():
        handle = await app.start(wf)
        await becomes(handle, lambda status: status.state == "waiting")
        await handle.cancel("wake up")
        assert await ends(handle) == "cancelled: wake up"


async def test_cancelling_a_run_that_has_not_begun(app: App) -> None:
    ran = []

    @app.workflow
    async def wf() -> None:
        ran.append(1)

    handle = await app.start(wf, id="r")
    assert (await handle.status()).state == "scheduled"
    await handle.cancel("never mind")
    async with app.rooms():
        assert (await cancelled(app, "r")).reason == "never mind"
    assert not ran
    await app.close()


async def test_cancelling_a_run_that_sleeps_long(app: App) -> None:
    @app.workflow
    async def wf() -> None:
        await sleep("30d")

    async with app.rooms():
        handle = await app.start(wf, id="r")
        await becomes(handle, lambda status: status.state == "waiting")
        await handle.cancel("too long")
        assert (await cancelled(app, "r")).reason == "too long"


async def test_cancelling_between_two_attempts(app: App, ear: Ear) -> None:
    numbers = []

    @app.step(retry=3)
    async def bad() -> None:
        numbers.append(attempt().number)
        raise ConnectionError

    @app.workflow
    async def wf() -> None:
        await bad()

    async with app.rooms():
        handle = await app.start(wf, id="r")
        await ear.hears("step.retried", "r")  # its backoff is a second
        await handle.cancel()
        await cancelled(app, "r")
    assert numbers == [1]


async def test_cancelling_a_step_in_a_process_of_its_own_kills_the_child(kept: str) -> None:
    app = App(kept)
    never_ends = app.step(isolation="own")(alone.never_ends.plain)

    @app.workflow
    async def wf() -> None:
        await never_ends()

    async with app.rooms():
        handle = await app.start(wf, id="r")
        await becomes(handle, lambda status: status.steps and status.steps[0].state == "running")
        await handle.cancel()
        await cancelled(app, "r")


async def test_a_thread_that_goes_on_does_not_keep_its_run_from_being_cancelled(app: App) -> None:
    begun, release = threading.Event(), threading.Event()

    @app.step
    def stubborn() -> None:
        begun.set()
        release.wait(LONG)

    @app.workflow
    async def wf() -> None:
        await stubborn()

    async with app.rooms():
        handle = await app.start(wf, id="r")
        await asyncio.to_thread(begun.wait, LONG)
        await handle.cancel()
        await cancelled(app, "r")
        release.set()


async def test_cancelling_a_held_run(app: App, ear: Ear) -> None:
    @app.workflow
    async def stuck() -> None:
        await asyncio.Event().wait()

    async with app.rooms():
        handle = await app.start(stuck, id="r")
        await ear.hears("run.held", "r")
        await handle.cancel("let go")
        assert (await cancelled(app, "r")).reason == "let go"


async def test_cancelling_twice_is_cancelling(app: App) -> None:
    @app.workflow
    async def wf() -> None:
        await sleep("1d")

    async with app.rooms():
        handle = await app.start(wf, id="r")
        await handle.cancel("first")
        await handle.cancel("second")
        assert (await cancelled(app, "r")).reason in ("first", "second")


async def test_cancelling_what_has_ended_changes_nothing(app: App) -> None:
    @app.workflow
    async def wf() -> int:
        return 5

    async with app.rooms():
        handle = await app.start(wf)
        assert await ends(handle) == 5
        await handle.cancel("too late")
        assert await ends(handle) == 5
        assert (await handle.status()).state == "completed"


async def test_cancelling_an_unknown_run_is_refused_by_its_id(app: App) -> None:
    async with app.rooms():
        with pytest.raises(RunNotFound, match=r"there is no run 'nobody' in namespace 'default'.*watchbill run list"):
            await app.handle("nobody").cancel()


async def test_code_that_never_rests_on_being_cancelled_is_ended_without_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "MOST_HOPS", 1_000)

    @app.step
    async def slow() -> None:
        await asyncio.Event().wait()

    @app.workflow
    async def child() -> None:
        await sleep("1h")

    @app.workflow
    async def restless() -> None:
        try:
            await asyncio.gather(slow(), child())
        finally:
            while True:
                await asyncio.sleep(0)

    async with app.rooms():
        handle = await app.start(restless, id="r")
        await becomes(app.handle("r"), lambda status: status.steps)
        await handle.cancel("enough")
        assert (await cancelled(app, "r")).reason == "enough"
        await cancelled(app, "r/child")
