"""The store's time as a scheduler knows it."""

from watchbill.clock import SECOND
from watchbill.scheduler.store_time import StoreTime


class Clock:
    def __init__(self) -> None:
        self.at = 100 * SECOND

    def boot(self) -> int:
        return self.at

    def wall(self) -> int:
        return self.at


def test_time_stands_still_and_waits_are_as_long_as_the_store_needs_when_its_answer_is_behind():
    clock = Clock()
    time = StoreTime(clock)
    time.saw(1_000 * SECOND)
    clock.at += 10 * SECOND
    assert time.now() == 1_010 * SECOND
    time.saw(1_005 * SECOND)  # the store's time passes at half speed
    assert time.now() == 1_010 * SECOND
    assert time.until(1_006 * SECOND) == SECOND, "a wait of 0 would be asked for again and again"
    clock.at += 6 * SECOND
    assert time.now() == 1_011 * SECOND
    assert time.until(1_006 * SECOND) < 0
