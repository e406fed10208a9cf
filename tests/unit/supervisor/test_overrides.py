"""Who judges by a policy that an operator has changed says so, and names it as its evidence."""

from typing import Any

import msgspec

from tests.unit.supervisor.rows import NOON, SECOND, a_failure, a_row
from watchbill.model.attempt import AttemptRow
from watchbill.model.decision import Decision
from watchbill.model.overridden import overridden
from watchbill.model.override import Changes, Override
from watchbill.model.policy import Policy, decode_policy
from watchbill.model.states import AttemptState
from watchbill.model.symptom import Late, NotYet
from watchbill.model.verdict import GiveUp, Judgement, TryLater
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import judge
from watchbill.supervisor.judgement import judgement


def changed(**changes: Any) -> bytes:
    override = Override("ann", "it is slow", NOON, Changes(**changes))
    return msgspec.json.encode(overridden(Policy(), "charge", {"charge": override}))


def judged(row: AttemptRow) -> Judgement:
    symptom = diagnose(row, NOON)
    assert symptom is not None
    return judgement(row, symptom, judge(symptom, row, decode_policy(row.policy), 0.0))


def test_every_decision_by_a_changed_policy_quotes_it_and_every_verdict_names_what_it_was_judged_by():
    row = a_row(failure=a_failure(), policy=changed(retries=0))
    verdict = judged(row)
    assert verdict.policy == row.policy
    decision = msgspec.json.decode(verdict.body or b"", type=Decision)
    assert decision.override == "retries 0 instead of 3, by ann at 2027-01-15 08:00:00Z (it is slow)"
    plain = msgspec.json.decode(judged(a_row(failure=a_failure())).body or b"", type=Decision)
    assert plain.override == ""


def test_what_is_left_of_the_budget_follows_from_the_changed_number():
    def after(failures: int, retries: int) -> object:
        row = a_row(failure=a_failure(), failures=failures, policy=changed(retries=retries))
        symptom = diagnose(row, NOON)
        assert symptom is not None
        return judge(symptom, row, decode_policy(row.policy), 0.0)

    assert isinstance(after(4, 6), TryLater)
    assert isinstance(after(7, 6), GiveUp)
    assert isinstance(after(1, 0), GiveUp)


def test_a_shorter_timeout_makes_what_runs_late_and_a_longer_one_or_more_time_does_not():
    def found(policy: bytes) -> object:
        row = a_row(AttemptState.RUNNING, started_at=NOON - 7_200 * SECOND, watch_at=NOON, policy=policy)
        return diagnose(row, NOON)

    assert found(msgspec.json.encode(Policy())) == Late(3_600 * SECOND)
    assert found(changed(timeout=60 * SECOND)) == Late(7_140 * SECOND)
    assert found(changed(timeout=7_201 * SECOND)) == NotYet(SECOND)
    assert found(msgspec.json.encode(Policy(extended=3_601 * SECOND))) == NotYet(SECOND)
