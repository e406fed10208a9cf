"""What people read about runs."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tests.unit.cli.records import (
    HOSTILE,
    NOON,
    SEEN,
    a_completed_step,
    a_failed_run,
    a_failed_step,
    a_judged_attempt,
    a_record,
    an_attempt,
    an_ended_run,
)
from watchbill.app.words import span
from watchbill.cli.tables import LONGEST_CELL, LONGEST_RESULT, drawn, list_of_runs, page_of_run
from watchbill.clock import SECOND
from watchbill.model.decision import OF_A_PERSON, Decision, DecisionRow
from watchbill.model.failure import RunError
from watchbill.model.pausing import Pause
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Record


def listed(*records: Record) -> list[str]:
    return drawn(list_of_runs(records)).split("\n")


def page(record: Record) -> list[str]:
    return drawn(page_of_run(record)).split("\n")


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


# --- lists


def test_a_list_has_a_line_for_each_run():
    waiting = a_record(id="nap-1", workflow="nap", status=RunState.WAITING, wake_at=NOON + 100 * SECOND)
    done = an_ended_run(RunState.COMPLETED, None, journal=[a_completed_step()])
    assert listed(waiting, done) == [
        "ID       WORKFLOW  STATE      STEPS  AGE     TOOK  WAITING FOR",
        "nap-1    nap       waiting           1m 30s        time, until 2027-01-15 12:01:40Z;"
        " next: its scheduler, in 10.0s",
        "order-1  order     completed  1/1    1m 30s  1.0s",
    ]


def test_a_run_whose_code_nobody_has_says_so_in_lists_and_on_its_page():
    left = a_record(known=False, status=RunState.SCHEDULED)
    waits = "code: no scheduler that is running knows workflow 'order'"
    assert f"scheduled, waiting_for_code         1m 30s        {waits}" in listed(left)[1]
    assert "state        scheduled, waiting_for_code" in page(left)
    assert f"waiting for  {waits}" in page(left)
    assert "waiting_for_code" not in listed(an_ended_run(RunState.COMPLETED, None, known=False))[1]


def test_an_empty_list_says_so():
    assert listed() == ["no runs"]


def test_what_is_out_of_the_ordinary_stands_beside_the_state():
    late = a_record(attempts=[an_attempt(watch_at=NOON, policy=b'{"timeout":1}')], paused=True, cancelling=True)
    assert "  running, late, paused, cancel asked for  " in listed(late)[1]


def test_a_run_that_is_paused_with_another_one_names_it():
    by_bob = DecisionRow(
        1, "", 9, OF_A_PERSON, "bob", msgspec.json.encode(Decision("", "pause", message="a flood", run="year"))
    )
    record = a_record(paused=True, pauses=Pause.PARENT, decisions=[by_bob])
    assert "  running, paused with year  " in listed(record)[1]
    page = drawn(page_of_run(record))
    assert "paused       by bob: a flood" in page
    assert "by bob, with run 'year': a flood" in page


def test_ids_are_never_cut_or_folded_off_a_terminal():
    id = "order-" + 190 * "x"
    assert len(listed(a_record(id=id, held=2 * LONGEST_CELL * "because "))) == 2
    assert f"{id}  order" in listed(a_record(id=id))[1]


def test_a_hostile_id_and_a_hostile_name_are_shown_and_do_nothing():
    assert listed(a_record(id=HOSTILE, workflow=HOSTILE))[1].startswith(f"{SEEN}  {SEEN}  running")


# --- one run


def test_a_page_of_a_run_that_completed():
    assert page(an_ended_run(RunState.COMPLETED, {"paid": 12}, journal=[a_completed_step()], version=2)) == [
        "run          order-1",
        "workflow     order, version 2",
        "state        completed",
        "created      2027-01-15 12:00:00Z",
        "since        2027-01-15 12:00:01Z, after 1.0s",
        "progress     1 of 1 steps seen",
        "",
        "timeline",
        "AT             AFTER   WHAT            STEP    #  AGENT  NOTE",
        "12:00:00.000Z  +0ms    run created                       by start()",
        "12:00:00.000Z  +0ms    run started",
        "12:00:00.000Z  +0ms    step started    charge  1  7",
        "12:00:00.250Z  +250ms  step completed  charge  1  7",
        "12:00:00.250Z  +250ms  run completed",
        "",
        "STEP    STATE      #  AGENT  STARTED        TOOK   OUTCOME",
        "charge  completed  1  7      12:00:00.000Z  250ms  completed",
        "",
        "result",
        "{",
        '  "paid": 12',
        "}",
    ]


def test_every_attempt_of_a_step_has_a_line():
    record = a_record(
        journal=[a_failed_step("charge", "no", 2)],
        decisions=[a_judged_attempt("charge", 1, "not yet"), a_judged_attempt("charge", 2, "no")],
        attempts=[an_attempt("send", progress=b'{"done":3,"total":4,"note":"chunk 3"}')],
    )
    assert page(record)[-4:] == [
        "STEP    STATE    #  AGENT  STARTED        TOOK    OUTCOME",
        "charge  failed   1  7      12:00:00.000Z  2.0s    raised: ValueError: not yet",
        "                 2  7      12:00:00.000Z  2.0s    raised: ValueError: no",
        "send    running  1  7      12:00:00.000Z  1m 30s  running 3 of 4: chunk 3",
    ]


def test_a_step_that_waits_for_its_first_attempt_has_a_line_too():
    record = a_record(attempts=[an_attempt(state=AttemptState.READY, started_at=None, agent=None, losses=0)])
    assert page(record)[-1] == "charge  ready"


def test_a_step_known_by_a_key_of_its_own_is_named():
    assert page(a_record(attempts=[an_attempt("chunk-12", step="encode")]))[-1].startswith("chunk-12 (encode)  running")


def test_an_attempt_of_another_day_says_which():
    record = a_record(attempts=[an_attempt(started_at=NOON + 86_400 * SECOND)], after=86_401 * SECOND)
    assert "  2027-01-16 12:00:00.000Z  1.0s  running" in page(record)[-1]


def test_an_open_run_says_what_it_waits_for():
    lines = page(a_record(attempts=[an_attempt()]))
    assert "since        2027-01-15 12:00:00Z, for 1m 30s" in lines
    assert "waiting for  charge" in lines


def test_a_held_run_says_why_line_by_line():
    lines = page(a_record(held="recorded: charge\nasked:    refund\x1b[2J"))
    at = lines.index("waiting for  a person")
    assert lines[at + 1 : at + 3] == ["held         recorded: charge", r"             asked:    refund\x1b[2J"]


def test_a_failure_ends_with_its_traceback():
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in charge\nValueError: no stock\n'
    lines = page(a_failed_run(RunError("ValueError", "no stock", trace, step="charge", attempts=3)))
    assert lines[-4:] == ["error (raised) in step 'charge' after 3 attempts", *trace.splitlines()]


def test_a_failure_without_traceback_ends_with_type_and_message():
    lines = page(a_failed_run(RunError("KeyError", "'a'")))
    assert lines[-2:] == ["error (raised)", "KeyError: 'a'"]


def test_hostile_errors_and_results_are_shown_and_do_nothing():
    failed = a_failed_run(RunError(HOSTILE, HOSTILE, f"{HOSTILE}\n[/nope]", step=HOSTILE, attempts=1))
    completed = an_ended_run(RunState.COMPLETED, {HOSTILE: HOSTILE})
    judged = a_record(journal=[a_failed_step("a", "", 1)], decisions=[a_judged_attempt("a", 1, HOSTILE)])
    for record in (failed, completed, judged):
        assert all(line.isprintable() for line in page(record))
    assert "[bold red]a[/bold red][/]" in "\n".join(page(failed))
    assert f"raised: ValueError: {SEEN}" in page(judged)[-1]


def test_a_long_error_is_cut_in_its_line_and_a_long_result_after_some_screens():
    judged = a_record(journal=[a_failed_step("a", "", 1)], decisions=[a_judged_attempt("a", 1, 5000 * "x")])
    assert len(page(judged)[-1]) < LONGEST_CELL + 80
    *_, text, note = page(an_ended_run(RunState.COMPLETED, 2 * LONGEST_RESULT * "x"))
    assert len(text) == LONGEST_RESULT
    assert note == "... cut here: 40,002 characters in all, `-o json` has them"


# --- spans


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0ms"),
        (0, "0ms"),
        (0.0123, "12ms"),
        (0.9999, "999ms"),
        (1, "1.0s"),
        (59.99, "59.9s"),
        (60, "1m 00s"),
        (3599, "59m 59s"),
        (3600, "1h 00m"),
        (86399, "23h 59m"),
        (86400, "1d 00h"),
        (100 * 86400, "100d 00h"),
    ],
)
def test_spans_have_the_two_units_that_matter(seconds, text):
    noon = datetime(2027, 1, 15, 12, tzinfo=UTC)
    assert span(noon, noon + timedelta(seconds=seconds)) == text


def test_of_very_many_steps_the_newest_are_shown_and_those_that_failed():
    journal = [a_failed_step("first", "no", 1), *(a_completed_step(n, f"charge.{n}") for n in range(2, 1_002))]
    lines = page(a_record(journal=journal))
    assert "... 800 steps are left out: `-o json` has them" in lines
    assert any(line.startswith("first ") for line in lines)
    assert any(line.startswith("charge.802 ") for line in lines)
    assert not any(line.startswith("charge.801 ") for line in lines)
    assert len(lines) < 500
