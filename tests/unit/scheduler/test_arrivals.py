"""Arrivals: the order in which a run is given what has arrived for it."""

from watchbill.model.facts import FactKind
from watchbill.scheduler.arrivals import in_order
from watchbill.store.protocol import Fact


def told(id: int, at: int, kind: FactKind = FactKind.SEND) -> Fact:
    return Fact(id, 1, 1, kind, "", "ada", b"null", at)


def test_a_clock_that_went_back_does_not_put_a_resume_before_its_pause():
    pause, resume = told(7, 500, FactKind.PAUSE), told(8, 400, FactKind.RESUME)
    assert in_order([], [resume, pause]) == [pause, resume]
