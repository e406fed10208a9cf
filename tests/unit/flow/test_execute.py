"""The executor: each attempt ends once, is told to its host, and gives its slot back, whatever happens to it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from watchbill.bounds import BOUNDS
from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.flow.context import Attempt, Checkpoint, Finishing
from watchbill.flow.execute import Executor
from watchbill.flow.steps import Step
from watchbill.model.failure import NOT_BEGUN, Cause, Failure
from watchbill.model.policy import Policy

PATIENCE = 120  # seconds: only a failing test waits that long


class Host:
    """Hears of attempts, and may refuse to let one begin."""

    trusted_until: Micros | None = None

    def __init__(self) -> None:
        self.ended: list[Attempt] = []
        self.seen: list[Attempt] = []
        self.refuses: Failure | None = None
        self._more = asyncio.Event()

    def finished(self, attempt: Attempt) -> None:
        self.ended.append(attempt)
        self._more.set()

    def lasts(self, attempt: Attempt) -> None: ...

    def moved(self, attempt: Attempt) -> None:
        self.seen.append(attempt)

    def refusal(self, attempt: Attempt) -> Failure | None:
        return self.refuses

    async def hears(self, times: int) -> list[Attempt]:
        async with asyncio.timeout(PATIENCE):
            while len(self.ended) < times:
                self._more.clear()
                await self._more.wait()
        return self.ended


def an_attempt(function: Callable[..., Any], run: str = "r-1", policy: Policy | None = None, **options: Any) -> Attempt:
    step: Any = Step(function, **options)
    return Attempt(step, (), {}, policy or Policy(), ("default", run, 0, step.name, 0), 1)


def start(executor: Executor, attempt: Attempt, host: Host) -> Attempt:
    executor.start(attempt, host, at=0, boot=executor.env.clock.boot())
    return attempt


async def soon() -> str:
    return "done"


def now() -> str:
    return "done"


@pytest.mark.parametrize("function", [soon, now])
async def test_attempt_that_its_host_refuses_at_the_last_moment_does_not_begin(function: Any) -> None:
    executor, host = Executor(SystemEnv(), threads=1), Host()
    host.refuses = Failure(NOT_BEGUN, "it may be somebody else's", cause=Cause.CANCELLED)
    attempt = start(executor, an_attempt(function), host)
    assert await host.hears(1) == [attempt]
    assert (attempt.failure, attempt.body) == (host.refuses, b"")
    assert executor.free == executor.slots
    await executor.close()


async def test_attempt_in_a_process_of_its_own_that_is_refused_or_cannot_be_reached_starts_none() -> None:
    executor, host = Executor(SystemEnv(), threads=1), Host()
    executor.free_children = 1
    room: list[int] = []
    executor.on_room.append(lambda: room.append(executor.free_children))
    host.refuses = Failure(NOT_BEGUN, "it may be somebody else's", cause=Cause.CANCELLED)
    attempt = start(executor, an_attempt(soon, policy=Policy(own=True)), host)
    await host.hears(1)
    assert attempt.failure is host.refuses
    assert room[0] == 1, "a process more may be started"
    host.refuses = None
    hidden = start(executor, an_attempt(lambda: None, policy=Policy(own=True), name="hidden"), host)
    await executor.close()  # kills it, and waits
    assert hidden.failure is not None
    assert len(host.ended) == 2


async def test_failure_is_not_tried_again_at_once_after_finish_or_when_its_time_is_over() -> None:
    executor, host, tries = Executor(SystemEnv(), threads=1), Host(), list[str]()

    async def fails() -> None:
        tries.append("again")
        raise ValueError("no")

    plain = start(executor, an_attempt(fails, local_retries=2), host)
    await host.hears(1)
    assert len(tries) == 3
    finishing = an_attempt(fails, local_retries=2)
    finishing.finishing = Finishing(b"1")
    start(executor, finishing, host)
    late = an_attempt(fails, policy=Policy(timeout=1), local_retries=2)
    executor.start(late, host, at=0, boot=executor.env.clock.boot() - SECOND)
    await host.hears(3)
    assert len(tries) == 5
    assert all(one.failure is not None and one.failure.cause is Cause.RAISED for one in (plain, finishing, late))
    await executor.close()


async def test_run_whose_large_outcomes_wait_begins_nothing_more_until_they_are_written() -> None:
    executor, host = Executor(SystemEnv(), slots=1, threads=1), Host()
    room: list[int] = []
    executor.on_room.append(lambda: room.append(executor.free))
    large = an_attempt(soon)
    large.body = b"x" * BOUNDS.kept_of_a_run
    executor.keep(large)
    for function in (soon, now):
        parked, other = start(executor, an_attempt(function), host), an_attempt(function, run="r-2")
        async with asyncio.timeout(PATIENCE):
            while not executor._parked:
                await asyncio.sleep(0)
        assert room[-1] == 1, "others use its slot"
        start(executor, other, host)
        await host.hears(len(host.ended) + 1)
        assert host.ended[-1] is other
        before = len(host.ended)
        executor.cancel(parked)  # what is cancelled need not wait: it ends by beginning
        await host.hears(before + 1)
        assert parked.failure is not None
        assert parked.failure.cause is Cause.CANCELLED
    waits = start(executor, an_attempt(soon), host)
    async with asyncio.timeout(PATIENCE):
        while not executor._parked:
            await asyncio.sleep(0)
    executor.release(large)
    await host.hears(len(host.ended) + 1)
    assert waits.value == "done"
    await executor.close()


async def test_attempt_behind_a_large_outcome_of_a_thread_begins_when_nobody_wants_that() -> None:
    executor, host = Executor(SystemEnv(), threads=2), Host()
    inside, go_on = threading.Event(), threading.Event()

    def large() -> str:
        inside.set()
        go_on.wait(PATIENCE)
        return "x" * BOUNDS.kept_of_a_run

    first = start(executor, an_attempt(large), host)
    await asyncio.to_thread(inside.wait, PATIENCE)
    executor.abandon(first)
    executor._coming[first] = BOUNDS.kept_of_a_run  # as its thread says a moment before the loop hears of it
    second = start(executor, an_attempt(now), host)
    async with asyncio.timeout(PATIENCE):
        while not executor._parked:
            await asyncio.sleep(0)
    go_on.set()
    assert await host.hears(1) == [second]
    assert second.value == "done"
    assert len(first.body) > BOUNDS.large
    await executor.close()


async def test_row_is_tended_by_the_last_host_that_took_rows() -> None:
    executor, one, other = Executor(SystemEnv(), threads=1), Host(), Host()
    attempt = an_attempt(soon)
    executor.report(attempt)  # nobody tends rows yet: nobody hears of it
    executor.hand_over(attempt)
    assert attempt.host is None
    room: list[str] = []
    executor.on_room.append(lambda: room.append("room"))
    executor.take_rows(one)
    executor.take_rows(one)
    assert room == ["room"]
    executor.take_rows(other)
    executor.hand_over(attempt)
    executor.report(attempt)
    assert (one.seen, other.seen, other.ended) == ([], [attempt], [attempt])
    await executor.close()


async def test_attempt_that_is_lost_tells_whoever_waits_for_it() -> None:
    attempt = an_attempt(soon)
    saved, more = Checkpoint(b"1"), Checkpoint(b"2")
    attempt.save(saved)
    attempt.save(more)
    attempt.finishing = Finishing(b"3")
    attempt.lose()
    assert [type(one.written.exception()).__name__ for one in (saved, more)] == ["AttemptLostError"] * 2
    assert type(attempt.finishing.plan.exception()).__name__ == "AttemptLostError"
    attempt.put_back_progress(b"", increased=False)
    assert attempt.take_progress() is None
