"""The ladder and the doubt: for any history no budget is exceeded, and there is no cure without evidence."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from tests.unit.supervisor.rows import NOON, a_failure, a_row
from watchbill.clock import SECOND
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.decision import Decision
from watchbill.model.failure import Cause, Doubt, Failure, Probed, Remedy
from watchbill.model.ladder import arguments
from watchbill.model.parked import DOUBT, ESCALATE, SETTLE, UNTOLD, People, next_group, people_of
from watchbill.model.policy import QUARANTINE_AT, Change, Cures, Policy, Rung, decode_policy
from watchbill.model.states import AttemptState
from watchbill.model.symptom import BackoffOver, Failed, PersonLate
from watchbill.model.verdict import Ask, AskPerson, Climb, GiveUp, Quarantine, Settle, TryLater, TryNow, Verdict
from watchbill.supervisor.acting import TAKEN_AWAY
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import MOST_PROBES, judge
from watchbill.supervisor.judgement import judgement

OTHER = Rung(step="b", policy=Policy(retries=1))
TEAM = Rung(to="team")
SOON = Rung(to="team", within=60 * SECOND)
BOSS = Rung(to="boss", within=600 * SECOND)
PLAIN = Policy(retries=1)


def with_cures(*ladder: Rung, idempotent: bool = True, probe: bool = False, **policy: Any) -> Policy:
    return Policy(retries=1, cures=Cures(ladder, idempotent, probe), **policy)


def on(policy: Policy, failure: Failure, **row: Any) -> Verdict:
    there = a_row(failure=failure, policy=msgspec.json.encode(policy), **row)
    return judge(Failed(failure), there, policy, 0.0)


def test_retries_then_each_rung_then_it_gives_up() -> None:
    policy = with_cures(OTHER, TEAM, OTHER)
    assert isinstance(on(policy, a_failure(), failures=1), TryLater)
    assert on(policy, a_failure(), failures=2) == Climb("its only retry is used up", 1)
    escalated = on(policy, a_failure(), failures=2, rung=1)
    assert isinstance(escalated, AskPerson)
    assert (escalated.why, escalated.rung) == (ESCALATE, 2)
    assert isinstance(on(policy, a_failure(), failures=2, rung=3), GiveUp)


@pytest.mark.parametrize("after", [(), (BOSS,), (OTHER,)])
def test_what_fails_again_after_people_had_it_tried_is_theirs_to_decide_again(after: tuple[Rung, ...]) -> None:
    policy = with_cures(OTHER, SOON, *after)
    assert isinstance(on(policy, a_failure(), failures=1, rung=2), TryLater), "with fresh budgets"
    failure = a_failure()
    again = on(policy, failure, failures=2, rung=2)
    assert again == AskPerson(
        "its only retry is used up: somebody of 'team' decides again",
        ESCALATE, 2, People(2, "team", 60 * SECOND), failure,
    )  # fmt: skip
    row = a_row(failure=failure, policy=msgspec.json.encode(policy), failures=2, rung=2)
    change = judgement(row, Failed(failure), again)
    assert (change.after, change.watch_in) == (AttemptState.PARKED, UNTOLD + 60 * SECOND), "with a time of its own"
    reason = msgspec.json.decode(change.body or b"", type=Decision)
    assert reason.rejected == ("retry: all 1 are used up",)
    assert isinstance(on(policy, a_failure(remedy=Remedy.GIVE_UP), failures=1, rung=2), GiveUp), "Permanent asks nobody"


def undecided(policy: Policy, why: str, **row: Any) -> tuple[AttemptRow, Verdict]:
    """Let the time be over that people had to decide about a call."""
    doubt = msgspec.json.encode(Doubt(a_failure(Cause.LOST))) if why == DOUBT else None
    there = a_row(
        AttemptState.PARKED, a_failure(), why=why, watch_at=NOON - 3 * SECOND, doubt=doubt,
        policy=msgspec.json.encode(policy), **row,
    )  # fmt: skip
    symptom = diagnose(there, NOON)
    assert symptom == PersonLate(3 * SECOND)
    return there, judge(symptom, there, policy, 0.0)


def test_when_the_time_of_people_is_over_the_next_rung_comes() -> None:
    policy = with_cures(SOON, BOSS, OTHER, SOON)
    there, verdict = undecided(policy, ESCALATE, rung=1)
    assert verdict == AskPerson(
        "somebody of 'team' had 60 s to decide, and nobody has: somebody of 'boss' decides",
        ESCALATE, 2, People(2, "boss", 600 * SECOND), None,
    )  # fmt: skip
    change = judgement(there, PersonLate(0), verdict)
    assert (change.after, change.watch_in) == (AttemptState.PARKED, UNTOLD + 600 * SECOND), "when they are told"
    assert (change.result, change.failures, change.losses) == (there.result, 0, 0)
    reason = msgspec.json.decode(change.body or b"", type=Decision)
    assert (reason.undecided, reason.since, reason.cause) == ("team", there.watch_at, Cause.RAISED)
    there, verdict = undecided(policy, ESCALATE, rung=2, failures=2)
    assert isinstance(verdict, Climb)
    change = judgement(there, PersonLate(0), verdict)
    assert change.recast is not None
    assert (change.after, change.failures, change.recast.rung) == (AttemptState.READY, -2, 3)
    there, verdict = undecided(policy, ESCALATE, rung=4)
    assert verdict == GiveUp("somebody of 'team' had 60 s to decide, and nobody has")
    assert judgement(there, PersonLate(0), verdict).result == there.result


def test_what_may_have_taken_effect_is_left_to_other_people_and_never_tried_another_way() -> None:
    policy = with_cures(OTHER, SOON, OTHER, BOSS, idempotent=False)
    asked = on(policy, a_failure(), failures=1)
    assert isinstance(asked, AskPerson)
    assert (asked.why, asked.rung, asked.people) == (DOUBT, 0, People(2, "team", 60 * SECOND))
    row = a_row(failure=a_failure(), policy=msgspec.json.encode(policy))
    change = judgement(row, Failed(a_failure()), asked)
    assert change.recast is not None
    assert (change.recast.rung, people_of(DOUBT, 0, change.recast.policy)) == (0, asked.people)
    there, verdict = undecided(decode_policy(change.recast.policy), DOUBT)
    assert isinstance(verdict, AskPerson)
    assert (verdict.why, verdict.rung, verdict.people) == (DOUBT, 0, People(4, "boss", 600 * SECOND))
    change = judgement(there, PersonLate(0), verdict)
    assert change.recast is not None
    assert (change.recast.doubt, change.recast.rung) == (there.doubt, 0), "it is the same doubt"
    assert people_of(DOUBT, 0, change.recast.policy) == verdict.people
    _, verdict = undecided(decode_policy(change.recast.policy), DOUBT)
    assert isinstance(verdict, GiveUp)
    assert verdict.rule.endswith("nobody knows whether it took effect")


def test_what_is_given_up_in_doubt_says_that_it_may_have_taken_effect() -> None:
    policy = with_cures(SOON, idempotent=False)
    _, verdict = undecided(policy, DOUBT)
    assert isinstance(verdict, GiveUp)
    assert verdict.failure is not None
    assert verdict.failure.cause is Cause.LOST
    for cause in (Cause.RAISED, Cause.REJECTED, Cause.UNKNOWN):
        stopped = on(policy, a_failure(cause), failures=1, cancel=True)
        assert stopped == GiveUp("the run does not want it any more", a_failure(Cause.UNKNOWN))
    assert on(PLAIN, a_failure(), failures=1, cancel=True) == GiveUp("the run does not want it any more")


def test_what_is_given_up_in_doubt_without_its_key_is_undone_all_the_same() -> None:
    policy = with_cures(SOON, idempotent=False)
    row, _ = undecided(policy, DOUBT)
    verdict = judge(PersonLate(0), msgspec.structs.replace(row, doubt=b"\x01\x02k1...."), policy, 0.0)
    assert isinstance(verdict, GiveUp)
    assert verdict.failure is not None
    assert (verdict.failure.type, verdict.failure.cause) == ("Sealed", Cause.UNKNOWN)


def test_who_is_asked_next_is_known_before() -> None:
    policy = msgspec.json.encode(with_cures(SOON, BOSS, OTHER, TEAM))
    assert [next_group(ESCALATE, people_of(ESCALATE, rung, policy), policy) for rung in (1, 2, 4)] == [
        "boss",
        None,
        None,
    ]
    doubted = msgspec.json.encode(with_cures(SOON, OTHER, BOSS))
    assert next_group(DOUBT, people_of(DOUBT, 0, doubted), doubted) == "boss"


def test_what_is_left_out_climbs_at_once_and_what_is_permanent_never_does() -> None:
    policy = with_cures(OTHER)
    assert isinstance(on(policy, a_failure(remedy=Remedy.NEXT_RUNG), failures=1), Climb)
    assert isinstance(on(policy, a_failure(remedy=Remedy.GIVE_UP), failures=1), GiveUp)


def test_busy_waits_as_long_as_it_says_whatever_was_tried_before() -> None:
    busy = Failure("Busy", "", remedy=Remedy.WAIT, retry_after=30 * SECOND)
    verdict = on(with_cures(OTHER), busy, failures=2)
    assert isinstance(verdict, TryLater)
    assert (verdict.delay, verdict.free) == (30 * SECOND, True)
    row = a_row(failure=busy, failures=2, policy=msgspec.json.encode(PLAIN))
    change = judgement(row, Failed(busy), verdict)
    assert change.recast is not None
    assert (change.failures, change.recast.earlier) == (-1, 1)


def test_what_may_still_act_is_not_asked_about_before_it_cannot() -> None:
    policy = with_cures(idempotent=False, probe=True)
    for cause in TAKEN_AWAY:
        row = a_row(failure=a_failure(cause), losses=1, policy=msgspec.json.encode(policy))
        verdict = judge(Failed(a_failure(cause), 18 * SECOND), row, policy, 0.0)
        assert isinstance(verdict, Settle)
        assert verdict.delay == 18 * SECOND
    for cause in (Cause.KILLED, Cause.RAISED, Cause.UNKNOWN, Cause.REJECTED):
        assert isinstance(on(policy, a_failure(cause), failures=1), Ask)


def test_without_a_probe_a_person_decides_whether_it_took_effect() -> None:
    verdict = on(with_cures(idempotent=False), a_failure(Cause.LOST), losses=1)
    assert isinstance(verdict, AskPerson)
    assert verdict.why == DOUBT


def probed(answer: Probed | None, doubt: Doubt, policy: Policy, **row: Any) -> Verdict:
    failure = Failure("Probed", "", probed=answer)
    there = a_row(failure=failure, kind=RowKind.PROBE, policy=msgspec.json.encode(policy), **row)
    there = msgspec.structs.replace(there, doubt=msgspec.json.encode(doubt))
    return judge(Failed(failure), there, policy, 0.0)


def test_what_did_not_take_effect_is_tried_again_within_its_budget() -> None:
    policy = with_cures(TEAM, idempotent=False, probe=True)
    doubt = Doubt(a_failure())
    assert isinstance(probed(Probed.NOT_DONE, doubt, policy, failures=2), TryLater)  # one of them is the probe's
    assert isinstance(probed(Probed.NOT_DONE, doubt, policy, failures=3), AskPerson)
    assert isinstance(probed(Probed.UNKNOWN, doubt, policy, failures=2), AskPerson)


def test_a_probe_that_fails_is_asked_again_a_few_times() -> None:
    policy = with_cures(idempotent=False, probe=True)
    for asked in range(MOST_PROBES - 1):
        verdict = probed(None, Doubt(a_failure(), asked), policy, failures=2)
        assert isinstance(verdict, Settle)
        assert verdict.doubt.asked == asked + 1
    assert isinstance(probed(None, Doubt(a_failure(), MOST_PROBES - 1), policy, failures=2), AskPerson)


def test_what_the_run_does_not_want_any_more_is_asked_about_only_to_be_undone() -> None:
    policy = with_cures(TEAM, idempotent=False, probe=True)
    asked = on(policy, a_failure(), failures=1, cancel=True)
    assert isinstance(asked, Ask)
    assert asked.doubt.unwanted
    for answer in Probed:
        verdict = probed(answer, asked.doubt, policy, failures=2)
        assert isinstance(verdict, GiveUp)
        assert verdict.failure is not None
    not_done = probed(Probed.NOT_DONE, Doubt(a_failure(Cause.LOST), unwanted=True), policy, failures=2)
    assert isinstance(not_done, GiveUp)
    assert not_done.failure is not None
    assert not_done.failure.cause is Cause.RAISED, "so nothing is undone that was not done"


def test_a_run_that_is_stopped_while_the_probe_is_asked_waits_for_nobody() -> None:
    policy = with_cures(TEAM, idempotent=False, probe=True)
    doubt = Doubt(a_failure())
    for answer in Probed:
        assert isinstance(probed(answer, doubt, policy, failures=2, cancel=True), GiveUp)
    again = probed(None, doubt, policy, failures=2, cancel=True)
    assert isinstance(again, Settle)
    assert again.doubt.unwanted, "its next lease does not know of it any more"
    assert isinstance(probed(None, Doubt(a_failure(), MOST_PROBES - 1), policy, failures=2, cancel=True), GiveUp)


def settled(doubt: Doubt | None, policy: Policy) -> Verdict:
    there = a_row(AttemptState.PARKED, why=SETTLE, policy=msgspec.json.encode(policy))
    body = None if doubt is None else msgspec.json.encode(doubt)
    return judge(BackoffOver(), msgspec.structs.replace(there, doubt=body), policy, 0.0)


def test_unwanted_attempt_without_a_probe_is_given_up_once_it_can_no_longer_act() -> None:
    verdict = settled(Doubt(a_failure(), unwanted=True), with_cures(idempotent=False))
    assert isinstance(verdict, GiveUp)
    assert verdict.failure is not None
    assert verdict.failure.cause is Cause.UNKNOWN, "that it raised says nothing of its effect"


def test_attempt_of_which_nothing_was_recorded_counts_as_lost() -> None:
    verdict = settled(None, with_cures(idempotent=False, probe=True))
    assert isinstance(verdict, Ask)
    assert verdict.doubt.failure.cause is Cause.LOST


def test_attempt_that_did_not_take_effect_and_has_no_retry_left_is_given_up_as_not_done() -> None:
    policy = with_cures(idempotent=False, probe=True)
    verdict = probed(Probed.NOT_DONE, Doubt(a_failure()), policy, failures=3)
    assert isinstance(verdict, GiveUp)
    assert verdict.failure is not None
    assert verdict.failure.probed is Probed.NOT_DONE


def test_arguments_of_a_rung_replace_those_of_the_workflow_and_no_others() -> None:
    rung = Rung(step="a", changes=(Change(1, msgspec.Raw(b'"safe"')),))
    assert arguments(with_cures(rung), 0, b'["x","fast"]') == b'["x","fast"]'
    assert arguments(with_cures(rung), 1, b'["x","fast"]') == b'["x","safe"]'
    named = Rung(step="a", changes=(Change("codec", msgspec.Raw(b'"safe"')), Change(0, msgspec.Raw(b"1"))))
    changed = msgspec.json.decode(arguments(with_cures(named), 1, b'{"*":["x"],"codec":"fast"}'))
    assert changed == {"*": [1], "codec": "safe"}


# --- any history


RUNGS = st.sampled_from([OTHER, TEAM, Rung(step="c", policy=Policy(retries=0))])
POLICIES = st.builds(
    lambda retries, ladder, idempotent, probe, on: Policy(
        retries=retries, cures=Cures(tuple(ladder), idempotent, probe), on=on
    ),
    st.integers(0, 3),
    st.lists(RUNGS, max_size=3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(), ("ConnectionError",)]),
)
FAILURES = st.builds(
    Failure,
    type=st.just("ConnectionError"),
    message=st.just("no"),
    cause=st.sampled_from([cause for cause in Cause if cause is not Cause.CANCELLED]),
    remedy=st.sampled_from(Remedy),
    probed=st.sampled_from([None, None, *Probed]),
).map(lambda failure: failure if failure.remedy is not Remedy.WAIT else told_to_wait(failure))


def told_to_wait(failure: Failure) -> Failure:
    """Only what was raised says when to come back."""
    return msgspec.structs.replace(failure, cause=Cause.RAISED)


HISTORIES = st.tuples(POLICIES, st.lists(FAILURES, min_size=1, max_size=60), st.booleans())


@given(HISTORIES)
def test_any_history_ends_or_waits_and_no_budget_is_exceeded(history: tuple[Policy, list[Failure], bool]) -> None:
    play(*history)


@pytest.mark.parametrize("rung", [0, 1])
@pytest.mark.parametrize("cause", [Cause.RAISED, Cause.LATE, Cause.STALLED])
def test_a_judge_who_grants_one_retry_more_is_caught_on_every_rung(rung: int, cause: Cause) -> None:
    def generous(symptom: Any, row: AttemptRow, policy: Policy, jitter: float) -> Any:
        return judge(symptom, row, one_more(policy) if row.rung == rung else policy, jitter)

    policy = Policy(retries=2, cures=Cures((OTHER, TEAM)))
    failures = [a_failure(cause=cause)] * 20
    play(policy, failures, False)
    with pytest.raises(AssertionError, match=f"tried once too often on rung {rung}"):
        play(policy, failures, False, generous)


def test_the_search_finds_a_judge_who_grants_one_retry_more() -> None:
    def generous(symptom: Any, row: AttemptRow, policy: Policy, jitter: float) -> Any:
        return judge(symptom, row, one_more(policy), jitter)

    def is_caught(history: tuple[Policy, list[Failure], bool]) -> bool:
        try:
            play(*history, generous)
        except AssertionError as caught:
            return "tried once too often" in str(caught)
        return False

    find(HISTORIES, is_caught, settings=settings(database=None, derandomize=True, phases=[Phase.generate]))


def one_more(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, retries=policy.retries + 1)


def play(policy: Policy, failures: list[Failure], cancel: bool, judge: Callable[..., Any] = judge) -> None:
    """Play what happens to one row: each attempt ends as the list says, each verdict is applied as by a store."""
    row = a_row(state=AttemptState.READY, failures=0, losses=0, policy=msgspec.json.encode(policy))
    budgets = [policy.retries, *((rung.policy or policy).retries for rung in policy.ladder)]
    tries = [0] * (1 + len(policy.ladder))
    number = 0
    for failure in failures:
        here = msgspec.json.decode(row.policy, type=Policy)
        probing = row.kind == RowKind.PROBE
        if not probing and failure.probed is not None:
            failure = msgspec.structs.replace(failure, probed=None)
        row = leased(row)
        if probing:
            assert row.number == number, "a probe has the number of the attempt in doubt"
        else:
            number += 1
            assert row.number == number, "numbers grow by one, over all rungs"
        row = ended(row, failure, cancel)
        waits = failure.remedy is Remedy.WAIT  # and costs nothing
        if not probing and failure.cause not in (Cause.LOST, Cause.KILLED, Cause.STARVED) and not waits:
            tries[row.rung] += 1
            # Here, and not at the end: most histories end by giving up, and those are what budgets are about.
            assert tries[row.rung] <= budgets[row.rung] + 1, f"tried once too often on rung {row.rung}"
        verdict = judge(Failed(failure), row, here, 0.5)
        change = judgement(row, Failed(failure), verdict)
        reason = msgspec.json.decode(change.body or b"", type=Decision)
        assert reason.chosen, "no cure without its reason"
        assert reason.cause is not None, "and its evidence"
        row = applied(row, change)
        assert row.failures >= 0
        assert 0 <= row.losses <= QUARANTINE_AT
        assert row.rung <= len(policy.ladder)
        while row.state is AttemptState.PARKED and row.why == SETTLE:
            later = judge(BackoffOver(), row, msgspec.json.decode(row.policy, type=Policy), 0.5)
            row = applied(row, judgement(row, BackoffOver(), later))
        if row.state is AttemptState.GAVE_UP or isinstance(verdict, AskPerson | Quarantine):
            return
        if row.state is AttemptState.PARKED:
            if row.why == DOUBT:
                return
            row = msgspec.structs.replace(row, state=AttemptState.READY)
        assert row.state is AttemptState.READY
        if not policy.idempotent and not policy.ladder and isinstance(verdict, TryNow | TryLater) and not probing:
            named = bool(policy.on) and failure.remedy is Remedy.RETRY and failure.cause is Cause.RAISED
            assert named or failure.remedy is Remedy.WAIT, "never tried again blindly"


def leased(row: AttemptRow) -> AttemptRow:
    return msgspec.structs.replace(
        row, state=AttemptState.RUNNING, fence=row.fence + 1, losses=row.losses + 1, cancel=False, result=None
    )


def ended(row: AttemptRow, failure: Failure, cancel: bool) -> AttemptRow:
    lost = failure.cause in (Cause.LOST, Cause.KILLED, Cause.STARVED)
    return msgspec.structs.replace(
        row,
        state=AttemptState.FAILED,
        losses=row.losses - int(not lost),
        failures=row.failures + int(not lost),
        cancel=cancel,
        result=msgspec.json.encode(failure),
    )


def applied(row: AttemptRow, change: Any) -> AttemptRow:
    row = msgspec.structs.replace(
        row,
        state=AttemptState(change.after),
        failures=row.failures + change.failures,
        losses=row.losses + change.losses,
        why=change.why,
        result=change.result or row.result,
    )
    if change.recast is None:
        return row
    to = change.recast
    return msgspec.structs.replace(
        row,
        kind=to.kind,
        step=to.step,
        rung=to.rung,
        policy=to.policy,
        earlier=row.earlier + to.earlier,
        doubt=to.doubt,
    )
