"""What to do about it: the retry engine, without a clock and without chance of its own."""

from typing import Any

import msgspec
import pytest

from tests.unit.supervisor.rows import NOON, SECOND, a_failure, a_row
from watchbill.model.decision import Decision
from watchbill.model.failure import Cause, Failure, Remedy
from watchbill.model.fingerprint import fingerprint
from watchbill.model.lost import Found, evidence_against
from watchbill.model.policy import QUARANTINE_AT, Policy
from watchbill.model.states import AttemptState
from watchbill.model.symptom import (
    AgentDead,
    BackoffOver,
    CancelOverdue,
    Failed,
    Late,
    NotYet,
    Stalled,
    Symptom,
    Unreadable,
)
from watchbill.model.verdict import GiveUp, LetEnd, LookAgain, MarkFailed, Quarantine, TryLater, TryNow, Verdict
from watchbill.supervisor.judge import MOST_FORGIVEN, judge
from watchbill.supervisor.judgement import judgement

POLICY = Policy(retries=2, backoff=10 * SECOND, factor=2.0, cap=300 * SECOND)


def verdict_on(failure: Failure, *, chance: float = 0.0, **row: Any) -> Verdict:
    return judge(Failed(failure), a_row(failure=failure, **row), POLICY, chance)


def test_a_failure_is_tried_again_after_its_backoff() -> None:
    assert verdict_on(a_failure()) == TryLater("retry 1 of 2", 10 * SECOND)
    assert verdict_on(a_failure(), failures=2) == TryLater("retry 2 of 2", 20 * SECOND)


def test_chance_spreads_retries_and_never_shortens_them() -> None:
    assert verdict_on(a_failure(), chance=0.5) == TryLater("retry 1 of 2", round(11.25 * SECOND))


def test_when_the_retries_are_used_up_it_gives_up() -> None:
    assert verdict_on(a_failure(), failures=3) == GiveUp("all 2 retries are used up")


def test_what_is_permanent_is_not_tried_again() -> None:
    assert verdict_on(a_failure(remedy=Remedy.GIVE_UP)) == GiveUp("ValueError is permanent")
    assert verdict_on(a_failure(remedy=Remedy.NEXT_RUNG)) == GiveUp("ValueError is left out by Retry(on=, never=)")


@pytest.mark.parametrize("cause", [Cause.LOST, Cause.KILLED, Cause.STARVED])
def test_a_loss_is_tried_again_at_once_and_costs_no_failure(cause: Cause) -> None:
    verdict = verdict_on(a_failure(cause), failures=0, losses=1)
    assert isinstance(verdict, TryNow)
    assert verdict.rule.startswith(f"loss 1 of {QUARANTINE_AT} is not the step's failure: at once")


def test_failures_that_are_used_up_do_not_matter_for_a_loss() -> None:
    assert isinstance(verdict_on(a_failure(Cause.LOST), failures=2, losses=1), TryNow)


def test_the_fifth_loss_is_quarantined() -> None:
    assert isinstance(verdict_on(a_failure(Cause.KILLED), failures=0, losses=QUARANTINE_AT - 1), TryNow)
    assert isinstance(verdict_on(a_failure(Cause.KILLED), failures=0, losses=QUARANTINE_AT), Quarantine)


def test_what_nobody_wants_any_more_is_given_up_whatever_it_is() -> None:
    for failure in (a_failure(), a_failure(Cause.KILLED), a_failure(Cause.CANCELLED)):
        assert verdict_on(failure, cancel=True) == GiveUp("the run does not want it any more")


def running(**changes: Any) -> Any:
    return a_row(AttemptState.RUNNING, failures=0, losses=1, **changes)


