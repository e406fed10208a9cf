"""Hosting: runs an agent's host until somebody says stop."""

import asyncio
import contextlib
import os
from typing import Any

import typer

from watchbill.app.host import Employment, hosting
from watchbill.cli.employing import HANDED_OVER, check_address
from watchbill.cli.stopping import until_first, when_asked_to_stop
from watchbill.clock import SECOND
from watchbill.env import SystemEnv, when_employer_is_gone
from watchbill.errors import InvalidOptionError
from watchbill.events import Events
from watchbill.flow.program import Named, named_program
from watchbill.model.duration import to_micros
from watchbill.model.needs import parse_needs, written
from watchbill.model.profile import LONGEST_LEASE, profile_named
from watchbill.model.run import MOST_SLOTS, check_region
from watchbill.store.address import redacted

BEATS_PER_LEASE = 4


def host(program: str, store: str | None, *, employed: bool = False, **asked: Any) -> None:  # noqa: ANN401 - as the command's options say
    """Host an agent; `employed`: for `up` or `fleet`, which may hand over the store, and without which it drains."""
    if employed and store is None:
        store = os.environ.pop(HANDED_OVER, None)
    if store is not None:
        check_address(store)
    asyncio.run(_host(named_program(program), store, employment(**asked), employed=employed))


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
        "region": check_region(region or None, "--region"),
        "profile": profile,
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
            if not 1 <= number <= MOST_SLOTS:
                raise InvalidOptionError(
                    f"--{word.replace('_', '-')} must be above zero and at most {MOST_SLOTS:,}, got {number}"
                )
            given[word] = number
    if beat is not None:
        given["beat"] = to_micros(beat, what="--beat", at_least=50_000)
        given["lease"] = BEATS_PER_LEASE * given["beat"]
        if given["lease"] > LONGEST_LEASE:
            # So long others wait at most for whoever may still act, when nobody knows any more who that was.
            most = f"{LONGEST_LEASE / BEATS_PER_LEASE / SECOND:g}s"
            raise InvalidOptionError(
                f"--beat must be at most {most}, got {beat!r}: a lease is {BEATS_PER_LEASE} beats, and none is longer"
                f" than {LONGEST_LEASE / SECOND:g} s; for rarer beats give --profile batch, and no --beat"
            )
    if grace is not None:
        given["grace"] = to_micros(grace, what="--grace")
    return Employment(**given)


async def _host(named: Named, store: str | None, wanted: Employment, *, employed: bool) -> None:
    stop, again = asyncio.Event(), asyncio.Event()
    _hear_signals(stop, again)
    if employed:
        when_employer_is_gone(stop.set)
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        opening = hosting(SystemEnv(), Events(), named, store, wanted)
        entering = loop.create_task(stack.enter_async_context(opening))
        await until_first(stop.wait(), entering)
        if not entering.done():
            entering.cancel()  # it waits for a store
            with contextlib.suppress(asyncio.CancelledError):
                await entering
            return
        hosted = entering.result()
        await until_first(stop.wait(), hosted.agent.joined.wait(), hosted.working)
        if hosted.agent.joined.is_set():
            workers = f"{wanted.workers} worker{'s' if wanted.workers > 1 else ''}"
            place = redacted(hosted.url)
            _say(f"agent {hosted.agent.called!r} is at work on {place}: {wanted.slots} slots in {workers}")
        await until_first(stop.wait(), hosted.agent.dismissed.wait(), hosted.working)
        if hosted.working.done():
            return  # its store cannot be used: leaving says why
        hurrying = loop.create_task(again.wait())
        hurrying.add_done_callback(lambda task: None if task.cancelled() else hosted.agent.hurry())
        _say("draining; at a second signal it does not wait")


def _hear_signals(stop: asyncio.Event, again: asyncio.Event) -> None:
    """Have the first signal set `stop`, and the second `again`: also when it drains already, for another reason."""
    heard = 0

    def hear() -> None:
        nonlocal heard
        heard += 1
        (stop if heard == 1 else again).set()

    when_asked_to_stop(hear, stop.set)  # a terminal that is closed may send SIGHUP twice: that is no hurry


def _say(text: str) -> None:
    typer.echo(f"watchbill: {text}", err=True)
