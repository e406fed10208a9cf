"""Tables of gates and incidents."""

from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec

from watchbill.cli.fields import IncidentPage, Question
from watchbill.cli.tables import drawn, list_of_gates, list_of_incidents, list_of_questions, page_of_incident
from watchbill.model.gate import GateRow
from watchbill.model.incident import Incident
from watchbill.store.protocol import MOST_COUNTED

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
OPEN = Incident("1f", "no agent for gpu", "open", 12, "no agent for gpu: 12 calls wait", "start one: x", NOON, None)


def test_a_gate_is_a_line_with_what_it_allows_and_who_is_there():
    busy = GateRow("limit:charge", 5, "10/s", 5, 12, 0.5, paused=False)
    crowded = GateRow("limit:send:ann", None, "1/m", 0, MOST_COUNTED, 1.0, paused=True)
    header, first, second = drawn(list_of_gates([busy, crowded])).splitlines()
    assert header.split() == ["NAME", "AT", "ONCE", "RATE", "RUNNING", "WAITING", "FAILURES", "RETRIES", "STANDING"]
    assert first.split() == ["limit:charge", "5", "10/s", "5", "12"]
    assert second.split() == ["limit:send:ann", "1/m", "0", "1,000", "or", "more", "paused"]
    assert drawn(list_of_gates([])) == "no gates"


def test_a_dependency_is_a_line_with_how_it_is_and_when_it_is_tried():
    well = GateRow("uses:stripe", None, None, 0, 3, None, paused=False, breaker="closed", failures=0)
    change = partial(msgspec.structs.replace, well)
    tried = NOON + timedelta(seconds=5)
    down = change(breaker="open", failures=5, why="5 in a row", opened_at=NOON, next_try_at=tried)
    leaving = change(breaker="closing", opened_at=NOON, pace=2.5)
    paused = change(paused=True, paused_by="ann", paused_why="a flood")
    trying = change(retries=7, budget=1_030)
    spent = change(retries=30, budget=30, next_retry_at=tried)
    _, *lines, some, all_of_them = drawn(list_of_gates([well, down, leaving, paused, trying, spent])).splitlines()
    assert some.split() == ["uses:stripe", "0", "3", "0", "7", "of", "1,030", "up"]
    assert all_of_them.split(maxsplit=7)[4:] == [
        "30",
        "of",
        "30",
        "up, the next retry may start at 2026-06-01 12:00:05Z",
    ]
    assert [line.split(maxsplit=4)[-1] for line in lines] == [
        "up",
        "down since 2026-06-01 12:00:00Z, the next try is at 2026-06-01 12:00:05Z: 5 in a row",
        "coming up: 2.5 leave in a second",
        "paused by ann: a flood",
    ]
    tested = change(breaker="half-open", opened_at=NOON, why="5 in a row")
    assert drawn(list_of_gates([tested])).endswith("being tried since 2026-06-01 12:00:00Z: 5 in a row")


def test_an_incident_is_a_line_and_what_to_do():
    healed = msgspec.structs.replace(OPEN, id="20", state="resolved", resolved_at=NOON + timedelta(minutes=2))
    _, first, remedy, second = drawn(list_of_incidents([OPEN, healed])).splitlines()
    assert first.split(maxsplit=4) == ["1f", "open", "2026-06-01", "12:00:00Z", "no agent for gpu: 12 calls wait"]
    assert remedy.strip() == "-> start one: x"
    assert second.startswith("20  resolved")
    assert drawn(list_of_incidents([])) == "no incidents"


def test_the_page_of_an_incident_has_all_about_it():
    page = drawn(
        page_of_incident(
            IncidentPage(msgspec.structs.replace(OPEN, state="resolved", resolved_at=NOON + timedelta(minutes=2)), ())
        )
    )
    assert "incident     1f" in page
    assert "cause        no agent for gpu" in page
    assert "resolved     2026-06-01 12:02:00Z, after 2m 00s" in page
    assert "what to do" not in page, "nothing is to be done about it any more"
    told = drawn(page_of_incident(IncidentPage(msgspec.structs.replace(OPEN, ordered_by="root"), ())))
    assert "what to do   start one: x" in told
    assert "told         by root, all calls that it had then" in told
    assert "decided" not in told, "what comes of it the runs say, and they may refuse it"


def test_what_somebody_wants_for_all_of_an_incident_is_said_with_how_far_it_has_come():
    ordered = msgspec.structs.replace(
        OPEN, ordered_by="root", ordered="resume", reason="mended", ordered_at=NOON, per_second=10, untold=1_120
    )
    words = "resume by root at 2026-06-01 12:00:00Z (mended); 1,120 calls still to be told, 10 a second"
    page = drawn(page_of_incident(IncidentPage(ordered, ())))
    assert f"ordered      {words}" in page
    assert "what to do" not in page, "somebody has decided"
    listed = drawn(list_of_incidents([ordered]))
    assert f"-> ordered: {words}" in listed
    assert "start one: x" not in listed


def test_a_call_of_the_inbox_is_decided_and_a_question_answered():
    who = "ada"
    asked = Question(
        "1", "o-1", "ask", "ship it?", "", {}, NOON, None, who, "question", ("answer",), None, None, None, None, None
    )
    call = msgspec.structs.replace(asked, id="2", kind="escalate", actions=("retry",))
    _, first, second = drawn(list_of_questions([asked, call])).splitlines()
    assert "answered by ada" in first
    assert "decided by ada" in second
