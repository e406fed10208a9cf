"""Reading: what commands ask of a store. They read it beside whoever writes, and change nothing."""

import asyncio
import os
import shlex
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from watchbill.app.report import status_of
from watchbill.app.status import State
from watchbill.env import SystemEnv
from watchbill.errors import InvalidOptionError, RunNotFound, StoreCorruptError, StoreError
from watchbill.model.keys import VARIABLE, given_keys
from watchbill.model.states import RunState
from watchbill.store.address import redacted
from watchbill.store.open import open_reader, parse_url
from watchbill.store.protocol import ClientStore, Record

T = TypeVar("T")

EVERY: Final = (1 << 63) - 1  # as a limit
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


def _opened(stored: Record, opened: Record, *, reveal: bool) -> Record:
    if reveal or stored.run.status is not RunState.COMPLETED or not stored.journal:
        return opened
    return msgspec.structs.replace(opened, journal=(*opened.journal[:-1], stored.journal[-1]))


async def newest(
    doors: ClientStore, namespace: str, state: State | None, workflow: str | None, limit: int
) -> list[Record]:
    """Read the newest runs; those in one state, as their status says it, if one is given."""
    records: dict[int, Record] = {}
    asked = limit
    while True:
        rows = await doors.runs(namespace, statuses=_stored_as(state), workflow=workflow, limit=asked)
        for row in rows:
            if row.num not in records and (record := await doors.record(namespace, row.id)) is not None:
                records[row.num] = record
        found = [records[row.num] for row in rows if row.num in records]
        found = [record for record in found if state is None or status_of(record).state is state]
        if len(found) >= limit or len(rows) < asked:
            return found[:limit]
        asked = min(4 * asked, EVERY)  # some are in another state than their row says: look further back


def _stored_as(state: State | None) -> tuple[RunState, ...]:
    """Give the states of rows that may show as this one: a running run whose calls are all quarantined waits."""
    if state is None:
        return ()
    row = RunState[state.name]
    return (row, RunState.RUNNING) if row is RunState.WAITING else (row,)


async def named(doors: ClientStore, namespace: str, id: str) -> Record:
    """Read the run of that id, or the only one whose id begins so."""
    record = await doors.record(namespace, id)
    if record is None and id:
        fitting = [row.id for row in await doors.runs(namespace, limit=EVERY) if row.id.startswith(id)]
        if len(fitting) > 1:
            raise InvalidOptionError(_ambiguous(id, sorted(fitting)))
        record = await doors.record(namespace, fitting[0]) if fitting else None
    if record is None:
        raise RunNotFound(id, namespace)
    return record


def _ambiguous(id: str, fitting: list[str]) -> str:
    more = f" and {len(fitting) - CANDIDATES} more" if len(fitting) > CANDIDATES else ""
    return f"{len(fitting)} runs begin with {id!r}: {', '.join(fitting[:CANDIDATES])}{more}; give more of the id"
