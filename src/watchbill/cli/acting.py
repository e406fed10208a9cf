"""Acting: what commands ask of runs. They go through the hall, as a program would: also beside a living owner."""

import asyncio
import getpass
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import typer

from watchbill.app.hall import Hall
from watchbill.app.handle import Handle
from watchbill.app.search import Search
from watchbill.cli.escape import visible
from watchbill.cli.fields import Acted
from watchbill.cli.place import Where
from watchbill.cli.program import load_app
from watchbill.cli.reading import damage_told, named, newest, read
from watchbill.clock import Micros
from watchbill.errors import InvalidOptionError, StoreError, WatchbillError
from watchbill.events import Events
from watchbill.flow.registry import Registry
from watchbill.model.counted import counted
from watchbill.model.keys import given_keys
from watchbill.store.open import is_memory
from watchbill.store.protocol import EVERY, ClientStore, Record

T = TypeVar("T")


class Action(NamedTuple):
    """Something that is asked of runs, one by one or of many."""

    name: str
    do: Callable[[Hall, Handle[Any]], Awaitable[Handle[Any] | None]]
    fits: Callable[[Record], bool]  # of many, those that it is for


class Choice(NamedTuple):
    """Which runs are meant: those with these ids, or those that fit a search."""

    ids: Sequence[str]
    search: Search
    older_than: Micros | None

    def check(self) -> None:
        """Refuse what is neither, and what is both."""
        by_search = self.search != Search() or self.older_than is not None
        if self.ids and by_search:
            raise InvalidOptionError("give ids, or choose by --status, --workflow, --tag and --older-than: not both")
        if not self.ids and not by_search:
            raise InvalidOptionError("give an id, or choose many by --status, --workflow, --tag or --older-than")


class How(NamedTuple):
    """How careful to be."""

    dry_run: bool
    yes: bool


def at_the_hall(where: Where, work: Callable[[Hall], Awaitable[T]], registry: Registry | None = None) -> T:
    """Open the hall of a store, do something there, and close it."""
    if is_memory(where.url):
        raise StoreError(f"store {where.url!r} lives and ends inside its own process: name a file or a server")

    known = registry or (load_app(where.program).registry if where.program else Registry())

    async def working() -> T:
        hall = Hall(where.url, where.namespace, known, Events(), keys=given_keys())
        try:
            return await work(hall)
        finally:
            await hall.close()

    with damage_told(where.url):
        return asyncio.run(working())


def act(where: Where, action: Action, choice: Choice, how: How) -> list[Acted]:
    """Do something with the runs that are meant; gives what became of each."""
    choice.check()
    with damage_told(where.url):
        ids = read(where.url, lambda doors: _chosen(doors, where.namespace, action, choice))
    if how.dry_run:
        return [Acted(id, action.name, "would be done") for id in ids]
    if not choice.ids and ids and not how.yes:
        _confirm(action.name, len(ids))
    return at_the_hall(where, lambda hall: _act_on_all(hall, action, ids)) if ids else []


async def _chosen(doors: ClientStore, namespace: str, action: Action, choice: Choice) -> list[str]:
    if choice.ids:
        return [(await named(doors, namespace, id)).run.id for id in choice.ids]
    found = newest(doors, namespace, choice.search, EVERY, older_than=choice.older_than)
    return [record.run.id async for record in found if action.fits(record)]


def _confirm(action: str, count: int) -> None:
    """Ask a person; where there is none, refuse."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidOptionError(
            f"{action} {counted(count, 'run')}? Nobody can be asked here: add --yes, or look with --dry-run"
        )
    if not typer.confirm(f"{action} {counted(count, 'run')}?", err=True):
        raise typer.Exit(1)


async def _act_on_all(hall: Hall, action: Action, ids: Sequence[str]) -> list[Acted]:
    if len(ids) == 1:
        return [await _act_on(hall, action, ids[0])]
    acted = []
    for id in ids:
        try:
            acted.append(await _act_on(hall, action, id))
        except StoreError:
            raise
        except WatchbillError as error:  # the others are not to suffer for it
            acted.append(Acted(id, action.name, "refused", error=str(error)))
    return acted


async def _act_on(hall: Hall, action: Action, id: str) -> Acted:
    became = await action.do(hall, handle_on(hall, id))
    return Acted(id, action.name, "done", run=None if became is None or became.id == id else became.id)


def handle_on(hall: Hall, id: str) -> Handle[Any]:
    """Give a handle that says who gives the command."""
    handle: Handle[Any] = Handle(hall, id, None)
    handle.by = user()
    return handle


def warn(message: str) -> None:
    """Say what may be wrong with what was done all the same."""
    typer.echo(f"watchbill: {visible(message)}", err=True)


def user() -> str:
    """Name who gives the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without users
        return "command line"
