"""Failure: an exception as data. It is never imported by name and never rebuilt as code."""

from enum import StrEnum
from typing import Final

import msgspec

from watchbill.clock import Micros

NOT_BEGUN: Final = "NotBegun"  # the type of a failure that says that an attempt has not begun


class Cause(StrEnum):
    """Why an attempt did not succeed (closed list)."""

    RAISED = "raised"
    LATE = "late"
    STALLED = "stalled"
    STARVED = "starved"
    LOST = "lost"
    KILLED = "killed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class Remedy(StrEnum):
    """What the executor, which alone has the exception and the author's classes, says about trying again."""

    RETRY = "retry"
    NEXT_RUNG = "next_rung"  # left out by Retry(on=, never=): no retry, but the ladder goes on
    GIVE_UP = "give_up"  # Permanent, a TypeError of the call itself, a result that cannot be encoded
    WAIT = "wait"  # Busy: tried again when it says, and it costs nothing


class Probed(StrEnum):
    """What a probe says when it does not say that it is done."""

    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt's failure, as the row carries it until it is judged."""

    type: str
    message: str
    traceback: str = ""
    cause: Cause = Cause.RAISED
    remedy: Remedy = Remedy.RETRY
    retry_after: Micros = 0  # with WAIT
    probed: Probed | None = None  # what a probe found
    began_at: Micros | None = None  # of an attempt that had no row: when it began, which the row's own commit blurs


class Doubt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attempt of which nobody knows whether it took effect, while the outside world is asked."""

    failure: Failure  # how it ended
    asked: int = 0  # probes that failed
    unwanted: bool = False  # its run has been stopped: it is asked only to know what to undo


class FinalFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a call failed for good: the body of its journal entry, rebuilt as `StepFailed` in the workflow."""

    step: str
    type: str
    message: str
    attempts: int
    cause: Cause
    traceback: str = ""
    # Whether one of its attempts may have taken effect; None: as its cause says.
    unsure: bool | None = None


# Nobody knows whether such an attempt took effect. One that raised has cleaned up after itself; not after others.
UNKNOWN: Final = frozenset(
    {Cause.LATE, Cause.STALLED, Cause.STARVED, Cause.LOST, Cause.KILLED, Cause.UNKNOWN, Cause.CANCELLED}
)


def is_unknown(final: FinalFailure) -> bool:
    """Say whether a call that failed for good may have taken effect all the same."""
    return final.cause in UNKNOWN and final.attempts > 0 if final.unsure is None else final.unsure


class RunError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a run failed: the body of its last journal entry."""

    type: str
    message: str
    traceback: str = ""
    step: str | None = None
    attempts: int | None = None
    cause: Cause = Cause.RAISED


_MAIN = frozenset({"__main__", "__mp_main__", "__watchbill_main__"})  # the same script, read under another name


def kind_name(kind: type) -> str:
    """Name a class as data: `module.Class`; builtins bare, and a script's own classes alike in every process."""
    module = kind.__module__
    if module == "builtins":
        return kind.__qualname__
    return f"{'__main__' if module in _MAIN else module}.{kind.__qualname__}"
