"""Probe: what the outside world says when it is asked whether an attempt took effect."""

from typing import Any

import msgspec


class Done(msgspec.Struct, frozen=True):
    """It took effect, and this is its result."""

    result: Any = None


class NotDone(msgspec.Struct, frozen=True):
    """It did not take effect: it may be tried again."""


class Unknown(msgspec.Struct, frozen=True):
    """Nobody can tell: a person has to decide."""

    why: str = ""
