"""Secrets as values: written only where they will be sealed, read by their types, and left out of what is shown."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypedDict

import pytest

from watchbill import InvalidValueError, Secret
from watchbill.flow.failures import failure_of, run_error_of
from watchbill.flow.readers import decoder
from watchbill.flow.signatures import Signature
from watchbill.flow.values import encode, encode_in_order

WORD = "open sesame"
WHAT = "the test's value"


@dataclass
class Login:
    user: str
    password: Secret[str]


class Options(TypedDict):
    pin: Secret[int]


def a_signature(function, *, seals: bool = True) -> Signature:
    signature = Signature(function, "step 'f'")
    signature.seals = seals
    return signature


@pytest.mark.parametrize("write", [encode, encode_in_order])
@pytest.mark.parametrize("value", [Secret(WORD), [1, {"a": Secret(WORD)}], Login("ann", Secret(WORD))])
def test_without_keys_a_secret_is_refused_with_the_way_to_make_one(write, value):
    with pytest.raises(InvalidValueError, match=r"is a Secret: .*App\(keys=\) or \$WATCHBILL_KEYS; make one: python"):
        write(value, what=WHAT)


def test_the_refusal_says_where_it_is_and_not_what():
    with pytest.raises(InvalidValueError, match=r"at \['login'\]\.password it is a Secret") as refused:
        encode({"login": Login("ann", Secret(WORD))}, what=WHAT)
    assert WORD not in str(refused.value)


@pytest.mark.parametrize(
    ("annotation", "value", "body"),
    [
        (Secret[str], Secret("a"), b'"a"'),
        (Secret[int] | None, Secret(1), b"1"),
        (Secret[str] | None, None, b"null"),
        (Secret[bytes], Secret(b"\x00"), b'"AA=="'),
        (Secret[datetime], Secret(datetime(2030, 1, 1, tzinfo=UTC)), b'"2030-01-01T00:00:00Z"'),
        (Secret[Login], Secret(Login("ann", Secret("x"))), b'{"user":"ann","password":"x"}'),
        (Secret[list[int]], Secret([1, 2]), b"[1,2]"),
        (Secret, Secret({"a": None}), b'{"a":null}'),
        (list[Login], [Login("ann", Secret("x"))], b'[{"user":"ann","password":"x"}]'),
        (Options, {"pin": Secret(7)}, b'{"pin":7}'),
        (dict[str, Secret[float]], {"a": Secret(0.5)}, b'{"a":0.5}'),
    ],
)
def test_with_keys_it_is_written_as_what_it_holds_and_read_by_its_type(annotation, value, body):
    assert encode(value, what=WHAT, sealed=True) == body
    assert decoder(annotation)(body) == value


def test_equal_secrets_are_equal_bytes():
    one, two = {"b": Secret({3, 1, 2}), "a": 1}, {"a": 1, "b": Secret({2, 3, 1})}
    assert encode_in_order(one, what=WHAT, sealed=True) == encode_in_order(two, what=WHAT, sealed=True)


def test_what_cannot_be_stored_inside_one_is_refused_without_being_shown():
    for value in (Secret(float("nan")), Secret({"a": object()}), [None, Secret([float("inf")])]):
        with pytest.raises(InvalidValueError, match=r"at .*\.reveal\(\)"):
            encode(value, what=WHAT, sealed=True)


def test_one_of_a_wrong_type_is_refused_without_being_shown():
    def f(word: Secret[Literal["yes", "no"]], n: Secret[int]) -> None: ...

    signature = a_signature(f)
    for args in ((Secret(WORD), Secret(1)), (Secret("yes"), Secret(WORD))):
        body = signature.encode_args(args, {})
        with pytest.raises(InvalidValueError, match="does not hold what") as refused:
            signature.decode_args(body)
        assert WORD not in str(refused.value)
        assert WORD not in repr(refused.value.__cause__)


def test_shown_arguments_have_stars_in_place_of_secrets():
    def f(login: Login, *, pin: Secret[int], n: int = 3) -> None: ...

    signature = a_signature(f)
    body = signature.encode_args((Login("ann", Secret(WORD)),), {"pin": Secret(1)})
    shown = signature.shown_args(body)
    assert shown == b'{"*":[{"user":"ann","password":"***"}],"n":3,"pin":"***"}'
    assert b"sesame" not in signature.shown_args(b'"open sesame"')


def test_without_keys_arguments_are_shown_as_they_are():
    def f(word: str) -> None: ...

    signature = a_signature(f, seals=False)
    assert signature.shown_args(b'["a"]') == b'["a"]'


def raised(error: BaseException, cause: BaseException) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def test_a_failure_does_not_show_what_is_hidden():
    error = raised(ValueError(f"bad token {WORD}"), KeyError(WORD))
    failure, run_error = failure_of(error, hidden=(WORD,)), run_error_of(error, (WORD,))
    assert failure.message == run_error.message == "bad token ***"
    assert "KeyError: '***'" in failure.traceback
    assert WORD not in failure.traceback + run_error.traceback


def test_a_cut_does_not_leave_half_of_what_is_hidden():
    for before in range(16 * 1024 - 20, 16 * 1024 + 5):
        failure = failure_of(ValueError("." * before + WORD), hidden=(WORD,))
        assert "open" not in failure.message
        assert "open" not in failure.traceback
