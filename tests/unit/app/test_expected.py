"""When a run will probably have ended: by others of its kind, and by its own pace."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.cli.records import NOON, a_completed_step, a_failed_run, a_record, an_attempt, an_ended_run
from watchbill.app.report import status_of
from watchbill.clock import SECOND, to_datetime
from watchbill.model.attempt import Progress
from watchbill.model.failure import RunError
from watchbill.model.policy import Policy
from watchbill.model.sketch import Sketch
from watchbill.model.states import AttemptState, RunState
from watchbill.model.usual import Evidence, Usual
from watchbill.store.protocol import Record

NOW = NOON + 90 * SECOND


def of_runs(record: Record, *spans: int) -> Record:
    lasted = Sketch()
    for span in spans:
        lasted.add(span * SECOND)
    return msgspec.structs.replace(record, lasted=lasted)


def seconds_left(record: Record) -> float | None:
    expected = status_of(record).expected_end
    return None if expected is None else (expected - to_datetime(record.now)) / timedelta(seconds=1)


def test_nothing_is_expected_where_nothing_is_known() -> None:
    assert seconds_left(a_record()) is None
    assert seconds_left(of_runs(a_record(), 100, 100, 100, 100)) is None
    assert seconds_left(of_runs(a_record(), *[80] * 100)) is None  # it has outlasted them all


def test_half_of_those_that_lasted_longer_had_ended_by_then() -> None:
    record = of_runs(a_record(), 10, 20, 30, 100, 200, 300)
    assert seconds_left(record) == pytest.approx(200 - 90, abs=10)


def test_what_is_seen_to_be_open_is_expected_at_the_pace_of_what_was_done() -> None:
    done = [a_completed_step(n + 1, f"charge.{n + 1}") for n in range(6)]
    left = [an_attempt(f"charge.{n}", AttemptState.READY, id=n, step="charge") for n in range(10, 13)]
    record = a_record(journal=done, attempts=left)
    assert seconds_left(record) == 45  # six in ninety seconds, three are left
    assert seconds_left(a_record(journal=done[:4], attempts=left)) is None  # too few to tell
    assert seconds_left(of_runs(record, *[300] * 5)) == pytest.approx(210, abs=15)  # the later of both


def test_it_does_not_end_before_what_runs_usually_does() -> None:
    usual = Usual("charge", 0, Evidence(60, 900 * SECOND, 950 * SECOND, 960 * SECOND), 3_000 * SECOND)
    row = an_attempt(started_at=NOON, policy=msgspec.json.encode(Policy(usual=(usual,))))
    assert seconds_left(of_runs(a_record(attempts=[row]), *[100] * 9)) == 810


def test_it_does_not_end_before_the_time_for_which_it_waits() -> None:
    record = a_record(status=RunState.WAITING, wake_at=NOW + 3_600 * SECOND)
    assert seconds_left(of_runs(record, *[100] * 9)) == 3_600


@pytest.mark.parametrize("changes", [{"paused": True}, {"held": "quarantined: it died"}, {"begun_at": None}])
def test_who_cannot_go_on_has_no_expected_end(changes: Any) -> None:
    assert seconds_left(of_runs(a_record(**changes), *[300] * 9)) is None


def test_how_much_is_done_is_told_by_time_where_the_end_is_expected() -> None:
    record = of_runs(a_record(), *[180] * 9)
    assert status_of(record).percent == pytest.approx(50, abs=4)
    assert status_of(of_runs(a_record(after=0), *[180] * 9)).percent == 0


def test_else_by_the_calls_seen_so_far_each_by_how_far_it_says_it_is() -> None:
    half = msgspec.json.encode(Progress(47, 94))
    rows = [an_attempt("ship", id=2, progress=half), an_attempt("mail", AttemptState.READY, id=3)]
    assert status_of(a_record(journal=[a_completed_step(1)], attempts=rows)).percent == 50
    assert status_of(a_record(journal=[a_completed_step(1)])).percent == 99, "more may follow"
    assert status_of(a_record()).percent is None
    assert status_of(an_ended_run(RunState.COMPLETED, 1, journal=[a_completed_step(1)])).percent == 100
    assert status_of(a_failed_run(RunError("ValueError", "no"))).percent is None
