"""Every way to wait has its reason, and each reason a sentence, somebody who acts next, and a time if there is one."""

import shlex
from itertools import product
from typing import Any

import msgspec
import pytest

from tests.unit.cli.records import (
    NOON,
    a_completed_step,
    a_fact,
    a_failed_run,
    a_judged_attempt,
    a_record,
    an_attempt,
    an_entry,
)
from watchbill.app.explain import HELD, TOLD, explain
from watchbill.app.open_call import PARKED
from watchbill.app.report import status_of
from watchbill.app.standstill import agent_name, scene_of
from watchbill.app.status import Because, Health, Standstill
from watchbill.clock import SECOND, to_datetime
from watchbill.model import parked as reasons
from watchbill.model.agent import AgentSeen
from watchbill.model.attempt import Mark, RowKind
from watchbill.model.breaker import WELL, opened
from watchbill.model.breaker import encode as encode_breaker
from watchbill.model.call import Kind
from watchbill.model.facts import FactKind, RetryAsked
from watchbill.model.failure import Cause, RunError
from watchbill.model.gate import GateRow, Standing
from watchbill.model.parked import UNTOLD
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.question import DeskItem, Patience, Question
from watchbill.model.quota import AttemptsQuota
from watchbill.model.resolution import Action, Resolution, Wanted
from watchbill.model.sealed import SEALED, shown, unopened, why_sealed
from watchbill.model.states import AttemptState, RunState
from watchbill.model.suspension import Suspension, encode
from watchbill.model.usual import Evidence, Usual
from watchbill.model.wait import Help, Helper, Wait, down_of, help_for, kept_by
from watchbill.store.protocol import MOST_COUNTED, Record

NOW = NOON + 90 * SECOND
LATER = NOW + 3_600 * SECOND
LIMIT = GateRow("limit:charge", 5, None, 5, 12, None, paused=False)
STRIPE = GateRow("uses:stripe", None, None, 0, 3, None, paused=False, breaker="open", why="5 failures in a row")


def a_scene(record: Record, **changes: Any) -> Record:
    return msgspec.structs.replace(record, **changes)


def ready(wait: Wait | None = None, **row: Any) -> Record:
    of_it = an_attempt(state=AttemptState.READY, **{"losses": 0, "started_at": None, "agent": None, **row})
    return a_scene(a_record(attempts=[of_it]), waits=() if wait is None else (wait,))


def waits(**changes: Any) -> Wait:
    return msgspec.structs.replace(Wait(1, (), "", served=True, able=1, free=1), **changes)


def stopped(**changes: Any) -> Record:
    return ready(waits(stop=msgspec.structs.replace(STRIPE, **changes)))


def running(**row: Any) -> Record:
    return a_record(attempts=[an_attempt(**{"watch_at": LATER, **row})])


def parked(why: str, **row: Any) -> Record:
    return a_record(attempts=[an_attempt(state=AttemptState.PARKED, **{"why": why, "failures": 1, "losses": 0, **row})])


def a_policy(**options: Any) -> bytes:
    return msgspec.json.encode(Policy(**options))


def a_question(*, desk: DeskItem | None = None, **patience: Any) -> Record:
    asked = msgspec.json.encode(Question("ship it?", "team", {}))
    row = an_attempt(
        state=AttemptState.PARKED, kind=RowKind.ASK, why="ask", args=asked, losses=0,
        policy=msgspec.json.encode(Patience(**patience)),
    )  # fmt: skip
    return a_scene(a_record(status=RunState.WAITING, attempts=[row]), desk=() if desk is None else (desk,))


USUAL = Usual("charge", 0, Evidence(60, 10 * SECOND, 20 * SECOND, 21 * SECOND), 30 * SECOND)

