"""How tables look on terminals of 100 and 80 columns."""

from datetime import timedelta

import pytest

from tests.unit.cli.records import NOON, a_record
from watchbill.app.agents import AgentStatus
from watchbill.cli.fields import Question
from watchbill.cli.forms import Field, example, form_fields
from watchbill.cli.output import wrapped
from watchbill.cli.tables import drawn, list_of_agents, list_of_questions, list_of_runs, page_of_question
from watchbill.cli.times import without_date
from watchbill.clock import SECOND, to_datetime
from watchbill.model.agent import AgentStep
from watchbill.model.states import RunState

TODAY = "2027-01-15"
ASKED_AT = to_datetime(NOON)
FORM = {
    "$ref": "#/$defs/Approval",
    "$defs": {
        "Approval": {
            "type": "object",
            "properties": {
                "decision": {"enum": ["approve", "reject"]},
                "amount": {"type": "integer", "minimum": 1},
                "note": {"type": "string", "default": ""},
            },
            "required": ["decision", "amount"],
        }
    },
}
QUESTION = Question(
    "35f998026060001", "purchase-desk", "ask", "Shall we buy this for the northern office, and at what price?",
    "procurement", FORM, ASKED_AT, None, None, "question", ("answer",), None, None, None,
    ASKED_AT + timedelta(hours=14), "directors",
)  # fmt: skip
CALL = Question(
    "35f997b67e20001", "payment-ada-1", "charge", "step 'charge' has failed, and its author wants a person to decide:"
    " RuntimeError: the bank refused the payment because the account has been closed",
    "billing-team", {}, ASKED_AT, None, None, "escalate", ("retry", "provide"), "35f997b67e20000", "ann",
    ASKED_AT + timedelta(minutes=15), None, None,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


LONG = "rendering_of_the_quarterly_report"
RUNS = [
    a_record(id=f"delivery-{32 * 'f'}", workflow="delivery", status=RunState.WAITING, wake_at=NOON + 100 * SECOND),
    a_record(id=f"{LONG}-{32 * '7'}", workflow=LONG, known=False, status=RunState.SCHEDULED),
    a_record(id="short-1", workflow="short"),
]
AGENT = AgentStatus(
    id="35f9979d628d734", name="north-22434", state="busy", region="", needs=["gpu", "large-memory"], slots=50,
    running=1, steps=[AgentStep("report-2026-q3", "long_one", "long_one")],
    host="machine-of-the-north", pid=22434, version="1", workers=2, lag=0, joined_at=ASKED_AT, beat_at=ASKED_AT,
)  # fmt: skip


RUNS_AT_100 = """\
ID                                                            WORKFLOW      STATE             AGE
  WAITING FOR
delivery-ffffffffffffffffffffffffffffffff                     delivery      waiting           1m 30s
  time, until 12:01:40Z; next: its scheduler, in 10.0s
rendering_of_the_quarterly_report-77777777777777777777777777  rendering_o…  scheduled,        1m 30s
777777                                                                      waiting_for_code
  code: no scheduler that is running knows workflow 'rendering_of_the_quarterly_report'; next:
  whoever starts a process with workflow 'rendering_of_the_quarterly_report'
short-1                                                       short         running           1m 30s
  next: its scheduler"""
RUNS_AT_80 = """\
ID                                        WORKFLOW      STATE             AGE
  WAITING FOR
delivery-fffffffffffffffffffffffffffffff  delivery      waiting           1m 30s
f
  time, until 12:01:40Z; next: its scheduler, in 10.0s
rendering_of_the_quarterly_report-777777  rendering_o…  scheduled,        1m 30s
77777777777777777777777777                              waiting_for_code
  code: no scheduler that is running knows workflow
  'rendering_of_the_quarterly_report'; next: whoever starts a process with
  workflow 'rendering_of_the_quarterly_report'
short-1                                   short         running           1m 30s
  next: its scheduler"""
AGENTS_AT_100 = """\
ID               NAME         STATE  RUNS     HOST                        WORKERS  LAST BEAT
35f9979d628d734  north-22434  busy   1 of 50  machine-of-the-north 22434  2        12:00:00Z
  has gpu, large-memory
  runs report-2026-q3 long_one"""
AGENTS_AT_80 = """\
ID               NAME         STATE  RUNS     HOST            WORKERS  LAST BEAT
35f9979d628d734  north-22434  busy   1 of 50  machine-of-th…  2        12:00:00Z
  has gpu, large-memory
  runs report-2026-q3 long_one"""
INBOX_AT_100 = """\
ID               KIND      TO            ASKED      RUN            NOTE
  QUESTION
35f997b67e20001  escalate  billing-team  12:00:00Z  payment-ada-1  held by ann until 12:15:00Z
  step 'charge' has failed, and its author wants a person to decide: RuntimeError: the bank refused
  the payment because the account has been closed
35f998026060001  question  procurement   12:00:00Z  purchase-desk  until 2027-01-16 02:00:00Z, then
                                                                   directors is asked
  Shall we buy this for the northern office, and at what price?"""
INBOX_AT_80 = """\
ID               KIND      TO            ASKED      RUN
  NOTE
  QUESTION
35f997b67e20001  escalate  billing-team  12:00:00Z  payment-ada-1
  held by ann until 12:15:00Z
  step 'charge' has failed, and its author wants a person to decide:
  RuntimeError: the bank refused the payment because the account has been closed
35f998026060001  question  procurement   12:00:00Z  purchase-desk
  until 2027-01-16 02:00:00Z, then directors is asked
  Shall we buy this for the northern office, and at what price?"""
QUESTION_AT_100 = """\
item         35f998026060001
kind         question
question     Shall we buy this for the northern office, and at what price?
to           procurement
run          purchase-desk, call ask
asked        12:00:00Z
note         until 2027-01-16 02:00:00Z, then directors is asked
answer       JSON, an object of

FIELD     TYPE                  NOTE
decision  "approve" | "reject"
amount    whole number          at least 1
note      text                  optional; default ""

to answer    watchbill inbox answer 35f998026060001 '{"decision": "approve", "amount": 0}'"""
CALL_AT_80 = """\
item         35f997b67e20001
kind         escalate
question     step 'charge' has failed, and its author wants a person to decide:
             RuntimeError: the bank refused the payment because the account has
             been closed
to           billing-team
run          payment-ada-1, call charge
asked        12:00:00Z
note         held by ann until 12:15:00Z
incident     35f997b67e20000
to answer    watchbill incidents retry 35f997b67e20001 --reason TEXT
             watchbill incidents provide 35f997b67e20001 JSON --reason TEXT"""


@pytest.mark.parametrize(
    ("blocks", "width", "seen"),
    [
        (list_of_runs(RUNS), 100, RUNS_AT_100),
        (list_of_runs(RUNS), 80, RUNS_AT_80),
        (list_of_agents([AGENT]), 100, AGENTS_AT_100),
        (list_of_agents([AGENT]), 80, AGENTS_AT_80),
        (list_of_questions([CALL, QUESTION]), 100, INBOX_AT_100),
        (list_of_questions([CALL, QUESTION]), 80, INBOX_AT_80),
        (page_of_question(QUESTION), 100, QUESTION_AT_100),
        (page_of_question(CALL), 80, CALL_AT_80),
    ],
)
def test_tables_fit_their_terminal_and_break_no_words(blocks, width, seen):
    assert drawn(blocks, width, TODAY) == seen
    assert all(len(line) <= width for line in seen.split("\n"))


def test_sentences_of_explain_are_wrapped_between_words():
    said = "Call 'render' is ready for attempt 1, but there is no agent for gpu; start one:"
    lines = wrapped([f"{said} watchbill agent APP --needs gpu.", "", 90 * "x"], 80).split("\n")
    assert lines[:2] == [
        said,
        "watchbill agent APP --needs gpu.",
    ]
    assert lines[2:] == ["", 90 * "x"], "a word that is longer than the line can be copied"


def test_times_of_today_have_no_date():
    said = "since 2027-01-15 12:00:00Z, until 2027-01-16 12:00:00Z, of 2027-01-15"
    assert without_date(said, TODAY) == "since 12:00:00Z, until 2027-01-16 12:00:00Z, of 2027-01-15"


@pytest.mark.parametrize(
    ("form", "fields", "answer"),
    [
        ({"type": "boolean"}, "true or false", "true"),
        ({"type": "string", "maxLength": 5}, "text; at most 5 characters", '"..."'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "whole number or null", "0"),
        ({"type": "array", "items": {"type": "string", "format": "date"}}, "list of text (date)", "[]"),
        ({}, "any JSON", '"..."'),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "any JSON", '"..."'),
    ],
)
def test_forms_that_are_no_objects_are_described_in_words(form, fields, answer):
    assert form_fields(form) == fields
    assert example(form) == answer


def test_form_of_an_object_within_an_object_is_described_to_its_fields():
    inner = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    form = {"type": "object", "properties": {"address": inner}, "required": ["address"]}
    assert form_fields(form) == [Field("address", "object with city: text", "")]
    assert example(form) == '{"address": {"city": "..."}}'
