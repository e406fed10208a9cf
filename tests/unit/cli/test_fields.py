"""What programs read about a run: exactly these fields, in this order."""

import json
from typing import Any

import msgspec
import pytest

from tests.unit.cli.records import a_completed_step, a_failed_run, a_record, an_attempt, an_ended_run
from watchbill.cli.fields import run_fields, shown_fields
from watchbill.model.attempt import Progress
from watchbill.model.failure import Cause, RunError
from watchbill.model.states import RunState

LISTED = [
    *("id", "workflow", "version", "state", "health", "paused", "priority", "tags", "parent"),
    *("created_at", "ended_at", "waiting_for", "progress", "paused_by", "paused_why", "paused_with"),
]


def as_json(value: object) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(value))


def test_a_run_whose_code_nobody_has():
    found = as_json(run_fields(a_record(known=False)))
    assert (found["health"], found["waiting_for"][:5]) == ("waiting_for_code", "code:")
    held = as_json(run_fields(a_record(known=False, held="waits for nothing")))
    assert held["health"] == "waiting_for_person", "what only a person can change comes first"


def test_a_listed_run_has_these_fields():
    found = as_json(run_fields(an_ended_run(RunState.COMPLETED, 1, version=3, priority=-5)))
    assert list(found) == LISTED
    assert found == {
        "id": "order-1",
        "workflow": "order",
        "version": 3,
        "state": "completed",
        "health": "ok",
        "paused": False,
        "priority": -5,
        "tags": [],
        "parent": None,
        "created_at": "2027-01-15T12:00:00Z",
        "ended_at": "2027-01-15T12:00:01Z",
        "waiting_for": None,
        "progress": None,
        "paused_by": None,
        "paused_why": None,
        "paused_with": None,
    }


def test_an_open_run_has_no_end():
    found = as_json(run_fields(a_record(attempts=[an_attempt()])))
    assert (found["state"], found["ended_at"], found["waiting_for"]) == ("running", None, "charge")


def test_a_shown_run_has_three_more():
    assert list(shown_fields(a_record())) == [*LISTED, "steps", "result", "error"]


def test_steps_are_those_of_the_status():
    progress = msgspec.json.encode(Progress(3, 4, "chunk 3"))
    found = as_json(
        shown_fields(a_record(journal=[a_completed_step()], attempts=[an_attempt("send", progress=progress)]))
    )
    charge, send = found["steps"]
    assert list(charge) == ["key", "step", "state", "progress", "attempts"]
    assert list(charge["attempts"][0]) == ["number", "rung", "agent", "started_at", "ended_at", "cause", "error"]
    assert charge["state"] == "completed"
    assert (send["state"], send["progress"]) == ("running", {"done": 3, "total": 4, "note": "chunk 3"})


@pytest.mark.parametrize("result", ["null", "12345678901234567890123", "0.1000", '{"b":1,"a":[true]}', '"\\u001b"'])
def test_a_result_is_the_json_that_was_stored(result):
    shown = shown_fields(an_ended_run(RunState.COMPLETED, msgspec.Raw(result.encode())))
    assert msgspec.json.encode(shown["result"]) == result.encode()
    assert shown["error"] is None


def test_a_failure_says_what_where_and_why():
    error = RunError("ValueError", "no stock", "Traceback ...", step="charge", attempts=3, cause=Cause.LATE)
    shown = as_json(shown_fields(a_failed_run(error)))
    assert shown["result"] is None
    assert shown["error"] == {
        "type": "ValueError",
        "message": "no stock",
        "traceback": "Traceback ...",
        "step": "charge",
        "attempts": 3,
        "cause": "late",
    }


def test_a_failure_of_the_workflow_itself_names_no_step():
    shown = as_json(shown_fields(a_failed_run(RunError("KeyError", "'a'"))))
    assert (shown["error"]["step"], shown["error"]["attempts"], shown["error"]["cause"]) == (None, None, "raised")


def test_a_cancelled_run_says_the_reason():
    shown = as_json(shown_fields(an_ended_run(RunState.CANCELLED, "changed my mind")))
    assert shown["error"] == {
        "type": "RunCancelled",
        "message": "changed my mind",
        "traceback": "",
        "step": None,
        "attempts": None,
        "cause": "cancelled",
    }
