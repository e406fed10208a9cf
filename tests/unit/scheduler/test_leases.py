"""Leases: what is mine, how long I may trust it, when to ask again; by a clock that a test moves."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

import pytest

from tests.simulation.mutants import m6_renewed_when_it_ends, taken_without_an_answer_and_forgotten
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.model.lease import Taken, Terms
from watchbill.scheduler.leases import TAKE_EVERY, Leases
from watchbill.scheduler.store_time import StoreTime
from watchbill.store.contact import Contact
from watchbill.store.protocol import NONE_GIVEN_UP, SchedulerStore, TurnAnswer

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
        self.above: list[int] = []
        self.expired: list[bool] = []
        self.silent = False
        self.released: list[dict[int, int]] = []
        self.uncounted: list[list[int]] = []

    async def take(
        self,
        owner: int,
        shards: Sequence[int],
        lasting: int | None,
        *,
        expired: bool = True,
        above: int = 0,
        given_up: Mapping[int, int] = NONE_GIVEN_UP,
    ) -> Terms:
        self.asked.append(list(shards))
        self.above.append(above)
        self.expired.append(expired)
        self.clock.boot_now += 2 * SECOND
        taken = tuple(Taken(shard, 5, False, None) for shard in shards if shard in self.free)
        self.held |= {shard.shard for shard in taken}
        self._answer("take")
        return Terms(taken, 1_000 * SECOND)

    async def renew(self, owner: int, terms: Mapping[int, int], lasting: int | None) -> TurnAnswer:
        self.clock.boot_now += 2 * SECOND
        held = frozenset(self.held & set(terms))
        return TurnAnswer(len(held) == len(terms), held, 1_000 * SECOND)

    async def release(self, owner: int, terms: Mapping[int, int], uncounted: Sequence[int] = ()) -> None:
        self.held -= set(terms)
        self.released.append(dict(terms))
        self.uncounted.append(list(uncounted))
        self._answer("release")

    def _answer(self, door: str) -> None:
        if self.silent:
            raise StoreUnreachableError(f"no answer to {door}")


def leases(lasting: int | None = LASTING) -> tuple[Leases, Shards, HandClock]:
    clock = HandClock()
    env = SystemEnv()
    env.clock = clock
    shards = Shards(clock)
    contact = Contact(clock, lasting)
    made = Leases(env, cast(SchedulerStore, shards), StoreTime(clock), contact, owner=7, lasting=lasting)
    made.region, made.share = [1, 2, 3], 3
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


async def test_leases_are_renewed_long_before_they_end() -> None:
    mine, _, clock = leases()
    before = clock.boot_now
    await mine.take()
    assert mine.next_at is not None
    assert mine.next_at <= before + LASTING // 3, "two renewals may be lost"
    clock.boot_now = mine.next_at
    renewed = clock.boot_now
    await mine.renew()
    assert mine.next_at <= renewed + LASTING // 3


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


async def test_no_more_is_asked_for_than_is_lacking_and_all_of_it_in_turn() -> None:
    mine, shards, clock = leases()
    mine.region, mine.share, shards.free = list(range(1, 8)), 3, set()
    for _ in range(4):
        clock.boot_now += TAKE_EVERY
        await mine.take()
    assert shards.asked == [[1, 2, 3], [4, 5, 6], [7, 1, 2], [3, 4, 5]]


async def test_who_has_its_share_asks_for_nothing() -> None:
    mine, shards, clock = leases()
    mine.share = 2
    await mine.take()
    clock.boot_now += TAKE_EVERY
    await mine.take()
    assert (mine.terms, shards.asked) == ({1: 5, 2: 5}, [[1, 2]])
    assert mine.next_at is not None, "it still has to renew"


async def test_shards_whose_answer_was_lost_are_asked_for_again_whatever_the_share() -> None:
    mine, shards, clock = leases()
    shards.silent = True
    with pytest.raises(StoreUnreachableError):
        await mine.take()
    shards.silent, mine.share, shards.free = False, 0, {1, 2}
    clock.boot_now += TAKE_EVERY
    assert mine.next_at is not None
    assert [lease.shard for lease in await mine.take()] == [1, 2], "they were ours, and would have ended uncleanly"
    shards.free = {3}  # it was locked just then
    clock.boot_now += TAKE_EVERY
    assert [lease.shard for lease in await mine.take()] == [3]
    clock.boot_now += TAKE_EVERY
    assert await mine.take() == ()
    assert len(shards.asked) == 3


async def test_shards_whose_lease_would_be_over_by_now_are_not_asked_for_again() -> None:
    mine, shards, clock = leases()
    shards.silent = True
    with pytest.raises(StoreUnreachableError):
        await mine.take()
    shards.silent, mine.share = False, 0
    clock.boot_now += LASTING
    assert await mine.take() == ()
    assert (len(shards.asked), mine.next_at) == (1, None)


async def test_the_expired_are_left_alone_for_a_full_lease_period() -> None:
    mine, shards, clock = leases()
    shards.free = set()
    for _ in range(14):
        clock.boot_now += 2 * SECOND
        await mine.take()
    assert shards.expired == [False] * 7 + [True] * 7


async def test_what_was_given_up_is_released_until_the_store_has_answered() -> None:
    mine, shards, clock = leases()
    await mine.take()
    mine.share = 1
    mine.part_with([2, 3])
    shards.silent = True
    with pytest.raises(StoreUnreachableError):
        await mine.part()
    shards.silent, mine.share = False, 3
    clock.boot_now += TAKE_EVERY
    assert await mine.take() == (), "it must not be taken back before it is known to be released"
    await mine.part()
    await mine.part()
    assert shards.released == [{2: 5, 3: 5}] * 2
    assert [lease.shard for lease in await mine.take()] == [2, 3]


async def test_what_was_given_up_uncounted_is_said_until_the_store_has_answered() -> None:
    mine, shards, clock = leases()
    await mine.take()
    shards.silent = True
    with pytest.raises(StoreUnreachableError):
        await mine.release(uncounted={2})
    shards.silent = False
    await mine.part()
    assert shards.released == [{1: 5, 2: 5, 3: 5}] * 2
    assert shards.uncounted == [[2]] * 2
    clock.boot_now += TAKE_EVERY
    await mine.take()
    await mine.release(uncounted=set())
    assert shards.uncounted[-1] == [], "once is enough"


async def test_terms_are_asked_for_above_all_that_were_held() -> None:
    mine, shards, clock = leases()
    await mine.take()
    await mine.release(uncounted=set())
    clock.boot_now += LASTING
    await mine.take()
    assert shards.above == [0, 5]


@pytest.mark.parametrize(
    ("plant", "caught_by"),
    [
        (m6_renewed_when_it_ends, test_leases_are_renewed_long_before_they_end),
        (
            taken_without_an_answer_and_forgotten,
            test_shards_whose_answer_was_lost_are_asked_for_again_whatever_the_share,
        ),
    ],
)
async def test_planted_mutant_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    caught_by: Callable[[], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        await caught_by()
