"""Notes: what a turn says beside the journal: events, decisions, and facts for other runs."""

from typing import Final

import msgspec

from watchbill import events as happened
from watchbill.clock import Micros
from watchbill.events import Event
from watchbill.flow.endings import Ending
from watchbill.flow.futures import Call
from watchbill.flow.values import plain
from watchbill.model.decision import Decision, DecisionRow
from watchbill.model.facts import FactKind, read_retry
from watchbill.model.states import RunState
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.residence import Resident
from watchbill.store.protocol import Fact, TurnFact

OF_A_PERSON: Final = -1  # the number of such a decision: those of the scheduler have the journal's, from 0 on

_encode = msgspec.json.Encoder().encode


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


def paused_event(run: str, fact: Fact, batch: Batch) -> Event:
    """Make the event of a pause, or of its end."""
    kind = happened.RUN_PAUSED if fact.kind is FactKind.PAUSE else happened.RUN_UNPAUSED
    return Event(kind, batch.now, "scheduler", run, cause=fact.actor, note=str(plain(fact.body)))


def asked_by(run: int, fact: Fact) -> DecisionRow:
    """Write down what a person asked for, and why; the fact's number is unlike any other's: nothing is overwritten."""
    if fact.kind is FactKind.RETRY:
        asked = read_retry(fact.body)
        said = ": ".join(part for part in (asked.step, asked.reason) if part)
    else:
        told = plain(fact.body)
        said = "" if told is None else str(told)
    body = Decision(rule="somebody asked for it", chosen=fact.kind.value, message=said)
    return DecisionRow(run, "", fact.id, OF_A_PERSON, fact.actor, _encode(body))


def ending_of(namespace: str, parent: int, id: str, state: RunState, body: bytes) -> TurnFact:
    """Tell the run that waits for another one how that has ended."""
    told = _encode(Ending(id, state, msgspec.Raw(body)))
    return TurnFact(parent, namespace, "", FactKind.CHILD, id, "run", told)


def cancelling(namespace: str, parent: str, child: str) -> TurnFact:
    """Cancel a run that the one which started it does not wait for any more."""
    reason = _encode(f"the run that started it, {parent!r}, does not wait for it any more")
    return TurnFact(None, namespace, child, FactKind.CANCEL, "parent", "run", reason)
