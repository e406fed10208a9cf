"""A rung says for people what is different on it."""

import pytest

from watchbill import Escalate, InvalidOptionError, Limit, Secret, Switch
from watchbill.flow.ladder import LONGEST_VALUE
from watchbill.flow.steps import Step


def fetch(place: str, token: Secret[str], *, region: str = "eu") -> str:
    return f"{place} of {region}"


def fetch_slowly(place: str, token: Secret[str], *, region: str = "eu") -> str:
    return f"{place} of {region}, slowly"


def said(*ways: Switch | Escalate) -> list[str]:
    return [rung.said for rung in Step(fetch, then=list(ways)).resolve().policy.ladder]


def test_other_arguments_another_step_and_other_capabilities_are_named() -> None:
    slowly = Step(fetch_slowly)
    assert said(Switch(region="us"), Switch(step=slowly, place="b"), Switch(needs={"gpu": 2}), Escalate("team")) == [
        "region='us'",
        "step 'fetch_slowly', place='b'",
        "needs gpu=2",
        "",
    ]


def test_secrets_are_not_shown_and_long_values_not_whole() -> None:
    [hidden, long] = said(Switch(token="hunter22"), Switch(region="x" * 500))
    assert hidden == "token=Secret(***)"
    assert len(long) == len("region=") + LONGEST_VALUE
    assert long.endswith("xxx...")


def behind_a_key(place: str, token: Secret[str], *, region: str = "eu") -> str:
    return place


def for_nobody(somewhere: str) -> str:
    return somewhere


def needs_step(step: int) -> int:
    return step


def postponed(place: "Later") -> str:  # type: ignore[name-defined] # noqa: F821 - it would stand further down
    return str(place)


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (3, "then of step 'fetch' must be a list of at most .* rungs, got 3"),
        ([Escalate()] * 100, "then of step 'fetch' must be a list of at most"),
        ([3], r"then of step 'fetch' must have Switch\(...\) and Escalate\(...\), got 3"),
        (Switch(step=3), r"Switch\(step=\) in then of step 'fetch' must be a step of this App, got 3"),
        (Switch(step=Step(for_nobody)), r"cannot switch to step 'for_nobody', .* it takes \('somewhere',\), not"),
        (Switch(step=Step(behind_a_key, limit=Limit("1/s", key="place"))), "the key of its limit is not known there"),
        (Switch(regoin="us"), "step 'fetch' has no parameter 'regoin'; did you mean 'region'"),
    ],
)
def test_ladder_that_cannot_be_climbed_is_refused_at_import(then, why) -> None:
    with pytest.raises(InvalidOptionError, match=why):
        Step(fetch, then=then)


def test_switch_that_changes_nothing_or_retries_oddly_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"Switch\(\) changes nothing"):
        Switch()
    with pytest.raises(InvalidOptionError, match=r"Switch\(retry=\) must be a number or Retry\(...\), got '3'"):
        Switch(region="us", retry="3")  # type: ignore[arg-type]


def test_step_whose_parameter_switch_takes_for_itself_has_no_ladder() -> None:
    with pytest.raises(InvalidOptionError, match="step 'needs_step' has a parameter 'step', and Switch takes"):
        Step(needs_step, then=Switch(needs="gpu"))


def test_ladder_of_a_step_whose_types_are_not_there_yet_is_read_later() -> None:
    step = Step(postponed, then=Switch(place="b"))
    assert len(step.ladder) == 1