def test_late_is_a_failure_instead_of_a_loss() -> None:
    verdict = judge(Late(SECOND // 2), running(), Policy(timeout=30 * SECOND), 0.0)
    assert isinstance(verdict, MarkFailed)
    assert (verdict.failures, verdict.losses, verdict.failure.cause) == (1, -1, Cause.LATE)
    assert verdict.failure.message == "still running 0.5 s after its timeout of 30 s"


def test_late_says_by_how_much_it_was_extended() -> None:
    row = running(progress=b'{"done":1,"extended":90000000}')
    verdict = judge(Late(SECOND), row, Policy(timeout=30 * SECOND), 0.0)
    assert isinstance(verdict, MarkFailed)
    assert verdict.failure.message == "still running 1.0 s after its timeout of 30 s, extended by 90 s"


def test_stalled_is_a_failure_instead_of_a_loss_and_says_what_was_seen() -> None:
    policy = Policy(stall=30 * SECOND)
    row = running(
        policy=msgspec.json.encode(policy), progress=b'{"done":47,"total":100}', progress_at=NOON, watch_at=NOON
    )
    verdict = judge(Stalled(SECOND), row, policy, 0.0)
    assert isinstance(verdict, MarkFailed)
    assert (verdict.failures, verdict.losses, verdict.failure.cause) == (1, -1, Cause.STALLED)
    assert verdict.failure.message == (
        "no progress for 32.0 s: at 47 of 100 since 2027-01-15 08:00:00Z; its stall is 30 s"
    )


def test_what_never_said_anything_is_stalled_since_its_start() -> None:
    policy = Policy(stall=30 * SECOND)
    held = b'{"done":0,"begun":false,"quiet_until":%d,"quiet_for":"the tape"}' % (NOON + 60 * SECOND)
    row = running(policy=msgspec.json.encode(policy), progress=held)
    verdict = judge(Stalled(0), row, policy, 0.0)
    assert isinstance(verdict, MarkFailed)
    assert verdict.failure.message == (
        "no progress for 61.0 s: since 2027-01-15 07:59:59Z; its stall is 30 s, and the time is over in which it was"
        " quiet for 'the tape'"
    )


def test_what_is_well_is_looked_at_again_and_nothing_is_written_down() -> None:
    row = running()
    verdict = judge(NotYet(5), row, Policy(), 0.0)
    assert verdict == LookAgain(5)
    change = judgement(row, NotYet(5), verdict)
    assert (change.after, change.watch_in, change.body) == (AttemptState.RUNNING, 5, None)
    assert (change.failures, change.losses, change.unmoved) == (0, 0, False)


@pytest.mark.parametrize("symptom", [Late(1), Stalled(1)])
def test_what_it_said_is_part_of_the_evidence_that_it_is_late_or_stalled(symptom: Symptom) -> None:
    row = running(progress=b'{"done":1}')
    change = judgement(row, symptom, judge(symptom, row, Policy(stall=1), 0.0))
    assert (change.unmoved, change.progress) == (True, b'{"done":1}')


def test_from_the_first_time_that_it_starved_the_others_it_runs_alone() -> None:
    starved = a_failure(Cause.STARVED)
    row = a_row(failure=starved, failures=0, losses=1)
    verdict = judge(Failed(starved), row, Policy(), 0.0)
    assert isinstance(verdict, TryNow)
    assert verdict.alone
    change = judgement(row, Failed(starved), verdict)
    assert change.recast is not None
    assert change.recast.alone
    assert msgspec.json.decode(change.recast.policy, type=Policy) == Policy(own=True)


def test_who_runs_alone_already_stays_as_it_is() -> None:
    starved = a_failure(Cause.STARVED)
    verdict = judge(Failed(starved), a_row(failure=starved, failures=0, losses=1), Policy(own=True), 0.0)
    assert isinstance(verdict, TryNow)
    assert not verdict.alone
    assert judgement(a_row(), Failed(starved), verdict).recast is None


def test_of_a_dead_agent_the_loss_stands() -> None:
    verdict = judge(AgentDead(70), running(), Policy(), 0.0)
    assert isinstance(verdict, MarkFailed)
    assert (verdict.failures, verdict.losses, verdict.failure.cause) == (0, 0, Cause.LOST)
    assert verdict.failure.message == "agent 70 did not renew its lease"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Found.DEAD, "the process of agent 'host-1' (70) is gone"),
        (Found.SILENT, "the connection of agent 'host-1' (70) is gone, and it was not heard for a beat"),
        (Found.EXPIRED, "agent 'host-1' (70) did not renew its lease"),
        (Found.LOST, "agent 'host-1' (70) was pronounced lost"),
        (Found.LEFT, "agent 'host-1' (70) is not there any more"),
    ],
)
def test_how_a_death_was_found_is_what_its_decision_says(found: Found, said: str) -> None:
    symptom, row = AgentDead(70, "host-1", found, NOON + SECOND), running()
    change = judgement(row, symptom, judge(symptom, row, Policy(), 0.0))
    assert change.body is not None
    reason = msgspec.json.decode(change.body, type=Decision)
    assert (reason.message, reason.cause, reason.agent) == (said, Cause.LOST, row.agent)
    assert reason.since == max(NOON + SECOND, row.started_at or 0), "when it was last heard, which its row may forget"


def test_what_was_lost_with_several_agents_in_one_way_is_alike() -> None:
    marks = {
        fingerprint("encode", "quarantine", "Lost", evidence_against(id, name, Found.DEAD))
        for id, name in ((70, "host-1"), (71, "rack"), (9_182_736, "it's"))
    }
    assert len(marks) == 1


@pytest.mark.parametrize(("own", "losses"), [(True, 1), (False, 3)])
def test_what_ran_in_a_process_of_its_own_cannot_have_killed_its_agent(own: bool, losses: int) -> None:
    row = a_row(AttemptState.RUNNING, failures=0, losses=losses)
    verdict = judge(AgentDead(70), row, Policy(own=own), 0.0)
    assert isinstance(verdict, MarkFailed)
    assert verdict.losses == -1


