"""Audit: what cannot be is found, repaired and counted."""

from collections.abc import Sequence
from typing import Final

from watchbill.clock import Micros
from watchbill.model.decision import SUPERVISOR
from watchbill.model.orphan import (
    ABANDONED_FAILURE,
    AuditLook,
    AuditPlace,
    Orphan,
    OrphanCount,
    OrphanKind,
    Repair,
)
from watchbill.store.protocol import EVERY
from watchbill.store.sqlite.database import Database, Named, Writer

_STATEMENTS: Final = {
    OrphanKind.ENDED: "repair_ended",
    OrphanKind.UNWATCHED: "repair_unwatched",
    OrphanKind.ABANDONED: "repair_abandoned",
    OrphanKind.TIMELESS: "repair_timeless",
    OrphanKind.HOMELESS: "repair_homeless",
}


def audit(db: Database, after: AuditPlace, limit: int) -> AuditLook:
    """Look at the next rows, and at the next live runs."""
    rows, last_row = db.run("audit_page", {"after": after.row, "limit": limit}).fetchone()
    orphans = []
    if rows:
        found = db.run("audit_rows", {"after": after.row, "last": last_row})
        orphans += [
            Orphan(OrphanKind(wrong), id, run, run_id, call, fence, state, bool(known))
            for wrong, id, run, run_id, call, fence, state, known in found
        ]
    live = db.run("audit_runs", {"after_shard": after.shard, "after_run": after.run, "limit": limit}).fetchall()
    orphans += [Orphan(OrphanKind.TIMELESS, num, num, id, "", 0, status) for _, num, id, status, wrong in live if wrong]
    for (shard,) in db.run("audit_homeless").fetchall():
        for num, id, status in db.run("live_of_shard", {"shard": shard}):
            orphans.append(Orphan(OrphanKind.HOMELESS, num, num, id, "", 0, status))
    through = rows < limit and len(live) < limit
    place = AuditPlace(last_row if rows == limit else EVERY, *(live[-1][:2] if len(live) == limit else (EVERY, EVERY)))
    return AuditLook(tuple(orphans), None if through else place, db.now())


def repair(db: Writer, repairs: Sequence[Repair]) -> list[bool]:
    """Repair what still is as it was seen, one by one."""
    now = db.now()
    return [_repair(db, one, now) for one in repairs]


def _repair(db: Writer, one: Repair, now: Micros) -> bool:
    values: Named = {"id": one.id, "fence": one.fence, "state": one.state, "now": now, "result": ABANDONED_FAILURE}
    if not db.run(_STATEMENTS[one.kind], values).rowcount:
        return False
    if one.body is not None:
        key: Named = {"run": one.run, "call": one.call, "fence": one.fence}
        db.run("judge_decision", {**key, "actor": SUPERVISOR, "body": one.body, "now": now})
    count(db, str(one.kind), 1)
    return True


def count(db: Writer, kind: str, count: int) -> None:
    """Count orphans of a kind."""
    db.run("count_orphans", {"kind": kind, "count": count, "now": db.now()})


def orphans(db: Database) -> tuple[OrphanCount, ...]:
    """Read how many there were."""
    return tuple([OrphanCount(*row) for row in db.run("orphans")])
