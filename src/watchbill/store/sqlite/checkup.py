"""Checkup: what a doctor wants to know about a file."""

import sqlite3
from typing import Final

import msgspec

from watchbill.model.lease import Member
from watchbill.store.migrate import known_schema
from watchbill.store.protocol import GIVEN_UP_WITHIN, Checkup
from watchbill.store.sqlite.audit import orphans
from watchbill.store.sqlite.database import Database, Named
from watchbill.store.sqlite.watchers import watchers

_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])


def checkup(db: Database, namespace: str, limit: int) -> Checkup:
    """Look at all that is open."""
    now = db.now()
    this: Named = {"namespace": namespace, "limit": limit, "now": now}
    (mode,) = db.run("journal_mode").fetchone()
    unsent, given_up = db.run("unsent_alerts", {**this, "given_up_within": GIVEN_UP_WITHIN}).fetchone()
    return Checkup(
        engine=f"SQLite {sqlite3.sqlite_version}",
        mode=f"journal mode {mode}",
        schema=known_schema("sqlite"),  # a file with another one is not opened
        now=now,
        schedulers=tuple([Member(id, _NAMES.decode(knows), info) for id, knows, info in db.run("attending", this)]),
        code=tuple(db.run("open_code", this).fetchall()),
        held=tuple(db.run("open_held", this).fetchall()),
        quarantined=tuple(db.run("open_quarantined", this).fetchall()),
        overdue=db.run("overdue", this).fetchone()[0],
        watchers=watchers(db),
        shards=tuple(sorted(id for id, _, _ in db.run("all_shards"))),
        orphans=orphans(db),
        unsent=unsent,
        given_up=given_up,
    )
