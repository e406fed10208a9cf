"""What an ended run says of its way: what was cured and how, what stopped it, and what nobody knows."""

from typing import Any

import msgspec

from tests.unit.cli.records import (
    NOON,
    a_completed_step,
    a_failed_run,
    a_failed_step,
    a_judged_attempt,
    an_ended_run,
    an_entry,
)
from watchbill.app.explain import MOST_TROUBLE, explain
from watchbill.clock import SECOND
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import OF_A_PERSON, TOOK_EFFECT, UNANSWERED, Decision, DecisionRow
from watchbill.model.failure import Cause, FinalFailure, RunError
from watchbill.model.resolution import Action
from watchbill.model.states import RunState
from watchbill.store.protocol import Record


def decided(call: str, n: int, chosen: str, message: str = "", actor: str = "scheduler") -> DecisionRow:
    body = msgspec.json.encode(Decision(rule="", chosen=chosen, step=call, message=message))
    return DecisionRow(1, call, 0, n, actor, body)


def with_decisions(record: Record, *decisions: DecisionRow) -> Record:
    return msgspec.structs.replace(record, decisions=tuple([(row, NOON + 2 * SECOND) for row in decisions]))


def completed(*journal: JournalEntry, decisions: tuple[DecisionRow, ...]) -> list[str]:
    explained = explain(with_decisions(an_ended_run(RunState.COMPLETED, 1, journal=journal), *decisions))
    return [sentence for sentence in explained.sentences if sentence.startswith("  ") or "in trouble" in sentence]


def test_completed_run_says_of_each_call_that_failed_how_it_was_cured() -> None:
    by_a_person = a_completed_step(2, "refund")._replace(agent=None, started_at=None)
    said = completed(
        a_completed_step(1, "charge"),
        by_a_person,
        a_completed_step(3, "ship"),
        a_failed_step("mail", "no", 2)._replace(seq=4),
        decisions=(
            a_judged_attempt("charge", 1, "not yet"),
            a_judged_attempt("charge", 2, "still not"),
            a_judged_attempt("refund", 1, "no"),
            a_judged_attempt("ship", 1, "lost"),
            decided("ship", 2, TOOK_EFFECT),
            a_judged_attempt("mail", 1, "no"),
        ),
    )
    assert said == [
        "On the way 4 calls were in trouble:",
        "  'charge' failed 2 times, the last time with ValueError: still not; attempt 3 was done",
        "  'refund' failed once with ValueError: no; a person gave its outcome",
        "  'ship' failed once with ValueError: lost; its probe said that it had taken effect",
        "  'mail' failed 2 times, the last time with ValueError: no; it failed for good, and the workflow went on",
    ]


def test_run_that_a_person_stopped_as_a_failure_names_that_person() -> None:
    stopped = a_failed_run(RunError("Stopped", "no"))
    decisions = [
        decided("charge", OF_A_PERSON, Action.RETRY, "once more", actor="bob"),
        decided("charge", OF_A_PERSON, Action.UNDO, "wrong order", actor="ada"),
    ]
    explained = explain(with_decisions(stopped, *decisions))
    assert "The cause was ada, who stopped it as a failure, to have it undone: wrong order." in explained.sentences
    assert explained.facts["by"] == "ada"


def test_run_that_was_late_names_its_deadline() -> None:
    late: Any = an_ended_run(
        RunState.FAILED, RunError("DeadlineExceeded", "late"), after=70 * SECOND, deadline=NOON + 60 * SECOND
    )
    said = "its deadline, 2027-01-15 12:01:00Z: it had not ended by then, and was stopped; it ended 10.0s later."
    assert f"The cause was {said}" in explain(late).sentences


def test_failed_run_says_for_whom_it_waited_in_vain() -> None:
    message = "no message came on 'paid' within 60 s"
    waited = [decided("receive", n, UNANSWERED, message) for n in (1, 2)]
    explained = explain(with_decisions(a_failed_run(RunError("TimeoutError", "no")), *waited))
    last = "until 2027-01-15 12:00:02Z, the last of 2 times that it waited in vain."
    assert f"No message came on 'paid' within 60 s, {last}" in explained.sentences
    assert len(explained.facts["unanswered"]) == 2


def test_failed_run_tells_the_last_of_much_trouble() -> None:
    judged = [a_judged_attempt("charge", number, f"no {number}") for number in range(1, MOST_TROUBLE + 1)]
    explained = explain(with_decisions(a_failed_run(RunError("ValueError", "no")), *judged))
    assert f"On the way, the last {MOST_TROUBLE} of {2 * MOST_TROUBLE}:" in explained.sentences
    assert len(explained.facts["trouble"]) == MOST_TROUBLE


def test_failed_run_names_calls_of_which_nobody_knows_whether_they_took_effect() -> None:
    final = FinalFailure(step="charge", type="Lost", message="gone", attempts=1, cause=Cause.LOST)
    lost = an_entry(1, Kind.STEP, "charge", body=final, outcome=Outcome.FAILED)
    record = an_ended_run(RunState.FAILED, RunError("StepFailed", "no"), journal=[lost])
    record = with_decisions(record, a_judged_attempt("charge", 1, "gone"))
    explained = explain(record)
    assert explained.facts["may_have_taken_effect"] == ["charge"]
    assert any(one.startswith("Whether 'charge' took effect nobody knows") for one in explained.sentences)


def test_run_whose_journal_has_no_end_says_only_that_it_ended() -> None:
    record = an_ended_run(RunState.COMPLETED, 1)
    assert len(explain(msgspec.structs.replace(record, journal=())).sentences) == 1
    kept = msgspec.structs.replace(record, journal=(a_completed_step(1),))
    assert len(explain(kept).sentences) == 1
