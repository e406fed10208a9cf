"""Stats: what is remembered of how long steps and runs take; many add to it, and nothing of it is lost."""

import asyncio

from watchbill.clock import SECOND
from watchbill.model.stat import HALF, MOST_LESSONS, Lesson, Seen, run_name
from watchbill.testing.conformance.scene import NOON, a_run


def a_lesson(step: str = "charge", rung: int = 0, *, span: int = 2, times: int = 1, failed: int = 0) -> Lesson:
    seen = Seen(failed=failed)
    for _ in range(times):
        seen.durations.add(span * SECOND)
        seen.gaps.add(SECOND)
    return Lesson(step, rung, seen)


async def test_what_was_seen_is_remembered_by_step_and_rung(scene):
    await scene.store.agent.learn("default", [a_lesson(times=3), a_lesson("pack", times=2, failed=1)])
    await scene.store.agent.learn("default", [a_lesson(span=9), a_lesson(rung=1)])
    found = {(stat.step, stat.rung): stat.memory.whole for stat in await scene.store.client.stats("default")}
    assert list(found) == [("charge", 0), ("charge", 1), ("pack", 0)]
    assert (found["charge", 0].durations.count, found["charge", 0].durations.longest) == (4, 9 * SECOND)
    assert found["charge", 0].gaps.count == 4
    assert (found["pack", 0].durations.count, found["pack", 0].failed) == (2, 1)


async def test_each_namespace_remembers_for_itself(scene):
    await scene.store.agent.learn("default", [a_lesson()])
    assert await scene.store.client.stats("other") == []
    assert len(await scene.store.client.stats("default")) == 1


async def test_no_lessons_are_no_change(scene):
    await scene.store.agent.learn("default", [])
    assert await scene.store.client.stats("default") == []


async def test_the_same_step_may_stand_twice_in_one_call(scene):
    await scene.store.agent.learn("default", [a_lesson(), a_lesson(), a_lesson(failed=1)])
    [stat] = await scene.store.client.stats("default")
    assert (stat.memory.whole.durations.count, stat.memory.whole.failed) == (3, 1)


async def test_many_who_add_at_once_lose_nothing(scene):
    steps = [f"step-{n}" for n in range(10)]
    told = [[a_lesson(step) for step in (steps if n % 2 else reversed(steps))] for n in range(20)]
    await asyncio.gather(*(scene.store.agent.learn("default", lessons) for lessons in told))
    stats = await scene.store.client.stats("default")
    assert [stat.memory.whole.durations.count for stat in stats] == [20] * 10


async def test_one_call_may_tell_of_many_steps(scene):
    await scene.store.agent.learn("default", [a_lesson(f"step-{n}") for n in range(MOST_LESSONS)])
    assert len(await scene.store.client.stats("default")) == MOST_LESSONS


async def test_the_older_half_is_forgotten(scene):
    await scene.store.agent.learn("default", [a_lesson(span=100, times=HALF)])
    await scene.store.agent.learn("default", [a_lesson(span=1, times=HALF)])
    [stat] = await scene.store.client.stats("default")
    assert (stat.memory.whole.durations.count, stat.memory.whole.durations.longest) == (HALF, SECOND)


async def test_a_scheduler_reads_what_is_new_since_it_last_did(scene, clock):
    doors = scene.store.scheduler
    nothing = await doors.learned("default", 0)
    assert (nothing.stats, nothing.now) == ((), NOON)
    await scene.store.agent.learn("default", [a_lesson(), a_lesson("pack")])
    first = await doors.learned("default", nothing.now)
    assert [stat.step for stat in first.stats] == ["charge", "pack"]
    clock.pass_by(60 * SECOND)
    await scene.store.agent.learn("default", [a_lesson("pack")])
    second = await doors.learned("default", first.now + 1)
    assert [(stat.step, stat.memory.whole.durations.count) for stat in second.stats] == [("pack", 2)]
    assert second.now == NOON + 60 * SECOND


async def test_a_record_says_how_long_runs_of_its_workflow_took(scene):
    await scene.submit(a_run(1))
    record = await scene.store.client.record("default", "o-1")
    assert record.lasted is None
    await scene.store.scheduler.learn("default", [a_lesson(run_name("order"), 1, span=60, times=5)])
    await scene.store.scheduler.learn("default", [a_lesson(run_name("order"), 2, span=90)])
    record = await scene.store.client.record("default", "o-1")
    assert (record.lasted.count, record.lasted.longest) == (5, 60 * SECOND)
