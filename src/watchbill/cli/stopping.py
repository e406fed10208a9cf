"""Stopping: until when a command goes on: until somebody says stop, or what it keeps has ended by itself."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from watchbill.env import ignores_hangup, release_closed_outputs


def stop_signal() -> asyncio.Event:
    """Give what is set by SIGTERM, Ctrl-C and the end of the terminal."""
    stop = asyncio.Event()
    when_asked_to_stop(stop.set, stop.set)
    return stop


def when_asked_to_stop(tell: Callable[[], None], tell_of_hangup: Callable[[], None]) -> None:
    """Call back on the event loop at SIGTERM and Ctrl-C, and at SIGHUP unless this process was started to survive it.

    Before that, outputs that are closed are released: what ends here may write to them.
    """
    loop = asyncio.get_running_loop()

    def hear(tell: Callable[[], None]) -> None:
        release_closed_outputs()
        tell()

    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, hear, tell)
    if not ignores_hangup():
        loop.add_signal_handler(signal.SIGHUP, hear, tell_of_hangup)


async def until_first(*ends: "Coroutine[Any, Any, object] | asyncio.Task[Any]") -> None:
    """Wait until the first of these has ended, however; tasks that were given go on."""
    waiting = {end if isinstance(end, asyncio.Task) else asyncio.ensure_future(end) for end in ends}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting.difference(ends):
            task.cancel()
