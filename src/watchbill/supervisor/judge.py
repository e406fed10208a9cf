"""Judgement: what to do about a symptom. Pure, and the only retry engine of the house."""

from typing import Final, assert_never

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.attempt import AttemptRow, RowKind, how_far
from watchbill.model.counted import used_up
from watchbill.model.doubt import is_in_doubt
from watchbill.model.failure import Cause, Doubt, Failure, Probed, Remedy
from watchbill.model.limits import extended_by, learned_stall, learned_timeout, limits_of, mark_of
from watchbill.model.lost import evidence_against
from watchbill.model.parked import DOUBT, ESCALATE, SETTLE, People, people_after, people_of, people_on
from watchbill.model.policy import OWN_CHILD_AFTER, OWN_CHILD_FROM, QUARANTINE_AT, Policy
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.model.states import AttemptState
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

LOSSES: Final = frozenset({Cause.LOST, Cause.KILLED, Cause.STARVED})  # nobody's fault in the step's own code
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
        case CancelOverdue(left=left):
            # A thread, or code that swallows it. Called ended while it runs, it would be undone while it still acts;
            # but what hangs would never be undone, so it is given its time, as if nobody had asked it to stop.
            rule = (
                "asked to stop, and did not within the grace: it runs on until it returns, is late, or its agent dies"
            )
            return LetEnd(rule, left)
        case BackoffOver() if row.why == SETTLE:
            return _settled(row, policy)
        case BackoffOver():
            return TryNow("the backoff is over")
        case PersonLate():
            return _undecided(row, policy)
        case Unreadable(why=why, settles_in=settles_in) if row.cancel:
            sealed = Failure("Sealed", f"how it failed is {why}", cause=Cause.UNKNOWN)
            return _unwanted(sealed, policy, settles_in)
        case Unreadable(why=why):
            return Quarantine(f"how it failed is {why}")  # nobody here can tell whether trying again would help
        case Failed(failure=failure, settles_in=settles_in):
            return _after_failure(failure, row, policy, chance, settles_in)
        case _:
            assert_never(symptom)


def _late(row: AttemptRow, policy: Policy, by: Micros) -> Failure:
    extended = extended_by(policy, mark_of(row))
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


def _after_failure(failure: Failure, row: AttemptRow, policy: Policy, chance: float, settles_in: Micros) -> Verdict:
    if row.kind == RowKind.PROBE:
        return _after_probe(failure, row, policy, chance)
    if is_in_doubt(failure, policy) and (policy.probes or not row.cancel):
        return _in_doubt(Doubt(failure, unwanted=row.cancel), row, policy, settles_in)
    if row.cancel:
        return _unwanted(failure, policy, settles_in)
    return _after_attempt(failure, row, policy, chance, row.failures)


def _unwanted(failure: Failure, policy: Policy, settles_in: Micros) -> Verdict:
    """Decide about an attempt whose run does not want it any more: how long that may act its row says, and the undo."""
    rule = "the run does not want it any more"
    if settles_in and policy.probes:
        until = f"{rule}, and until then it may still act: not asked before ({_acting_words(settles_in)})"
        return Settle(until, settles_in, Doubt(failure, unwanted=True))
    if settles_in:
        rule = f"{rule}; nothing is undone while it may still act ({_acting_words(settles_in)})"
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
        return _next_rung(used_up(policy.retries), failure, row, policy)
    return TryLater(f"retry {failures} of {policy.retries}", policy.delay_before(failures, chance))


def who_wanted_it(row: AttemptRow, policy: Policy) -> People:
    """Give the people who had it tried again: what fails then is theirs to decide again. Nobody: it was no person."""
    return people_on(policy.ladder, row.rung) if row.state is AttemptState.FAILED else People()


def _next_rung(rule: str, failure: Failure | None, row: AttemptRow, policy: Policy) -> Verdict:
    if (again := who_wanted_it(row, policy)).rung:
        return AskPerson(f"{rule}: {_somebody(again)} decides again", ESCALATE, again.rung, again, failure)
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


def _in_doubt(doubt: Doubt, row: AttemptRow, policy: Policy, settles_in: Micros) -> Verdict:
    if policy.probes and settles_in:
        rule = f"it may have taken effect ({doubt.failure.cause}), and until then it may still act: not asked before"
        return Settle(f"{rule} ({_acting_words(settles_in)})", settles_in, doubt)
    if policy.probes:
        return _ask(doubt)
    rule = f"it may have taken effect ({doubt.failure.cause}), and has no probe"
    return _unknown(rule, doubt, row, policy)


def _acting_words(settles_in: Micros) -> str:
    return f"by the lease of its agent, and the time in which that stops it, for {settles_in / SECOND:.1f} s"


def _settled(row: AttemptRow, policy: Policy) -> Verdict:
    """Decide about what can no longer act: it is asked about, or, if nobody wants it any more, given up."""
    doubt = doubt_of(row)
    if doubt.unwanted and not policy.probes:  # parked by an older version: since then the undo waits instead
        return GiveUp("the run does not want it any more, and it can no longer act", _unsure(doubt.failure))
    return _ask(doubt)


def _ask(doubt: Doubt) -> Ask:
    return Ask(f"it may have taken effect ({doubt.failure.cause}): the probe is asked", doubt)


def _unknown(rule: str, doubt: Doubt, row: AttemptRow, policy: Policy) -> Verdict:
    if doubt.unwanted:
        return GiveUp(f"{rule}; the run does not want it any more", _unsure(doubt.failure))
    people = people_after(policy.ladder, max(row.rung - 1, 0))
    rule = f"{rule}: never tried again blindly, {_somebody(people)} decides"
    return AskPerson(rule, DOUBT, row.rung, people, doubt.failure, doubt)


def _after_probe(failure: Failure, row: AttemptRow, policy: Policy, chance: float) -> Verdict:
    doubt = doubt_of(row)
    if failure.probed is Probed.NOT_DONE:
        if doubt.unwanted:
            undone = msgspec.structs.replace(doubt.failure, cause=Cause.RAISED, probed=Probed.NOT_DONE)
            return GiveUp("the probe says that it did not take effect, and the run does not want it any more", undone)
        known = msgspec.structs.replace(doubt.failure, remedy=_remedy_of(doubt.failure, policy))
        verdict = _after_attempt(known, row, policy, chance, row.failures - int(failure.cause not in LOSSES))
        if isinstance(verdict, GiveUp):
            return GiveUp(verdict.rule, msgspec.structs.replace(doubt.failure, probed=Probed.NOT_DONE))
        return verdict
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
