"""How many agents there should be."""

from watchbill.clock import SECOND
from watchbill.model.fleet import GROW_EVERY, SHRINK_AFTER, Fleet, Load, Size, load_of, size_of
from watchbill.model.queue import QueueDepth

SIZE = Size(least=0, most=8, slots=10)
IDLE = Load(0, 0, 0)


def test_as_many_as_were_asked_for_are_there_from_the_beginning():
    assert size_of(Fleet(), IDLE, 0, Size(2, 8, 10), 0)[0] == 2


def test_the_first_agent_comes_with_the_first_work():
    assert size_of(Fleet(), Load(1, 0, 0), 0, SIZE, 0)[0] == 1


def test_work_that_waits_its_turn_is_no_reason_to_grow():
    assert size_of(Fleet(), Load(100, SECOND, 10), 1, SIZE, 0)[0] == 1


def test_work_that_waits_too_long_doubles_the_fleet_and_new_agents_get_a_moment_to_show():
    waiting = Load(100, 3 * SECOND, 10)
    count, fleet = size_of(Fleet(), waiting, 1, SIZE, 10 * SECOND)
    assert count == 2
    assert size_of(fleet, waiting, 2, SIZE, 11 * SECOND)[0] == 2
    assert size_of(fleet, waiting, 2, SIZE, 10 * SECOND + GROW_EVERY)[0] == 4


def test_it_never_grows_beyond_the_most():
    assert size_of(Fleet(), Load(100, 3 * SECOND, 80), 6, SIZE, 0)[0] == 8
    assert size_of(Fleet(), Load(100, 3 * SECOND, 80), 8, SIZE, 0)[0] == 8


def test_a_lull_is_not_the_end_and_an_idle_fleet_goes_down_to_zero():
    count, fleet = size_of(Fleet(), IDLE, 4, SIZE, 0)
    assert count == 4
    count, fleet = size_of(fleet, IDLE, 4, SIZE, SHRINK_AFTER - 1)
    assert count == 4
    assert size_of(fleet, IDLE, 4, SIZE, SHRINK_AFTER)[0] == 0


def test_work_in_between_begins_the_lull_anew():
    _, fleet = size_of(Fleet(), IDLE, 4, SIZE, 0)
    _, fleet = size_of(fleet, Load(1, 0, 35), 4, SIZE, SHRINK_AFTER // 2)
    assert size_of(fleet, IDLE, 4, SIZE, SHRINK_AFTER)[0] == 4


def test_it_shrinks_to_what_the_running_work_needs():
    _, fleet = size_of(Fleet(), Load(0, 0, 15), 4, SIZE, 0)
    assert size_of(fleet, Load(0, 0, 15), 4, SIZE, SHRINK_AFTER)[0] == 2


# --- behind gates

FULL, WITH_ROOM = 10, 3


def test_what_waits_behind_a_gate_is_no_reason_to_grow_while_the_agents_have_room():
    assert size_of(Fleet(), Load(0, 0, WITH_ROOM, 50, 60 * SECOND), 1, SIZE, 0)[0] == 1


def test_what_waits_behind_a_gate_while_the_agents_are_full_waits_for_more_of_them():
    assert size_of(Fleet(), Load(0, 0, FULL, 50, 60 * SECOND), 1, SIZE, 0)[0] == 2
    assert size_of(Fleet(), Load(0, 0, FULL, 50, SECOND), 1, SIZE, 0)[0] == 1


def test_somebody_is_there_when_a_gate_opens():
    assert size_of(Fleet(), Load(0, 0, 0, 1, 0), 0, SIZE, 0)[0] == 1
    _, fleet = size_of(Fleet(), Load(0, 0, 0, 5, 0), 4, SIZE, 0)
    assert size_of(fleet, Load(0, 0, 0, 5, 0), 4, SIZE, SHRINK_AFTER)[0] == 1


def a_queue(*, limited: bool, depth: int, oldest: int = 0, running: int = 0, paused: int = 0) -> QueueDepth:
    return QueueDepth("default", 1, "", (), "", limited, depth, oldest, 1, running, paused)


def test_the_load_tells_what_waits_behind_gates_from_what_waits_for_agents():
    queues = [a_queue(limited=False, depth=3, oldest=5, running=2), a_queue(limited=True, depth=4, oldest=9, running=1)]
    assert load_of(queues, {}, "") == Load(3, 5, 3, 4, 9)


def test_what_waits_behind_a_paused_gate_waits_for_no_agent():
    assert load_of([a_queue(limited=True, depth=4, oldest=9, paused=4)], {}, "") == Load(0, 0, 0)
    assert load_of([a_queue(limited=True, depth=4, oldest=9, paused=3)], {}, "") == Load(0, 0, 0, 1, 9)


def test_calls_of_a_paused_step_or_workflow_wait_for_no_agent():
    queue = a_queue(limited=False, depth=4, oldest=9, paused=3)._replace(oldest_moving=2)
    assert load_of([queue], {}, "") == Load(1, 2, 0)
    assert load_of([queue._replace(paused=4, oldest_moving=0)], {}, "") == Load(0, 0, 0)


def test_what_waits_for_a_dependency_that_is_down_is_no_reason_to_grow():
    queue = QueueDepth("default", 1, "", (), "stripe", False, depth=9, oldest=60 * SECOND, served_by=1, running=2)
    assert load_of([queue], {}, "") == Load(9, 60 * SECOND, 2)
    assert load_of([queue._replace(stopped=True)], {}, "") == Load(0, 0, 2)
