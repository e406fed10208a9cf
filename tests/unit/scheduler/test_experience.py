"""Experience: when it is read and told, and how it gets into policies; by a clock that a test moves."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from watchbill.agent.lessons import Lessons
from watchbill.agent.teacher import TEACH_EVERY, Teacher
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.events import Events
from watchbill.flow.steps import Step
from watchbill.model.policy import DEFAULT_TIMEOUT, SEEN_WITHIN, Policy
from watchbill.model.stat import MOST_LESSONS, Learned, Lesson, Memory, Seen, Stat, remembered, run_name
from watchbill.model.suggestion import ENOUGH
from watchbill.scheduler.experience import READ_EVERY, TELL_EVERY, Experience
from watchbill.store.protocol import AgentStore, SchedulerStore

SECOND = 1_000_000


class HandClock:
    def __init__(self) -> None:
        self.boot_now = 100 * SECOND

    def wall(self) -> int:
        raise AssertionError("nobody but a store reads the wall clock")

    def boot(self) -> int:
        return self.boot_now


class Doors:
    """The doors for what is learned, answered from memory."""

    def __init__(self, *stats: Stat) -> None:
        self.stats = stats
        self.asked: list[int] = []
        self.told: list[list[Lesson]] = []
        self.silent = False

    async def learned(self, namespace: str, since: int) -> Learned:
        self._answer()
        self.asked.append(since)
        return Learned(self.stats, 1_000 * SECOND)

    async def learn(self, namespace: str, lessons: Sequence[Lesson]) -> None:
        self._answer()
        self.told.append(list(lessons))

    def _answer(self) -> None:
        if self.silent:
            raise StoreUnreachableError("no answer")


def a_stat(step: str = "encode", rung: int = 0, *, span: int = 60, times: int = ENOUGH) -> Stat:
    seen = Seen()
    for _ in range(times):
        seen.durations.add(span * SECOND)
        seen.gaps.add(SECOND)
    return Stat(step, rung, remembered(Memory(), seen))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def experience(doors: Doors, clock: HandClock) -> Experience:
    env = SystemEnv()
    env.clock = clock
    return Experience(env, Events(), store=cast(SchedulerStore, doors), namespace="default")


async def encode() -> None: ...


async def test_what_is_usual_gets_into_policies_and_brings_the_look_forward(clock: HandClock) -> None:
    seen = experience(Doors(a_stat(), a_stat(rung=1, span=600), a_stat("few", times=9), a_stat(run_name("wf"))), clock)
    plain = Step(encode, retry=7).resolve()
    assert seen.with_usual("encode", plain) is plain
    await seen.turn()
    known = seen.with_usual("encode", plain)
    assert msgspec.json.decode(known.policy_body, type=Policy) == known.policy
    assert [usual.rung for usual in known.policy.usual] == [0, 1]
    assert (known.policy.retries, known.first_look) == (7, 30 * SECOND + SEEN_WITHIN)
    assert seen.with_usual("encode", plain) is known
    assert seen.with_usual("few", plain) is plain
    assert plain.first_look == DEFAULT_TIMEOUT


async def test_it_is_read_every_minute_while_rows_are_made_and_never_while_there_are_none(clock: HandClock) -> None:
    doors = Doors(a_stat())
    seen = experience(doors, clock)
    assert await seen.turn() is None
    assert doors.asked == [0]
    seen.with_usual("encode", Step(encode).resolve())
    assert await seen.turn() == READ_EVERY
    clock.boot_now += READ_EVERY
    assert await seen.turn() is None
    assert doors.asked == [0, 940 * SECOND]  # a minute of what it has read before: that may have been committed later


async def test_how_long_runs_took_is_told_some_seconds_later_and_not_lost_with_an_answer(clock: HandClock) -> None:
    doors = Doors()
    seen = experience(doors, clock)
    await seen.turn()
    for _ in range(3):
        seen.completed("release", 2, 90 * SECOND)
    assert await seen.turn() == TELL_EVERY
    clock.boot_now += TELL_EVERY
    doors.silent = True
    with pytest.raises(StoreUnreachableError):
        await seen.turn()
    doors.silent = False
    assert await seen.turn() is None
    [[lesson]] = doors.told
    assert (lesson.step, lesson.rung, lesson.seen.durations.count) == (run_name("release"), 2, 3)


async def test_whoever_closes_tells_the_rest(clock: HandClock) -> None:
    doors = Doors()
    seen = experience(doors, clock)
    seen.completed("release", 1, 90 * SECOND)
    await seen.close()
    assert len(doors.told) == 1


# --- what agents tell


def teacher(doors: Doors, clock: HandClock, lessons: Lessons) -> Teacher:
    env = SystemEnv()
    env.clock = clock
    return Teacher(env, Events(), store=cast(AgentStore, doors), namespace="default", lessons=lessons)


async def test_a_teacher_has_no_timer_until_there_is_something_to_tell(clock: HandClock) -> None:
    doors, lessons = Doors(), Lessons()
    room: Any = teacher(doors, clock, lessons)
    assert await room.turn() is None
    lessons.failed(("encode", 0))
    assert room._woken.is_set()
    assert await room.turn() == TEACH_EVERY
    clock.boot_now += TEACH_EVERY
    assert await room.turn() is None
    assert [[lesson.seen.failed for lesson in told] for told in doors.told] == [[1]]


async def test_a_teacher_tells_much_in_several_calls_and_keeps_what_was_not_heard(clock: HandClock) -> None:
    doors, lessons = Doors(), Lessons()
    room = teacher(doors, clock, lessons)
    for n in range(MOST_LESSONS + 5):
        lessons.failed((f"step-{n}", 0))
    doors.silent = True
    with pytest.raises(StoreUnreachableError):
        await room.close()
    doors.silent = False
    await room.close()
    assert [len(told) for told in doors.told] == [MOST_LESSONS, 5]
    assert not lessons
