"""Schedule: a workflow that starts by itself, as the store knows it."""

from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.logbook import LogEntry
from watchbill.model.recurrence import ScheduleSpec
from watchbill.model.run import NewRun

MOST_SLOTS: Final = (
    1_000  # that are made up for, wait, or are filled in at once: more is a mistake, or an outage of years
)
SHORTEST_EVERY: Final[Micros] = SECOND  # what comes more often is a loop inside one run, not a run each time
LONGEST_SLOT: Final = len("@2026-01-01T00:00:00.000000Z")  # what a slot adds to the name in a run's id


class NewSchedule(msgspec.Struct, frozen=True):
    """A schedule as code has it; its name is its workflow's."""

    name: str
    shard: int
    version: int
    spec: ScheduleSpec
    input: bytes  # of its runs: kept beside it, so that nobody needs the code to start one


class CreatedSchedule(msgspec.Struct, frozen=True):
    """A schedule to create at run time, or to change if it is still at `rev`; None: if its name is free."""

    namespace: str
    name: str
    workflow: str
    version: int
    spec: ScheduleSpec
    input: bytes
    region: str
    rev: int | None
    entry: LogEntry  # who creates or changes it, for the logbook


class ScheduleRow(msgspec.Struct, frozen=True):
    """A schedule as the store knows it."""

    namespace: str
    name: str
    workflow: str
    shard: int
    version: int
    spec: ScheduleSpec
    input: bytes
    rev: int  # grows with every change: whoever has read an older one changes nothing
    last_slot: Micros  # everything up to here is decided: started, skipped, or waiting; only grows
    wake_at: Micros | None  # the next slot; None: its workflow is there and has no schedule any more
    waiting: tuple[Micros, ...]  # slots whose run starts when the one before has ended, in order
    paused_by: str | None
    paused_why: str | None
    paused_at: Micros | None
    live: bool  # the run that was started last has not ended
    known: bool  # a scheduler that attends has its code; True also when none attends
    created: bool  # at run time; else the code of its workflow has it


class ScheduleChange(msgspec.Struct, frozen=True):
    """What a turn writes about a schedule, if it is still at `rev`: otherwise nothing, and no run."""

    namespace: str
    name: str
    rev: int
    last_slot: Micros
    wake_at: Micros
    waiting: tuple[Micros, ...]
    starts: tuple[NewRun, ...]  # unless their ids are there


class ScheduleOrder(msgspec.Struct, frozen=True):
    """What a person wants of a schedule; counts only if it is still at `rev`."""

    namespace: str
    name: str
    rev: int
    waiting: tuple[Micros, ...]
    paused_by: str | None
    paused_why: str | None
    entry: LogEntry | None = None  # who wants it, for the logbook


def slot_id(name: str, slot: Micros) -> str:
    """Give the id of a slot's run: one slot, one id, whoever starts it."""
    return f"{name}@{to_datetime(slot).isoformat().removesuffix('+00:00')}Z"
