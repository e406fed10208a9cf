"""Aftermath: how a run got where it ended: what was cured on the way, what was undone, what could not be. Pure."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from watchbill.app.opened import decision_in, final_in
from watchbill.app.outcomes import Decided
from watchbill.app.status import StepState, StepStatus
from watchbill.app.steps import given_by_person, steps_of, told_by_probe, undos_in
from watchbill.flow.undo import UNDO
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import OF_A_PERSON
from watchbill.model.failure import UNKNOWN, is_unknown
from watchbill.model.metrics import UNWANTED
from watchbill.model.resolution import Action
from watchbill.store.protocol import Record

MOST_NAMED: Final = 20  # calls in a sentence: the facts have them all


def undone_words(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Say what was undone, by the undos that were really made; and what nobody knows and nobody has undone."""
    undos = undos_in(record.journal)
    facts["undone"] = undone = _keys(undos, failed=False)
    facts["not_undone"] = failed = _keys(undos, failed=True)
    facts["may_have_taken_effect"] = doubtful = _doubtful(record, {*undone, *failed})
    if undone:
        yield f"Undone, in this order: {_named(undone)}."
    if failed:
        yield f"Could not be undone: {_named(failed)}. That needs a person."
    if not undos:
        yield "Nothing was undone: nothing that it did has an undo, or its workflow keeps what it did."
    if any(entry.kind == Kind.REWOUND for entry in record.journal):
        yield "It was rewound: what it had done before that, and has not come to again, is not undone."
    if doubtful:
        whose = "it has no undo, or its workflow keeps what it did"
        yield f"Whether {_named(doubtful)} took effect nobody knows, and nothing has undone it: {whose}."


def decided_by(record: Record, action: Action) -> tuple[str, str] | None:
    """Say who has decided so about a call of a run, last, and why; None when nobody has."""
    found = None
    for row, _ in record.decisions:
        if row.n == OF_A_PERSON and decision_in(row.body).chosen == action:
            found = row.actor, decision_in(row.body).message
    return found


def _keys(undos: Sequence[JournalEntry], *, failed: bool) -> list[str]:
    return [entry.key.removeprefix(UNDO) for entry in undos if (entry.outcome == Outcome.FAILED) is failed]


def _doubtful(record: Record, undone: set[str]) -> list[str]:
    """Give the calls that may have taken effect though they are not done, and were not undone."""
    spared = {entry.key for entry in record.journal if entry.kind == Kind.SPARED}
    failed = [entry for entry in record.journal if entry.kind == Kind.STEP and entry.outcome == Outcome.FAILED]
    known = {entry.key: is_unknown(final_in(entry.body, entry.key)) for entry in failed}
    return [
        step.key
        for step in steps_of(record)
        if step.state in (StepState.FAILED, StepState.CANCELLED)
        and step.attempts
        and known.get(step.key, step.attempts[-1].cause in UNKNOWN)
        and step.key not in undone | spared
        and not step.key.startswith(UNDO)
    ]


def _named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - MOST_NAMED:,} more" if len(keys) > MOST_NAMED else ""
    return ", ".join([repr(key) for key in keys[:MOST_NAMED]]) + more


# --- a run that completed all the same


def cured_words(record: Record, facts: dict[str, Any]) -> Iterator[str]:
    """Say which calls of a run were in trouble on the way, and how each was cured."""
    decided = [Decided(row, decision_in(row.body), at) for row, at in record.decisions]
    probed = {call for call, _ in told_by_probe(decided)}
    given = {entry.key for entry in record.journal if entry.kind == Kind.STEP and given_by_person(entry)}
    facts["recovered"] = cured = []
    for step in steps_of(record):
        failed = [attempt for attempt in step.attempts if attempt.cause is not None and attempt.cause not in UNWANTED]
        if failed and step.state is not StepState.CANCELLED:
            how = _cure(step, probed, given)
            cured.append({"call": step.key, "failed": len(failed), "error": failed[-1].error, "how": how})
    if not cured:
        return
    calls = "1 call was" if len(cured) == 1 else f"{len(cured):,} calls were"
    first = f", the first {MOST_NAMED} of which:" if len(cured) > MOST_NAMED else ":"
    yield f"On the way {calls} in trouble{first}"
    for one in cured[:MOST_NAMED]:
        times = "once" if one["failed"] == 1 else f"{one['failed']} times, the last time"
        yield f"  {one['call']!r} failed {times} with {one['error']}; {one['how']}"


def _cure(step: StepStatus, probed: Collection[str], given: Collection[str]) -> str:
    if step.state is StepState.FAILED:
        return "it failed for good, and the workflow went on"
    if step.key in given:
        return "a person gave its outcome"
    last = step.attempts[-1]
    if step.key in probed or last.cause is not None:
        return "its probe said that it had taken effect"
    before = step.attempts[-2] if len(step.attempts) > 1 else last
    way = f", another way (rung {last.rung})" if last.rung else ""
    where = ", on another agent" if last.agent != before.agent else ""
    return f"attempt {last.number} was done{way}{where}"
