"""Marks: where to begin, and when all is read again."""

import pytest

from watchbill.clock import Micros
from watchbill.store.postgres.marks import FIRST, NOWHERE, RESCAN, Heads, OpenRows


class HandClock:
    def __init__(self) -> None:
        self.now: Micros = 0

    def boot(self) -> Micros:
        return self.now

    def wall(self) -> Micros:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def test_a_queue_begins_at_the_first_row_that_was_found_last(clock):
    heads = Heads(clock)
    assert set(heads.begin([1, 2]).values()) == {FIRST}
    heads.found([((1, False), (5, 1)), ((1, False), (6, 2)), ((2, True), (7, 3))])
    assert heads.begin([1, 2]) == {(1, False): (5, 1), (1, True): FIRST, (2, False): FIRST, (2, True): (7, 3)}
    heads.found([((1, False), (6, 2))])
    assert heads.begin([1, 2])[1, False] == (6, 2)
    assert heads.begin([1, 2])[2, True] == (7, 3)


def test_queues_are_read_whole_every_now_and_then(clock):
    heads = Heads(clock)
    heads.begin([1])
    for _ in range(3):
        heads.found([((1, False), (5, 1))])
        clock.now += RESCAN - 1
        assert heads.begin([1])[1, False] == (5, 1)
        clock.now += 1
        assert heads.begin([1])[1, False] == FIRST


def test_queues_are_read_whole_once_more_when_nothing_was_found_behind_a_mark(clock):
    heads = Heads(clock)
    heads.begin([1])
    heads.found([((1, False), (5, 1))])
    heads.begin([1])
    assert heads.found_nothing(), "asking again may help"
    assert heads.begin([1])[1, False] == FIRST
    assert not heads.found_nothing(), "and once is enough"
    assert heads.begin([1])[1, False] == FIRST


def test_finals_begin_at_the_lowest_open_row_of_each_shard(clock):
    rows = OpenRows(clock)
    assert rows.begin([1, 2]) == [0, 0]
    rows.open([(10, 1), (11, 2), (12, 1), (13, 1)])
    assert rows.begin([1, 2, 3]) == [10, 11, NOWHERE]
    rows.close([10, 13, 99])
    assert rows.begin([1, 2]) == [12, 11]
    rows.open([(5, 1), (11, 2), (7, 1)])
    assert rows.begin([1, 2]) == [5, 11]
    rows.close([5])
    assert rows.begin([1]) == [7]
    rows.forget([1, 3])
    assert rows.begin([1, 2]) == [NOWHERE, 11]
    rows.close([7, 11])
    assert rows.begin([1, 2]) == [NOWHERE, NOWHERE]
    assert not rows._shards


def test_finals_are_read_whole_every_now_and_then_and_after_none_were_found(clock):
    rows = OpenRows(clock)
    rows.begin([1])
    rows.open([(10, 1)])
    clock.now += RESCAN - 1
    assert rows.begin([1]) == [10]
    clock.now += 1
    assert rows.begin([1]) == [0]
    assert rows.begin([1]) == [10]
    rows.found_nothing()
    assert rows.begin([1]) == [0]
