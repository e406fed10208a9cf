"""Run: one execution of a workflow, as the store knows it."""

import re
import zlib
from datetime import datetime
from typing import Final, NamedTuple, Protocol

import msgspec

from watchbill.clock import Micros, to_datetime
from watchbill.errors import InvalidOptionError
from watchbill.model.states import RunState

SHARDS_PER_REGION: Final = 16
LONGEST_ID: Final = 200
MOST_SLOTS: Final = 1_000_000  # of an agent: more than a process has memory for
BY_START: Final = "by start()"
# How the reason begins when a run was live at an unclean end and nobody who came after had its code: what it had under
# way cannot be counted before somebody replays it.
WAITS_FOR_CODE: Final = "waits for code"
# How the words begin by which a run says what it waits for beside time.
FOR_MESSAGE: Final = "a message on "
FOR_RUN: Final = "run "
FOR_ANSWER: Final = "an answer to "
FOR_RESUME: Final = "a resume: its code has ended"
_OURS: Final = r"[/~@]"
_NOT_IN_IDS: Final = r"[^A-Za-z0-9._:@~/-]"
_COPY: Final = r"~\d+\Z"
_COPY_OF_CHILD: Final = r"~~\d+\Z"
_REGION: Final = r"[A-Za-z0-9._-]{1,100}\Z"
_ID: Final = r"[A-Za-z0-9._:@~/-]{1,200}\Z"


class NewRun(msgspec.Struct, frozen=True):
    """A run to submit; `num` is chosen by the client, so that a resend is the same row.

    It is due at `at`, or `delay` after the store's time of the commit; likewise its deadline.
    """

    num: int
    namespace: str
    id: str
    workflow: str
    version: int
    input: bytes
    priority: int = 0
    at: Micros | None = None
    delay: Micros = 0
    deadline: Micros | None = None
    deadline_in: Micros | None = None
    tags: tuple[str, ...] = ()
    parent: int | None = None  # the run that waits for its end
    root: int | None = None  # the run at the top; None: itself
    shard: int | None = None  # of its schedule; None: that of its id
    region: str = ""  # whose schedulers and agents do it; nothing: those without one
    slot: Micros | None = None  # the instant that a run of a schedule stands for
    parent_id: str | None = None  # of the run that started it; a copy of a child has it too, and no parent that waits

    @property
    def home(self) -> tuple[str, str]:
        """Where it lives: each namespace has shards of its own in each region."""
        return self.namespace, self.region


class RunRow(msgspec.Struct, frozen=True):
    """A run's row."""

    num: int
    shard: int
    namespace: str
    id: str
    workflow: str
    version: int
    status: RunState
    part: int
    losses: int
    priority: int
    wake_at: Micros | None
    held: str | None  # why nobody drives it: quarantined, waits for nothing
    paused: bool
    input: bytes
    created_at: Micros
    begun_at: Micros | None  # the time its workflow saw first: replay begins with the same
    ended_at: Micros | None
    deadline: Micros | None = None
    parent: int | None = None
    root: int = 0
    tags: tuple[str, ...] = ()
    published: bytes | None = None
    early: bool = False  # something was journalled for it before it began
    waits: str | None = None  # for what beside time, in words
    slot: Micros | None = None
    parent_id: str | None = None
    copied: int = 0  # entries at the beginning of its journal that were copied from another run's
    pauses: int = 0  # by which orders it is paused


class CurrentRun(msgspec.Struct, frozen=True):
    """What workflow code can read about its own run: the same in every replay."""

    id: str
    workflow: str
    version: int
    slot: datetime | None  # the instant that a scheduled or backfilled run stands for; None for all other runs
    parent: str | None  # the id of the run that started this one as its child
    tags: tuple[str, ...]


def identity_of(run: RunRow, workflow: str, version: int) -> CurrentRun:
    """Give what the code of a run can read about it; a run that was continued has another workflow than its row."""
    slot = None if run.slot is None else to_datetime(run.slot)
    return CurrentRun(run.id, workflow, version, slot, run.parent_id, run.tags)


class RunChange(NamedTuple):
    """What a turn writes into a run's row; the store refuses a transition that the table does not have."""

    num: int
    status: int
    wake_at: Micros | None
    losses: int
    held: str | None
    begun_at: Micros | None
    part: int = 0
    paused: bool = False
    published: bytes | None = None
    early: bool = False
    waits: str | None = None
    pauses: int = 0


def change_of(run: RunRow) -> RunChange:
    """Give the change that changes nothing; the caller replaces what is new."""
    return RunChange(
        run.num,
        run.status,
        run.wake_at,
        run.losses,
        run.held,
        run.begun_at,
        run.part,
        run.paused,
        run.published,
        run.early,
        run.waits,
        run.pauses,
    )


