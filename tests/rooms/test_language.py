"""What an author writes, and what comes of it: plain asyncio, durably."""

import asyncio
import contextlib
import os
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.rooms import alone
from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import (
    App,
    InvalidOptionError,
    Permanent,
    Retry,
    RunCancelled,
    RunFailed,
    RunHeld,
    StepFailed,
    Workflow,
    attempt,
    sleep,
)

SOON = Retry(2, backoff="10ms")


@dataclass
class Order:
    name: str
    cents: int


async def played(app: App, workflow: Workflow[..., Any], *args: object, id: str | None = None) -> Any:
    """Open the rooms, run one workflow to its end, close them."""
    async with app.rooms():
        return await ends(await app.start(workflow, *args, id=id))


async def failed(app: App, workflow: Workflow[..., Any], *args: object, id: str | None = None) -> RunFailed:
    with pytest.raises(RunFailed) as caught:
        await played(app, workflow, *args, id=id)
    return caught.value


# --- calls


async def test_steps_run_one_after_the_other_and_hand_on_typed_values(app: App) -> None:
    @app.step
    async def price(order: Order) -> Order:
        return Order(order.name, order.cents + 1)

    @app.step
    def label(order: Order, *, shout: bool = False) -> str:
        assert isinstance(order, Order)
        return order.name.upper() if shout else order.name

    @app.workflow
    async def sell(order: Order) -> tuple[str, int]:
        priced = await price(order)
        assert isinstance(priced, Order)
        return await label(priced, shout=True), priced.cents

    assert await played(app, sell, Order("pen", 99)) == ("PEN", 100)


async def test_a_step_sees_no_context_variable_that_another_one_set(app: App) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")

    def entered(name: str) -> str:
        before = tenant.get()
        tenant.set(name)
        return before

    @app.step
    def in_thread(name: str) -> str:
        return entered(name)

    @app.step
    async def at_once(name: str) -> str:
        return entered(name)

    @app.step
    async def later(name: str) -> str:
        before = entered(name)
        await asyncio.sleep(0)
        assert tenant.get() == name
        return before

    @app.workflow
    async def many() -> list[str]:
        return await asyncio.gather(*(step(f"{n}") for n in range(50) for step in (in_thread, at_once, later)))

    async with app.rooms(threads=2):
        assert set(await ends(await app.start(many))) == {"nobody"}


async def test_each_step_that_waits_is_a_task_of_its_own(app: App) -> None:
    tasks: dict[int, asyncio.Task[Any] | None] = {}
    together = asyncio.Barrier(20)

    @app.step
    async def meet(n: int) -> bool:
        tasks[n] = asyncio.current_task()
        async with asyncio.timeout(LONG):
            await together.wait()
        return asyncio.current_task() is tasks[n]

    @app.workflow
    async def all_meet() -> list[bool]:
        return await asyncio.gather(*(meet(n) for n in range(20)))

    assert await played(app, all_meet) == [True] * 20
    assert len({id(task) for task in tasks.values()}) == 20


