"""Member: a call that waits for a person. It belongs to an incident, with all that wait for the same reason."""

from typing import NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.failed import FailedRun
from watchbill.model.incident import IncidentRow, NewIncident
from watchbill.model.parked import FOR_PERSONS
from watchbill.model.states import AttemptState
from watchbill.model.stuck import StuckRun


class WaitingCall(NamedTuple):
    """A call that waits for a person and belongs to no incident yet: the evidence, and what it failed with."""

    id: int
    fence: int
    why: str
    namespace: str
    run: str  # its id
    call: str
    step: str
    rung: int
    policy: bytes
    result: bytes | None  # a Failure
    watch_at: Micros | None = None  # when the time is over of those whom it waits for; UNTOLD later until they are told
    region: str = ""  # that of its run, if that has a role of its own


class Evidence(NamedTuple):
    """What must still be so when a call is attached."""

    id: int
    fence: int
    why: str
    watch_at: Micros | None = None  # another one: others are asked, or somebody has decided
    within: Micros | None = None  # so long people have from now on, if their time has not begun and nobody has decided


class Gathering(NamedTuple):
    """Calls that wait for one reason, and the incident to open about it unless there is one."""

    incident: NewIncident
    calls: tuple[Evidence, ...]


class Attached(NamedTuple):
    """What became of a gathering: how many calls belong to the incident now that did not, and whether it is new."""

    calls: int
    new: bool


class Order(NamedTuple):
    """What somebody wants for all members of an incident, which they are told a few at a time."""

    incident: int
    per_second: int
    fed_at: Micros | None  # when the last ones were told
    runs: bool = False  # its members are runs
    failed: bool = False  # its members are runs that have ended
    body: bytes | None = None  # the Resolution, of those
    by: str = ""  # whose it is


class UntoldQuestion(NamedTuple):
    """A question that nobody was told of."""

    id: int
    namespace: str
    run: str  # its id
    call: str
    body: bytes  # a Question
    region: str = ""  # that of its run, if that has a role of its own


class Reminder(NamedTuple):
    """A question, or a call that waits for people, whose time is half over."""

    id: int
    remind_at: Micros
    run: str
    call: str


class Muster(msgspec.Struct, frozen=True):
    """What waits for a person, as far as something has to be done about it."""

    waiting: tuple[WaitingCall, ...]  # without an incident
    healed: tuple[IncidentRow, ...]  # open, and no member is left
    orders: tuple[Order, ...]
    reminders: tuple[Reminder, ...]  # that are due
    next_at: Micros | None  # when the next reminder is, or an incident about runs that have ended is over by itself
    now: Micros
    stuck: tuple[StuckRun, ...] = ()  # runs that nothing moves, without an incident
    watched: bool = False  # incidents about runs are open: nobody says a word when one of them moves again
    failed: tuple[FailedRun, ...] = ()  # runs that have ended because a step failed for good, without an incident
    asking: tuple[UntoldQuestion, ...] = ()  # if they were asked for


def waits_for_person(row: AttemptRow) -> bool:
    """True when a person is to decide about a call; once one has, nobody moves it but the scheduler, who is told."""
    return row.state is AttemptState.PARKED and row.why in FOR_PERSONS


def is_with_people(row: AttemptRow) -> bool:
    """True when only a person moves a row: somebody is to decide about a call, or is asked by the workflow."""
    return waits_for_person(row) or (row.kind == RowKind.ASK and row.state is AttemptState.PARKED)
