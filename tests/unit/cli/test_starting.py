"""What somebody types as JSON: read, or refused in words."""

import pytest

from watchbill.cli.starting import read_json
from watchbill.errors import InvalidOptionError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the policy is no JSON"),
        ('"half \udcff"', "the policy is no JSON"),
        ("[" * 100_000, "the policy cannot be read: lists and objects are too deep"),
        ('{"a":' * 100_000, "the policy cannot be read: lists and objects are too deep"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said) as refused:
        read_json(text, "the policy")
    assert len(str(refused.value)) < 500
