"""Limit: how many attempts of a step may start in a time, or run at once, in the whole fleet."""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError, InvalidValueError
from watchbill.model.duration import UNITS, to_micros

MOST: Final = 1_000_000  # at once, or in a time: beyond it nothing is limited
LONGEST_KEY: Final = 200  # characters: it is part of the gate's name, which is indexed, and read by people
HIDDEN_DIGITS: Final = 32  # of a key that is not told: 128 bits, no two keys meet by chance
LIMIT: Final = "limit:"  # how the names of the gates of limits begin
_RATE: Final = r"(\d+)\s*/\s*(.+)"


class Limit(msgspec.Struct, frozen=True):
    """At most so many starts in a time (`Limit("10/s")`), or attempts at once (`Limit(at_once=5)`), or both.

    With a key each value of it has a limit of its own: the name of a parameter, or a function of the arguments.
    """

    rate: str | None = None
    at_once: int | None = None
    key: str | Callable[..., object] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.rate is None and self.at_once is None:
            raise InvalidOptionError("Limit must say how many: Limit('10/s'), Limit(at_once=5), or both")
        if self.at_once is not None and (
            isinstance(self.at_once, bool) or not isinstance(self.at_once, int) or not 1 <= self.at_once <= MOST
        ):
            raise InvalidOptionError(f"Limit(at_once) must be a whole number from 1 to {MOST:,}, got {self.at_once!r}")
        if self.key is not None and not isinstance(self.key, str) and not callable(self.key):
            raise InvalidOptionError(
                f"Limit(key) must be the name of a parameter or a function of the arguments, got {self.key!r}"
            )
        self.allowance()

    def allowance(self) -> "Allowance":
        """Give the numbers alone."""
        if self.rate is None:
            return Allowance(self.at_once)
        starts, per = _read_rate(self.rate)
        return Allowance(self.at_once, starts, per)


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """The numbers of a limit, as they travel with a row: who leases it needs no code to keep to them."""

    at_once: int | None = None
    starts: int | None = None
    per: Micros | None = None

    @property
    def rate(self) -> float | None:
        """How many may start in a second."""
        return None if self.starts is None or self.per is None else self.starts * SECOND / self.per

    @property
    def burst(self) -> float:
        """How many may start together after a pause: one second's worth, at least one."""
        return max(1.0, self.rate or 0.0)

    @property
    def rate_text(self) -> str | None:
        """The rate as its author writes it."""
        if self.starts is None or self.per is None:
            return None
        unit = max((name for name in UNITS if self.per % UNITS[name] == 0), key=UNITS.__getitem__, default=None)
        if unit is None:
            return f"{self.starts}/{self.per / SECOND:g}s"
        return f"{self.starts}/{'' if self.per == UNITS[unit] else self.per // UNITS[unit]}{unit}"


def gate_name(step: str, key: str | None) -> str:
    """Name the gate of a step's limit, or of one value of its key."""
    return f"{LIMIT}{step}" if key is None else f"{LIMIT}{step}:{key}"


def hidden_key(gate: str, step: str) -> str:
    """Name a gate without telling its key: equal keys have equal names, and nobody reads a key from one."""
    beginning = f"{LIMIT}{step}:"
    if not gate.startswith(beginning):
        return gate
    import hashlib

    return f"{beginning}#{hashlib.sha256(gate.encode()).hexdigest()[:HIDDEN_DIGITS]}"


def key_text(value: object, owner: str) -> str:
    """Give the value of a key as text; it must be short, and something that every store can hold and show."""
    text = str(value)
    if len(text) > LONGEST_KEY or not text.isprintable():
        raise InvalidValueError(
            f"the key of the limit of {owner} must be printable text of at most {LONGEST_KEY} characters, got"
            f" {text!r:.240}"
        )
    return text


def _read_rate(rate: object) -> tuple[int, Micros]:
    match = re.fullmatch(_RATE, rate) if isinstance(rate, str) else None
    if match is None:
        raise InvalidOptionError(f"Limit(rate) must look like '10/s', '100/m' or '5/10s', got {rate!r}")
    starts, span = int(match[1]), match[2]
    per = to_micros(f"1{span}" if span in UNITS else span, what=f"the time in Limit({rate!r})", at_least=1)
    if not 1 <= starts <= MOST:
        raise InvalidOptionError(f"Limit({rate!r}) must let 1 to {MOST:,} start in its time")
    return starts, per