# For each reason: where it is found, who acts next, and by when.
SCENES: dict[Because, tuple[Record, str, int | None]] = {
    Because.BEGINS_LATER: (a_record(status=RunState.SCHEDULED, wake_at=LATER), "its scheduler", LATER),
    Because.DUE: (a_record(status=RunState.SCHEDULED, wake_at=NOON), "its scheduler", NOON),
    Because.PAUSED: (a_record(paused=True), "whoever resumes it", None),
    Because.WORKFLOW_PAUSED: (
        a_scene(
            a_record(status=RunState.SCHEDULED, wake_at=NOON),
            stop=msgspec.structs.replace(STRIPE, name="workflow:order", paused=True, paused_by="ann"),
        ),
        "whoever opens 'workflow:order'",
        None,
    ),
    Because.NO_SCHEDULER: (
        a_scene(a_record(status=RunState.WAITING, wake_at=LATER), served=False),
        "whoever opens rooms on this store",
        None,
    ),
    Because.NO_REGION: (a_scene(a_record(), region="eu", served=False), "whoever opens rooms with region='eu'", None),
    Because.NO_CODE: (a_record(known=False), "whoever starts a process with workflow 'order'", None),
    Because.DIVERGED: (
        a_record(status=RunState.DIVERGED),
        "whoever brings the fitting code back, or rewinds it",
        None,
    ),
    Because.QUARANTINED_RUN: (a_record(held="quarantined: it dies"), "an operator", None),
    Because.WAITS_FOR_NOTHING: (
        a_record(held="waits for nothing: no step can wake it"),
        "whoever corrects its workflow, and retries it",
        None,
    ),
    Because.ENDLESS: (
        a_record(held="the workflow never yields: it ran for 5 s"),
        "whoever corrects its workflow, and retries it",
        None,
    ),
    Because.NO_KEY: (
        a_record(held="lost, and cannot be read: sealed with key 'a'"),
        "whoever starts a process that has the key",
        None,
    ),
    Because.HELD: (a_record(held="MemoryError left the workflow's code: no"), "an operator", None),
    Because.SLEEP: (a_record(status=RunState.WAITING, wake_at=LATER), "its scheduler", LATER),
    Because.TIME_IS_UP: (a_record(status=RunState.WAITING, wake_at=NOON), "its scheduler", NOON),
    Because.MESSAGE: (
        a_record(status=RunState.WAITING, waits="a message on 'go'"),
        "a client that sends 'go': `watchbill run send order-1 go JSON`",
        None,
    ),
    Because.CHILD_RUN: (
        a_record(status=RunState.WAITING, waits="run 'order-1/ship'"),
        "run 'order-1/ship': `watchbill run explain order-1/ship` says how that stands",
        None,
    ),
    Because.ANSWER: (
        a_record(status=RunState.WAITING, waits="an answer to 'ask'"),
        "whoever is asked: `watchbill inbox list`",
        None,
    ),
    Because.JUST_BEGUN: (a_record(), "its scheduler", NOW),
    Because.UNDOING: (a_record(status=RunState.UNDOING, journal=[a_completed_step()]), "its scheduler", None),
    Because.MAY_STILL_ACT: (
        a_record(status=RunState.UNDOING, journal=[an_entry(1, Kind.ACTING, "charge", body=LATER)]),
        "its scheduler",
        LATER,
    ),
    Because.DEADLINE: (a_record(deadline=NOON), "its scheduler", NOON),
    Because.TOLD: (a_record(told=[a_fact(FactKind.CANCEL)]), "its scheduler", NOON + 60 * SECOND),
    Because.NO_SUPERVISOR: (
        a_record(attempts=[an_attempt(state=AttemptState.FAILED, failures=1, watch_at=NOON)]),
        "whoever opens rooms with a supervisor",
        None,
    ),
    Because.AT_WORK: (running(policy=a_policy(timeout=3_600 * SECOND)), "agent 7", NOON + 3_600 * SECOND),
    Because.QUIET: (
        running(
            policy=a_policy(timeout=3_600 * SECOND),
            progress=msgspec.json.encode(Mark(0, begun=False, quiet_until=LATER, quiet_for="the tape")),
        ),
        "agent 7",
        NOON + 3_600 * SECOND,
    ),
    Because.SLOW: (
        running(policy=a_policy(timeout=3_600 * SECOND, usual=(USUAL,)), losses=1),
        "agent 7",
        NOON + 3_600 * SECOND,
    ),
    Because.STARVED: (running(symptom="starved"), "the supervisor", NOON + 3_600 * SECOND),
    Because.SILENT: (
        a_scene(running(), agents=(AgentSeen(7, "a1", "silent", NOW - 9 * SECOND),)),
        "the supervisor",
        NOW,
    ),
    Because.LATE: (
        running(policy=a_policy(timeout=60 * SECOND), watch_at=NOON + 60 * SECOND),
        "the supervisor",
        NOON + 60 * SECOND,
    ),
    Because.STALLED: (running(policy=a_policy(stall=30 * SECOND)), "the supervisor", NOON + 31 * SECOND),
    Because.CANARY: (running(why="canary"), "agent 7", NOON + 3_600 * SECOND),
    Because.STOPPING: (running(cancel=True, watch_at=NOW + SECOND), "agent 7", NOW + SECOND),
    Because.RUN_PAUSED: (ready(held=True), "whoever resumes its run", None),
    Because.PAUSED_BY_NAME: (
        stopped(name="step:charge", paused=True, paused_by="ann"),
        "whoever opens 'step:charge'",
        None,
    ),
    Because.RETRY_BUDGET: (
        ready(
            waits(
                stop=msgspec.structs.replace(
                    STRIPE, breaker="closed", why=None, retries=36, budget=36, next_retry_at=to_datetime(LATER)
                )
            ),
            failures=1,
        ),
        "an agent, when the budget has room for it",
        LATER,
    ),
    Because.BREAKER_OPEN: (stopped(next_try_at=to_datetime(LATER)), "the supervisor", LATER),
    Because.CANARY_TRIES: (stopped(breaker="half-open"), "an agent, with one attempt that tries it", None),
    Because.LEAVING: (stopped(breaker="closing", pace=2.0), "an agent, when it is its turn", None),
    Because.LIMIT_PAUSED: (
        ready(waits(gate=msgspec.structs.replace(LIMIT, paused=True))),
        "whoever opens 'limit:charge'",
        None,
    ),
    Because.QUOTA: (
        ready(waits(quota=AttemptsQuota("shop", 5, 5), gate=LIMIT)),
        "an attempt of namespace 'shop' that ends",
        None,
    ),
    Because.AT_ONCE: (ready(waits(gate=LIMIT)), "an agent, when one of those that run has ended", None),
    Because.RATE: (
        ready(waits(gate=msgspec.structs.replace(LIMIT, at_once=None, rate="1/s", tokens=0.0))),
        "an agent, as soon as the rate allows it",
        None,
    ),
    Because.BEHIND_OTHERS: (
        ready(waits(gate=msgspec.structs.replace(LIMIT, running=1))),
        "an agent, when those are taken",
        None,
    ),
    Because.NO_AGENT: (ready(waits(served=False, able=0)), "whoever starts an agent", None),
    Because.NOBODY_CAPABLE: (
        ready(waits(served=False, able=0, others=2, needs=("gpu",))),
        "whoever starts such an agent",
        None,
    ),
    Because.KEPT_FROM_AGENT: (ready(waits(avoid=7, avoid_until=NOW + SECOND)), "another agent than 7", NOW),
    Because.AGENTS_FULL: (ready(waits(able=2, free=0, ahead=4)), "an agent that ends something else", None),
    Because.AGENTS_SUSPENDED: (
        ready(waits(served=False, suspended=1)),
        "a suspended agent, or whoever starts another",
        None,
    ),
    Because.AGENTS_QUARANTINED: (
        ready(waits(served=False, able=0, others=1, quarantined=("a1",))),
        "whoever releases agent a1",
        None,
    ),
    Because.URGENT_AHEAD: (ready(waits(ahead=4)), "an agent, when those are taken", None),
    Because.READY: (ready(waits()), "an agent", NOW),
    Because.FAILED: (
        a_record(attempts=[an_attempt(state=AttemptState.FAILED, failures=1, watch_at=NOW)]),
        "the supervisor",
        NOW,
    ),
    Because.BACKOFF: (parked("backoff", watch_at=NOW + 9 * SECOND), "the supervisor", NOW + 9 * SECOND),
    Because.SETTLE: (parked("settle", watch_at=NOW + 9 * SECOND), "the supervisor", NOW + 9 * SECOND),
    Because.QUARANTINE: (parked("quarantine", losses=5), "an operator", None),
    Because.ESCALATE: (parked("escalate"), "somebody", None),
    Because.DOUBT: (parked("doubt"), "somebody", None),
    Because.QUESTION: (a_question(), "somebody of 'team'", None),
    Because.ENDED: (
        a_record(attempts=[an_attempt(state=AttemptState.DONE, ended_at=NOW)]),
        "its scheduler",
        NOW,
    ),
}


