"""Incident: something that concerns somebody until it is resolved; of each cause one is open at most."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Micros, to_datetime
from watchbill.model.resolution import ACTIONS, ACTIONS_FOR_FAILED, ACTIONS_FOR_RUNS, read_wanted
from watchbill.model.sealed import is_sealed, shown

RESOLVED_KEPT_FOR: Final[Micros] = 30 * 86_400 * SECOND  # who reports on a month finds them


class IncidentState(IntEnum):
    """Whether somebody should still know of it."""

    OPEN = 0
    RESOLVED = 1

    @property
    def word(self) -> str:
        """As people say it."""
        return self.name.lower()


class Told(msgspec.Struct, frozen=True):
    """What an incident says, as it is stored."""

    said: str
    remedy: str = ""
    examples: tuple[str, ...] = ()  # ids of runs that it concerns


class NewIncident(NamedTuple):
    """An incident to open, unless one of that cause is."""

    id: int
    namespace: str
    cause: str
    members: int  # calls or runs that it concerns
    body: bytes  # Told
    people: str = ""  # the group that it is for; "" is everybody
    routes: tuple[str, ...] = ()  # by which somebody is told of it, by their marks
    everywhere: bool = False  # what it is about is shared by all regions, and it quotes nothing of any run
    region: str = ""  # that of its members, if that has a role of its own, whoever opens it; of others, its opener's


class IncidentRow(msgspec.Struct, frozen=True):
    """An incident as it is read."""

    id: int
    namespace: str
    cause: str
    state: IncidentState
    members: int
    body: bytes
    opened_at: Micros
    resolved_at: Micros | None
    people: str = ""
    calls: bool = False  # its members are calls that wait for a person
    waiting: int = 0  # so many of them still do
    ordered_by: str | None = None  # who wants something for all of them, which is being done
    runs: bool = False  # its members are runs that nothing moves
    failed: bool = False  # its members are runs that have ended because a step failed for good
    asks: bool = False  # it is about a question, whose number it has: for alerts alone
    ordered: bytes | None = None  # what that is, until all of them have been told, as they are told it
    ordered_as: str = "resolve"  # by which kind of fact
    ordered_at: Micros | None = None
    per_second: int | None = None  # so many are told in each second
    untold: int = 0  # so many are still to be told


class Incident(msgspec.Struct, frozen=True):
    """An incident, for people."""

    id: str
    cause: str
    state: str
    members: int
    said: str
    remedy: str
    opened_at: datetime
    resolved_at: datetime | None
    group: str = ""  # whom it is for; "" is everybody
    examples: tuple[str, ...] = ()  # ids of runs that it concerns
    actions: tuple[str, ...] = ()  # what can be done about it: `watchbill incidents ACTION ID`
    ordered_by: str | None = None  # who wants something for all of its members, which is being done
    member: str = "call"  # what its members are: calls, or runs
    ordered: str | None = None  # what that is, while some have not been told yet: one of `actions`
    reason: str | None = None  # why
    ordered_at: datetime | None = None
    per_second: int | None = None  # so many are told in each second
    untold: int = 0  # so many are still to be told


class OpenCode(NamedTuple):
    """Runs that are open and due, by the code they need; `run` is the id of one of them."""

    namespace: str
    region: str
    workflow: str
    version: int
    runs: int
    run: str


class Able(NamedTuple):
    """An agent that is alive and may get work, and what it has, as `written`."""

    namespace: str
    region: str
    needs: tuple[str, ...]


class Attending(NamedTuple):
    """A scheduler that is there, and what its code knows."""

    namespace: str
    region: str
    knows: tuple[str, ...]


class CodeLook(msgspec.Struct, frozen=True):
    """Some of the open runs, by their code, and who could drive them."""

    codes: tuple[OpenCode, ...]
    schedulers: tuple[Attending, ...]
    place: tuple[int, int] | None  # where to go on; None: all were looked at
    now: Micros


def open_codes(
    rows: Iterable[tuple[int, str, int, str]], shards: Mapping[int, tuple[str, str]]
) -> tuple[OpenCode, ...]:
    """Sort runs (shard, workflow, version, id) by the code they need, and by namespace and region."""
    runs: dict[tuple[str, str, str, int], list[str]] = {}
    for shard, workflow, version, id in rows:
        runs.setdefault((*shards[shard], workflow, version), []).append(id)
    return tuple([OpenCode(*code, len(ids), ids[0]) for code, ids in sorted(runs.items())])


_decode_told = msgspec.json.Decoder(Told).decode


def incident_of(row: IncidentRow) -> Incident:
    """Give an incident as people see it."""
    told, is_open = told_by(row), row.state is IncidentState.OPEN
    resolved_at = None if row.resolved_at is None else to_datetime(row.resolved_at)
    order = _order_of(row) if is_open else (None, None, None, None, 0)
    return Incident(
        f"{row.id:x}", row.cause, row.state.word, row.waiting if _has_members(row) and is_open else row.members,
        told.said, told.remedy, to_datetime(row.opened_at), resolved_at, row.people, told.examples,
        _actions(row) if is_open else (), row.ordered_by, "run" if row.runs or row.failed else "call",
        *order,
    )  # fmt: skip


def _order_of(row: IncidentRow) -> tuple[str | None, str | None, datetime | None, int | None, int]:
    """Give what is wanted for all members, why, since when, at which pace, and how many do not know of it yet."""
    if row.ordered is None or row.ordered_at is None:
        return None, None, None, None, 0
    verb, reason = read_wanted(row.ordered_as, row.ordered)
    return verb, reason, to_datetime(row.ordered_at), row.per_second, row.untold


def _has_members(row: IncidentRow) -> bool:
    return row.calls or row.runs or row.failed


def _actions(row: IncidentRow) -> tuple[str, ...]:
    if row.failed:
        return ACTIONS_FOR_FAILED
    if row.runs:
        return ACTIONS_FOR_RUNS
    return ACTIONS if row.calls else ()


def told_by(row: IncidentRow) -> Told:
    """Read what an incident says; of what is sealed, that it is."""
    return Told(shown(row.body)) if is_sealed(row.body) else _decode_told(row.body)
