"""Hosting: runs an agent's host until somebody says stop."""

import asyncio
import contextlib
import signal
from typing import Any

import typer

from watchbill.app.host import Employment, hosting
from watchbill.env import SystemEnv
from watchbill.errors import InvalidOptionError
from watchbill.events import Events
from watchbill.flow.program import Named, named_program
from watchbill.model.duration import to_micros
from watchbill.model.needs import parse_needs, written
from watchbill.model.profile import profile_named
from watchbill.store.address import parse_url, redacted

BEATS_PER_LEASE = 4


def host(program: str, store: str | None, **asked: Any) -> None:  # noqa: ANN401 - as the command's options say
    """Host an agent."""
    if store is not None:
        parse_url(store)
    asyncio.run(_host(named_program(program), store, employment(**asked)))


def employment(  # noqa: PLR0913 - each option is one
    *,
    needs: str,
    region: str,
    profile: str,
    slots: int | None,
    workers: int | None,
    beat: str | None,
    grace: str | None,
    name: str,
    recycle_after: int | None,
    recycle_megabytes: int | None,
) -> Employment:
    """Read what an operator says."""
    pace = profile_named(profile)
    given: dict[str, Any] = {
        "name": name,
        "region": region,
        "needs": written(parse_needs(needs)),
        "beat": pace.beat,
        "lease": pace.lease,
    }
    numbers = {
        "slots": slots,
        "workers": workers,
        "recycle_after": recycle_after,
        "recycle_megabytes": recycle_megabytes,
    }
    for word, number in numbers.items():
        if number is not None:
            if number < 1:
                raise InvalidOptionError(f"--{word.replace('_', '-')} must be above zero, got {number}")
            given[word] = number
    if beat is not None:
        given["beat"] = to_micros(beat, what="--beat", at_least=50_000)
        given["lease"] = BEATS_PER_LEASE * given["beat"]
    if grace is not None:
        given["grace"] = to_micros(grace, what="--grace")
    return Employment(**given)


async def _host(named: Named, store: str | None, wanted: Employment) -> None:
    stop, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, lambda: (again if stop.is_set() else stop).set())
    async with contextlib.AsyncExitStack() as stack:
        stopped = loop.create_task(stop.wait())
        opening = hosting(SystemEnv(), Events(), named, store, None, wanted)
        entering = loop.create_task(stack.enter_async_context(opening))
        await asyncio.wait({stopped, entering}, return_when=asyncio.FIRST_COMPLETED)
        if not entering.done():
            entering.cancel()  # it waits for a store
            with contextlib.suppress(asyncio.CancelledError):
                await entering
            return
        hosted = entering.result()
        joined = loop.create_task(hosted.agent.joined.wait())
        await asyncio.wait({stopped, joined}, return_when=asyncio.FIRST_COMPLETED)
        if joined.done():
            workers = f"{wanted.workers} worker{'s' if wanted.workers > 1 else ''}"
            place = redacted(hosted.url)
            _say(f"agent {hosted.agent.called!r} is at work on {place}: {wanted.slots} slots in {workers}")
        dismissed = loop.create_task(hosted.agent.dismissed.wait())
        await asyncio.wait({stopped, dismissed}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        hurrying = loop.create_task(again.wait())
        hurrying.add_done_callback(lambda task: None if task.cancelled() else hosted.agent.hurry())
        _say("draining; once more, and it does not wait")


def _say(text: str) -> None:
    typer.echo(f"watchbill: {text}", err=True)