def found(record: Record, because: Because) -> Standstill:
    [one] = [one for one in explain(record).reasons if one.because is because]
    return one


@pytest.mark.parametrize("because", Because)
def test_each_reason_has_a_sentence_and_says_who_acts_next_and_by_when(because: Because) -> None:
    record, next, when = SCENES[because]
    one = found(record, because)
    assert one.said.endswith(".")
    assert one.said in explain(record).sentences
    assert one.next == next
    assert one.when == (None if when is None else to_datetime(when))


ROWS = [
    an_attempt(state=state, why=why, kind=kind, cancel=cancel, failures=1, losses=1, args=args, watch_at=watch_at)
    for state, why, (kind, args), cancel, watch_at in product(
        AttemptState,
        (None, *sorted(PARKED), "ask", "canary", "of a newer version"),
        ((RowKind.STEP, b"[]"), (RowKind.ASK, msgspec.json.encode(Question("?", "", {}))), (RowKind.PROBE, b"[]")),
        (False, True),
        (None, NOON),
    )
]


@pytest.mark.parametrize("state", [state for state in RunState if not state.terminal])
def test_no_live_run_is_without_a_reason_whatever_its_rows_are(state: RunState) -> None:
    for row in ROWS:
        explained = explain(a_record(status=state, attempts=[row]))
        assert all(one.next and one.said for one in explained.reasons)
        if not row.cancel or row.state is AttemptState.RUNNING:
            assert row.call in {one.call for one in explained.reasons}, row
            assert explained.sentences[-1].startswith("Next: ")
    no_rows = explain(a_record(status=state, waits="a message on 'go'"))
    assert no_rows.reasons
    assert no_rows.facts["next"] in no_rows.sentences[-1]


