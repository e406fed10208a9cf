import sys

import pytest

from tests.keys import FIRST, SECOND, THIRD, WRONG
from watchbill import InvalidOptionError
from watchbill.model.keys import parse_keys
from watchbill.model.sealed import SEALED, Unopened, is_sealed, key_id, shown, why_sealed
from watchbill.store.bodies import all_fit, fits, referred
from watchbill.store.codec import Codec

BODIES = [b"null", b'"hunter22"', b"{}", b"[1,2,3]", b"x" * 300_000, b""]
PLACE = b"input default o-1"


def a_codec(*keys: str) -> Codec:
    return Codec(parse_keys(",".join(keys), "keys"))


@pytest.mark.parametrize("body", BODIES)
def test_what_is_sealed_is_opened_and_does_not_show(body):
    sealed = a_codec(FIRST).seal(body, PLACE)
    assert is_sealed(sealed)
    assert key_id(sealed) == "k1"
    assert a_codec(FIRST).open(sealed) == body
    assert not body or body not in sealed


def test_a_sealed_body_is_no_json_and_no_reference():
    sealed = a_codec(FIRST).seal(b"{}", PLACE)
    assert sealed[:1] not in b' \t\n\r{["-0123456789tfn'
    assert fits(sealed)
    assert all_fit([sealed, sealed])
    assert referred(sealed) is None


def test_the_same_body_in_the_same_place_is_the_same_bytes_and_elsewhere_others():
    codec = a_codec(FIRST)
    assert codec.seal(b"1", PLACE) == a_codec(FIRST, SECOND).seal(b"1", PLACE)
    assert len({codec.seal(b"1", PLACE), codec.seal(b"2", PLACE), codec.seal(b"1", b"other")}) == 3
    # Where the place ends and the body begins is part of what the nonce is made of.
    assert codec.seal(b"ab", b"p")[-40:] != codec.seal(b"b", b"pa")[-40:]


def test_keys_are_rotated_by_putting_a_new_one_in_front():
    before = a_codec(FIRST).seal(b"1", PLACE)
    after = a_codec(SECOND, FIRST)
    assert after.open(before) == b"1"
    assert key_id(after.seal(b"1", PLACE)) == "k2"
    assert a_codec(THIRD, SECOND, FIRST).open(after.seal(b"1", PLACE)) == b"1"


def test_what_was_written_without_keys_stays_readable():
    assert a_codec(FIRST).open(b'{"a":1}') == b'{"a":1}'
    assert a_codec(FIRST).open(b"") == b""


def test_a_missing_key_a_wrong_one_and_damage_are_told_apart():
    sealed = a_codec(FIRST).seal(b'"hunter22"', PLACE)
    damaged = sealed[:-1] + bytes([sealed[-1] ^ 1])
    assert "which is not among the keys here ('k2')" in why_sealed(a_codec(SECOND).open(sealed))
    assert "the key of that id here is another one" in why_sealed(a_codec(WRONG).open(sealed))
    assert "changed since" in why_sealed(a_codec(FIRST).open(damaged))
    assert "there are no keys here" in why_sealed(sealed)
    for codec in (a_codec(SECOND), a_codec(WRONG)):
        assert "sealed with key 'k1'" in why_sealed(codec.open(sealed))
    assert shown(sealed) == "(sealed with key 'k1')"


def test_every_changed_bit_is_noticed():
    codec = a_codec(FIRST)
    sealed = codec.seal(b'"hunter22"', PLACE)
    for place in range(1, len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        opened = codec.open(bytes(changed))
        assert isinstance(opened, Unopened), place
        assert opened == bytes(changed)
        assert why_sealed(opened)


def test_every_cut_is_noticed():
    codec = a_codec(FIRST)
    sealed = codec.seal(b"1", PLACE)
    for length in range(1, len(sealed)):
        opened = codec.open(sealed[:length])
        assert isinstance(opened, Unopened), length
        assert shown(opened)


def test_what_could_not_be_opened_goes_back_as_it_was():
    sealed = a_codec(FIRST).seal(b"1", PLACE)
    other = a_codec(SECOND)
    again = other.seal(other.open(sealed), PLACE)
    assert again == sealed
    assert type(again) is bytes


def test_a_checksum_is_hidden_beside_its_body_and_shown_again():
    codec = a_codec(FIRST)
    one, two = codec.seal(b"1", b"journal 1 1"), codec.seal(b"1", b"journal 1 2")
    assert codec.mask(7, one) != codec.mask(7, two)
    assert a_codec(SECOND, FIRST).mask(codec.mask(7, one), one) == 7
    assert 0 <= codec.mask(0xFFFFFFFF, one) <= 0xFFFFFFFF
    assert codec.mask(7, b"{}") == 7  # written without keys
    assert a_codec(SECOND).mask(7, one) == 7


def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(InvalidOptionError, match=r"pip install 'watchbill\[crypto\]'"):
        a_codec(FIRST)


def test_the_marker_is_none_of_the_store():
    assert SEALED == b"\x01"
