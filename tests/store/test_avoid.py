"""An attempt that is left to other agents first: whoever may have it later is woken then."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from watchbill.clock import Micros
from watchbill.env import SystemEnv
from watchbill.model.agent import Act
from watchbill.model.states import AttemptState
from watchbill.store.open import open_store
from watchbill.store.protocol import AVOID_FOR, Hint
from watchbill.testing.conformance.scene import HandClock, Scene, a_run, a_verdict


class Hurried(SystemEnv):
    """A world in which ten seconds pass at once."""

    def call_later(self, delay: Micros, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return super().call_later(0 if delay == AVOID_FOR else delay, callback)


async def test_who_must_not_have_it_now_is_woken_when_it_may(folder: Path):
    store = await open_store(f"sqlite:///{folder}/store.db", Hurried(), clock=HandClock())
    scene = Scene(store, HandClock())
    await scene.open()
    await store.agent.join(71, "default", "", "b", b"{}", None)
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.FAILED, b"{}")
    twice = asyncio.Semaphore(0)
    store.listen(Hint.AGENT, twice.release)
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.READY))
    async with asyncio.timeout(120):
        await twice.acquire()  # it is ready
        await twice.acquire()  # and now for everybody
    await store.close()


async def test_a_store_that_is_closed_wakes_nobody(folder: Path):
    store = await open_store(f"sqlite:///{folder}/store.db", SystemEnv(), clock=HandClock())
    scene = Scene(store, HandClock())
    await scene.open()
    await store.agent.join(71, "default", "", "b", b"{}", None)
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.FAILED, b"{}")
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.READY))
    timers = store._lanes._later  # type: ignore[attr-defined]
    [timer] = timers
    await store.close()
    assert (timer.cancelled(), timers) == (True, set())