def test_everything_for_which_a_row_is_parked_has_a_reason() -> None:
    whys = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    assert whys == set(PARKED)


def test_everything_that_a_run_can_be_told_has_its_words() -> None:
    assert set(TOLD) == set(FactKind)
    for kind in FactKind:
        [one] = explain(a_record(told=[a_fact(kind)], attempts=[an_attempt()])).reasons[:1]
        assert one.because is Because.TOLD
        assert f"It {TOLD[kind]} 30.0s ago by ada" in one.said


def test_what_holds_a_run_is_recognised_by_its_first_words() -> None:
    for words, because in HELD.items():
        if because is not Because.NO_CODE:
            assert found(a_record(held=f"{words}: so"), because).next
    sealed = why_sealed(unopened(SEALED, "sealed with key 'a', which is not among the keys here"))
    assert found(a_record(held=sealed), Because.NO_KEY).next == "whoever starts a process that has the key"
    assert found(a_record(held="KeyError left the workflow's code: 'key'"), Because.HELD).next == "an operator"


def test_what_keeps_all_of_a_run_is_said_to_be_next_before_what_is_sooner() -> None:
    row = an_attempt(state=AttemptState.PARKED, why="backoff", failures=1, watch_at=NOW + SECOND)
    assert explain(a_record(attempts=[row])).facts["next"] == "the supervisor"
    explained = explain(a_scene(a_record(attempts=[row]), served=False))
    assert explained.facts["next"] == "whoever opens rooms on this store"
    two = [an_attempt(watch_at=LATER), msgspec.structs.replace(row, id=2, call="ship")]
    assert explain(a_record(attempts=two)).facts["when"] == to_datetime(NOW + SECOND), "what is sooner"


def test_agents_are_called_by_their_names() -> None:
    record = a_scene(running(), agents=(AgentSeen(7, "render-3", "alive", NOW),))
    assert "runs as attempt 1 on agent render-3" in str(explain(record))
    assert explain(record).facts["calls"][0]["agent_name"] == "render-3"


def test_an_agent_whose_beat_does_not_come_makes_its_runs_silent() -> None:
    for state, health in (("alive", Health.OK), ("silent", Health.SILENT), ("lost", Health.SILENT)):
        record = a_scene(running(), agents=(AgentSeen(7, "a1", state, NOW - 9 * SECOND),))
        assert status_of(record).health is health
        assert (f"that agent is {state}, and was last heard 9.0s ago" in str(explain(record))) is (state != "alive")


def test_a_call_whose_agent_is_suspended_says_so_and_why() -> None:
    suspension = encode(Suspension(NOON, NOON, SECOND, "of step 'charge' it failed 9 of 9 attempts", ("charge",)))
    seen = AgentSeen(7, "a1", "alive", NOW, suspension)
    said = "agent a1 is suspended since 2027-01-15 12:00:00Z: of step 'charge' it failed 9 of 9 attempts"
    backing_off = an_attempt(state=AttemptState.PARKED, why="backoff", failures=1, agent=7, watch_at=NOW + SECOND)
    for record in (running(), a_record(attempts=[backing_off])):
        assert said not in str(explain(record))
        explained = explain(a_scene(record, agents=(seen,)))
        assert said in str(explained)
        assert explained.facts["calls"][0]["agent_suspended"] == "of step 'charge' it failed 9 of 9 attempts"
    assert found(a_scene(running(), agents=(seen,)), Because.AT_WORK).next == "agent a1", "what it has may well be done"
    unserved = found(ready(waits(served=False, suspended=2)), Because.AGENTS_SUSPENDED)
    assert "2 that could take it are suspended" in unserved.said


