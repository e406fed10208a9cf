"""What people decide: what is refused, and at which pace it is done."""

from typing import Any

import pytest

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError, InvalidValueError
from watchbill.model.resolution import (
    Action,
    Resolution,
    check_action,
    check_args,
    check_per_second,
    check_reason,
    paced,
    read_resolution,
)


@pytest.mark.parametrize("action", ["", "explode", None, 5, "Retry"])
def test_what_nobody_can_decide_is_refused(action: Any) -> None:
    with pytest.raises(InvalidOptionError, match="resume, retry, provide, skip, undo, abort"):
        check_action(action)


@pytest.mark.parametrize("reason", ["", "   ", None, 5, "x" * 2_001])
def test_a_reason_says_something(reason: Any) -> None:
    with pytest.raises(InvalidOptionError, match="reason is text"):
        check_reason(reason)


def test_arguments_are_by_name_and_for_a_retry() -> None:
    assert check_args(Action.RETRY, None) == {}
    assert check_args(Action.RETRY, {"codec": "safe"}) == {"codec": "safe"}
    with pytest.raises(InvalidOptionError, match="for retry"):
        check_args(Action.SKIP, {"codec": "safe"})
    for odd in (["safe"], "safe", {1: 2}):
        with pytest.raises(InvalidValueError, match="by name"):
            check_args(Action.RETRY, odd)


@pytest.mark.parametrize("number", [0, -1, 10_001, True, "5", 1.5])
def test_a_pace_is_a_number(number: Any) -> None:
    with pytest.raises(InvalidOptionError, match="per_second"):
        check_per_second(number)


@pytest.mark.parametrize("looks", [1, 7, 1_000])
def test_in_no_second_more_go_on_than_were_asked_for(looks: int) -> None:
    fed_at: Micros | None = None
    told: list[tuple[Micros, int]] = []
    for look in range(10 * looks):
        now = look * SECOND // looks
        count, wait = paced(50, fed_at, now)
        assert 0 < wait <= SECOND
        if count:
            told.append((now, count))
            fed_at = now
    assert sum(count for _, count in told) == 10 * 50
    for begin, _ in told:
        assert sum(count for at, count in told if begin <= at < begin + SECOND) <= 50


def test_a_clock_that_went_back_holds_nobody_up() -> None:
    assert paced(50, 10 * SECOND, 3 * SECOND) == (50, SECOND)


def test_what_was_decided_is_read_as_it_was_written() -> None:
    import msgspec

    said = Resolution(Action.RETRY, "a better codec", args={"codec": "safe"})
    assert read_resolution(msgspec.json.encode(said)) == said
