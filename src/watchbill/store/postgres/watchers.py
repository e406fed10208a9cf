"""Watchers: supervisors that divide the work among them."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill.clock import Micros
from watchbill.model.watcher import Standing, Supervision, Watcher
from watchbill.store.postgres.connections import Session


async def stand(db: Session, watcher: Watcher, lasting: Micros | None, *, listens: bool) -> Standing:
    """Insert or renew a supervisor, and read all; `listens`: its process hears hints."""
    values = {
        "id": watcher.id,
        "way": str(watcher.way),
        "region": watcher.region,
        "info": watcher.info,
        "lag": watcher.lag,
        "lasting": lasting,
        "listens": listens,
    }
    found = cast(Sequence[Any], await db.rows("stand", values))
    now, shards = found[0][:2]
    there = tuple([Watcher(id, watcher.way, watcher.region, info, lag) for _, _, id, info, lag in found])
    return Standing(there, tuple(shards), now)


async def watchers(db: Session) -> tuple[Watcher, ...]:
    """Read all, of every way and region."""
    found = cast(Sequence[Any], await db.rows("watchers", {}))
    return tuple([Watcher(id, Supervision(way), region, info, lag) for id, way, region, info, lag in found])
