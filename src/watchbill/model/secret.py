"""Secret: a value that is stored only where keys seal it, and that nothing of ours ever shows."""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

HIDDEN: Final = "***"
SHORT: Final = 4  # characters: where shorter texts are cut out, what is left tells what they were
REDACTED: Final = "(not shown: it holds the value of a Secret)"
DEEPEST: Final = 50  # levels of a value that are searched for secrets


class Secret(Generic[T]):
    """A value that is not shown: `Secret("abc").reveal()` gives it back, and nothing else does.

    Annotate with `Secret[str]`, also inside dataclasses and other types, in arguments, results and messages. It needs
    keys: `App(keys=)` or `$WATCHBILL_KEYS`.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """Give the value."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))


def secret_texts(value: object) -> tuple[str, ...]:
    """Give the texts by which the secrets in a value could show in a message, the longest first."""
    found = {text for secret in _secrets(value, 0) for text in _texts(secret.reveal(), 0)}
    return tuple(sorted(found - {""}, key=lambda text: (-len(text), text)))


def redacted(text: str, hidden: Iterable[str]) -> str:
    """Give a text without these."""
    for secret in hidden:
        if secret not in text:
            continue
        if len(secret) < SHORT:
            return REDACTED
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(value: object, level: int) -> Iterator[Secret[Any]]:
    if isinstance(value, Secret):
        yield value
    elif level < DEEPEST:
        for part in _parts(value):
            yield from _secrets(part, level + 1)


def _parts(value: object) -> Iterable[object]:
    match value:
        case dict():
            return [*value, *value.values()]
        case list() | tuple() | set() | frozenset():
            return value
        case msgspec.Struct():
            return [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, type):
        return ()
    import dataclasses  # most programs never come here

    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    # Of attrs, pydantic and the like: what they keep by name, found without running their code.
    fields = inspect.getattr_static(value, "__dict__", None)
    return list(vars(value).values()) if fields is not None and hasattr(value, "__dict__") else ()


def _texts(value: object, level: int) -> Iterator[str]:
    """Give the forms in which people's code writes a value: as it is, and escaped."""
    match value:
        case None | bool():
            return
        case str():
            yield str.__str__(value)
            yield repr(str.__str__(value))[1:-1]
            yield msgspec.json.encode(str.__str__(value)).decode()[1:-1]
        case bytes() | bytearray():
            yield repr(bytes(value))[2:-1]
            yield bytes(value).decode(errors="ignore")
            yield bytes(value).hex()
        case int() | float():
            yield repr(value)
        case _:
            inside = value.values() if isinstance(value, dict) else _parts(value)  # names of fields are no secrets
            parts = list(inside) if level < DEEPEST else []
            if not parts:
                yield str(value)
            for part in parts:
                yield from _texts(part, level + 1)
