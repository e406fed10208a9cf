"""Watchers: supervisors that divide the work among them."""

from typing import NamedTuple

from watchbill.clock import Micros
from watchbill.model.watcher import Standing, Supervision, Watcher
from watchbill.store.sqlite.database import Database, Named, Writer, until


class Stood(NamedTuple):
    """Who stands watch, and whether the others should hear of it."""

    standing: Standing
    news: bool


def stand(db: Writer, watcher: Watcher, lasting: Micros | None) -> Stood:
    """Write one down, and read all."""
    now = db.now()
    me: Named = {"id": watcher.id, "way": str(watcher.way), "region": watcher.region, "now": now}
    before = _ids(db, me)
    db.run("prune_watchers", me)
    db.run("stand", {**me, "until": until(now, lasting), "info": watcher.info, "lag": watcher.lag})
    there = tuple([Watcher(id, watcher.way, watcher.region, info, lag) for id, info, lag in db.run("standing", me)])
    shards = tuple(sorted(id for id, _, _ in db.run("all_shards")))
    return Stood(Standing(there, shards, now), news=[one.id for one in there] != before)


def watchers(db: Database) -> tuple[Watcher, ...]:
    """Read all, of every way and region."""
    found = db.run("watchers", {"now": db.now()})
    return tuple([Watcher(id, Supervision(way), region, info, lag) for id, way, region, info, lag in found])


def _ids(db: Database, me: Named) -> list[int]:
    return [id for id, _, _ in db.run("standing", me)]
