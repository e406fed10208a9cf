"""The workflow loop, rule by rule; tests/simulation proves the same on random programs."""

# ruff: noqa: RUF006 (a run holds its tasks itself)

import asyncio
import math
import zlib
from collections.abc import Iterator

import pytest

from tests.unit.flow.runs import (
    NOON,
    SECOND,
    Begin,
    answer,
    cancelled,
    commanded,
    error,
    fail,
    fire,
    result,
    runs,
    step,
)
from watchbill.errors import StepFailed
from watchbill.flow.replay import Diverged, WorkflowLoop
from watchbill.model.call import Kind, Outcome


@pytest.fixture
def begin() -> Iterator[Begin]:
    with runs() as begin:
        yield begin


# Calls.


def test_a_call_is_asked_for_and_its_outcome_goes_on(begin):
    async def workflow(order: str) -> str:
        return "paid " + await step("charge", order, 5)

    loop = begin(workflow, "o1")
    (call,) = loop.take_commands()
    assert (call.key, call.kind, call.name, call.args, call.due) == ("charge", Kind.STEP, "charge", ("o1", 5), None)
    assert (call.body, call.digest) == (b'["o1", 5]', zlib.crc32(b'["o1", 5]'))
    answer(loop, "charge", "receipt")
    assert result(loop) == "paid receipt"


def test_arguments_and_keywords_reach_the_function():
    async def workflow(a: int, *, b: int) -> int:
        return a + b

    loop = WorkflowLoop(workflow, (1,), {"b": 2})
    loop.begin(NOON)
    assert result(loop) == 3


def test_arguments_that_do_not_fit_fail_the_run(begin):
    async def workflow() -> None: ...

    assert isinstance(error(begin(workflow, 1)), TypeError)


def test_a_call_starts_when_it_is_awaited(begin):
    async def workflow() -> None:
        call = step("encode")
        await step("charge")
        await call

    loop = begin(workflow)
    assert commanded(loop) == ["charge"]
    answer(loop, "charge")
    assert commanded(loop) == ["encode"]


def test_calls_that_are_never_awaited_are_counted(begin):
    async def workflow() -> None:
        step("encode")
        step("encode")
        step("encode").cancel()
        await step("charge")

    loop = begin(workflow)
    answer(loop, "charge")
    assert loop.never_awaited == 2


def test_awaiting_a_call_twice_gives_the_same_value(begin):
    async def workflow() -> list[object]:
        call = step("encode")
        return [await call, await call]

    loop = begin(workflow)
    assert commanded(loop) == ["encode"]
    answer(loop, "encode", 7)
    assert result(loop) == [7, 7]


@pytest.mark.parametrize("start", [asyncio.create_task, asyncio.ensure_future])
def test_create_task_starts_a_call_and_returns_it(begin, start):
    async def workflow() -> bool:
        call = step("encode")
        task = start(call)
        await step("charge")
        return task is call

    loop = begin(workflow)
    assert commanded(loop) == ["encode", "charge"]
    answer(loop, "charge")
    assert result(loop) is True


def test_a_named_task_of_a_call_is_still_the_call(begin):
    async def workflow() -> str:
        task = asyncio.create_task(step("encode"), name="first")
        await task
        return task.get_name()

    loop = begin(workflow)
    answer(loop, "encode")
    assert result(loop) == "encode"


def test_a_value_that_is_given_is_not_decoded(begin):
    async def workflow() -> object:
        return await step("encode")

    loop = begin(workflow)
    value = object()
    loop.feed("encode", NOON, Outcome.OK, b"not json", loop.calls["encode"].digest, value)
    assert result(loop) is value


def test_a_failed_step_raises_what_was_stored(begin):
    async def workflow() -> list[object]:
        try:
            await step("charge")
        except StepFailed as failed:
            return [failed.step, failed.type, failed.message, failed.attempts, failed.cause, failed.traceback]
        return []

    loop = begin(workflow)
    fail(loop, "charge")
    assert result(loop) == ["charge", "CardError", "declined", 3, "raised", "Traceback ..."]


def test_the_same_failure_is_a_new_exception_for_each_call(begin):
    async def workflow() -> object:
        return await asyncio.gather(step("charge"), step("charge"), return_exceptions=True)

    loop = begin(workflow)
    fail(loop, "charge")
    fail(loop, "charge.2")
    first, second = result(loop)
    assert first is not second


def test_commands_that_nobody_took_lose_what_is_over(begin):
    async def workflow() -> None:
        await asyncio.gather(*(step("encode", n) for n in range(200)))

    loop = begin(workflow)
    for n in range(1, 190):
        answer(loop, "encode" if n == 1 else f"encode.{n}")
    assert [call.key for call in loop.commands] == [f"encode.{n}" for n in range(190, 201)]
    assert commanded(loop) == list(loop.calls)
    assert commanded(loop) == []


# Time.


