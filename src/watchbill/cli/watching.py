"""Watching: a run until it ends: drawn again and again on a terminal, line by line elsewhere."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from watchbill.app.status import TimelineEvent
from watchbill.app.timeline import timeline_of
from watchbill.app.words import moment, told_of
from watchbill.cli.escape import visible
from watchbill.cli.options import Format
from watchbill.cli.output import print_line, print_run, print_text
from watchbill.cli.place import Where
from watchbill.cli.reading import named, read
from watchbill.cli.times import date_of_today, without_date
from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.model.duration import to_micros
from watchbill.model.states import RunState
from watchbill.store.protocol import ClientStore, Record

EVERY: Final[Micros] = SECOND // 4  # looked at so often: people see no difference to more
COMPLETED: Final = 0
FAILED: Final = 1
TIMED_OUT: Final = 4


def watch(where: Where, id: str, timeout: str | None, format: Format) -> int:
    """Watch a run; gives the exit code."""
    lasting = None if timeout is None else to_micros(timeout, what="--timeout")
    live = format is Format.TABLE and sys.stdout.isatty()

    async def watching(doors: ClientStore) -> Record:
        with _screen(live) as draw:
            told: set[TimelineEvent] = set()
            async for record in _looks(doors, where.namespace, id, lasting):
                if live:
                    draw(record)
                elif format is not Format.JSON:
                    for event in untold(record, told):
                        _tell(event, format)
        return record

    record = read(where.url, watching)
    if live or format is Format.JSON:
        print_run(record, format)
    if not record.run.status.terminal:
        print(f"watchbill: run {record.run.id!r} has not ended after {timeout}", file=sys.stderr)  # noqa: T201
        return TIMED_OUT
    return COMPLETED if record.run.status is RunState.COMPLETED else FAILED


def untold(record: Record, told: set[TimelineEvent]) -> list[TimelineEvent]:
    """Give what has happened and was not told yet; what becomes of a decision is told by what comes, and not again."""
    happened = [msgspec.structs.replace(event, outcome="") for event in timeline_of(record)]
    new = [event for event in happened if event not in told]
    told.update(new)
    return new


async def _looks(doors: ClientStore, namespace: str, id: str, lasting: Micros | None) -> AsyncIterator[Record]:
    """Look at a run again and again until it has ended, or the time is over."""
    env, never = SystemEnv(), asyncio.Event()
    until = None if lasting is None else env.clock.boot() + lasting
    while True:
        record = await named(doors, namespace, id)
        yield record
        boot = env.clock.boot()
        if record.run.status.terminal or (until is not None and boot >= until):
            return
        id = record.run.id
        await env.wait(never, EVERY if until is None else min(EVERY, until - boot))


def _tell(event: TimelineEvent, format: Format) -> None:
    if format is Format.JSONL:
        print_line(event)
        return
    words = [event.kind.replace("_", " "), event.step, f"#{event.attempt}" if event.attempt else ""]
    about = told_of(event.cause, event.note, event.rejected, "")
    at = without_date(moment(event.at), date_of_today())
    print_text(visible(f"{at}  {' '.join(word for word in words if word)}  {about}".rstrip()))


@contextmanager
def _screen(live: bool) -> Iterator[Any]:
    """Give the function that draws a run over what it drew before."""
    if not live:
        yield None
        return
    from rich.console import Console, Group
    from rich.live import Live

    from watchbill.cli.tables import live_page

    console = Console(no_color=bool(os.environ.get("NO_COLOR")), markup=False, highlight=False, emoji=False)
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        yield lambda record: screen.update(Group(*live_page(record)), refresh=True)
