"""Judgement: a verdict as the store applies it, with the decision that explains it. Pure: facts in."""

from typing import assert_never

import msgspec

from watchbill.clock import Micros
from watchbill.model.attempt import SLOW, AttemptRow, RowKind
from watchbill.model.breaker import CANARY
from watchbill.model.decision import OBSERVER, SUPERVISOR, Decision
from watchbill.model.failure import Cause, Failure, Probed
from watchbill.model.limits import limits_of
from watchbill.model.overridden import span_of
from watchbill.model.override import override_words
from watchbill.model.parked import BACKOFF, DOUBT, QUARANTINE, SETTLE, UNTOLD, people_of
from watchbill.model.policy import Cures, Policy, decode_policy
from watchbill.model.question import failure_in
from watchbill.model.states import AttemptState
from watchbill.model.symptom import AgentDead, Failed, Late, NotYet, PersonLate, Stalled, Symptom, Unreadable
from watchbill.model.usual import modes_of
from watchbill.model.verdict import (
    Ask,
    AskPerson,
    Climb,
    GiveUp,
    Judgement,
    LetEnd,
    LookAgain,
    MarkFailed,
    Quarantine,
    Recast,
    Settle,
    TryLater,
    TryNow,
    Verdict,
)
from watchbill.supervisor.alternatives import alternatives
from watchbill.supervisor.judge import LOSSES, doubt_of

_encode = msgspec.json.Encoder().encode


def judgement(row: AttemptRow, symptom: Symptom, verdict: Verdict) -> Judgement:
    """Write a verdict as the store applies it, with the decision that explains it."""
    change = _change(row, verdict, symptom)
    if row.kind == RowKind.PROBE and isinstance(symptom, Failed):
        # A probe is no attempt of the step: it is in neither budget.
        lost = symptom.failure.cause in LOSSES
        change = change._replace(failures=change.failures - int(not lost), losses=change.losses - int(lost))
    policy = decode_policy(row.policy)
    recast = _recast(row, verdict, policy, change.failures)
    if isinstance(verdict, Climb):
        change = change._replace(failures=-row.failures)
    actor = OBSERVER if isinstance(verdict, LookAgain) else SUPERVISOR
    # What is slow is no longer known to be a canary: that it may be is enough, for all that follows is that agents ask.
    tried = row.state is AttemptState.FAILED and row.why in (CANARY, SLOW) and bool(policy.uses)
    unsure = _unsure(row, symptom, verdict)
    acts_in = symptom.settles_in or None if isinstance(symptom, Failed | Unreadable) else None
    change = change._replace(recast=recast, body=_reason(row, symptom, verdict), actor=actor)
    return change._replace(tried=tried, unsure=unsure, acts_in=acts_in)


def _unsure(row: AttemptRow, symptom: Symptom, verdict: Verdict) -> bool | None:
    """Say whether an attempt may have taken effect, if that is news: it was taken away, or a probe knows better.

    A probe knows of its own rung; what was tried before it another way may have taken effect all the same.
    """
    if isinstance(symptom, Failed) and symptom.failure.probed is Probed.NOT_DONE:
        return None if row.rung else False
    taken_away = isinstance(verdict, MarkFailed) and row.kind != RowKind.PROBE
    in_doubt = isinstance(verdict, Settle | Ask | AskPerson) and verdict.doubt is not None
    return True if taken_away or in_doubt else None


