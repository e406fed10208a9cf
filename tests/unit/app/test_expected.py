"""When a run will probably have ended: by others of its kind, and by its own pace."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.cli.records import NOON, a_completed_step, a_record, an_attempt
from watchbill.app.report import status_of
from watchbill.clock import SECOND, to_datetime
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
