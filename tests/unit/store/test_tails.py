"""Tails: the entries that a turn must follow, and which of them are known to be there."""

from typing import Any

import pytest

from watchbill.model.call import JournalRow
from watchbill.model.states import RunState
from watchbill.store import tails
from watchbill.store.protocol import Turn
from watchbill.store.tails import Tails
from watchbill.testing.conformance.scene import ME, a_change, an_entry


def a_turn(journal: list[JournalRow], **parts: Any) -> Turn:
    return Turn(ME, {}, journal=journal, **parts)


def test_first_entry_follows_none() -> None:
    assert Tails().follow(a_turn([an_entry(1, 1), an_entry(1, 2)])) == {}


def test_entry_is_unknown_until_it_was_appended() -> None:
    unknown = a_turn([an_entry(1, 3), an_entry(1, 4), an_entry(2, 8)])
    assert Tails().follow(unknown) == {1: 2, 2: 7}
    known = Tails()
    known.follow(a_turn([an_entry(1, 1), an_entry(1, 2)]))
    assert known.follow(unknown) == {2: 7}
    assert known.follow(a_turn([an_entry(1, 5), an_entry(2, 9)])) == {}


@pytest.mark.parametrize("seq", [2, 4])
def test_only_the_newest_entry_is_known(seq: int) -> None:
    known = Tails()
    known.follow(a_turn([an_entry(1, 1), an_entry(1, 2)]))
    assert known.follow(a_turn([an_entry(1, seq)])) == {1: seq - 1}


def test_runs_are_forgotten_one_by_one_or_all_together() -> None:
    known = Tails()
    known.follow(a_turn([an_entry(run, 1) for run in (1, 2, 3)]))
    known.drop([1, 9])
    assert known.follow(a_turn([an_entry(run, 2) for run in (1, 2, 3)])) == {1: 1}
    known.forget()
    assert known.follow(a_turn([an_entry(run, 3) for run in (1, 2, 3)])) == {1: 2, 2: 2, 3: 2}


def test_memory_has_a_bound(monkeypatch) -> None:
    monkeypatch.setattr(tails, "MOST", 2)
    known = Tails()
    known.follow(a_turn([an_entry(run, 1) for run in (1, 2, 3)]))
    known.follow(a_turn([an_entry(4, 1)]))
    assert known.follow(a_turn([an_entry(run, 2) for run in (1, 4)])) == {1: 1}


def test_a_run_has_begun_when_its_change_was_written() -> None:
    first = a_turn([an_entry(1, 1)], after={1: 0})
    assert Tails().follow(first) == {1: 0}
    known = Tails()
    known.follow(a_turn([], runs=[a_change(1, RunState.SCHEDULED)]))
    assert known.follow(first) == {1: 0}
    known = Tails()
    known.follow(a_turn([], runs=[a_change(1, RunState.RUNNING)]))
    assert known.follow(first) == {}


def test_a_row_follows_the_newest_entry_of_its_run() -> None:
    row = a_turn([], after={1: 4})
    known = Tails()
    assert known.follow(row) == {1: 4}
    assert known.follow(row) == {1: 4}
    known.follow(a_turn([an_entry(1, 4)]))
    assert known.follow(row) == {}
    assert known.follow(a_turn([an_entry(1, 5)], after={1: 4})) == {}
    assert known.follow(a_turn([an_entry(1, 6), an_entry(1, 7)], after={1: 7})) == {}


def test_entry_decides_when_its_run_is_also_changed() -> None:
    assert Tails().follow(a_turn([an_entry(1, 5), an_entry(1, 6)], after={1: 6})) == {1: 4}
