"""What an agent has seen of its steps: how long they took, how they moved, and nothing of what was quiet on purpose."""

from watchbill.agent.lessons import Lessons
from watchbill.clock import SECOND
from watchbill.model.stat import MOST_LESSONS

STEP = ("encode", 0)


def test_what_never_moved_stood_still_for_all_of_its_time() -> None:
    lessons = Lessons()
    assert not lessons
    lessons.succeeded(1, STEP, 7 * SECOND, began=0)
    [lesson] = lessons.take()
    assert (lesson.step, lesson.rung) == STEP
    assert (lesson.seen.durations.longest, lesson.seen.gaps.longest, lesson.seen.gaps.count) == (
        7 * SECOND,
        7 * SECOND,
        1,
    )
    assert not lessons


def test_gaps_are_counted_from_the_start_to_the_end() -> None:
    lessons = Lessons()
    lessons.moved(1, STEP, 100 * SECOND, 102 * SECOND, quiet=False)
    lessons.moved(1, STEP, 100 * SECOND, 105 * SECOND, quiet=False)
    lessons.succeeded(1, STEP, 6 * SECOND, began=100 * SECOND)
    [lesson] = lessons.take()
    assert (lesson.seen.gaps.count, lesson.seen.gaps.longest) == (3, 3 * SECOND)
    assert lesson.seen.gaps.quantile(0.01) <= 1.05 * SECOND


def test_what_is_quiet_on_purpose_has_no_pace() -> None:
    lessons = Lessons()
    lessons.moved(1, STEP, 0, 2 * SECOND, quiet=False)
    lessons.went_quiet(1, 0)
    lessons.moved(1, STEP, 0, 900 * SECOND, quiet=False)  # it is no longer quiet: that counts as an increase
    lessons.moved(1, STEP, 0, 903 * SECOND, quiet=True)  # and in the same beat quiet again
    lessons.succeeded(1, STEP, 2_000 * SECOND, began=0)
    [lesson] = lessons.take()
    assert (lesson.seen.gaps.count, lesson.seen.gaps.longest) == (2, 3 * SECOND)
    assert lesson.seen.durations.longest == 2_000 * SECOND


def test_the_next_attempt_of_a_row_begins_anew() -> None:
    lessons = Lessons()
    lessons.moved(1, STEP, 0, 90 * SECOND, quiet=False)
    lessons.forget(1)
    lessons.moved(1, STEP, 100 * SECOND, 101 * SECOND, quiet=False)
    [lesson] = lessons.take()
    assert sorted(lesson.seen.gaps.buckets.values()) == [1, 1]
    assert lesson.seen.gaps.longest == 90 * SECOND


def test_what_nobody_has_heard_is_kept() -> None:
    lessons = Lessons()
    lessons.succeeded(1, STEP, SECOND, began=0)
    taken = lessons.take()
    lessons.succeeded(2, STEP, SECOND, began=0)
    lessons.failed(STEP)
    lessons.put_back(taken)
    [lesson] = lessons.take()
    assert (lesson.seen.durations.count, lesson.seen.failed) == (2, 1)


def test_one_call_tells_so_much_and_the_next_one_the_rest() -> None:
    lessons = Lessons()
    for n in range(MOST_LESSONS + 7):
        lessons.failed((f"step-{n}", 0))
    assert [len(lessons.take()), len(lessons.take()), len(lessons.take())] == [MOST_LESSONS, 7, 0]
