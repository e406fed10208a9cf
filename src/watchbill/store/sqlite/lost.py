"""Lost: who is missed, by which evidence, and who is there."""

from collections.abc import Iterable, Sequence

from watchbill.model.agent import EMBEDDED
from watchbill.model.complement import ABANDONED, AWAY_FOR, LOST_AGENTS, SAYS_SO, Complement
from watchbill.model.lost import Dead, LostAgent
from watchbill.store.lost import dead_agent, hand, lost_agent
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.rows import read_needs


def dead_agents(db: Database, ids: Iterable[int]) -> tuple[Dead, ...]:
    """Read by which evidence agents are gone under which something runs."""
    agents = sorted(set(ids))
    if not agents:
        return ()
    values: Named = {"agents": json_text(agents), "embedded": f"{EMBEDDED}*"}
    found = {row[0]: row for row in db.run("dead_agents", values)}
    return tuple([dead_agent(id, found.get(id)) for id in agents])


def miss(db: Writer, agents: Sequence[int]) -> list[LostAgent]:
    """Write down that agents are missed; gives those whom nobody has missed yet."""
    values: Named = {"agents": json_text(agents), "now": db.now()}
    return sorted([lost_agent(*row) for row in db.run("miss", values).fetchall()])


def complement(db: Database) -> Complement:
    """Read who is there, and who was lost of late."""
    now = db.now()
    values: Named = {"now": now, "since": now - AWAY_FOR, "says_so": SAYS_SO}
    hands = [hand(now, *row) for row in db.run("complement", values)]
    causes: Named = {"lost": LOST_AGENTS, "abandoned": ABANDONED}
    [incidents] = db.run("complement_incidents", causes).fetchone()
    read = [one._replace(needs=read_needs(str(one.needs))) for one in hands]
    return Complement(tuple(read), bool(incidents), now)