def test_a_question_says_who_holds_it_until_when_there_is_time_and_who_is_asked_then() -> None:
    item = DeskItem(1, NOON, "bob", NOW + 60 * SECOND, None)
    record = a_question(desk=item, within=3_600 * SECOND, escalate_to="boss")
    one = found(record, Because.QUESTION)
    assert (one.next, one.when) == ("bob", to_datetime(NOON + 3_600 * SECOND))
    assert "There is time until 2027-01-15 13:00:00Z; then 'boss' is asked." in one.said
    assert "bob holds it until 2027-01-15 12:02:30Z." in one.said
    nobody_then = found(a_question(desk=item._replace(claimed_by=None), within=SECOND), Because.QUESTION)
    assert nobody_then.next == "somebody of 'team'"
    assert "then the workflow goes on without it" in nobody_then.said


def test_what_a_person_has_decided_waits_for_the_scheduler_alone() -> None:
    told = msgspec.structs.replace(a_fact(FactKind.RESOLVE), ref="1", actor="ada")
    record = a_scene(parked("escalate"), told=(told,), desk=(DeskItem(1, NOON, None, None, 255),))
    one = found(record, Because.ESCALATE)
    assert one.next == "its scheduler"
    assert "It belongs to incident ff. ada has decided 30.0s ago" in one.said
    assert len(explain(record).reasons) == 1, "it is told once"


RESUME = msgspec.json.encode(Resolution(Action.RESUME, "the line is back"))
FOR_ALL = "ada has decided 30.0s ago for all of incident ff: resume (the line is back)."
AT_A_PACE = "The supervisor tells it to 10 in each second; this one has not been told yet."


@pytest.mark.parametrize("because", [Because.ESCALATE, Because.DOUBT, Because.QUARANTINE])
def test_what_somebody_has_decided_for_all_of_an_incident_waits_for_the_supervisor(because: Because) -> None:
    item = DeskItem(1, NOON, "bob", LATER, 255, Wanted("ada", NOW - 30 * SECOND, 10, RESUME))
    record = a_scene(parked(because.value), desk=(item,))
    one = found(record, because)
    assert one.next == "the supervisor"
    assert f"{FOR_ALL} {AT_A_PACE}" in one.said
    assert "To decide" not in one.said
    assert "`retry`" not in one.said
    assert "somebody" not in str(explain(record))
    assert str(explain(record)).endswith("Next: the supervisor.")
    [call] = explain(record).facts["calls"]
    assert (call["decided_by"], call["decided"], call["reason"], call["per_second"]) == (
        "ada", "resume", "the line is back", 10,
    )  # fmt: skip
    told = msgspec.structs.replace(a_fact(FactKind.RESOLVE), ref="1", actor="eve")
    assert found(a_scene(record, told=(told,)), because).next == "its scheduler", "somebody was faster"


def test_runs_that_stand_still_or_have_ended_say_what_somebody_has_decided_for_all_of_them() -> None:
    wanted = Wanted("ada", NOW - 30 * SECOND, 10, msgspec.json.encode(RetryAsked(None, "the line is back")), "retry")
    diverged = a_scene(a_record(status=RunState.DIVERGED), incident=255, wanted=wanted)
    held = a_scene(a_record(status=RunState.RUNNING, held="held: a reason"), incident=255, wanted=wanted)
    for still in (diverged, held):
        assert f"{FOR_ALL} {AT_A_PACE}" in str(explain(still))
        assert str(explain(still)).endswith("Next: the supervisor.")
        assert "watchbill incidents resume" not in str(explain(still))
    aborted = wanted._replace(kind="cancel", body=b'"no use"')
    assert "incident ff: abort (no use)." in str(explain(a_scene(held, wanted=aborted)))
    ended = a_scene(a_failed_run(RunError("ValueError", "no", step="charge", attempts=1)), incident=255)
    assert "watchbill incidents retry ff" in str(explain(ended))
    retried = wanted._replace(kind="resolve", body=msgspec.json.encode(Resolution(Action.RETRY, "mended")))
    assert "for all of incident ff: retry (mended)." in str(explain(a_scene(ended, wanted=retried)))
    assert "watchbill incidents" not in str(explain(a_scene(ended, wanted=retried)))


