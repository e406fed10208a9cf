"""The drain: what leaves it, what must not disturb it."""

import asyncio
import contextvars
import gc
import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.unit.flow.runs import NOON, Begin, answer, commanded, error, fire, result, runs, step
from watchbill.errors import NotInWorkflowError
from watchbill.flow import drain
from watchbill.flow.replay import Broken, Call, WorkflowLoop, current, step_guard
from watchbill.model.call import Kind


@pytest.fixture
def begin() -> Iterator[Begin]:
    with runs() as begin:
        yield begin


# What leaves a drain.


@pytest.mark.parametrize(
    ("call", "ask"),
    [
        ("run_in_executor", lambda: asyncio.to_thread(print)),
        ("create_connection", lambda: asyncio.open_connection("localhost", 1)),
        ("subprocess_exec", lambda: asyncio.create_subprocess_exec("true")),
        ("getaddrinfo", lambda: asyncio.get_running_loop().getaddrinfo("localhost", 1)),
        ("call_soon_threadsafe", lambda: asyncio.get_running_loop().call_soon_threadsafe(print)),
        ("close", lambda: asyncio.get_running_loop().close()),
    ],
)
def test_the_world_is_refused_by_name(begin, call, ask):
    async def workflow() -> None:
        await ask()

    refused = error(begin(workflow))
    assert isinstance(refused, NotInWorkflowError)
    assert refused.call == call
    assert str(refused) == f"asyncio {call}() is not possible inside a workflow: put it in a step"


def test_every_method_of_a_loop_is_answered_or_refused():
    names = [name for name in dir(asyncio.AbstractEventLoop) if not name.startswith("_")]
    assert [name for name in names if getattr(WorkflowLoop, name) is getattr(asyncio.AbstractEventLoop, name)] == []


def test_a_refusal_that_was_swallowed_still_fails_the_run(begin):
    async def workflow() -> str:
        try:
            await asyncio.to_thread(print)
        except Exception:
            await step("fallback")
        return "fine"

    loop = begin(workflow)
    assert isinstance(error(loop), NotInWorkflowError)
    assert commanded(loop) == []


def test_another_thread_is_refused_without_harm_to_the_run(begin):
    async def workflow() -> object:
        return await step("encode")

    loop = begin(workflow)
    met: list[BaseException] = []

    def reach() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except NotInWorkflowError as refused:
            met.append(refused)

    thread = threading.Thread(target=reach)
    thread.start()
    thread.join()
    answer(loop, "encode", 7)
    assert len(met) == 1
    assert result(loop) == 7


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, MemoryError, RecursionError])
@pytest.mark.parametrize("place", ["main", "task", "group", "callback"])
def test_what_the_process_raises_is_no_failure_of_the_workflow(begin, kind, place):
    async def task() -> None:
        raise kind("no")

    def callback() -> None:
        raise kind("no")

    async def workflow() -> None:
        await step("encode")
        if place == "main":
            await task()
        elif place == "task":
            await asyncio.create_task(task())
        elif place == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(task())
        else:
            asyncio.get_running_loop().call_soon(callback)
            await step("charge")

    loop = begin(workflow)
    with pytest.raises(Broken, match=f"{kind.__name__}|ExceptionGroup") as broken:
        answer(loop, "encode")
    assert loop.ended is None
    assert kind.__name__ in repr(broken.value.__cause__)
    assert current() is None


def test_a_workflow_that_never_rests_is_stopped(begin, monkeypatch):
    monkeypatch.setattr(drain, "MOST_HOPS", 1_000)

    async def workflow() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Broken, match="never rests") as broken:
        begin(workflow)
    assert "1,024 times" in broken.value.reason


def test_a_workflow_that_never_rests_slowly_is_stopped_too(begin):
    now = 0

    def clock() -> int:
        nonlocal now
        now += drain.LONGEST_DRAIN // 3
        return now

    async def workflow() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Broken, match="never rests: it ran for 5 s"):
        begin(workflow, clock=clock)


def test_a_callback_that_raises_is_logged_and_the_rest_go_on(begin, caplog):
    async def workflow() -> str:
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: 1 / 0)
        rang = loop.create_future()
        loop.call_soon(rang.set_result, "rang")
        return await rang

    assert result(begin(workflow)) == "rang"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "ZeroDivisionError" in caplog.text


def test_a_replaying_run_is_mute(begin, caplog):
    async def workflow() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await step("encode")

    loop = WorkflowLoop(workflow, (), {})
    loop.replaying = True
    loop.begin(NOON)
    loop.close()
    assert caplog.records == []


# The turn.


def test_current_is_the_run_whose_code_runs(begin):
    seen = []

    async def workflow() -> None:
        seen.append(current())
        await step("encode")

    loop = begin(workflow)
    assert seen == [loop]
    assert current() is None


async def test_a_run_is_stepped_inside_the_host_loop_and_leaves_it_as_it_was():
    async def workflow() -> object:
        return await asyncio.gather(step("encode"), asyncio.sleep(5))

    host, task = asyncio.get_running_loop(), asyncio.current_task()
    loop = WorkflowLoop(workflow, (), {})
    with step_guard():
        loop.begin(NOON)
        answer(loop, "encode", 7)
        fire(loop, "sleep/sleep")
    assert result(loop) == [7, None]
    assert asyncio.get_running_loop() is host
    assert asyncio.current_task() is task
    await asyncio.sleep(0)


def test_each_run_has_a_context_of_its_own(begin):
    variable = contextvars.ContextVar("variable", default="nothing")
    variable.set("the host's")

    async def task() -> str:
        before = variable.get()
        variable.set("the task's")
        return before

    async def workflow() -> list[str]:
        seen = [variable.get()]
        variable.set("the run's")
        seen.append(await asyncio.create_task(task()))
        await step("encode")
        return [*seen, variable.get()]

    loop = begin(workflow)
    other = begin(workflow)
    answer(loop, "encode")
    assert result(loop) == ["nothing", "the run's", "the run's"]
    answer(other, "encode")
    assert result(other) == result(loop)
    assert variable.get() == "the host's"


def test_eviction_does_not_touch_the_hosts_context(begin):
    variable = contextvars.ContextVar("variable", default="nothing")

    async def workflow() -> None:
        try:
            await step("encode")
        finally:
            variable.set("the run's")

    begin(workflow).close()
    assert variable.get() == "nothing"


def test_the_guard_stops_the_collector_and_puts_everything_back():
    hooks = sys.get_asyncgen_hooks()
    assert gc.isenabled()
    with step_guard():
        assert not gc.isenabled()
        with step_guard():
            pass
        assert not gc.isenabled()
        assert sys.get_asyncgen_hooks().finalizer is None
    assert gc.isenabled()
    assert sys.get_asyncgen_hooks() == hooks


def test_finished_tasks_are_let_go(begin):
    async def task() -> None: ...

    async def workflow() -> None:
        for _ in range(1_000):
            await asyncio.create_task(task())
        await step("encode")

    assert len(begin(workflow)._tasks) < 100


def test_a_call_is_typed_as_what_it_is():
    assert issubclass(Call, asyncio.Future)
    assert Call.kind is Kind.STEP