def as_inserted(run: NewRun, shard: int, now: Micros) -> RunRow:
    """Give the row of a run that has just been submitted."""
    return RunRow(
        num=run.num,
        shard=shard,
        namespace=run.namespace,
        id=run.id,
        workflow=run.workflow,
        version=run.version,
        status=RunState.SCHEDULED,
        part=0,
        losses=0,
        priority=run.priority,
        wake_at=due_at(run, now),
        held=None,
        paused=False,
        input=run.input,
        created_at=now,
        begun_at=None,
        ended_at=None,
        deadline=deadline_at(run, now),
        parent=run.parent,
        root=run.num if run.root is None else run.root,
        tags=run.tags,
        slot=run.slot,
        parent_id=run.parent_id,
    )


def due_at(run: NewRun, now: Micros) -> Micros:
    """Say when a run that is submitted now shall begin."""
    return max(1, (now if run.at is None else run.at) + run.delay)  # 0 is none


def deadline_at(run: NewRun, now: Micros) -> Micros | None:
    """Say when a run that is submitted now shall have ended: the earlier of both, if it has two."""
    if run.deadline_in is None:
        return run.deadline
    within = now + run.deadline_in
    return within if run.deadline is None else min(run.deadline, within)


def code_name(workflow: str, version: int) -> str:
    """Name the code that a run needs: schedulers say which they have, stores compare."""
    return f"{workflow}@{version}"


def child_id(parent: str, part: int, key: str) -> str:
    """Name the run that a call starts; a part that is done again starts another one."""
    key = re.sub(_NOT_IN_IDS, "_", key)
    return f"{parent}/{key}" if part == 0 else f"{parent}/{key}~{part + 1}"


def copy_id(id: str, n: int) -> str:
    """Name the how manieth copy of a run, or of what that is a copy of.

    That of a child has a mark of its own: by a single one its parent counts its parts, and would take it for its child.
    """
    if "/" in id:
        return f"{re.sub(_COPY_OF_CHILD, '', id)}~~{n}"
    return f"{re.sub(_COPY, '', id)}~{n}"


def cause_of_hold(reason: str) -> str:
    """Give the cause for which a run is held: what the reason in its row begins with, up to a colon."""
    return reason.partition(":")[0]


def started_by(id: str, parent: str | None) -> str:
    """Say what started a run: ids that we make say so, by characters that nobody else's may have."""
    if parent is not None:
        return f"by run {parent!r}"
    base, tilde, number = id.rpartition("~")
    if tilde and number.isdecimal():
        return f"as a copy of run {base.removesuffix('~')!r}"
    name, at, which = id.rpartition("@")
    if not at:
        return BY_START
    if which == "notify":
        return f"by the end of run {name!r}"
    return f"by schedule {name!r}, " + ("by hand" if which.startswith("now-") else f"slot {which}")


class Draws(Protocol):
    """Draws ids and chance."""

    def new_id(self) -> int:
        """Make a number that no other process makes."""

    def random_text(self) -> str:
        """Draw 64 random bits, as 16 hexadecimal digits."""


def unique_text(draws: Draws) -> str:
    """Make a text that no other process makes: a time-ordered id, and 64 random bits."""
    return f"{draws.new_id():x}{draws.random_text()}"


def is_id(id: object) -> bool:
    """Say whether a run can have this id, given by a user or made by us."""
    return isinstance(id, str) and re.match(_ID, id) is not None


def check_id(id: str) -> str:
    """Refuse an id that a user may not give."""
    if not is_id(id) or re.search(_OURS, id):
        raise InvalidOptionError(
            f"a run id has 1-200 characters of A-Z a-z 0-9 . _ : - (the characters / ~ @ are kept for"
            f" children, forks and schedules), got {id!r:.240}"
        )
    return id


def refused_home(id: str, wanted: str, bound: str, what: str = "run") -> str:
    """Say why a run, or a schedule, cannot be started by those who see the rows of one region alone."""
    where = f"in region {wanted!r}" if wanted else "in no region"
    return (
        f"{what} {id!r} would live {where}, and this process connects as the role of region {bound!r}, which neither"
        f" reads nor writes what is elsewhere: start it where that is served, or with region={bound!r}"
    )


def check_region(region: object, what: str) -> str:
    """Read the name of a region; None is nowhere in particular, and written as nothing."""
    if region is None:
        return ""
    if not isinstance(region, str) or not re.match(_REGION, region):
        raise InvalidOptionError(
            f"region of {what} is a name of 1-100 characters of A-Z a-z 0-9 . _ -, or None, got {region!r:.240}"
        )
    return region


def shard_number(id: str) -> int:
    """Say which of its region's shards a run belongs to; children and forks stay with their root's name."""
    return zlib.crc32(id.encode()) % SHARDS_PER_REGION
