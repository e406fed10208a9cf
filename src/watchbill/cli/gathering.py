"""Gathering: keeps a fleet of agents until somebody says stop."""

import asyncio
import signal
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import typer

from watchbill.app.hall import Hall
from watchbill.app.host import DEFAULT_SLOTS
from watchbill.app.pool import Pool
from watchbill.cli.hosting import employment
from watchbill.cli.program import load_app
from watchbill.clock import SECOND
from watchbill.env import SystemEnv, employ
from watchbill.errors import InvalidOptionError
from watchbill.events import Events
from watchbill.model.fleet import Load, Size, load_of
from watchbill.model.needs import parse_needs
from watchbill.store.address import redacted


def keep_fleet(program: str, least: int, most: int, store: str | None, **asked: Any) -> None:  # noqa: ANN401 - the options
    """Keep agents running."""
    if not 0 <= least <= most or most < 1:
        raise InvalidOptionError(f"--min must be from 0 to --max, and --max above zero; got {least} and {most}")
    wanted = employment(**_UNSAID, **asked)
    app = load_app(program)
    url = app.url if store is None else store
    command = ["-m", "watchbill", "agent", program, "--store", url]
    for word, value in asked.items():
        command += [f"--{word}", str(value)] if value else []
    hall = Hall(url, app.namespace, app.registry, app.events, keys=app.keys)
    size = Size(least, most, wanted.slots or DEFAULT_SLOTS)
    load = partial(_load, hall, parse_needs(wanted.needs), wanted.region)
    pool = partial(Pool, employ=lambda: employ(*command), read_load=load, size=size, grace=wanted.grace / SECOND)
    asyncio.run(_keep(pool, hall, f"from {least} to {most} agents on {redacted(url)}"))


_UNSAID: Final[dict[str, Any]] = {
    "profile": "critical",
    "beat": None,
    "name": "",
    "recycle_after": None,
    "recycle_megabytes": None,
}


async def _keep(make: "partial[Pool]", hall: Hall, what: str) -> None:
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    pool = make(SystemEnv(), Events())
    pool.start()
    typer.echo(f"watchbill: {what}", err=True)
    await stop.wait()
    await pool.stop()
    await hall.close()


async def _load(hall: Hall, have: Mapping[str, int], region: str) -> Load:
    return load_of(await hall.backlog(), have, region)
