"""How late a supervisor is: its loop, a turn that does not end, and what it looks at."""

from watchbill.clock import SECOND
from watchbill.supervisor.pulse import Pulse


def a_pulse() -> Pulse:
    """Of one that looked at 100 s, and wants to again at 101 s."""
    pulse = Pulse()
    pulse.begin(100 * SECOND)
    pulse.end(100 * SECOND, SECOND)
    return pulse


def test_one_that_has_never_looked_is_not_on_time() -> None:
    assert not Pulse().is_on_time(100 * SECOND, SECOND)


def test_one_that_looks_when_it_wants_to_is_on_time() -> None:
    pulse = a_pulse()
    assert pulse.lag(101 * SECOND) == 0
    assert pulse.is_on_time(101 * SECOND, SECOND)


def test_a_loop_that_does_not_come_round_is_late_from_when_it_wanted_to() -> None:
    pulse = a_pulse()
    assert pulse.lag(104 * SECOND) == 3 * SECOND
    assert pulse.is_on_time(103 * SECOND, SECOND)
    assert not pulse.is_on_time(103 * SECOND + 1, SECOND)


def test_a_turn_that_does_not_end_or_fails_is_late_from_its_beginning() -> None:
    pulse = a_pulse()
    pulse.begin(101 * SECOND)
    pulse.begin(105 * SECOND)  # the first one has failed
    assert pulse.lag(106 * SECOND) == 5 * SECOND
    pulse.end(106 * SECOND, SECOND)
    assert pulse.lag(107 * SECOND) == 0


def test_a_row_that_waited_for_its_look_makes_that_look_late_and_only_that() -> None:
    pulse = a_pulse()
    pulse.begin(101 * SECOND)
    pulse.found(30 * SECOND)
    pulse.end(101 * SECOND, 0)
    assert pulse.lag(101 * SECOND) == 30 * SECOND
    pulse.begin(101 * SECOND)
    pulse.found(0)
    pulse.end(101 * SECOND, None)
    assert pulse.lag(500 * SECOND) == 0


def test_the_worst_is_told_once() -> None:
    pulse = a_pulse()
    pulse.begin(105 * SECOND)
    pulse.end(105 * SECOND, SECOND)
    assert pulse.take_worst() == 4 * SECOND
    assert pulse.take_worst() == 0
