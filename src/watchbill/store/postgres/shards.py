"""Shards and queues: made when first asked for, and never again."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from watchbill.model.run import SHARDS_PER_REGION
from watchbill.store.postgres.connections import Connections

HOME_REGION: Final = ""  # of runs that are submitted before any scheduler has made shards for their namespace


async def region_shards(lines: Connections, namespace: str, region: str) -> list[int]:
    """Give a region's shards in the order of their numbers, made if they are new."""
    place = {"namespace": namespace, "region": region}
    found = await lines.rows(lines.others, "shards_of_region", place)
    if len(found) < SHARDS_PER_REGION:
        await lines.rows(lines.others, "make_shards", {**place, "count": SHARDS_PER_REGION})
        found = await lines.rows(lines.others, "shards_of_region", place)
    return [cast(int, id) for (id,) in found]


async def home_shards(lines: Connections, namespace: str) -> Mapping[int, int]:
    """Give the shard that takes new runs of a namespace, for each number."""
    found = await lines.rows(lines.others, "shards_of_namespace", {"namespace": namespace})
    if not found:
        # Nobody has driven this namespace yet.
        await region_shards(lines, namespace, HOME_REGION)
        found = await lines.rows(lines.others, "shards_of_namespace", {"namespace": namespace})
    return {cast(int, n): cast(int, id) for n, id in found}


async def find_queue(  # noqa: PLR0913 - the door's
    lines: Connections, namespace: str, region: str, needs: Sequence[str], uses: str, *, limited: bool
) -> int:
    """Give the queue of a set of needs, made if it is new: whatever their order, the same set is the same queue."""
    values = {
        "namespace": namespace,
        "region": region,
        "needs": sorted(set(needs)),
        "uses": uses,
        "limited": limited,
    }
    found = await lines.rows(lines.others, "find_queue", values)
    if not found:
        await lines.rows(lines.others, "make_queue", values)
        found = await lines.rows(lines.others, "find_queue", values)
    return cast(int, found[0][0])
