"""How steps and workflows are typed: read by mypy (`make check`), which refuses this file if a type is another.

Each `type: ignore` stands for an error that mypy must report: one that is not needed is an error too.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, assert_type

from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow


def encode(path: str, codec: str = "fast") -> str:
    return path + codec


async def charge(order: str, *, cents: int) -> list[int]:
    return [cents]


async def release(paths: list[str], copies: int = 1) -> dict[str, int]:
    return dict.fromkeys(paths, copies)


ENCODE, CHARGE, RELEASE = Step(encode), Step(charge, retry=3, timeout="10m"), Workflow(release, retry=2)


async def calls_are_coroutines_for_sync_and_async_functions_alike() -> None:
    encoding: Coroutine[Any, Any, str] = ENCODE("a")
    charging: Coroutine[Any, Any, list[int]] = CHARGE("a", cents=3)
    releasing: Coroutine[Any, Any, dict[str, int]] = RELEASE(["a"])
    slowly: Coroutine[Any, Any, str] = ENCODE.options(timeout="2h", key="chunk-12")("a", codec="x")
    assert_type(await asyncio.gather(encoding, slowly), tuple[str, str])
    await asyncio.gather(charging, releasing)


async def awaiting_gives_the_result() -> None:
    assert_type(await ENCODE("a"), str)
    assert_type(await CHARGE("a", cents=3), list[int])
    assert_type(await RELEASE(["a"], copies=2), dict[str, int])
    assert_type(await CHARGE.options(retry=1)("a", cents=3), list[int])


async def asyncio_takes_them() -> None:
    assert_type(asyncio.create_task(ENCODE("a")), asyncio.Task[str])
    assert_type(await asyncio.gather(*(ENCODE(p) for p in ["a"])), list[str])
    assert_type(await asyncio.wait_for(CHARGE("a", cents=3), 5), list[int])
    async with asyncio.TaskGroup() as group:
        assert_type(group.create_task(RELEASE(["a"])), asyncio.Task[dict[str, int]])


async def wrong_calls_are_errors() -> None:
    await ENCODE(3)  # type: ignore[arg-type]
    await ENCODE()  # type: ignore[call-arg]
    await ENCODE("a", speed=3)  # type: ignore[call-arg]
    await CHARGE("a", 3)  # type: ignore[call-arg]
    await CHARGE.options(retry=1)(3, cents=3)  # type: ignore[arg-type]
    await RELEASE("a", "b")  # type: ignore[arg-type]


async def wrong_options_are_errors() -> None:
    ENCODE.options(timout=3)  # type: ignore[call-arg]
    ENCODE.options(timeout=object())  # type: ignore[arg-type]
    Step(encode, isolation="process")  # type: ignore[call-overload]
    Step(charge, retries=3)  # type: ignore[call-overload]
    Workflow(release, allow=3)  # type: ignore[arg-type]
    Workflow(encode)  # type: ignore[arg-type]
