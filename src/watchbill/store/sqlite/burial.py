"""Burial: what dead processes hold ends at once, for a neighbour who has proof and for the next owner alike."""

from collections.abc import Sequence

from watchbill.store.protocol import Hint
from watchbill.store.sqlite.database import Named, Writer, json_text
from watchbill.store.sqlite.lanes import Lanes


async def bury(lanes: Lanes, processes: Sequence[int]) -> None:
    """End what these processes hold."""

    def tell(rows: int) -> None:
        if rows:
            lanes.hints.give(Hint.SCHEDULER)  # shards to take, and to share out anew
            lanes.hints.give(Hint.SUPERVISOR)  # rows without an agent

    await lanes.write(lambda db: end_all(db, json_text(processes)), tell)


def end_all(db: Writer, processes: str | None) -> int:
    """End leases, agents and memberships of these processes (a JSON list), or of everybody; gives how many."""
    dead: Named = {"processes": processes, "now": db.now()}
    return sum(db.run(name, dead).rowcount for name in ("bury_leases", "bury_agents", "bury_members"))
