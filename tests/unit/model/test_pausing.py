"""Pausing: by which orders a run is paused, as a pure function of the orders."""

from itertools import product

import msgspec
import pytest

from watchbill.model.pausing import Pause, PauseOrder, after, pause_of, read_order

ALONE, TREE = PauseOrder("x", children=False), PauseOrder("x")
PAUSES = [Pause(bits) for bits in range(8) if Pause(bits) & Pause.OWN or not Pause(bits) & Pause.TREE]


def paused(pause: Pause, order: PauseOrder, *, from_parent: bool = False) -> Pause:
    return after(pause, order, pauses=True, from_parent=from_parent)


def resumed(pause: Pause, *, from_parent: bool = False) -> Pause:
    return after(pause, PauseOrder(), pauses=False, from_parent=from_parent)


def test_a_pause_reaches_the_children_unless_it_is_for_the_run_alone():
    assert paused(Pause.NONE, TREE).reaches_children
    assert not paused(Pause.NONE, ALONE).reaches_children
    assert paused(Pause.NONE, TREE, from_parent=True).reaches_children


def test_a_second_pause_reaches_more_runs_never_fewer():
    assert paused(paused(Pause.NONE, ALONE), TREE).reaches_children
    assert paused(paused(Pause.NONE, TREE), ALONE).reaches_children


@pytest.mark.parametrize("pause", PAUSES)
def test_a_resume_ends_only_the_pause_that_was_given_in_the_same_way(pause: Pause):
    assert resumed(pause) == pause & Pause.PARENT
    assert resumed(pause, from_parent=True) == pause & (Pause.OWN | Pause.TREE)
    assert resumed(resumed(pause), from_parent=True) == Pause.NONE


@pytest.mark.parametrize(("pause", "from_parent", "order"), [*product(PAUSES, (False, True), (ALONE, TREE))])
def test_an_order_given_twice_changes_nothing_more(pause: Pause, from_parent: bool, order: PauseOrder):
    for pauses in (False, True):
        once = after(pause, order, pauses=pauses, from_parent=from_parent)
        assert after(once, order, pauses=pauses, from_parent=from_parent) == once
        assert once in PAUSES


def test_rows_of_versions_before_this_one_are_read():
    assert pause_of(True, 0) == Pause.OWN
    assert pause_of(False, 7) == Pause.NONE
    assert pause_of(True, 5) == Pause.OWN | Pause.PARENT


def test_orders_of_versions_before_this_one_are_read():
    assert read_order(b'"a flood"') == PauseOrder("a flood")
    assert read_order(b"null") == PauseOrder()
    assert read_order(msgspec.json.encode(ALONE)) == ALONE
