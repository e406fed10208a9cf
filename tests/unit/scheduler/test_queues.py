"""Where the rows of steps wait, and which steps need no row in a process that has what they need."""

from collections.abc import Sequence
from typing import Any, cast

from watchbill import Limit
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.scheduler.queues import Queues
from watchbill.store.protocol import SchedulerStore


def nothing() -> None: ...


class Doors:
    """Gives each set of needs the next number, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, tuple[str, ...], str, bool]] = []

    async def queue(
        self, namespace: str, region: str, needs: Sequence[str], uses: str, *, limited: bool = False
    ) -> int:
        self.asked.append((namespace, region, tuple(needs), uses, limited))
        return len(self.asked)


def a_registry(**steps: Any) -> Registry:
    registry = Registry()
    for name, needs in steps.items():
        registry.add_step(Step(nothing, name=name, needs=needs))
    return registry


def queues(doors: Doors, registry: Registry, **have: int) -> Queues:
    return Queues(cast(SchedulerStore, doors), registry, "default", "eu", have)


async def test_steps_with_the_same_needs_share_a_queue_that_is_asked_for_once() -> None:
    doors, registry = Doors(), a_registry(a=None, b="gpu", c=["gpu"], d=["eu", "gpu"], e={"gpu": 2}, f=None)
    made = queues(doors, registry)
    assert made.stale
    await made.make()
    await made.make()
    assert not made.stale
    assert sorted(asked[2] for asked in doors.asked) == [(), ("eu", "gpu"), ("gpu",), ("gpu=2",)]
    assert {asked[:2] for asked in doors.asked} == {("default", "eu")}
    of = {name: made.of(registry.step(name)) for name in "abcdef"}
    assert of["a"] == of["f"] == made.plain
    assert of["b"] == of["c"]
    assert len(set(of.values())) == 4


async def test_a_step_that_is_defined_later_gets_its_queue_too() -> None:
    doors, registry = Doors(), a_registry(a=None)
    made = queues(doors, registry)
    await made.make()
    registry.add_step(Step(nothing, name="late", needs="gpu"))
    assert made.stale
    await made.make()
    assert made.of(registry.step("late")) != made.plain


async def test_a_row_is_needed_where_the_needs_are_not_met_or_something_is_taken() -> None:
    made = queues(Doors(), a_registry(), gpu=4, eu=0)
    rowless = {
        name: made.may_be_rowless(Step(nothing, name=name, **cast(Any, options)))
        for name, options in {
            "plain": {},
            "has-it": {"needs": "gpu"},
            "has-both": {"needs": ["eu", "gpu"]},
            "lacks-it": {"needs": "tape"},
            "lacks-one": {"needs": ["eu", "tape"]},
            "takes-one": {"needs": {"gpu": 1}},
            "own": {"isolation": "own"},
        }.items()
    }
    assert rowless == {
        "plain": True,
        "has-it": True,
        "has-both": True,
        "lacks-it": False,
        "lacks-one": False,
        "takes-one": False,
        "own": False,
    }


async def test_what_has_to_pass_a_gate_waits_apart_and_never_without_a_row() -> None:
    doors, registry = Doors(), a_registry(plain="gpu")
    registry.add_step(Step(nothing, name="limited", needs="gpu", limit=Limit("10/s")))
    made = queues(doors, registry, gpu=0)
    await made.make()
    assert [asked[2:] for asked in doors.asked] == [((), "", False), (("gpu",), "", False), (("gpu",), "", True)]
    assert made.of(registry.step("limited")) != made.of(registry.step("plain"))
    assert made.may_be_rowless(registry.step("plain"))
    assert not made.may_be_rowless(registry.step("limited"))
