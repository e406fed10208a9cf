"""Who watches what: evenly, completely, and with little movement when somebody comes or goes."""

import random
from statistics import mean

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.model.watcher import SLACK, Supervision, Watcher, leader, shares, supervision_named

SHARDS = tuple(range(1, 17))


def some(count: int, seed: int) -> list[Watcher]:
    chance = random.Random(seed)
    return [Watcher(chance.getrandbits(62), Supervision.DISTRIBUTED, "", b"{}") for _ in range(count)]


def homes(watchers: list[Watcher], shards: tuple[int, ...] = SHARDS) -> dict[int, int]:
    return {shard: id for id, watched in shares(watchers, shards).items() for shard in watched}


@pytest.mark.parametrize("count", range(1, 20))
def test_every_shard_is_watched_by_one_and_nobody_has_much_more_than_the_others(count: int) -> None:
    watched = shares(some(count, count), SHARDS)
    assert sorted(shard for mine in watched.values() for shard in mine) == list(SHARDS)
    assert max(map(len, watched.values())) <= -(-len(SHARDS) // count) + SLACK


def test_all_compute_the_same_whatever_the_order_of_their_list() -> None:
    watchers = some(5, 1)
    assert homes(watchers) == homes(watchers[::-1])


def test_a_fourth_takes_about_a_quarter_and_hardly_anything_else_moves() -> None:
    moved = []
    for seed in range(100):
        *three, newcomer = some(4, seed)
        before, after = homes(three), homes([*three, newcomer])
        moved.append(sum(before[shard] != after[shard] for shard in SHARDS))
    share = len(SHARDS) / 4
    assert mean(moved) <= 1.25 * share
    assert max(moved) <= 2 * share


def test_what_somebody_leaves_behind_is_shared_out_and_hardly_anything_else_moves() -> None:
    moved = []
    for seed in range(100):
        *three, leaver = some(4, seed)
        before, after = homes([*three, leaver]), homes(three)
        moved.append(sum(before[shard] not in (after[shard], leaver.id) for shard in SHARDS))
    assert mean(moved) <= 1


def test_who_is_there_longest_leads() -> None:
    watchers = some(3, 7)
    assert leader(watchers) == min(watcher.id for watcher in watchers)
    assert leader([]) is None


def test_nobody_to_share_with_and_nothing_to_share() -> None:
    assert shares([], SHARDS) == {}
    [alone] = some(1, 1)
    assert shares([alone], ()) == {alone.id: ()}


def test_a_way_that_does_not_exist_is_refused() -> None:
    assert supervision_named("distributed") is Supervision.DISTRIBUTED
    with pytest.raises(InvalidOptionError, match="embedded, centralized, distributed, got 'central'"):
        supervision_named("central")
