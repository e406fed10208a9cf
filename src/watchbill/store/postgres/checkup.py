"""Checkup: what a doctor wants to know about a store on a server."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.model.lease import Member
from watchbill.store.migrate import known_schema
from watchbill.store.postgres.audit import orphans
from watchbill.store.postgres.connections import Session
from watchbill.store.postgres.watchers import watchers
from watchbill.store.protocol import GIVEN_UP_WITHIN, Checkup, Durability

WEAK = frozenset({"off", "local"})  # of these `greet` makes `on`


async def checkup(db: Session, namespace: str, limit: int, commit: str | None) -> Checkup:
    """Look at all that is open; `commit`: synchronous_commit as the address names it."""
    this = {"namespace": namespace, "limit": limit}

    async def asked(name: str) -> tuple[tuple[Any, ...], ...]:
        return tuple([tuple(cast(Sequence[Any], row)) for row in await db.rows(name, this)])

    version, mode, fsync, synchronous, standbys = cast(Sequence[Any], await db.row("server", {}))
    turns = commit or ("on" if mode in WEAK else mode)
    alerts = {"namespace": namespace, "given_up_within": GIVEN_UP_WITHIN}
    unsent, given_up = cast(Sequence[Any], await db.row("unsent_alerts", alerts))
    now, overdue = cast(Sequence[Any], await db.row("overdue", {}))
    return Checkup(
        engine=f"PostgreSQL {version}",
        mode=f"synchronous_commit {turns}",
        schema=known_schema("postgres"),  # a store with another one is not opened
        now=now,
        schedulers=tuple([Member(id, tuple(knows), info) for id, knows, info in await asked("attending")]),
        code=await asked("open_code"),
        held=await asked("open_held"),
        quarantined=await asked("open_quarantined"),
        overdue=overdue,
        watchers=await watchers(db),
        shards=tuple(sorted(id for id, _, _ in await asked("all_shards"))),
        orphans=await orphans(db),
        unsent=unsent,
        given_up=given_up,
        durability=Durability(mode, turns, fsync, standbys, synchronous),
        polling=tuple([who for (who,) in await asked("polling")]),
    )
