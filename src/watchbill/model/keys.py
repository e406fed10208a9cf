"""Keys: with which bodies are sealed and opened, as people give them: `id:base64`, comma-separated, the first seals."""

import base64
import os
import re
from typing import Final, NamedTuple

from watchbill.errors import InvalidOptionError

VARIABLE: Final = "WATCHBILL_KEYS"
KEY_BYTES: Final = 32
MAKE_ONE: Final = (
    "python -c \"import base64, secrets; print('k1:' + base64.b64encode(secrets.token_bytes(32)).decode())\""
)
_ID: Final = r"[A-Za-z0-9._-]{1,32}"


class Key(NamedTuple):
    """A key and the name by which bodies say that they need it."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id!r}, ***)"


Keys = tuple[Key, ...]  # the first seals, all open


def given_keys(keys: object = None) -> Keys | None:
    """Give the keys that an App was given, else those of the environment; an empty variable is one that was unset."""
    if keys is not None:
        return parse_keys(keys, "App(keys=)")
    text = os.environ.get(VARIABLE)
    return parse_keys(text, f"${VARIABLE}") if text else None


def parse_keys(text: object, source: str) -> Keys:
    """Read keys. What is refused is named by its place: nothing of a key may show in an error."""
    if not isinstance(text, str) or not text.strip():
        raise _refused(source, f"they are text, got {'an empty one' if isinstance(text, str) else type(text).__name__}")
    keys = tuple(_parse_key(item.strip(), f"{source}, key {n}") for n, item in enumerate(text.split(","), start=1))
    ids = [key.id for key in keys]
    twice = next((id for id in ids if ids.count(id) > 1), None)
    if twice is not None:
        raise _refused(source, f"the id {twice!r} stands there twice")
    return keys


def _parse_key(item: str, place: str) -> Key:
    id, colon, encoded = item.partition(":")
    if not colon:
        raise _refused(place, "there is no colon between its id and its base64")
    if not re.fullmatch(_ID, id):
        raise _refused(place, "its id must have 1-32 characters of A-Z a-z 0-9 . _ -")
    try:
        secret = base64.b64decode(encoded.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        raise _refused(f"{place} ({id!r})", "what follows its id is not base64") from None
    if len(secret) != KEY_BYTES:
        raise _refused(f"{place} ({id!r})", f"it has {len(secret)} bytes, {KEY_BYTES} are needed")
    return Key(id, secret)


def _refused(place: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"{place}: {why}; keys are id:base64 of 32 bytes, comma-separated. Make one: {MAKE_ONE}")
