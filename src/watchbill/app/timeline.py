"""Timeline: what has happened to a run, in order, from its journal, its rows and what was decided about it. Pure."""

from typing import Final

import msgspec

from watchbill.app.opened import decision_in, error_in, failure_in, final_in, progress_in, reason_in
from watchbill.app.outcomes import HOUSE, Decided, outcomes_of
from watchbill.app.status import TimelineEvent
from watchbill.app.words import said_of
from watchbill.clock import Micros, to_datetime
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.call import JournalEntry, Kind, Outcome, step_name
from watchbill.model.decision import (
    ANSWER,
    BY_ITSELF,
    OBSERVER,
    OF_A_PERSON,
    OF_A_RECOVERY,
    OF_AN_ALARM,
    RECOVERED,
    SUPERVISOR,
    Decision,
    DecisionRow,
)
from watchbill.model.run import BY_START, started_by
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Record

# Whose doing an event is that does not say so itself, and is neither an agent's nor the scheduler's.
_ACTORS: Final = {
    "cancel": "somebody",
    "message": "somebody",
    "answered": "somebody",
    "edited": "somebody",
    "stopped": "somebody",
    "step_gave_up": "supervisor",
}

# What an entry of the journal is called that is no step's.
_WORDS: Final = {
    Kind.TIMER: "timer",
    Kind.CANCEL: "cancel",
    Kind.MESSAGE: "message",
    Kind.CHILD: "child_ended",
    Kind.ASK: "answered",
    Kind.PATCH: "patched",
    Kind.REWOUND: "rewound",
    Kind.CONTINUED: "continued",
    Kind.LATE: "late",
    Kind.EDITED: "edited",
    Kind.STOPPED: "stopped",
    Kind.SPARED: "not_undone",
}


class _Placed(msgspec.Struct, frozen=True):
    """An event with its place among those of the same instant: what began, what was journalled, what was decided."""

    at: Micros
    rank: int
    n: int
    event: TimelineEvent


def timeline_of(record: Record) -> list[TimelineEvent]:
    """Give what has happened, in order."""
    run = record.run
    by = started_by(run.id, record.parent)
    actor = "somebody" if by.startswith(("as a copy", BY_START)) else "scheduler"
    created = TimelineEvent(to_datetime(run.created_at), "run_created", note=by, actor=actor)
    placed = [_Placed(run.created_at, 0, 0, created)]
    if run.begun_at is not None:
        placed.append(_Placed(run.begun_at, 1, 0, TimelineEvent(to_datetime(run.begun_at), "run_started")))
    # An attempt may be judged twice: found lost, then tried again. Its fence says that it is the same one.
    judged: dict[tuple[str, int], tuple[int, Decision, Micros]] = {}
    last: dict[str, int] = {}
    answered: dict[str, str] = {}  # by whom
    decided = [Decided(row, decision_in(row.body), at) for row, at in record.decisions]
    for n, ((row, decision, at), outcome) in enumerate(zip(decided, outcomes_of(record, decided), strict=True)):
        if decision.chosen == ANSWER and row.n == OF_A_PERSON:
            answered[row.call] = row.actor  # the journal says it
            continue
        if (decision.chosen, row.n) in ((RECOVERED, OF_A_RECOVERY), (BY_ITSELF, OF_AN_ALARM)):
            continue  # likewise
        placed.append(_Placed(at, 5, n, _decided(row, decision, at, outcome)))
        if decision.cause is not None and decision.number:
            judged[row.call, row.fence] = n, decision, at
            last[row.call] = decision.number
    for (call, _), (n, decision, at) in judged.items():
        placed += _of_attempt(call, decision, at, n)
    for entry in record.journal:
        placed += _of_entry(entry, run.status, last.get(entry.key, 0), answered.get(entry.key, ""))
    for attempt in record.attempts:
        if (attempt.call, attempt.fence) not in judged:
            placed += _of_row(attempt)
    return [_with_actor(one.event) for one in sorted(placed, key=lambda one: (one.at, one.rank, one.n))]


def _with_actor(event: TimelineEvent) -> TimelineEvent:
    if event.actor:
        return event
    usual = "agent" if event.kind.startswith("step_") or event.kind == "progress" else "scheduler"
    return msgspec.structs.replace(event, actor=_ACTORS.get(event.kind, usual))


