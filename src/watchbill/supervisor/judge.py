"""Judgement: what to do about a symptom. Pure, and the only retry engine of the house."""

from typing import assert_never

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.attempt import AttemptRow, how_far
from watchbill.model.decision import Decision
from watchbill.model.failure import Cause, Failure, Remedy
from watchbill.model.limits import SLOW, learned_stall, learned_timeout, limits_of, mark_of
from watchbill.model.policy import OWN_CHILD_AFTER, OWN_CHILD_FROM, QUARANTINE_AT, Policy
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
from watchbill.model.verdict import (
    GiveUp,
    Judgement,
    LetEnd,
    LookAgain,
    MarkFailed,
    Quarantine,
    TryLater,
    TryNow,
    Verdict,
)

LOSSES = frozenset({Cause.LOST, Cause.KILLED, Cause.STARVED})  # nobody's fault in the step's own code

_encode = msgspec.json.Encoder().encode
_decode_policy = msgspec.json.Decoder(Policy).decode


def judge(symptom: Symptom, row: AttemptRow, policy: Policy, chance: float) -> Verdict:
    """Decide; `chance` below 1 spreads retries that would otherwise come back together."""
    match symptom:
        case AgentDead(agent=agent):
            failure = Failure("Lost", f"agent {agent} did not renew its lease", cause=Cause.LOST)
            # What ran in a process of its own cannot have killed its agent: the loss is forgiven.
            innocent = policy.own or row.losses > OWN_CHILD_FROM
            return MarkFailed(failure, failures=0, losses=-int(innocent))
        case Late(by=by):
            return MarkFailed(_late(row, policy, by), failures=1, losses=-1)
        case Stalled(by=by):
            return MarkFailed(_stalled(row, policy, by), failures=1, losses=-1)
        case NotYet(left=left):
            return LookAgain(left)
        case CancelOverdue():
            # A thread, or code that swallows it. Called ended while it runs, it would be undone while it still acts.
            return LetEnd("asked to stop, and did not within the grace: it runs on until it returns or its agent dies")
        case BackoffOver():
            return TryNow("the backoff is over")
        case Unreadable(why=why):
            return Quarantine(f"how it failed is {why}")  # nobody here can tell whether trying again would help
        case Failed(failure=failure):
            return _after_failure(failure, row, policy, chance)
        case _:
            assert_never(symptom)


def _late(row: AttemptRow, policy: Policy, by: Micros) -> Failure:
    mark = mark_of(row)
    longer = f", extended by {mark.extended / SECOND:g} s" if mark is not None and mark.extended else ""
    allowed = (learned_timeout(row) or f"its timeout of {policy.timeout / SECOND:g} s") + longer
    return Failure("Late", f"still running {by / SECOND:.1f} s after {allowed}", cause=Cause.LATE)


def _stalled(row: AttemptRow, policy: Policy, by: Micros) -> Failure:
    """Say what was seen: how far it was, and since when."""
    limits, mark = limits_of(row), mark_of(row)
    far = f"at {how_far(mark)} " if mark is not None and mark.begun else ""
    since = f"{to_datetime(limits.moved_at):%Y-%m-%d %H:%M:%S}Z"
    quiet = (limits.next_at - limits.moved_at + by) / SECOND
    allowed = learned_stall(row) or f"its stall is {(policy.stall or 0) / SECOND:g} s"
    if mark is not None and mark.quiet_until is not None:
        allowed += f", and the time is over in which it was quiet for {mark.quiet_for!r}"
    message = f"no progress for {quiet:.1f} s: {far}since {since}; {allowed}"
    return Failure("Stalled", message, cause=Cause.STALLED)


