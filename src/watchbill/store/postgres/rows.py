"""Rows: what a statement selects, as the facts of the model; the columns stand in the order of the struct's fields."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from watchbill.model.attempt import AttemptRow
from watchbill.model.call import JournalEntry
from watchbill.model.facts import FactKind
from watchbill.model.recurrence import ScheduleSpec
from watchbill.model.run import RunRow
from watchbill.model.schedule import ScheduleRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.postgres.connections import Row
from watchbill.store.protocol import Fact

T = TypeVar("T", JournalEntry, AttemptRow, Fact)

_STATES: Final = {int(state): state for state in AttemptState}  # quicker than to ask the enum, row by row
_SPEC: Final = msgspec.json.Decoder(ScheduleSpec)


def run_rows(rows: Iterable[Row]) -> list[RunRow]:
    """Read runs."""
    return [_run(*row) for row in rows]


def attempt_rows(rows: Iterable[Row]) -> list[AttemptRow]:
    """Read attempts."""
    return [AttemptRow(*row[:8], _STATES[row[8]], *row[9:]) for row in _untyped(rows)]  # type: ignore[call-arg]


def journal_entries(rows: Iterable[Row]) -> list[JournalEntry]:
    """Read journal entries."""
    return [_entry(*row) for row in rows]


def facts(rows: Iterable[Row]) -> list[Fact]:
    """Read facts."""
    return [_fact(*row) for row in rows]


def schedule_rows(rows: Iterable[Row]) -> tuple[ScheduleRow, ...]:
    """Read schedules."""
    return tuple([_schedule(*row) for row in rows])


def without_usual(column: Sequence[object], usual: object = None) -> Sequence[object]:
    """Leave a column empty that has nothing but the usual value: unnest() gives NULL where an array has no more values.

    The driver asks of each value whether it is an array, which costs more than all else about it.
    """
    return [] if column and column[0] == usual and column.count(usual) == len(column) else column


def by_run(found: Sequence[T]) -> dict[int, list[T]]:
    """Sort what belongs to many runs."""
    sorted_out: dict[int, list[T]] = defaultdict(list)
    for one in found:
        sorted_out[one.run].append(one)
    return sorted_out


# The driver's rows are untyped; the statements say which columns they have, and here they get their types.


def _untyped(rows: Iterable[Row]) -> Iterable[Any]:
    return rows


def _run(*columns: Any) -> RunRow:  # noqa: ANN401
    *others, tags, published, early, waits, pauses = columns
    return RunRow(*others[:6], RunState(others[6]), *others[7:], tuple(tags or ()), published, early, waits, pauses)  # type: ignore[call-arg]


def _entry(*columns: Any) -> JournalEntry:  # noqa: ANN401
    return JournalEntry(*columns)


def _fact(*columns: Any) -> Fact:  # noqa: ANN401
    return Fact(*columns[:3], FactKind(columns[3]), *columns[4:])  # type: ignore[call-arg]


def _schedule(*columns: Any) -> ScheduleRow:  # noqa: ANN401
    spec, waiting = _SPEC.decode(columns[4]), tuple(columns[9] or ())
    return ScheduleRow(*columns[:4], spec, *columns[5:9], waiting, *columns[10:])  # type: ignore[call-arg]
