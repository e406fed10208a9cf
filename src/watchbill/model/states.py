"""The states of runs and attempts, and THE table: who may move what from where to where.

Every store guards each transition by its WHERE; a test walks this table and tries everything that is not in it.
"""

from enum import IntEnum, StrEnum
from functools import cache
from typing import Final, NamedTuple


class Room(StrEnum):
    """Who owns a transition."""

    CLIENT = "client"
    SCHEDULER = "scheduler"
    AGENT = "agent"
    SUPERVISOR = "supervisor"


class RunState(IntEnum):
    """Where a run is; 10 and above are terminal and never change."""

    SCHEDULED = 0
    RUNNING = 1
    WAITING = 2
    UNDOING = 3
    DIVERGED = 4
    COMPLETED = 10
    FAILED = 11
    UNDONE = 12
    UNDO_FAILED = 13
    CANCELLED = 14

    @property
    def word(self) -> str:
        """The state as users read it."""
        return self.name.lower()

    @property
    def terminal(self) -> bool:
        """True when the run has ended."""
        return self >= RunState.COMPLETED


class AttemptState(IntEnum):
    """Where a call's row is; after done or gave_up the scheduler moves it into the journal and deletes it."""

    READY = 0
    RUNNING = 1
    FAILED = 2
    PARKED = 3
    DONE = 4
    GAVE_UP = 5


class RunMove(NamedTuple):
    """A transition of a run; `before` None is the insert."""

    before: RunState | None
    after: RunState
    owner: Room


class AttemptMove(NamedTuple):
    """A transition of an attempt's row; `before` None is the insert, `after` None the deletion."""

    before: AttemptState | None
    after: AttemptState | None
    owner: Room
    act: str


_R, _A = RunState, AttemptState

RUN_MOVES: Final = (
    RunMove(None, _R.SCHEDULED, Room.CLIENT),
    RunMove(_R.SCHEDULED, _R.RUNNING, Room.SCHEDULER),
    RunMove(_R.RUNNING, _R.WAITING, Room.SCHEDULER),
    RunMove(_R.WAITING, _R.RUNNING, Room.SCHEDULER),
    RunMove(_R.RUNNING, _R.UNDOING, Room.SCHEDULER),
    RunMove(_R.RUNNING, _R.DIVERGED, Room.SCHEDULER),
    RunMove(_R.DIVERGED, _R.RUNNING, Room.SCHEDULER),
    RunMove(_R.RUNNING, _R.COMPLETED, Room.SCHEDULER),
    RunMove(_R.RUNNING, _R.FAILED, Room.SCHEDULER),
    RunMove(_R.RUNNING, _R.CANCELLED, Room.SCHEDULER),
    RunMove(_R.UNDOING, _R.DIVERGED, Room.SCHEDULER),
    RunMove(_R.UNDOING, _R.UNDONE, Room.SCHEDULER),
    RunMove(_R.UNDOING, _R.UNDO_FAILED, Room.SCHEDULER),
    RunMove(_R.UNDOING, _R.FAILED, Room.SCHEDULER),
    RunMove(_R.UNDOING, _R.CANCELLED, Room.SCHEDULER),
)

ATTEMPT_MOVES: Final = (
    AttemptMove(None, _A.READY, Room.SCHEDULER, "the call needs a row before it starts"),
    AttemptMove(None, _A.RUNNING, Room.SCHEDULER, "a local attempt becomes visible; losses = 1"),
    AttemptMove(None, _A.FAILED, Room.SCHEDULER, "a rowless attempt raised, or was lost with its process"),
    AttemptMove(None, _A.PARKED, Room.SCHEDULER, "a question to a person, and nothing else"),
    AttemptMove(None, _A.DONE, Room.SCHEDULER, "`finish` of a rowless attempt, on SQLite: in the user's transaction"),
    AttemptMove(_A.READY, _A.RUNNING, Room.AGENT, "lease: fence + 1, losses + 1"),
    AttemptMove(_A.RUNNING, _A.DONE, Room.AGENT, "done, also by `finish` in the user's transaction: losses - 1"),
    AttemptMove(_A.RUNNING, _A.FAILED, Room.AGENT, "raised: losses - 1, failures + 1; child died: the loss stands"),
    AttemptMove(_A.RUNNING, _A.READY, Room.AGENT, "hand back: losses - 1"),
    AttemptMove(
        _A.RUNNING,
        _A.FAILED,
        Room.SUPERVISOR,
        "lost: the loss stands, unless it ran in a process of its own; late: losses - 1, failures + 1",
    ),
    AttemptMove(_A.FAILED, _A.READY, Room.SUPERVISOR, "retry at once"),
    AttemptMove(_A.FAILED, _A.PARKED, Room.SUPERVISOR, "backoff, or quarantine until a person decides"),
    AttemptMove(_A.FAILED, _A.GAVE_UP, Room.SUPERVISOR, "give up"),
    AttemptMove(_A.PARKED, _A.READY, Room.SUPERVISOR, "the backoff is over; or the time of people: another way"),
    AttemptMove(_A.PARKED, _A.PARKED, Room.SUPERVISOR, "the time of people is over: others are asked"),
    AttemptMove(
        _A.PARKED,
        _A.GAVE_UP,
        Room.SUPERVISOR,
        "the time of people is over, and nobody is left; or what nobody wants any more can no longer act",
    ),
    AttemptMove(_A.PARKED, _A.READY, Room.SCHEDULER, "a person wants it to be tried again"),
    AttemptMove(_A.DONE, None, Room.SCHEDULER, "into the journal"),
    AttemptMove(_A.GAVE_UP, None, Room.SCHEDULER, "into the journal"),
    AttemptMove(_A.READY, None, Room.SCHEDULER, "the call was cancelled"),
    AttemptMove(_A.PARKED, None, Room.SCHEDULER, "the call was cancelled, or a person has given its outcome"),
    AttemptMove(_A.READY, _A.PARKED, Room.SCHEDULER, "the call was cancelled before its probe was asked"),
    AttemptMove(_A.READY, _A.FAILED, Room.SCHEDULER, "the call was cancelled, and an attempt may have taken effect"),
    AttemptMove(_A.PARKED, _A.FAILED, Room.SCHEDULER, "the call was cancelled, and an attempt may have taken effect"),
)


def run_may_move(before: RunState, after: RunState) -> bool:
    """Say whether one turn may take a run from `before` to `after`.

    A turn commits the sum of what happened in it: a run may pass through `running` on the way, and through `undoing`
    when there is nothing to wait for in it.
    """
    direct = {(move.before, move.after) for move in RUN_MOVES}
    passed = {before}
    for passing in (_R.RUNNING, _R.UNDOING):
        if any((place, passing) in direct for place in passed):
            passed.add(passing)
    return any((place, after) in direct for place in passed)


def run_sources(after: RunState) -> tuple[RunState, ...]:
    """Give the states from which a turn may reach `after`, itself included while it is live."""
    return tuple(s for s in RunState if run_may_move(s, after) or (s is after and not s.terminal))


@cache
def source_bits(after: int) -> int:
    """Write the states from which a turn may reach this one as bits: bit n stands for state n."""
    return sum(1 << source for source in run_sources(RunState(after)))