def _after_failure(failure: Failure, row: AttemptRow, policy: Policy, chance: float) -> Verdict:
    if row.cancel:
        return GiveUp("the run does not want it any more")
    if failure.cause in LOSSES:
        if row.losses >= QUARANTINE_AT:
            return Quarantine(f"lost {row.losses} times: whatever runs it dies")
        rule = f"loss {row.losses} of {QUARANTINE_AT} is not the step's failure: at once"
        if failure.cause in OWN_CHILD_AFTER and not policy.own:
            return TryNow(f"{rule}, in a process of its own", alone=True)
        return TryNow(rule)
    if failure.remedy is Remedy.GIVE_UP:
        return GiveUp(f"{failure.type} is permanent")
    if failure.remedy is Remedy.NEXT_RUNG:
        return GiveUp(f"{failure.type} is left out by Retry(on=, never=)")
    if row.failures > policy.retries:
        return GiveUp(f"all {policy.retries} retries are used up")
    return TryLater(f"retry {row.failures} of {policy.retries}", policy.delay_before(row.failures, chance))


def judgement(row: AttemptRow, symptom: Symptom, verdict: Verdict) -> Judgement:
    """Write a verdict as the store applies it, with the decision that explains it."""
    match verdict:
        case MarkFailed(failure=failure, failures=failures, losses=losses):
            dead = symptom.agent if isinstance(symptom, AgentDead) else None
            change = _change(row, AttemptState.FAILED, watch_in=0, result=_encode(failure))
            change = change._replace(dead_agent=dead, failures=failures, losses=losses)
            if isinstance(symptom, Late | Stalled):
                # What it said between the look and this verdict may be that it needs longer: then it has it.
                change = change._replace(unmoved=True, progress=row.progress)
            return change._replace(body=_explain(row, failure, f"found {failure.cause}", "mark failed"))
        case TryNow(rule=rule, alone=alone):
            change = _change(row, AttemptState.READY)
            if alone:
                change = change._replace(alone=_encode(msgspec.structs.replace(_decode_policy(row.policy), own=True)))
            return change._replace(body=_explain(row, _of(symptom), rule, "retry"))
        case TryLater(rule=rule, delay=delay):
            change = _change(row, AttemptState.PARKED, watch_in=delay, why="backoff")
            return change._replace(body=_explain(row, _of(symptom), rule, "retry later", delay))
        case GiveUp(rule=rule):
            change = _change(row, AttemptState.GAVE_UP, result=row.result)
            return change._replace(body=_explain(row, _of(symptom), rule, "give up"))
        case LetEnd(rule=rule):
            return _change(row, AttemptState.RUNNING)._replace(body=_explain(row, _of(symptom), rule, "let it end"))
        case LookAgain(delay=delay):
            slow = isinstance(symptom, NotYet) and symptom.slow
            return _change(row, AttemptState.RUNNING, watch_in=delay, why=SLOW if slow else row.why)
        case Quarantine(rule=rule):
            change = _change(row, AttemptState.PARKED, why="quarantine", result=row.result)
            return change._replace(body=_explain(row, _of(symptom), rule, "quarantine"))
        case _:
            assert_never(verdict)


def _change(
    row: AttemptRow,
    after: AttemptState,
    *,
    watch_in: int | None = None,
    why: str | None = None,
    result: bytes | None = None,
) -> Judgement:
    return Judgement(
        id=row.id,
        fence=row.fence,
        state=row.state,
        progress_at=row.progress_at,
        dead_agent=None,
        after=after,
        failures=0,
        losses=0,
        watch_in=watch_in,
        why=why,
        result=result,
        run=row.run,
        call=row.call,
        body=None,
    )


def _of(symptom: Symptom) -> Failure | None:
    if isinstance(symptom, Unreadable):
        return Failure("Sealed", f"how it failed is {symptom.why}", cause=Cause.UNKNOWN)
    return symptom.failure if isinstance(symptom, Failed) else None


def _explain(row: AttemptRow, failure: Failure | None, rule: str, chosen: str, delay: int = 0) -> bytes:
    return _encode(
        Decision(
            rule=rule,
            chosen=chosen,
            step=row.step,
            number=row.number,
            rung=row.rung,
            agent=row.agent,
            started_at=row.started_at,
            ended_at=row.ended_at,
            cause=failure.cause if failure is not None else None,
            type=failure.type if failure is not None else "",
            message=failure.message if failure is not None else "",
            traceback=failure.traceback if failure is not None else "",
            delay=delay,
        )
    )