def _change(row: AttemptRow, verdict: Verdict, symptom: Symptom) -> Judgement:  # noqa: C901 - one case for each
    match verdict:
        case MarkFailed(failure=failure, failures=failures, losses=losses, last=last):
            dead = symptom.agent if isinstance(symptom, AgentDead) else None
            change = _to(row, AttemptState.FAILED, watch_in=0, result=_encode(failure))
            change = change._replace(dead_agent=dead, failures=failures, losses=losses, last=last)
            if isinstance(symptom, Late | Stalled):
                # What it said between the look and this verdict may be that it needs longer: then it has it.
                change = change._replace(unmoved=True, progress=row.progress)
            return change
        case TryNow() | Climb() | Ask():
            return _to(row, AttemptState.READY)
        case TryLater(delay=delay, free=free):
            return _to(row, AttemptState.PARKED, watch_in=delay, why=BACKOFF)._replace(failures=-int(free))
        case Settle(delay=delay):
            return _to(row, AttemptState.PARKED, watch_in=delay, why=SETTLE)
        case AskPerson(why=why, people=people, failure=failure):
            result = row.result if failure is None else _encode(failure)
            within = None if people.within is None else people.within + UNTOLD
            return _to(row, AttemptState.PARKED, watch_in=within, why=why, result=result)
        case GiveUp(failure=failure):
            return _to(row, AttemptState.GAVE_UP, result=_ended_with(row) if failure is None else _encode(failure))
        case LetEnd(delay=delay):
            return _to(row, AttemptState.RUNNING, watch_in=delay, why=row.why)
        case LookAgain(delay=delay):
            slow = isinstance(symptom, NotYet) and symptom.slow
            return _to(row, AttemptState.RUNNING, watch_in=delay, why=SLOW if slow else row.why)
        case Quarantine():
            return _to(row, AttemptState.PARKED, why=QUARANTINE, result=_ended_with(row))
        case _:
            assert_never(verdict)


def _ended_with(row: AttemptRow) -> bytes | None:
    """Give how the last attempt ended: not what a probe has said of it, or failed with."""
    return row.result if row.kind != RowKind.PROBE or row.doubt is None else _encode(doubt_of(row).failure)


def _recast(row: AttemptRow, verdict: Verdict, policy: Policy, failures: int) -> Recast | None:
    """Give what a row is about from now on; None: as before."""
    same = Recast(row.kind, row.step, row.rung, row.policy, None, policy.own, 0, row.doubt)
    if row.kind == RowKind.PROBE:
        same = same._replace(kind=RowKind.STEP, doubt=None)
    match verdict:
        case Climb(rung=rung):
            return _climb(policy, rung)._replace(earlier=row.failures + failures)
        case Settle(doubt=doubt):
            return same._replace(kind=RowKind.STEP, doubt=_encode(doubt))
        case Ask(doubt=doubt):
            return same._replace(kind=RowKind.PROBE, doubt=_encode(doubt))
        case AskPerson(rung=rung, doubt=doubt):
            kept = row.doubt if row.state is AttemptState.PARKED else None
            asked = _asking(policy, verdict) if verdict.why == DOUBT else row.policy
            return same._replace(rung=rung, policy=asked, doubt=kept if doubt is None else _encode(doubt))
        case TryLater(free=True):
            return same._replace(earlier=1)
        case TryNow(alone=True):
            return same._replace(policy=_encode(msgspec.structs.replace(policy, own=True)), alone=True)
        case MarkFailed(failures=0, losses=-1) if row.kind != RowKind.PROBE:
            return same._replace(earlier=1)  # forgiven: in neither budget, but it has been tried
        case MarkFailed() | LookAgain() | LetEnd():
            return None  # the probe itself was found dead or late: that is judged next
        case _:
            return same if row.kind == RowKind.PROBE else None


def _asking(policy: Policy, verdict: AskPerson) -> bytes:
    """Give a policy that says which people a doubt is left to: the rung stays that of the attempt in doubt."""
    cures = msgspec.structs.replace(policy.cures or Cures(), asked=verdict.people.rung)
    return _encode(msgspec.structs.replace(policy, cures=cures))


def _climb(policy: Policy, rung: int) -> Recast:
    way = policy.ladder[rung - 1]
    there = way.policy or policy
    there = msgspec.structs.replace(there, cures=Cures(policy.ladder, there.idempotent, there.probes))
    return Recast(
        RowKind.STEP, way.step, rung, _encode(there), span_of(there.first_look), there.own, 0, None,
        restart=True, gate=way.gate,
    )  # fmt: skip


