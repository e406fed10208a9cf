"""Codec: seals bodies with AES-256-GCM and opens them. No chance is drawn: the nonce is made of the body and its place.

So a body that is written again is the same bytes again, which is how a store recognises the same start; and equal
bodies in different places do not look equal. From each key four others are derived: to encrypt, for nonces, to hide
checksums, and one whose beginning is in every body, so that a wrong key is told from damage. All by BLAKE2b with a key:
for the small bodies of most steps it takes a third of the time of HMAC-SHA-256.
"""

from hashlib import blake2b
from typing import Any

from watchbill.errors import InvalidOptionError
from watchbill.model.keys import Key, Keys
from watchbill.model.sealed import (
    CHECK_BYTES,
    NONCE_BYTES,
    SEALED,
    TAG_BYTES,
    is_sealed,
    key_id,
    unopened,
)


class Codec:
    """Seals with the first key, opens with all."""

    def __init__(self, keys: Keys) -> None:
        self._ciphers = {key.id: Cipher(key) for key in keys}
        self._first = self._ciphers[keys[0].id]

    def seal(self, body: bytes, place: bytes) -> bytes:
        """Seal a body; `place` is where it is stored. One that is sealed, and could not be opened, stays as it is."""
        return bytes(body) if body.startswith(SEALED) else self._first.seal(body, place)

    def open(self, body: bytes) -> bytes:
        """Open a body; one that was written without keys is open, one that cannot be opened says why."""
        if not body.startswith(SEALED):
            return body
        cipher = self._ciphers.get(key_id(body))
        if cipher is None:
            known = ", ".join(map(repr, self._ciphers))
            why = f"sealed with key {key_id(body)!r}, which is not among the keys here ({known}): add it behind them"
            return unopened(body, why)
        return cipher.open(body)

    def mask(self, number: int, sealed: bytes) -> int:
        """Hide, or show again, 32 bits that stand beside a sealed body; as they are when its key is not here.

        A checksum of arguments, in the open, would let people try which arguments it fits.
        """
        cipher = self._ciphers.get(key_id(sealed)) if is_sealed(sealed) else None
        return number if cipher is None else number ^ cipher.pad(sealed)


class Cipher:
    """One key, ready for use."""

    def __init__(self, key: Key) -> None:
        self._id = key.id
        self._nonces = _derived(key, b"nonce")
        self._pads = _derived(key, b"pad")
        self._aes = _aes(_derived(key, b"encrypt"))
        id = key.id.encode()
        self._header = SEALED + bytes([len(id)]) + id + _derived(key, b"check")[:CHECK_BYTES]

    def seal(self, body: bytes, place: bytes) -> bytes:
        """Seal a body."""
        place_and_body = b"%d:%s%s" % (len(place), place, body)
        nonce = blake2b(place_and_body, digest_size=NONCE_BYTES, key=self._nonces).digest()
        sealed: bytes = self._aes.encrypt(nonce, body, self._header)
        return self._header + nonce + sealed

    def open(self, body: bytes) -> bytes:
        """Open a body, or keep it with the reason."""
        begin = len(self._header)
        named = f"sealed with key {self._id!r}"
        if len(body) < begin + NONCE_BYTES + TAG_BYTES:
            return unopened(body, f"{named}, and cut off: restore it from a backup")
        if not body.startswith(self._header):
            why = f"{named}, and the key of that id here is another one: give the one that it was sealed with"
            return unopened(body, why)
        from cryptography.exceptions import InvalidTag

        try:
            opened: bytes = self._aes.decrypt(
                body[begin : begin + NONCE_BYTES], body[begin + NONCE_BYTES :], self._header
            )
        except InvalidTag:
            return unopened(body, f"{named}, and changed since: restore it from a backup")
        return opened

    def pad(self, sealed: bytes) -> int:
        """Give 32 bits that only this key gives, for this body alone."""
        begin = len(self._header)
        nonce = sealed[begin : begin + NONCE_BYTES]
        return int.from_bytes(blake2b(nonce, digest_size=4, key=self._pads).digest(), "big")


def _derived(key: Key, purpose: bytes) -> bytes:
    return blake2b(b"watchbill " + purpose, digest_size=32, key=key.secret).digest()


def _aes(secret: bytes) -> Any:  # noqa: ANN401 - of a package that is imported only for this
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as missing:
        raise InvalidOptionError("keys need the package cryptography: pip install 'watchbill[crypto]'") from missing
    return AESGCM(secret)
