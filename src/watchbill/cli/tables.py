"""Tables: what people read. Everything is `Text` whose characters are safe: no markup and no control sequence acts."""

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from watchbill.app.report import status_of, step_name
from watchbill.app.schedules import ScheduleStatus
from watchbill.app.status import AttemptStatus, Health, RunStatus, StepStatus
from watchbill.cli.escape import visible, visible_json, visible_lines
from watchbill.cli.fields import ErrorFields, ending_of
from watchbill.clock import EPOCH, to_datetime
from watchbill.model.attempt import Progress
from watchbill.store.protocol import Record

Block: TypeAlias = Table | Text

UNBOUNDED: Final = 100_000  # columns of what is no terminal: no line is folded there
# Columns that give way on a narrow terminal.
ELASTIC: Final = frozenset({"ID", "NAME", "WORKFLOW", "WAITING FOR", "STEP", "OUTCOME", "NEXT SLOTS", "STANDING"})
NARROWEST: Final = 11  # columns that are left to the last of a table
LONGEST_CELL: Final = 300  # characters, more than any id has; JSON has the rest
LONGEST_RESULT: Final = 20_000  # characters, some screens full; JSON has the rest
LABEL: Final = "{:<13}"

_STYLES: Final = {
    "completed": "green",
    "failed": "red",
    "undo_failed": "red",
    "diverged": "red",
    "undone": "yellow",
    "cancelled": "yellow",
    "running": "cyan",
    "waiting": "blue",
}


def drawn(blocks: Sequence[Block]) -> str:
    """Draw for stdout: with colours and folded cells on a terminal; elsewhere plainly, each line whole."""
    console = Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        width=None if sys.stdout.isatty() else UNBOUNDED,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as captured:
        for block in blocks:
            console.print(block, soft_wrap=isinstance(block, Text))
    # Every cell is padded to the width of its column, also the last of a line.
    return "\n".join(line.rstrip(" ") for line in captured.get().rstrip("\n").split("\n"))


# --- many runs


def list_of_runs(records: Sequence[Record]) -> list[Block]:
    """Give a line for each run."""
    if not records:
        return [Text("no runs")]
    table = _table("ID", "WORKFLOW", "STATE", "STEPS", "AGE", "TOOK", "WAITING FOR")
    for record in records:
        run, status = record.run, status_of(record)
        created, now = to_datetime(run.created_at), to_datetime(record.now)
        steps = status.progress
        waiting_for = _cell(status.waiting_for or "")
        waiting_for.no_wrap, waiting_for.overflow = True, "ellipsis"  # a run is one line; its page has the whole
        table.add_row(
            _cell(run.id),
            _cell(run.workflow),
            _state(record, status),
            _cell(f"{steps.done:g}/{steps.total:g}" if steps is not None and steps.total is not None else ""),
            _cell(span(created, now)),
            _cell(span(created, to_datetime(run.ended_at)) if run.ended_at is not None else ""),
            waiting_for,
        )
    return [table]


# --- one run


def page_of_run(record: Record) -> list[Block]:
    """Give all about one run: how it stands, what it did, how it ended."""
    status = status_of(record)
    blocks: list[Block] = [*_standing(record, status)]
    if status.steps:
        blocks += [Text(), _steps(record, status)]
    ending = ending_of(record)
    if ending.result is not None:
        blocks += [Text(), *_result(bytes(ending.result))]
    if ending.error is not None:
        blocks += [Text(), *_error(ending.error)]
    return blocks


def _standing(record: Record, status: RunStatus) -> Iterator[Text]:
    run, created = record.run, to_datetime(record.run.created_at)
    yield _labelled("run", _cell(run.id, style="bold"))
    yield _labelled("workflow", _cell(f"{run.workflow}, version {run.version}"))
    yield _labelled("state", _state(record, status))
    yield _labelled("created", _cell(_when(created)))
    if run.ended_at is not None:
        lasted = f"after {span(created, to_datetime(run.ended_at))}"
    else:
        lasted = f"for {span(status.since, to_datetime(record.now))}"
    yield _labelled("since", _cell(f"{_when(status.since)}, {lasted}"))
    if status.progress is not None:
        yield _labelled("progress", _cell(status.progress.note))
    if status.held is not None:
        reason = f"\n{LABEL.format('')}".join(visible_lines(status.held))
        yield _labelled("waiting for", _cell("a person"))
        yield _labelled("held", Text(reason, style="red"))
    elif status.waiting_for is not None:
        yield _labelled("waiting for", Text(visible(status.waiting_for)))


def _steps(record: Record, status: RunStatus) -> Table:
    table = _table("STEP", "STATE", "#", "AGENT", "STARTED", "TOOK", "OUTCOME")
    for step in status.steps:
        name = step.key if step.step == step_name(step.key) else f"{step.key} ({step.step})"
        called = (_cell(name), _cell(step.state, style=_STYLES.get(step.state, "")))
        for attempt in step.attempts:
            table.add_row(*called, *_attempt(record, step, attempt))
            called = (Text(), Text())  # said once
        if not step.attempts:
            table.add_row(*called)
    return table