def _reason(row: AttemptRow, symptom: Symptom, verdict: Verdict) -> bytes | None:
    """Write down why, and why nothing else; what was not decided has no reason."""
    slow = symptom.slow if isinstance(symptom, NotYet) else ""
    if isinstance(verdict, LookAgain) and not slow:
        return None
    failure, policy = _failure(row, symptom, verdict), decode_policy(row.policy)
    decision = Decision(
        rule=_rule(row, verdict, slow),
        chosen=verdict.chosen,
        step=row.step,
        number=row.number,
        rung=row.rung,
        agent=row.agent,
        started_at=_began(row, failure),
        ended_at=row.ended_at,
        cause=failure.cause if failure is not None else None,
        type=failure.type if failure is not None else "",
        message=failure.message if failure is not None else "",
        traceback=failure.traceback if failure is not None else "",
        delay=verdict.delay if isinstance(verdict, TryLater | Settle) else 0,
        rejected=alternatives(row, policy, symptom, verdict),
        override=override_in(row),
        since=went_wrong(row, symptom),
        undecided=people_of(row.why or "", row.rung, policy).group if isinstance(symptom, PersonLate) else None,
        probed=_probed(row, symptom),
        beyond=f"{modes_of(policy.learned).of(symptom.rule)} {symptom.rule}" if isinstance(symptom, NotYet) else "",
    )
    return _encode(decision)


def _began(row: AttemptRow, failure: Failure | None) -> Micros | None:
    """Say when the attempt began that is judged."""
    if failure is None or failure.began_at is None or row.kind == RowKind.PROBE:
        return row.started_at
    return failure.began_at


def _probed(row: AttemptRow, symptom: Symptom) -> str:
    """Say what a probe has answered, which is no attempt of the step; or that it gave no answer."""
    if row.kind != RowKind.PROBE:
        return ""
    said = symptom.failure.probed if isinstance(symptom, Failed) else None
    return "failed" if said is None else said.value


def _rule(row: AttemptRow, verdict: Verdict, slow: str) -> str:
    match verdict:
        case MarkFailed(failure=failure):
            return f"found {failure.cause}"
        case LookAgain():
            return f"beyond what was learned: {slow}"
        case _:
            return verdict.rule + _different(row, verdict)


def _different(row: AttemptRow, verdict: Verdict) -> str:
    """Say of another way what is different there."""
    said = decode_policy(row.policy).ladder[verdict.rung - 1].said if isinstance(verdict, Climb) else ""
    return said and f": {said}"


def override_in(row: AttemptRow) -> str:
    """Say what an operator had changed of the policy that a row is judged by."""
    override = decode_policy(row.policy).override
    return "" if override is None else override_words(override)


def went_wrong(row: AttemptRow, symptom: Symptom) -> Micros | None:
    """Say when what was found had gone wrong: when its time was over, it last moved, or its agent was last heard.

    None: its end tells, or nobody knows.
    """
    match symptom:
        case Late():
            return limits_of(row).late_at
        case Stalled():
            return limits_of(row).moved_at
        case PersonLate():
            return row.watch_at
        case AgentDead(heard_at=heard_at) if heard_at is not None:
            return max(heard_at, row.started_at or 0)  # it was alive when it leased it
        case _:
            return None


def _failure(row: AttemptRow, symptom: Symptom, verdict: Verdict) -> Failure | None:
    """Give the failure that a decision is about; of what may have taken effect and is given up, that nobody knows."""
    if isinstance(verdict, GiveUp) and verdict.failure is not None:
        return verdict.failure
    if isinstance(symptom, PersonLate):
        return failure_in(row.result)
    if isinstance(verdict, MarkFailed | AskPerson):
        return verdict.failure
    if isinstance(symptom, Unreadable):
        return Failure("Sealed", f"how it failed is {symptom.why}", cause=Cause.UNKNOWN)
    if isinstance(symptom, Failed):
        return symptom.failure
    return verdict.doubt.failure if isinstance(verdict, Settle | Ask) else None


def _to(
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
        policy=row.policy,
        watch_at=row.watch_at,
        cancel=row.cancel,
    )
