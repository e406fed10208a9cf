"""Fields: what programs read. The names and their order are a promise."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from watchbill.app.report import status_of
from watchbill.app.status import Health, State
from watchbill.clock import to_datetime
from watchbill.model.attempt import Progress
from watchbill.model.call import Kind
from watchbill.model.failure import Cause, RunError
from watchbill.model.incident import Incident
from watchbill.model.question import InboxItem
from watchbill.model.sealed import is_sealed, shown
from watchbill.model.states import RunState
from watchbill.store.protocol import Record

# How a dependency is, by its breaker. Gates open and close, too, the other way round: nobody need think of it.
HOW_IT_IS: Final = {"closed": "up", "open": "down", "half-open": "being tried", "closing": "coming up"}


class RunFields(msgspec.Struct, frozen=True):
    """A run, as lists have it."""

    id: str
    workflow: str
    version: int
    state: State
    health: Health
    paused: bool
    priority: int
    tags: tuple[str, ...]
    parent: str | None
    created_at: datetime
    ended_at: datetime | None
    waiting_for: str | None
    progress: Progress | None
    paused_by: str | None
    paused_why: str | None
    paused_with: str | None


class ErrorFields(msgspec.Struct, frozen=True):
    """Why a run did not complete; the traceback is empty when it was cancelled."""

    type: str
    message: str
    traceback: str
    step: str | None
    attempts: int | None
    cause: Cause


class Ending(msgspec.Struct, frozen=True):
    """How a run ended: with a result or with an error; with neither, it is open."""

    result: msgspec.Raw | None = None  # the JSON as it is stored: no number is rounded, no key moved
    error: ErrorFields | None = None


class Acted(msgspec.Struct, frozen=True):
    """What became of something that was asked of a run."""

    id: str
    action: str
    outcome: str  # done, would be done, refused; told: whether it fits the run says
    run: str | None = None  # the new run that came of it
    error: str | None = None


class Question(msgspec.Struct, frozen=True):
    """What waits for a person: a question, or a call."""

    id: str
    run: str
    call: str
    question: str
    to: str
    form: dict[str, Any]
    asked_at: datetime
    refused: str | None
    answered_by: str | None
    kind: str
    actions: tuple[str, ...]
    incident: str | None
    claimed_by: str | None
    claimed_until: datetime | None
    due_at: datetime | None
    escalate_to: str | None


class IncidentPage(msgspec.Struct, frozen=True):
    """All about one incident, with some of the calls that wait."""

    incident: Incident
    calls: tuple[Question, ...]


class Finding(msgspec.Struct, frozen=True):
    """What a doctor has looked at: ok, warn or bad; and what to do about it."""

    check: str
    level: str
    said: str
    remedy: str = ""
    value: Any = None  # what was measured, for programs


class Migrated(msgspec.Struct, frozen=True):
    """A store that was made or upgraded; schema 0 is none, and equal ones mean that there was nothing to do."""

    store: str
    before: int
    after: int
    roles: dict[str, str] = {}  # by role of the database: the region that it was given; a region may have several
    term: int | None = None  # the new term of a store that was restored from a backup


class ClockRead(msgspec.Struct, frozen=True):
    """A store's time, before and after it was set back, and this machine's clock."""

    store: str
    before: datetime
    after: datetime
    here: datetime
    waiting: int = 0  # live runs that wait for a time which was computed while the clock was ahead


class BackedUp(msgspec.Struct, frozen=True):
    """A copy of a store, which passed its integrity check."""

    store: str
    backup: str
    bytes: int
    schema: int
    keys: bool = False  # never in a backup


def question_fields(item: InboxItem) -> Question:
    """Give what is asked."""
    return Question(
        item.id,
        item.run,
        item.call,
        item.question,
        item.to,
        item.form,
        item.asked_at,
        item.refused,
        item.answered_by,
        item.kind,
        item.actions,
        item.incident,
        item.claimed_by,
        item.claimed_until,
        item.due_at,
        item.escalate_to,
    )


def incident_page(page: IncidentPage) -> Mapping[str, object]:
    """Give all about an incident."""
    return {**msgspec.structs.asdict(page.incident), "calls": page.calls}


_decode_error = msgspec.json.Decoder(RunError).decode
_decode_reason = msgspec.json.Decoder(str).decode


def run_fields(record: Record) -> RunFields:
    """Give what a list says about a run."""
    run, status = record.run, status_of(record)
    return RunFields(
        id=run.id,
        workflow=run.workflow,
        version=run.version,
        state=status.state,
        health=status.health,
        paused=run.paused,
        priority=run.priority,
        tags=run.tags,
        parent=record.parent,
        created_at=to_datetime(run.created_at),
        ended_at=to_datetime(run.ended_at) if run.ended_at is not None else None,
        waiting_for=status.waiting_for,
        progress=status.progress,
        paused_by=status.paused_by,
        paused_why=status.paused_why,
        paused_with=status.paused_with,
    )


def shown_fields(record: Record) -> Mapping[str, object]:
    """Give what a list says about a run, what it did, and how it ended; or, where that is known, when it will.

    Of one that is live also how much is done, in percent.
    """
    ending, status = ending_of(record), status_of(record)
    return {
        **msgspec.structs.asdict(run_fields(record)),
        "steps": status.steps,
        "result": ending.result,
        "error": ending.error,
        **({} if status.percent is None or record.run.status.terminal else {"percent": status.percent}),
        **({} if status.expected_end is None else {"expected_end": status.expected_end}),
    }


def ending_of(record: Record) -> Ending:
    """Read how a run ended from the last entry of its journal."""
    end = record.journal[-1] if record.journal else None
    if end is None or end.kind != Kind.END:
        return Ending()
    if is_sealed(end.body):
        return _sealed_ending(record, shown(end.body))
    if record.run.status is RunState.COMPLETED:
        return Ending(result=msgspec.Raw(end.body))
    if record.run.status is RunState.CANCELLED:
        reason = _decode_reason(end.body)
        return Ending(error=ErrorFields("RunCancelled", reason, "", None, None, Cause.CANCELLED))
    why = _decode_error(end.body)
    return Ending(error=ErrorFields(why.type, why.message, why.traceback, why.step, why.attempts, why.cause))


def _sealed_ending(record: Record, words: str) -> Ending:
    if record.run.status is RunState.COMPLETED:
        return Ending(result=msgspec.Raw(msgspec.json.encode(words)))
    return Ending(error=ErrorFields("Sealed", words, "", None, None, Cause.UNKNOWN))
