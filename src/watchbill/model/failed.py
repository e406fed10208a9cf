"""Failed: a run that has ended because a step failed for good. It belongs to an incident until somebody sees to it."""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.call import JournalRow
from watchbill.model.failure import FinalFailure
from watchbill.model.incident import NewIncident
from watchbill.model.run import NewRun
from watchbill.model.sealed import is_sealed
from watchbill.model.states import RunState

# What fails once a week is the same incident each time, and who was away for a week finds it.
NOT_SEEN_FOR: Final[Micros] = 8 * 86_400 * SECOND
LONGEST_STEP: Final = 200  # characters: whoever raises a StepFailed of their own may name it as they like

# Of what state a run is that may belong to an incident without being held.
MAY_BE_A_MEMBER: Final = frozenset({RunState.DIVERGED, RunState.FAILED, RunState.UNDONE, RunState.UNDO_FAILED})

_decode = msgspec.json.Decoder(FinalFailure).decode


class NewFailed(NamedTuple):
    """A run that ends, and what failed for good in it, as the turn that ends it writes it down."""

    run: int
    step: str
    undo: bool  # it was to undo something
    body: bytes  # a FinalFailure, without its traceback


class FailedRun(NamedTuple):
    """A run that has ended so and belongs to no incident yet."""

    num: int
    namespace: str
    id: str
    step: str
    undo: bool
    body: bytes
    region: str = ""  # its own, if that has a role of its own


class FailedGathering(NamedTuple):
    """Runs that have failed for one cause, and the incident to open about it unless there is one."""

    incident: NewIncident
    runs: tuple[int, ...]


class FailedMember(NamedTuple):
    """A run that has failed and belongs to an incident."""

    num: int
    namespace: str
    id: str


class FailedPage(NamedTuple):
    """The next members of an incident who are to be told what is wanted for all, and since when that is being done."""

    members: tuple[FailedMember, ...]
    fed_at: Micros


class Successor(NamedTuple):
    """The run that goes on with one that has ended, and what it takes over of its journal."""

    run: NewRun
    kept: tuple[int, ...]  # its entries
    first: JournalRow | None  # one of its own, before them


class Copied(StrEnum):
    """What became of a run that was to go on as a new one."""

    MADE = "made"
    TAKEN = "taken"  # the new one's id is
    GONE = "gone"  # it is not there any more, or not in the incident, where it was: somebody has seen to it


def next_look(remind_at: Micros | None, seen_at: Micros | None) -> Micros | None:
    """Say when something is due by itself: a reminder, or the end of an incident that was last seen at that time."""
    times = [] if remind_at is None else [remind_at]
    return min(times if seen_at is None else [*times, seen_at + NOT_SEEN_FOR + 1], default=None)


def failure_of(run: FailedRun) -> FinalFailure | None:
    """Read what failed for good; None when nobody here can."""
    if is_sealed(run.body):
        return None
    try:
        return _decode(run.body)
    except msgspec.DecodeError:
        return None  # another version may have written it