def test_what_is_wanted_for_all_is_said_as_far_as_it_can_be_read() -> None:
    sealed = Wanted("ada", NOW, 10, SEALED + b"x")
    item = DeskItem(1, NOON, None, None, 255, sealed)
    said = str(explain(a_scene(parked("escalate"), desk=(item,))))
    assert f"for all of incident ff: something ({shown(sealed.body)})" in said
    newer = item._replace(wanted=sealed._replace(body=b'{"action":"later"}'))
    assert "for all of incident ff: something." in str(explain(a_scene(parked("escalate"), desk=(newer,))))


def test_a_failed_run_tells_what_went_wrong_on_the_way_with_causes() -> None:
    error = RunError("ValueError", "no", step="charge", attempts=2, cause=Cause.RAISED)
    record = a_failed_run(error)
    record = a_scene(
        record,
        decisions=((a_judged_attempt("charge", 1, "not yet"), NOON + 2 * SECOND),),
        agents=(AgentSeen(7, "a1", "alive", NOON),),
    )
    explained = explain(record)
    assert "  2027-01-15 12:00:02Z step failed charge, attempt 1 on agent a1: raised: ValueError: not yet" in (
        explained.sentences
    )
    assert "  2027-01-15 12:00:02Z park charge, attempt 1: retry -> stopped with its run" in explained.sentences
    assert [event.kind for event in explained.facts["trouble"]] == ["step_failed", "park"]


def test_a_run_of_a_schedule_says_when_its_slot_was() -> None:
    late = explain(a_record(id="nightly@2027-01-15T02:00:00Z", slot=NOON - 10 * 3_600 * SECOND))
    assert "Its slot was 2027-01-15 02:00:00Z; it was started 10h 00m later" in str(late)
    assert "Its slot" not in str(explain(a_record(id="nightly@2027-01-15T12:00:00Z", slot=NOON)))
    assert "Its slot" not in str(explain(a_record(id="nightly@now-1")))


def test_what_is_sealed_is_said_to_be() -> None:
    body = SEALED + bytes([2]) + b"k1" + bytes(40)
    end = an_entry(1, Kind.END, "")._replace(body=body)
    for status in RunState:
        if status.terminal:
            explained = explain(a_record(status=status, ended_at=NOW, journal=[end]))
            assert ("sealed with key 'k1'" in str(explained)) is (status is not RunState.COMPLETED)
            assert "result" not in explained.facts
    told = [msgspec.structs.replace(a_fact(kind), body=body) for kind in FactKind]
    assert "was asked to be cancelled 30.0s ago by ada ((sealed with key 'k1'))" in str(explain(a_record(told=told)))
    row = an_attempt(
        args=body, progress=body, result=body, doubt=body, state=AttemptState.PARKED, why="escalate", watch_at=LATER
    )
    for state, kind in product(AttemptState, RowKind):
        assert explain(a_record(attempts=[msgspec.structs.replace(row, state=state, kind=kind)])).reasons


def test_room_is_what_slots_and_amounts_leave() -> None:
    one, other = Helper("", ("gpu=2",), 3, (("gpu=1",), ())), Helper("", (), 4)
    assert help_for((), "", [one, other]) == Help(2, 0, 5)
    assert help_for(("gpu=1",), "", [one, other]) == Help(1, 1, 1)
    assert help_for(("gpu=2",), "", [one, other]) == Help(1, 1, 0)
    assert help_for((), "eu", [one, other]) == Help(0, 0, 0)


def test_who_is_quarantined_and_could_take_a_call_is_named_and_counts_as_nobody() -> None:
    away = [Helper("", ("gpu=2",), 3, quarantined=name) for name in ("b", "a")]
    plain = Helper("", (), 1)
    assert help_for(("gpu=1",), "", [*away, plain]) == Help(0, 1, 0, 0, ("a", "b"))
    assert help_for(("disk=1",), "", [*away, plain]) == Help(0, 1, 0)
    assert help_for(("gpu=1",), "eu", away) == Help(0, 0, 0)


