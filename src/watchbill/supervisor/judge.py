"""Judgement: what to do about a symptom. Pure, and the only retry engine of the house."""

from typing import Final, assert_never

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.attempt import AttemptRow, RowKind, how_far
from watchbill.model.failure import Cause, Doubt, Failure, Probed, Remedy
from watchbill.model.limits import learned_stall, learned_timeout, limits_of, mark_of
from watchbill.model.lost import evidence_against
from watchbill.model.parked import DOUBT, ESCALATE, SETTLE, People, people_after, people_of, people_on
from watchbill.model.policy import OWN_CHILD_AFTER, OWN_CHILD_FROM, QUARANTINE_AT, Policy
from watchbill.model.profile import STOPS_WITHIN
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.model.symptom import (
    AgentDead,
    BackoffOver,
    CancelOverdue,
    Failed,
    Late,
    NotYet,
    PersonLate,
    Stalled,
    Symptom,
    Unreadable,
)
from watchbill.model.verdict import (
    Ask,
    AskPerson,
    Climb,
    GiveUp,
    LetEnd,
    LookAgain,
    MarkFailed,
    Quarantine,
    Settle,
    TryLater,
    TryNow,
    Verdict,
)
from watchbill.supervisor.acting import may_act_for

LOSSES: Final = frozenset({Cause.LOST, Cause.KILLED, Cause.STARVED})  # nobody's fault in the step's own code
# An attempt that was taken from whoever had it, who may still act: it hears of it with a beat, at the latest when its
# lease has ended, and then stops it, or kills it. All others were reported by whoever had them.
TAKEN_AWAY: Final = frozenset({Cause.LOST, Cause.LATE, Cause.STALLED})
MOST_FORGIVEN: Final = 100  # attempts in neither budget: some fill the memory of their container, and all in it dies
MOST_PROBES: Final = 3  # that fail: then a person is asked
PROBE_AGAIN: Final[Micros] = 5 * SECOND

_decode_doubt = msgspec.json.Decoder(Doubt).decode


def judge(symptom: Symptom, row: AttemptRow, policy: Policy, chance: float) -> Verdict:  # noqa: C901 - one case for each
    """Decide; `chance` below 1 spreads retries that would otherwise come back together."""
    match symptom:
        case AgentDead(agent=agent, name=name, found=found):
            failure = Failure("Lost", evidence_against(agent, name, found), cause=Cause.LOST)
            # What ran in a process of its own has hardly killed its agent: the loss is forgiven, though not for ever.
            innocent = (policy.own or row.losses > OWN_CHILD_FROM) and row.earlier < MOST_FORGIVEN
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
        case BackoffOver() if row.why == SETTLE:
            return _settled(row, policy)
        case BackoffOver():
            return TryNow("the backoff is over")
        case PersonLate():
            return _undecided(row, policy)
        case Unreadable(why=why, acts_for=acts_for) if row.cancel:
            sealed = Failure("Sealed", f"how it failed is {why}", cause=Cause.UNKNOWN)
            return _unwanted(sealed, policy, may_act_for(acts_for))
        case Unreadable(why=why):
            return Quarantine(f"how it failed is {why}")  # nobody here can tell whether trying again would help
        case Failed(failure=failure, acts_for=acts_for):
            return _after_failure(failure, row, policy, chance, may_act_for(acts_for))
        case _:
            assert_never(symptom)


def _late(row: AttemptRow, policy: Policy, by: Micros) -> Failure:
    mark = mark_of(row)
    extended = policy.extended + (0 if mark is None else mark.extended)
    longer = f", extended by {extended / SECOND:g} s" if extended else ""
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


def _after_failure(failure: Failure, row: AttemptRow, policy: Policy, chance: float, acts_for: Micros) -> Verdict:
    if row.kind == RowKind.PROBE:
        return _after_probe(failure, row, policy, chance)
    if is_in_doubt(failure, policy) and (policy.probes or not row.cancel):
        return _in_doubt(Doubt(failure, unwanted=row.cancel), row, policy, acts_for)
    if row.cancel:
        return _unwanted(failure, policy, acts_for if failure.cause in TAKEN_AWAY else 0)
    return _after_attempt(failure, row, policy, chance, row.failures)


