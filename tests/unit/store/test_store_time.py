"""The time of a store in a file, on clocks that are wrong, are set, and jump."""

import logging

import pytest

from watchbill.clock import SECOND, Micros
from watchbill.store.sqlite.time import CONFIRMED, FAR, OLDEST, UNWATCHED, StoreTime, is_far_ahead
from watchbill.testing.conformance.scene import NOON, HandClock

DAY: Micros = 86_400 * SECOND
LOOK: Micros = SECOND // 2


def pass_by(clock: HandClock, time: StoreTime, span: Micros) -> list[Micros]:
    """Let time pass, with a look at the wall clock twice a second; gives what the store's time was."""
    seen = []
    for _ in range(span // LOOK):
        clock.pass_by(LOOK)
        time.correct()
        seen.append(time())
    assert seen == sorted(seen), "it went back"
    return seen


def test_time_follows_clocks_that_agree():
    clock = HandClock()
    time = StoreTime(clock, 0)
    assert pass_by(clock, time, 10 * SECOND)[-1] == clock.wall()


def test_store_ahead_of_the_wall_clock_runs_at_half_speed_until_it_has_caught_up():
    clock = HandClock()
    time = StoreTime(clock, NOON + 10 * SECOND)
    assert time() == NOON + 10 * SECOND
    assert pass_by(clock, time, 10 * SECOND)[-1] == NOON + 15 * SECOND
    assert pass_by(clock, time, 10 * SECOND)[-1] == clock.wall()
    assert pass_by(clock, time, 10 * SECOND)[-1] == clock.wall()


def test_wall_clock_that_is_ahead_for_a_moment_moves_nothing():
    clock = HandClock()
    time = StoreTime(clock, 0)
    clock.wall_now += 400 * DAY
    pass_by(clock, time, CONFIRMED - SECOND)
    clock.wall_now -= 400 * DAY
    assert pass_by(clock, time, 3 * CONFIRMED)[-1] == clock.wall()


def test_wall_clock_that_jumps_again_and_again_is_not_believed():
    clock = HandClock()
    time = StoreTime(clock, 0)
    for _ in range(10):
        clock.wall_now += DAY
        pass_by(clock, time, CONFIRMED // 2)
    assert time() == NOON + 5 * CONFIRMED


def test_wall_clock_is_not_believed_for_time_in_which_nobody_looked():
    clock = HandClock()
    time = StoreTime(clock, 0)
    clock.wall_now += 400 * DAY
    pass_by(clock, time, SECOND)
    clock.pass_by(2 * CONFIRMED)  # the process was stopped, or the machine slept, NTP client and all
    pass_by(clock, time, CONFIRMED - SECOND)
    clock.wall_now -= 400 * DAY
    assert pass_by(clock, time, 3 * CONFIRMED)[-1] == clock.wall()


def test_wall_clock_that_stays_is_followed_in_spite_of_late_looks():
    clock = HandClock()
    time = StoreTime(clock, 0)
    clock.wall_now += DAY
    for _ in range(CONFIRMED // UNWATCHED + 1):
        time.correct()
        clock.pass_by(UNWATCHED)
    time.correct()
    assert time() == clock.wall()


def test_clock_that_is_set_after_the_start_is_followed_soon(caplog: pytest.LogCaptureFixture):
    clock = HandClock(wall=0)  # a machine without a battery
    time = StoreTime(clock, NOON)
    assert time() == NOON
    assert pass_by(clock, time, 5 * SECOND)[-1] == NOON + 5 * SECOND
    clock.wall_now = NOON + 3 * DAY
    pass_by(clock, time, CONFIRMED)
    assert pass_by(clock, time, SECOND)[-1] == clock.wall()
    assert "goes on by" in caplog.text


def test_wall_clock_that_is_set_back_a_little_slows_the_store_down():
    clock = HandClock()
    time = StoreTime(clock, 0)
    pass_by(clock, time, SECOND)
    clock.wall_now -= 30 * SECOND
    assert pass_by(clock, time, 20 * SECOND)[-1] - clock.wall() in range(19 * SECOND, 21 * SECOND)
    assert pass_by(clock, time, 60 * SECOND)[-1] == pytest.approx(clock.wall(), abs=SECOND)


def test_wall_clock_that_is_set_far_back_is_not_followed_and_that_is_said(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR)
    clock = HandClock()
    time = StoreTime(clock, 0)
    clock.wall_now -= 2 * FAR
    assert pass_by(clock, time, 60 * SECOND)[-1] == NOON + 60 * SECOND
    assert caplog.text.count("watchbill clock --set-back") == 1


@pytest.mark.parametrize(
    ("newest", "wall", "far"),
    [
        (NOON, NOON, False),
        (NOON, NOON + 400 * DAY, False),
        (NOON + FAR, NOON, False),
        (NOON + FAR + 1, NOON, True),
        (NOON + 400 * DAY, NOON, True),
        (NOON, OLDEST - 1, False),
    ],
)
def test_only_a_store_that_is_far_ahead_of_a_clock_that_was_set_is_refused(newest, wall, far):
    assert is_far_ahead(newest, wall) is far
