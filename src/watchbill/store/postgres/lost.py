"""Lost: who is missed, by which evidence, and who is there."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from watchbill.model.complement import ABANDONED, AWAY_FOR, LOST_AGENTS, SAYS_SO, Complement
from watchbill.model.lost import Dead, LostAgent
from watchbill.store.lost import dead_agent, hand, lost_agent
from watchbill.store.postgres.connections import Session


async def dead_agents(db: Session, ids: Iterable[int]) -> tuple[Dead, ...]:
    """Read by which evidence agents are gone under which something runs."""
    agents = sorted(set(ids))
    if not agents:
        return ()
    found = {row[0]: row for row in cast(Sequence[Any], await db.rows("dead_agents", {"agents": agents}))}
    return tuple([dead_agent(id, found.get(id)) for id in agents])


async def miss(db: Session, agents: Sequence[int]) -> list[LostAgent]:
    """Write down that agents are missed; gives those whom nobody has missed yet."""
    found = cast(Sequence[Any], await db.rows("miss", {"agents": sorted(agents)}))
    return sorted([lost_agent(*row) for row in found])


async def complement(db: Session) -> Complement:
    """Read who is there, and who was lost of late."""
    values = {"within": AWAY_FOR, "says_so": SAYS_SO, "lost": LOST_AGENTS, "abandoned": ABANDONED}
    found = cast(Sequence[Any], await db.rows("complement", values))
    now, incidents, *_ = found[0]
    hands = [hand(now, *row) for _, _, *row in found if row[0] is not None]
    return Complement(tuple([one._replace(needs=tuple(one.needs)) for one in hands]), incidents, now)
