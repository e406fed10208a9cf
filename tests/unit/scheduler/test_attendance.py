"""Attendance: how often we say that we are there, what we learn from it, and whom we bury; by a clock a test moves."""

from collections.abc import Sequence
from typing import cast

from watchbill.env import SystemEnv
from watchbill.model.lease import Member
from watchbill.scheduler.attendance import HURRY, Attendance
from watchbill.store.contact import Contact
from watchbill.store.protocol import SchedulerStore

SECOND = 1_000_000
LASTING = 24 * SECOND
ME, OTHER, DEAD = 7, 8, 9


class HandClock:
    def __init__(self) -> None:
        self.boot_now = 100 * SECOND

    def wall(self) -> int:
        raise AssertionError("nobody but a store reads the wall clock")

    def boot(self) -> int:
        return self.boot_now


class Morgue(SystemEnv):
    """Knows by their names who is dead."""

    def process_identity(self) -> bytes:
        return b"me"

    def is_dead(self, identity: bytes) -> bool:
        return identity == b"dead"


class Members:
    """The doors for attendance, answered from memory."""

    def __init__(self) -> None:
        self.there = [Member(OTHER, ("order",), b"other")]
        self.said: list[tuple[object, ...]] = []
        self.buried: list[int] = []
        self.meanwhile = lambda: None

    async def attend(
        self, owner: int, namespace: str, region: str, knows: Sequence[str], info: bytes, lasting: int | None
    ) -> tuple[Member, ...]:
        self.said.append((owner, namespace, region, tuple(knows), info, lasting))
        self.meanwhile()
        return tuple(sorted([*self.there, Member(owner, tuple(knows), info)], key=lambda member: member.id))

    async def bury(self, processes: Sequence[int]) -> None:
        self.buried += processes

    async def retire(self, owner: int) -> None:
        self.said.append((owner, "retires"))


def attendance(lasting: int | None = LASTING) -> tuple[Attendance, Members, HandClock]:
    clock, env, store = HandClock(), Morgue(), Members()
    env.clock = clock
    made = Attendance(
        env,
        cast(SchedulerStore, store),
        Contact(clock, lasting),
        owner=ME,
        namespace="default",
        region="eu",
        lasting=lasting,
    )
    return made, store, clock


async def test_we_say_who_we_are_and_learn_our_share() -> None:
    mine, store, _ = attendance()
    assert mine.due
    assert await mine.attend(("order",)) == []
    assert store.said == [(ME, "default", "eu", ("order",), b"me", LASTING)]
    assert mine.share(16) == 8
    assert mine.share(17) == 9


async def test_we_attend_every_third_of_a_lease() -> None:
    mine, _, clock = attendance()
    await mine.attend(("order",))
    clock.boot_now += LASTING // 3 - 1
    assert not mine.due
    clock.boot_now += 1
    assert mine.due


async def test_a_hint_makes_us_attend_soon_but_not_at_once() -> None:
    mine, _, clock = attendance()
    await mine.attend(("order",))
    mine.hurry()
    assert not mine.due
    clock.boot_now += HURRY
    assert mine.due


async def test_a_hint_while_we_are_being_told_counts_too() -> None:
    mine, store, clock = attendance()
    store.meanwhile = mine.hurry
    await mine.attend(("order",))
    clock.boot_now += HURRY
    assert mine.due


async def test_the_dead_are_buried_and_have_no_share() -> None:
    mine, store, _ = attendance()
    store.there.append(Member(DEAD, ("order",), b"dead"))
    assert await mine.attend(("order",)) == [DEAD]
    assert store.buried == [DEAD]
    assert [member.id for member in mine.members] == [ME, OTHER]
    assert mine.share(16) == 8


async def test_who_knows_less_than_another_has_no_share() -> None:
    mine, store, _ = attendance()
    store.there = [Member(OTHER, ("order", "ship"), b"other")]
    await mine.attend(("order",))
    assert mine.share(16) == 0


async def test_the_one_owner_attends_once_and_again_only_when_it_knows_something_else() -> None:
    mine, store, clock = attendance(lasting=None)
    store.there = []
    await mine.attend(("order",))
    clock.boot_now += 10**12
    mine.hurry()
    mine.say(("order",))
    assert (mine.due, mine.next_at, mine.share(16)) == (False, None, 16)
    mine.say(("order", "ship"))
    assert mine.due


async def test_only_who_has_attended_retires() -> None:
    mine, store, _ = attendance()
    await mine.retire()
    assert store.said == []
    await mine.attend(("order",))
    await mine.retire()
    assert store.said[-1] == (ME, "retires")
