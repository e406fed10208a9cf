import base64

import pytest

from tests.keys import FIRST, SECOND
from watchbill import App, InvalidOptionError
from watchbill.model.keys import MAKE_ONE, given_keys, parse_keys

GOOD = base64.b64encode(b"x" * 32).decode()


def test_keys_are_ids_and_32_bytes_and_the_first_comes_first():
    keys = parse_keys(f" {FIRST} , {SECOND}", "keys")
    assert [(key.id, key.secret) for key in keys] == [("k1", b"\x01" * 32), ("k2", b"\x02" * 32)]


def test_base64_of_urls_is_read_too():
    secret = bytes(range(224, 256))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert parse_keys(f"k:{encode(secret).decode()}", "keys")[0].secret == secret


def test_the_shape_of_a_key_does_not_show_it():
    [key] = parse_keys(FIRST, "keys")
    assert repr(key) == "Key('k1', ***)"
    assert "\\x01" not in f"{(key,)} {[key]}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "got an empty one"),
        (" ", "got an empty one"),
        (7, "got int"),
        (GOOD, "key 1: there is no colon"),
        (f"k 1:{GOOD}", "key 1: its id must have 1-32 characters"),
        (f":{GOOD}", "key 1: its id must have"),
        (f"{'k' * 33}:{GOOD}", "key 1: its id must have"),
        (f"{FIRST},k2:not base64!", "key 2 \\('k2'\\): what follows its id is not base64"),
        (f"{FIRST},k2:c2hvcnQ=", "key 2 \\('k2'\\): it has 5 bytes, 32 are needed"),
        (f"{FIRST},", "key 2: there is no colon"),
        (f"{FIRST},{FIRST}", "the id 'k1' stands there twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_how_to_make_a_key(text, why):
    with pytest.raises(InvalidOptionError, match=why) as refused:
        parse_keys(text, "$WATCHBILL_KEYS")
    message = str(refused.value)
    assert message.startswith("$WATCHBILL_KEYS")
    assert MAKE_ONE in message


def test_nothing_of_a_key_shows_in_an_error():
    secret = base64.b64encode(b"0123456789abcdef").decode()
    for text in (f"k1:{secret}", secret, f"k1:{secret}!", f"{secret}:{secret}"):
        with pytest.raises(InvalidOptionError) as refused:
            parse_keys(text, "keys")
        assert secret not in str(refused.value)
        assert refused.value.__cause__ is None


def test_the_line_that_makes_a_key_makes_one(capsys):
    program = MAKE_ONE.removeprefix('python -c "').removesuffix('"')
    exec(program)
    assert [key.id for key in parse_keys(capsys.readouterr().out.strip(), "keys")] == ["k1"]


def test_an_app_takes_keys_else_those_of_the_environment(monkeypatch):
    monkeypatch.setenv("WATCHBILL_KEYS", FIRST)
    assert [key.id for key in App(keys=SECOND).keys or ()] == ["k2"]
    assert [key.id for key in App().keys or ()] == ["k1"]
    monkeypatch.setenv("WATCHBILL_KEYS", "")
    assert App().keys is None
    with pytest.raises(InvalidOptionError, match=r"App\(keys=\)"):
        given_keys("")
