"""How long a suspended agent waits before it is tried."""

from watchbill.clock import SECOND
from watchbill.model.suspension import (
    FIRST_WAIT,
    LONGEST_WAIT,
    RELAPSE,
    Suspension,
    encode,
    first_wait,
    read_suspension,
    tried_in_vain,
)

NOON = 1_800_000_000 * SECOND


def test_it_waits_longer_after_each_try_in_vain_and_longer_from_the_start_when_it_falls_ill_again_soon() -> None:
    suspension = Suspension(NOON, NOON, first_wait(None, NOON), "why", ("encode",), "OSError")
    again = tried_in_vain(suspension, "", NOON + SECOND)
    assert (again.wait, again.since, again.opened_at, again.tried) == (2 * FIRST_WAIT, NOON + SECOND, NOON, 1)
    assert (again.error, again.next_at) == ("OSError", NOON + SECOND + 2 * FIRST_WAIT)
    assert first_wait((again.wait, NOON), NOON + RELAPSE) == 4 * FIRST_WAIT
    assert first_wait((again.wait, NOON), NOON + RELAPSE + 1) == FIRST_WAIT
    assert first_wait((LONGEST_WAIT, NOON), NOON) == LONGEST_WAIT


def test_it_is_read_as_it_was_written() -> None:
    suspension = Suspension(NOON, NOON, FIRST_WAIT, "why", ("encode",), runs=("r1",))
    assert read_suspension(encode(suspension)) == suspension
    assert read_suspension(None) is None
