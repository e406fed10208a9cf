"""The slots of a schedule: multiples of a span, or a wall clock's times, mapped to real time by one rule.

The oracle knows nothing of cron, of folds or of gaps: it walks through real time minute by minute and watches the wall
clock. What the clock reaches or passes for the first time is due then.
"""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from watchbill.clock import EPOCH, SECOND, Micros, micros, to_datetime
from watchbill.model.recurrence import ScheduleSpec
from watchbill.model.schedule import slot_id
from watchbill.model.slots import newest_slots, slots_after

MINUTE = timedelta(minutes=1)
FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)
AROUND = timedelta(hours=4)  # the longest change of these years is three hours

# Thousands of changes are of a few dozen kinds: one of each is tried, or all of all zones (`make soak`).
WHOLE = bool(os.environ.get("WATCHBILL_EVERY_ZONE"))

EXPRESSIONS: dict[str, Callable[[datetime], bool]] = {
    "* * * * *": lambda wall: True,
    "*/15 1-3 * * *": lambda wall: wall.minute % 15 == 0 and 1 <= wall.hour <= 3,
    "0 * * * *": lambda wall: wall.minute == 0,
    "30 2 * * *": lambda wall: (wall.hour, wall.minute) == (2, 30),
    "59 1 * * *": lambda wall: (wall.hour, wall.minute) == (1, 59),
    "0 0 1 * *": lambda wall: (wall.day, wall.hour, wall.minute) == (1, 0, 0),
    "0 0,12 * * *": lambda wall: wall.hour in (0, 12) and wall.minute == 0,
    "45 2 * * 1-5": lambda wall: wall.weekday() < 5 and (wall.hour, wall.minute) == (2, 45),
    "15 3 * 3,10 0": lambda wall: wall.month in (3, 10) and wall.weekday() == 6 and (wall.hour, wall.minute) == (3, 15),
}


class Change(NamedTuple):
    """A change of the clocks: the first minute of the new time."""

    at: datetime
    before: timedelta
    after: timedelta


def offset(zone: ZoneInfo, at: datetime) -> timedelta:
    found = at.astimezone(zone).utcoffset()
    assert found is not None
    return found


def changes(zone: ZoneInfo) -> Iterator[Change]:
    at, week = FIRST, timedelta(days=7)
    before = offset(zone, at)
    while at < LAST:
        after = offset(zone, at + week)
        if after != before:
            low, high = at, at + week
            while high - low > MINUTE:
                middle = low + (high - low) // 2 // MINUTE * MINUTE
                low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
            yield Change(high, before, after)
        at, before = at + week, after


def all_changes() -> Iterator[tuple[str, Change]]:
    for name in sorted(available_timezones()):
        yield from ((name, change) for change in changes(ZoneInfo(name)))


def one_of_each_kind() -> Iterator[tuple[str, Change]]:
    """Give one change for each pair of offsets and time of day."""
    seen = set()
    for name, change in all_changes():
        kind = (change.before, change.after, _wall(ZoneInfo(name), change.at - MINUTE).time())
        if kind not in seen:
            seen.add(kind)
            yield name, change


