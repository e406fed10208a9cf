"""Held: what is stopped in silence, when, and that it is held on until somebody has heard of it."""

from typing import cast

import msgspec
import pytest

from watchbill.agent.capacity import Capacity
from watchbill.agent.crew import Crew, Errand
from watchbill.agent.endings import Endings
from watchbill.agent.held import Held
from watchbill.agent.lessons import Lessons
from watchbill.agent.membership import Membership
from watchbill.agent.probation import Probation
from watchbill.agent.remote import Remote
from watchbill.agent.tallies import Tallies
from watchbill.clock import SECOND
from watchbill.flow.messages import Order
from watchbill.model.attempt import Mark
from watchbill.model.policy import Cures, Policy
from watchbill.model.profile import SILENCE

ONCE = Policy(cures=Cures(idempotent=False))


class Halting:
    """A crew of which only one thing is wanted here."""

    def __init__(self) -> None:
        self.halted: list[Errand] = []

    def halt(self, attempt: Errand) -> None:
        """Note it."""
        self.halted.append(attempt)


@pytest.fixture
def crew() -> Halting:
    return Halting()


@pytest.fixture
def held(crew: Halting) -> Held:
    endings = Endings(Membership(1, 8 * SECOND), Tallies(), Probation())
    return Held(cast(Crew, crew), Capacity({}), endings, Lessons())


def an_errand(row: int, policy: Policy) -> Remote:
    key = ("default", "o-1", 0, "charge", 9)
    return Remote(row, Order(1, "charge", b"[1]", b"{}", key, 5, 1, 0, None, row, 0, 0), policy, alone=False)


def test_what_must_not_happen_twice_is_stopped_with_the_lease_and_all_else_a_minute_later(held, crew):
    once, often = an_errand(1, ONCE), an_errand(2, Policy())
    held.begin(1, once)
    held.begin(2, often)
    held.stop_in_silence(100 * SECOND, 0)
    assert crew.halted == [once]
    held.stop_in_silence(100 * SECOND + SILENCE - 1, SILENCE - 1)
    assert crew.halted == [once]
    held.stop_in_silence(100 * SECOND + SILENCE, SILENCE)
    assert crew.halted == [once, often]


def test_what_has_had_its_time_is_stopped_with_the_lease_too(held, crew):
    late, unheard, asked_for_more, early = (an_errand(row, Policy(timeout=90 * SECOND)) for row in range(1, 5))
    early.started_boot = 50 * SECOND
    for row, errand in enumerate((late, unheard, asked_for_more, early), 1):
        held.begin(row, errand)
    longer = msgspec.json.encode(Mark(1, extended=20 * SECOND))
    for errand in (unheard, asked_for_more):
        errand.move(longer, increased=True)
        held.move(errand.row, errand, 80 * SECOND)
    said = held.take_moves(80 * SECOND)
    held.put_back([one for one in said if one[1] is unheard])  # nobody else knows of that
    held.note_heard([one for one in said if one[1] is asked_for_more])
    held.stop_in_silence(100 * SECOND, 0)
    assert crew.halted == [late, unheard]
    held.stop_in_silence(120 * SECOND, 20 * SECOND)
    assert crew.halted == [late, unheard, asked_for_more]


def test_more_time_counts_from_when_it_was_heard_and_for_as_long_whatever_is_lost_later(held, crew):
    under_way, heard = (an_errand(row, Policy(timeout=90 * SECOND)) for row in (1, 2))
    longer, further = (msgspec.json.encode(Mark(done, extended=20 * SECOND)) for done in (1, 2))
    for errand in (under_way, heard):
        held.begin(errand.row, errand)
        errand.move(longer, increased=True)
        held.move(errand.row, errand, 80 * SECOND)
    said = held.take_moves(80 * SECOND)
    held.note_heard([one for one in said if one[1] is heard])  # to the other one no answer has come
    heard.move(further, increased=True)
    held.move(heard.row, heard, 85 * SECOND)
    held.put_back(held.take_moves(85 * SECOND))
    held.stop_in_silence(100 * SECOND, 0)
    assert crew.halted == [under_way]


def test_what_was_stopped_in_silence_is_held_until_that_was_heard(held, crew):
    """Perhaps nobody has missed this agent: what it forgets would count as running here until its timeout."""
    often = an_errand(2, Policy())
    held.begin(2, often)
    held.stop_in_silence(100 * SECOND, SILENCE)
    held.stop_in_silence(101 * SECOND, SILENCE + SECOND)
    assert crew.halted == [often]
    assert list(held.running) == [2]
    assert held.was_silenced(often)
    held.forget(often)
    assert not held.running


def test_what_a_scheduler_hands_over_in_silence_has_a_minute_of_its_own(held, crew):
    """Its row was written just now, by a store that answered: its agent will be heard, too."""
    begun = 500 * SECOND
    handed_over = an_errand(3, Policy())
    held.move(3, handed_over, begun)
    held.move(3, handed_over, begun + 10 * SECOND)  # progress changes nothing about that
    held.stop_in_silence(begun + SILENCE - 1, 10 * SILENCE)
    assert crew.halted == []
    held.stop_in_silence(begun + SILENCE, 10 * SILENCE)
    assert crew.halted == [handed_over]
