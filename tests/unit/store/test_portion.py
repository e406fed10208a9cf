"""Portion: items that are added together count for their runs as if each had been taken alone."""

from watchbill.bounds import Bounds
from watchbill.store.portions import Portion

BOUNDS = Bounds(at_once=100, of_a_run=40, large=20)


def test_items_added_together_count_for_the_shares_of_their_runs() -> None:
    portion = Portion(BOUNDS)
    assert portion.room == 40
    portion.add_together(30, [("a", 10), ("b", 20)])
    assert (portion.size, portion.room) == (30, 10)
    assert not portion.takes("b", 21)
    assert portion.takes("a", 30)
    assert not portion.takes("a", 1)


def test_there_is_no_sure_room_after_an_item_was_left_out_or_a_larger_one_taken() -> None:
    cut = Portion(BOUNDS)
    assert cut.takes("a", 30)
    assert not cut.takes("a", 11)
    assert cut.room < 0
    largest = Portion(BOUNDS)
    assert largest.takes("a", 90)
    assert largest.size == 0
    assert largest.room < 0
    assert not largest.takes("a", 1)
