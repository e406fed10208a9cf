"""Overrides: when they are read, what follows from them, and which rows are still behind."""

from collections.abc import Sequence
from typing import cast

from watchbill.flow.steps import Step
from watchbill.model.override import Changes
from watchbill.model.policies import Policies, PolicyRow, encode_changes
from watchbill.model.policy import decode_policy
from watchbill.scheduler.overrides import Overrides
from watchbill.store.protocol import SchedulerStore

SECOND = 1_000_000


async def encode() -> None: ...


STEP = Step(encode)


class Doors:
    """The doors for policies, answered from memory."""

    def __init__(self) -> None:
        self.rows: tuple[PolicyRow, ...] = ()
        self.read = 0
        self.pages = [7, None]
        self.patched: list[tuple[list[int], int]] = []

    def order(self, revision: int, changes: Changes) -> None:
        self.rows = (PolicyRow("encode", revision, "ann", "slow", 5, encode_changes(changes)),)

    async def policies(self, namespace: str) -> Policies:
        self.read += 1
        return Policies(self.rows)

    async def patch(self, namespace: str, shards: Sequence[int] | None, after: int) -> int | None:
        self.patched.append((list(shards or ()), after))
        return self.pages[(len(self.patched) - 1) % len(self.pages)]


def some() -> tuple[Doors, Overrides]:
    doors = Doors()
    return doors, Overrides(cast(SchedulerStore, doors), "default")


async def test_orders_are_read_when_a_look_says_that_there_is_news_and_then_rows_follow_page_by_page():
    doors, overrides = some()
    await overrides.hear(0)
    assert (doors.read, overrides.behind, bool(overrides)) == (0, False, False)
    doors.order(3, Changes(timeout=SECOND))
    await overrides.hear(3)
    await overrides.hear(3)
    assert (doors.read, overrides.behind, bool(overrides)) == (1, True, True)
    await overrides.patch([1, 2])
    assert overrides.behind
    await overrides.patch([1, 2])
    assert not overrides.behind
    assert doors.patched == [([1, 2], 0), ([1, 2], 7)]


async def test_policies_are_changed_once_for_each_and_as_the_code_says_when_all_is_cleared():
    doors, overrides = some()
    assert overrides.of("encode", STEP.resolve()) is STEP.resolve()
    doors.order(1, Changes(timeout=SECOND))
    await overrides.hear(1)
    found = overrides.of("encode", STEP.resolve())
    assert found is overrides.of("encode", STEP.resolve())
    assert (found.policy.timeout, found.first_look) == (SECOND, SECOND)
    assert decode_policy(found.policy_body) == found.policy
    assert overrides.of("charge", STEP.resolve()).policy == STEP.resolve().policy
    doors.order(2, Changes())
    await overrides.hear(2)
    assert overrides.of("encode", STEP.resolve()) is STEP.resolve()
    assert overrides.behind  # rows that were made before are as the code says, too


async def test_the_rows_of_shards_that_come_are_looked_through_if_anything_was_ever_ordered():
    doors, overrides = some()
    overrides.taken()
    assert not overrides.behind
    doors.order(1, Changes())
    await overrides.hear(1)
    doors.pages = [None]
    await overrides.patch([1])
    overrides.taken()
    assert overrides.behind
    await overrides.patch([])
    assert not overrides.behind
    assert len(doors.patched) == 1
