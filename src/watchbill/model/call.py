"""Call: everything a workflow awaits, and the journal entry of its outcome."""

from enum import IntEnum
from typing import NamedTuple

from watchbill.clock import Micros


class Kind(IntEnum):
    """What a journal entry records."""

    STEP = 0
    TIMER = 1
    CANCEL = 2  # somebody asked to cancel the run
    END = 3  # the run's result: always the last entry
    MESSAGE = 4  # somebody sent one: the key is its topic
    CHILD = 5  # a run that this one started has ended
    ASK = 6  # a person has answered
    PATCH = 7  # this run took the new way at `patched(key)`
    REWOUND = 8  # a part ended here: what it names, and all after it, is done again
    CONTINUED = 9  # a part ended here: another function goes on with other arguments
    LATE = 10  # its deadline has passed
    EDITED = 11  # a person gave a call that is open other arguments
    STOPPED = 12  # a person stopped the run as a failure, so that it is undone
    SPARED = 13  # a call that the workflow had cancelled took no effect: it is not undone
    ACTING = 14  # an attempt of this call was taken from its agent, and may act until then: nothing is undone before


class Outcome(IntEnum):
    """How it ended."""

    OK = 0
    FAILED = 1
    CANCELLED = 2
    UNDONE = 3  # failed, and all it had done was undone
    UNDO_FAILED = 4
    SWITCHED = 5  # done, another way than its author first wanted: the body says which


class JournalEntry(NamedTuple):
    """One row of the journal; append only, in the order in which the workflow saw it."""

    run: int
    seq: int  # from 1, without gaps
    kind: int
    key: str
    digest: int | None  # crc32 of the encoded arguments; None fits any, in a fork with other arguments
    fence: int
    outcome: int
    agent: int | None
    started_at: Micros | None
    at: Micros  # the turn's time: what the workflow sees as now
    body: bytes  # a result, a FinalFailure, a reason; the run's result or RunError at the end


# An entry as a turn carries it: a plain tuple of plain numbers, in the order of the columns. Drivers take such rows as
# they are; and making a JournalEntry costs more than all else that appending to a turn does.
JournalRow = tuple[int, int, int, str, int | None, int, int, int | None, Micros | None, Micros, bytes]


def step_name(key: str) -> str:
    """Give the step's name out of a call's key: `order.2/charge.3` is a call of `charge`."""
    last = key.rpartition("/")[2]
    name, dot, number = last.rpartition(".")
    return name if dot and number.isdigit() else last
