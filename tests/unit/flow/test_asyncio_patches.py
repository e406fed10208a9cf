"""asyncio in a workflow: its own functions, four of them patched, are durable and the same in every replay."""

# ruff: noqa: RUF006 (a run holds its tasks itself)

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.flow.runs import NOON, SECOND, Begin, answer, cancelled, commanded, fail, fire, result, runs, step
from watchbill.errors import StepFailed


@pytest.fixture
def begin() -> Iterator[Begin]:
    with runs() as begin:
        yield begin


def test_gather_gives_results_in_order(begin):
    async def workflow() -> list[object]:
        return await asyncio.gather(*(step("encode", n) for n in range(3)))

    loop = begin(workflow)
    for key in ("encode.3", "encode", "encode.2"):
        answer(loop, key, key)
    assert result(loop) == ["encode", "encode.2", "encode.3"]


def test_a_task_group_cancels_the_rest_when_one_fails(begin):
    async def workflow() -> list[str]:
        met: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(step("charge"))
                group.create_task(step("encode"))
                await asyncio.sleep(60)
        except* StepFailed as failed:
            met += [str(each) for each in failed.exceptions]
        return met

    loop = begin(workflow)
    commanded(loop)
    fail(loop, "charge")
    assert cancelled(loop) == ["encode", "sleep"]
    assert result(loop) == ["step 'charge' failed (raised) after 3 attempts: CardError: declined"]


def test_wait_has_one_winner(begin):
    async def workflow() -> list[object]:
        done, pending = await asyncio.wait(
            {asyncio.ensure_future(step("encode", n)) for n in range(9)}, return_when=asyncio.FIRST_COMPLETED
        )
        for call in pending:
            call.cancel()
        return [call.result() for call in done]

    loop = begin(workflow)
    commanded(loop)
    answer(loop, "encode.4", 4)
    assert result(loop) == [4]
    assert cancelled(loop) == ["encode", "encode.2", "encode.3"] + [f"encode.{n}" for n in range(5, 10)]


def test_sets_of_futures_have_the_same_order_in_every_run(begin):
    async def task(n: int) -> int:
        return n

    async def workflow() -> list[list[int]]:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(task(n)) for n in range(9)]
        promises = [loop.create_future() for _ in range(9)]
        gathers = [asyncio.gather(each) for each in tasks]
        calls = [step("encode") for _ in range(9)]
        await asyncio.wait(tasks)
        return [[each.index(one) for one in set(each)] for each in (tasks, promises, gathers, calls)]

    assert result(begin(workflow)) == [list(range(9))] * 4


def test_a_timeout_is_a_call_and_cancels_what_it_guards(begin):
    async def workflow() -> str:
        try:
            async with asyncio.timeout(5):
                await step("encode")
        except TimeoutError:
            return "late"
        return "in time"

    loop = begin(workflow)
    assert commanded(loop) == ["timeout", "encode"]
    assert loop.calls["timeout"].due == NOON + 5 * SECOND
    fire(loop, "timeout")
    assert cancelled(loop) == ["encode"]
    assert result(loop) == "late"


def test_a_timeout_that_was_not_needed_is_cancelled(begin):
    async def workflow() -> object:
        return await asyncio.wait_for(step("encode"), 5)

    loop = begin(workflow)
    commanded(loop)
    answer(loop, "encode", 7)
    assert result(loop) == 7
    assert cancelled(loop) == ["timeout"]


def test_wait_for_makes_no_branch_on_any_python(begin):
    async def order() -> object:
        return await step("charge")

    async def workflow() -> object:
        return await asyncio.wait_for(order(), 5)

    assert list(begin(workflow).calls) == ["timeout", "charge"]


def test_wait_for_without_time_starts_nothing(begin):
    async def order() -> object:
        return await step("charge")

    async def workflow() -> list[str]:
        met = []
        for each in (step("charge"), order()):
            try:
                await asyncio.wait_for(each, 0)
            except TimeoutError as late:
                met.append(type(late.__cause__).__name__)
        return met

    loop = begin(workflow)
    assert result(loop) == ["CancelledError", "CancelledError"]
    assert commanded(loop) == []


def test_shield_keeps_a_call_from_being_cancelled(begin):
    async def workflow() -> object:
        call = step("encode")
        try:
            async with asyncio.timeout(1):
                await asyncio.shield(call)
        except TimeoutError:
            return await call
        return None

    loop = begin(workflow)
    fire(loop, "timeout")
    assert list(loop.calls) == ["encode"]
    answer(loop, "encode", 7)
    assert result(loop) == 7


