"""Shards and queues: made when first asked for, and never again."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from watchbill.errors import StoreRegionError
from watchbill.model.run import SHARDS_PER_REGION, NewRun, refused_home
from watchbill.store.postgres.connections import Connections

Homes: TypeAlias = Mapping[tuple[str, str], Sequence[int]]  # by namespace and region: the shards, by number


async def region_shards(lines: Connections, namespace: str, region: str) -> list[int]:
    """Give a region's shards in the order of their numbers, made if they are new."""
    place = {"namespace": namespace, "region": region}
    found = await lines.rows(lines.others, "shards_of_region", place)
    if len(found) < SHARDS_PER_REGION:
        await lines.rows(lines.others, "make_shards", {**place, "count": SHARDS_PER_REGION})
        found = await lines.rows(lines.others, "shards_of_region", place)
    return [cast(int, id) for (id,) in found]


async def home_shards(lines: Connections, runs: Sequence[NewRun], known: Homes) -> dict[tuple[str, str], Sequence[int]]:
    """Give the shards of all places where these runs live and that are not known yet; perhaps nobody was there yet."""
    for run in runs:
        if lines.region is not None and run.region != lines.region:
            raise StoreRegionError(lines.address.shown, refused_home(run.id, run.region, lines.region))
    return {home: await region_shards(lines, *home) for home in sorted({run.home for run in runs} - known.keys())}


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
