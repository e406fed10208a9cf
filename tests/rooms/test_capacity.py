"""Slots and threads: what is beyond them waits, and goes on when there is room."""

import asyncio
import threading
from typing import Any

import pytest

from tests.rooms.scene import LONG, becomes, ends
from watchbill import App, Retry, attempt, sleep


class Gauge:
    """Counts how many are inside at once."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


async def test_no_more_attempts_run_at_once_than_there_are_slots(app: App) -> None:
    gauge = Gauge()

    @app.step
    async def work(n: int) -> int:
        with gauge:
            for _ in range(5):
                await asyncio.sleep(0)
        return n

    @app.workflow
    async def fan() -> int:
        return sum(await asyncio.gather(*(work(n) for n in range(40))))

    async with app.rooms(slots=3):
        assert await ends(await app.start(fan)) == 780
    assert gauge.most == 3


async def test_no_more_sync_steps_run_at_once_than_there_are_threads(app: App) -> None:
    gauge = Gauge()
    pair = threading.Barrier(2)

    @app.step
    def work(n: int) -> int:
        with gauge:
            pair.wait(LONG)  # two at a time do run together
        return n

    @app.workflow
    async def fan() -> int:
        return sum(await asyncio.gather(*(work(n) for n in range(20))))

    async with app.rooms(threads=2):
        assert await ends(await app.start(fan)) == 190
    assert gauge.most == 2


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_retries_and_first_tries_share_one_slot_without_starving(app: App, kind: str) -> None:
    @app.step(retry=Retry(2, backoff="1ms"))
    async def flaky(n: int) -> int:
        if attempt().number < 3:
            raise ConnectionError
        return n

    @app.step(retry=Retry(2, backoff="1ms"))
    def flaky_sync(n: int) -> int:
        if attempt().number < 3:
            raise ConnectionError
        return n

    @app.workflow
    async def wf(n: int) -> int:
        return await (flaky(n) if kind == "async" else flaky_sync(n))

    async with app.rooms(slots=1, threads=1):
        handles = await app.start_many([(wf, (n,)) for n in range(6)])
        assert [await ends(handle) for handle in handles] == list(range(6))


async def test_a_retry_that_found_no_room_runs_when_a_first_try_leaves(app: App) -> None:
    occupied, release = asyncio.Event(), asyncio.Event()

    @app.step
    async def occupy() -> None:
        occupied.set()
        await release.wait()

    @app.step(retry=Retry(1, backoff="1ms"))
    async def flaky() -> int:
        if attempt().number == 1:
            raise ConnectionError
        return attempt().number

    @app.workflow
    async def first() -> None:
        await occupy()

    @app.workflow
    async def second() -> int:
        return await flaky()

    async with app.rooms(slots=1):
        retried = await app.start(second)
        occupier = await app.start(first)
        await asyncio.wait_for(occupied.wait(), LONG)
        await becomes(retried, lambda status: status.health in ("retrying", "waiting_for_agent"))
        await becomes(retried, lambda status: status.steps[0].state == "ready")
        release.set()
        await ends(occupier)
        assert await ends(retried) == 2


async def test_the_slot_of_an_abandoned_thread_is_free_again_when_it_returns(app: App) -> None:
    begun, release = threading.Event(), threading.Event()

    @app.step(timeout="20ms", retry=0)
    def stubborn() -> None:
        begun.set()
        release.wait(LONG)

    @app.step
    async def other() -> str:
        return "ran"

    @app.workflow
    async def late() -> None:
        await stubborn()

    @app.workflow
    async def waits() -> str:
        return await other()

    async with app.rooms(slots=1):
        first = await app.start(late)
        await asyncio.to_thread(begun.wait, LONG)
        second = await app.start(waits)
        await becomes(first, lambda status: status.state == "failed")
        assert (await second.status()).state == "running"  # the thread still has the slot
        release.set()
        assert await ends(second) == "ran"


async def test_waiting_for_a_thread_is_no_part_of_a_steps_timeout(app: App) -> None:
    begun, release = threading.Event(), threading.Event()
    numbers: list[int] = []

    @app.step
    def occupy() -> None:
        begun.set()
        release.wait(LONG)

    @app.step(timeout="50ms", retry=0)
    def quick(n: int) -> int:
        numbers.append(n)
        return n

    @app.workflow
    async def first() -> None:
        await occupy()

    @app.workflow
    async def second() -> list[int]:
        return list(await asyncio.gather(quick(1), quick(2)))

    @app.workflow
    async def pause() -> None:
        await sleep("150ms")

    async with app.rooms(threads=1):
        occupier = await app.start(first)
        await asyncio.to_thread(begun.wait, LONG)
        queued = await app.start(second)
        await ends(await app.start(pause))  # three times the timeout
        release.set()
        assert await ends(queued) == [1, 2]
        await ends(occupier)
    assert numbers == [1, 2]


async def test_a_call_that_is_cancelled_while_it_waits_for_a_thread_never_runs(app: App) -> None:
    begun, release = threading.Event(), threading.Event()
    ran: list[Any] = []

    @app.step
    def occupy() -> None:
        begun.set()
        release.wait(LONG)

    @app.step
    def work() -> None:
        ran.append(attempt().key)

    @app.workflow
    async def first() -> None:
        await occupy()

    @app.workflow
    async def second() -> str:
        try:
            async with asyncio.timeout(0.01):
                await work()
        except TimeoutError:
            return "gave up"
        return "done"

    async with app.rooms(threads=1):
        occupier = await app.start(first)
        await asyncio.to_thread(begun.wait, LONG)
        assert await ends(await app.start(second)) == "gave up"
        release.set()
        await ends(occupier)
    assert not ran


async def test_more_runs_than_one_look_takes_in_all_begin(app: App) -> None:
    @app.workflow
    async def count(n: int) -> int:
        return n

    async with app.rooms():
        handles = await app.start_many([(count, (n,)) for n in range(2_500)])
        results = await asyncio.gather(*(handle.result(timeout=LONG) for handle in handles))
    assert results == list(range(2_500))


async def test_many_that_wake_at_nearly_the_same_time_are_woken_together(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchbill.scheduler.advance.RESIDENT_FOR", 0)  # whoever sleeps leaves memory at once

    @app.workflow
    async def nap(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async with app.rooms():
        doors: Any = app._hall._store.scheduler  # type: ignore[attr-defined]
        load, loaded = doors.load, []

        async def counted(nums: Any) -> Any:
            loaded.append(len(nums))
            return await load(nums)

        monkeypatch.setattr(doors, "load", counted)
        handles = await app.start_many([(nap, (1 + n / 1_000,)) for n in range(100)])
        assert [await ends(handle) for handle in handles] == [1 + n / 1_000 for n in range(100)]
    assert sum(loaded) == 100
    assert len(loaded) <= 20, f"each 20 ms once, not each by itself: {loaded}"
