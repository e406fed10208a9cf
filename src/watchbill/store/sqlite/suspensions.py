"""Suspensions: what agents say of what they did, and what supervisors make of it."""

from collections.abc import Sequence
from typing import Any

from watchbill.model.doings import Doer, Roll, Suspending
from watchbill.model.needs import nobody_else
from watchbill.store.sqlite.database import Database, Named, Writer, json_text
from watchbill.store.sqlite.rows import queue_rows, read_needs


def doings(db: Database) -> Roll:
    """Read what agents say of what they did, and who of them is suspended."""
    now = db.now()
    return Roll(tuple([_read(*row) for row in db.run("doings", {"now": now})]), now)


def _read(*columns: Any) -> Doer:  # noqa: ANN401 - as the statement gives them
    *others, wanted, region, needs = columns
    return Doer._make([*others, bool(wanted), region, read_needs(needs)])


def suspend(db: Writer, suspending: Suspending) -> bool:
    """Write a suspension, if the agent is as it was seen."""
    values: Named = {"others": json_text(suspending.others), "now": db.now()}
    values |= {"agent": suspending.agent, "seen": suspending.seen}
    values |= {"after": suspending.after, "doings": suspending.doings, "alone": suspending.alone}
    return db.run("suspend", values).rowcount == 1


def left_to(db: Database, agent: int, queues: Sequence[int]) -> list[int]:
    """Give those of these queues that nobody else can serve who gets work: a suspended agent goes on with them."""
    others = [read_needs(needs) for (needs,) in db.run("rivals", {"agent": agent, "now": db.now()})]
    rows = queue_rows(db.run("queues_by_id", {"queues": json_text(queues)}))
    return [row.id for row in rows if nobody_else(row.needs, others)]
