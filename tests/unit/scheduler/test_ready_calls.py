"""Calls that wait for a slot: the more urgent first, but nobody waits for ever."""

from types import SimpleNamespace
from typing import Any

from watchbill.clock import SECOND
from watchbill.flow.steps import NO_WISHES, Step
from watchbill.scheduler.lane import ReadyCalls

MINUTE = 60 * SECOND


def nothing() -> None: ...


def owner(name: str, priority: int = 0) -> Any:
    return SimpleNamespace(priority=priority), SimpleNamespace(
        name=name, target=SimpleNamespace(ranked=False), options=None
    )


def taken(ready: ReadyCalls) -> list[str]:
    return [str(ready.take()[1].name) for _ in range(len(ready.plain) + len(ready.ranked))]


def test_without_priorities_they_come_in_order():
    ready = ReadyCalls()
    ready.put_all([owner("a"), owner("b")], 0)
    ready.put_all([owner("c")], MINUTE)
    assert taken(ready) == ["a", "b", "c"]


def test_a_point_of_priority_is_a_head_start_of_a_minute():
    ready = ReadyCalls()
    ready.put_all([owner("low")], 0)
    ready.put_all([owner("urgent", 2)], MINUTE)
    ready.put_all([owner("less", 1), owner("not at all", -1)], MINUTE)
    assert taken(ready) == ["urgent", "low", "less", "not at all"]


def test_a_step_has_a_priority_of_its_own_that_is_added_to_its_runs():
    step = Step(nothing, priority=3)
    run = SimpleNamespace(priority=-1, workflow=SimpleNamespace(defaults=NO_WISHES))
    ready = ReadyCalls()
    ready.put_all([owner("plain")], 0)
    ready.put_all([(run, SimpleNamespace(name="a step's", target=step, options=None))], MINUTE)  # type: ignore[list-item]
    urgent = SimpleNamespace(name="a call's", target=step, options=step.options(priority=9).wishes)
    ready.put_all([(run, urgent)], MINUTE)  # type: ignore[list-item]
    assert taken(ready) == ["a call's", "a step's", "plain"]


def test_a_backlog_that_never_empties_does_not_make_what_is_new_old():
    ready = ReadyCalls()
    ready.put_all([owner("first")], 0)
    for n in range(1, 600):
        ready.put_all([owner(f"plain-{n}")], n * SECOND)
        ready.plain.popleft()
    ready.put_all([owner("new")], 600 * SECOND)
    ready.put_all([owner("urgent", 5)], 600 * SECOND)
    assert taken(ready) == ["urgent", "plain-599", "new"]


def test_who_has_waited_long_enough_comes_before_what_is_urgent():
    ready = ReadyCalls()
    ready.put_all([owner("first", -1)], 0)
    for n in range(20):  # a stream of urgent calls, one each minute
        ready.put_all([owner(f"urgent-{n}", 10)], n * MINUTE)
    order = taken(ready)
    assert order.index("first") == 11  # not behind all of them: after eleven minutes nothing new overtakes it
