"""Limits as authors write them, and as they travel."""

import pytest

from watchbill import InvalidOptionError, InvalidValueError, Limit
from watchbill.clock import SECOND
from watchbill.model.limit import Allowance, gate_name, hidden_key, key_text


@pytest.mark.parametrize(
    ("limit", "allowance"),
    [
        (Limit("10/s"), Allowance(None, 10, SECOND)),
        (Limit("100/m"), Allowance(None, 100, 60 * SECOND)),
        (Limit("5/10s"), Allowance(None, 5, 10 * SECOND)),
        (Limit("5/0.5s"), Allowance(None, 5, SECOND // 2)),
        (Limit("1 / 1h30m"), Allowance(None, 1, 5_400 * SECOND)),
        (Limit(at_once=5), Allowance(5)),
        (Limit("2/s", at_once=3, key="customer"), Allowance(3, 2, SECOND)),
    ],
)
def test_a_limit_is_a_rate_or_a_number_at_once_or_both(limit, allowance):
    assert limit.allowance() == allowance


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, r"must say how many"),
        ({"rate": "10"}, r"must look like '10/s'"),
        ({"rate": 10}, r"must look like '10/s'"),
        ({"rate": "ten/s"}, r"must look like '10/s'"),
        ({"rate": "10/fortnight"}, r"the time in Limit\('10/fortnight'\)"),
        ({"rate": "10/0s"}, r"above zero"),
        ({"rate": "5/.5s"}, r"the time in Limit\('5/.5s'\) must look like"),
        ({"rate": "10/h30m"}, r"the time in Limit\('10/h30m'\) must look like"),
        ({"rate": "0/s"}, r"must let 1 to 1,000,000 start"),
        ({"at_once": 0}, r"at_once\) must be a whole number"),
        ({"at_once": True}, r"at_once\) must be a whole number"),
        ({"at_once": 2.5}, r"at_once\) must be a whole number"),
        ({"at_once": 1, "key": 7}, r"name of a parameter or a function"),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(given, why):
    with pytest.raises(InvalidOptionError, match=why):
        Limit(**given)


@pytest.mark.parametrize(
    ("rate", "burst"), [("10/s", 10), ("600/m", 10), ("100/m", 100 / 60), ("5/10s", 1), ("1/d", 1)]
)
def test_a_burst_is_a_seconds_worth_and_at_least_one(rate, burst):
    assert Limit(rate).allowance().burst == pytest.approx(burst)


@pytest.mark.parametrize("rate", ["10/s", "100/m", "5/10s", "1/d", "7/90m", "3/250ms", "1/w"])
def test_a_rate_is_shown_as_it_was_written(rate):
    assert Limit(rate).allowance().rate_text == rate


def test_a_rate_in_odd_units_is_shown_in_seconds():
    assert Allowance(None, 3, 1_500).rate_text == "3/0.0015s"
    assert Allowance(5).rate_text is None


def test_a_gate_is_named_after_its_step_and_key():
    assert gate_name("charge", None) == "limit:charge"
    assert gate_name("charge", key_text(7, "step 'charge'")) == "limit:charge:7"


@pytest.mark.parametrize("value", ["x" * 201, "two\nlines", "\x00"])
def test_a_key_that_no_store_could_hold_or_show_is_refused(value):
    with pytest.raises(InvalidValueError, match="the key of the limit of step 'charge' must be printable text"):
        key_text(value, "step 'charge'")


def test_key_of_a_limit_is_hidden_and_equal_keys_stay_equal():
    assert hidden_key("limit:charge", "charge") == "limit:charge"
    hidden = hidden_key("limit:charge:ann", "charge")
    assert hidden == hidden_key("limit:charge:ann", "charge") != hidden_key("limit:charge:bob", "charge")
    assert hidden.startswith("limit:charge:#")
    assert "ann" not in hidden
