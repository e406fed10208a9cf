"""Incidents: what somebody must know of; and which code open runs need, of which one may come."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from watchbill.model.alert import AlertKind
from watchbill.model.incident import (
    RESOLVED_KEPT_FOR,
    Attending,
    CodeLook,
    IncidentRow,
    IncidentState,
    NewIncident,
    open_codes,
)
from watchbill.model.logbook import KEPT_FOR
from watchbill.model.run import WAITS_FOR_CODE
from watchbill.store.protocol import DUE_OF_SHARD
from watchbill.store.sqlite.database import Database, Named, Writer
from watchbill.store.sqlite.logbook import forget_logbook

_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])


def incident_rows(cursor: sqlite3.Cursor) -> list[IncidentRow]:
    """Read incidents."""
    return [
        IncidentRow(
            id, namespace, cause, IncidentState(state), members, body, opened_at, resolved_at, people, bool(calls),
            waiting, ordered_by, bool(runs), bool(failed), bool(asks), *order,
        )
        for (
            id, namespace, cause, state, members, body, opened_at, resolved_at, people, calls, waiting, ordered_by,
            runs, failed, asks, *order,
        ) in cursor
    ]  # fmt: skip


def open_incidents(db: Writer, new: Sequence[NewIncident]) -> list[bool]:
    """Open incidents; says which are new."""
    now = db.now()
    return [_open(db, one, now) for one in new]


def _open(db: Writer, new: NewIncident, now: int) -> bool:
    values = (new.id, new.namespace, new.cause, new.members, new.body, new.people, now)
    if db.run("open_incident", values).fetchone() != (new.id,):
        return False
    tell_of(db, new, now)
    return True


def tell_of(db: Writer, new: NewIncident, now: int) -> None:
    """Write down who is to be told of a new incident."""
    if new.routes:
        db.run_many("alert", [(new.id, route, now) for route in new.routes])


def resolve_incidents(db: Writer, ids: Sequence[int]) -> list[bool]:
    """Resolve incidents; says which were open until now."""
    now = db.now()
    return [_resolved(db, id, now, db.run("resolve_incident", {"id": id, "now": now}).rowcount) for id in ids]


def _resolved(db: Writer, id: int, now: int, rows: int) -> bool:
    if rows:
        tell_again(db, id, AlertKind.RESOLVED, now)
    return rows == 1


def tell_again(db: Writer, id: int, kind: AlertKind, now: int) -> None:
    """Write down that whoever was to be told of an incident is to be told this about it, too."""
    db.run("alert_again", {"incident": id, "kind": int(kind), "now": now})


def has_old_incidents(db: Database) -> bool:
    """Say whether some were resolved long ago, or something was ordered longer ago than that is kept."""
    now = db.now()
    values: Named = {"before": now - RESOLVED_KEPT_FOR, "ordered_before": now - KEPT_FOR}
    return bool(db.run("old_incidents", values).fetchone()[0])


def forget_incidents(db: Writer, limit: int) -> int:
    """Forget some that were resolved long ago; says how many."""
    forgotten = db.run("forget_incidents", {"before": db.now() - RESOLVED_KEPT_FOR, "limit": limit}).fetchall()
    db.run_many("forget_alerts", forgotten)
    forget_logbook(db)
    return len(forgotten)


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
