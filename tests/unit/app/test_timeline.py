"""What has happened to a run, in order."""

from typing import Any

import msgspec

from tests.unit.cli.records import (
    NOON,
    a_completed_step,
    a_failed_step,
    a_judged_attempt,
    a_record,
    an_attempt,
    an_ended_run,
    an_entry,
)
from watchbill.app.timeline import timeline_of
from watchbill.app.words import moment
from watchbill.clock import SECOND, to_datetime
from watchbill.model.attempt import Progress
from watchbill.model.call import Kind
from watchbill.model.decision import Decision, DecisionRow
from watchbill.model.failure import Cause, Failure, RunError
from watchbill.model.states import AttemptState, RunState


def kinds(record) -> list[str]:
    return [event.kind for event in timeline_of(record)]


def test_a_run_is_created_started_does_its_steps_and_ends():
    events = timeline_of(an_ended_run(RunState.COMPLETED, 1, journal=[a_completed_step()]))
    assert [event.kind for event in events] == [
        "run_created",
        "run_started",
        "step_started",
        "step_completed",
        "run_completed",
    ]
    began = events[2]
    assert (began.at, began.step, began.attempt, began.agent) == (to_datetime(NOON), "charge", 1, 7)


def test_an_attempt_that_was_judged_began_failed_and_was_decided_about():
    record = a_record(
        journal=[a_failed_step("charge", "no", 2)],
        decisions=[a_judged_attempt("charge", 1, "not yet"), a_judged_attempt("charge", 2, "no")],
    )
    failed = [event for event in timeline_of(record) if event.kind == "step_failed"]
    assert [(event.attempt, event.cause, event.note) for event in failed] == [
        (1, "raised", "ValueError: not yet"),
        (2, "raised", "ValueError: no"),
    ]
    assert kinds(record).count("step_started") == 2
    assert kinds(record).count("park") == 2
    assert kinds(record).count("step_gave_up") == 1


def test_an_attempt_that_was_judged_twice_is_told_once():
    lost = Decision("found lost", "mark failed", "charge", 1, 0, 7, NOON, NOON + SECOND, Cause.LOST, "Lost", "died")
    again = msgspec.structs.replace(lost, rule="lost: at once", chosen="retry")
    rows = [
        DecisionRow(1, "charge", 5, n, "supervisor", msgspec.json.encode(decision))
        for n, decision in enumerate([lost, again])
    ]
    assert sorted(kinds(a_record(decisions=rows))) == [
        "mark_failed", "retry", "run_created", "run_started", "step_failed", "step_started",
    ]  # fmt: skip


def test_the_number_of_the_attempt_that_succeeded_is_behind_those_that_did_not():
    record = a_record(journal=[a_completed_step()], decisions=[a_judged_attempt("charge", 1, "not yet")])
    [done] = [event for event in timeline_of(record) if event.kind == "step_completed"]
    assert done.attempt == 2


def test_what_is_under_way_is_told_with_its_progress():
    row = an_attempt(progress=msgspec.json.encode(Progress(1, 2, "half")), progress_at=NOON + SECOND)
    began, far = timeline_of(a_record(attempts=[row]))[2:]
    assert (began.kind, far.kind, far.note) == ("step_started", "progress", "1 of 2: half")
    failed = an_attempt(
        state=AttemptState.FAILED,
        ended_at=NOON + SECOND,
        result=msgspec.json.encode(Failure("ValueError", "no")),
    )
    assert timeline_of(a_record(attempts=[failed]))[-1].note == "ValueError: no"


def test_every_kind_of_entry_has_its_word():
    bodies: dict[Kind, Any] = {Kind.CANCEL: "too late", Kind.LATE: "its deadline has passed"}
    bodies |= {Kind.REWOUND: "ada", Kind.STOPPED: "no"}
    bodies[Kind.SPARED] = {"step": "k", "type": "Ambiguous", "message": "no answer", "attempts": 1, "cause": "raised"}
    bodies[Kind.ACTING] = NOON + 8 * SECOND
    until = moment(to_datetime(NOON + 8 * SECOND))
    others = [kind for kind in Kind if kind not in (Kind.END, Kind.STEP)]
    entries = [an_entry(n, kind, "k", body=bodies.get(kind)) for n, kind in enumerate(others, 1)]
    assert len(timeline_of(a_record(journal=entries))[2:]) == len(entries) - 1, "what may act matters to an undo alone"
    events = timeline_of(a_record(status=RunState.UNDOING, journal=entries))[2:]
    assert [event.kind for event in events] == [
        *("timer", "cancel", "message", "child_ended", "answered", "patched", "rewound", "continued", "late"),
        *("edited", "stopped", "not_undone", "may_still_act"),
    ]
    assert all(event.kind for event in events)
    assert {event.kind: event.note for event in events if event.note} == {
        "cancel": "too late",
        "rewound": "by ada",
        "late": "its deadline has passed",
        "stopped": "no",
        "not_undone": "it took no effect (Ambiguous: no answer)",
        "may_still_act": f"an attempt was taken from its agent, which may act on it until {until}",
    }


def test_every_event_names_its_actor():
    asked = DecisionRow(1, "", 1, -1, "ada", msgspec.json.encode(Decision("asked", "pause", message="stock-taking")))
    entries = [an_entry(1, Kind.MESSAGE, "go"), an_entry(2, Kind.REWOUND, "charge", body="eve"), a_completed_step()]
    events = timeline_of(a_record(journal=entries, decisions=[asked, a_judged_attempt("ship", 1, "no")]))
    assert {event.kind: event.actor for event in events} == {
        "run_created": "somebody",
        "run_started": "scheduler",
        "message": "somebody",
        "rewound": "eve",
        "step_started": "agent",
        "step_completed": "agent",
        "step_failed": "agent",
        "park": "supervisor",
        "pause": "ada",
    }


def test_who_asked_is_named():
    asked = DecisionRow(1, "", 1, -1, "ada", msgspec.json.encode(Decision("asked", "pause", message="stock-taking")))
    assert [(event.kind, event.note) for event in timeline_of(a_record(decisions=[asked]))][-1] == (
        "pause",
        "by ada: stock-taking",
    )


def test_an_ended_run_tells_its_error():
    [*_, end] = timeline_of(an_ended_run(RunState.FAILED, RunError("ValueError", "no", cause=Cause.RAISED)))
    assert (end.kind, end.cause, end.note) == ("run_failed", "raised", "ValueError: no")
