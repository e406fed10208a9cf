"""What became of what was decided: read from what came later."""

import msgspec
import pytest

from tests.unit.cli.records import NOON, a_completed_step, a_failed_step, a_record, an_attempt, an_ended_run
from watchbill.app.timeline import timeline_of
from watchbill.model.decision import (
    AGENT,
    BY_ITSELF,
    DEADLINE,
    OBSERVER,
    OF_A_PERSON,
    OF_A_RECOVERY,
    OF_AN_ALARM,
    RECOVERED,
    SUPERVISOR,
    UNANSWERED,
    Decision,
    DecisionRow,
)
from watchbill.model.failure import Cause
from watchbill.model.sealed import SEALED
from watchbill.model.states import AttemptState, RunState


def verdict(chosen: str, fence: int = 1, cause: Cause | None = Cause.RAISED, n: int = 1, **more) -> DecisionRow:
    body = Decision("a rule", chosen, "charge", fence, cause=cause, rejected=("give up: not yet",), **more)
    return DecisionRow(1, "charge", fence, n, SUPERVISOR, msgspec.json.encode(body))


def said(chosen: str, n: int, actor: str, fence: int = 2) -> DecisionRow:
    return DecisionRow(1, "charge", fence, n, actor, msgspec.json.encode(Decision("a rule", chosen)))


RETRY = verdict("retry later")
OVER = verdict("retry", cause=None, n=2)  # its pause
WELL = said(RECOVERED, OF_A_RECOVERY, AGENT)


def outcome(*decisions: DecisionRow, **record) -> str:
    """Say what became of the first decision."""
    told = a_record(decisions=decisions, **record)
    first = msgspec.json.decode(decisions[0].body, type=Decision).chosen.replace(" ", "_")
    return next(event.outcome for event in timeline_of(told) if event.kind == first)


@pytest.mark.parametrize(
    ("later", "became"),
    [
        ((OVER, WELL), "recovered"),
        ((OVER, verdict("give up", 2)), "failed again: raised"),
        ((OVER, verdict("mark failed", 2, Cause.LOST), verdict("retry", 2, Cause.LOST)), "failed again: lost"),
        ((said("retry", OF_A_PERSON, "ada", 1),), "ada decided: retry"),
    ],
)
def test_a_retry_recovers_fails_again_or_is_decided_by_somebody(later, became):
    assert outcome(RETRY, *later) == became


def test_while_nothing_followed_the_row_says_how_it_stands():
    assert outcome(RETRY, attempts=[an_attempt(state=AttemptState.PARKED, why="backoff")]) == "it waits"
    assert outcome(RETRY, OVER, attempts=[an_attempt()]) == "it is being tried"
    asked = an_attempt(state=AttemptState.PARKED, why="escalate")
    assert outcome(verdict("ask a person"), attempts=[asked]) == "nobody has decided yet"
    assert outcome(verdict("mark failed"), attempts=[an_attempt(state=AttemptState.FAILED)]) == "it is judged next"


def test_if_only_the_journal_is_left_that_says_it():
    assert outcome(RETRY, journal=[a_completed_step()]) == "recovered"
    assert outcome(RETRY, journal=[a_failed_step("charge", "no", 2)]) == "failed for good"
    assert outcome(RETRY, status=RunState.CANCELLED) == "stopped with its run"


def test_what_was_found_dead_is_followed_by_what_was_done_about_it():
    assert outcome(verdict("mark failed", 1, Cause.LOST), verdict("retry", 1, Cause.LOST, 2)) == "then retry"
    assert outcome(verdict("probe"), verdict("retry later", 2)) == "then retry later"


def test_people_who_let_their_time_pass_are_what_became_of_it():
    assert outcome(verdict("ask a person"), verdict("give up", n=2, undecided="team")) == "nobody decided in time"


@pytest.mark.parametrize(
    ("status", "became"),
    [
        (RunState.FAILED, "its run is failed"),
        (RunState.UNDO_FAILED, "its run is undo failed"),
        (RunState.UNDOING, "its run is being undone"),
        (RunState.RUNNING, "its run goes on"),
        (RunState.COMPLETED, "its run is completed"),
    ],
)
@pytest.mark.parametrize("chosen", ["give up", DEADLINE, UNANSWERED])
def test_what_ends_a_call_or_a_run_says_what_its_run_became(status, became, chosen):
    row = verdict("give up") if chosen == "give up" else said(chosen, 3, "scheduler")
    assert outcome(row, status=status) == became


def test_what_was_slow_and_left_alone_is_done_by_itself_or_is_not():
    slow = said("leave alone", 1, OBSERVER, 1)
    assert outcome(slow, said(BY_ITSELF, OF_AN_ALARM, AGENT, 1)) == "done by itself"
    assert outcome(slow, verdict("mark failed", 1, Cause.LATE, 2)) == "late"
    assert outcome(slow, attempts=[an_attempt(why="slow")]) == "it runs on"


def test_of_what_people_did_and_of_what_is_sealed_nothing_is_said():
    sealed = DecisionRow(1, "charge", 1, 1, SUPERVISOR, SEALED + b"x")
    events = timeline_of(a_record(decisions=[sealed, said("retry", OF_A_PERSON, "ada")]))
    assert {event.outcome for event in events if event.actor == "ada"} == {""}
    assert all(event.rejected == () for event in events)


def test_the_journal_tells_that_it_is_done_so_that_is_said_once():
    record = an_ended_run(RunState.COMPLETED, 1, journal=[a_completed_step()])
    record = msgspec.structs.replace(
        record, decisions=tuple((row, NOON) for row in (WELL, said(BY_ITSELF, OF_AN_ALARM, AGENT)))
    )
    assert {event.kind for event in timeline_of(record)} & {"recovered", "done_by_itself"} == set()