def _attempt(record: Record, step: StepStatus, attempt: AttemptStatus) -> Iterator[Text]:
    created, now = to_datetime(record.run.created_at), to_datetime(record.now)
    yield _cell(str(attempt.number))
    yield _cell("" if attempt.agent is None else str(attempt.agent))
    yield _cell("" if attempt.started_at is None else _when_exactly(attempt.started_at, created))
    yield _cell("" if attempt.started_at is None else span(attempt.started_at, attempt.ended_at or now))
    if attempt.cause is not None:
        yield _cell(f"{attempt.cause}: {attempt.error}", style="red")
    elif attempt.ended_at is not None:
        yield _cell("completed")
    else:
        yield _cell(f"running {_progress(step.progress)}".rstrip())


def _result(body: bytes) -> Iterator[Text]:
    text = visible_json(msgspec.json.format(body, indent=2).decode())
    yield Text("result", style="bold")
    yield Text(text[:LONGEST_RESULT])
    if len(text) > LONGEST_RESULT:
        yield Text(f"... cut here: {len(text):,} characters in all, `-o json` has them", style="dim")


def _error(error: ErrorFields) -> Iterator[Text]:
    where = f" in step {error.step!r} after {error.attempts} attempts" if error.step is not None else ""
    yield Text(f"error ({error.cause}){visible(where)}", style="bold")
    for line in visible_lines(error.traceback or f"{error.type}: {error.message}"):
        yield Text(line)


# --- schedules


def list_of_schedules(schedules: Sequence[ScheduleStatus]) -> list[Block]:
    """Give a line for each schedule."""
    if not schedules:
        return [Text("no schedules")]
    table = _table("NAME", "SCHEDULE", "ZONE", "LAST SLOT", "NEXT SLOTS", "WAITING", "STANDING")
    for schedule in schedules:
        every = "" if schedule.every is None else f"every {span(EPOCH, EPOCH + timedelta(seconds=schedule.every))}"
        table.add_row(
            _cell(schedule.name),
            _cell(schedule.cron or every),
            _cell(schedule.tz),
            _cell(_when(schedule.last_slot)),
            _cell(", ".join([_when(at) for at in schedule.next])),
            _cell(str(schedule.waiting) if schedule.waiting else ""),
            _cell(", ".join(_standing_of(schedule))),
        )
    return [table]


def _standing_of(schedule: ScheduleStatus) -> Iterator[str]:
    if schedule.paused_by is not None:
        yield f"paused by {schedule.paused_by}" + (f": {schedule.paused_why}" if schedule.paused_why else "")
    if schedule.ended:
        yield "ended: its workflow has no schedule any more"
    elif not schedule.known:
        yield "no scheduler that attends has its code"
    if schedule.running:
        yield "running"


# --- cells


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        least = NARROWEST if header == headers[-1] else None
        table.add_column(header, no_wrap=header not in ELASTIC, min_width=least, overflow="fold")
    return table


def _cell(text: str, style: str = "") -> Text:
    return Text(visible(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}..."), style=style)


def _state(record: Record, status: RunStatus) -> Text:
    """Say where a run is, and whatever else is out of the ordinary."""
    notes = [
        *([status.health] if status.health is not Health.OK else []),
        *(["paused"] if status.paused else []),
        *(["cancel asked for"] if record.cancelling and not record.run.status.terminal else []),
    ]
    return Text(", ".join([status.state, *notes]), style=_STYLES.get(status.state, ""))


def _labelled(label: str, text: Text) -> Text:
    return Text.assemble((LABEL.format(label), "dim"), text)


def _progress(progress: Progress | None) -> str:
    if progress is None:
        return ""
    far = f"{progress.done:g}" + ("" if progress.total is None else f" of {progress.total:g}")
    return f"{far}: {progress.note}" if progress.note else far


def _when(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z"


def _when_exactly(at: datetime, created: datetime) -> str:
    """Give the time to the millisecond; the day only if it is not that of the run's creation."""
    clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}Z"
    return clock if at.date() == created.date() else f"{at:%Y-%m-%d} {clock}"


def span(begin: datetime, end: datetime) -> str:
    """Give a time in the two units that matter, rounded down: what took 59.99 s did not take 60."""
    took = max(end - begin, timedelta())
    minutes, seconds = divmod(took.days * 86_400 + took.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours:02}h"
    if hours:
        return f"{hours}h {minutes:02}m"
    if minutes:
        return f"{minutes}m {seconds:02}s"
    if seconds:
        return f"{seconds}.{took.microseconds // 100_000}s"
    return f"{took.microseconds // 1_000}ms"