def _unwanted(failure: Failure, policy: Policy, acts_for: Micros) -> Verdict:
    """Decide about an attempt whose run does not want it any more: that the call has ended begins the undo."""
    rule = "the run does not want it any more"
    if acts_for:
        until = f"{rule}, and until then it may still act: not undone before ({_lease_words(acts_for)})"
        return Settle(until, acts_for + STOPS_WITHIN, Doubt(failure, unwanted=True), asks=policy.probes)
    return GiveUp(rule, _unsure(failure) if is_in_doubt(failure, policy) else None)


def _after_attempt(failure: Failure, row: AttemptRow, policy: Policy, chance: float, failures: int) -> Verdict:
    """Decide about an attempt that did not take effect, or may be tried again all the same."""
    if failure.cause in LOSSES:
        if row.losses >= QUARANTINE_AT:
            return Quarantine(f"lost {row.losses} times: whatever runs it dies")
        rule = f"loss {row.losses} of {QUARANTINE_AT} is not the step's failure: at once"
        if failure.cause in OWN_CHILD_AFTER and not policy.own:
            return TryNow(f"{rule}, in a process of its own", alone=True)
        return TryNow(rule)
    if failure.remedy is Remedy.GIVE_UP:
        return GiveUp(f"{failure.type} is permanent")
    if failure.remedy is Remedy.WAIT:
        delay = spread_out(failure.retry_after, chance)
        return TryLater("busy: again when it said, and it costs no retry", delay, free=True)
    if failure.remedy is Remedy.NEXT_RUNG:
        return _next_rung(f"{failure.type} is left out by Retry(on=, never=)", failure, row, policy)
    if failures > policy.retries:
        return _next_rung(f"all {policy.retries} retries are used up", failure, row, policy)
    return TryLater(f"retry {failures} of {policy.retries}", policy.delay_before(failures, chance))


def _next_rung(rule: str, failure: Failure | None, row: AttemptRow, policy: Policy) -> Verdict:
    if row.rung >= len(policy.ladder):
        return GiveUp(rule)
    if policy.ladder[row.rung].to is None:
        return Climb(rule, row.rung + 1)
    people = people_on(policy.ladder, row.rung + 1)
    return AskPerson(f"{rule}: {_somebody(people)} decides", ESCALATE, people.rung, people, failure)


def _undecided(row: AttemptRow, policy: Policy) -> Verdict:
    """Decide for people who had their time: others are asked; what may have taken effect is not tried another way."""
    people = people_of(row.why or "", row.rung, policy)
    rule = f"{_somebody(people)} had {(people.within or 0) / SECOND:g} s to decide, and nobody has"
    if row.why != DOUBT:
        return _next_rung(rule, None, row, policy)
    others = people_after(policy.ladder, people.rung)
    if not others.rung:
        return GiveUp(f"{rule}; nobody knows whether it took effect", _unsure(doubt_of(row).failure))
    return AskPerson(f"{rule}: {_somebody(others)} decides", DOUBT, row.rung, others, None)


def _somebody(people: People) -> str:
    return f"somebody of {people.group!r}" if people.group else "somebody"


def is_in_doubt(failure: Failure, policy: Policy) -> bool:
    """Say whether an attempt may have taken effect, and its author does not want it tried again because of that."""
    if failure.cause is Cause.UNKNOWN:
        return True  # it says so itself
    if policy.idempotent or failure.cause is not Cause.RAISED:
        return not policy.idempotent
    named = bool(policy.on) and failure.remedy is Remedy.RETRY
    return not named and failure.remedy not in (Remedy.GIVE_UP, Remedy.WAIT)


def _in_doubt(doubt: Doubt, row: AttemptRow, policy: Policy, acts_for: Micros) -> Verdict:
    settles_in = acts_for + STOPS_WITHIN if doubt.failure.cause in TAKEN_AWAY else 0
    if policy.probes and settles_in:
        rule = f"it may have taken effect ({doubt.failure.cause}), and until then it may still act: not asked before"
        return Settle(f"{rule} ({_lease_words(acts_for)})", settles_in, doubt)
    if policy.probes:
        return _ask(doubt)
    rule = f"it may have taken effect ({doubt.failure.cause}), and has no probe"
    return _unknown(rule, doubt, row, policy, settles_in)


