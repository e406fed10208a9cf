"""Agents: who runs steps, as people read it."""

from datetime import datetime
from typing import Any, Final

import msgspec

from watchbill.app.words import moment
from watchbill.clock import to_datetime
from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.model.agent import AgentRow, AgentStep, Wish
from watchbill.model.suspension import read_suspension

_WISHED: Final = {Wish.DRAIN: "draining", Wish.QUARANTINE: "quarantined"}


class AgentStatus(msgspec.Struct, frozen=True):
    """How an agent stands."""

    id: str
    name: str
    state: str  # idle, busy, draining, quarantined, suspended; silent: its beat is overdue; lost: it is dead; left
    region: str
    needs: list[str]  # what it has for steps that need it
    slots: int
    running: int
    steps: list[AgentStep]  # what it runs, some of it
    host: str
    pid: int | None
    version: str
    workers: int | None  # None: steps run in its own process
    lag: int  # seconds for which the worst of its workers has not turned
    joined_at: datetime
    beat_at: datetime
    suspended: str = ""  # why a supervisor gives it no work, and when it is tried again


def agent_status(row: AgentRow) -> AgentStatus:
    """Show an agent."""
    info, said = _read(row.info), _read(row.said)
    return AgentStatus(
        id=f"{row.id:x}",
        name=row.name,
        state=_state(row),
        region=row.region,
        needs=list(row.needs),
        slots=row.slots,
        running=row.running,
        steps=list(row.steps),
        host=str(info.get("host", "")),
        pid=info.get("pid"),
        version=str(said.get("version", "")),
        workers=said.get("workers"),
        lag=said.get("lag", 0),
        joined_at=to_datetime(row.joined_at),
        beat_at=to_datetime(row.beat_at),
        suspended=_suspended(row),
    )


def chosen_agent(rows: list[AgentRow], named: str) -> AgentRow:
    """Find the agent that an operator means: by its name, its id, or the beginning of that; it must be there."""
    there = [row for row in rows if row.state in ("alive", "silent")]
    meant = [row for row in there if row.name == named or f"{row.id:x}" == named]
    meant = meant or [row for row in there if named and f"{row.id:x}".startswith(named)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        ids = ", ".join(f"{row.id:x}" for row in meant)
        raise InvalidOptionError(f"{len(meant)} agents are meant by {named!r}: {ids}; name one of these")
    raise InvalidOptionError(f"there is no agent {named!r}{did_you_mean(named, [row.name for row in there])}")


def _state(row: AgentRow) -> str:
    if row.state != "alive":
        return row.state
    if row.wish is Wish.NONE and row.suspension is not None:
        return "suspended"
    return _WISHED.get(row.wish) or ("busy" if row.running else "idle")


def _suspended(row: AgentRow) -> str:
    suspension = read_suspension(row.suspension)
    if suspension is None or row.state in ("lost", "left"):
        return ""
    tried = f"tried {suspension.tried} times in vain, " if suspension.tried else ""
    return f"{suspension.why}; {tried}the next try is from {moment(to_datetime(suspension.next_at))} on"


def _read(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
