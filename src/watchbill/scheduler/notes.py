"""Notes: what a turn says beside the journal: events, decisions, and facts for other runs."""

from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros, to_datetime
from watchbill.events import Event
from watchbill.flow.endings import Ending
from watchbill.flow.futures import Call, Unanswered
from watchbill.flow.values import plain
from watchbill.model.decision import (
    ANSWER,
    CANCELLED,
    DEADLINE,
    OF_A_CANCEL,
    OF_A_PERSON,
    SCHEDULER,
    UNANSWERED,
    WORKFLOW,
    Decision,
    DecisionRow,
)
from watchbill.model.extension import extended_words, read_extended
from watchbill.model.facts import FactKind, read_retry
from watchbill.model.failure import Cause, Failure
from watchbill.model.override import span_words
from watchbill.model.pausing import PauseOrder
from watchbill.model.question import Question
from watchbill.model.states import RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.residence import Resident
from watchbill.store.protocol import Fact, TurnFact

_encode = msgspec.json.Encoder().encode
_decode_question = msgspec.json.Decoder(Question).decode


def event_of(  # noqa: PLR0913 - the form every event has
    kind: str,
    resident: Resident,
    batch: Batch,
    call: Call | None = None,
    cause: str = "",
    note: str = "",
    duration: Micros | None = None,
) -> Event:
    """Make an event about a run, or one of its calls."""
    step, key = (call.name, call.key) if call is not None else ("", "")
    return Event(
        kind, batch.now, "scheduler", resident.id, step, key, 1 if call is not None else 0, None, cause, note, duration
    )


def asked_by(run: int, fact: Fact) -> DecisionRow:
    """Write down what a person asked for, and why; the fact's number is unlike any other's: nothing is overwritten."""
    if fact.kind is FactKind.RETRY:
        asked = read_retry(fact.body)
        said = ": ".join(part for part in (asked.step, asked.reason) if part)
    elif fact.kind is FactKind.EXTEND:
        extended = read_extended(fact.body)
        said = extended_words(extended.by, extended.reason)
    else:
        told = plain(fact.body)
        said = "" if told is None else str(told)
    return _asked(run, fact, Decision(rule="somebody asked for it", chosen=fact.kind.value, message=said))


def paused_by(run: int, fact: Fact, order: PauseOrder) -> DecisionRow:
    """Record who has paused or resumed a run, and why; `order.run`: the run above it for which that was ordered."""
    rule = "the runs below a run are paused and resumed with it" if order.run else "somebody asked for it"
    return _asked(run, fact, Decision(rule=rule, chosen=fact.kind.value, message=order.reason, run=order.run))


def resume_refused(run: int, fact: Fact) -> DecisionRow:
    """Record that a run was not resumed, because the run that started it is paused with all below it."""
    said = f"a resume by {fact.actor} changed nothing: the run is paused with the run above it, and goes on with that"
    body = Decision(rule="the runs below a run are paused and resumed with it", chosen="refused", message=said)
    return DecisionRow(run, "", fact.id, OF_A_PERSON, "scheduler", _encode(body))


def _asked(run: int, fact: Fact, decision: Decision) -> DecisionRow:
    return DecisionRow(run, "", fact.id, OF_A_PERSON, fact.actor, _encode(decision))


def rewind_refused(run: int, fact: Fact, why: str) -> DecisionRow:
    """Write down that a rewind came too late, and why; each that is refused is told."""
    said = f"a rewind to {plain(fact.body)!r} by {fact.actor} came too late: {why}"
    body = Decision(rule="the scheduler's own", chosen="refused", message=said)
    return DecisionRow(run, "", fact.id, OF_A_PERSON, "scheduler", _encode(body))


def asked_of(run: int, call: str, row: int, question: bytes) -> DecisionRow:
    """Write down who was asked what; the number of its row is unlike any other's."""
    asked = _decode_question(question)
    said = f"{asked.to or 'anybody'}: {asked.question}"
    body = Decision(rule="a workflow asks a person", chosen="asked", message=said)
    return DecisionRow(run, call, row, 0, WORKFLOW, _encode(body))


def unanswered(waited: Unanswered) -> Decision:
    """Write down that a workflow has waited for a message in vain: who was to call back has not."""
    said = f"nobody called back on {waited.topic!r} for {span_words(waited.span)}"
    rejected = ("wait on: the workflow gave it no longer",)
    return Decision("a workflow waits for so long", UNANSWERED, message=said, rejected=rejected, since=waited.due_at)


def stopped_at(deadline: Micros, now: Micros) -> Decision:
    """Write down that a run is stopped because its deadline has passed."""
    said = f"its deadline, {to_datetime(deadline):%Y-%m-%d %H:%M:%S}Z, passed {span_words(max(0, now - deadline))} ago"
    rejected = ("let it go on: nobody has given it more time",)
    return Decision("a run has until its deadline", DEADLINE, message=said, rejected=rejected, since=deadline)


def withdrawn(run: int, call: str, row: int) -> DecisionRow:
    """Write down that a question is not asked any more."""
    said = "its time is over, or the workflow does not wait for it any more"
    body = Decision(rule="a workflow asks no more", chosen="withdrawn", message=said)
    return DecisionRow(run, call, row, 1, WORKFLOW, _encode(body))


class Ran(NamedTuple):
    """An attempt without a row that is over because its run wants it no more, or that had failed by then."""

    agent: int | None
    started_at: Micros | None
    failure: Failure


STOPPED: Final = Failure("CancelledError", "its run wanted it no more", cause=Cause.CANCELLED)


def let_go(resident: Resident, call: Call, row: int | None, ran: Ran | None, now: Micros) -> DecisionRow:
    """Write down that a run wants a call no more.

    Of an attempt without a row all that is known of it: nothing else tells. What has one is judged when it has ended.
    """
    body = Decision(rule="a workflow wants it no more", chosen=CANCELLED, step=call.name)
    if ran is not None and row is None:
        body = msgspec.structs.replace(
            body,
            number=1,
            agent=ran.agent,
            started_at=ran.started_at,
            ended_at=now,
            cause=ran.failure.cause,
            type=ran.failure.type,
            message=ran.failure.message,
            traceback=ran.failure.traceback,
        )
    fence = row if row is not None else resident.fence
    return DecisionRow(resident.num, call.key, fence, OF_A_CANCEL, SCHEDULER, _encode(body))


def answered_by(run: int, call: str, fact: Fact) -> DecisionRow:
    """Write down who has answered."""
    body = Decision(rule="a person answered", chosen=ANSWER)
    return DecisionRow(run, call, fact.id, OF_A_PERSON, fact.actor, _encode(body))


def ending_of(  # noqa: PLR0913 - what a parent hears
    namespace: str, parent: int, id: str, state: RunState, body: bytes, acts_until: Micros = 0
) -> TurnFact:
    """Tell the run that waits for another one how that has ended."""
    told = _encode(Ending(id, state, msgspec.Raw(body), acts_until))
    return TurnFact(parent, namespace, "", FactKind.CHILD, id, "run", told)


def cancelling(namespace: str, parent: str, child: str) -> TurnFact:
    """Cancel a run that the one which started it does not wait for any more."""
    reason = _encode(f"the run that started it, {parent!r}, does not wait for it any more")
    return TurnFact(None, namespace, child, FactKind.CANCEL, "parent", "run", reason)
