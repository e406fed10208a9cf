"""What the log says of trouble."""

import pytest

from watchbill import events as happened
from watchbill.events import LINES_OF_A_KIND, Event, Events


def test_trouble_is_logged_and_the_routine_is_not(caplog: pytest.LogCaptureFixture) -> None:
    Events().tell(
        [
            Event(happened.RUN_COMPLETED, 0, "scheduler", "a"),
            Event(happened.STEP_LATE, 0, "supervisor", "b", "encode", cause="late", note="still running"),
        ]
    )
    assert [record.getMessage() for record in caplog.records] == ["step.late b encode (late): still running"]


def test_a_thousand_alike_are_told_in_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    late = [Event(happened.STEP_LATE, 0, "supervisor", f"run-{n}") for n in range(1_000)]
    Events().tell([*late, Event(happened.RUN_HELD, 0, "scheduler", "a", note="waits for nothing")])
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == LINES_OF_A_KIND + 2
    assert "run.held a: waits for nothing" in lines
    assert lines[-1] == "step.late: 980 more at the same time; `watchbill run list` shows them"
