"""A limited step: each call of it names the gate that it must pass."""

from collections.abc import Awaitable, Callable

import pytest

from tests.unit.flow.runs import commanded, result, runs
from watchbill import InvalidOptionError, Limit, StepFailed
from watchbill.clock import SECOND
from watchbill.flow.steps import Step
from watchbill.model.limit import Allowance


def charge(customer: str, cents: int = 1) -> str:
    return f"{customer} {cents}"


def the_gate(ask: Callable[[], Awaitable[str]]) -> str:
    async def workflow() -> str:
        return await ask()

    with runs() as begin:
        [call] = begin(workflow).take_commands()
        gate: str = call.options.gate
        return gate


def test_a_limited_call_names_the_gate_that_it_must_pass():
    assert the_gate(lambda: Step(charge, limit=Limit("10/s"))("ann")) == "limit:charge"
    assert the_gate(lambda: Step(charge, limit=Limit(at_once=2, key="customer"))("ann")) == "limit:charge:ann"
    assert the_gate(lambda: Step(charge, limit=Limit(at_once=2, key="cents"))("ann")) == "limit:charge:1"
    by_both = Limit(at_once=2, key=lambda customer, cents: f"{customer}-{cents}")
    assert the_gate(lambda: Step(charge, limit=by_both)("ann", cents=5)) == "limit:charge:ann-5"


def test_options_of_a_call_do_not_take_its_gate_away():
    step = Step(charge, limit=Limit(at_once=2, key="customer"))
    assert the_gate(lambda: step.options(timeout="2h")("ann")) == "limit:charge:ann"


def test_the_numbers_travel_with_the_policy_and_a_limited_step_has_its_row_first():
    step = Step(charge, limit=Limit("10/s", at_once=2))
    assert step.resolve().policy.limit == Allowance(2, 10, SECOND)
    assert step.needs_row
    assert not step.resolve().policy.own
    assert Step(charge).resolve().policy.limit is None


@pytest.mark.parametrize(
    ("key", "why"), [(lambda *_: 1 / 0, "ZeroDivisionError"), (lambda *_: "x" * 201, "InvalidValueError")]
)
def test_a_key_that_cannot_be_told_fails_the_call(key, why):
    step = Step(charge, limit=Limit(at_once=2, key=key))

    async def workflow() -> str:
        try:
            return await step("ann")
        except StepFailed as failed:
            return failed.type

    with runs() as begin:
        loop = begin(workflow)
        assert commanded(loop) == []
        assert why in result(loop)


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("10/s", r"limit of step 'charge' must be Limit\(\.\.\.\)"),
        (Limit("10/s", key="custmer"), r"names no parameter: 'custmer'; did you mean 'customer'"),
    ],
)
def test_a_limit_is_checked_at_import(limit, why):
    with pytest.raises(InvalidOptionError, match=why):
        Step(charge, limit=limit)
