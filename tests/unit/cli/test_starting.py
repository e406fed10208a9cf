"""What somebody types as JSON: read, or refused in words."""

import pytest

from watchbill.cli.starting import read_argument, read_json
from watchbill.errors import InvalidOptionError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the policy is not valid JSON"),
        ('"half \udcff"', "the policy is not valid JSON"),
        ("[" * 100_000, "the policy cannot be read: lists and objects are too deep"),
        ('{"a":' * 100_000, "the policy cannot be read: lists and objects are too deep"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said) as refused:
        read_json(text, "the policy")
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("text", "value"),
    [("x", "x"), ('"x"', "x"), ("7", "7"), ("null", "null"), ("two words", "two words"), ("{", "{")],
)
def test_text_needs_no_quotes_for_a_parameter_that_is_text(text: str, value: str) -> None:
    assert read_argument(text, "argument 1", is_text=True) == value


def test_argument_that_is_no_text_is_json() -> None:
    assert read_argument("7", "argument 1", is_text=False) == 7
    with pytest.raises(InvalidOptionError, match="not valid JSON"):
        read_argument("seven", "argument 1", is_text=False)
