"""RunStatus: how a run stands, why, and what has happened to it: for people and programs."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from watchbill.model.attempt import Progress


class State(StrEnum):
    """Where a run is, in words."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    WAITING = "waiting"
    UNDOING = "undoing"
    DIVERGED = "diverged"
    COMPLETED = "completed"
    FAILED = "failed"
    UNDONE = "undone"
    UNDO_FAILED = "undo_failed"
    CANCELLED = "cancelled"


class Health(StrEnum):
    """How a run is, judged by the worst of its live attempts."""

    OK = "ok"
    RETRYING = "retrying"
    STALLED = "stalled"
    SILENT = "silent"
    STARVED = "starved"
    SLOW = "slow"
    LATE = "late"
    WAITING_FOR_PERSON = "waiting_for_person"
    WAITING_FOR_AGENT = "waiting_for_agent"
    WAITING_FOR_DEPENDENCY = "waiting_for_dependency"
    WAITING_FOR_CODE = "waiting_for_code"


class StepState(StrEnum):
    """Where a step's call is, in words."""

    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNDONE = "undone"


class AttemptStatus(msgspec.Struct, frozen=True):
    """One try of a step."""

    number: int
    rung: int
    agent: int | None
    started_at: datetime | None
    ended_at: datetime | None
    cause: str | None
    error: str | None


class StepStatus(msgspec.Struct, frozen=True):
    """One call of a step."""

    key: str
    step: str
    state: StepState
    progress: Progress | None
    attempts: tuple[AttemptStatus, ...]


class RunStatus(msgspec.Struct, frozen=True):
    """How a run stands."""

    id: str
    workflow: str
    state: State
    health: Health
    paused: bool
    progress: Progress | None
    waiting_for: str | None
    since: datetime
    steps: tuple[StepStatus, ...]
    held: str | None  # why nothing moves it, when it is held
    expected_end: datetime | None = None  # when it will probably have ended; None: nobody knows


class TimelineEvent(msgspec.Struct, frozen=True):
    """Something that happened to a run."""

    at: datetime
    kind: str  # run_started, step_completed, step_failed, retry, message, ...
    step: str = ""  # the call's key
    attempt: int = 0  # its number; 0 when it is about none
    agent: int | None = None
    cause: str = ""
    note: str = ""
    actor: str = ""  # scheduler, agent, supervisor, or who it was


class AttemptLog(msgspec.Struct, frozen=True):
    """What one attempt has logged and printed: the last of it."""

    step: str  # the call's key
    attempt: int  # its number
    at: datetime  # of its end
    text: str


class Explanation(msgspec.Struct, frozen=True):
    """Why a run stands as it does: for people, and for programs."""

    sentences: list[str]
    facts: dict[str, Any]

    def __str__(self) -> str:
        """Give the sentences, one on each line."""
        return "\n".join(self.sentences)
