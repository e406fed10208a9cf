"""Suspensions: what agents say of what they did, and what supervisors make of it."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.model.agent import AgentState
from watchbill.model.doings import Doer, Roll, Suspending
from watchbill.model.needs import nobody_else
from watchbill.store.postgres.connections import Connections, Session


async def doings(db: Session) -> Roll:
    """Read what agents say of what they did, and who of them is suspended."""
    found = cast(Sequence[Any], await db.rows("doings", {}))
    return Roll(
        tuple([Doer._make([*columns, tuple(needs)]) for *columns, needs, _ in found]), found[0][-1] if found else 0
    )


async def suspend(db: Session, suspending: Suspending) -> bool:
    """Write a suspension, if the agent is as it was seen."""
    values = {
        "ids": sorted({suspending.agent, *(() if suspending.alone else suspending.others)}),
        "alone": suspending.alone,
        "unable": sorted(suspending.others) if suspending.alone else [],
        "agent": suspending.agent,
        "alive": AgentState.ALIVE,
        "seen": suspending.seen,
        "doings": suspending.doings,
        "after": suspending.after,
    }
    return bool(await db.rows("suspend", values))


async def left_to(lines: Connections, agent: int, queues: Sequence[int]) -> list[int]:
    """Give those of these queues that nobody else can serve who gets work: a suspended agent goes on with them."""
    others = [needs for (needs,) in cast(Sequence[Any], await lines.rows(lines.others, "rivals", {"agent": agent}))]
    asked = await lines.rows(lines.others, "needs_of_queues", {"queues": sorted(queues)})
    return [id for id, needs in cast(Sequence[Any], asked) if nobody_else(needs, others)]
