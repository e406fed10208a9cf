"""Incidents: what somebody must know of; and which code open runs need, of which one may come."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill.model.incident import (
    RESOLVED_KEPT_FOR,
    Attending,
    CodeLook,
    IncidentRow,
    IncidentState,
    NewIncident,
    open_codes,
)
from watchbill.model.run import WAITS_FOR_CODE
from watchbill.store.protocol import DUE_OF_SHARD
from watchbill.store.sqlite.database import Database, Named, Writer

_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])


def incident_rows(cursor: sqlite3.Cursor) -> list[IncidentRow]:
    """Read incidents."""
    return [
        IncidentRow(id, namespace, cause, IncidentState(state), members, body, opened_at, resolved_at)
        for id, namespace, cause, state, members, body, opened_at, resolved_at in cursor
    ]


def open_incidents(db: Writer, new: Sequence[NewIncident]) -> list[bool]:
    """Open incidents; says which are new."""
    now = db.now()
    return [db.run("open_incident", (*one, now)).fetchone() == (one.id,) for one in new]


def resolve_incidents(db: Writer, ids: Sequence[int]) -> list[bool]:
    """Resolve incidents; says which were open until now."""
    now = db.now()
    return [db.run("resolve_incident", {"id": id, "now": now}).rowcount == 1 for id in ids]


def has_old_incidents(db: Database) -> bool:
    """Say whether some were resolved long ago."""
    return bool(db.run("old_incidents", {"before": db.now() - RESOLVED_KEPT_FOR}).fetchone()[0])


def forget_incidents(db: Writer, limit: int) -> int:
    """Forget some that were resolved long ago; says how many."""
    return db.run("forget_incidents", {"before": db.now() - RESOLVED_KEPT_FOR, "limit": limit}).rowcount


def codes(db: Database, after: tuple[int, int] | None, limit: int) -> CodeLook:
    """Read which code open runs need, and which the schedulers have."""
    now = db.now()
    shard, num = after or (0, 0)
    shards = {id: (namespace, region) for id, namespace, region in db.run("all_shards")}
    first = list(shards) if after is None else []
    due = [row for id in first for row in db.run("due_codes", {"shard": id, "now": now, "limit": DUE_OF_SHARD})]
    values: Named = {"after_shard": shard, "after_num": num, "limit": limit, "waits_for_code": f"{WAITS_FOR_CODE}%"}
    live = db.run("live_codes", values).fetchall()
    attending = db.run("schedulers", {"now": now})
    return CodeLook(
        open_codes([*due, *(row[:4] for row in live if row[5])], shards),
        tuple([Attending(namespace, region, _NAMES.decode(knows)) for namespace, region, knows in attending]),
        (live[-1][0], live[-1][4]) if len(live) == limit else None,
        now,
    )
