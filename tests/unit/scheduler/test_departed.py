"""Departed: what is known of runs that left memory lately."""

from types import SimpleNamespace
from typing import Any

import pytest

from watchbill.model.states import RunState
from watchbill.scheduler import departed
from watchbill.scheduler.departed import KEPT, Departed


def a_run(num: int, seq: int, status: RunState = RunState.WAITING, *, follows: bool = True) -> Any:
    return SimpleNamespace(num=num, seq=seq, status=status, follows=follows)


def test_open_and_ended_runs_are_given_apart():
    left = Departed()
    left.add(a_run(1, 0), 5)
    left.add(a_run(2, 7, RunState.COMPLETED), 5)
    left.add(a_run(3, 4, follows=False), 5)
    assert left.entries(5) == {1: 0}
    assert left.ended(5) == [2]


def test_run_that_leaves_again_is_given_as_it_left_last():
    left = Departed()
    left.add(a_run(1, 3), 0)
    left.add(a_run(1, 9, RunState.COMPLETED), KEPT + 1)
    assert left.entries(KEPT + 1) == {}
    assert left.ended(KEPT + 1) == [1]


def test_run_is_kept_for_a_minute_and_not_for_three():
    left = Departed()
    left.add(a_run(1, 3), 0)
    left.add(a_run(2, 4), KEPT - 1)
    assert left.entries(2 * KEPT - 1) == {1: 3, 2: 4}
    assert left.entries(3 * KEPT - 1) == {}


def test_runs_of_an_idle_time_are_dropped_together():
    left = Departed()
    left.add(a_run(1, 3), 0)
    left.add(a_run(2, 4), 10 * KEPT)
    assert left.entries(10 * KEPT) == {2: 4}


def test_number_of_runs_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(departed, "MOST", 2)
    left = Departed()
    for num in range(1, 10):
        left.add(a_run(num, num), 0)
    assert left.entries(0) == {7: 7, 8: 8, 9: 9}


def test_forgotten_runs_are_given_no_more():
    left = Departed()
    left.add(a_run(1, 3), 0)
    left.forget()
    assert left.entries(0) == {}
