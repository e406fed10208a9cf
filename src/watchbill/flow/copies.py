"""Copies: what a new run takes over from one that has ended, or is to go another way. Pure."""

import re
from typing import Final, NamedTuple, Protocol

from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.flow.parts import OUTCOMES, Part, beginning_of, current_part, rewound
from watchbill.model.call import JournalEntry, JournalRow, Kind, Outcome, step_name
from watchbill.model.failed import Successor
from watchbill.model.run import NewRun, RunRow
from watchbill.model.states import RunState

UNDONE = (RunState.UNDONE, RunState.UNDO_FAILED)
ENDS = frozenset({Kind.END, Kind.CANCEL, Kind.LATE, Kind.STOPPED})
FORKED: Final = re.compile(r"~\d+\Z")


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
    places = [place for place, entry in enumerate(part.entries) if entry.key == call and entry.kind in OUTCOMES]
    if not places:
        raise _unknown(record, part, call)
    return Origin(part, _seqs(part.entries[: places[-1] + 1]))


def before(record: Record, call: str) -> Origin:
    """Leave out a call's outcome and all that came after it."""
    part = current_part(record.run, record.journal)
    check_call(record, call)
    return Origin(part, _seqs(tuple(rewound(list(part.entries), call))))


def failed(record: Record, step: str | None) -> Origin:
    """Leave out the first failure of a step, of any or of that one, and all that came after it, but for messages.

    A run that it started and that failed is as good as a step. When none failed the run's own code did: all is kept.
    When all it did was undone, messages are.
    """
    part = current_part(record.run, record.journal)
    if record.run.status in UNDONE:
        return Origin(part, _seqs(tuple(entry for entry in part.entries if entry.kind == Kind.MESSAGE)))
    for entry in part.entries:
        is_failure = entry.kind in (Kind.STEP, Kind.CHILD) and entry.outcome == Outcome.FAILED
        if is_failure and step in (None, entry.key, step_name(entry.key)):
            return Origin(part, _seqs(tuple(rewound(list(part.entries), entry.key))))
    if step is not None:
        raise InvalidOptionError(f"no call of step {step!r} failed in run {record.run.id!r}: there is nothing to retry")
    return Origin(part, _seqs(tuple(entry for entry in part.entries if entry.kind != Kind.END)))


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
        num, run.namespace, f"{FORKED.sub('', run.id)}~{n}", part.workflow, part.version, part.input, run.priority,
        tags=run.tags, region=record.region,
    )  # fmt: skip


def successor(record: Record, num: int, n: int) -> Successor:
    """Give the how manieth run that tries again what failed in one that has ended."""
    origin = failed(record, None)
    return Successor(copy_of(record, origin.part, num, n), origin.kept, beginning(record, origin.part, num))


def check_call(record: Record, call: str) -> None:
    """Refuse a call that has no outcome in what is in force."""
    part = current_part(record.run, record.journal)
    if not any(entry.key == call and entry.kind in OUTCOMES for entry in part.entries):
        raise _unknown(record, part, call)


def _seqs(entries: tuple[JournalEntry, ...]) -> tuple[int, ...]:
    return tuple(entry.seq for entry in entries if entry.kind not in ENDS)


def _unknown(record: Record, part: Part, call: str) -> InvalidOptionError:
    known = [entry.key for entry in part.entries if entry.kind in OUTCOMES]
    return InvalidOptionError(f"run {record.run.id!r} has no outcome of a call {call!r}{did_you_mean(call, known)}")
