"""What operators may change of a live policy, and how it is said."""

import pytest

from watchbill.clock import SECOND
from watchbill.errors import InvalidOptionError
from watchbill.model.override import Changes, Override, override_words, span_words
from watchbill.model.policies import (
    Policies,
    PolicyOrder,
    PolicyRow,
    changes_words,
    check_step,
    encode_changes,
    merged,
    read_changes,
    shown_policies,
)


def test_options_are_named_and_written_as_steps_have_them():
    changes = read_changes({"timeout": "10m", "stall": 30, "retries": 6, "backoff": "1s", "factor": 3, "cap": "1h"})
    assert changes == Changes(600 * SECOND, 30 * SECOND, 6, SECOND, 3.0, 3_600 * SECOND)
    assert read_changes({"retry": 2}) == Changes(retries=2)
    assert read_changes({"retry": {"times": 2, "backoff": "5s"}}) == Changes(retries=2, backoff=5 * SECOND)
    assert read_changes({"stall": None, "learned": "enforce"}) == Changes(stall=None, learned="enforce")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "allowed are timeout, stall, retries"),
        ([1], "allowed are timeout, stall, retries"),
        ({"tiemout": "1s"}, "a live policy has no option 'tiemout': allowed are timeout"),
        ({"needs": "gpu"}, "a live policy has no option 'needs'"),
        ({"timeout": 0}, "timeout must be above zero"),
        ({"timeout": None}, "timeout must be a duration above zero"),
        ({"timeout": "soon"}, "timeout must look like '1h30m'"),
        ({"stall": "0s"}, "stall must be above zero"),
        ({"retries": -1}, "retries must be a whole number from 0 to 1,000,000, got -1"),
        ({"retries": True}, "retries must be a whole number"),
        ({"retries": 1.5}, "retries must be a whole number"),
        ({"retry": {"on": []}}, "retry is a number, or an object with times, backoff, factor, cap"),
        ({"retry": 1, "retries": 2}, "retries is given twice"),
        ({"factor": 0.5}, "factor must be a number from 1"),
        ({"backoff": -1}, "backoff must be zero or more"),
        ({"learned": "maybe"}, "learned must be 'observe', 'suggest' or 'enforce', or an object"),
        ({"learned": {}}, "learned must be 'observe', 'suggest' or 'enforce', or an object"),
        ({"learned": {"timeout": "maybe"}}, "an object with one of them for 'timeout', 'stall', or both, got"),
        ({"learned": {"tiemout": "enforce"}}, "an object with one of them for 'timeout', 'stall', or both, got"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_the_name_of_its_option(given, said):
    with pytest.raises(InvalidOptionError) as refused:
        read_changes(given)
    assert said in str(refused.value)


def test_each_option_is_as_it_was_said_last_and_a_clear_leaves_none():
    first = merged(None, PolicyOrder("s", "ann", "slow", Changes(timeout=SECOND, retries=1)))
    second = merged(first, PolicyOrder("s", "bob", "slower", Changes(timeout=2 * SECOND, stall=None)))
    assert second == Changes(timeout=2 * SECOND, stall=None, retries=1)
    assert merged(second, PolicyOrder("s", "bob", "over")) == Changes()


def test_what_is_changed_is_shown_by_step_and_what_was_cleared_is_not():
    at = 1_800_000_000 * SECOND
    rows = [
        PolicyRow("b", 3, "ann", "slow", at, encode_changes(Changes(timeout=600 * SECOND, stall=None))),
        PolicyRow("a", 4, "bob", "over", at, encode_changes(Changes())),
    ]
    policies = Policies(tuple(rows))
    assert policies.revision == 4
    [shown] = shown_policies(policies)
    assert (shown.step, shown.words, shown.changes) == (
        "b",
        "timeout 10m, stall none",
        {"timeout": 600.0, "stall": None},
    )


def test_a_change_says_what_the_code_says_who_when_and_why():
    changes, code = Changes(timeout=600 * SECOND, factor=1.5), Changes(timeout=3_600 * SECOND, factor=2.0)
    said = override_words(Override("ann", "slow disks", 1_800_000_000 * SECOND, changes, code))
    assert said == "timeout 10m instead of 1h, factor 1.5 instead of 2, by ann at 2027-01-15 08:00:00Z (slow disks)"
    assert changes_words(changes) == "timeout 10m, factor 1.5"


@pytest.mark.parametrize(
    ("span", "words"),
    [(0, "0s"), (250_000, "250ms"), (90 * SECOND, "1m30s"), (90_061 * SECOND, "1d1h1m1s"), (1_500, "1.5ms")],
)
def test_durations_are_written_as_they_are_read(span, words):
    assert span_words(span) == words


@pytest.mark.parametrize("step", ["", 3, "a\nb", "x" * 1_000])
def test_step_whose_policy_is_changed_is_named(step):
    with pytest.raises(InvalidOptionError, match="a step is named by 1-"):
        check_step(step)
