"""The real world, where nothing else tests it."""

import asyncio
import gc
import sys
from collections.abc import Iterator

import pytest

from watchbill.env import SWITCH_INTERVAL, YOUNG_OBJECTS, SystemEnv, busy_interpreter

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


def settings() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()


@pytest.fixture
def before() -> Iterator[tuple[float, tuple[int, int, int]]]:
    """The settings of the interpreter, which a test may change."""
    found = settings()
    yield found
    sys.setswitchinterval(found[0])
    gc.set_threshold(*found[1])


def test_settings_of_the_interpreter_are_put_back_after_the_last_user(before) -> None:
    one, two = busy_interpreter(), busy_interpreter()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert sys.getswitchinterval() == SWITCH_INTERVAL
    assert gc.get_threshold() == (YOUNG_OBJECTS, *before[1][1:])
    two.__exit__(None, None, None)
    assert settings() == before


def test_settings_that_the_program_changes_meanwhile_are_left_alone(before) -> None:
    with busy_interpreter():
        sys.setswitchinterval(0.002)
        gc.set_threshold(5, 6, 7)
    assert settings() == (0.002, (5, 6, 7))


def test_collector_that_is_off_stays_off(before) -> None:
    gc.set_threshold(0)
    with busy_interpreter():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold()[0] == 0
