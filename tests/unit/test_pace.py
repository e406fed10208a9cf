"""Limits of time on a machine that other programs use."""

import pytest

from tests.pace import EVERY, ORDINARY, WINDOW, Pace, slowness, wanting_to_run


def test_limit_holds_on_a_machine_that_has_time():
    with Pace() as pace:
        assert pace.limit(3) == 3
    assert slowness([0] * WINDOW) == slowness([ORDINARY] * WINDOW) == 1


def test_limit_grows_with_the_processes_that_want_to_run():
    assert slowness([3 * ORDINARY] * WINDOW) == 3


def test_busiest_second_decides():
    quiet = [1.0] * 10 * WINDOW
    assert slowness([*quiet, *[2 * ORDINARY] * WINDOW, *quiet]) == pytest.approx(2)
    assert slowness([*quiet, 2 * ORDINARY, *quiet]) == 1  # a moment is no load


def test_counts_are_taken_while_a_test_measures():
    assert wanting_to_run() >= 1  # this test
    assert 0 < EVERY * WINDOW <= 1