def test_sleep_is_a_timer_with_an_exact_due_time(begin):
    async def workflow() -> float:
        await asyncio.sleep(0.1)
        await asyncio.sleep(86_400 * 365)
        return asyncio.get_running_loop().time()

    loop = begin(workflow)
    (timer,) = loop.take_commands()
    assert (timer.key, timer.kind, timer.due) == ("sleep", Kind.TIMER, NOON + 100_000)
    assert timer.digest == zlib.crc32(b"100000")
    fire(loop, "sleep")
    assert loop.calls["sleep.2"].due == NOON + 100_000 + 86_400 * 365 * SECOND
    loop.feed("sleep.2", NOON + 90_000_000 * SECOND, Outcome.OK, b"", loop.calls["sleep.2"].digest)
    assert result(loop) == (NOON + 90_000_000 * SECOND) / SECOND


@pytest.mark.parametrize("now", [0, 1, NOON, NOON + 1, 2_100_000_000_999_999])
@pytest.mark.parametrize("delay", [0.000001, 0.1, 1 / 3, 5, 59.999999, 86_400.000001])
def test_absolute_times_lose_no_microsecond(now, delay):
    async def workflow() -> None:
        async with asyncio.timeout(delay):
            await step("encode")

    loop = WorkflowLoop(workflow, (), {})
    loop.begin(now)
    assert loop.calls["timeout"].due == now + round(delay * SECOND)
    loop.close()


def test_timer_counts_from_the_last_outcome_if_the_clock_of_the_store_was_ahead(begin):
    async def workflow() -> None:
        await step("charge")
        await step("ship")
        await asyncio.sleep(5)

    loop = begin(workflow)
    answer(loop, "charge", after=86_400 * SECOND)
    answer(loop, "ship", after=-86_399 * SECOND)  # it was put right
    assert loop.now == NOON + 86_400 * SECOND, "no workflow sees time go back"
    assert loop.calls["sleep"].due == NOON + 6 * SECOND


def test_what_is_due_already_needs_no_journal(begin):
    async def workflow() -> list[str]:
        loop = asyncio.get_running_loop()
        said: list[str] = []
        loop.call_at(loop.time() - 5, said.append, "past")
        loop.call_later(0, said.append, "now")
        loop.call_later(0, said.append, "never").cancel()
        await asyncio.sleep(0)
        return said

    loop = begin(workflow)
    assert result(loop) == ["past", "now"]
    assert commanded(loop) == []


def test_a_timer_of_ones_own_fires_its_callback(begin):
    async def workflow() -> list[object]:
        loop, said = asyncio.get_running_loop(), asyncio.Queue[object]()
        handle = loop.call_later(5, said.put_nowait, "rang")
        waiting = handle.when() - loop.time()
        rang = await said.get()
        handle.cancel()
        return [waiting, rang, handle.cancelled()]

    loop = begin(workflow)
    assert list(loop.calls) == ["timer"]
    fire(loop, "timer")
    assert result(loop) == [5.0, "rang", False]


def test_a_sleep_without_end_has_a_due_time_that_can_be_stored(begin):
    async def workflow() -> None:
        await asyncio.gather(asyncio.sleep(math.inf), asyncio.wait_for(step("encode"), math.inf))

    dues = [call.due for call in begin(workflow).calls.values() if call.due is not None]
    assert len(dues) == 2
    assert all(NOON < due < 2**63 for due in dues)


def test_time_never_goes_back(begin):
    async def workflow() -> float:
        await step("encode")
        return asyncio.get_running_loop().time()

    loop = begin(workflow)
    answer(loop, "encode", after=-5 * SECOND)
    assert result(loop) == NOON / SECOND


# Cancelling.


def test_a_call_made_and_cancelled_at_once_is_never_seen(begin):
    async def workflow() -> None:
        asyncio.create_task(step("encode")).cancel()
        asyncio.get_running_loop().call_later(5, print).cancel()
        await step("charge")

    loop = begin(workflow)
    assert commanded(loop) == ["charge"]
    assert cancelled(loop) == []


def test_a_call_that_was_handed_out_is_told_when_it_is_cancelled(begin):
    async def workflow() -> None:
        task = asyncio.create_task(step("encode"))
        await step("charge")
        task.cancel()
        await step("notify")

    loop = begin(workflow)
    commanded(loop)
    answer(loop, "charge")
    assert cancelled(loop) == ["encode"]
    assert list(loop.calls) == ["notify"]
    assert cancelled(loop) == []


def test_a_call_cancelled_before_it_was_handed_out_is_not_told(begin):
    async def workflow() -> None:
        task = asyncio.create_task(step("encode"))
        await step("charge")
        task.cancel()
        await step("notify")

    loop = begin(workflow)
    answer(loop, "charge")
    assert commanded(loop) == ["notify"]
    assert cancelled(loop) == []


def test_cancel_lets_the_workflow_clean_up_with_steps(begin):
    async def workflow() -> None:
        try:
            await step("charge")
        finally:
            await step("refund")

    loop = begin(workflow)
    commanded(loop)
    loop.cancel(NOON + SECOND, "changed my mind")
    assert (commanded(loop), cancelled(loop), loop.now) == (["refund"], ["charge"], NOON + SECOND)
    answer(loop, "refund")
    assert loop.ended is not None
    assert loop.ended.outcome is Outcome.CANCELLED
    assert error(loop).args == ("changed my mind",)


