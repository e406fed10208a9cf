"""Why a run stands as it does: each state and each cause has its sentence."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.cli.records import (
    NOON,
    a_completed_step,
    a_fact,
    a_failed_run,
    a_failed_step,
    a_record,
    an_attempt,
    an_ended_run,
    an_entry,
)
from watchbill.app.explain import explain
from watchbill.clock import SECOND, to_datetime
from watchbill.model.attempt import Mark, Progress, RowKind
from watchbill.model.call import Kind, Outcome
from watchbill.model.decision import Decision, DecisionRow
from watchbill.model.facts import FactKind
from watchbill.model.failure import Cause, Failure, RunError
from watchbill.model.pausing import Pause
from watchbill.model.policy import Policy
from watchbill.model.question import Question
from watchbill.model.run import FOR_RESUME
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Record

HOUR = 3_600 * SECOND
NOW = NOON + 90 * SECOND


def said(record: Record) -> str:
    return str(explain(record))


def decided(chosen: str, message: str, actor: str = "scheduler", run: str = "") -> DecisionRow:
    body = msgspec.json.encode(Decision(rule="r", chosen=chosen, message=message, run=run))
    return DecisionRow(1, "", 1, 1, actor, body)


def test_a_run_that_is_scheduled_says_when_it_begins():
    explained = explain(a_record(status=RunState.SCHEDULED, wake_at=NOW + HOUR))
    assert explained.sentences == [
        "It is scheduled, and begins at 2027-01-15 13:01:30Z, in 1h 00m.",
        "Next: its scheduler, by 2027-01-15 13:01:30Z, in 1h 00m.",
    ]
    assert explained.facts["begins_at"] == to_datetime(NOW + HOUR)
    assert str(explained) == "\n".join(explained.sentences)


def test_a_run_that_is_due_waits_for_a_scheduler():
    assert "It has been due for 1m 30s, and waits for a scheduler" in said(
        a_record(status=RunState.SCHEDULED, wake_at=NOON)
    )
    assert "begins when it is resumed" in said(a_record(status=RunState.SCHEDULED, wake_at=NOON, paused=True))


def test_a_running_step_tells_its_attempt_its_agent_its_progress_and_the_time_it_has():
    row = an_attempt(
        progress=msgspec.json.encode(Progress(47, 100, "chunk 47")), progress_at=NOW - 10 * SECOND, watch_at=NOW + HOUR
    )
    explained = explain(a_record(attempts=[row]))
    assert str(explained) == (
        "Call 'charge' runs as attempt 1 on agent 7, for 1m 30s; it is at 47 of 100: chunk 47, 10.0s ago."
        " It has 58m 30s left.\n"
        "Next: agent 7, by 2027-01-15 13:00:00Z, in 58m 30s."
    )
    [call] = explained.facts["calls"]
    assert (call["attempt"], call["agent"], call["progress"].done) == (1, 7, 47)


def test_a_step_past_its_time_will_be_stopped():
    assert "Its time is over since 30.0s: the supervisor will stop it." in said(
        a_record(attempts=[an_attempt(watch_at=NOW, policy=msgspec.json.encode(Policy(timeout=60 * SECOND)))])
    )


def test_a_step_says_by_when_it_has_to_move_and_that_it_may_take_longer():
    row = an_attempt(
        policy=msgspec.json.encode(Policy(timeout=120 * SECOND, stall=100 * SECOND)),
        progress=msgspec.json.encode(Mark(1, 2, extended=60 * SECOND)),
        watch_at=NOW + HOUR,
    )
    explained = explain(a_record(attempts=[row]))
    assert "It has 1m 30s left, 1m 00s more than its timeout, and has to move within 11.0s." in str(explained)
    assert explained.facts["calls"][0]["extended"] == timedelta(seconds=60)


def test_a_step_that_stands_still_for_too_long_is_stalled():
    row = an_attempt(policy=msgspec.json.encode(Policy(stall=30 * SECOND)), watch_at=NOON + 31 * SECOND)
    explained = explain(a_record(attempts=[row]))
    assert "It has not moved for 1m 30s, longer than it may: the supervisor will stop it." in str(explained)
    assert explained.facts["health"] == "stalled"


def test_a_step_that_starves_says_so():
    explained = explain(a_record(attempts=[an_attempt(symptom="starved", watch_at=NOW + HOUR)]))
    assert "the process in which it runs does not turn" in str(explained)
    assert explained.facts["health"] == "starved"


def test_a_ready_step_says_what_it_needs():
    row = an_attempt(state=AttemptState.READY, losses=0, policy=msgspec.json.encode(Policy(needs=("eu", "gpu=1"))))
    explained = explain(a_record(attempts=[row]))
    assert "an agent that has eu and gpu=1 free and knows the step will take it" in str(explained)
    assert explained.facts["calls"][0]["needs"] == ("eu", "gpu=1")


def test_a_run_in_a_region_that_nobody_serves_says_so():
    record = msgspec.structs.replace(a_record(), region="eu", served=False)
    assert "It lives in region 'eu', and no process serves that region" in said(record)
    assert "region 'eu'" not in said(msgspec.structs.replace(record, served=True))


def test_a_step_that_is_quiet_on_purpose_says_what_for():
    row = an_attempt(
        policy=msgspec.json.encode(Policy(stall=30 * SECOND)),
        progress=msgspec.json.encode(Mark(0, begun=False, quiet_until=NOW + 60 * SECOND, quiet_for="the tape")),
        watch_at=NOW + 60 * SECOND,
    )
    explained = explain(a_record(attempts=[row]))
    assert "for 1m 30s; it is quiet on purpose (the tape), for 1m 00s more at most. It has" in str(explained)
    assert explained.facts["health"] == "ok"
    assert "progress" not in explained.facts["calls"][0]


def test_backoff_tells_the_error_and_the_next_attempt():
    row = an_attempt(
        state=AttemptState.PARKED,
        why="backoff",
        failures=2,
        losses=0,
        watch_at=NOW + 9 * SECOND,
        policy=msgspec.json.encode(Policy(retries=3)),
        result=msgspec.json.encode(Failure("ValueError", "not yet")),
    )
    explained = explain(a_record(attempts=[row]))
    assert str(explained) == (
        "Call 'charge' failed 2 times, the last time with ValueError: not yet."
        " Attempt 3 (of at most 4) follows at 2027-01-15 12:01:39Z, in 9.0s.\n"
        "Next: the supervisor, by 2027-01-15 12:01:39Z, in 9.0s."
    )
    assert explained.facts["calls"][0]["next_attempt_at"] == to_datetime(NOW + 9 * SECOND)
    assert explained.facts["health"] == "retrying"


def test_what_has_just_failed_is_about_to_be_judged():
    row = an_attempt(state=AttemptState.FAILED, failures=1, losses=0, policy=msgspec.json.encode(Policy()))
    assert "about to decide what follows" in said(a_record(attempts=[row]))


def test_a_quarantined_call_names_what_a_person_can_do():
    row = an_attempt(state=AttemptState.PARKED, why="quarantine", losses=5)
    assert "Call 'charge' is quarantined: 5 times" in said(a_record(attempts=[row]))
    assert "`retry` tries it again" in said(a_record(attempts=[row]))


@pytest.mark.parametrize(("held", "expected"), [(False, "an agent that knows the step"), (True, "its run is paused")])
def test_a_ready_call_waits_for_an_agent(held, expected):
    row = an_attempt(state=AttemptState.READY, losses=0, held=held)
    assert f"Call 'charge' is ready for attempt 1{':' if held else ';'} {expected}" in said(a_record(attempts=[row]))


def test_paused_says_by_whom_since_when_and_why():
    record = a_record(paused=True, decisions=[decided("pause", "stock-taking", "ada")], attempts=[an_attempt()])
    first, *_ = explain(record).sentences
    assert first.startswith("It has been paused by ada for 1m 30s: stock-taking.")
    assert explain(record).facts["paused_by"] == "ada"
    assert said(a_record(paused=True)).startswith("It is paused. What runs is finished; nothing new starts")


def test_paused_with_a_run_above_it_says_which_run_to_resume():
    own, above = decided("pause", "stock-taking", "ada"), decided("pause", "a flood", "bob", run="year")
    record = a_record(paused=True, pauses=Pause.PARENT, decisions=[own, above])
    explained = explain(record)
    assert explained.sentences[0] == (
        "It has been paused with run 'year', which is above it, by bob for 1m 30s: a flood."
        " What runs is finished; nothing new starts until somebody resumes run 'year'."
    )
    assert explained.reasons[0].next == "whoever resumes run 'year'"
    both = explain(a_record(paused=True, pauses=Pause.PARENT | Pause.OWN, decisions=[own, above]))
    assert both.sentences[0] == "It has been paused by ada for 1m 30s: stock-taking."
    assert both.sentences[1].startswith("It has been paused with run 'year'")
    assert (both.facts["paused_by"], both.facts["paused_with"]) == ("ada", "year")


def test_an_outcome_that_waits_for_a_resume_is_named():
    record = a_record(paused=True, status=RunState.WAITING, waits=FOR_RESUME)
    assert "Its code has ended. The run ends with that outcome when it is resumed." in said(record)


def test_waiting_says_for_what_and_until_when():
    both = explain(a_record(status=RunState.WAITING, waits="a message on 'go'", wake_at=NOW + HOUR))
    assert both.sentences == [
        "It waits for a message on 'go', and goes on when that comes.",
        "It waits for time: it wakes at 2027-01-15 13:01:30Z, in 1h 00m.",
        "Next: a client that sends 'go': `watchbill run send order-1 go JSON`, by 2027-01-15 13:01:30Z, in 1h 00m.",
    ]
    assert "Its time came 30.0s ago" in said(a_record(status=RunState.WAITING, wake_at=NOW - 30 * SECOND))


def test_a_question_says_who_is_asked_and_how_to_answer():
    asked = msgspec.json.encode(Question("ship it?", "team", {}))
    row = an_attempt(state=AttemptState.PARKED, kind=RowKind.ASK, id=255, why="ask", args=asked, losses=0)
    text = said(a_record(status=RunState.WAITING, waits="an answer to 'ask'", attempts=[row]))
    assert "It asks somebody of 'team': 'ship it?'. `watchbill inbox answer ff JSON` answers it." in text


def test_code_that_is_nowhere_is_named():
    assert "no scheduler that is running knows workflow 'order' version 1" in said(a_record(known=False))


def test_diverged_shows_recorded_against_asked_also_after_a_pause():
    note = "diverged: the journal has 'a', the code asks for 'b'"
    record = a_record(status=RunState.DIVERGED, decisions=[decided("diverged", note), decided("pause", "x", "ada")])
    assert note in said(record)
    assert "the fitting code is back" in said(record)


def test_held_says_why():
    assert "It is held: waits for nothing" in said(a_record(held="waits for nothing"))


def test_undoing_says_what_is_undone_and_what_is_left():
    steps = [
        a_completed_step(1, "a"),
        a_completed_step(2, "b"),
        a_completed_step(3, "c"),
        a_completed_step(4, "undo:c"),
    ]
    explained = explain(a_record(status=RunState.UNDOING, journal=steps))
    assert "undone so far: c" in str(explained)
    assert "looks at b, a" in str(explained)
    assert (explained.facts["undone"], explained.facts["left"]) == (["c"], ["b", "a"])


def test_of_a_run_that_was_rewound_it_is_told_that_what_it_did_before_stays():
    failed = a_failed_run(RunError("ValueError", "no"))
    end = failed.journal[-1]._replace(seq=3)
    journal = [a_completed_step(1, "book"), an_entry(2, Kind.REWOUND, "book", body="ada"), end]
    stays = "It was rewound: what it had done before that, and has not come to again, is not undone."
    assert stays in said(msgspec.structs.replace(failed, journal=tuple(journal)))
    assert stays not in said(failed)


def test_what_was_asked_and_is_not_yet_taken_in_is_told():
    text = said(a_record(told=[a_fact(FactKind.CANCEL, "too late")], attempts=[an_attempt()]))
    assert "It was asked to be cancelled 30.0s ago by ada (too late)" in text


def test_a_deadline_to_come_is_told():
    assert "Its deadline is 2027-01-15 13:01:30Z, in 1h 00m" in said(a_record(deadline=NOW + HOUR))


def test_an_ended_run_says_how_when_and_why():
    assert said(an_ended_run(RunState.COMPLETED, 1)) == (
        "It ended as completed at 2027-01-15 12:00:01Z, 1.0s after it was started."
    )
    failed = a_failed_run(RunError("ValueError", "no", step="charge", attempts=4, cause=Cause.RAISED))
    assert "The cause was step 'charge' after 4 attempts (raised): ValueError: no." in said(failed)
    assert "It was cancelled: too late." in said(an_ended_run(RunState.CANCELLED, "too late"))
    undos = [a_completed_step(1, "charge"), a_completed_step(2, "undo:charge")]
    undone = an_ended_run(RunState.UNDONE, RunError("ValueError", "no"), journal=undos)
    assert "Undone, in this order: 'charge'." in said(undone)
    undos[1] = undos[1]._replace(outcome=Outcome.FAILED, body=a_failed_step("release", "no", 1).body)
    failed = an_ended_run(RunState.UNDO_FAILED, RunError("ValueError", "no"), journal=undos)
    assert "Could not be undone: 'charge'. That needs a person." in said(failed)
    assert "Undone" not in said(failed)
    assert bytes(explain(an_ended_run(RunState.COMPLETED, [1])).facts["result"]) == b"[1]"
