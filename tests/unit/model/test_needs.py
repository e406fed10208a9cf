"""How needs are written, and who meets them."""

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.model.needs import MOST, fits, free_amounts, meets, parse_needs, written


@pytest.mark.parametrize(
    ("value", "needs"),
    [
        (None, {}),
        ("", {}),
        ([], {}),
        ("gpu", {"gpu": 0}),
        ("gpu=2,eu", {"gpu": 2, "eu": 0}),
        (" gpu = 2 , eu ", {"gpu": 2, "eu": 0}),
        (["gpu", "eu"], {"gpu": 0, "eu": 0}),
        (("gpu=1", "gpu=1"), {"gpu": 1}),
        ({"gpu": 1, "eu": 0}, {"gpu": 1, "eu": 0}),
        ("eu-west.1_b", {"eu-west.1_b": 0}),
        ("g" * 63, {"g" * 63: 0}),
    ],
)
def test_needs_may_be_written_in_every_usual_way(value, needs):
    assert parse_needs(value) == needs


def test_the_same_needs_are_stored_as_the_same_words():
    assert written(parse_needs({"gpu": 1, "eu": 0})) == written(parse_needs("gpu=1,eu")) == ("eu", "gpu=1")


@pytest.mark.parametrize("value", ["gpu=2,eu", {"gpu": 1}, ["eu"], ""])
def test_what_was_stored_is_read_back(value):
    assert parse_needs(written(parse_needs(value))) == parse_needs(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("GPU", "did you mean 'gpu'?"),
        ("big gpu", "did you mean 'big-gpu'?"),
        ("-gpu", "did you mean 'gpu'?"),
        ("gpu,,eu", "needs= has ''"),
        ("g" * 64, "up to 63"),
        ("gpu=0", "as in 'gpu=1'"),
        ("gpu=two", "as in 'gpu=1'"),
        ("gpu=-1", "as in 'gpu=1'"),
        ("gpu=1.5", "as in 'gpu=1'"),
        ("gpu,gpu=2", "names 'gpu' twice"),
        ({"gpu": -1}, "asks for -1 of 'gpu'"),
        ({"gpu": True}, "asks for True of 'gpu'"),
        ({"gpu": MOST + 1}, "a whole number"),
        (f"gpu={MOST + 1}", "a whole number"),
        ({1: 1}, "needs= has 1"),
        ([1], "needs= has 1"),
        (7, "needs= cannot be 7"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_could_be(value, said):
    with pytest.raises(InvalidOptionError) as refused:
        parse_needs(value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("have", "asked", "met"),
    [
        ("", "", True),
        ("gpu", "", True),
        ("", "gpu", False),
        ("gpu", "gpu", True),
        ("gpu=2", "gpu", True),
        ("gpu=2", "gpu=2", True),
        ("gpu=1", "gpu=2", False),
        ("gpu", "gpu=1", False),
        ("eu,gpu=2", "eu,gpu=1", True),
        ("gpu=2", "eu,gpu=1", False),
    ],
)
def test_who_has_all_that_is_asked_for_meets_it(have, asked, met):
    assert meets(parse_needs(have), parse_needs(asked)) is met


@pytest.mark.parametrize(
    ("free", "asked", "number"),
    [
        ("gpu=2", "", None),
        ("gpu=2", "gpu", None),
        ("gpu=5", "gpu=2", 2),
        ("gpu=5,disk=3", "gpu=2,disk=3", 1),
        ("gpu=1", "gpu=2", 0),
        ("eu", "gpu=1", 0),
        ("gpu=5", "gpu=2,eu", 0),
    ],
)
def test_as_many_fit_as_the_scarcest_allows(free, asked, number):
    assert fits(parse_needs(free), parse_needs(asked)) == number


def test_of_what_is_used_up_nothing_fits_any_more():
    assert fits({"gpu": 0}, {"gpu": 1}) == 0
    assert fits({"gpu": 0}, {"gpu": 0}) is None


def test_what_others_hold_and_this_one_does_not_have_takes_nothing_from_it():
    assert free_amounts(parse_needs("gpu=2"), [("gpu=1", "disk=5"), ("eu",)]) == {"gpu": 1}
    assert free_amounts(parse_needs("gpu=2"), [("gpu=5",)]) == {"gpu": 0}