async def test_a_step_that_cancels_its_own_task_and_returns_harms_nobody(app: App) -> None:
    @app.step
    async def rude(n: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        if n == 3:
            task.cancel()
        return n

    @app.step
    async def polite(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @app.workflow
    async def both() -> list[int]:
        return await asyncio.gather(*(each(n) for n in range(8) for each in (rude, polite)))

    assert await played(app, both) == [n for n in range(8) for _ in (0, 1)]


async def test_a_result_that_comes_after_the_deadline_loses_also_when_both_are_seen_at_once(app: App) -> None:
    @app.step
    async def slow() -> str:
        await asyncio.sleep(0.05)
        time.sleep(0.15)  # nobody sees the timer before this has ended
        return "too late"

    @app.workflow
    async def patient() -> str:
        try:
            async with asyncio.timeout(0.1):
                return await slow()
        except TimeoutError:
            return "timeout"

    assert await played(app, patient) == "timeout"


async def test_gather_runs_steps_at_the_same_time_and_keeps_their_order(app: App) -> None:
    together = asyncio.Barrier(3)

    @app.step
    async def meet(n: int) -> int:
        await together.wait()
        return n * 10

    @app.workflow
    async def party() -> list[int]:
        return list(await asyncio.gather(meet(1), meet(2), meet(3)))

    assert await played(app, party) == [10, 20, 30]


async def test_a_task_group_cancels_the_others_when_one_fails(app: App) -> None:
    begun = asyncio.Event()
    stopped = asyncio.Event()

    @app.step
    async def slow() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @app.step(retry=0)
    async def bad() -> None:
        await begun.wait()
        raise ValueError("no")

    @app.workflow
    async def group() -> str:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(slow())
                tasks.create_task(bad())
        except ExceptionGroup as errors:
            return str(errors.exceptions[0])
        return "no error"

    async with app.rooms():
        handle = await app.start(group)
        assert "step 'bad' failed" in await ends(handle)
        await asyncio.wait_for(stopped.wait(), LONG)


async def test_wait_gives_the_first_that_is_done(app: App) -> None:
    release = asyncio.Event()

    @app.step
    async def fast() -> str:
        return "fast"

    @app.step
    async def slow() -> str:
        await release.wait()
        return "slow"

    @app.workflow
    async def race() -> list[str]:
        tasks = [asyncio.create_task(slow()), asyncio.create_task(fast())]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = [task.result() for task in done]
        await open_the_door()
        return first + [await task for task in pending]

    @app.step
    async def open_the_door() -> None:
        release.set()

    assert await played(app, race) == ["fast", "slow"]


async def test_a_timeout_around_a_slow_step_cancels_its_attempt(app: App) -> None:
    stopped: list[str] = []

    @app.step
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(attempt().key)

    @app.workflow
    async def impatient() -> str:
        try:
            async with asyncio.timeout(0.01):
                await slow()
        except TimeoutError:
            return "gave up"
        return "waited"

    async with app.rooms():
        assert await ends(await app.start(impatient, id="i")) == "gave up"
    assert len(stopped) == 1


async def test_a_thread_sees_that_its_attempt_was_cancelled(app: App) -> None:
    begun, seen = threading.Event(), threading.Event()

    @app.step
    def slow() -> None:
        this = attempt()
        begun.set()
        while not this.cancelled:
            pass
        seen.set()

    @app.step
    def wait_for_it() -> None:
        begun.wait(LONG)

    @app.workflow
    async def impatient() -> None:
        task = asyncio.create_task(slow())
        await wait_for_it()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async with app.rooms():
        await ends(await app.start(impatient))
        assert await asyncio.to_thread(seen.wait, LONG)


async def test_sync_steps_run_off_the_event_loop(app: App) -> None:
    @app.step
    def where() -> int:
        return threading.get_ident()

    @app.step
    async def where_async() -> int:
        return threading.get_ident()

    @app.workflow
    async def both() -> tuple[int, int]:
        return await where(), await where_async()

    off, on = await played(app, both)
    assert off != threading.get_ident() == on


async def test_a_call_outside_a_workflow_simply_runs_the_function(app: App) -> None:
    @app.step
    def double(n: int) -> int:
        assert (attempt().number, attempt().restored) == (1, None)
        attempt().progress(1)
        attempt().checkpoint(n)
        return 2 * n

    assert await double(4) == 8
    assert double.plain(4) == 8


async def test_a_step_called_inside_another_step_sees_an_unattached_attempt(app: App) -> None:
    @app.step
    async def inner() -> tuple[str, int]:
        await attempt().checkpoint("mine")
        attempt().progress(5)
        return attempt().key, attempt().fence

    @app.step
    def inner_sync() -> str:
        return attempt().key

    @app.step
    async def outer() -> list[str]:
        before = attempt().key
        (alone, fence), (together, _) = await inner(), (await asyncio.gather(inner()))[0]
        assert fence == 0
        return [before, alone, together, await inner_sync(), attempt().key]

    @app.workflow
    async def nested() -> list[str]:
        return await outer()

    before, *inside, after = await played(app, nested, id="n")
    assert inside == ["unattached"] * 3
    assert before == after
    assert before.startswith("default:n:0:outer:")


@pytest.mark.parametrize("n", [2_000, 10_000])
async def test_a_gather_of_thousands(kept: str, n: int) -> None:
    app = App(kept)

    @app.step
    async def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def fan(n: int) -> int:
        return sum(await asyncio.gather(*(double(i) for i in range(n))))

    assert await played(app, fan, n) == n * (n - 1)


# --- time


async def test_a_durable_sleep_takes_its_time(app: App) -> None:
    @app.workflow
    async def nap() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await sleep("20ms")
        await asyncio.sleep(0.01)
        return loop.time() - began

    began = asyncio.get_running_loop().time()
    assert await played(app, nap) >= 0.03
    assert asyncio.get_running_loop().time() - began >= 0.03


async def test_a_long_sleep_shows_as_waiting_with_its_time(app: App) -> None:
    @app.workflow
    async def nap() -> None:
        await sleep(timedelta(days=2))

    async with app.rooms():
        handle = await app.start(nap, id="nap")
        status = await becomes(handle, lambda status: status.state == "waiting")
        assert status.waiting_for is not None
        assert status.waiting_for.startswith("time, until ")
        assert (status.health, status.paused, status.held) == ("ok", False, None)
    async with app.rooms():  # opened again, it still sleeps
        assert (await handle.status()).state == "waiting"
        with pytest.raises(TimeoutError):
            await handle.result(timeout=0.01)


async def test_a_timeout_of_result_may_be_written_like_any_duration(app: App) -> None:
    @app.workflow
    async def nap() -> None:
        await sleep("1d")

    async with app.rooms():
        handle = await app.start(nap)
        with pytest.raises(TimeoutError):
            await handle.result(timeout="1ms")
        with pytest.raises(TimeoutError):
            await handle.result(timeout=timedelta(milliseconds=1))
        with pytest.raises(InvalidOptionError, match="the timeout of result"):
            await handle.result(timeout="soon")


# --- failures


async def test_a_failed_step_is_an_exception_like_any_other(app: App) -> None:
    @app.step(retry=0)
    async def bad(word: str) -> None:
        raise LookupError(word)

    @app.workflow
    async def careful() -> tuple[str, str, str, int, str]:
        try:
            await bad("nothing there")
        except StepFailed as error:
            return error.step, error.type, error.message, error.attempts, error.cause
        raise AssertionError

    assert await played(app, careful) == ("bad", "LookupError", "nothing there", 1, "raised")


async def test_a_step_that_fails_for_good_fails_the_run(app: App) -> None:
    @app.step(retry=Retry(1, backoff="1ms"))
    def bad() -> None:
        raise LookupError("nothing there")

    @app.workflow
    async def careless() -> None:
        await bad()

    error = await failed(app, careless, id="c")
    assert (error.error.type, error.error.message) == ("LookupError", "nothing there")
    assert (error.step, error.attempts, error.cause) == ("bad", 2, "raised")
    assert 'raise LookupError("nothing there")' in error.error.traceback
    assert "watchbill/" not in error.error.traceback
    assert str(error) == "run 'c' failed (raised) in step 'bad' after 2 attempts: LookupError: nothing there"


async def test_an_exception_of_the_workflow_itself_fails_the_run(app: App) -> None:
    @app.workflow
    async def wrong() -> None:
        raise ZeroDivisionError("by hand")

    error = await failed(app, wrong, id="w")
    assert (error.error.type, error.error.message) == ("ZeroDivisionError", "by hand")
    assert (error.step, error.attempts, error.cause) == (None, None, "raised")
    assert "in wrong" in error.error.traceback
    assert str(error) == "run 'w' failed (raised): ZeroDivisionError: by hand"


async def test_retry_2_makes_three_attempts_with_growing_pauses(app: App, ear: Ear) -> None:
    clock = asyncio.get_running_loop().time
    at: list[float] = []
    numbers: list[int] = []

    @app.step(retry=Retry(2, backoff="20ms", factor=2))
    async def bad() -> None:
        at.append(clock())
        numbers.append(attempt().number)
        raise ConnectionError("down")

    @app.workflow
    async def patient() -> None:
        await bad()

    assert (await failed(app, patient)).attempts == 3
    assert numbers == [1, 2, 3]
    assert at[1] - at[0] >= 0.02
    assert at[2] - at[1] >= 0.04
    assert len(ear.of("step.retried")) == 2
    assert len(ear.of("step.gave_up")) == 1


async def test_a_retry_that_succeeds(app: App) -> None:
    @app.step(retry=SOON)
    def flaky() -> int:
        if attempt().number < 3:
            raise ConnectionError("down")
        return attempt().number

    @app.workflow
    async def patient() -> int:
        return await flaky()

    async with app.rooms():
        handle = await app.start(patient)
        assert await ends(handle) == 3
        [step] = (await handle.status()).steps
    assert [(a.number, a.cause) for a in step.attempts] == [(1, "raised"), (2, "raised"), (3, None)]
    assert step.attempts[0].error == "ConnectionError: down"
    assert step.state == "completed"


class Busy(ConnectionError):
    pass


@pytest.mark.parametrize(
    ("retry", "raised", "attempts"),
    [
        (Retry(2, backoff="1ms", on=(ConnectionError,)), ConnectionError, 3),
        (Retry(2, backoff="1ms", on=(ConnectionError,)), Busy, 3),
        (Retry(2, backoff="1ms", on=(ConnectionError,)), ValueError, 1),
        (Retry(2, backoff="1ms", never=(ConnectionError,)), Busy, 1),
        (Retry(2, backoff="1ms", never=(ConnectionError,)), ValueError, 3),
        (Retry(2, backoff="1ms", on=(Exception,), never=(Busy,)), Busy, 1),
        (Retry(2, backoff="1ms"), Permanent, 1),
        (0, ValueError, 1),
    ],
)
async def test_what_is_tried_again(kept: str, retry: int | Retry, raised: type[Exception], attempts: int) -> None:
    app = App(kept)

    @app.step(retry=retry)
    async def bad() -> None:
        raise raised("no")

    @app.workflow
    async def wf() -> None:
        await bad()

    assert (await failed(app, wf)).attempts == attempts


async def test_the_policy_of_a_call_is_its_own_else_the_steps_else_the_workflows(app: App) -> None:
    @app.step
    async def plain() -> None:
        raise ValueError

    @app.step(retry=Retry(1, backoff="1ms"))
    async def own() -> None:
        raise ValueError

    async def attempts_of(call: Any) -> int:
        try:
            await call
        except StepFailed as error:
            return error.attempts
        raise AssertionError

    @app.workflow(retry=Retry(2, backoff="1ms"))
    async def wf() -> list[int]:
        return [
            await attempts_of(plain()),
            await attempts_of(own()),
            await attempts_of(own.options(retry=Retry(3, backoff="1ms"))()),
            await attempts_of(plain.options(retry=0)()),
        ]

    assert await played(app, wf) == [3, 2, 4, 1]


async def test_a_call_may_have_a_key_of_its_own(app: App) -> None:
    @app.step
    async def key(n: int) -> str:
        return attempt().key

    @app.workflow
    async def wf() -> list[str]:
        return [await key.options(key=f"chunk-{n}")(n) for n in range(2)]

    first, second = await played(app, wf, id="r")
    assert first.startswith("default:r:0:chunk-0:")
    assert second.startswith("default:r:0:chunk-1:")


async def test_an_async_step_that_is_late_is_cancelled_and_tried_again(app: App, ear: Ear) -> None:
    stopped = []

    @app.step(timeout="500ms", retry=Retry(1, backoff="1ms"))
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(attempt().number)

    @app.workflow
    async def wf() -> None:
        await slow()

    error = await failed(app, wf)
    assert (error.error.type, error.cause, error.attempts) == ("Late", "late", 2)
    assert "timeout of 0.5 s" in error.error.message
    assert stopped == [1, 2]
    assert len(ear.of("step.late")) == 2


async def test_the_late_result_of_a_thread_is_dropped(app: App) -> None:
    release = threading.Event()

    @app.step(timeout="300ms", retry=Retry(1, backoff="1ms"))
    def slow() -> str:
        number = attempt().number
        if number == 1:
            release.wait(LONG)
        else:
            release.set()
        return f"attempt {number}"

    @app.workflow
    async def wf() -> str:
        return await slow()

    async with app.rooms():
        handle = await app.start(wf)
        assert await ends(handle) == "attempt 2"
        [step] = (await handle.status()).steps
    assert [a.cause for a in step.attempts] == ["late", None]


# --- attempt()


async def test_the_key_is_the_same_for_every_attempt_and_the_fence_grows(app: App) -> None:
    seen: list[tuple[str, int]] = []

    @app.step(retry=SOON)
    async def flaky(word: str) -> None:
        seen.append((attempt().key, attempt().fence))  # the first without a row, the others with one
        if attempt().number < 3:
            raise ConnectionError

    @app.workflow
    async def wf() -> None:
        await flaky("x")
        await flaky("y")

    await played(app, wf, id="r")
    keys = [key for key, _ in seen]
    assert len(set(keys[:3])) == 1 == len(set(keys[3:]))
    assert keys[0].startswith("default:r:0:flaky:")
    assert keys[3].startswith("default:r:0:flaky.2:")
    for fences in ([fence for _, fence in seen[:3]], [fence for _, fence in seen[3:]]):
        assert fences == sorted(set(fences))


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_progress_shows_in_the_status(app: App, kind: str) -> None:
    release = threading.Event()

    @app.step
    def sync_work() -> None:
        attempt().progress(3, total=10, note="chunk 3")
        release.wait(LONG)

    @app.step
    async def async_work() -> None:
        attempt().progress(3, total=10, note="chunk 3")
        await asyncio.to_thread(release.wait, LONG)

    @app.workflow
    async def wf() -> None:
        await (sync_work() if kind == "sync" else async_work())

    async with app.rooms():
        handle = await app.start(wf)
        status = await becomes(handle, lambda status: status.steps and status.steps[0].progress)
        release.set()
        [step] = status.steps
        assert step.progress is not None
        assert (step.progress.done, step.progress.total, step.progress.note) == (3, 10, "chunk 3")
        assert (step.key, step.step, step.state) == (f"{kind}_work", f"{kind}_work", "running")
        assert [(a.number, a.cause) for a in step.attempts] == [(1, None)]
        assert status.state == "running"
        await ends(handle)


async def test_a_checkpoint_is_restored_in_the_next_attempt(app: App) -> None:
    seen: list[Any] = []

    @app.step(retry=SOON)
    def sync_work() -> list[int]:
        done: list[int] = attempt().restored or []
        seen.append(list(done))
        attempt().checkpoint([*done, attempt().number])
        if attempt().number < 3:
            raise ConnectionError
        return done

    @app.step(retry=SOON)
    async def async_work() -> int:
        seen.append(attempt().restored)
        await attempt().checkpoint({"n": attempt().number})
        if attempt().number < 3:
            raise ConnectionError
        return int((attempt().restored or {})["n"])

    @app.workflow
    async def wf() -> tuple[list[int], int]:
        return await sync_work(), await async_work()

    assert await played(app, wf) == ([1, 2], 2)
    assert seen == [[], [1], [1, 2], None, {"n": 1}, {"n": 2}]


async def test_many_checkpoints_of_one_attempt_keep_the_last(app: App) -> None:
    @app.step(retry=SOON)
    def work() -> Any:
        if attempt().number == 1:
            for n in range(50):
                attempt().checkpoint(n)
            raise ConnectionError
        return attempt().restored

    @app.workflow
    async def wf() -> Any:
        return await work()

    assert await played(app, wf) == 49


# --- a process of its own


def own(app: App, step: Any, **options: Any) -> Any:
    """Make a step of tests/rooms/alone.py a step of this App."""
    return app.step(isolation="own", **options)(step.plain)


async def test_a_step_in_a_process_of_its_own_gives_its_result(kept: str) -> None:
    app = App(kept)
    pid_of, pid_of_async, refuses = (
        own(app, alone.pid_of),
        own(app, alone.pid_of_async),
        own(app, alone.refuses, retry=0),
    )

    @app.workflow
    async def wf() -> list[Any]:
        failure: list[Any] = []
        try:
            await refuses("no")
        except StepFailed as error:
            failure = [error.type, error.message, error.attempts, "refuses" in error.traceback]
        return [await pid_of("a"), await pid_of_async("b"), failure]

    (word, pid, key, number), (other, other_pid), failure = await played(app, wf, id="r")
    assert (word, other, number) == ("a", "b", 1)
    assert len({pid, other_pid, os.getpid()}) == 3
    assert key.startswith("default:r:0:pid_of:")
    assert failure == ["KeyError", "'no'", 1, True]


async def test_checkpoints_and_progress_cross_from_a_process_of_its_own(kept: str, folder: Path) -> None:
    app = App(kept)
    sync_one = own(app, alone.counts_on, retry=Retry(1, backoff="1ms"))
    async_one = own(app, alone.counts_on_async, retry=Retry(1, backoff="1ms"))
    late = own(app, alone.never_ends, retry=0, timeout="300ms")

    async def cause_of(call: Any) -> str:
        try:
            await call
        except StepFailed as error:
            return error.cause
        raise AssertionError

    @app.workflow
    async def wf() -> list[Any]:
        return list(await asyncio.gather(sync_one(), async_one(), cause_of(late())))

    assert await played(app, wf) == [[1, 1], 1, "late"]


async def test_a_child_that_dies_is_started_again(kept: str, folder: Path) -> None:
    app = App(kept)
    dies_once = own(app, alone.dies_once)

    @app.workflow
    async def wf() -> int:
        return await dies_once(str(folder / "mark"))

    assert await played(app, wf) == 2


def test_a_call_that_kills_five_children_is_quarantined_and_the_rest_goes_on(kept: str) -> None:
    app = App(kept)
    dies = own(app, alone.dies)
    told: list[tuple[str, str]] = []
    app.events.subscribe(lambda events: told.extend((event.kind, event.run) for event in events))

    @app.step
    async def fine() -> str:
        return "fine"

    @app.workflow
    async def bad() -> None:
        await dies()

    @app.workflow
    async def good() -> str:
        return await fine()

    with pytest.raises(RunHeld) as held:
        app.run(bad, id="bad")
    assert "'dies'" in held.value.reason
    assert "quarantine" in held.value.reason
    assert told.count(("step.quarantined", "bad")) == 1
    assert app.run(good) == "fine"
    status = app.sync.handle("bad").status()
    assert (status.state, status.health) == ("waiting", "waiting_for_person")
    assert [attempt.cause for attempt in status.steps[0].attempts] == ["killed"] * 5
    app.sync.handle("bad").cancel("enough")
    with pytest.raises(RunCancelled, match="enough"):
        app.run(bad, id="bad")
