"""Form: holds an answer against the JSON schema of its question. Pure.

Keywords that are not here are left to the run, which reads the answer as its type and has the last word.
"""

from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

Schema = Any  # of JSON: a dict, or True or False

_TYPES: Final[dict[str, Callable[[object], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
_NAMES: Final = {
    "object": "an object", "array": "a list", "string": "text", "boolean": "true or false", "null": "null",
    "integer": "a whole number", "number": "a number",
}  # fmt: skip
_FORMATS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "date": (date.fromisoformat, "a date, like 2026-03-01"),
    "date-time": (datetime.fromisoformat, "a time, like 2026-03-01T12:00:00Z"),
    "time": (time.fromisoformat, "a time of day, like 12:00:00"),
    "uuid": (UUID, "a UUID"),
    "decimal": (Decimal, "a decimal number as text, like '1.50'"),
}
_BOUNDS: Final[dict[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minimum": (lambda value, bound: value >= bound, "at least"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "more than"),
    "maximum": (lambda value, bound: value <= bound, "at most"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "less than"),
}
_LENGTHS: Final = (
    ("minLength", str, "at least", "characters"),
    ("maxLength", str, "at most", "characters"),
    ("minItems", list, "at least", "items"),
    ("maxItems", list, "at most", "items"),
)


class Misfit(NamedTuple):
    """Where in an answer something does not fit, and what was expected there."""

    path: str
    expected: str
    got: str = ""
    of_type: bool = False  # it is another kind of value altogether, or not one of those that are named

    def __str__(self) -> str:
        said = f"it {self.expected}, got {self.got}" if self.got else f"it {self.expected}"
        return f"at {self.path} {said}" if self.path else said


def misfit(value: object, schema: Schema) -> Misfit | None:
    """Find the first thing in an answer that its schema does not allow."""
    named = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    try:
        return next(_Check(named).misfits(value, schema, ""), None)
    except RecursionError:
        return None  # deeper than anybody answers: the run decides


class _Check:
    def __init__(self, named: dict[str, Schema]) -> None:
        self._named = named

    def misfits(self, value: object, schema: Schema, path: str) -> Iterator[Misfit]:
        """Give all that does not fit, outermost first."""
        if not isinstance(schema, dict):
            if schema is False:
                yield Misfit(path, "must not be there")
            return
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name in self._named:
            yield from self.misfits(value, self._named[name], path)
        for part in schema.get("allOf", ()):
            yield from self.misfits(value, part, path)
        if ways := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
            yield from self._none_of(value, ways, path)
        yield from _of_itself(value, schema, path)
        if isinstance(value, dict):
            yield from self._in_object(value, schema, path)
        elif isinstance(value, list):
            yield from self._in_list(value, schema, path)

    def _none_of(self, value: object, ways: list[Schema], path: str) -> Iterator[Misfit]:
        """Give what is wrong with the way that was meant, if that can be told; else all that would do."""
        found = [list(self.misfits(value, way, path)) for way in ways]
        if not all(found):
            return
        meant = [its for its in found if not any(_is_another(one, path) for one in its)]
        if meant:
            yield min(meant, key=len)[0]
            return
        others = [next(one for one in its if _is_another(one, path)) for its in found]
        deepest = max((one.path for one in others), key=len)  # the key that names one, if it named none of them
        there = [one for one in others if one.path == deepest]
        asked = dict.fromkeys(one.expected.removeprefix("must be ") for one in there)
        yield Misfit(deepest, f"must be {' or '.join(asked)}", there[0].got, of_type=True)

    def _in_object(self, value: dict[str, object], schema: dict[str, Schema], path: str) -> Iterator[Misfit]:
        properties = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                yield Misfit(path, f"must have the key {key!r}")
        for key, item in value.items():
            if key in properties:
                yield from self.misfits(item, properties[key], f"{path}.{key}")
            elif schema.get("additionalProperties") is False:
                yield Misfit(path, f"must not have the key {key!r}, but only {', '.join(map(repr, properties))}")
            else:
                yield from self.misfits(item, schema.get("additionalProperties", True), f"{path}.{key}")

    def _in_list(self, value: list[object], schema: dict[str, Schema], path: str) -> Iterator[Misfit]:
        first = schema.get("prefixItems", [])
        for n, item in enumerate(value):
            # Of too many the length says it.
            other = schema.get("items", True) or True
            yield from self.misfits(item, first[n] if n < len(first) else other, f"{path}[{n}]")


def _of_itself(value: object, schema: dict[str, Schema], path: str) -> Iterator[Misfit]:
    """Give what is wrong with a value itself, whatever is inside it."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[kind](value) for kind in types if kind in _TYPES):
        expected = " or ".join(_NAMES.get(kind, kind) for kind in types)
        yield Misfit(path, f"must be {expected}", _shown(value), of_type=True)
        return
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None and not any(value == one and type(value) is type(one) for one in allowed):
        yield Misfit(path, f"must be {' or '.join(map(repr, allowed))}", _shown(value), of_type=True)
    if isinstance(value, str) and schema.get("format") in _FORMATS:
        read, what = _FORMATS[schema["format"]]
        try:
            read(value)
        except (ValueError, ArithmeticError):
            yield Misfit(path, f"must be {what}", _shown(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        for key, (fits, words) in _BOUNDS.items():
            if isinstance(bound := schema.get(key), int | float) and not fits(value, bound):
                yield Misfit(path, f"must be {words} {bound}", str(value))
    for key, kind, words, things in _LENGTHS:
        bound = schema.get(key)
        if (
            isinstance(value, kind)
            and isinstance(bound, int)
            and (len(value) < bound, len(value) > bound)["max" in key]
        ):
            yield Misfit(path, f"must have {words} {bound} {things}", str(len(value)))


def _is_another(found: Misfit, path: str) -> bool:
    """Say whether a value is none of a schema's at all: of another type, or with another name in the key for that."""
    return found.of_type and (found.path == path or found.path.rpartition(".")[0] == path)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return "null" if value is None else f"{value!r:.60}"
