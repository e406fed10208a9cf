"""RunStatus: how a run stands, why, and what has happened to it: for people and programs."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from watchbill.model.attempt import Progress
from watchbill.model.recurrence import Catchup, Overlap


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
    percent: int | None = None  # that is done: by that time, or else of the calls seen so far
    paused_by: str | None = None  # who has paused it, or the run above it
    paused_why: str | None = None
    paused_with: str | None = None  # the run above it that was paused with all below it


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
    rejected: tuple[str, ...] = ()  # of a decision: what else could have been chosen, and after a colon why it was not
    outcome: str = ""  # of a decision: what has become of it so far


class AttemptLog(msgspec.Struct, frozen=True):
    """What one attempt has logged and printed: the last of it."""

    step: str  # the call's key
    attempt: int  # its number
    at: datetime  # of its end
    text: str


class Because(StrEnum):
    """Why a run, or a call of it, is not moving (closed list).

    Whoever adds a way to wait adds a reason here, and a sentence where it is found.
    """

    # a run
    BEGINS_LATER = "begins_later"
    DUE = "due"
    PAUSED = "paused"
    WORKFLOW_PAUSED = "workflow_paused"
    NO_SCHEDULER = "no_scheduler"
    NO_REGION = "no_region"  # nobody serves it
    NO_CODE = "no_code"
    DIVERGED = "diverged"
    QUARANTINED_RUN = "quarantined_run"
    WAITS_FOR_NOTHING = "waits_for_nothing"
    ENDLESS = "endless"  # its code never yields, or never rests
    NO_KEY = "no_key"
    HELD = "held"  # for another reason, which it says
    SLEEP = "sleep"
    TIME_IS_UP = "time_is_up"
    MESSAGE = "message"
    CHILD_RUN = "child_run"
    ANSWER = "answer"
    JUST_BEGUN = "just_begun"
    UNDOING = "undoing"
    MAY_STILL_ACT = "may_still_act"  # nothing is undone while an attempt may that was taken from its agent
    DEADLINE = "deadline"
    TOLD = "told"  # somebody wants something of it
    NO_SUPERVISOR = "no_supervisor"
    # a call that runs
    AT_WORK = "at_work"
    QUIET = "quiet"
    SLOW = "slow"
    STARVED = "starved"
    SILENT = "silent"
    LATE = "late"
    STALLED = "stalled"
    CANARY = "canary"  # it tries a dependency for all the others
    STOPPING = "stopping"
    # a call that is ready
    RUN_PAUSED = "run_paused"
    PAUSED_BY_NAME = "paused_by_name"
    BREAKER_OPEN = "breaker_open"
    CANARY_TRIES = "canary_tries"  # another call does
    LEAVING = "leaving"  # the breaker closes, and lets those who wait out at a pace
    RETRY_BUDGET = "retry_budget"  # it has failed, and first tries go first where many have
    LIMIT_PAUSED = "limit_paused"
    QUOTA = "quota"  # of attempts of its namespace is used up
    AT_ONCE = "at_once"
    RATE = "rate"
    BEHIND_OTHERS = "behind_others"
    NO_AGENT = "no_agent"
    NOBODY_CAPABLE = "nobody_capable"
    KEPT_FROM_AGENT = "kept_from_agent"
    AGENTS_FULL = "agents_full"
    AGENTS_SUSPENDED = "agents_suspended"
    AGENTS_QUARANTINED = "agents_quarantined"  # by somebody, who lets them work again
    URGENT_AHEAD = "urgent_ahead"
    READY = "ready"
    # a call between two attempts, or at its end
    FAILED = "failed"
    BACKOFF = "backoff"
    SETTLE = "settle"  # until its outcome can be asked for
    QUARANTINE = "quarantine"
    ESCALATE = "escalate"
    DOUBT = "doubt"
    QUESTION = "question"
    ENDED = "ended"  # its outcome is there


class Standstill(msgspec.Struct, frozen=True):
    """One reason why something is not moving: for people, and for programs."""

    because: Because
    said: str
    next: str  # who acts
    when: datetime | None = None  # by when; None: nobody knows
    call: str = ""
    evidence: dict[str, Any] = {}


class Explanation(msgspec.Struct, frozen=True):
    """Why a run stands as it does: for people, and for programs."""

    sentences: list[str]
    facts: dict[str, Any]
    reasons: tuple[Standstill, ...] = ()  # every reason why it is not moving, with who acts next, and by when

    def __str__(self) -> str:
        """Give the sentences, one on each line."""
        return "\n".join(self.sentences)


class ScheduleStatus(msgspec.Struct, frozen=True):
    """How a schedule stands."""

    name: str
    workflow: str
    created: bool  # at run time; else it is in the code of its workflow
    cron: str | None
    every: float | None  # seconds
    tz: str
    overlap: Overlap
    catchup: Catchup
    next: tuple[datetime, ...]  # its next slots; empty when it will not run
    last_slot: datetime  # everything up to here is decided
    waiting: int  # slots that wait for the run before them
    running: bool  # the run of the last slot has not ended
    known: bool  # somebody who attends has its code, or nobody attends
    ended: bool  # its workflow is there and has no schedule any more
    paused_by: str | None
    paused_why: str | None
    paused_at: datetime | None