def _lease_words(acts_for: Micros) -> str:
    lease = f"the lease of its agent ends in {acts_for / SECOND:.1f} s" if acts_for else "its agent has no lease"
    return f"{lease}, and it stops within {STOPS_WITHIN / SECOND:g} s"


def _settled(row: AttemptRow, policy: Policy) -> Verdict:
    """Decide about what can no longer act: it is asked about, or, if nobody wants it any more, given up."""
    doubt = doubt_of(row)
    if doubt.unwanted and not policy.probes:
        return GiveUp("the run does not want it any more, and it can no longer act", _unsure(doubt.failure))
    return _ask(doubt)


def _ask(doubt: Doubt) -> Ask:
    return Ask(f"it may have taken effect ({doubt.failure.cause}): the probe is asked", doubt)


def _unknown(rule: str, doubt: Doubt, row: AttemptRow, policy: Policy, settles_in: Micros = 0) -> Verdict:
    if doubt.unwanted:
        return GiveUp(f"{rule}; the run does not want it any more", _unsure(doubt.failure))
    people = people_after(policy.ladder, max(row.rung - 1, 0))
    if people.within is not None:
        # When their time is over it may be undone: by then nobody may act on it any more.
        people = people._replace(within=max(people.within, settles_in))
    rule = f"{rule}: never tried again blindly, {_somebody(people)} decides"
    return AskPerson(rule, DOUBT, row.rung, people, doubt.failure, doubt)


def _after_probe(failure: Failure, row: AttemptRow, policy: Policy, chance: float) -> Verdict:
    doubt = doubt_of(row)
    if failure.probed is Probed.NOT_DONE:
        if doubt.unwanted:
            undone = msgspec.structs.replace(doubt.failure, cause=Cause.RAISED)
            return GiveUp("the probe says that it did not take effect, and the run does not want it any more", undone)
        known = msgspec.structs.replace(doubt.failure, remedy=_remedy_of(doubt.failure, policy))
        return _after_attempt(known, row, policy, chance, row.failures - int(failure.cause not in LOSSES))
    if failure.probed is Probed.UNKNOWN:
        return _unknown(failure.message, doubt, row, policy)
    if doubt.asked + 1 >= MOST_PROBES:
        return _unknown(f"the probe failed {MOST_PROBES} times ({failure.type}: {failure.message})", doubt, row, policy)
    again = msgspec.structs.replace(doubt, asked=doubt.asked + 1)
    return Settle(f"the probe failed ({failure.type}: {failure.message}): asked again", PROBE_AGAIN, again)


def _unsure(failure: Failure) -> Failure:
    """Give how an attempt failed so that it is undone: that it raised says nothing of its effect."""
    raised = failure.cause in (Cause.RAISED, Cause.REJECTED)
    return msgspec.structs.replace(failure, cause=Cause.UNKNOWN) if raised else failure


def _remedy_of(failure: Failure, policy: Policy) -> Remedy:
    """Say what follows when it is certain that an attempt took no effect: it is tried again, whatever it raised."""
    return Remedy.RETRY if not policy.idempotent else failure.remedy


def doubt_of(row: AttemptRow) -> Doubt:
    """Read what nobody knows about an attempt; of what cannot be read, that."""
    if row.doubt is not None and is_sealed(row.doubt):
        sealed = Failure("Sealed", f"how it failed is {why_sealed(row.doubt)}", cause=Cause.UNKNOWN)
        return Doubt(sealed, unwanted=row.cancel)
    if row.doubt is None:
        return Doubt(Failure("Lost", "nothing was recorded about this attempt", cause=Cause.LOST), unwanted=row.cancel)
    doubt = _decode_doubt(row.doubt)
    # The run may have been stopped while it was asked: the next lease forgets that, and then nobody decides about it.
    return msgspec.structs.replace(doubt, unwanted=doubt.unwanted or row.cancel)


def spread_out(delay: Micros, chance: float) -> Micros:
    """Give a pause and 0-25 % more, so that those who were told the same do not come back together."""
    return delay + round(delay * 0.25 * chance)
