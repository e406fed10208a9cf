"""Live runs of which nothing is due: what supervision asks of the store in a minute, and how long a look takes."""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable

from tests.rooms.crowded import Crowd
from watchbill.env import SystemEnv
from watchbill.model.orphan import AuditPlace
from watchbill.store.open import open_store
from watchbill.supervisor.audit import AUDITED
from watchbill.supervisor.supervisor import LOOK_LIMIT
from watchbill.testing.conformance.scene import HandClock

SIZES = (10, 1_000, 10_000, 100_000)
QUICK_SIZES = (10, 100, 1_000, 2_000)
LOOKS = 300


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(dict(zip(SIZES, QUICK_SIZES if quick else SIZES, strict=True))))


async def house(sizes: dict[int, int]) -> dict[str, float]:
    url, clock = os.environ["WATCHBILL_STORE"], HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    crowd = Crowd(url, store, clock)
    await crowd.open()
    figures: dict[str, float] = {}
    for size, runs in sizes.items():
        await crowd.grows(runs)
        figures[f"asked_{size}"] = (await crowd.asked_in_a_minute()).total()
        figures[f"look_{size}_s"] = await timed(lambda: store.supervisor.watch(LOOK_LIMIT))
        figures[f"audit_{size}_s"] = await timed(lambda: store.supervisor.audit(AuditPlace(), AUDITED))
    await store.close()
    return figures


async def timed(look: Callable[[], Awaitable[object]]) -> float:
    """The median of many calls, back to back."""
    took = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        await look()
        took.append(time.perf_counter() - began)
    return statistics.median(took)
