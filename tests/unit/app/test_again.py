"""What of a live run may be named to be tried again, and what is said of other names."""

import pytest

from tests.unit.cli.records import a_completed_step, a_record
from watchbill import InvalidOptionError
from watchbill.app.again import check_retried


@pytest.mark.parametrize("step", ["charge", "charge.2", "pay"])
def test_what_the_run_has_done_or_the_code_has_is_no_misspelt_name(step: str) -> None:
    check_retried(a_record(journal=[a_completed_step(1), a_completed_step(2, "charge.2")]), step, {"pay"})


def test_of_a_run_that_is_held_it_says_what_lets_it_go_on() -> None:
    with pytest.raises(InvalidOptionError, match=r"nothing was changed; it is held, and retry without a step lets it"):
        check_retried(a_record(held="its code has changed"), "chrage", {"charge"})


def test_the_empty_key_of_a_stop_is_no_name() -> None:
    with pytest.raises(InvalidOptionError, match="no call of a step '' is open in run 'order-1'"):
        check_retried(a_record(journal=[a_completed_step(1, "")]), "", ())
