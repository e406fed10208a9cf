"""Gathering: keeps a fleet of agents until somebody says stop."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import typer

from watchbill.app.hall import Hall
from watchbill.app.host import DEFAULT_SLOTS
from watchbill.app.pool import Pool
from watchbill.cli.employing import check_store, employer
from watchbill.cli.hosting import employment
from watchbill.cli.program import load_app
from watchbill.cli.stopping import stop_signal, until_first
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
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
    if store is not None:
        check_store(store, "fleet")
    app = load_app(program)
    url = app.url if store is None else store
    check_store(url, "fleet")
    hires = employer(program, store, asked)
    hall = Hall(url, app.namespace, app.registry, app.events, keys=app.keys)
    size = Size(least, most, wanted.slots or DEFAULT_SLOTS)
    load = partial(_load, hall, parse_needs(wanted.needs), wanted.region)
    pool = partial(Pool, employ=hires, read_load=load, size=size, grace=wanted.grace / SECOND)
    asyncio.run(_keep(pool, hall, f"from {least} to {most} agents on {redacted(url)}"))


_UNSAID: Final[dict[str, Any]] = {
    "profile": "critical",
    "beat": None,
    "name": "",
    "recycle_after": None,
    "recycle_megabytes": None,
}


async def _keep(make: "partial[Pool]", hall: Hall, what: str) -> None:
    stop = stop_signal()
    pool = make(SystemEnv(), Events())
    keeping = pool.start()
    typer.echo(f"watchbill: {what}", err=True)
    try:
        await until_first(stop.wait(), keeping)
        await pool.stop()
    finally:
        await hall.close()


async def _load(hall: Hall, have: Mapping[str, int], region: str) -> Load:
    return load_of(await hall.backlog(), have, region)