def test_a_call_whose_agents_are_quarantined_names_them_and_says_how_to_release_one() -> None:
    one = found(ready(waits(served=False, able=0, quarantined=("a 1",))), Because.AGENTS_QUARANTINED)
    assert "but agent a 1, which could take it, is quarantined" in one.said
    assert "`watchbill agents release 'a 1'`" in one.said
    names = tuple("abcdefg")
    many = found(ready(waits(served=False, able=0, quarantined=names)), Because.AGENTS_QUARANTINED)
    assert "but the 7 agents that could take it are quarantined (a, b, c, d, e, ...)" in many.said
    assert many.next == "whoever releases one of a, b, c, d, e, ..."
    suspended = ready(waits(served=False, able=0, suspended=1, quarantined=names))
    assert found(suspended, Because.AGENTS_SUSPENDED).next.startswith("a suspended agent"), "which needs nobody"


PAUSED = Standing(paused=True, paused_by="ann", paused_why="stock-taking", paused_at=NOON)
DOWN = Standing(breaker=encode_breaker(opened(WELL, "closed by bob", NOON)))


@pytest.mark.parametrize("name", ["step:charge", "workflow:order", "needs:gpu", "limit:charge"])
def test_a_pause_is_said_before_a_dependency_that_is_down(name: str) -> None:
    stopped, asks = {"uses:stripe": DOWN, name: PAUSED}, (("gpu=1",), "stripe", "charge", "order")
    stop, down = kept_by(stopped, asks, "limit:charge", NOW), down_of(stopped, "stripe", NOW)
    assert stop is not None
    assert (stop.name, stop.paused_by) == (name, "ann")
    record = ready(waits(stop=stop, down=down))
    one = found(record, Because.PAUSED_BY_NAME)
    assert f"waits for '{name}', paused by ann since 2027-01-15 12:00:00Z (stock-taking)" in one.said
    assert f"`watchbill gates open {name}`; also down is dependency 'stripe': its breaker opened at" in one.said
    assert explain(record).facts["next"] == f"whoever opens '{name}'"
    assert explain(record).facts["calls"][0]["down"] == down
    alone = kept_by({"uses:stripe": DOWN}, asks, "limit:charge", NOW)
    assert alone is not None
    assert (alone.name, alone.paused) == ("uses:stripe", False)


def test_of_a_dependency_that_is_down_and_paused_the_pause_is_said_once() -> None:
    stopped = {"uses:stripe": DOWN._replace(paused=True, paused_by="ann")}
    stop, down = kept_by(stopped, ((), "stripe", "charge", "order"), None, NOW), down_of(stopped, "stripe", NOW)
    assert down is not None
    one = found(ready(waits(stop=stop, down=down)), Because.PAUSED_BY_NAME)
    assert "down" not in one.said


def test_a_dependency_that_is_well_or_that_nobody_uses_is_not_down() -> None:
    assert down_of({"uses:stripe": PAUSED}, "stripe", NOW) is None
    assert down_of({"uses:stripe": DOWN}, "", NOW) is None
    assert down_of({"uses:stripe": DOWN}, "twilio", NOW) is None


def test_what_was_told_waits_for_whoever_opens_rooms_while_no_scheduler_is_there() -> None:
    for status, held in product([state for state in RunState if not state.terminal], (None, "MemoryError: no")):
        told = a_record(status=status, held=held, told=[a_fact(FactKind.CANCEL)], wake_at=LATER)
        assert explain(told).facts["next"] == "its scheduler"
        for region, next in (("", "whoever opens rooms on this store"), ("eu", "whoever opens rooms with region='eu'")):
            explained = explain(a_scene(told, served=False, region=region))
            assert (explained.facts["next"], explained.facts["when"]) == (next, None)
            assert explained.sentences[-1] == f"Next: {next}."
            assert "its scheduler will see to it" not in str(explained)


def test_who_is_past_its_deadline_waits_for_whoever_opens_rooms_while_no_scheduler_is_there() -> None:
    explained = explain(a_scene(a_record(deadline=NOON), served=False))
    assert (explained.facts["next"], explained.facts["when"]) == ("whoever opens rooms on this store", None)


def test_a_call_beyond_the_retry_budget_says_how_much_of_it_is_used_and_when_the_next_may_start():
    record, _, _ = SCENES[Because.RETRY_BUDGET]
    said = str(explain(record))
    assert "waits for the retry budget of dependency 'stripe': 36 retries of 36 started within 30 s" in said
    assert "the next may at" in said
    assert status_of(record).health is Health.WAITING_FOR_DEPENDENCY


