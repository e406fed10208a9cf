"""What has arrived for a run comes in the order in which the store saw it, also when its clock was put right."""

import pytest

from tests.unit.supervisor.rows import a_row
from watchbill.clock import SECOND, Micros
from watchbill.model.facts import FactKind
from watchbill.scheduler.arrivals import in_order
from watchbill.scheduler.residence import Deadline
from watchbill.store.protocol import Fact


def a_fact(id: int, at: Micros, kind: FactKind = FactKind.SEND) -> Fact:
    return Fact(id, 1, 1, kind, f"r{id}", "ada", b'""', at * SECOND)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_pause_from_while_the_clock_was_ahead_comes_before_the_later_resume(order: tuple[int, int]) -> None:
    facts = [a_fact(1, 126, FactKind.PAUSE), a_fact(2, 58, FactKind.RESUME)]
    arrived = in_order([], [facts[place] for place in order])
    assert [fact.kind for fact in arrived if isinstance(fact, Fact)] == [FactKind.PAUSE, FactKind.RESUME]


def test_fact_from_while_the_clock_was_ahead_waits_for_no_timer_that_was_due_after_the_next_fact() -> None:
    late = Deadline(60 * SECOND)
    ahead, right = a_fact(1, 126), a_fact(2, 58)
    assert in_order([], [ahead, right], [late]) == [ahead, right, late]


def test_facts_outcomes_and_timers_come_by_their_times() -> None:
    early, between, due = a_fact(1, 10), a_fact(2, 30), Deadline(40 * SECOND)
    row = a_row(ended_at=20 * SECOND)
    assert in_order([row], [between, early], [due]) == [early, row, between, due]
