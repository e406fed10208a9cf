"""Output: how a command prints: tables for people, JSON for programs."""

import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill.app.schedules import ScheduleStatus
from watchbill.cli.escape import visible, visible_json
from watchbill.cli.fields import Migrated, run_fields, shown_fields
from watchbill.cli.options import Format
from watchbill.store.protocol import Record

IN_ONE_LINE: Final = -1  # what msgspec calls it


def print_runs(records: Sequence[Record], format: Format) -> None:
    """Print a list of runs."""
    match format:
        case Format.TABLE:
            # Only here: programs do not wait for the import of rich.
            from watchbill.cli.tables import drawn, list_of_runs

            _write(drawn(list_of_runs(records)), sys.stdout.encoding)
        case Format.JSON:
            _write(_json([run_fields(record) for record in records]))
        case Format.JSONL:
            for line in [_json_line(run_fields(record)) for record in records]:
                _write(line)


def print_run(record: Record, format: Format) -> None:
    """Print all about one run."""
    match format:
        case Format.TABLE:
            from watchbill.cli.tables import drawn, page_of_run

            _write(drawn(page_of_run(record)), sys.stdout.encoding)
        case Format.JSON:
            _write(_json(shown_fields(record)))
        case Format.JSONL:
            _write(_json_line(shown_fields(record)))


def print_schedules(schedules: Sequence[ScheduleStatus], format: Format) -> None:
    """Print a list of schedules."""
    match format:
        case Format.TABLE:
            from watchbill.cli.tables import drawn, list_of_schedules

            _write(drawn(list_of_schedules(schedules)), sys.stdout.encoding)
        case Format.JSON:
            _write(_json(schedules))
        case Format.JSONL:
            for schedule in schedules:
                _write(_json_line(schedule))


def print_ids(ids: Sequence[str], format: Format) -> None:
    """Print the ids of runs that were started."""
    match format:
        case Format.TABLE:
            _write("\n".join([visible(id) for id in ids]) or "no slots", sys.stdout.encoding)
        case Format.JSON:
            _write(_json([{"id": id} for id in ids]))
        case Format.JSONL:
            for id in ids:
                _write(_json_line({"id": id}))


def print_migrated(migrated: Migrated, format: Format) -> None:
    """Print what became of a store."""
    match format:
        case Format.TABLE:
            _write(visible(_told(migrated)), sys.stdout.encoding)
        case Format.JSON:
            _write(_json(migrated))
        case Format.JSONL:
            _write(_json_line(migrated))


def _told(migrated: Migrated) -> str:
    if migrated.before == migrated.after:
        return f"store {migrated.store!r} has schema {migrated.after} already: nothing to do"
    did = "made" if migrated.before == 0 else "upgraded"
    return f"store {migrated.store!r} {did}: from schema {migrated.before} to {migrated.after}"


def _json(value: object, indent: int = 2) -> str:
    # Formatting also reads the stored results, which are encoded as they are: damaged ones must not be handed on.
    return visible_json(msgspec.json.format(msgspec.json.encode(value), indent=indent).decode())


def _json_line(value: object) -> str:
    return _json(value, indent=IN_ONE_LINE)


def _write(text: str, encoding: str = "utf-8") -> None:
    """Write lines: JSON is UTF-8 whatever the terminal speaks. A reader who has left is noticed here."""
    sys.stdout.buffer.write(text.encode(encoding, "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()
