"""Standstill: what is known around a run that is not moving, and who of all that could act does so next. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from watchbill.app.status import Because, Standstill
from watchbill.app.words import moment, span
from watchbill.clock import Micros, to_datetime
from watchbill.model.agent import AgentSeen
from watchbill.model.question import DeskItem
from watchbill.model.resolution import Wanted, read_wanted
from watchbill.model.wait import Wait
from watchbill.store.protocol import Fact, Record

SCHEDULER: Final = "its scheduler"
SUPERVISOR: Final = "the supervisor"
OPERATOR: Final = "an operator"


class Scene(NamedTuple):
    """What is known around the calls of a run."""

    now: Micros
    waits: Mapping[int, Wait]  # by row
    agents: Mapping[int, AgentSeen]
    desk: Mapping[int, DeskItem]  # by row
    deciding: Mapping[str, Fact]  # answers and decisions on their way to the run, by the number of their row


def scene_of(record: Record) -> Scene:
    """Give what is known around the calls of a run."""
    return Scene(
        record.now,
        {wait.row: wait for wait in record.waits},
        {agent.id: agent for agent in record.agents},
        {item.row: item for item in record.desk},
        {fact.ref: fact for fact in record.told},
    )


def agent_name(scene: Scene, agent: int | None) -> str:
    """Name an agent; one that the store has forgotten by its number."""
    if agent is None:
        return "no agent"
    seen = scene.agents.get(agent)
    return f"agent {agent:x}" if seen is None else f"agent {seen.name}"


def somebody(group: str | None) -> str:
    """Say who of a group is meant."""
    return f"somebody of {group!r}" if group else "somebody"


def since(begin: Micros, end: Micros | None) -> str:
    """Say how long it is from one time to another."""
    return span(to_datetime(begin), to_datetime(begin if end is None else end))


def wanted_words(wanted: Wanted, incident: int, now: Micros, facts: dict[str, Any]) -> str:
    """Say what somebody has decided for all of an incident, while one of it has not been told yet."""
    verb, reason = read_wanted(wanted.kind, wanted.body)
    facts |= {"decided_by": wanted.by, "decided": verb or None, "reason": reason or None}
    facts |= {"decided_at": to_datetime(wanted.at), "per_second": wanted.per_second}
    what = f": {verb or 'something'}{f' ({reason})' if reason else ''}"
    return (
        f"{wanted.by} has decided {since(wanted.at, now)} ago for all of incident {incident:x}{what}."
        f" The supervisor tells it to {wanted.per_second:,} in each second; this one has not been told yet."
    )


def next_sentence(found: Sequence[Standstill], now: Micros) -> str | None:
    """Say who acts next of all: whoever has the least time, else whoever was named first."""
    chosen = next_of(found)
    if chosen is None:
        return None
    if chosen.when is None:
        return f"Next: {chosen.next}."
    here = to_datetime(now)
    by = f"in {span(here, chosen.when)}" if chosen.when > here else f"due since {span(chosen.when, here)}"
    return f"Next: {chosen.next}, by {moment(chosen.when)}, {by}."


def next_of(found: Sequence[Standstill]) -> Standstill | None:
    """Choose the standstill that ends first, as far as anybody knows; what keeps all of a run counts before that."""
    for one in found:
        if one.because in WHOLE:
            return one
    # While somebody may bring what a run waits for, that it wakes at some time is only how long they have.
    brought = any(one.because in BROUGHT for one in found)
    moves = [one for one in found if not (brought and one.because is Because.SLEEP)]
    timed = [(one.when, place) for place, one in enumerate(moves) if one.when is not None]
    if timed:
        return moves[min(timed)[1]]
    return moves[0] if moves else None


# What comes from outside, and not with time.
BROUGHT: Final = frozenset({Because.MESSAGE, Because.CHILD_RUN, Because.ANSWER, Because.QUESTION})


# While one of these is so, nothing else of a run can move it.
WHOLE: Final = frozenset(
    {
        Because.NO_SCHEDULER,
        Because.NO_REGION,
        Because.NO_CODE,
        Because.NO_SUPERVISOR,
        Because.DIVERGED,
        Because.QUARANTINED_RUN,
        Because.WAITS_FOR_NOTHING,
        Because.ENDLESS,
        Because.NO_KEY,
        Because.HELD,
        Because.TOLD,
        Because.DEADLINE,
    }
)
