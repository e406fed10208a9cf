"""What becomes of the slots that are due: by catch-up, by overlap, and never two times."""

import pytest

from watchbill.clock import SECOND, Micros
from watchbill.model.recurrence import Catchup, Overlap, ScheduleSpec
from watchbill.model.schedule import MOST_SLOTS, ScheduleRow
from watchbill.scheduler.calendar import ON_TIME, Decided, decide

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
NOON: Micros = 1_800_014_400 * SECOND  # a whole hour


def a_schedule(
    *,
    every: Micros = HOUR,
    overlap: Overlap = Overlap.SKIP,
    catchup: Catchup = Catchup.LAST,
    last_slot: Micros = NOON,
    waiting: tuple[Micros, ...] = (),
    live: bool = False,
) -> ScheduleRow:
    return ScheduleRow(
        namespace="default",
        name="report",
        workflow="report",
        shard=1,
        version=1,
        spec=ScheduleSpec(every=every, overlap=overlap, catchup=catchup),
        input=b"[]",
        rev=1,
        last_slot=last_slot,
        wake_at=NOON,
        waiting=waiting,
        paused_by=None,
        paused_why=None,
        paused_at=None,
        live=live,
        known=True,
        created=False,
    )


def hours(slots: tuple[Micros, ...]) -> list[int]:
    return [(slot - NOON) // HOUR for slot in slots]


def at(*hours_past_noon: int) -> tuple[Micros, ...]:
    return tuple(NOON + hour * HOUR for hour in hours_past_noon)


def test_before_its_slot_nothing_starts_and_the_slot_is_when_to_look_next():
    assert decide(a_schedule(), NOON + HOUR - 1) == Decided((), 0, NOON, NOON + HOUR, ())


def test_a_slot_starts_at_its_time_and_is_not_looked_at_again():
    decided = decide(a_schedule(), NOON + HOUR)
    assert decided == Decided(at(1), 0, NOON + HOUR, NOON + 2 * HOUR, ())
    again = decide(a_schedule(last_slot=decided.last_slot), NOON + HOUR + 1)
    assert (again.starts, again.last_slot) == ((), NOON + HOUR)


@pytest.mark.parametrize(
    ("catchup", "starts", "skipped"),
    [(Catchup.NONE, [], 3), (Catchup.LAST, [3], 2), (Catchup.ALL, [1, 2, 3], 0)],
)
def test_catch_up_says_which_missed_slots_are_made_up_for(catchup, starts, skipped):
    decided = decide(a_schedule(catchup=catchup, overlap=Overlap.ALLOW), NOON + 3 * HOUR + ON_TIME + 1)
    assert (hours(decided.starts), decided.skipped, decided.last_slot) == (starts, skipped, NOON + 3 * HOUR)


@pytest.mark.parametrize(("catchup", "starts"), [(Catchup.NONE, [3]), (Catchup.LAST, [3]), (Catchup.ALL, [1, 2, 3])])
def test_what_a_takeover_finds_late_is_on_time(catchup, starts):
    decided = decide(a_schedule(catchup=catchup, overlap=Overlap.ALLOW), NOON + 3 * HOUR + ON_TIME)
    assert hours(decided.starts) == starts


def test_a_short_delay_loses_no_slot():
    schedule = a_schedule(every=SECOND, catchup=Catchup.NONE, overlap=Overlap.ALLOW)
    assert len(decide(schedule, NOON + 5 * SECOND).starts) == 5


def test_with_skip_a_slot_that_finds_a_live_run_is_skipped_for_good():
    decided = decide(a_schedule(live=True), NOON + HOUR)
    assert decided == Decided((), 1, NOON + HOUR, NOON + 2 * HOUR, ())


def test_with_skip_only_the_newest_of_several_on_time_starts():
    decided = decide(a_schedule(every=SECOND), NOON + 5 * SECOND)
    assert (decided.starts, decided.skipped) == ((NOON + 5 * SECOND,), 4)


def test_with_skip_what_catch_up_chose_runs_one_after_another_and_what_comes_meanwhile_is_skipped():
    found = decide(a_schedule(catchup=Catchup.ALL), NOON + 3 * HOUR + HOUR // 2)
    assert (hours(found.starts), hours(found.waiting)) == ([1], [2, 3])
    busy = decide(
        a_schedule(catchup=Catchup.ALL, last_slot=found.last_slot, waiting=found.waiting, live=True), NOON + 4 * HOUR
    )
    assert (hours(busy.starts), hours(busy.waiting), busy.skipped) == ([], [2, 3], 1)
    free = decide(a_schedule(last_slot=busy.last_slot, waiting=busy.waiting), NOON + 4 * HOUR + 1)
    assert (hours(free.starts), hours(free.waiting)) == ([2], [3])


def test_with_queue_every_slot_waits_for_the_run_before_it():
    first = decide(a_schedule(overlap=Overlap.QUEUE, live=True), NOON + HOUR)
    assert (first.starts, hours(first.waiting), first.skipped) == ((), [1], 0)
    schedule = a_schedule(overlap=Overlap.QUEUE, live=True, last_slot=first.last_slot, waiting=first.waiting)
    second = decide(schedule, NOON + 2 * HOUR)
    assert hours(second.waiting) == [1, 2]
    schedule = a_schedule(overlap=Overlap.QUEUE, last_slot=second.last_slot, waiting=second.waiting)
    ended = decide(schedule, NOON + 2 * HOUR + 1)
    assert (hours(ended.starts), hours(ended.waiting)) == ([1], [2])


def test_with_queue_a_free_schedule_starts_at_once():
    decided = decide(a_schedule(overlap=Overlap.QUEUE), NOON + HOUR)
    assert (hours(decided.starts), decided.waiting) == ([1], ())


def test_with_allow_a_live_run_matters_to_nobody():
    decided = decide(a_schedule(overlap=Overlap.ALLOW, live=True, waiting=at(-5, -4)), NOON + HOUR)
    assert hours(decided.starts) == [-5, -4, 1]


@pytest.mark.parametrize("overlap", list(Overlap))
def test_an_outage_of_years_makes_up_for_the_newest_thousand(overlap):
    schedule = a_schedule(every=MINUTE, overlap=overlap, catchup=Catchup.ALL)
    decided = decide(schedule, NOON + 365 * 24 * HOUR)
    line = [*decided.starts, *decided.waiting]
    assert MOST_SLOTS - 2 <= len(line) <= MOST_SLOTS
    assert line == sorted(line)
    assert decided.last_slot == NOON + 365 * 24 * HOUR


def test_a_clock_that_is_behind_reopens_nothing():
    decided = decide(a_schedule(last_slot=NOON + 10 * HOUR), NOON)
    assert decided == Decided((), 0, NOON + 10 * HOUR, NOON + 11 * HOUR, ())
