"""Slots: the instants of a schedule.

`every` counts from 1970-01-01T00:00Z: its slots are the multiples of the span, so that every process agrees on them.

`cron` is written in the wall time of a zone, and one rule maps it to real time: **a slot runs when the wall clock first
reaches it.** So a time that a change of the clock leaves out runs at the next minute that exists, together with what
else is due then; and one that comes twice runs the first time only. It holds for every expression alike: one that names
each hour, too, rests while an hour is repeated; `every`, or tz="UTC", does not.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import islice

from watchbill.clock import EPOCH, Micros, micros, to_datetime
from watchbill.model.recurrence import ScheduleSpec

_MINUTE = timedelta(minutes=1)


def slots_after(spec: ScheduleSpec, after: Micros) -> Iterator[Micros]:
    """Give the slots later than `after`, in order."""
    if spec.every is not None:
        yield from _multiples(spec.every, after // spec.every + 1)
        return
    zone = zone_of(spec.tz)
    last = after
    for wall in _walls(spec, to_datetime(after).astimezone(zone)):
        slot = reached(wall, zone)
        if slot > last:  # several that are left out meet in one, and what comes twice has been
            last = slot
            yield slot


def newest_slots(spec: ScheduleSpec, *, after: Micros, upto: Micros, limit: int) -> list[Micros]:
    """Give the slots later than `after` and no later than `upto`, in order; if there are more, the newest."""
    return list(islice(_backwards(spec, after, upto), limit))[::-1]


@cache
def zone_of(name: str) -> tzinfo:
    """Find a time zone; UTC needs no data of the machine."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # only for those who use one

    return ZoneInfo(name)


def _backwards(spec: ScheduleSpec, after: Micros, upto: Micros) -> Iterator[Micros]:
    if spec.every is not None:
        for count in range(upto // spec.every, after // spec.every, -1):
            yield count * spec.every
        return
    zone = zone_of(spec.tz)
    now = to_datetime(upto).astimezone(zone)
    # While wall time is repeated, what lies ahead of it has been reached before.
    ahead = (now.replace(fold=0).utcoffset() or timedelta()) - (now.utcoffset() or timedelta())
    last: Micros | float = math.inf
    for wall in _walls(spec, now.replace(microsecond=0) + ahead + timedelta(seconds=1), reverse=True):
        slot = reached(wall, zone)
        if slot <= after:
            return
        if slot <= upto and slot < last:
            last = slot
            yield slot


def _multiples(span: Micros, first: int) -> Iterator[Micros]:
    while True:
        yield first * span
        first += 1


def _walls(spec: ScheduleSpec, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    """Give the times that the expression names, as a wall clock without any changes would show them."""
    from cronsim import CronSim  # only for those who use it

    # Without a zone: with one it would follow the habits of cron, which differ from one expression to the next.
    return CronSim(spec.cron or "", start.replace(tzinfo=None, fold=0), reverse=reverse)


def reached(wall: datetime, zone: tzinfo) -> Micros:
    """Give the instant at which the wall clock of a zone first shows this minute, or a later one."""
    there = wall.replace(tzinfo=zone, fold=0)
    while (instant := there.astimezone(UTC)).astimezone(zone).replace(tzinfo=None) != there.replace(tzinfo=None):
        there += _MINUTE
    return micros(instant - EPOCH)
