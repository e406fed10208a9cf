"""Serve: all rooms of one program, until somebody says stop; `watchbill dev` starts it."""

import asyncio
import sys
from collections.abc import Sequence

import typer

from watchbill.app.app import App
from watchbill.app.fitness import misfit_of
from watchbill.app.hall import Hall
from watchbill.app.waiting import ENDS
from watchbill.cli.main import complain
from watchbill.cli.program import load_app
from watchbill.cli.stopping import stop_signal, until_first
from watchbill.env import release_closed_outputs, when_employer_is_gone
from watchbill.errors import WatchbillError
from watchbill.events import Event
from watchbill.flow.guard import GUARD
from watchbill.store.address import redacted


class Rechecks:
    """Replays every run that has ended, and says where it did something else."""

    def __init__(self, app: App, hall: Hall) -> None:
        self._app = app
        self._hall = hall
        self._under_way: set[asyncio.Task[None]] = set()

    def notice(self, events: Sequence[Event]) -> None:
        """Take note of what has ended."""
        for event in events:
            if event.kind in ENDS and event.run:
                task = asyncio.get_running_loop().create_task(self._replay(event.run))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)

    async def _replay(self, id: str) -> None:
        record = await self._hall.record(id)
        if not record.run.status.terminal:
            return
        misfit = misfit_of(self._app.registry, record)
        if misfit is not None:
            typer.echo(
                f"watchbill: run {id!r} does something else when it is replayed, as after a crash:\n"
                f"  recorded: {misfit.recorded}\n  asked:    {misfit.asked}",
                err=True,
            )


async def serve(app: App, url: str, lifeline: int) -> None:
    """Open the rooms until SIGTERM or Ctrl-C, or until the process that keeps the lifeline open has ended."""
    stop = stop_signal()

    def leave() -> None:
        release_closed_outputs()
        stop.set()

    when_employer_is_gone(leave, lifeline)
    hall = Hall(url, app.namespace, app.registry, app.events, retention=app.retention, keys=app.keys)
    app.meet_in(hall)
    async with app.rooms():
        app.events.subscribe(Rechecks(app, hall).notice)
        workflows = ", ".join(sorted(app.registry.workflows)) or "none"
        typer.echo(f"watchbill: rooms are open on {redacted(url)}; workflows: {workflows}", err=True)
        await until_first(stop.wait(), hall.failed())


def main(lifeline: str, program: str, store: str | None = None) -> None:
    """Serve a program."""
    try:
        app = load_app(program)
        with GUARD.on():
            asyncio.run(serve(app, app.url if store is None else store, int(lifeline)))
    except WatchbillError as error:
        complain(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
