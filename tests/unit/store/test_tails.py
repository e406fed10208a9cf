"""Tails: the entries that a turn must follow, and which of them are known to be there."""

from watchbill.store import tails
from watchbill.store.tails import Tails
from watchbill.testing.conformance.scene import an_entry


def test_first_entry_follows_none() -> None:
    assert Tails().unknown([an_entry(1, 1), an_entry(1, 2)]) == {}


def test_entry_is_unknown_until_it_was_appended() -> None:
    known = Tails()
    assert known.unknown([an_entry(1, 3), an_entry(1, 4), an_entry(2, 8)]) == {1: 2, 2: 7}
    known.appended([an_entry(1, 1), an_entry(1, 2)])
    assert known.unknown([an_entry(1, 3), an_entry(1, 4), an_entry(2, 8)]) == {2: 7}


def test_only_the_newest_entry_is_known() -> None:
    known = Tails()
    known.appended([an_entry(1, 1), an_entry(1, 2)])
    assert known.unknown([an_entry(1, 2)]) == {1: 1}
    assert known.unknown([an_entry(1, 4)]) == {1: 3}


def test_runs_are_forgotten_one_by_one_or_all_together() -> None:
    known = Tails()
    known.appended([an_entry(run, 1) for run in (1, 2, 3)])
    known.drop([1, 9])
    assert known.unknown([an_entry(run, 2) for run in (1, 2, 3)]) == {1: 1}
    known.forget()
    assert known.unknown([an_entry(run, 2) for run in (1, 2, 3)]) == {1: 1, 2: 1, 3: 1}


def test_memory_has_a_bound(monkeypatch) -> None:
    monkeypatch.setattr(tails, "MOST", 2)
    known = Tails()
    known.appended([an_entry(run, 1) for run in (1, 2, 3)])
    known.appended([an_entry(4, 1)])
    assert known.unknown([an_entry(run, 2) for run in (1, 4)]) == {1: 1}