def test_as_completed_starts_in_the_given_order_and_gives_by_completion(begin):
    async def order(n: int) -> object:
        return await step("charge", n)

    async def workflow() -> list[object]:
        return [await each for each in asyncio.as_completed([order(n) for n in range(9)])]

    loop = begin(workflow)
    assert commanded(loop) == ["order/charge"] + [f"order.{n}/charge" for n in range(2, 10)]
    for key in reversed(list(loop.calls)):
        answer(loop, key, key)
    assert result(loop) == [f"order.{n}/charge" for n in range(9, 1, -1)] + ["order/charge"]


def test_as_completed_has_a_timeout(begin):
    async def workflow() -> list[object]:
        met: list[object] = []
        for each in asyncio.as_completed([step("encode"), step("charge")], timeout=5):
            try:
                met.append(await each)
            except TimeoutError:
                met.append("late")
        return met

    loop = begin(workflow)
    answer(loop, "charge", 7)
    fire(loop, "timeout")
    assert result(loop) == [7, "late"]


def test_as_completed_works_with_async_for_on_any_python(begin):
    async def workflow() -> list[str]:
        calls = [step("encode"), step("charge")]
        return [call.key async for call in asyncio.as_completed(calls)]  # type: ignore[attr-defined]  # 3.11 lacks it

    loop = begin(workflow)
    answer(loop, "charge")
    answer(loop, "encode")
    assert result(loop) == ["charge", "encode"]


async def test_outside_a_workflow_the_patched_functions_are_asyncios_own():
    async def seven() -> int:
        return 7

    assert await asyncio.wait_for(seven(), 1) == 7
    assert [await each for each in asyncio.as_completed([seven()])] == [7]
    assert await asyncio.ensure_future(seven()) == 7
    assert list(await asyncio.gather(seven(), seven())) == [7, 7]


def test_locks_and_queues_wake_in_order(begin):
    async def holder(lock: asyncio.Lock, queue: asyncio.Queue[int], n: int) -> None:
        async with lock:
            await step("charge")
            await queue.put(n)

    async def workflow() -> list[int]:
        lock, queue = asyncio.Lock(), asyncio.Queue[int]()
        await asyncio.gather(*(holder(lock, queue, n) for n in range(3)))
        return [queue.get_nowait() for _ in range(3)]

    loop = begin(workflow)
    for key in ("holder/charge", "holder.2/charge", "holder.3/charge"):
        assert list(loop.calls) == [key]
        answer(loop, key)
    assert result(loop) == [0, 1, 2]


def test_futures_of_another_run_are_refused(begin):
    leaked: list[Any] = []

    async def lender() -> None:
        leaked.extend([step("encode"), asyncio.get_running_loop().create_future(), asyncio.Lock()])
        asyncio.create_task(hold(leaked[2]))
        await asyncio.sleep(1)

    async def hold(lock: asyncio.Lock) -> None:
        async with lock:
            await asyncio.create_task(wait_for_lock(lock))

    async def wait_for_lock(lock: asyncio.Lock) -> None:
        await lock.acquire()

    async def workflow() -> list[str]:
        met = []
        for each in (leaked[0], asyncio.gather(leaked[1]), leaked[2].acquire()):
            try:
                await each
            except RuntimeError as refused:
                met.append(str(refused).partition(" attached")[2] or str(refused).partition(" bound")[2])
        try:
            asyncio.gather(leaked[0])
        except RuntimeError as refused:
            met.append(str(refused))
        return met

    lending = begin(lender)
    answers = result(begin(workflow))
    assert answers == [
        " to a different loop",
        " to a different loop",
        " to a different event loop",
        "call 'encode' belongs to another run: each run makes its own calls",
    ]
    assert not leaked[0].started
    assert "encode" not in lending.calls


def test_the_hosts_list_of_tasks_stays_its_own(begin):
    async def workflow() -> int:
        asyncio.create_task(workflow2())
        return len(asyncio.all_tasks())

    async def workflow2() -> None: ...

    assert result(begin(workflow)) == 0


def test_wait_for_without_time_gives_what_is_there_already(begin):
    async def workflow() -> object:
        call = step("encode")
        await asyncio.wait([asyncio.ensure_future(call)])
        return await asyncio.wait_for(call, 0)

    loop = begin(workflow)
    answer(loop, "encode", 7)
    assert result(loop) == 7


def test_as_completed_cancels_its_timer_after_the_last_and_takes_no_single_awaitable(begin):
    async def workflow() -> list[object]:
        with pytest.raises(TypeError, match="expect an iterable of futures, not"):
            asyncio.as_completed(step("charge"))
        return [await each for each in asyncio.as_completed([step("encode")], timeout=5)]

    loop = begin(workflow)
    commanded(loop)
    answer(loop, "encode", 7)
    assert result(loop) == [7]
    assert cancelled(loop) == ["timeout"]