def test_call_beyond_the_quota_of_attempts_says_how_many_run_and_how_to_raise_it():
    said = str(explain(SCENES[Because.QUOTA][0]))
    assert "the quota of namespace 'shop', which is used up: 5 attempts run, at most 5 may" in said
    assert "`watchbill quota set --attempts 10 --namespace shop --reason TEXT` raises it" in said


def test_whoever_is_asked_acts_next_and_has_time_until_the_run_wakes():
    desk = DeskItem(1, NOON, None, None, None)
    for patience, wakes in (({}, None), ({}, LATER), ({"within": 3_600 * SECOND}, NOON + 3_600 * SECOND + 7)):
        record = a_question(desk=desk, **patience)
        run = msgspec.structs.replace(record.run, wake_at=wakes, waits="an answer to 'ask'")
        record = a_scene(record, run=run)
        facts = explain(record).facts
        due = NOON + 3_600 * SECOND if patience else wakes
        assert facts["next"] == "somebody of 'team'"
        assert facts["when"] == (None if due is None else to_datetime(due))
        assert (status_of(record).state, status_of(record).health) == ("waiting", Health.WAITING_FOR_PERSON)


@pytest.mark.parametrize("topic", ["go", "it's", 'say "go"', "a, b", "back\\slash"])
def test_whoever_sends_a_message_acts_next_and_the_command_has_its_topic(topic):
    waits = f"a message on {topic!r}, run 'order-1/ship'"
    facts = explain(a_record(status=RunState.WAITING, waits=waits, wake_at=LATER)).facts
    command = f"`watchbill run send order-1 {shlex.quote(topic)} JSON`"
    assert facts["next"] == f"a client that sends {topic!r}: {command}"
    assert facts["when"] == to_datetime(LATER)


def test_a_deadline_is_no_time_that_a_run_sleeps_for():
    record = a_record(status=RunState.WAITING, waits="a message on 'go'", wake_at=LATER, deadline=LATER)
    assert [one.because for one in explain(record).reasons] == [Because.MESSAGE]


def test_a_silent_agent_says_when_it_is_judged_if_it_stays_so():
    seen = AgentSeen(7, "a1", "silent", NOW - 5 * SECOND, None, NOW + 3 * SECOND)
    explained = explain(a_scene(running(), agents=(seen,)))
    assert "was last heard 5.0s ago; if it stays silent it is judged at 2027-01-15 12:01:33Z" in str(explained)
    assert (explained.facts["next"], explained.facts["when"]) == ("the supervisor", to_datetime(NOW + 3 * SECOND))
    late = explain(a_scene(running(), agents=(seen._replace(until=NOW),)))
    assert "the supervisor will move it elsewhere" in str(late)


SOON, BOSS = Rung(to="team", within=60 * SECOND), Rung(to="boss")
OTHER_WAY = Rung(step="b", policy=Policy(retries=1), said="region='us'")


@pytest.mark.parametrize(
    ("ladder", "watch_at", "said"),
    [
        ((SOON, BOSS), LATER, "then somebody of 'boss' decides."),
        ((SOON, OTHER_WAY), LATER, "then it is tried another way (region='us')."),
        ((SOON,), LATER, "then the call fails."),
        (
            (SOON, BOSS),
            UNTOLD,
            "There is 60 s for it from when its incident is opened; then somebody of 'boss' decides.",
        ),
    ],
)
def test_call_that_waits_for_people_says_until_when_and_what_follows(
    ladder: tuple[Rung, ...], watch_at: int, said: str
) -> None:
    policy = msgspec.json.encode(Policy(cures=Cures(ladder)))
    record = parked("escalate", rung=1, watch_at=watch_at, policy=policy)
    assert said in found(record, Because.ESCALATE).said


def test_call_behind_very_many_says_that_they_were_not_all_counted() -> None:
    one = found(ready(waits(able=2, free=0, ahead=MOST_COUNTED)), Because.AGENTS_FULL)
    assert "with 1,000 or more urgent ones before it" in one.said


def test_order_with_more_than_a_reason_is_told_by_its_reason() -> None:
    record = a_record(told=[a_fact(FactKind.RETRY, {"step": "charge", "reason": "the line is back"})])
    assert "by ada (the line is back)" in str(explain(record))


def test_run_without_an_agent_names_none() -> None:
    assert agent_name(scene_of(a_record()), None) == "no agent"
