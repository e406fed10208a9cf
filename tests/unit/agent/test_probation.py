"""What a suspended agent may try, one after the other, and what it says of it."""

import pytest

from watchbill.agent.probation import Probation
from watchbill.clock import SECOND
from watchbill.model.agent import Room
from watchbill.model.doings import Trial
from watchbill.model.suspension import ANYTHING_AFTER, CANARIES, FIRST_WAIT, Suspension, encode

NOON = 1_800_000_000 * SECOND
SUSPENSION = Suspension(NOON, NOON, FIRST_WAIT, "it fails", ("encode",))
KNOWN = ("encode", "upload")
TIME = NOON + FIRST_WAIT


@pytest.fixture
def probation() -> Probation:
    probation = Probation()
    probation.hear(encode(SUSPENSION))
    return probation


def test_who_is_not_suspended_tries_nothing() -> None:
    probation = Probation()
    assert not probation.suspended
    assert probation.try_at is None
    assert probation.steps_to_try(KNOWN, TIME) == ()


def test_it_waits_and_is_then_tried_with_what_it_failed(probation: Probation) -> None:
    assert probation.try_at == TIME
    assert probation.steps_to_try(KNOWN, TIME - 1) == ()
    assert probation.steps_to_try(KNOWN, TIME) == ("encode",)
    assert probation.try_at is None, "it has asked, and is woken as everybody is"


def test_where_that_does_not_come_it_is_tried_with_anything(probation: Probation) -> None:
    assert probation.steps_to_try(KNOWN, TIME + ANYTHING_AFTER) == KNOWN


def test_it_has_room_for_one_when_it_may_try_and_else_for_nothing(probation: Probation) -> None:
    room = Room(9, 4, KNOWN)
    assert probation.room_to_try(room, TIME - 1).slots == 0
    assert probation.room_to_try(room, TIME) == Room(1, 1, ("encode",), trial=True)
    assert probation.room_to_try(Room(0, 0, KNOWN), TIME) == Room(0, 0, ("encode",), trial=True)


def test_one_at_a_time_and_after_some_it_has_passed(probation: Probation) -> None:
    for number in range(CANARIES):
        assert probation.trial is None
        assert probation.steps_to_try(KNOWN, TIME) == ("encode",)
        probation.begin(number, 1)
        assert probation.is_canary(number, 1)
        assert not probation.is_canary(number, 2)
        assert probation.steps_to_try(KNOWN, TIME) == ()
        probation.passed()
    assert probation.trial == Trial(NOON, True)
    assert probation.steps_to_try(KNOWN, TIME) == (), "somebody has to decide about it first"


def test_one_that_fails_is_enough(probation: Probation) -> None:
    probation.begin(1, 1)
    probation.passed()
    probation.begin(2, 1)
    probation.failed("OSError")
    assert probation.trial == Trial(NOON, False, "OSError")
    assert probation.is_over
    probation.told(None)
    assert probation.is_over, "that was said before"
    probation.told(probation.trial)
    assert not probation.is_over
    assert probation.trial is not None, "it is said again until somebody has heard it"


def test_an_end_that_says_nothing_of_the_host_lets_another_one_try(probation: Probation) -> None:
    probation.begin(1, 1)
    probation.tell_nothing()
    assert probation.steps_to_try(KNOWN, TIME) == ("encode",)


def test_another_suspension_begins_anew_and_the_same_one_does_not(probation: Probation) -> None:
    probation.begin(1, 1)
    probation.failed("OSError")
    probation.hear(encode(SUSPENSION))
    assert probation.trial is not None
    probation.hear(encode(Suspension(TIME, NOON, 2 * FIRST_WAIT, "it fails", ("encode",), tried=1)))
    assert probation.try_at == TIME + 2 * FIRST_WAIT, "nothing has come of that one yet"
    probation.hear(None)
    assert not probation.suspended


def test_what_was_taken_from_it_after_it_was_let_back_is_no_try(probation: Probation) -> None:
    probation.begin(1, 1)
    probation.hear(None)
    assert not probation.is_canary(1, 1)


def test_from_beat_to_beat_it_asks_in_turn_to_be_tried_and_for_what_only_it_can_do(probation: Probation) -> None:
    asked = []
    for _ in range(4):
        asked.append(probation.suspended)
        probation.steps_to_try(KNOWN, TIME)  # there is nothing to try
        probation.hear(encode(SUSPENSION))
    assert asked == [True, False, True, False]


def test_before_its_time_and_while_it_is_tried_it_asks_for_what_only_it_can_do(probation: Probation) -> None:
    probation.steps_to_try(KNOWN, TIME - 1)
    assert not probation.suspended
    assert probation.try_at is None, "else it would wake for nothing"
    probation.hear(encode(SUSPENSION))
    assert probation.suspended
    assert probation.try_at == TIME
    probation.begin(1, 1)
    assert not probation.suspended
    probation.passed()
    assert probation.suspended
    probation.failed("OSError")
    assert not probation.suspended, "until somebody has decided"
