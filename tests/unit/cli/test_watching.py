"""What a watch tells line by line: each thing that happens once."""

from tests.unit.cli.records import NOON, a_completed_step, a_judged_attempt, a_record, an_attempt
from watchbill.app.status import TimelineEvent
from watchbill.app.timeline import timeline_of
from watchbill.cli.watching import untold
from watchbill.model.states import AttemptState


def test_a_decision_is_not_told_again_when_something_becomes_of_it():
    decided = a_judged_attempt("charge", 1, "not yet")
    told: set[TimelineEvent] = set()
    waits = a_record(decisions=[decided], attempts=[an_attempt(state=AttemptState.PARKED, fence=1, watch_at=NOON)])
    first = untold(waits, told)
    assert "park" in [event.kind for event in first]
    assert {event.outcome for event in timeline_of(waits)} == {"", "it waits"}
    done = a_record(decisions=[decided], journal=[a_completed_step()])
    assert [event.kind for event in untold(done, told)] == ["step_started", "step_completed"]
    assert untold(done, told) == []
