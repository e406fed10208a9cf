"""Share: how the shards of a region are divided among the schedulers that attend it. Pure.

Nobody decides for the others: everybody computes the same shares from the same list, gives up what it holds above its
own, and takes what is free up to it. So a shard moves only when somebody has too many, and straight to whom it is due:
a newcomer gets what it lacks and nothing else moves; what the dead or retired leave behind is spread, and nothing else.
"""

from collections.abc import Collection, Iterable, Sequence

from watchbill.model.lease import Member


def drivers(members: Iterable[Member]) -> list[int]:
    """Give those who hold shards, by id: all whose code is not surpassed by another's.

    Who knows a strict subset of what another knows would leave runs standing that the other can drive.
    """
    known = {member.id: frozenset(member.knows) for member in members}
    return sorted(id for id, knows in known.items() if not any(knows < other for other in known.values()))


def shares(members: Iterable[Member], shards: int) -> dict[int, int]:
    """Say how many shards each member is to hold; of what cannot be divided, the first by id have one more.

    Ids are made in the order of time: a newcomer is the last, and nobody gets more because it came.
    """
    members = list(members)
    counts = {member.id: 0 for member in members}
    driving = drivers(members)
    for place, id in enumerate(driving):
        counts[id] = -(-(shards - place) // len(driving))
    return counts


def surplus(held: Collection[int], share: int, busy: Collection[int]) -> list[int]:
    """Choose what to give up: what is above the share, but for shards that cannot be given now."""
    excess = max(0, len(held) - share)
    return sorted(set(held) - set(busy), reverse=True)[:excess]


def window(missing: Sequence[int], lacking: int, after: int) -> list[int]:
    """Choose which of the missing shards to ask for: no more than are lacking, all of them in turn.

    Whoever asked for all would get more than its share, and which of them are free nobody knows.
    """
    ordered = sorted(missing)
    behind = [shard for shard in ordered if shard > after]
    return (behind + ordered[: len(ordered) - len(behind)])[: max(0, lacking)]
