"""SystemThreads: jobs that block get a thread each, never more than allowed, and none is forgotten."""

import asyncio
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from watchbill.env import SystemEnv, Threads

PATIENCE = 10  # seconds: only a failing test waits that long


class Counting:
    """Counts how many run at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


async def gather(threads: Threads, jobs: list[Callable[[], Any]]) -> list[Any]:
    """Submit them all at once, and wait for what they give."""
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in jobs]
    for job, future in zip(jobs, futures, strict=True):
        threads.submit(job, partial(settle, future))
    async with asyncio.timeout(PATIENCE):
        return await asyncio.gather(*futures, return_exceptions=True)


def settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    future.set_result(result) if error is None else future.set_exception(error)


@pytest.mark.parametrize("count", [1, 2, 8])
async def test_jobs_that_block_get_a_thread_each(count: int) -> None:
    threads = SystemEnv().threads("test", count)
    meeting = threading.Barrier(count)
    for _ in range(3):  # with threads that start, and with threads that sleep
        assert len(await gather(threads, [lambda: meeting.wait(PATIENCE)] * count)) == count
        assert not meeting.broken
    threads.close()


async def test_no_more_run_at_once_than_there_are_threads() -> None:
    threads, counting = SystemEnv().threads("test", 4), Counting()
    nap = threading.Event()

    def job() -> None:
        with counting:
            nap.wait(0.001)

    for size in (1, 40, 3, 40):
        await gather(threads, [job] * size)
    threads.close()
    assert counting.most == 4


async def test_what_a_job_raises_comes_back() -> None:
    threads = SystemEnv().threads("test", 2)

    def fails() -> None:
        raise ValueError("no")

    given = await gather(threads, [fails, lambda: 7])
    threads.close()
    assert isinstance(given[0], ValueError)
    assert given[1] == 7


async def test_threads_end_when_they_are_closed_and_do_what_is_left_before() -> None:
    threads = SystemEnv().threads("to be closed", 3)
    done = asyncio.Event()
    left = [60]

    def one_less(_result: object, _error: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            done.set()

    for _ in range(60):
        threads.submit(lambda: None, one_less)
    threads.close()
    await asyncio.wait_for(done.wait(), PATIENCE)
    for _ in range(1_000):
        if not any(thread.name.startswith("to be closed") for thread in threading.enumerate()):
            return
        await asyncio.sleep(0.01)
    pytest.fail("a thread is left")


@pytest.mark.parametrize("count", [1, 3])
async def test_none_is_forgotten_whatever_the_order(count: int) -> None:
    """Bursts of all sizes, some of which block: every job meets threads that sleep, wake up, or lie down just now."""
    threads, chance, nap = SystemEnv().threads("test", count), random.Random(7), threading.Event()

    def rest(n: int, nap_for: float) -> int:
        nap.wait(nap_for)
        return n

    for _ in range(400):
        size = chance.choice((1, 1, 2, 3, 20))
        naps = [chance.random() * 0.0005 if chance.random() < 0.2 else 0.0 for _ in range(size)]
        given = await gather(threads, [partial(rest, n, nap_for) for n, nap_for in enumerate(naps)])
        assert given == list(range(size))
    threads.close()
