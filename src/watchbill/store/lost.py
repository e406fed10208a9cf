"""Lost: agents that are gone, as both stores write them down, in words of the model."""

from collections.abc import Sequence
from typing import Any

from watchbill.clock import Micros
from watchbill.model.agent import AgentState
from watchbill.model.complement import Hand
from watchbill.model.lost import Dead, Found, LostAgent, found_by, lost_since


def dead_agent(id: int, row: Sequence[Any] | None) -> Dead:
    """Give one of them."""
    if row is None:
        return Dead(id, "", Found.LEFT)
    _, name, state, found, heard_at = row
    how = Found.LEFT if state == AgentState.LEFT else found_by(state == AgentState.ALIVE, found)
    return Dead(id, name, how, heard_at)


def lost_agent(*columns: Any) -> LostAgent:  # noqa: ANN401 - as the statement gives them
    """Give one who was just missed."""
    id, namespace, region, name, state, found, until, gone_at, beat_at, held = columns
    how, since = found_by(state == AgentState.ALIVE, found), _since(state, until, gone_at)
    return LostAgent(id, namespace, region, name, how, since, beat_at, held)


def hand(now: Micros, *columns: Any) -> Hand:  # noqa: ANN401 - as the statement gives them
    """Give one of them."""
    id, namespace, region, name, info, needs, joined_at, beat_at, *rest = columns
    state, until, gone_at, missed_at, found, held, said = rest
    here = state == AgentState.ALIVE and until > now
    told = missed_at > 0 if state == AgentState.LOST else missed_at >= max(beat_at, 1)
    since = _since(state, until, gone_at)
    how = found_by(state == AgentState.ALIVE, found)
    return Hand(
        id, namespace, region, name, info, needs, joined_at, beat_at, here, how, since, told and not here, held, said
    )


def _since(state: int, until: Micros, gone_at: Micros) -> Micros:
    return lost_since(until, gone_at if state == AgentState.LOST else 0)
