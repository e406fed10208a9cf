"""Member: a call that waits for a person. It belongs to an incident, with all that wait for the same reason."""

from typing import Final, NamedTuple

import msgspec

from watchbill.clock import Micros
from watchbill.model.incident import IncidentRow, NewIncident

# Why a parked call is moved by nobody but a person: it kills whoever runs it, its author wants that, or nobody knows
# whether it took effect. The statements of the stores say the same.
PEOPLE: Final = ("quarantine", "escalate", "doubt")


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


class Evidence(NamedTuple):
    """What must still be so when a call is attached."""

    id: int
    fence: int
    why: str


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


class Reminder(NamedTuple):
    """A question whose time is half over."""

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
    next_at: Micros | None  # when the next reminder is
    now: Micros


class _Rung(msgspec.Struct, frozen=True):
    to: str | None = None


class _Cures(msgspec.Struct, frozen=True):
    ladder: tuple[_Rung, ...] = ()


class _Ladder(msgspec.Struct, frozen=True):
    cures: _Cures | None = None


_decode_ladder = msgspec.json.Decoder(_Ladder).decode


def group_of(why: str, rung: int, policy: bytes) -> str:
    """Say which group of people a call waits for, by its author's ladder; "" is everybody."""
    if why != "escalate":
        return ""
    try:
        cures = _decode_ladder(policy).cures
    except msgspec.DecodeError:
        return ""  # written by another version: everybody should know of it then
    later = () if cures is None else cures.ladder[max(rung - 1, 0) :]
    return next((one.to for one in later if one.to is not None), "")
