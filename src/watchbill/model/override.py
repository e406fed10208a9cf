"""Override: what an operator has changed of a policy, without a deploy; and who, when and why: it travels with it."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from watchbill.clock import Micros, to_datetime
from watchbill.model.duration import UNITS

SPANS: Final = ("timeout", "stall", "backoff", "cap")


class Changes(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a policy that were changed; the others are as the code says."""

    timeout: Micros | UnsetType = UNSET
    stall: Micros | UnsetType | None = UNSET
    retries: int | UnsetType = UNSET
    backoff: Micros | UnsetType = UNSET
    factor: float | UnsetType = UNSET
    cap: Micros | UnsetType = UNSET
    learned: str | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """Give what was changed, by option."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}


class Override(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was changed of a policy: whoever judges by it can say so."""

    by: str
    reason: str
    at: Micros
    changes: Changes
    before: Changes = Changes()  # what the code says of the same options


def override_words(override: Override) -> str:
    """Say what was changed, from what, by whom, when and why."""
    code = override.before.given()
    said = [
        f"{name} {option_words(name, value)} instead of {option_words(name, code[name])}"
        if name in code
        else f"{name} {option_words(name, value)}"
        for name, value in override.changes.given().items()
    ]
    return f"{', '.join(said)}, by {override.by} at {to_datetime(override.at):%Y-%m-%d %H:%M:%S}Z ({override.reason})"


def option_words(name: str, value: object) -> str:
    """Say what an option is."""
    if value is None:
        return "none"
    if name in SPANS and isinstance(value, int):
        return span_words(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def span_words(span: Micros) -> str:
    """Write a duration as people do, and as it would be read again."""
    words = ""
    for unit in ("d", "h", "m", "s"):
        if span >= UNITS[unit]:
            words += f"{span // UNITS[unit]}{unit}"
            span %= UNITS[unit]
    if span:
        words += f"{span / UNITS['ms']:g}ms"
    return words or "0s"
