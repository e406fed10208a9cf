"""Watchbill: durable workflows in plain Python, under a supervisor that looks for the failures nobody reports."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from watchbill.app.app import App
    from watchbill.app.handle import Handle
    from watchbill.app.status import Explanation, Health, RunStatus, ScheduleStatus, State, TimelineEvent
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
        QuotaExceeded,
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
        current_run,
        gather_settled,
        in_workflow,
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
    from watchbill.model.run import CurrentRun
    from watchbill.model.secret import Secret

if sys.platform == "win32":  # locks between processes, forks and unix sockets are those of POSIX
    raise ImportError("Watchbill runs on Linux and macOS, not on Windows: use it inside WSL 2 or a container.")

# Where each name is: it is imported when it is first asked for. Commands and the hosts of agents need hardly any. A
# program that has an App gets all of them with it: nothing is imported in the middle of a workflow.
_PLACES: Final = {
    "watchbill.app.app": ("App",),
    "watchbill.app.handle": ("Handle",),
    "watchbill.app.status": ("Explanation", "Health", "RunStatus", "ScheduleStatus", "State", "TimelineEvent"),
    "watchbill.errors": (
        "AlreadyAnswered",
        "AlreadyDecided",
        "Ambiguous",
        "Busy",
        "ClaimedByOther",
        "DuplicateRun",
        "ImpureWorkflowError",
        "InvalidOptionError",
        "InvalidValueError",
        "ItemNotFound",
        "NotInWorkflowError",
        "Permanent",
        "QuestionNotFound",
        "QuotaExceeded",
        "QuotaExceeded",
        "RunCancelled",
        "RunEnded",
        "RunFailed",
        "RunHeld",
        "RunNotFound",
        "RunUndoFailed",
        "RunUndone",
        "SealedError",
        "StepFailed",
        "StoreError",
        "WatchbillError",
    ),
    "watchbill.events": ("Event",),
    "watchbill.flow.context": ("attempt",),
    "watchbill.flow.ladder": ("Escalate", "Switch"),
    "watchbill.flow.language": (
        "Settled",
        "ask",
        "continue_as",
        "current_run",
        "gather_settled",
        "in_workflow",
        "now",
        "patched",
        "publish",
        "random",
        "receive",
        "spread",
        "uuid",
    ),
    "watchbill.flow.steps": ("Step",),
    "watchbill.flow.timers": ("sleep",),
    "watchbill.flow.workflows": ("Workflow",),
    "watchbill.model.limit": ("Limit",),
    "watchbill.model.policy": ("Retry",),
    "watchbill.model.probe": ("Done", "NotDone", "Unknown"),
    "watchbill.model.question": ("InboxItem",),
    "watchbill.model.run": ("CurrentRun",),
    "watchbill.model.secret": ("Secret",),
}
_PARTS: Final = frozenset({"app", "errors", "events", "flow", "model"})  # which come with `import watchbill`, too
_PLACE_OF: Final = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "AlreadyAnswered",
    "AlreadyDecided",
    "Ambiguous",
    "App",
    "Busy",
    "ClaimedByOther",
    "CurrentRun",
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
    "QuotaExceeded",
    "Retry",
    "RunCancelled",
    "RunEnded",
    "RunFailed",
    "RunHeld",
    "RunNotFound",
    "RunStatus",
    "RunUndoFailed",
    "RunUndone",
    "ScheduleStatus",
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
    "current_run",
    "gather_settled",
    "in_workflow",
    "now",
    "patched",
    "publish",
    "random",
    "receive",
    "sleep",
    "spread",
    "uuid",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Import a name when it is first asked for, and keep it."""
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for place, names in _PLACES.items() if name == "App" else [(_PLACE_OF[name], (name,))]:
        module = import_module(place)
        globals().update({one: getattr(module, one) for one in names})
    return globals()[name]


def __dir__() -> list[str]:
    """Name all that there is, also what nobody has asked for yet."""
    return sorted({*globals(), *__all__})
