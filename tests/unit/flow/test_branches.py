"""Branches: what keys are made of."""

# ruff: noqa: RUF006 (a run holds its tasks itself)

import asyncio
from collections.abc import Iterator

import pytest

from tests.unit.flow.runs import Begin, answer, commanded, error, result, runs, step
from watchbill.errors import InvalidOptionError


@pytest.fixture
def begin() -> Iterator[Begin]:
    with runs() as begin:
        yield begin


def test_keys_count_calls_by_name_in_order_of_creation(begin):
    async def workflow() -> None:
        first, second, other = step("encode", 1), step("encode", 2), step("charge")
        await asyncio.gather(second, other, first)

    assert list(begin(workflow).calls) == ["encode.2", "charge", "encode"]


def test_each_task_counts_for_itself(begin):
    async def order(n: int) -> None:
        await step("charge", n)
        await step("charge", n)

    async def workflow() -> None:
        await asyncio.gather(order(1), order(2), step("charge"))

    loop = begin(workflow)
    assert set(commanded(loop)) == {"order/charge", "order.2/charge", "charge"}
    answer(loop, "order.2/charge")
    assert commanded(loop) == ["order.2/charge.2"]


def test_a_named_task_names_its_branch_and_takes_no_number(begin):
    async def order() -> str:
        await step("charge")
        task = asyncio.current_task()
        assert task is not None
        return task.get_name()

    async def workflow() -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(order(), name="order-17"),
                asyncio.create_task(order()),
                asyncio.create_task(order(), name="order-17"),
                asyncio.create_task(order()),
            ]
        return await asyncio.gather(*tasks)

    loop = begin(workflow)
    assert list(loop.calls) == ["order-17/charge", "order/charge", "order-17.2/charge", "order.2/charge"]
    for key in list(loop.calls):
        answer(loop, key)
    assert result(loop) == ["order-17", "order", "order-17", "order.2"]


def test_a_new_task_may_be_named_again_before_it_runs(begin):
    async def order() -> None:
        await step("charge")

    async def workflow() -> None:
        asyncio.create_task(order(), name="a").set_name("b")
        first, _ = asyncio.create_task(order()), asyncio.create_task(order())
        first.set_name("too late")
        asyncio.create_task(order())
        await step("charge")

    assert list(begin(workflow).calls)[1:] == ["b/charge", "order/charge", "order.2/charge", "order.3/charge"]


def test_a_task_that_runs_keeps_its_branch(begin):
    async def order() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("other")
        await step("charge")

    async def workflow() -> None:
        await asyncio.create_task(order())

    assert list(begin(workflow).calls) == ["order/charge"]


def test_the_names_of_tasks_are_the_same_in_every_process(begin):
    async def name() -> str:
        task = asyncio.current_task()
        assert task is not None
        return task.get_name()

    async def outer() -> str:
        return await asyncio.create_task(name())

    async def workflow() -> list[str]:
        return [await name(), await asyncio.create_task(name()), await asyncio.create_task(outer())]

    assert result(begin(workflow)) == ["main", "name", "outer/name"]


def test_branches_nest(begin):
    async def inner() -> None:
        await step("charge")

    async def outer() -> None:
        await asyncio.create_task(inner())

    async def workflow() -> None:
        await asyncio.gather(outer(), outer())

    assert list(begin(workflow).calls) == ["outer/inner/charge", "outer.2/inner/charge"]


def test_a_very_long_branch_is_hashed(begin):
    async def nest(depth: int) -> None:
        await (asyncio.create_task(nest(depth - 1)) if depth else step("charge"))

    async def workflow() -> None:
        await asyncio.gather(nest(100), nest(100))

    one, two = begin(workflow).calls
    assert one != two
    assert len(one) < 250
    assert one.endswith("/charge")


def test_a_callback_counts_in_a_branch_of_its_own(begin):
    async def callback() -> None:
        await step("encode")

    async def workflow() -> None:
        asyncio.create_task(callback())
        await asyncio.sleep(0)
        call = step("charge")
        call.add_done_callback(lambda _: asyncio.ensure_future(step("notify")))
        await call
        await step("notify")

    loop = begin(workflow)
    answer(loop, "charge")
    assert list(loop.calls) == ["callback/encode", "callback.2/notify", "notify"]


def test_names_cannot_make_two_calls_of_one_key(begin):
    async def task(n: int) -> None:
        await step("charge", n)

    async def workflow() -> None:
        names = ["a", "a", "a.2", "a.2", "a/b", "a_b", "a.x"]
        tasks = [asyncio.create_task(task(n), name=name) for n, name in enumerate(names)]
        calls = [step(name) for name in names]
        await asyncio.gather(*tasks, *calls)

    assert len(begin(workflow).calls) == 14


def test_an_explicit_key_is_absolute(begin):
    async def task() -> None:
        await step("encode", key="chunk-12")

    async def workflow() -> None:
        await asyncio.gather(task(), step("encode"))

    assert set(begin(workflow).calls) == {"chunk-12", "encode"}


@pytest.mark.parametrize("key", ["chunk", "encode", "encode.2"])
def test_a_key_cannot_be_used_twice(begin, key):
    async def workflow() -> None:
        await asyncio.gather(step("encode"), step("encode"), step("encode", key="chunk"))
        await step("charge", key=key)

    loop = begin(workflow)
    for open in list(loop.calls):
        answer(loop, open)
    assert isinstance(error(loop), InvalidOptionError)
    assert key in str(error(loop))


def test_counting_goes_around_an_explicit_key(begin):
    async def workflow() -> None:
        await asyncio.gather(step("encode", key="encode.2"), step("encode"), step("encode"))

    assert list(begin(workflow).calls) == ["encode.2", "encode", "encode.3"]


def test_an_explicit_key_that_an_unstarted_call_has_fails_the_one_that_starts_second(begin):
    async def task() -> None:
        call = step("encode")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await call

    async def workflow() -> None:
        other = asyncio.create_task(task())
        await asyncio.sleep(0)
        await asyncio.gather(step("encode", key="task/encode"), other)

    loop = begin(workflow)
    assert isinstance(error(loop), InvalidOptionError)
