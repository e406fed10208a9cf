"""The real world, where nothing else tests it."""

import asyncio

from watchbill.env import SystemEnv

SHORT = 5_000  # microseconds


async def test_who_waits_for_nothing_but_time_waits_every_time() -> None:
    env, never = SystemEnv(), asyncio.Event()
    for _ in range(3):
        before = env.clock.boot()
        await env.wait(never, SHORT)
        assert env.clock.boot() - before >= SHORT
    assert not never.is_set()


async def test_an_event_ends_the_wait_before_its_time() -> None:
    env, event = SystemEnv(), asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    async with asyncio.timeout(20):
        await env.wait(event, 60_000_000)
        await env.wait(event, 60_000_000)
