"""Audit: what cannot be is found, repaired and counted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from watchbill.model.orphan import (
    ABANDONED_FAILURE,
    AuditLook,
    AuditPlace,
    Orphan,
    OrphanCount,
    OrphanKind,
    Repair,
)
from watchbill.model.states import AttemptState, RunState
from watchbill.store.postgres.connections import Session
from watchbill.store.protocol import EVERY

_STATEMENTS: Final = {
    OrphanKind.ENDED: "repair_ended",
    OrphanKind.UNWATCHED: "repair_unwatched",
    OrphanKind.ABANDONED: "repair_abandoned",
    OrphanKind.TIMELESS: "repair_timeless",
    OrphanKind.HOMELESS: "repair_homeless",
}
LAST_SHARD: Final = (1 << 31) - 1


async def audit(db: Session, after: AuditPlace, limit: int) -> AuditLook:
    """Look at the next rows, and at the next live runs."""
    found = cast(Sequence[Any], await db.rows("audit_rows", {"after": after.row, "limit": limit}))
    rows, last_row, now = found[0][:3]
    orphans = [
        Orphan(OrphanKind(wrong), id, run, run_id, call, fence, state, known)
        for _, _, _, wrong, id, run, run_id, call, fence, state, known in found
        if wrong is not None
    ]
    values = {"after_shard": after.shard, "after_run": after.run, "limit": limit}
    live = cast(Sequence[Any], await db.rows("audit_runs", values))
    runs, last_shard, last_run = live[0][:3]
    orphans += [
        Orphan(OrphanKind(wrong), num, num, id, "", 0, status)
        for _, _, _, wrong, num, id, status in live
        if wrong is not None
    ]
    through = rows < limit and runs < limit
    place = AuditPlace(
        last_row if rows == limit else EVERY, *((last_shard, last_run) if runs == limit else (LAST_SHARD, EVERY))
    )
    return AuditLook(tuple(orphans), None if through else place, now)


async def repair(db: Session, repairs: Sequence[Repair]) -> list[bool]:
    """Repair what still is as it was seen, in one transaction."""
    done: set[tuple[OrphanKind, int]] = set()
    for kind in OrphanKind:
        wanted = sorted([one for one in repairs if one.kind is kind], key=lambda one: one.id)
        if wanted:
            repaired = await db.rows(_STATEMENTS[kind], _values(wanted))
            done.update((kind, cast(int, id)) for (id,) in repaired)
    repaired_ones = [one for one in repairs if (one.kind, one.id) in done]
    said = [one for one in repaired_ones if one.body is not None]
    if said:
        await db.rows(
            "decide_orphans",
            {
                "runs": [one.run for one in said],
                "calls": [one.call for one in said],
                "fences": [one.fence for one in said],
                "bodies": [one.body for one in said],
            },
        )
    await count(db, Counter([str(one.kind) for one in repaired_ones]))
    return [(one.kind, one.id) in done for one in repairs]


async def count(db: Session, counts: Mapping[str, int]) -> None:
    """Count orphans by kind."""
    if counts:
        await db.rows("count_orphans", {"kinds": list(counts), "counts": list(counts.values())})


async def orphans(db: Session) -> tuple[OrphanCount, ...]:
    """Read how many there were."""
    return tuple([OrphanCount(*row) for row in cast(Sequence[Any], await db.rows("orphans", {}))])


def _values(repairs: Sequence[Repair]) -> dict[str, object]:
    return {
        "ids": [one.id for one in repairs],
        "fences": [one.fence for one in repairs],
        "states": [one.state for one in repairs],
        "running": AttemptState.RUNNING,
        "scheduled": RunState.SCHEDULED,
        "result": ABANDONED_FAILURE,
    }
