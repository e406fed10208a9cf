"""Eviction: a run leaves memory, and nothing of it goes on."""

# ruff: noqa: RUF006 (a run holds its tasks itself)

import asyncio
import gc
import json
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.flow.runs import NOON, Begin, result, runs, step
from watchbill.flow.futures import UndoableCall
from watchbill.flow.replay import Evicted, WorkflowLoop, current


@pytest.fixture
def begin() -> Iterator[Begin]:
    with runs() as begin:
        yield begin


def test_eviction_runs_the_synchronous_part_of_finally_and_nothing_more(begin):
    said = []

    async def task() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            said.append("task")
            await asyncio.sleep(5)
            said.append("slept")

    async def workflow() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(task())
                await step("charge")
        finally:
            said.append("main")
            await step("refund")
            said.append("refunded")

    loop = begin(workflow)
    loop.close()
    assert said == ["task", "main"]
    assert loop.ended is None
    assert (loop.calls, loop.commands, loop.cancels) == ({}, [], [])
    loop.close()


def test_whatever_a_dead_run_asks_for_it_never_gets(begin):
    met: list[object] = []

    async def other() -> None:
        met.append("ran")

    async def workflow() -> None:
        unstarted = step("encode")
        try:
            await step("charge")
        finally:
            asyncio.create_task(other())
            for ask in (
                lambda: unstarted,
                lambda: step("refund"),
                lambda: asyncio.sleep(1),
                lambda: asyncio.gather(other(), step("refund"), other()),
            ):
                try:
                    await ask()
                except BaseException as refused:
                    met.append(type(refused))

    loop = begin(workflow)
    loop.close()
    assert met == [Evicted] * 4
    assert (loop.calls, loop.commands, loop.cancels, loop.ended) == ({}, [], [], None)


def test_eviction_survives_code_that_swallows_everything(begin):
    coroutines: list[weakref.ref[Any]] = []
    asked = 0

    async def stubborn(ask: Callable[[], Any]) -> None:
        nonlocal asked
        while True:
            try:
                asked += 1
                await ask()
            except BaseException:
                continue

    async def workflow() -> None:
        for ask in (
            lambda: step("poll"),
            lambda: asyncio.sleep(1),
            lambda: asyncio.gather(asyncio.sleep(1), step("poll")),
        ):
            coroutine = stubborn(ask)
            coroutines.append(weakref.ref(coroutine))
            asyncio.create_task(coroutine)
        await step("charge")

    begin(workflow).close()
    gc.collect()
    assert asked < 500
    assert all(coroutine() is not None for coroutine in coroutines)  # freed, they would run again, outside of a run


def test_a_dead_run_that_returns_has_not_ended(begin):
    async def workflow() -> str:
        try:
            await step("charge")
        except BaseException:
            return "swallowed"
        return "paid"

    loop = begin(workflow)
    loop.close()
    assert loop.ended is None


def test_eviction_closes_async_generators_wherever_they_stand(begin):
    said = []

    async def numbers() -> Any:
        try:
            for n in range(9):
                yield n
                await step("encode")
        finally:
            said.append("closed")
            await step("release")

    async def inside() -> None:
        async for _ in numbers():
            pass

    async def workflow() -> None:
        async for _ in numbers():
            break
        await inside()

    begin(workflow).close()
    assert said == ["closed", "closed"]


def test_a_generator_left_by_break_is_closed_at_the_end_of_the_run(begin):
    said = []

    async def numbers() -> Any:
        try:
            for n in range(9):
                yield n
        finally:
            said.append("closed")

    async def workflow() -> list[str]:
        for _ in range(100):
            async for _ in numbers():
                break
        gc.collect()
        return list(said)

    assert result(begin(workflow)) == []
    assert said == ["closed"] * 100


def test_a_dead_run_is_freed_without_the_collector(begin):
    class Payload:
        pass

    payloads = []

    async def task(payload: Payload) -> None:
        await asyncio.gather(step("encode"), asyncio.sleep(1))

    async def workflow() -> None:
        payload = Payload()
        payloads.append(weakref.ref(payload))
        async with asyncio.TaskGroup() as group:
            group.create_task(task(payload))
            group.create_task(step("charge"))
            await asyncio.gather(task(payload), asyncio.Event().wait(), step("charge"))

    loop = WorkflowLoop(workflow, (), {})
    loop.begin(NOON)
    loop.close()
    left = weakref.ref(loop)
    del loop
    assert payloads[0]() is None
    assert left() is None


def test_a_run_that_is_forgotten_without_being_closed_undoes_nothing():
    """As those of a process that is dead, in a test: the collector closes them, and no loop runs then."""

    async def workflow() -> None:
        await current_loop().step_call(None, "book", b"[]", (), json.loads, kind=UndoableCall)

    loop = WorkflowLoop(workflow, (), {})
    loop.undo = True
    loop.begin(NOON)
    assert list(loop.calls) == ["book"]
    del loop
    gc.collect()  # what it raised there would be an error


def current_loop() -> WorkflowLoop:
    loop = current()
    assert loop is not None
    return loop
