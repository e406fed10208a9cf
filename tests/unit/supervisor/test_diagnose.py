"""What is wrong with a row: pure, the time is an argument."""

import msgspec
import pytest

from tests.unit.supervisor.rows import NOON, SECOND, a_failure, a_row
from watchbill.model.failure import Cause
from watchbill.model.states import AttemptState
from watchbill.model.symptom import AgentDead, BackoffOver, CancelOverdue, Failed, Late, Unreadable
from watchbill.supervisor.diagnose import diagnose


def test_a_failed_row_tells_its_failure() -> None:
    assert diagnose(a_row(failure=a_failure()), NOON) == Failed(a_failure())


def test_a_failed_row_without_a_word_counts_as_lost() -> None:
    symptom = diagnose(a_row(), NOON)
    assert isinstance(symptom, Failed)
    assert symptom.failure.cause is Cause.LOST


def test_a_failure_that_is_sealed_is_no_failure_to_judge_by() -> None:
    row = msgspec.structs.replace(a_row(), result=b"\x01\x02k1 and so on")
    symptom = diagnose(row, NOON)
    assert isinstance(symptom, Unreadable)
    assert "sealed with key 'k1'" in symptom.why


def test_a_running_row_is_late_from_its_deadline_on() -> None:
    row = a_row(AttemptState.RUNNING, watch_at=NOON)
    assert diagnose(row, NOON - 1) is None
    assert diagnose(row, NOON) == Late(0)
    assert diagnose(row, NOON + SECOND) == Late(SECOND)


def test_a_row_that_was_asked_to_stop_is_overdue_and_not_late() -> None:
    assert diagnose(a_row(AttemptState.RUNNING, watch_at=NOON, cancel=True), NOON + 5) == CancelOverdue(5)


def test_a_dead_agent_matters_more_than_a_deadline() -> None:
    row = a_row(AttemptState.RUNNING, watch_at=NOON)
    assert diagnose(row, NOON + SECOND, orphaned=True) == AgentDead(70)


def test_a_parked_row_waits_for_its_time() -> None:
    row = a_row(AttemptState.PARKED, watch_at=NOON, why="backoff")
    assert diagnose(row, NOON - 1) is None
    assert diagnose(row, NOON) == BackoffOver()


def test_a_quarantined_row_waits_for_ever() -> None:
    assert diagnose(a_row(AttemptState.PARKED, why="quarantine"), NOON) is None


@pytest.mark.parametrize("state", [AttemptState.READY, AttemptState.DONE, AttemptState.GAVE_UP])
def test_what_waits_for_somebody_else_is_well(state: AttemptState) -> None:
    assert diagnose(a_row(state, watch_at=NOON), NOON + SECOND) is None
