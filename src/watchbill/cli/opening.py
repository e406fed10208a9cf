"""Opening: chosen rooms of a program in this process, and its agent in one of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import typer

from watchbill.app.app import App
from watchbill.app.hall import Hall
from watchbill.app.host import Employment
from watchbill.app.pool import Pool
from watchbill.cli.employing import check_store, employer
from watchbill.cli.hosting import employment, host
from watchbill.cli.program import load_app
from watchbill.cli.stopping import stop_signal, until_first
from watchbill.clock import SECOND
from watchbill.env import Employed, SystemEnv
from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.model.fleet import Load, Size
from watchbill.model.watcher import supervision_named
from watchbill.store.address import redacted
from watchbill.supervisor.ping import check_ping

ROOMS: Final = ("scheduler", "agent", "supervisor")


def open_rooms(
    program: str,
    rooms: str,
    store: str | None,
    *,
    supervision: str = "embedded",
    ping: str | None = None,
    **asked: Any,  # noqa: ANN401 - the options
) -> None:
    """Open the rooms that are named."""
    chosen = chosen_rooms(rooms)
    supervision_named(supervision)
    heard_by = check_ping(ping)
    wanted = employment(**asked)  # what is wrong is said here, not by another process
    if store is not None:
        check_store(store, "up")
    if chosen == {"agent"}:
        host(program, store, **asked)
        return
    app = load_app(program)
    url = app.url if store is None else store
    check_store(url, "up")
    hires = employer(program, store, asked) if "agent" in chosen else None
    hall = Hall(
        url,
        app.namespace,
        app.registry,
        app.events,
        retention=app.retention,
        keys=app.keys,
        routes=app.routes,
        ping=heard_by or app.ping,
    )
    app.meet_in(hall)
    asyncio.run(_open(app, hall, chosen, hires, wanted, supervision))


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


async def _open(  # noqa: PLR0913 - what was asked for
    app: App,
    hall: Hall,
    chosen: set[str],
    hires: Callable[[], Awaitable[Employed]] | None,
    wanted: Employment,
    supervision: str,
) -> None:
    stop = stop_signal()
    async with app.rooms(
        scheduler="scheduler" in chosen,
        agent=False,
        supervisor="supervisor" in chosen,
        region=wanted.region or None,
        profile=wanted.profile,
        supervision=supervision,
    ):
        workflows = ", ".join(sorted(app.registry.workflows)) or "none"
        named = ", ".join(room for room in ROOMS if room in chosen)
        typer.echo(f"watchbill: {named} on {redacted(hall.url)}; workflows: {workflows}", err=True)
        if hires is None:
            await until_first(stop.wait(), hall.failed())
            return
        pool = Pool(
            SystemEnv(),
            app.events,
            employ=hires,
            read_load=_nothing_more,
            size=Size(least=1, most=1, slots=1),
            grace=wanted.grace / SECOND,
        )
        await until_first(stop.wait(), hall.failed(), pool.start())
        await pool.stop()  # the rooms go on meanwhile, and take what it hands back


async def _nothing_more() -> Load:
    return Load(0, 0, 0)
