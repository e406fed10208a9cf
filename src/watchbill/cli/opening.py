"""Opening: chosen rooms of a program in this process, and its agent in one of its own."""

import asyncio
import signal
from collections.abc import Sequence
from typing import Any, Final

import typer

from watchbill.app.app import App
from watchbill.app.hall import Hall
from watchbill.app.host import GRACE as AGENT_GRACE
from watchbill.app.pool import Pool
from watchbill.cli.hosting import employment, host
from watchbill.cli.program import load_app
from watchbill.clock import SECOND
from watchbill.env import SystemEnv, employ
from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.model.fleet import Load, Size
from watchbill.store.address import parse_url, redacted

ROOMS: Final = ("scheduler", "agent", "supervisor")


def open_rooms(program: str, rooms: str, store: str | None, **asked: Any) -> None:  # noqa: ANN401 - the options
    """Open the rooms that are named."""
    chosen = chosen_rooms(rooms)
    wanted = employment(**asked)  # what is wrong is said here, not by another process
    if store is not None:
        parse_url(store)
    if chosen == {"agent"}:
        host(program, store, **asked)
        return
    app = load_app(program)
    command: list[str] = []
    if "agent" in chosen:
        command = ["-m", "watchbill", "agent", program, "--store", app.url if store is None else store]
        for word, value in asked.items():
            command += [f"--{word.replace('_', '-')}", str(value)] if value else []
    grace = (wanted.grace if command else AGENT_GRACE) / SECOND
    asyncio.run(_open(app, app.url if store is None else store, chosen, command, grace))


def chosen_rooms(rooms: str) -> set[str]:
    """Read which rooms are wanted."""
    chosen = [word.strip() for word in rooms.split(",") if word.strip()]
    for word in chosen:
        if word not in ROOMS:
            raise InvalidOptionError(
                f"--rooms names scheduler, agent, supervisor; got {word!r}{did_you_mean(word, ROOMS)}"
            )
    if not chosen:
        raise InvalidOptionError("--rooms must name at least one of scheduler, agent, supervisor")
    return set(chosen)


async def _open(app: App, url: str, chosen: set[str], command: Sequence[str], grace: float) -> None:
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    app.meet_in(Hall(url, app.namespace, app.registry, app.events, retention=app.retention, keys=app.keys))
    async with app.rooms(scheduler="scheduler" in chosen, agent=False, supervisor="supervisor" in chosen):
        workflows = ", ".join(sorted(app.registry.workflows)) or "none"
        named = ", ".join(room for room in ROOMS if room in chosen)
        typer.echo(f"watchbill: {named} on {redacted(url)}; workflows: {workflows}", err=True)
        pool = Pool(
            SystemEnv(),
            app.events,
            employ=lambda: employ(*command),
            read_load=_nothing_more,
            size=Size(least=1, most=1, slots=1),
            grace=grace,
        )
        if command:
            pool.start()
        await stop.wait()
        await pool.stop()  # the rooms go on meanwhile, and take what it hands back


async def _nothing_more() -> Load:
    return Load(0, 0, 0)