def _of_entry(entry: JournalEntry, ended_as: RunState, judged: int, by: str) -> list[_Placed]:
    kind = Kind(entry.kind)
    if kind is Kind.STEP:
        return _of_step(entry, judged)
    word, cause, note, actor = _WORDS.get(kind, ""), "", "", ""
    if kind is Kind.END:
        word, (cause, note) = f"run_{ended_as.word}", _ending(entry, ended_as)
    elif kind is Kind.ASK and by:
        actor, note = by, f"by {by}"
    elif kind in (Kind.CANCEL, Kind.LATE, Kind.STOPPED):
        note = reason_in(entry.body)
    elif kind is Kind.SPARED:
        why = final_in(entry.body, step_name(entry.key))
        note = f"it took no effect ({why.type}: {why.message})"
    elif kind is Kind.REWOUND:
        actor = reason_in(entry.body)
        note = f"by {actor}"
    elif kind is Kind.CHILD and entry.outcome != Outcome.OK:
        cause = Outcome(entry.outcome).name.lower()
    event = TimelineEvent(to_datetime(entry.at), word, entry.key, cause=cause, note=note, actor=actor)
    return [_Placed(entry.at, 3, entry.seq, event)]


def _of_step(entry: JournalEntry, judged: int) -> list[_Placed]:
    at = to_datetime(entry.at)
    if entry.outcome == Outcome.FAILED:
        why = final_in(entry.body, step_name(entry.key))
        note = f"{why.type}: {why.message}"
        failed = TimelineEvent(at, "step_gave_up", entry.key, why.attempts, entry.agent, why.cause, note)
        return [_Placed(entry.at, 3, entry.seq, failed)]
    number = judged + 1
    ended = [
        _Placed(entry.at, 3, entry.seq, TimelineEvent(at, "step_completed", entry.key, number, entry.agent)),
    ]
    if entry.started_at is None:
        return ended
    began = TimelineEvent(to_datetime(entry.started_at), "step_started", entry.key, number, entry.agent)
    return [_Placed(entry.started_at, 2, entry.seq, began), *ended]


def _ending(entry: JournalEntry, ended_as: RunState) -> tuple[str, str]:
    if ended_as is RunState.COMPLETED:
        return "", ""
    if ended_as is RunState.CANCELLED:
        return "cancelled", reason_in(entry.body)
    error = error_in(entry.body)
    return error.cause, f"{error.type}: {error.message}"


def _decided(row: DecisionRow, decision: Decision, at: Micros, outcome: str) -> TimelineEvent:
    by = "" if row.actor in HOUSE else f"by {row.actor}"
    note = decision.rule if row.actor in (SUPERVISOR, OBSERVER) else decision.message
    said = ": ".join(part for part in (by, note) if part)
    if decision.override:
        said += f" (policy changed: {decision.override})"
    word = decision.chosen.replace(" ", "_")
    number, rejected = decision.number, decision.rejected
    return TimelineEvent(to_datetime(at), word, row.call, number, None, "", said, row.actor, rejected, outcome)


def _of_attempt(call: str, decision: Decision, at: Micros, n: int) -> list[_Placed]:
    """Give the beginning and the end of an attempt that was judged."""
    number, agent = decision.number, decision.agent
    ended = at if decision.ended_at is None else decision.ended_at
    note = f"{decision.type}: {decision.message}"
    failed = TimelineEvent(to_datetime(ended), "step_failed", call, number, agent, decision.cause or "", note)
    placed = [_Placed(ended, 4, n, failed)]
    if decision.started_at is not None:
        began = TimelineEvent(to_datetime(decision.started_at), "step_started", call, number, agent)
        placed.append(_Placed(decision.started_at, 2, n, began))
    return placed


def _of_row(row: AttemptRow) -> list[_Placed]:
    """Give what is under way: its beginning, and how far it says it is."""
    if row.kind == RowKind.ASK or row.started_at is None:
        return []
    number = max(row.number, 1)
    placed = []
    if row.state in (AttemptState.RUNNING, AttemptState.DONE):
        began = TimelineEvent(to_datetime(row.started_at), "step_started", row.call, number, row.agent)
        placed.append(_Placed(row.started_at, 2, row.id, began))
    far = progress_in(row.progress)
    if row.state is AttemptState.RUNNING and far is not None and row.progress_at is not None:
        event = TimelineEvent(to_datetime(row.progress_at), "progress", row.call, number, row.agent, "", said_of(far))
        placed.append(_Placed(row.progress_at, 4, row.id, event))
    if row.state is AttemptState.FAILED and row.result is not None and row.ended_at is not None:
        why = failure_in(row.result)
        event = TimelineEvent(
            to_datetime(row.ended_at),
            "step_failed",
            row.call,
            number,
            row.agent,
            why.cause,
            f"{why.type}: {why.message}",
        )
        placed.append(_Placed(row.ended_at, 4, row.id, event))
    return placed
