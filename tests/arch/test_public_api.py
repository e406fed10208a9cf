"""What `watchbill` says it offers is in order and is there."""

from types import SimpleNamespace

import pytest

import watchbill
from tests.arch import rules


def test_the_public_names_are_sorted_and_importable():
    assert rules.unsorted_or_missing(watchbill.__all__, watchbill) == []


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"], ["a", "missing"]])
def test_a_planted_bad_list_is_caught(names):
    assert rules.unsorted_or_missing(names, SimpleNamespace(a=1, b=2))
