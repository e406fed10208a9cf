"""What is wrong with a row: pure, the time is an argument."""

from typing import Any

import msgspec
import pytest

from tests.unit.supervisor.rows import NOON, SECOND, a_failure, a_row
from watchbill.model.attempt import AttemptRow, Mark, has_moved
from watchbill.model.failure import Cause
from watchbill.model.limits import overdue_at
from watchbill.model.lost import Dead, Found
from watchbill.model.policy import SEEN_WITHIN, Policy
from watchbill.model.states import AttemptState
from watchbill.model.symptom import (
    AgentDead,
    BackoffOver,
    CancelOverdue,
    Failed,
    Late,
    NotYet,
    Stalled,
    Unreadable,
)
from watchbill.supervisor.diagnose import by_silence, diagnose

A_SECOND = Policy(timeout=SECOND)
STALLS = Policy(timeout=3_600 * SECOND, stall=SECOND - SEEN_WITHIN)  # a second after it was heard of


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


def a_running_row(policy: Policy = A_SECOND, mark: Mark | None = None, **changes: Any) -> AttemptRow:
    """A row that began a second ago, and is due for a look at noon."""
    changes.setdefault("watch_at", NOON)
    body = None if mark is None else msgspec.json.encode(mark)
    return a_row(AttemptState.RUNNING, policy=msgspec.json.encode(policy), progress=body, **changes)


def test_a_running_row_is_late_from_its_deadline_on() -> None:
    row = a_running_row()
    assert diagnose(row, NOON - 1) is None
    assert diagnose(row, NOON) == Late(0)
    assert diagnose(row, NOON + SECOND) == Late(SECOND)


def test_a_row_that_was_asked_to_stop_is_overdue_until_it_is_late() -> None:
    row = a_row(AttemptState.RUNNING, watch_at=NOON, cancel=True)
    late_at = overdue_at(row)
    assert late_at is not None
    assert diagnose(row, NOON + 5) == CancelOverdue(5, late_at - NOON - 5)
    assert diagnose(row, late_at - 1) == CancelOverdue(late_at - 1 - NOON, 1)
    assert diagnose(row, late_at + 7) == Late(7), "what hangs would never be undone otherwise"


def test_an_extension_moves_the_deadline() -> None:
    row = a_running_row(mark=Mark(1, extended=5 * SECOND))
    assert diagnose(row, NOON) == NotYet(5 * SECOND)
    assert diagnose(row, NOON + 5 * SECOND) == Late(0)


@pytest.mark.parametrize("mark", [None, Mark(47, 100)])
def test_a_row_that_has_not_moved_since_its_start_is_stalled(mark: Mark | None) -> None:
    row = a_running_row(STALLS, mark)
    assert diagnose(row, NOON - 1) is None
    assert diagnose(row, NOON) == Stalled(0)
    assert diagnose(row, NOON + 5) == Stalled(5)


def test_a_row_that_moves_however_slowly_is_never_stalled() -> None:
    row = a_running_row(STALLS, Mark(47, 100), progress_at=NOON - 1)
    assert diagnose(row, NOON) == NotYet(SECOND - 1)
    assert diagnose(row, NOON + SECOND - 1) == Stalled(0)


def test_a_row_that_moves_is_late_all_the_same() -> None:
    row = a_running_row(
        Policy(timeout=10 * SECOND, stall=SECOND - SEEN_WITHIN), Mark(99, 100), progress_at=NOON + 9 * SECOND - 1
    )
    assert diagnose(row, NOON + 9 * SECOND - 1) == NotYet(1), "the deadline comes before the end of its patience"
    assert diagnose(row, NOON + 9 * SECOND) == Late(0)


def test_what_was_said_in_time_has_a_second_to_be_heard() -> None:
    row = a_running_row(Policy(timeout=60 * SECOND, stall=SECOND))
    assert diagnose(row, NOON) == NotYet(SEEN_WITHIN)
    assert diagnose(row, NOON + SEEN_WITHIN) == Stalled(0)


def test_what_was_wrong_first_is_what_is_wrong() -> None:
    row = a_running_row(Policy(timeout=10 * SECOND, stall=SECOND - SEEN_WITHIN))
    assert diagnose(row, NOON + 3_600 * SECOND) == Stalled(3_600 * SECOND), "nobody was there to look for an hour"


def test_who_is_quiet_on_purpose_is_not_stalled_before_that_is_over() -> None:
    row = a_running_row(STALLS, Mark(47, 100, quiet_until=NOON + 60 * SECOND))
    assert diagnose(row, NOON + 5 * SECOND) == NotYet(55 * SECOND)
    assert diagnose(row, NOON + 60 * SECOND) == Stalled(0)


def test_progress_during_a_hold_counts_from_its_own_time() -> None:
    quiet = Mark(48, 100, quiet_until=NOON + 2 * SECOND)
    row = a_running_row(STALLS, quiet, progress_at=NOON + 2 * SECOND - 1)
    assert diagnose(row, NOON + 2 * SECOND) == NotYet(SECOND - 1)


def test_without_a_stall_silence_is_nothing() -> None:
    row = a_running_row(Policy(timeout=3_600 * SECOND))
    assert diagnose(row, NOON) == NotYet(3_599 * SECOND)


def test_what_is_sealed_for_us_extends_nothing() -> None:
    row = msgspec.structs.replace(a_running_row(), progress=b"\x01\x02k1 and so on")
    assert diagnose(row, NOON) == Late(0)


def test_that_nothing_was_heard_is_found_by_silence() -> None:
    assert [by_silence(symptom) for symptom in (Late(1), Stalled(1), CancelOverdue(1))] == [True] * 3
    assert [by_silence(symptom) for symptom in (NotYet(1), AgentDead(1), BackoffOver())] == [False] * 3


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (None, Mark(0), True),
        (Mark(1), Mark(2), True),
        (Mark(1), Mark(1, note="another word"), False),
        (Mark(2), Mark(1), False),
        (Mark(1), Mark(1, extended=5), False),
        (None, Mark(0, extended=5, begun=False), False),
        (Mark(0, extended=5, begun=False), Mark(0, extended=5), True),
        (Mark(1), Mark(1, quiet_until=9), False),
        (Mark(1, quiet_until=9), Mark(1), True),
        (Mark(0, quiet_until=9, begun=False), Mark(0, begun=False), True),
    ],
)
def test_only_an_increase_or_the_end_of_a_hold_is_a_move(before: Mark | None, after: Mark, moved: bool) -> None:
    assert has_moved(before, after) is moved


def test_a_dead_agent_matters_more_than_a_deadline() -> None:
    row = a_row(AttemptState.RUNNING, watch_at=NOON)
    assert diagnose(row, NOON + SECOND, dead=Dead(70, "a", Found.DEAD)) == AgentDead(70, "a", Found.DEAD)


def test_a_parked_row_waits_for_its_time() -> None:
    row = a_row(AttemptState.PARKED, watch_at=NOON, why="backoff")
    assert diagnose(row, NOON - 1) is None
    assert diagnose(row, NOON) == BackoffOver()


def test_a_quarantined_row_waits_for_ever() -> None:
    assert diagnose(a_row(AttemptState.PARKED, why="quarantine"), NOON) is None


@pytest.mark.parametrize("state", [AttemptState.READY, AttemptState.DONE, AttemptState.GAVE_UP])
def test_what_waits_for_somebody_else_is_well(state: AttemptState) -> None:
    assert diagnose(a_row(state, watch_at=NOON), NOON + SECOND) is None
