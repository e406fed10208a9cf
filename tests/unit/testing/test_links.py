"""For how much of a time a process was held up: what overlaps counts once, what is still to come does not count."""

import pytest

from watchbill.testing.links import EVERYBODY, Links


class Stage:
    def __init__(self) -> None:
        self.now = 0.0
        self.links = Links(lambda: self.now)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_messages_that_are_under_way_at_once_hold_up_once(stage: Stage):
    stage.links.hold_up("a", 4)
    stage.now = 2
    stage.links.hold_up("a", 4)
    stage.now = 10
    assert stage.links.held_up("a", 0) == 6
    assert stage.links.held_up("a", 5) == 1
    assert stage.links.held_up("b", 0) == 0


def test_only_what_has_passed_counts(stage: Stage):
    stage.links.hold_up("a", 30)
    stage.now = 10
    assert stage.links.held_up("a", 0) == 10


def test_a_cut_link_holds_up_until_it_is_mended_and_one_of_the_store_everybody(stage: Stage):
    stage.links.cut("a")
    stage.now = 3
    stage.links.cut(EVERYBODY)
    stage.now = 5
    stage.links.mend("a")
    assert stage.links.is_cut("a")
    assert stage.links.is_cut("b")
    assert stage.links.held_up("a", 0) == 5
    assert stage.links.held_up("b", 0) == 2
    stage.links.mend_all()
    stage.now = 9
    assert not stage.links.is_cut("a")
    assert stage.links.held_up("a", 0) == 5
    assert stage.links.held_up("b", 4) == 1
