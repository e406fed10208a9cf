"""Fleet: which agents are there, what they hold, and what waits for them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.agent import (
    AGENTS_KEPT_FOR,
    STEPS_SHOWN,
    AgentRow,
    AgentSeen,
    AgentState,
    AgentStep,
    Wish,
    agent_word,
)
from watchbill.model.queue import DEPTH_COUNTED, PASSED_OVER, QueueDepth, with_pauses
from watchbill.store.postgres.connections import Connections, Pool, Session


async def agents(db: Session, namespace: str) -> list[AgentRow]:
    """Read the agents of a namespace, those alive first."""
    values = {"namespace": namespace, "shown_for": AGENTS_KEPT_FOR}
    found = cast(Sequence[Any], await db.rows("agents", values))
    steps: Mapping[int, list[AgentStep]] = defaultdict(list)
    at_work = [row[0] for row in found if row[15]]
    if at_work:
        held = await db.rows("steps_of_agents", {"agents": sorted(at_work), "limit": STEPS_SHOWN})
        for agent, *step in cast(Sequence[Any], held):
            steps[agent].append(AgentStep(*step))
    return sorted([_agent(*row, steps=steps[row[0]]) for row in found], key=AgentRow.order)


async def agents_seen(db: Session, ids: Sequence[int], now: Micros) -> tuple[AgentSeen, ...]:
    """Read how agents are called, and how they are."""
    found = cast(Sequence[Any], await db.rows("agents_by_id", {"ids": list(ids)})) if ids else ()
    return tuple(
        [
            AgentSeen(
                id, name, agent_word(AgentState(state), until, (beat_at, missed_at), now), beat_at, suspension, until
            )
            for id, name, state, until, beat_at, suspension, missed_at in found
        ]
    )


async def backlog(lines: Connections, pool: Pool, namespace: str | None) -> list[QueueDepth]:
    """Read what waits in the queues of a namespace, or of all."""
    values = {"namespace": namespace, "most": DEPTH_COUNTED, "far": PASSED_OVER}
    found = await lines.door(lambda: lines.rows(pool, "backlog", values))
    return [_queue(*row) for row in cast(Any, found)]


def _queue(*columns: Any) -> QueueDepth:  # noqa: ANN401 - as the statement says
    space, id, region, needs, uses, limited, depth, oldest, served_by, running, stopped, moving, oldest_moving = columns
    queue = QueueDepth(space, id, region, tuple(needs), uses, limited, depth, oldest, served_by, running)
    return with_pauses(queue._replace(stopped=stopped), moving, oldest_moving)


def _agent(*columns: Any, steps: Sequence[AgentStep]) -> AgentRow:  # noqa: ANN401 - as the statement says
    id, name, namespace, region, state, needs, slots, joined_at, beat_at, until, *others = columns
    wish, info, said, suspension, missed_at, running, now = others
    return AgentRow(
        id=id,
        name=name,
        namespace=namespace,
        region=region,
        state=agent_word(AgentState(state), until, (beat_at, missed_at), now),
        needs=tuple(needs),
        slots=slots,
        joined_at=joined_at,
        beat_at=beat_at,
        until=until,
        wish=Wish(wish),
        info=info,
        said=said,
        running=running,
        steps=tuple(steps),
        suspension=suspension,
    )
