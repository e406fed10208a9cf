"""Durations as people write them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.model.duration import to_instant, to_micros

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        ("1h30m", 5_400 * SECOND),
        ("250ms", SECOND // 4),
        ("1.5s", 1_500_000),
        (" 1 h 30 m ", 5_400 * SECOND),
        ("1w2d3h4m5s6ms", ((9 * 24 + 3) * 3_600 + 4 * 60 + 5) * SECOND + 6_000),
        ("0s", 0),
        (2, 2 * SECOND),
        (0.25, SECOND // 4),
        (timedelta(days=1, microseconds=1), 86_400 * SECOND + 1),
    ],
)
def test_ways_to_write_a_duration(written: Any, micros: int) -> None:
    assert to_micros(written, what="it") == micros


@pytest.mark.parametrize(
    "written", ["", "1", "1 hour", "h", "-1s", "1s!", "1s2", "1e3s", True, None, [1], float("nan"), float("inf")]
)
def test_what_is_no_duration_is_refused_by_its_name(written: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^the pause must"):
        to_micros(written, what="the pause")


def test_bounds_are_told() -> None:
    with pytest.raises(InvalidOptionError, match="it must be zero or more and at most 100 years, got -1"):
        to_micros(-1, what="it")
    with pytest.raises(InvalidOptionError, match="it must be above zero and at most 100 years, got '0s'"):
        to_micros("0s", what="it", at_least=1)
    with pytest.raises(InvalidOptionError, match="at most 100 years"):
        to_micros("99999w", what="it")


def test_time_is_a_datetime_with_a_zone() -> None:
    assert to_instant(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), what="the time") == SECOND
    with pytest.raises(InvalidOptionError, match="the time must have a time zone"):
        to_instant(datetime(1970, 1, 1), what="the time")
    with pytest.raises(InvalidOptionError, match="the time must be a datetime with a time zone, got '1970'"):
        to_instant("1970", what="the time")  # type: ignore[arg-type]
