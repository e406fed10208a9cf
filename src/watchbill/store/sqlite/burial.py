"""Burial: what dead processes hold ends at once, for a neighbour who has proof and for the next owner alike."""

from collections.abc import Callable, Sequence

from watchbill.model.lease import FOREVER
from watchbill.store.protocol import Hint
from watchbill.store.sqlite.database import Named, Writer, json_text
from watchbill.store.sqlite.lanes import Lanes


async def bury(lanes: Lanes, processes: Sequence[int], *, unheard: bool = False) -> None:
    """End what these processes hold; `unheard`: there is no more than their silence."""

    def work(db: Writer) -> tuple[int, int]:
        return end(db, processes, unheard=unheard), len(db.run("lift_avoid").fetchall())

    def tell(done: tuple[int, int]) -> None:
        ended, lifted = done
        if ended:
            lanes.hints.give(Hint.SCHEDULER)  # shards to take, and to share out anew
            lanes.hints.give(Hint.SUPERVISOR)  # rows without an agent
        if lifted:
            lanes.hints.give(Hint.AGENT)  # they need not be left to others any more

    await lanes.write(work, tell)


def end(db: Writer, processes: Sequence[int], *, unheard: bool = False) -> int:
    """End leases, agents and memberships of these processes; gives how many."""
    dead: Named = {"processes": json_text(processes), "now": db.now(), "unheard": unheard}
    return sum(db.run(name, dead).rowcount for name in ("bury_leases", "bury_agents", "bury_members", "bury_watchers"))


def end_owned(db: Writer, is_dead: Callable[[bytes], bool]) -> int:
    """End all that the owner before held, whose leases are for ever, and what is provably dead beside it.

    Agents of other processes have leases that end by time: they may be alive, and look for the new owner.
    """
    owned = [id for (id,) in db.run("owned_processes", {"forever": FOREVER})]
    dead = [id for id, info in db.run("processes").fetchall() if is_dead(info)]
    return end(db, sorted({*owned, *dead}))
