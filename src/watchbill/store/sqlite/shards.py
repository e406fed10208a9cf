"""Shards and queues: made when first asked for, and never again."""

from collections.abc import Sequence
from typing import TypeAlias

from watchbill.model.run import SHARDS_PER_REGION
from watchbill.store.sqlite.database import Database, Named, Writer, json_text

Homes: TypeAlias = dict[tuple[str, str], Sequence[int]]  # by namespace and region: the shards in order of their numbers


def region_shards(db: Database, namespace: str, region: str) -> list[int]:
    """Read the ids of a region's shards, in the order of their numbers."""
    return [id for (id,) in db.run("shards_of_region", {"namespace": namespace, "region": region})]


def make_shards(db: Writer, namespace: str, region: str) -> list[int]:
    """Make a region's shards and their leases."""
    db.run_many("make_shard", [(namespace, region, n) for n in range(SHARDS_PER_REGION)])
    db.run("make_leases")
    return region_shards(db, namespace, region)


def make_queue(  # noqa: PLR0913 - the door's
    db: Writer, namespace: str, region: str, needs: Sequence[str], uses: str, *, limited: bool
) -> int:
    """Make the queue of a set of needs: whatever their order, the same set is the same queue."""
    values: Named = {"namespace": namespace, "region": region, "needs": json_text(sorted(set(needs))), "uses": uses}
    values["limited"] = limited
    db.run("make_queue", values)
    found: int = db.run("find_queue", values).fetchone()[0]
    return found
