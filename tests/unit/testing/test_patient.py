"""PatientLoop: time jumps, but not while a thread works; everything comes in order."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextvars import Context
from typing import Any

import pytest

from watchbill.testing.patient import Crew, NotInTestError, PatientLoop
from watchbill.testing.virtual import Life

DAY = 86_400


@pytest.fixture
def loop() -> Iterator[PatientLoop]:
    loop = PatientLoop()
    yield loop
    loop.bury_all()
    loop.close()


@pytest.fixture
def life(loop: PatientLoop) -> Life:
    return Life("test", loop)


def test_ready_callbacks_come_in_order(loop: PatientLoop) -> None:
    seen: list[int] = []
    for n in range(100):
        loop.call_soon(seen.append, n)
    loop.settle()
    assert seen == list(range(100))


def test_time_jumps_when_nobody_has_anything_to_do(loop: PatientLoop, life: Life) -> None:
    loop.play(life, asyncio.sleep(365 * DAY))
    assert loop.time() == 365 * DAY


def test_settling_lets_no_time_pass(loop: PatientLoop) -> None:
    seen: list[str] = []
    loop.call_later(1, seen.append, "later")
    loop.call_soon(loop.call_soon, seen.append, "now")
    loop.call_at(0, seen.append, "due")
    loop.settle()
    assert seen == ["now", "due"]
    assert loop.time() == 0


def test_time_stands_still_while_a_thread_works(loop: PatientLoop, life: Life) -> None:
    async def work() -> float:
        await asyncio.to_thread(time.sleep, 0.05)
        return loop.time()

    assert loop.play(life, work()) == 0


def test_a_timer_comes_when_a_thread_has_worked_for_so_long(loop: PatientLoop, life: Life) -> None:
    over = threading.Event()

    async def work() -> float:
        loop.call_later(0.4, over.set)
        await asyncio.to_thread(over.wait, 10)
        return loop.time()

    assert loop.play(life, work()) == pytest.approx(0.4)


def test_a_thread_that_never_ends_does_not_stop_the_test_for_ever(loop: PatientLoop, life: Life) -> None:
    over = threading.Event()

    async def work() -> None:
        await asyncio.to_thread(over.wait, 30)

    life.start(work())
    loop.settle()
    assert loop.at_work == 1
    over.set()
    loop.settle()
    assert loop.at_work == 0


def test_jobs_on_threads_come_one_after_the_other(loop: PatientLoop, life: Life) -> None:
    seen: list[int] = []

    def job(n: int) -> None:
        seen.append(n)
        time.sleep(0.001)
        seen.append(n)

    async def work() -> None:
        await asyncio.gather(*(asyncio.to_thread(job, n) for n in range(10)))

    loop.play(life, work())
    assert seen == [n for n in range(10) for _ in range(2)]


def test_an_exception_of_a_thread_comes_back(loop: PatientLoop, life: Life) -> None:
    async def work() -> None:
        await asyncio.to_thread(int, "no number")

    with pytest.raises(ValueError, match="no number"):
        loop.play(life, work())


def test_what_a_thread_of_the_dead_brings_is_dropped(loop: PatientLoop, life: Life) -> None:
    heard: list[object] = []

    async def work() -> None:
        crew = Crew(loop, "dead", 1)
        crew.submit(life.die, lambda result, error: heard.append((result, error)))

    loop.play(life, work())
    loop.settle()
    assert heard == []
    assert loop.at_work == 0


def test_what_the_dead_submit_never_begins(loop: PatientLoop, life: Life) -> None:
    begun: list[str] = []

    async def work() -> None:
        Crew(loop, "dead", 1).submit(lambda: begun.append("begun"), lambda result, error: None)
        life.die()

    loop.play(life, work())
    loop.settle()
    assert begun == []


def test_time_is_not_held_back_by_a_thread_of_the_dead(loop: PatientLoop, life: Life) -> None:
    over = threading.Event()

    async def work() -> None:
        await asyncio.to_thread(over.wait, 30)

    life.start(work())
    loop.settle()
    life.die()
    loop.play(Life("other", loop), asyncio.sleep(DAY))
    assert loop.time() == DAY
    over.set()


def test_real_time_with_a_thread_counts_only_until_the_time_moves(loop: PatientLoop, life: Life) -> None:
    async def work() -> float:
        await asyncio.to_thread(time.sleep, 0.5)  # longer than all wait for it
        await asyncio.sleep(1)
        loop.call_later(0.5, life.die)
        await asyncio.to_thread(time.sleep, 0.3)
        return loop.time()

    assert loop.play(life, work()) == 1


def test_a_closed_crew_is_not_waited_for(loop: PatientLoop, life: Life) -> None:
    over = threading.Event()
    crews: list[Crew] = []

    async def work() -> None:
        crews.append(Crew(loop, "stuck", 1))
        crews[0].submit(lambda: over.wait(30), lambda result, error: None)
        await asyncio.sleep(0.001)

    life.start(work())
    loop.call_later(0.3, loop.stop, context=Context())
    loop.run_forever()
    assert loop.at_work == 1
    crews[0].close()
    assert loop.at_work == 0
    loop.play(Life("other", loop), asyncio.sleep(DAY))
    over.set()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: asyncio.open_connection("localhost", 1),
        lambda: asyncio.start_server(print, "localhost", 1),
        lambda: asyncio.create_subprocess_exec("true"),
    ],
)
def test_the_network_and_processes_are_refused(loop: PatientLoop, life: Life, ask: Any) -> None:
    async def work() -> None:
        await ask()

    with pytest.raises(NotInTestError, match="give the step a fake"):
        loop.play(life, work())
