"""A rung says for people what is different on it."""

from watchbill import Escalate, Secret, Switch
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
