"""What was not chosen, and why not: only what could have been, in a few words."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.supervisor.rows import NOON, a_failure, a_row
from tests.unit.supervisor.test_any_row import NOW, rows
from tests.unit.supervisor.test_ladder import BOSS, OTHER, PLAIN, SOON, TEAM, with_cures
from watchbill.clock import SECOND
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.decision import Decision
from watchbill.model.failure import Cause, Doubt, Failure, Probed, Remedy
from watchbill.model.lost import Dead, Found
from watchbill.model.parked import DOUBT, ESCALATE, SETTLE
from watchbill.model.policy import QUARANTINE_AT, Policy
from watchbill.model.states import AttemptState
from watchbill.model.symptom import AgentDead, BackoffOver, CancelOverdue, Failed, Late, PersonLate, Stalled, Symptom
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import judge
from watchbill.supervisor.judgement import judgement

PROBED = with_cures(idempotent=False, probe=True)
BLIND = with_cures(idempotent=False)
NEXT_RUNG = a_failure(remedy=Remedy.NEXT_RUNG)
PERMANENT = a_failure(remedy=Remedy.GIVE_UP)
LOST = a_failure(Cause.LOST)


def decision_on(symptom: Symptom, policy: Policy, **row: Any) -> Decision:
    there = a_row(policy=msgspec.json.encode(policy), **row)
    body = judgement(there, symptom, judge(symptom, there, policy, 0.0)).body
    return msgspec.json.decode(body or b"", type=Decision)


def not_chosen(failure: Failure, policy: Policy, **row: Any) -> tuple[str, ...]:
    return decision_on(Failed(failure), policy, failure=failure, **row).rejected


def after_probe(probed: Probed | None, policy: Policy = PROBED, asked: int = 0, **row: Any) -> tuple[str, ...]:
    doubt = msgspec.json.encode(Doubt(LOST, asked))
    failure = Failure("ConnectionError", "no", probed=probed)
    return not_chosen(failure, policy, kind=RowKind.PROBE, doubt=doubt, **row)


def test_while_retries_are_left_neither_another_way_nor_the_end_is_chosen() -> None:
    three = Policy(retries=3)
    assert not_chosen(a_failure(), three) == ("give up: retries are left",)
    assert not_chosen(a_failure(), with_cures(OTHER)) == ("switch: retries are left",)
    assert not_chosen(a_failure(), with_cures(TEAM)) == ("ask a person: retries are left",)
    busy = a_failure(remedy=Remedy.WAIT)
    assert not_chosen(busy, three, failures=9) == ("give up: it asks to be waited for",)


def test_a_loss_says_how_far_it_is_from_a_quarantine() -> None:
    assert not_chosen(LOST, PLAIN, losses=2) == (f"quarantine: loss 2 of {QUARANTINE_AT}",)
    asked = with_cures(probe=True)
    assert not_chosen(LOST, asked, losses=2)[0] == "probe: it may be tried again without"
    assert not_chosen(LOST, PLAIN, losses=QUARANTINE_AT) == (
        f"retry: loss {QUARANTINE_AT} of {QUARANTINE_AT}",
        "give up: a person may know why",
    )


def test_another_way_says_why_not_the_same_again() -> None:
    policy = with_cures(OTHER)
    assert not_chosen(a_failure(), policy, failures=2) == (
        "retry: all 1 are used up",
        "give up: another way is left",
    )
    assert not_chosen(NEXT_RUNG, policy)[0] == "retry: ValueError is left out by Retry(on=, never=)"


def test_whoever_gives_up_says_what_was_not_left() -> None:
    assert not_chosen(a_failure(), PLAIN, failures=2) == ("retry: all 1 are used up", "switch: it has no other way")
    never = msgspec.structs.replace(PLAIN, retries=0)
    assert not_chosen(a_failure(), never)[0] == "retry: it has none"
    used_up = not_chosen(a_failure(), with_cures(OTHER), failures=2, rung=1)
    assert used_up == ("retry: all 1 are used up", "switch: no rung is left")
    assert not_chosen(PERMANENT, PLAIN) == ("retry: ValueError is permanent",)
    assert not_chosen(PERMANENT, with_cures(OTHER)) == (
        "retry: ValueError is permanent",
        "switch: ValueError is permanent",
    )
    assert not_chosen(a_failure(), PLAIN, cancel=True) == ("retry: the run does not want it any more",)
    may_act = decision_on(Failed(LOST, 8 * SECOND), PLAIN, failure=LOST, cancel=True)
    assert may_act.rule.startswith("the run does not want it any more; nothing is undone while it may still act")
    assert may_act.rejected == ("retry: the run does not want it any more",)


def test_what_may_have_taken_effect_says_why_nobody_else_can_tell() -> None:
    assert not_chosen(LOST, BLIND) == ("retry: it may have taken effect", "probe: it has none")
    may_act = decision_on(Failed(LOST, 8 * SECOND), PROBED, failure=LOST)
    assert may_act.rejected == ("retry: it may have taken effect", "probe: whoever had it may still act")
    over = decision_on(
        BackoffOver(), PROBED, state=AttemptState.PARKED, why=SETTLE, doubt=msgspec.json.encode(Doubt(LOST))
    )
    assert over.rejected == ("retry: it may have taken effect", "ask a person: its probe may tell")


def test_after_a_probe_what_it_said_is_why_not() -> None:
    assert after_probe(Probed.NOT_DONE, losses=1, failures=0) == (
        "ask a person: the probe says that it did not take effect",
        f"quarantine: loss 1 of {QUARANTINE_AT}",
    )
    assert after_probe(Probed.UNKNOWN) == ("retry: it may have taken effect", "probe: it cannot tell")
    assert after_probe(None) == (
        "retry: it may have taken effect",
        "ask a person: the probe has failed 1 times of 3",
    )
    assert after_probe(None, asked=2) == ("retry: it may have taken effect", "probe: it failed 3 times")


def test_when_people_had_their_time_that_is_why_they_are_not_waited_for() -> None:
    parked = {"state": AttemptState.PARKED, "failure": a_failure(), "watch_at": NOON}
    late = PersonLate(SECOND)
    others = decision_on(late, with_cures(SOON, BOSS), why=ESCALATE, rung=1, **parked)
    assert others.rejected == ("wait for them: they had 1m",)
    nobody = decision_on(late, with_cures(SOON), why=ESCALATE, rung=1, **parked)
    assert nobody.rejected == ("wait for them: they had 1m", "switch: no rung is left")
    doubt = msgspec.json.encode(Doubt(LOST))
    unknown = decision_on(late, with_cures(SOON, idempotent=False), why=DOUBT, doubt=doubt, rung=0, **parked)
    assert unknown.rejected == ("wait for them: they had 1m", "ask a person: nobody else is named")


def test_what_is_ended_while_it_runs_says_why_it_was_not_left_alone() -> None:
    runs = {"state": AttemptState.RUNNING, "failures": 0, "losses": 1}
    assert decision_on(Late(1), PLAIN, **runs).rejected == ("let it run: nobody gave it more time",)
    added = decision_on(Late(1), PLAIN, progress=b'{"done":1,"extended":90000000}', **runs)
    assert added.rejected == ("let it run: the time that was added is over",)
    still = Policy(stall=SECOND)
    assert decision_on(Stalled(1), still, **runs).rejected == ("let it run: it did not say that it is quiet",)
    quiet = decision_on(Stalled(1), still, progress=b'{"done":1,"quiet_until":5,"quiet_for":"tape"}', **runs)
    assert quiet.rejected == ("let it run: its quiet time is over",)
    assert decision_on(AgentDead(7), PLAIN, **runs).rejected == ()
    forgiven = decision_on(AgentDead(7), Policy(own=True), **runs)
    assert forgiven.rejected == ("count a loss: it ran in a process of its own",)
    assert decision_on(CancelOverdue(1), PLAIN, cancel=True, **runs).rejected == ("call it ended: it still acts",)


def test_what_was_not_chosen_for_two_reasons_is_named_once_with_the_nearest() -> None:
    escalated = with_cures(TEAM, idempotent=False, probe=True)
    doubt = msgspec.json.encode(Doubt(a_failure()))
    failure = Failure("NotDoneError", "no", probed=Probed.NOT_DONE)
    told = not_chosen(failure, escalated, kind=RowKind.PROBE, doubt=doubt, failures=0, losses=0)
    assert told == ("ask a person: the probe says that it did not take effect",)


def test_that_a_pause_is_over_was_decided_when_it_began() -> None:
    assert decision_on(BackoffOver(), PLAIN, state=AttemptState.PARKED, why="backoff").rejected == ()


@pytest.mark.parametrize("state", [AttemptState.FAILED, AttemptState.RUNNING, AttemptState.PARKED])
@given(data=st.data(), orphaned=st.booleans())
def test_whatever_is_decided_names_few_others_and_never_what_was_chosen(
    state: AttemptState, data: st.DataObject, orphaned: bool
) -> None:
    row: AttemptRow = data.draw(rows(state))
    symptom = diagnose(row, NOW, dead=Dead(row.agent or 0, "a", Found.DEAD) if orphaned else None)
    if symptom is None:
        return
    body = judgement(row, symptom, judge(symptom, row, msgspec.json.decode(row.policy, type=Policy), 0.5)).body
    if body is None:
        return
    reason = msgspec.json.decode(body, type=Decision)
    named = [one.partition(": ") for one in reason.rejected]
    assert len(named) <= 3
    assert all(name and why for name, _, why in named)
    assert reason.chosen not in {name for name, _, _ in named} - {"ask a person"}, "other people may be asked"
    assert len({name for name, _, _ in named}) == len(named)
    assert sum(map(len, reason.rejected)) < 200, "it is in every decision"
