"""Copies: what a new run takes over from one that has ended, or is to go another way. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.flow.parts import OUTCOMES, Part, beginning_of, current_part, rewound
from watchbill.flow.undo import UNDO, undo_key
from watchbill.model.call import JournalEntry, JournalRow, Kind, Outcome, step_name
from watchbill.model.failed import Successor
from watchbill.model.failure import FinalFailure
from watchbill.model.run import NewRun, RunRow, copy_id
from watchbill.model.states import RunState

UNDONE = (RunState.UNDONE, RunState.UNDO_FAILED)
# What a copy does not go through again: it goes on as if nobody had stopped the run. How each is told.
STOPS: Final = {
    Kind.CANCEL: "was cancelled",
    Kind.LATE: "was stopped by its deadline",
    Kind.STOPPED: "was stopped by a person",
}

_decode_final = msgspec.json.Decoder(FinalFailure).decode


class Record(Protocol):
    """What is needed of the record of a run."""

    @property
    def run(self) -> RunRow:
        """Its row."""
        ...

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        """All of its entries."""
        ...

    @property
    def region(self) -> str:
        """Where it lives."""
        ...


class Origin(NamedTuple):
    """Where a copy begins: the part of the run that is in force, and the entries that are kept."""

    part: Part
    kept: tuple[int, ...]


def after(record: Record, call: str) -> Origin:
    """Keep everything up to and including a call's outcome."""
    part = current_part(record.run, record.journal)
    check_call(record, call)
    places = [place for place, entry in enumerate(part.entries) if entry.key == call and entry.kind in OUTCOMES]
    return Origin(part, _seqs(part.entries[: places[-1] + 1]))


def before(record: Record, call: str) -> Origin:
    """Leave out a call's outcome and all that came after it."""
    part = current_part(record.run, record.journal)
    check_call(record, call)
    return Origin(part, _seqs(rewound(_unstopped(part), call)))


def failed(record: Record, step: str | None) -> Origin:
    """Leave out the first failure of a step, of any or of that one, and all that came after it, but for messages.

    A run that it started and that failed is as good as a step. When none failed the run's own code did, or somebody
    stopped it: all is kept up to there. When anything it did was undone, messages are: the rest is done again.
    """
    part = current_part(record.run, record.journal)
    failures = [entry.key for entry in part.entries if _is_failure(entry, step)]
    if step is not None and not failures:
        raise _nothing_failed(record, part, step)
    if record.run.status in UNDONE or any(_is_undo(entry) for entry in part.entries):
        return Origin(part, _seqs([entry for entry in part.entries if entry.kind == Kind.MESSAGE]))
    # What failed after the run was stopped is left out already.
    return Origin(part, _seqs(rewound(_unstopped(part), failures[0]) if failures else _unstopped(part)))


def beginning(record: Record, part: Part, num: int) -> JournalRow | None:
    """Give the entry with which the copy of a run begins that had gone on as another part; None for a first part.

    It hands on once more what that part was given: when it began, and the mailbox it began with.
    """
    if all(entry.kind != Kind.CONTINUED for entry in record.journal):
        return None
    at, body = part.begun_at or 0, beginning_of(part)
    return num, 1, Kind.CONTINUED.value, part.workflow, 0, 0, Outcome.OK.value, None, None, at, body


def copy_of(record: Record, part: Part, num: int, n: int) -> NewRun:
    """Give the how manieth run that goes on from a part of another one."""
    run = record.run
    return NewRun(
        num, run.namespace, copy_id(run.id, n), part.workflow, part.version, part.input, run.priority,
        tags=run.tags, region=record.region, slot=run.slot, parent_id=run.parent_id,
    )  # fmt: skip


def successor(record: Record, num: int, n: int) -> Successor:
    """Give the how manieth run that tries again what failed in one that has ended."""
    origin = failed(record, None)
    return Successor(copy_of(record, origin.part, num, n), origin.kept, beginning(record, origin.part, num))


def check_call(record: Record, call: str) -> None:
    """Refuse a call that has no outcome in what is in force, or has one only because the run was stopped."""
    part = current_part(record.run, record.journal)
    known = [entry.key for entry in _unstopped(part) if entry.kind in OUTCOMES]
    if call in known:
        return
    if any(entry.key == call and entry.kind in OUTCOMES for entry in part.entries):
        raise _behind(record, part.entries[_stop(part)], call, known)
    behind = (
        ""
        if all(entry.kind != Kind.CONTINUED for entry in record.journal)
        else "; it went on by continue_as, and calls of its earlier parts can no longer be named"
    )
    raise InvalidOptionError(
        f"run {record.run.id!r} has no outcome of a call {call!r}{did_you_mean(call, known)}{behind}"
    )


def _stop(part: Part) -> int:
    """Give the place of what stopped a run: all that it saw from there on it saw because of that."""
    places = (place for place, entry in enumerate(part.entries) if entry.kind in STOPS or _is_undo(entry))
    return next(places, len(part.entries))


def _unstopped(part: Part) -> list[JournalEntry]:
    """Leave out what stopped a run, all that came after it, but for messages, and its end."""
    stop = _stop(part)
    return [
        entry
        for place, entry in enumerate(part.entries)
        if entry.kind == Kind.MESSAGE or (place < stop and entry.kind != Kind.END)
    ]


def _is_undo(entry: JournalEntry) -> bool:
    return entry.kind == Kind.STEP and entry.key.startswith(UNDO)


def _is_failure(entry: JournalEntry, step: str | None) -> bool:
    """Say whether an entry is a failure of that step, or of any; that of an undo is none that can be tried again."""
    is_failure = entry.kind in (Kind.STEP, Kind.CHILD) and entry.outcome == Outcome.FAILED and not _is_undo(entry)
    return is_failure and (step in (None, entry.key, step_name(entry.key)) or step == _failed_step(entry))


def _is_undo_by(entry: JournalEntry, step: str) -> bool:
    """Say whether an entry is an undo of that name: by its key, by the step that it undoes, or by its own step."""
    if not _is_undo(entry):
        return False
    return step in (entry.key, undo_key(step_name(entry.key.removeprefix(UNDO))), _failed_step(entry))


def _failed_step(entry: JournalEntry) -> str | None:
    """Give the step of a call that failed, which its key need not name."""
    if entry.kind != Kind.STEP or entry.outcome != Outcome.FAILED:
        return None
    return _decode_final(entry.body).step


def _seqs(entries: Sequence[JournalEntry]) -> tuple[int, ...]:
    return tuple([entry.seq for entry in entries])


def _nothing_failed(record: Record, part: Part, step: str) -> InvalidOptionError:
    id = record.run.id
    if any(_is_undo_by(entry, step) for entry in part.entries):
        return InvalidOptionError(
            f"run {id!r} has ended, and its undo {step!r} cannot be tried again by itself: undo by hand what the run"
            " names as not undone, then `watchbill incidents skip`; or retry it without a step, which does all of it"
            " again"
        )
    return InvalidOptionError(f"no call of step {step!r} failed in run {id!r}: there is nothing to retry")


def _behind(record: Record, stop: JournalEntry, call: str, known: Sequence[str]) -> InvalidOptionError:
    how = STOPS[Kind(stop.kind)] if stop.kind in STOPS else "began to be undone"
    instead = f"name {known[-1]!r}, the last one before that, or an earlier one" if known else "use retry()"
    return InvalidOptionError(
        f"call {call!r} of run {record.run.id!r} ended after the run {how}: what is done again goes on as if that had"
        f" not happened, and has no such call; {instead}"
    )
