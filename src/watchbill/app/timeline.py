"""Timeline: what has happened to a run, in order, from its journal, its rows and what was decided about it. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from watchbill.app.opened import decision_in, error_in, failure_in, final_in, progress_in, reason_in
from watchbill.app.outcomes import HOUSE, Decided, outcomes_of
from watchbill.app.status import TimelineEvent
from watchbill.app.steps import given_by_person, told_by_probe, undos_in
from watchbill.app.words import moment, said_of
from watchbill.clock import Micros, to_datetime
from watchbill.flow.parts import until_of
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.call import JournalEntry, Kind, Outcome, step_name
from watchbill.model.decision import (
    ANSWER,
    BY_ITSELF,
    CANCELLED,
    OBSERVER,
    OF_A_CANCEL,
    OF_A_PERSON,
    OF_A_RECOVERY,
    OF_AN_ALARM,
    RECOVERED,
    SCHEDULER,
    SUPERVISOR,
    TOOK_EFFECT,
    Decision,
    DecisionRow,
)
from watchbill.model.failure import Cause, Probed
from watchbill.model.resolution import Action
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
    Kind.ACTING: "may_still_act",
}

STEP_CANCELLED: Final = "step_cancelled"

# What is decided, and its number, that an entry of the journal says, too.
_IN_JOURNAL: Final = ((ANSWER, OF_A_PERSON), (RECOVERED, OF_A_RECOVERY), (BY_ITSELF, OF_AN_ALARM))

# What a probe has said, in words.
PROBED: Final[dict[str, str]] = {
    Probed.NOT_DONE: "not done: it took no effect",
    Probed.UNKNOWN: "unknown: it cannot say whether it took effect",
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
    decided = [Decided(row, decision_in(row.body), at) for row, at in record.decisions]
    placed += _of_decisions(record, decided)
    # An attempt may be judged twice: found lost, then tried again. Its fence says that it is the same one.
    judged: dict[tuple[str, int], tuple[int, Decision, Micros]] = {}
    probes = {(row.call, row.fence) for row, decision, _ in decided if decision.probed}
    for n, (row, decision, at) in enumerate(decided):
        asked = (row.call, row.fence) in probes and not decision.probed  # what was decided after a probe
        if decision.cause is not None and decision.number and not asked:
            judged[row.call, row.fence] = n, decision, at
    for (call, _), (n, decision, at) in judged.items():
        placed += _of_attempt(call, decision, at, n)
    placed += _of_journal(record, decided)
    for attempt in record.attempts:
        if (attempt.call, attempt.fence) not in judged:
            placed += _of_row(attempt)
    return [_with_actor(one.event) for one in sorted(placed, key=lambda one: (one.at, one.rank, one.n))]


def _of_decisions(record: Record, decided: Sequence[Decided]) -> Iterator[_Placed]:
    """Give what was decided, but for what the journal says."""
    for n, ((row, decision, at), outcome) in enumerate(zip(decided, outcomes_of(record, decided), strict=True)):
        if (decision.chosen, row.n) == (CANCELLED, OF_A_CANCEL):
            yield _Placed(at, 5, n, _let_go(row.call, decision, at))
        elif (decision.chosen, row.n) not in _IN_JOURNAL and not _says_probe(row, decision):
            yield _Placed(at, 5, n, _decided(row, decision, at, outcome))


def _says_probe(row: DecisionRow, decision: Decision) -> bool:
    return row.actor == SCHEDULER and decision.chosen == TOOK_EFFECT


def _of_journal(record: Record, decided: Sequence[Decided]) -> Iterator[_Placed]:
    """Give what the journal has, with what only decisions tell of it: by whom, and after how many attempts."""
    last: dict[str, int] = {}
    by: dict[str, str] = {}
    given_at: dict[str, Micros] = {}
    skipped: set[str] = set()
    for row, decision, at in decided:
        if decision.cause is not None and decision.number and not decision.probed:
            last[row.call] = decision.number
        if row.n == OF_A_PERSON and decision.chosen in (ANSWER, Action.PROVIDE, Action.SKIP):
            by[row.call], given_at[row.call] = row.actor, at
            (skipped.add if decision.chosen == Action.SKIP else skipped.discard)(row.call)
    probed = told_by_probe(decided)
    undoes = record.run.status is RunState.UNDOING or bool(undos_in(record.journal))
    for entry in record.journal:
        if entry.kind == Kind.ACTING and not undoes:
            continue  # it matters to an undo alone
        if entry.kind == Kind.STEP and (entry.key, entry.seq) in probed:
            yield from _of_probe(entry, last.get(entry.key, 0))
        elif entry.kind == Kind.STEP and given_by_person(entry):
            word = "skipped" if entry.key in skipped else "provided"
            yield _of_gift(entry, word, by.get(entry.key, "somebody"), given_at.get(entry.key, entry.at))
        else:
            yield from _of_entry(entry, record.run.status, last.get(entry.key, 0), by.get(entry.key, ""))


def _with_actor(event: TimelineEvent) -> TimelineEvent:
    if event.actor:
        return event
    usual = "agent" if event.kind.startswith(("step_", "probe")) or event.kind == "progress" else "scheduler"
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
    elif kind is Kind.ACTING:
        until = until_of(entry)
        when = f" until {moment(to_datetime(until))}" if until else ""  # without its key nobody knows
        note = f"an attempt was taken from its agent, which may act on it{when}"
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
        word = STEP_CANCELLED if why.cause is Cause.CANCELLED else "step_gave_up"
        failed = TimelineEvent(at, word, entry.key, why.attempts, entry.agent, why.cause, note)
        return [_Placed(entry.at, 3, entry.seq, failed)]
    number = judged + 1
    ended = [
        _Placed(entry.at, 3, entry.seq, TimelineEvent(at, "step_completed", entry.key, number, entry.agent)),
    ]
    if entry.started_at is None:
        return ended
    began_at = min(entry.started_at, entry.at)
    began = TimelineEvent(to_datetime(began_at), "step_started", entry.key, number, entry.agent)
    return [_Placed(began_at, 2, entry.seq, began), *ended]


def _of_probe(entry: JournalEntry, judged: int) -> list[_Placed]:
    """Give when a probe was asked, and that it said that an attempt had taken effect."""
    began = entry.at if entry.started_at is None else entry.started_at
    asked = TimelineEvent(to_datetime(began), "probe_started", entry.key, judged, entry.agent)
    note = "done: it took effect, and this came of it"
    told = TimelineEvent(to_datetime(entry.at), "probed", entry.key, judged, entry.agent, note=note)
    return [_Placed(began, 2, entry.seq, asked), _Placed(entry.at, 3, entry.seq, told)]


def _of_gift(entry: JournalEntry, word: str, by: str, at: Micros) -> _Placed:
    """Give that a person said what came of a call: nobody ran anything for it."""
    event = TimelineEvent(to_datetime(at), word, entry.key, note=f"by {by}", actor=by)
    return _Placed(at, 6, entry.seq, event)  # it follows from what was decided in the same turn


def _let_go(call: str, decision: Decision, at: Micros) -> TimelineEvent:
    """Give that a run wanted a call no more; when it had begun unseen, that its attempt ended by that."""
    if decision.cause is not Cause.CANCELLED:
        return TimelineEvent(to_datetime(at), STEP_CANCELLED, call, note=decision.rule, actor=SCHEDULER)
    number, agent, note = decision.number, decision.agent, decision.message
    return TimelineEvent(to_datetime(at), STEP_CANCELLED, call, number, agent, decision.cause, note, SCHEDULER)


def _ending(entry: JournalEntry, ended_as: RunState) -> tuple[str, str]:
    if ended_as is RunState.COMPLETED:
        return "", ""
    if ended_as is RunState.CANCELLED:
        return "cancelled", reason_in(entry.body)
    error = error_in(entry.body)
    return error.cause, f"{error.type}: {error.message}"


def _decided(row: DecisionRow, decision: Decision, at: Micros, outcome: str) -> TimelineEvent:
    by = "" if row.actor in HOUSE else f"by {row.actor}"
    if decision.run:
        by = f"{by}, with run {decision.run!r}".removeprefix(", ")
    note = decision.rule if row.actor in (SUPERVISOR, OBSERVER) else decision.message
    said = ": ".join(part for part in (by, note) if part)
    if decision.override:
        said += f" (policy changed: {decision.override})"
    word = decision.chosen.replace(" ", "_")
    number, rejected = decision.number, decision.rejected
    return TimelineEvent(to_datetime(at), word, row.call, number, None, "", said, row.actor, rejected, outcome)


def _of_attempt(call: str, decision: Decision, at: Micros, n: int) -> list[_Placed]:
    """Give the beginning and the end of an attempt that was judged."""
    number, agent, begins = decision.number, decision.agent, "step_started"
    ended = at if decision.ended_at is None else decision.ended_at
    note = f"{decision.type}: {decision.message}"
    if decision.probed:
        begins, ends = "probe_started", TimelineEvent(
            to_datetime(ended), "probed", call, number, agent, note=PROBED.get(decision.probed, f"it failed: {note}")
        )  # fmt: skip
    else:
        word = STEP_CANCELLED if decision.cause is Cause.CANCELLED else "step_failed"
        ends = TimelineEvent(to_datetime(ended), word, call, number, agent, decision.cause or "", note)
    by_its_run = decision.chosen == CANCELLED and decision.cause is Cause.CANCELLED  # then that says it
    placed = [] if by_its_run else [_Placed(ended, 4, n, ends)]
    if decision.started_at is not None:
        began = TimelineEvent(to_datetime(decision.started_at), begins, call, number, agent)
        placed.append(_Placed(decision.started_at, 2, n, began))
    return placed


def _of_row(row: AttemptRow) -> list[_Placed]:
    """Give what is under way: its beginning, and how far it says it is."""
    if row.kind == RowKind.ASK or row.started_at is None:
        return []
    number, probe = max(row.number, 1), row.kind == RowKind.PROBE
    placed = []
    if row.state in (AttemptState.RUNNING, AttemptState.DONE):
        word = "probe_started" if probe else "step_started"
        began = TimelineEvent(to_datetime(row.started_at), word, row.call, number, row.agent)
        placed.append(_Placed(row.started_at, 2, row.id, began))
    far = progress_in(row.progress)
    if row.state is AttemptState.RUNNING and far is not None and row.progress_at is not None:
        event = TimelineEvent(to_datetime(row.progress_at), "progress", row.call, number, row.agent, "", said_of(far))
        placed.append(_Placed(row.progress_at, 4, row.id, event))
    if row.state is AttemptState.FAILED and row.result is not None and row.ended_at is not None and not probe:
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
