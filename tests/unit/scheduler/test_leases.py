"""Leases: what is mine, how long I may trust it, when to ask again; by a clock that a test moves."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from watchbill.env import SystemEnv
from watchbill.model.lease import Taken, Terms
from watchbill.scheduler.leases import TAKE_EVERY, Leases
from watchbill.scheduler.store_time import StoreTime
from watchbill.store.protocol import SchedulerStore, TurnAnswer

SECOND = 1_000_000
LASTING = 24 * SECOND


class HandClock:
    def __init__(self) -> None:
        self.boot_now = 100 * SECOND

    def wall(self) -> int:
        raise AssertionError("nobody but a store reads the wall clock")

    def boot(self) -> int:
        return self.boot_now


class Shards:
    """The doors for leases, answered from memory; an answer takes two seconds."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.free = {1, 2, 3}
        self.held: set[int] = set()
        self.asked: list[list[int]] = []

    async def take(self, owner: int, shards: Sequence[int], lasting: int | None) -> Terms:
        self.asked.append(list(shards))
        self.clock.boot_now += 2 * SECOND
        taken = tuple(Taken(shard, 5, False, None) for shard in shards if shard in self.free)
        self.held |= {shard.shard for shard in taken}
        return Terms(taken, 1_000 * SECOND)

    async def renew(self, owner: int, terms: Mapping[int, int], lasting: int | None) -> TurnAnswer:
        self.clock.boot_now += 2 * SECOND
        held = frozenset(self.held & set(terms))
        return TurnAnswer(len(held) == len(terms), held, 1_000 * SECOND)

    async def release(self, owner: int, terms: Mapping[int, int]) -> None:
        self.held -= set(terms)


def leases(lasting: int | None = LASTING) -> tuple[Leases, Shards, HandClock]:
    clock = HandClock()
    env = SystemEnv()
    env.clock = clock
    shards = Shards(clock)
    made = Leases(env, cast(SchedulerStore, shards), StoreTime(clock), owner=7, lasting=lasting)
    made.wanted = [1, 2, 3]
    return made, shards, clock


async def test_trust_counts_from_before_the_request_and_ends_before_the_lease() -> None:
    mine, _, clock = leases()
    before = clock.boot_now
    await mine.take()
    assert mine.terms == {1: 5, 2: 5, 3: 5}
    clock.boot_now = before + LASTING - LASTING // 8 - 1
    assert mine.trusted
    clock.boot_now += 1
    assert not mine.trusted


async def test_the_only_owner_is_always_trusted_and_never_renews() -> None:
    mine, _, clock = leases(lasting=None)
    await mine.take()
    clock.boot_now += 10**15
    assert mine.trusted
    assert mine.next_at is None
    assert await mine.renew() == set()


async def test_what_is_not_free_is_asked_for_again_after_a_while() -> None:
    mine, shards, clock = leases()
    shards.free = {1}
    began = clock.boot_now
    assert [taken.shard for taken in await mine.take()] == [1]
    clock.boot_now = began + TAKE_EVERY - 1
    assert await mine.take() == ()
    assert len(shards.asked) == 1
    clock.boot_now += 1
    shards.free = {1, 2, 3}
    assert [taken.shard for taken in await mine.take()] == [2, 3]


async def test_a_renewal_tells_what_is_lost_and_renews_trust() -> None:
    mine, shards, clock = leases()
    await mine.take()
    shards.held = {1, 3}
    clock.boot_now += LASTING
    assert not mine.trusted
    assert await mine.renew() == {2}
    assert mine.terms == {1: 5, 3: 5}
    assert mine.trusted
    assert await mine.renew() == set()  # not before a third of it has passed


async def test_a_shard_taken_later_does_not_prolong_trust_in_the_others() -> None:
    mine, shards, clock = leases()
    shards.free = {1}
    began = clock.boot_now
    await mine.take()
    shards.free = {2}
    clock.boot_now = began + 20 * SECOND
    await mine.take()
    clock.boot_now = began + LASTING
    assert not mine.trusted


async def test_release_gives_everything_back() -> None:
    mine, shards, _ = leases()
    await mine.take()
    await mine.release(uncounted=set())
    assert (mine.terms, shards.held) == ({}, set())
    await mine.release(uncounted=set())


async def test_a_shard_whose_losses_are_not_counted_is_left_to_run_out() -> None:
    mine, shards, _ = leases()
    await mine.take()
    await mine.release(uncounted={2})
    assert (mine.terms, shards.held) == ({}, {2})


def test_the_time_of_the_store_never_goes_back() -> None:
    clock: Any = HandClock()
    time = StoreTime(clock)
    time.saw(1_000 * SECOND)
    clock.boot_now += SECOND
    assert time.now() == 1_001 * SECOND
    time.saw(500 * SECOND)
    assert time.now() == 1_001 * SECOND
    clock.boot_now += SECOND
    time.saw(2_000 * SECOND)
    assert time.now() == 2_000 * SECOND
