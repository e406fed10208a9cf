"""The fixture `watch`: the real rooms in virtual time, driven by a synchronous test, as a user's tests do it."""

import asyncio
import logging
import math
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.pace import Pace
from watchbill import (
    App,
    InvalidOptionError,
    Retry,
    RunCancelled,
    RunFailed,
    RunHeld,
    StepFailed,
    WatchbillError,
    attempt,
    sleep,
)
from watchbill.testing.trial import NeverEndsError, ReplayError
from watchbill.testing.watch import Watch

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)

app = App("sqlite:////nowhere/at/all.db")
told: list[str] = []
counted: list[int] = []


@pytest.fixture(autouse=True)
def forgotten() -> None:
    told.clear()
    counted.clear()


@app.step
def tell(word: str) -> str:
    told.append(word)
    return word


@app.step
async def slowly(word: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    told.append(word)
    return word


@app.workflow
async def patiently(word: str, days: int) -> str:
    await sleep(timedelta(days=days))
    return await tell(word)


@app.workflow
async def slow(words: list[str]) -> list[str]:
    return await asyncio.gather(*(slowly(word, 10 * (n + 1)) for n, word in enumerate(words)))


def test_a_month_passes_in_no_time(watch: Watch, pace: Pace) -> None:
    watch.at(NOON)
    begun = time.monotonic()
    assert watch.run(patiently, "x", days=30) == "x"
    assert time.monotonic() - begun < pace.limit(5)
    assert watch.now == NOON + timedelta(days=30)


def test_sleeping_steps_take_virtual_time(watch: Watch) -> None:
    watch.at(NOON)
    assert watch.run(slow, ["a", "b", "c"]) == ["a", "b", "c"]
    assert NOON + timedelta(seconds=30) <= watch.now < NOON + timedelta(seconds=31)


def test_the_store_of_the_app_is_not_touched_and_its_own_again_afterwards(folder: Path) -> None:
    file = folder / "new.db"
    mine = App(f"sqlite:///{file}")

    @mine.workflow
    async def nothing() -> str:
        return "done"

    watch = Watch()
    assert watch.run(nothing, id="n") == "done"
    watch.close()
    assert not file.exists()
    assert mine.run(nothing, id="n") == "done"
    assert file.exists()


def test_the_same_id_is_the_same_run(watch: Watch) -> None:
    assert watch.run(patiently, "x", 1, id="a") == watch.run(patiently, "x", 1, id="a") == "x"
    assert told == ["x"]


# --- time


def test_what_is_due_in_a_jump_happens_in_order(watch: Watch) -> None:
    runs = [watch.start(patiently, str(days), days) for days in (3, 1, 2, 5)]
    watch.jump("4d")
    assert told == ["1", "2", "3"]
    assert [run.status().state for run in runs] == ["completed", "completed", "completed", "waiting"]
    watch.jump("1d")
    assert runs[3].status().state == "completed"


@pytest.mark.parametrize("late", ["1ms", "333ms", "1s", "7m", "1d", "400d"])
def test_a_run_ends_in_the_jump_that_brings_its_moment(watch: Watch, late: str) -> None:
    @app_of_this_test.workflow(name=f"due-{late}")
    async def due() -> None:
        await sleep(late)

    run = watch.start(due)
    assert run.status().state == "waiting"
    watch.jump(late)
    assert run.status().state == "completed"


app_of_this_test = App()


def test_the_clock_goes_anywhere_before_the_first_run_and_then_forward_only(watch: Watch) -> None:
    watch.at(NOON + timedelta(days=9))
    watch.at(datetime(1999, 12, 31, tzinfo=UTC))
    run = watch.start(patiently, "x", 1)
    watch.at(datetime(2000, 1, 1, tzinfo=UTC))
    assert run.result() == "x"
    with pytest.raises(InvalidOptionError, match="goes forward only: it is 2000-01-01"):
        watch.at(datetime(1999, 12, 31, tzinfo=UTC))
    with pytest.raises(InvalidOptionError, match="add tzinfo=UTC"):
        watch.at(datetime(2001, 1, 1))


def test_two_apps_share_the_clock(watch: Watch) -> None:
    other = App()

    @other.workflow
    async def waits() -> None:
        await sleep("1d")

    one, two = watch.start(patiently, "x", 1), watch.start(waits)
    watch.jump("1d")
    assert (one.status().state, two.status().state) == ("completed", "completed")


# --- handles and errors


@app.step(retry=Retry(2, backoff="1m"))
def refuses() -> None:
    counted.append(attempt().number)
    raise ConnectionError("away")


@app.workflow
async def refused() -> None:
    await refuses()


def test_a_failure_is_that_of_app_run_and_backoff_takes_virtual_time(watch: Watch) -> None:
    watch.at(NOON)
    with pytest.raises(RunFailed, match="away") as failed:
        watch.run(refused)
    assert (failed.value.step, failed.value.attempts) == ("refuses", 3)
    assert counted == [1, 2, 3]
    assert timedelta(minutes=3) <= watch.now - NOON <= timedelta(minutes=3.75)


def test_a_run_can_be_looked_at_and_cancelled(watch: Watch) -> None:
    run = watch.start(slow, ["a"], id="looked-at")
    watch.jump("5s")
    [step] = run.status().steps
    assert (run.id, step.step, step.state) == ("looked-at", "slowly", "running")
    run.cancel("enough")
    with pytest.raises(RunCancelled, match="enough"):
        run.result()
    assert told == []


def test_a_result_has_a_virtual_timeout_and_the_run_goes_on(watch: Watch) -> None:
    run = watch.start(patiently, "x", 9)
    with pytest.raises(TimeoutError):
        run.result(timeout="8d")
    assert run.result() == "x"


@app.workflow
async def waits_for_nothing() -> None:
    await asyncio.Event().wait()


@app.workflow
async def waits_for_ever() -> None:
    await asyncio.sleep(math.inf)


def test_a_run_that_cannot_end_is_said_to_be_so(watch: Watch) -> None:
    with pytest.raises(RunHeld, match="waits for nothing"):
        watch.run(waits_for_nothing)


# In a store of its own: a run that is held is looked at again and again, here for twenty years.
def test_a_run_that_never_ends_is_said_to_be_so(watch: Watch) -> None:
    with pytest.raises(NeverEndsError, match="a run of 'waits_for_ever' has not ended after 20 years"):
        watch.run(waits_for_ever)


async def test_an_async_test_is_told_to_be_a_plain_one(watch: Watch) -> None:
    with pytest.raises(WatchbillError, match="make the test a plain `def`"):
        watch.run(patiently, "x", 1)


def test_the_app_itself_is_not_to_be_asked_meanwhile(watch: Watch) -> None:
    watch.run(patiently, "x", 1)
    with pytest.raises(WatchbillError, match=r"call watch.run\(\)"):
        app.run(patiently, "x", 1)
    with pytest.raises(WatchbillError, match=r"call watch.run\(\)"):
        app.sync.start(patiently, "x", 1)


def test_what_is_no_workflow_is_refused(watch: Watch) -> None:
    with pytest.raises(InvalidOptionError, match="watch takes a workflow"):
        watch.run(tell, "x")  # type: ignore[arg-type]


# --- what steps may do


@app.step
def saves() -> list[int]:
    for n in range(3):
        attempt().progress(n, total=3)
        attempt().checkpoint(n)
    return [threading.get_ident()]


@app.step
async def leaves_the_loop() -> int:
    return await asyncio.to_thread(threading.get_ident)


@app.step(isolation="own")
def alone(n: int) -> int:
    return n + attempt().number


@app.step(timeout="200ms", retry=0)
def hangs() -> None:
    while not attempt().cancelled:
        time.sleep(0.001)


@app.step(retry=0)
async def connects() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


@app.step(timeout="7d")
async def starts_another() -> str:
    handle = await app.start(patiently, "another", 1, id="another")
    return await handle.result()


@app.workflow(allow=["datetime.now"])
async def does(what: str) -> Any:
    step: Any = {"saves": saves, "threads": leaves_the_loop, "hangs": hangs, "connects": connects}.get(what)
    return await (step() if step is not None else alone(4) if what == "alone" else starts_another())


def test_sync_steps_run_in_threads_and_may_wait_for_their_checkpoints(watch: Watch) -> None:
    assert watch.run(does, "saves") != [threading.get_ident()]


def test_asyncio_to_thread_works(watch: Watch) -> None:
    assert watch.run(does, "threads") != threading.get_ident()


def test_a_step_with_a_process_of_its_own_runs_here(watch: Watch) -> None:
    assert watch.run(does, "alone") == 5


def test_a_thread_that_hangs_is_late_in_real_time(watch: Watch) -> None:
    with pytest.raises(RunFailed, match="late"):
        watch.run(does, "hangs")


released = threading.Event()


@app.step(isolation="own", timeout="300ms", retry=0)
def hangs_alone() -> None:
    released.wait(30)


@app.workflow
async def outlives_it() -> str:
    try:
        await hangs_alone()
    except StepFailed as failed:
        await sleep("30d")
        return failed.cause
    return ""


def test_nobody_waits_for_the_thread_of_a_child_that_was_killed(watch: Watch, pace: Pace) -> None:
    begun = time.monotonic()
    assert watch.run(outlives_it) == "late"
    assert time.monotonic() - begun < pace.limit(20)
    released.set()


def test_a_thread_that_waits_for_the_test_does_not_stop_it(watch: Watch) -> None:
    @app_of_this_test.step
    def stands_by() -> None:
        while not attempt().cancelled:
            time.sleep(0.001)

    @app_of_this_test.workflow
    async def standing_by() -> None:
        await stands_by()

    run = watch.start(standing_by)
    assert run.status().state == "running"
    run.cancel("enough")
    with pytest.raises(RunCancelled, match="enough"):
        run.result()


def test_the_network_is_refused_with_what_to_do(watch: Watch) -> None:
    with pytest.raises(RunFailed, match=r"create_connection\(\) is not possible under `watch`.*give the step a fake"):
        watch.run(does, "connects")


def test_a_step_may_start_a_run_of_its_app(watch: Watch) -> None:
    watch.at(NOON)
    assert watch.run(does, "another") == "another"
    assert watch.start(patiently, "another", 1, id="another").status().state == "completed"
    assert watch.now >= NOON + timedelta(days=1)


def test_steps_in_threads_come_one_after_the_other(watch: Watch) -> None:
    @app_of_this_test.step
    def notes(n: int) -> None:
        counted.append(n)
        time.sleep(0.001)
        counted.append(n)

    @app_of_this_test.workflow
    async def many() -> None:
        await asyncio.gather(*(notes(n) for n in range(20)))

    watch.run(many)
    assert counted == [n for n in range(20) for _ in range(2)]


def test_threads_that_wait_for_each_other_get_there(watch: Watch) -> None:
    barrier = threading.Barrier(2)

    @app_of_this_test.step
    def meets() -> int:
        return barrier.wait(10)

    @app_of_this_test.workflow
    async def meeting() -> list[int]:
        return list(await asyncio.gather(meets(), meets()))

    met = watch.run(meeting)
    assert sorted(met) == [0, 1]


# --- replays


@app.workflow
async def unordered() -> list[str]:
    return [await tell(name) for name in {"ada", "alan", "barbara", "edsger", "grace", "tony", "niklaus"}]


@app.workflow
async def stateful() -> str:
    counted.append(1)
    return await tell(str(len(counted)))


@app.workflow
async def forgetful() -> int:
    counted.append(1)
    await tell("x")
    return len(counted)


def rate() -> int:
    return 1


@app.workflow
async def rated() -> str:
    return await tell(f"rate {rate()}")


def test_the_order_of_a_set_is_found_by_a_replay_under_another_seed(watch: Watch) -> None:
    with pytest.raises(ReplayError, match=r"PYTHONHASHSEED.* an outcome of 'tell.*' with other") as found:
        watch.run(unordered)
    assert "not on the order of a set" in str(found.value)


@pytest.mark.parametrize(
    ("workflow", "difference"),
    [
        (stateful, r"'tell' with ..2"),
        (forgetful, "the journal has the result 1, the code asks for the result 2"),
    ],
)
def test_the_state_of_a_module_is_found_by_a_replay(watch: Watch, workflow: Any, difference: str) -> None:
    with pytest.raises(ReplayError, match=difference):
        watch.run(workflow)


def test_a_run_that_ends_in_a_jump_is_replayed_too(watch: Watch) -> None:
    @app_of_this_test.workflow
    async def later() -> int:
        counted.append(1)
        await sleep("1d")
        return len(counted)

    watch.start(later)
    with pytest.raises(ReplayError):
        watch.jump("1d")


def test_replays_can_be_turned_off(watch: Watch) -> None:
    watch.replays = False
    assert watch.run(stateful) == "1"


def test_what_a_test_has_patched_is_no_difference(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "rate", lambda: 7)
    assert watch.run(rated) == "rate 7"


def test_failed_and_cancelled_runs_are_replayed_without_complaint(watch: Watch) -> None:
    with pytest.raises(RunFailed):
        watch.run(refused)
    run = watch.start(patiently, "x", 1)
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result()
    held = watch.start(waits_for_nothing)
    held.cancel()
    with pytest.raises(RunCancelled):
        held.result()


# --- the guard


class Library:
    """What no scan sees through."""

    def reads(self) -> object:
        with open(__file__) as file:
            return file.read(1)

    def connects(self) -> object:
        with socket.socket() as connection:
            return connection.family

    def logs(self) -> object:
        logging.getLogger("library").warning("said", exc_info=ValueError("of it"))
        return None

    def imports(self) -> object:
        import colorsys

        return colorsys.ONE_THIRD


library = Library()


@app.workflow
async def uses(what: str) -> str:
    try:
        getattr(library, what)()
    except Exception:
        return "swallowed"
    return await tell("fine")


@app.workflow(allow=["open"])
async def may_read() -> None:
    library.reads()


async def in_a_branch(what: str) -> None:
    getattr(library, what)()


@app.workflow
async def branches() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(in_a_branch("reads"))


@pytest.mark.parametrize(("what", "said"), [("reads", "open("), ("connects", "socket.__new__(")])
def test_io_of_a_library_is_refused_in_a_workflow_even_when_swallowed(watch: Watch, what: str, said: str) -> None:
    with pytest.raises(RunFailed, match="NotInWorkflowError") as failed:
        watch.run(uses, what)
    assert said in str(failed.value)


def test_io_is_refused_in_a_branch_too(watch: Watch) -> None:
    with pytest.raises(RunFailed, match="NotInWorkflowError"):
        watch.run(branches)


@pytest.mark.parametrize("what", ["logs", "imports"])
def test_what_does_not_reach_the_workflow_is_let_through(watch: Watch, what: str) -> None:
    assert watch.run(uses, what) == "fine"


def test_what_the_workflow_allows_is_let_through(watch: Watch) -> None:
    watch.run(may_read)
