"""Alternatives: what else could have been decided, and why it was not. Pure: for the decision, and whoever reads it.

Only what could have been is named, in a few words: what was not chosen, and after a colon why not. It is worked out
when a decision is written down, so for what is in trouble alone.
"""

from typing import Final, assert_never

from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.failure import Cause, Failure, Probed, Remedy
from watchbill.model.limits import mark_of
from watchbill.model.override import span_words
from watchbill.model.parked import DOUBT, people_of
from watchbill.model.policy import QUARANTINE_AT, Policy
from watchbill.model.symptom import BackoffOver, Failed, NotYet, PersonLate, Symptom, Unreadable
from watchbill.model.usual import modes_of
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
from watchbill.supervisor.judge import MOST_PROBES, doubt_of, who_wanted_it

NOT_BLINDLY: Final = "retry: it may have taken effect"
UNWANTED: Final = "retry: the run does not want it any more"
ENDED_ALREADY: Final = "ask a person: the probe says that it did not take effect"


def alternatives(row: AttemptRow, policy: Policy, symptom: Symptom, verdict: Verdict) -> tuple[str, ...]:  # noqa: C901 - one case for each
    """Name what was not chosen, and why not."""
    said: tuple[str, ...]
    match verdict:
        case MarkFailed():
            return _left_alone(row, policy, verdict)
        case TryNow() if isinstance(symptom, BackoffOver):
            return ()  # what there was to say was said when its pause began
        case TryNow():
            said = _asked(row, policy), f"quarantine: {_loss(row)}"
        case TryLater(free=free):
            why = "it asks to be waited for" if free else "retries are left"
            said = _asked(row, policy), f"{_next(row, policy)}: {why}"
        case Climb():
            said = _again(row, policy, symptom), "give up: another way is left"
        case Settle():
            said = NOT_BLINDLY, _settled(row)
        case Ask():
            said = NOT_BLINDLY, "ask a person: its probe may tell"
        case AskPerson(why=why):
            said = _again(row, policy, symptom, why), _probed(row, policy, symptom) if why == DOUBT else ""
        case GiveUp():
            said = _given_up(row, policy, symptom)
        case Quarantine():
            why = "nobody here can read how it failed" if isinstance(symptom, Unreadable) else _loss(row)
            said = f"retry: {why}", "give up: a person may know why"
        case LetEnd():
            said = ("call it ended: it still acts",)
        case LookAgain():
            said = (_observed(policy, symptom),)
        case _:
            assert_never(verdict)
    named = {one.partition(":")[0]: one for one in reversed(said) if one}  # each once: the first reason is the nearest
    return tuple(reversed(named.values()))


def _next(row: AttemptRow, policy: Policy) -> str:
    """Name what follows when there are no retries left."""
    if who_wanted_it(row, policy).rung:
        return AskPerson.chosen
    if row.rung >= len(policy.ladder):
        return GiveUp.chosen
    return Climb.chosen if policy.ladder[row.rung].to is None else AskPerson.chosen


def _loss(row: AttemptRow) -> str:
    return f"loss {row.losses} of {QUARANTINE_AT}"


def _left_alone(row: AttemptRow, policy: Policy, verdict: MarkFailed) -> tuple[str, ...]:
    """Say why something was ended that ran, as far as anybody knew."""
    mark = mark_of(row)
    match verdict.failure.cause:
        case Cause.LATE:
            more = policy.extended or (mark is not None and mark.extended)
            return ("let it run: the time that was added is over" if more else "let it run: nobody gave it more time",)
        case Cause.STALLED:
            quiet = mark is not None and mark.quiet_until is not None
            return ("let it run: its quiet time is over" if quiet else "let it run: it did not say that it is quiet",)
        case _:
            return ("count a loss: it ran in a process of its own",) if verdict.losses else ()


def _asked(row: AttemptRow, policy: Policy) -> str:
    """Say why nobody is asked about what is simply tried again."""
    if row.kind == RowKind.PROBE:
        return ENDED_ALREADY
    return "probe: it may be tried again without" if policy.probes and policy.idempotent else ""


def _settled(row: AttemptRow) -> str:
    if row.kind != RowKind.PROBE:
        return "probe: whoever had it may still act"
    return f"ask a person: the probe has failed {doubt_of(row).asked + 1} times of {MOST_PROBES}"


def _again(row: AttemptRow, policy: Policy, symptom: Symptom, why: str | None = None) -> str:
    """Say why the same is not done again: to try, or to wait for those who were asked."""
    if isinstance(symptom, PersonLate):
        people = people_of(row.why or "", row.rung, policy)
        return f"wait for them: they had {span_words(people.within or 0)}"
    if why == DOUBT:
        return NOT_BLINDLY
    failure = _failure(row, symptom)
    if failure is not None and failure.remedy is Remedy.NEXT_RUNG:
        return f"retry: {failure.type} is left out by Retry(on=, never=)"
    return f"retry: all {policy.retries} are used up" if policy.retries else "retry: it has none"


def _probed(row: AttemptRow, policy: Policy, symptom: Symptom) -> str:
    """Say why a probe cannot tell."""
    if not policy.probes:
        return "probe: it has none"
    if isinstance(symptom, PersonLate) or row.kind != RowKind.PROBE:
        return ""  # it has been asked
    known = isinstance(symptom, Failed) and symptom.failure.probed is Probed.UNKNOWN
    return "probe: it cannot tell" if known else f"probe: it failed {MOST_PROBES} times"


def _given_up(row: AttemptRow, policy: Policy, symptom: Symptom) -> tuple[str, ...]:
    if isinstance(symptom, PersonLate):
        last = "ask a person: nobody else is named" if row.why == DOUBT else "switch: no rung is left"
        return _again(row, policy, symptom), last
    if row.cancel or (row.doubt is not None and doubt_of(row).unwanted):
        return (UNWANTED,)
    failure, after = _failure(row, symptom), _next(row, policy)
    if failure is not None and failure.remedy is Remedy.GIVE_UP:
        never = f"{failure.type} is permanent"
        return f"retry: {never}", f"{after}: {never}" if after != GiveUp.chosen else ""
    rungs = "no rung is left" if policy.ladder else "it has no other way"
    return _again(row, policy, symptom), f"switch: {rungs}", ENDED_ALREADY if row.kind == RowKind.PROBE else ""


def _failure(row: AttemptRow, symptom: Symptom) -> Failure | None:
    """Give how the attempt failed that is decided about: of a probe, that which it was asked about."""
    if not isinstance(symptom, Failed):
        return None
    return doubt_of(row).failure if row.kind == RowKind.PROBE else symptom.failure


def _observed(policy: Policy, symptom: Symptom) -> str:
    """Say that what is slow would have been ended, if what was learned were in force."""
    if not isinstance(symptom, NotYet) or not symptom.slow:
        return ""
    return f"{MarkFailed.chosen}: learned is {modes_of(policy.learned).of(symptom.rule)!r}"