def test_what_takes_its_agent_with_it_every_time_is_quarantined_in_the_end() -> None:
    row, policy = a_row(AttemptState.READY, failures=0, losses=0), Policy()
    for tried in range(1, 1_000):
        row = msgspec.structs.replace(row, state=AttemptState.RUNNING, losses=row.losses + 1)
        assert row.number == tried
        dead = judgement(row, AgentDead(70), judge(AgentDead(70), row, policy, 0.0))
        forgiven = dead.recast.earlier if dead.recast is not None else 0
        losses, earlier = row.losses + dead.losses, row.earlier + forgiven
        row = msgspec.structs.replace(
            row, state=AttemptState.FAILED, losses=losses, earlier=earlier, result=dead.result
        )
        assert row.number == tried
        if isinstance(judge(Failed(a_failure(Cause.LOST)), row, policy, 0.0), Quarantine):
            break
    assert tried == MOST_FORGIVEN + QUARANTINE_AT


def test_who_does_not_stop_in_time_is_left_to_end_and_not_called_ended() -> None:
    row = running(cancel=True)
    verdict = judge(CancelOverdue(1), row, Policy(), 0.0)
    assert isinstance(verdict, LetEnd)
    written = judgement(row, CancelOverdue(1), verdict)
    assert (written.after, written.failures, written.losses, written.watch_in) == (AttemptState.RUNNING, 0, 0, None)


def test_after_the_backoff_it_is_ready() -> None:
    assert judge(BackoffOver(), a_row(AttemptState.PARKED), POLICY, 0.0) == TryNow("the backoff is over")


# --- as it is written


def written(symptom: Symptom, verdict: Verdict, **row: Any) -> tuple[Any, Decision]:
    change = judgement(a_row(**row), symptom, verdict)
    assert change.body is not None
    return change, msgspec.json.decode(change.body, type=Decision)


def test_every_judgement_repeats_its_evidence() -> None:
    failure = a_failure()
    verdicts: list[tuple[Symptom, Verdict]] = [
        (Failed(failure), TryNow("a rule")),
        (Failed(failure), TryLater("a rule", 5)),
        (Failed(failure), GiveUp("a rule")),
        (Failed(failure), Quarantine("a rule")),
        (Late(1), MarkFailed(failure, 1, -1)),
    ]
    for symptom, verdict in verdicts:
        change, decision = written(symptom, verdict, failure=failure, progress_at=NOON - 5)
        assert (change.id, change.fence, change.state) == (1, 5 << 20, AttemptState.FAILED)
        assert (change.progress_at, change.run, change.call) == (NOON - 5, 2, "charge")
        assert change.dead_agent is None
        assert (decision.step, decision.number, decision.agent) == ("charge", 1, 70)
        assert (decision.cause, decision.type, decision.message) == (Cause.RAISED, "ValueError", "no") or isinstance(
            verdict, MarkFailed
        )


@pytest.mark.parametrize(
    ("verdict", "after", "watch_in", "why", "chosen"),
    [
        (TryNow("a rule"), AttemptState.READY, None, None, "retry"),
        (TryLater("a rule", 7), AttemptState.PARKED, 7, "backoff", "retry later"),
        (GiveUp("a rule"), AttemptState.GAVE_UP, None, None, "give up"),
        (Quarantine("a rule"), AttemptState.PARKED, None, "quarantine", "quarantine"),
    ],
)
def test_what_each_verdict_makes_of_the_row(
    verdict: Verdict, after: AttemptState, watch_in: int | None, why: str | None, chosen: str
) -> None:
    change, decision = written(Failed(a_failure()), verdict, failure=a_failure())
    assert (change.after, change.watch_in, change.why) == (after, watch_in, why)
    assert (change.failures, change.losses) == (0, 0)
    assert (decision.rule, decision.chosen) == ("a rule", chosen)


def test_a_failure_outlives_giving_up_and_quarantine_but_no_retry() -> None:
    kept: dict[Verdict, bool] = {GiveUp("x"): True, Quarantine("x"): True, TryNow("x"): False, TryLater("x", 1): False}
    for verdict, keeps in kept.items():
        change, _ = written(Failed(a_failure()), verdict, failure=a_failure())
        assert (change.result is not None) is keeps


def test_a_death_names_the_agent_as_evidence_and_is_judged_at_once() -> None:
    lost = a_failure(Cause.LOST)
    change, _ = written(AgentDead(70), MarkFailed(lost, failures=0, losses=0), state=AttemptState.RUNNING)
    assert (change.dead_agent, change.after, change.watch_in) == (70, AttemptState.FAILED, 0)
    late, _ = written(Late(1), MarkFailed(a_failure(Cause.LATE), failures=1, losses=-1), state=AttemptState.RUNNING)
    assert (late.dead_agent, late.failures, late.losses) == (None, 1, -1)


def test_what_cannot_be_read_waits_for_a_person_with_the_reason() -> None:
    row = a_row()
    symptom = Unreadable("sealed with key 'k1'")
    verdict = judge(symptom, row, POLICY, 0.0)
    assert verdict == Quarantine("how it failed is sealed with key 'k1'")
    change = judgement(row, symptom, verdict)
    assert (change.after, change.why, change.result) == (AttemptState.PARKED, "quarantine", row.result)
    assert b"how it failed is sealed with key 'k1'" in (change.body or b"")
