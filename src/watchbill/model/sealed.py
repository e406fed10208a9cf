"""Sealed: how a body looks that a key has sealed, for everybody who may meet one without that key.

A sealed body is: x'01', the length of the key's id, the id, a check of the key, a nonce, what was encrypted, its tag.
JSON never begins with x'01', and no reference to a blob does.
"""

from typing import Final

SEALED: Final = b"\x01"
CHECK_BYTES: Final = 4  # of the key: they tell a wrong key from damaged bytes
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16


class Unopened(bytes):
    """A sealed body that could not be opened, and why; whoever writes it back writes it as it was."""

    why: str


class Opened(bytes):
    """A body that was sealed; whoever names it as evidence names it as it is stored."""

    sealed: bytes


def opened(body: bytes, sealed: bytes) -> Opened:
    """Keep with an opened body how it is stored."""
    kept = Opened(body)
    kept.sealed = sealed
    return kept


def as_stored(body: bytes | None) -> bytes | None:
    """Give a body as its row has it."""
    return body.sealed if isinstance(body, Opened) else body


def unopened(body: bytes, why: str) -> Unopened:
    """Keep a body that cannot be opened, with the reason."""
    kept = Unopened(body)
    kept.why = why
    return kept


def is_sealed(body: bytes | None) -> bool:
    """Say whether a body is sealed."""
    return body is not None and body.startswith(SEALED)


def key_id(body: bytes) -> str:
    """Name the key that a body is sealed with."""
    return body[2 : 2 + body[1]].decode("ascii", "replace") if len(body) > 1 else "?"


def shown(body: bytes) -> str:
    """Say what is shown in place of a sealed body; and why, when somebody has tried to open it."""
    return f"({body.why})" if isinstance(body, Unopened) else f"(sealed with key {key_id(body)!r})"


def why_sealed(body: bytes) -> str:
    """Say why a body is met sealed, and what to do."""
    if isinstance(body, Unopened):
        return body.why
    return f"sealed with key {key_id(body)!r}, and there are no keys here: give it by App(keys=) or $WATCHBILL_KEYS"
