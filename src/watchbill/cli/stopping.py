"""Stopping: until when a command goes on: until somebody says stop, or what it keeps has ended by itself."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def stop_signal() -> asyncio.Event:
    """Give what is set by SIGTERM and Ctrl-C."""
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    return stop


async def until_first(*ends: "Coroutine[Any, Any, object] | asyncio.Task[Any]") -> None:
    """Wait until the first of these has ended, however; tasks that were given go on."""
    waiting = {end if isinstance(end, asyncio.Task) else asyncio.ensure_future(end) for end in ends}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting.difference(ends):
            task.cancel()
