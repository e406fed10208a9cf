"""Ordering: what commands want of schedules. They open the store to write, for one door at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar

from watchbill.app.hall import Hall
from watchbill.app.schedules import Schedules
from watchbill.app.status import ScheduleStatus
from watchbill.cli.reading import check_there, damage_told
from watchbill.errors import InvalidOptionError
from watchbill.events import Events
from watchbill.flow.registry import Registry

T = TypeVar("T")


def order(store: str, namespace: str, work: Callable[[Schedules], Awaitable[T]]) -> T:
    """Ask something of the schedules of a store."""

    async def asking() -> T:
        hall = Hall(store, namespace, Registry(), Events())
        try:
            return await work(Schedules(hall))
        finally:
            await hall.close()

    check_there(store)
    with damage_told(store):
        return asyncio.run(asking())


def ordered(
    store: str, namespace: str, name: str, work: Callable[[Schedules], Awaitable[None]]
) -> Sequence[ScheduleStatus]:
    """Ask something of one schedule; gives it as it is then."""

    async def asking(schedules: Schedules) -> Sequence[ScheduleStatus]:
        await work(schedules)
        return [found for found in await schedules.list() if found.name == name]

    return order(store, namespace, asking)


def to_time(text: str, what: str) -> datetime:
    """Read a time as people write it."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOptionError(f"{what} must be a time, like 2026-03-01 or 2026-03-01T00:00Z, got {text!r}") from None