def watched(zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[tuple[Micros, list[datetime]]]:
    """Walk through real time; give each minute with the wall minutes that the clock reaches or passes there first."""
    latest = max(_wall(zone, begin - MINUTE * back) for back in range(1, 241))
    at = begin
    while at <= end:
        wall = _wall(zone, at)
        yield micros(at - EPOCH), [latest + MINUTE * n for n in range(1, (wall - latest) // MINUTE + 1)]
        latest = max(latest, wall)
        at += MINUTE


def _wall(zone: ZoneInfo, at: datetime) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def check(name: str, change: Change) -> int:
    zone = ZoneInfo(name)
    begin, end = change.at - AROUND, change.at + AROUND
    minutes = list(watched(zone, begin, end))
    first, last = micros(begin - EPOCH) - 1, micros(end - EPOCH)
    inside = [micros(change.at - EPOCH) + n * 60 * SECOND + 7 for n in (-61, -1, 0, 29, 59, 60)]
    count = 0
    for cron, fits in EXPRESSIONS.items():
        spec = ScheduleSpec(cron=cron, tz=name)
        due = [at for at, walls in minutes if any(map(fits, walls))]
        here = (name, cron, change)
        assert list(until(last, slots_after(spec, first))) == due, here
        for at in inside:
            assert newest_slots(spec, after=first, upto=at, limit=10_000) == [slot for slot in due if slot <= at], here
            assert next(slots_after(spec, at)) == next(
                (slot for slot in due if slot > at), next(slots_after(spec, last))
            )
        count += len(due)
    return count


def until(last: Micros, slots: Iterator[Micros]) -> Iterator[Micros]:
    for slot in slots:
        if slot > last:
            return
        yield slot


@pytest.mark.timeout(1_800)
def test_every_change_of_the_clocks_from_2020_to_2035_is_as_the_wall_clock_shows_it():
    chosen = list(all_changes() if WHOLE else one_of_each_kind())
    assert len(chosen) > 50  # there is something to see
    assert sum(check(name, change) for name, change in chosen) > 10_000


@pytest.mark.parametrize("name", ["Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"])
def test_a_quiet_day_is_as_the_wall_clock_shows_it(name):
    assert check(name, Change(datetime(2026, 7, 14, 12, tzinfo=UTC), timedelta(), timedelta()))


def utc_minute_scan(spec: ScheduleSpec, after: Micros) -> Iterator[Micros]:
    """M24: go through the minutes of UTC, and run whenever the wall clock shows what fits."""
    zone = ZoneInfo(spec.tz)
    at = to_datetime(after).replace(second=0, microsecond=0)
    for _ in range(24 * 60):
        at += MINUTE
        if EXPRESSIONS[spec.cron or ""](_wall(zone, at)):
            yield micros(at - EPOCH)


@pytest.mark.parametrize("month", [3, 10])
def test_a_scan_of_utc_minutes_does_not_survive(monkeypatch, month):
    zone = ZoneInfo("Europe/Berlin")
    change = next(change for change in changes(zone) if (change.at.year, change.at.month) == (2026, month))
    check("Europe/Berlin", change)
    monkeypatch.setattr("tests.unit.model.test_slots.slots_after", utc_minute_scan)
    with pytest.raises(AssertionError):
        check("Europe/Berlin", change)


# --- by hand


def slots(spec: ScheduleSpec, begin: str, end: str) -> list[str]:
    after = micros(datetime.fromisoformat(begin) - EPOCH)
    upto = micros(datetime.fromisoformat(end) - EPOCH)
    return [f"{to_datetime(slot):%m-%dT%H:%M}" for slot in newest_slots(spec, after=after, upto=upto, limit=1_000)]


def test_a_time_that_is_left_out_runs_at_the_next_minute_that_exists():
    daily = ScheduleSpec(cron="30 2 * * *", tz="Europe/Berlin")
    assert slots(daily, "2026-03-27T12:00Z", "2026-03-30T12:00Z") == [
        "03-28T01:30",
        "03-29T01:00",
        "03-30T00:30",
    ]


def test_a_time_that_comes_twice_runs_the_first_time():
    daily = ScheduleSpec(cron="30 2 * * *", tz="Europe/Berlin")
    assert slots(daily, "2026-10-23T12:00Z", "2026-10-26T12:00Z") == [
        "10-24T00:30",
        "10-25T00:30",
        "10-26T01:30",
    ]


def test_what_is_left_out_together_runs_once():
    quarters = ScheduleSpec(cron="*/15 2 * * *", tz="Europe/Berlin")
    assert slots(quarters, "2026-03-29T00:00Z", "2026-03-29T12:00Z") == ["03-29T01:00"]


def test_a_day_that_a_country_left_out_runs_when_it_is_over():
    noon = ScheduleSpec(cron="0 12 * * *", tz="Pacific/Apia")  # it moved across the date line: no 30 December 2011
    assert slots(noon, "2011-12-29T00:00Z", "2011-12-31T12:00Z") == ["12-29T22:00", "12-30T10:00", "12-30T22:00"]


def test_leap_days_and_last_days():
    assert slots(ScheduleSpec(cron="0 0 29 2 *"), "2026-01-01T00:00Z", "2033-01-01T00:00Z") == ["02-29T00:00"] * 2
    assert slots(ScheduleSpec(cron="0 0 L * *"), "2026-01-01T00:00Z", "2026-03-01T00:00Z") == [
        "01-31T00:00",
        "02-28T00:00",
    ]


def test_every_counts_from_1970_and_knows_no_zones():
    spec = ScheduleSpec(every=90 * SECOND)
    assert [next(slots_after(spec, at)) for at in (0, 1, 90 * SECOND - 1, 90 * SECOND)] == [
        90 * SECOND, 90 * SECOND, 90 * SECOND, 180 * SECOND,
    ]  # fmt: skip
    assert newest_slots(spec, after=90 * SECOND, upto=360 * SECOND, limit=2) == [270 * SECOND, 360 * SECOND]


@pytest.mark.parametrize("spec", [ScheduleSpec(cron="* * * * *"), ScheduleSpec(every=60 * SECOND)])
def test_the_newest_of_many_years_are_found_without_walking_through_them(spec):
    upto = micros(datetime(2026, 1, 1, tzinfo=UTC) - EPOCH)
    found = newest_slots(spec, after=0, upto=upto, limit=3)
    assert found == [upto - 120 * SECOND, upto - 60 * SECOND, upto]


def test_a_slot_names_its_run_in_utc():
    at = micros(datetime(2026, 3, 1, 2, 30, tzinfo=UTC) - EPOCH)
    assert slot_id("report", at) == "report@2026-03-01T02:30:00Z"
    assert slot_id("report", at + SECOND // 2) == "report@2026-03-01T02:30:00.500000Z"
