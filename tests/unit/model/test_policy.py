"""Retry as it is written, Policy as it is stored, and the pauses in between."""

from typing import Any

import msgspec
import pytest

from watchbill.errors import InvalidOptionError
from watchbill.model.policy import Policy, Retry, policy_of

SECOND = 1_000_000


def test_pauses_grow_up_to_the_cap() -> None:
    policy = policy_of(Retry(9, backoff="1s", factor=2, cap="10s"), "1h", own=False)
    assert [policy.delay_before(retry, 0.0) // SECOND for retry in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("retry", [1, 2, 3, 50, 1_000_000])
@pytest.mark.parametrize("chance", [0.0, 0.3, 0.999999])
def test_a_pause_is_never_shorter_than_asked_and_at_most_a_quarter_longer(retry: int, chance: float) -> None:
    policy = policy_of(Retry(3, backoff="700ms", factor=1.7, cap="4m"), "1h", own=False)
    plain = policy.delay_before(retry, 0.0)
    assert plain <= policy.delay_before(retry, chance) <= plain * 1.25 + 1


def test_a_factor_of_one_is_a_steady_pause() -> None:
    policy = policy_of(Retry(3, backoff="2s", factor=1), "1h", own=False)
    assert {policy.delay_before(retry, 0.0) for retry in range(1, 99)} == {2 * SECOND}


def test_the_largest_numbers_do_not_overflow() -> None:
    policy = policy_of(Retry(1_000_000, backoff="36500d", factor=1_000, cap="36500d"), "1h", own=False)
    assert policy.delay_before(1_000_000, 0.5) > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"times": -1}, "times"),
        ({"times": 1.5}, "times"),
        ({"times": True}, "times"),
        ({"times": 1, "factor": 0.5}, "factor"),
        ({"times": 1, "factor": "2"}, "factor"),
        ({"times": 1, "backoff": "soon"}, "backoff"),
        ({"times": 1, "cap": -1}, "cap"),
        ({"times": 1, "on": ("ValueError",)}, "on"),
        ({"times": 1, "never": (int,)}, "never"),
        ({"times": 1, "on": 3}, "on"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"Retry\({says}\)"):
        Retry(**options)


def test_a_policy_travels_as_json_and_knows_classes_by_name() -> None:
    policy = policy_of(Retry(2, on=(ConnectionError,), never=(InvalidOptionError,)), "10m", own=True)
    assert policy.on == ("ConnectionError",)
    assert policy.never == ("watchbill.errors.InvalidOptionError",)
    assert (policy.timeout, policy.own) == (600 * SECOND, True)
    assert msgspec.json.decode(msgspec.json.encode(policy), type=Policy) == policy


def test_an_old_row_without_a_policy_gets_the_defaults() -> None:
    assert msgspec.json.decode(b"{}", type=Policy) == policy_of(Retry(3), 3_600, own=False)


def test_one_kind_of_exception_stands_for_itself() -> None:
    assert Retry(3, on=ValueError).on == (ValueError,)  # type: ignore[arg-type]
    assert Retry(3, never=[KeyError]).never == (KeyError,)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match=r"Retry\(on\) must be exception classes"):
        Retry(3, on=int)  # type: ignore[arg-type]
