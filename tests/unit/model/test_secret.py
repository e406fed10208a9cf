import copy
import logging
from dataclasses import dataclass

import msgspec
import pydantic
import pytest

from watchbill import Secret
from watchbill.model.secret import REDACTED, redacted, secret_texts

WORD = "open sesame"


@dataclass
class Login:
    user: str
    password: Secret[str]


class Box(msgspec.Struct):
    inside: object


class Model(pydantic.BaseModel):
    inside: object


def test_only_reveal_gives_the_value():
    secret = Secret(WORD)
    assert secret.reveal() == WORD
    shown = f"{secret} {secret!r} {secret!s} {secret:>20} {[secret]} {Login('ann', secret)}"
    assert WORD not in shown
    assert shown.count("Secret(***)") == 6


def test_logging_does_not_show_it(caplog):
    with caplog.at_level(logging.INFO):
        logging.getLogger("app").info("logging in with %s and %r", Secret(WORD), Login("ann", Secret(WORD)))
    assert WORD not in caplog.text
    assert "Secret(***)" in caplog.text


def test_equal_ones_are_equal_and_nothing_else_is():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert copy.deepcopy(Secret(["a"])) == Secret(["a"])


@pytest.mark.parametrize(
    "value",
    [
        Secret(WORD),
        [Secret(WORD)],
        ({"a": (Secret(WORD),)},),
        Login("ann", Secret(WORD)),
        Box(Box([Secret(WORD)])),
        Model(inside=Secret(WORD)),
        Secret({"token": WORD}),
        Secret(Box(WORD)),
    ],
)
def test_its_texts_are_found_wherever_it_is(value):
    assert WORD in secret_texts(value)
    assert not {"ann", "token"} & set(secret_texts(value))


def test_all_forms_in_which_code_writes_a_value_are_found():
    quoted = 'it\'s "quoted"\n'
    assert "quoted" not in redacted(repr(quoted), secret_texts(Secret(quoted)))
    assert redacted("the pin is 480213", secret_texts(Secret(480213))) == "the pin is ***"
    raw = b"\x00\xffraw bytes"
    texts = secret_texts(Secret(raw))
    assert redacted(repr(raw), texts) == "b'***'"
    assert redacted(raw.hex(), texts) == "***"


def test_a_text_that_holds_a_longer_one_is_hidden_whole():
    assert redacted("abcdefgh", secret_texts([Secret("abcd"), Secret("abcdefgh")])) == "***"


def test_what_is_too_short_to_be_cut_out_hides_the_whole_message():
    assert redacted("wrong pin 12", secret_texts(Secret("12"))) == REDACTED
    assert redacted("wrong pin", secret_texts(Secret("12"))) == "wrong pin"


def test_nothing_is_not_hidden():
    assert secret_texts([Secret(None), Secret(True), Secret(""), "a", Secret]) == ()


class Deep:
    """A value that holds itself."""

    def __init__(self) -> None:
        self.inside = self

    def __str__(self) -> str:
        return "bottomless"


def test_value_without_an_end_is_searched_as_far_as_it_may_be():
    endless: list[object] = [Secret(WORD)]
    endless.append(endless)
    assert WORD in secret_texts(endless)
    assert "bottomless" in secret_texts(Secret(Deep()))
