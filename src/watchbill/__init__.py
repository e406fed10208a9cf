"""Watchbill: durable workflows in plain Python, under a supervisor that looks for the failures nobody reports."""

from watchbill.app.app import App
from watchbill.app.handle import Handle
from watchbill.app.status import Explanation, Health, RunStatus, State, TimelineEvent
from watchbill.errors import (
    AlreadyAnswered,
    AlreadyDecided,
    Ambiguous,
    Busy,
    ClaimedByOther,
    DuplicateRun,
    ImpureWorkflowError,
    InvalidOptionError,
    InvalidValueError,
    ItemNotFound,
    NotInWorkflowError,
    Permanent,
    QuestionNotFound,
    RunCancelled,
    RunEnded,
    RunFailed,
    RunHeld,
    RunNotFound,
    RunUndoFailed,
    RunUndone,
    SealedError,
    StepFailed,
    StoreError,
    WatchbillError,
)
from watchbill.events import Event
from watchbill.flow.context import attempt
from watchbill.flow.ladder import Escalate, Switch
from watchbill.flow.language import (
    Settled,
    ask,
    continue_as,
    gather_settled,
    now,
    patched,
    publish,
    random,
    receive,
    spread,
    uuid,
)
from watchbill.flow.steps import Step
from watchbill.flow.timers import sleep
from watchbill.flow.workflows import Workflow
from watchbill.model.limit import Limit
from watchbill.model.policy import Retry
from watchbill.model.probe import Done, NotDone, Unknown
from watchbill.model.question import InboxItem
from watchbill.model.secret import Secret

__all__ = [
    "AlreadyAnswered",
    "AlreadyDecided",
    "Ambiguous",
    "App",
    "Busy",
    "ClaimedByOther",
    "Done",
    "DuplicateRun",
    "Escalate",
    "Event",
    "Explanation",
    "Handle",
    "Health",
    "ImpureWorkflowError",
    "InboxItem",
    "InvalidOptionError",
    "InvalidValueError",
    "ItemNotFound",
    "Limit",
    "NotDone",
    "NotInWorkflowError",
    "Permanent",
    "QuestionNotFound",
    "Retry",
    "RunCancelled",
    "RunEnded",
    "RunFailed",
    "RunHeld",
    "RunNotFound",
    "RunStatus",
    "RunUndoFailed",
    "RunUndone",
    "SealedError",
    "Secret",
    "Settled",
    "State",
    "Step",
    "StepFailed",
    "StoreError",
    "Switch",
    "TimelineEvent",
    "Unknown",
    "WatchbillError",
    "Workflow",
    "ask",
    "attempt",
    "continue_as",
    "gather_settled",
    "now",
    "patched",
    "publish",
    "random",
    "receive",
    "sleep",
    "spread",
    "uuid",
]
