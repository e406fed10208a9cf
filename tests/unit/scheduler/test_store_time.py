"""The store's time as a scheduler knows it."""

from watchbill.clock import SECOND, Micros
from watchbill.scheduler.store_time import StoreTime
from watchbill.testing.conformance.scene import HandClock


def test_time_stands_still_and_waits_are_as_long_as_the_store_needs_when_its_answer_is_a_little_behind():
    clock = HandClock(boot=100 * SECOND)
    time = StoreTime(clock)
    time.saw(1_000 * SECOND, clock.boot())
    clock.pass_by(SECOND)
    assert time.now() == 1_001 * SECOND
    half = 1_000 * SECOND + SECOND // 2
    time.saw(half, clock.boot())  # the store's time passes at half speed
    assert time.now() == 1_001 * SECOND
    assert time.until(1_001 * SECOND) == SECOND // 2, "a wait of 0 would be asked for again and again"
    clock.pass_by(SECOND)
    assert time.now() == half + SECOND
    assert time.until(1_001 * SECOND) < 0


def test_time_goes_back_with_the_clock_of_a_store_that_was_ahead():
    clock = HandClock()
    time = StoreTime(clock)
    time.saw(1_000 * SECOND, clock.boot())
    time.saw(90_000 * SECOND, clock.boot())
    assert time.now() == 90_000 * SECOND
    time.saw(1_001 * SECOND, clock.boot())
    assert time.now() == 1_001 * SECOND
    assert time.until(1_003 * SECOND) == 2 * SECOND


def answered_after(span: Micros, answer: Micros) -> StoreTime:
    """Give the time of a process that knew it, and asked again: the answer took so long."""
    clock = HandClock()
    time = StoreTime(clock)
    time.saw(1_000 * SECOND, clock.boot())
    asked = clock.boot()
    clock.pass_by(span)
    time.saw(answer, asked)
    return time


def test_late_answer_sets_no_time_back():
    # A process that stood still reads an answer when it wakes: a timer that it sets then must not be due at once.
    assert answered_after(7 * SECOND, 1_000 * SECOND).now() == 1_007 * SECOND
    assert answered_after(7 * SECOND, 1_007 * SECOND).now() == 1_007 * SECOND


def test_late_answer_of_a_store_whose_clock_was_put_right_bounds_the_time():
    assert answered_after(7 * SECOND, 500 * SECOND).now() == 507 * SECOND


def test_answer_that_is_ahead_is_followed():
    assert answered_after(SECOND, 2_000 * SECOND).now() == 2_000 * SECOND