def test_a_second_cancel_stops_the_cleaning_up(begin):
    async def workflow() -> None:
        try:
            await step("charge")
        finally:
            await step("refund")

    loop = begin(workflow)
    loop.cancel(NOON, "stop")
    loop.cancel(NOON, "now")
    assert loop.ended is not None
    assert loop.ended.outcome is Outcome.CANCELLED
    loop.cancel(NOON, "it is over")


def test_a_workflow_may_refuse_to_be_cancelled(begin):
    async def workflow() -> str:
        try:
            await step("charge")
        except asyncio.CancelledError as stop:
            return f"no: {stop}"
        return ""

    loop = begin(workflow)
    loop.cancel(NOON, "stop")
    assert result(loop) == "no: stop"


def test_a_cancellation_that_nobody_asked_for_is_a_failure(begin):
    async def workflow() -> None:
        raise asyncio.CancelledError

    loop = begin(workflow)
    assert loop.ended is not None
    assert loop.ended.outcome is Outcome.FAILED


# The end.


def test_the_first_return_of_main_decides(begin):
    said = []

    async def background() -> None:
        try:
            await step("encode")
        except asyncio.CancelledError:
            said.append("cancelled")
        finally:
            said.append("finally")
            await step("notify")
            said.append("more")

    async def workflow() -> str:
        asyncio.create_task(background())
        await step("charge")
        asyncio.create_task(background())
        return "done"

    loop = begin(workflow)
    commanded(loop)
    answer(loop, "charge")
    assert result(loop) == "done"
    assert (commanded(loop), cancelled(loop), loop.calls) == ([], ["background/encode"], {})
    assert said == ["finally"]


def test_what_was_ready_when_main_returned_does_not_run(begin):
    said: list[str] = []

    async def workflow() -> None:
        asyncio.get_running_loop().call_soon(said.append, "after")

    result(begin(workflow))
    assert said == []


def test_a_failure_begins_in_the_users_own_function(begin):
    async def workflow() -> None:
        raise ValueError("no")

    traceback = error(begin(workflow)).__traceback__
    assert traceback is not None
    assert traceback.tb_frame.f_code.co_name == "workflow"


def test_a_run_that_waits_for_nothing_can_be_seen(begin):
    async def workflow() -> None:
        await asyncio.Event().wait()

    loop = begin(workflow)
    assert loop.ended is None
    assert not loop.calls


# Divergence.


def test_an_outcome_that_nobody_asked_for_is_a_divergence(begin):
    async def workflow() -> None:
        await asyncio.gather(*(step("encode", n) for n in range(12)))

    loop = begin(workflow)
    with pytest.raises(Diverged) as diverged:
        loop.feed("charge", NOON, Outcome.OK, b"1", 5)
    assert diverged.value.recorded == "an outcome of 'charge'"
    assert diverged.value.asked.startswith("'encode', 'encode.2', 'encode.3'")
    assert diverged.value.asked.endswith("'encode.10' and 2 more")
    answer(loop, "encode")  # nothing was changed by it


def test_other_arguments_are_a_divergence(begin):
    async def workflow() -> None:
        await step("charge", "o1", 5)

    with pytest.raises(Diverged) as diverged:
        begin(workflow).feed("charge", NOON, Outcome.OK, b"1", 0xABC)
    assert diverged.value.recorded == "an outcome of 'charge' with other arguments (checksum 00000abc)"
    assert diverged.value.asked.startswith("""'charge' with ["o1", 5] (checksum """)


def test_entries_after_the_end_are_a_divergence(begin):
    async def workflow() -> None: ...

    with pytest.raises(Diverged, match="nothing more: the workflow has ended"):
        begin(workflow).feed("charge", NOON, Outcome.OK, b"1", 5)


def test_a_code_that_asks_for_nothing_is_a_divergence(begin):
    async def workflow() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Diverged, match="the journal has an outcome of 'charge', the code asks for nothing"):
        begin(workflow).feed("charge", NOON, Outcome.OK, b"1", 5)


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.FAILED])
def test_an_outcome_that_cannot_be_read_is_a_divergence(begin, outcome):
    async def workflow() -> None:
        await step("charge")

    loop = begin(workflow)
    with pytest.raises(Diverged, match="cannot be read"):
        loop.feed("charge", NOON, outcome, b"{", loop.calls["charge"].digest)
    answer(loop, "charge")
    result(loop)


def test_order_about_a_call_that_is_not_there_is_a_divergence(begin):
    async def workflow() -> object:
        return await step("charge")

    loop = begin(workflow)
    for order in (lambda: loop.edit("refund", b"[]"), lambda: loop.spare(NOON, "charge")):
        with pytest.raises(Diverged):
            order()


def test_task_with_a_name_is_a_branch_of_that_name(begin):
    async def order() -> object:
        return await step("charge")

    async def workflow() -> object:
        return await asyncio.create_task(order(), name="night")

    assert list(begin(workflow).calls) == ["night/charge"]
