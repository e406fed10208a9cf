"""What is remembered of a step: it follows a change, and nothing is counted that is forgotten."""

from watchbill.clock import SECOND
from watchbill.model.stat import HALF, Memory, Seen, decode_memory, is_step, remembered, run_name, taught


def seen(span: int, times: int, failed: int = 0) -> Seen:
    found = Seen(failed=failed)
    for _ in range(times):
        found.durations.add(span * SECOND)
        found.gaps.add(SECOND)
    return found


def test_it_adds_up_until_half_of_it_is_full() -> None:
    memory = remembered(remembered(Memory(), seen(2, HALF - 2)), seen(2, 1))
    assert (memory.recent.durations.count, memory.before.durations.count) == (HALF - 1, 0)
    memory = remembered(memory, seen(2, 1))
    assert (memory.recent.durations.count, memory.before.durations.count) == (0, HALF)
    assert memory.whole.durations.count == HALF


def test_what_was_usual_before_a_change_is_forgotten() -> None:
    memory = Memory()
    for _ in range(100):
        memory = remembered(memory, seen(100, 50))
    for _ in range(2 * HALF // 50):
        memory = remembered(memory, seen(1, 50))
    assert memory.whole.durations.longest == SECOND
    assert memory.whole.durations.count <= 2 * HALF


def test_failures_fill_it_as_well() -> None:
    memory = remembered(remembered(Memory(), seen(1, 10, failed=HALF - 10)), seen(1, 0, failed=5))
    assert (memory.before.failed, memory.recent.failed, memory.whole.failed) == (HALF - 10, 5, HALF - 5)


def test_what_was_seen_is_not_changed_by_remembering_it() -> None:
    first = seen(1, 3)
    memory = remembered(Memory(), first)
    remembered(memory, seen(1, 5))
    assert (first.durations.count, memory.recent.durations.count) == (3, 3)


def test_a_stored_memory_is_read_as_it_was_written() -> None:
    body = taught(taught(None, seen(1, 3)), seen(2, 4, failed=1))
    assert decode_memory(body) == remembered(remembered(Memory(), seen(1, 3)), seen(2, 4, failed=1))
    assert decode_memory(b"{}") == Memory()


def test_no_step_is_called_like_the_runs_of_a_workflow() -> None:
    assert not is_step(run_name("order"))
    assert is_step("order")
