"""Reading: what commands ask of a store. They read it beside whoever writes, and change nothing."""

import asyncio
import os
import shlex
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from watchbill.app.report import log_shown
from watchbill.app.search import Place, Search, place_of
from watchbill.app.status import AttemptLog
from watchbill.clock import Micros
from watchbill.env import SystemEnv
from watchbill.errors import InvalidOptionError, RunNotFound, StoreCorruptError, StoreError
from watchbill.model.incident import Incident, IncidentRow, incident_of
from watchbill.model.keys import VARIABLE, given_keys
from watchbill.model.question import Asked, InboxItem, inbox_item
from watchbill.model.states import RunState
from watchbill.store.address import redacted
from watchbill.store.open import open_reader, parse_url
from watchbill.store.protocol import ClientStore, Record

T = TypeVar("T")

PAGE: Final = 100  # runs that are read at a time
CANDIDATES: Final = 10  # are named when many ids begin alike


@contextmanager
def damage_told(url: str) -> Iterator[None]:
    """Say in the house's words that a file holds what nobody wrote: bytes may change where SQLite does not look."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreCorruptError(redacted(url), str(error)) from error
    except sqlite3.Error as error:
        raise StoreError(f"store {url!r} cannot be read: {error}") from error


def read(url: str, ask: Callable[[ClientStore], Awaitable[T]]) -> T:
    """Open a store, ask it something, and close it."""
    check_there(url)

    async def asking() -> T:
        doors = open_reader(url, SystemEnv())
        try:
            return await ask(doors)
        finally:
            await doors.close()

    return asyncio.run(asking())


def check_there(url: str) -> None:
    """Refuse an address without a file. None is made here: a mistyped one must not leave an empty store behind."""
    path = parse_url(url).path
    if path is not None and os.path.isdir(path.parent) and not os.path.lexists(path):
        raise StoreError(
            f"store {url!r} is not there: no file {str(path.absolute())!r};"
            f" run a program that uses it, or make an empty one: watchbill migrate --store {shlex.quote(url)}"
        )


def opened(records: Sequence[Record], *, reveal: bool = False) -> list[Record]:
    """Open what is sealed, with the keys of the environment; results only to `reveal` them.

    Errors, decisions and progress were redacted when they were written. Which parts of a result are Secrets only the
    program's annotations tell, which no command reads.
    """
    keys = given_keys()
    if keys is None:
        if reveal:
            raise InvalidOptionError(f"--reveal needs the keys: give them by ${VARIABLE}")
        return list(records)
    from watchbill.store.sealed import Seal  # and cryptography, which nobody else waits for

    seal = Seal(keys)
    return [_opened(record, seal.record(record), reveal=reveal) for record in records]


def opened_questions(asked: Sequence[Asked]) -> list[InboxItem]:
    """Open questions, with the keys of the environment."""
    keys = given_keys()
    if keys is not None:
        from watchbill.store.sealed import Seal  # and cryptography, which nobody else waits for

        asked = [Seal(keys).asked(one) for one in asked]
    return [inbox_item(one) for one in asked]


def opened_incidents(rows: Sequence[IncidentRow]) -> list[Incident]:
    """Open what incidents say, with the keys of the environment."""
    keys = given_keys()
    if keys is not None:
        from watchbill.store.sealed import Seal  # and cryptography, which nobody else waits for

        rows = [Seal(keys).incident(row) for row in rows]
    return [incident_of(row) for row in rows]


def with_keys(doors: ClientStore) -> ClientStore:
    """Give doors that open what is sealed, with the keys of the environment, if there are any."""
    keys = given_keys()
    if keys is None:
        return doors
    from watchbill.store.sealed import Seal  # and cryptography, which nobody else waits for

    return Seal(keys).client(doors)


def _opened(stored: Record, opened: Record, *, reveal: bool) -> Record:
    if reveal or stored.run.status is not RunState.COMPLETED or not stored.journal:
        return opened
    return msgspec.structs.replace(opened, journal=(*opened.journal[:-1], stored.journal[-1]))


async def newest(
    doors: ClientStore, namespace: str, search: Search, limit: int, *, older_than: Micros | None = None
) -> AsyncIterator[Record]:
    """Read the newest runs of those that are meant, page by page."""
    before = None if older_than is None else await _place_so_long_ago(doors, namespace, older_than)
    left = limit
    while True:
        rows = await search.page(doors, namespace, before, min(limit, PAGE))
        for row in rows:
            record = await doors.record(namespace, row.id)
            if record is not None and search.fits(record):
                yield record
                left -= 1
                if left == 0:
                    return
        if len(rows) < min(limit, PAGE):
            return
        before = place_of(rows[-1])


async def newest_runs(doors: ClientStore, namespace: str, search: Search, limit: int) -> list[Record]:
    """Read the newest runs of those that are meant."""
    return [record async for record in newest(doors, namespace, search, limit)]


async def _place_so_long_ago(doors: ClientStore, namespace: str, span: Micros) -> Place:
    """Give the place in the list of what was made so long ago, by the store's own time."""
    return (await doors.checkup(namespace, 0)).now - span + 1, 0


async def read_logs(doors: ClientStore, namespace: str, id: str) -> list[AttemptLog]:
    """Read what the attempts of a run have logged, opened with the keys of the environment."""
    run = (await named(doors, namespace, id)).run
    return [log_shown(log) for log in await with_keys(doors).logs(namespace, run.id)]


async def named(doors: ClientStore, namespace: str, id: str, *, earlier: bool = False) -> Record:
    """Read the run of that id, or the only one whose id begins so; `earlier`: with the parts before its last one."""
    record = await doors.record(namespace, id, earlier=earlier)
    if record is None and id:
        fitting = await doors.beginning(namespace, id, CANDIDATES + 1)
        if len(fitting) > 1:
            raise InvalidOptionError(_ambiguous(id, sorted(fitting)))
        record = await doors.record(namespace, fitting[0], earlier=earlier) if fitting else None
    if record is None:
        raise RunNotFound(id, namespace)
    return record


def _ambiguous(id: str, fitting: list[str]) -> str:
    many = len(fitting) > CANDIDATES
    number, more = (f"more than {CANDIDATES}", " and more") if many else (f"{len(fitting)}", "")
    return f"{number} runs begin with {id!r}: {', '.join(fitting[:CANDIDATES])}{more}; give more of the id"
