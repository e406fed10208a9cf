"""Forms: the JSON schema of an answer as people read it, and an answer that fits it. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Schema = Mapping[str, Any]

DEEPEST: Final = 4  # schemas within schemas; one that contains itself ends here
_NAMES: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "array": "list",
    "object": "object",
}
_EXAMPLES: Final[dict[str, Any]] = {
    "string": "...",
    "integer": 0,
    "number": 0.0,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}
_BOUNDS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "as the pattern {}",
    "description": "{}",
}


class Field(NamedTuple):
    """A field of an answer that is an object."""

    name: str
    type: str
    note: str


def form_fields(form: Schema) -> str | list[Field]:
    """Describe an answer: in some words, or field by field if it is an object."""
    schema = _resolved(form, form)
    properties = schema.get("properties")
    if not properties:
        return "; ".join(part for part in (_words(form, form), _bounds(schema)) if part) or "any JSON"
    required = schema.get("required", ())
    return [
        Field(name, _words(form, inner), _note(form, inner, name in required)) for name, inner in properties.items()
    ]


def example(form: Schema) -> str:
    """Give an answer of that form, as JSON: with the fields that must be there, to be replaced by what is meant."""
    return json.dumps(_example(form, form, DEEPEST), ensure_ascii=False)


def _note(form: Schema, inner: Schema, required: bool) -> str:
    notes = [] if required else ["optional"]
    if "default" in inner:
        notes.append(f"default {json.dumps(inner['default'], ensure_ascii=False)}")
    bounds = _bounds(_resolved(form, inner))
    return "; ".join([*notes, bounds] if bounds else notes)


def _bounds(schema: Schema) -> str:
    return ", ".join([words.format(schema[name]) for name, words in _BOUNDS.items() if name in schema])


def _words(form: Schema, inner: Schema, depth: int = DEEPEST) -> str:
    schema = _resolved(form, inner)
    if "enum" in schema or "const" in schema:
        choices = schema.get("enum", [schema.get("const")])
        return " | ".join(json.dumps(one, ensure_ascii=False) for one in choices)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_words(form, one, depth - 1) for one in schema[several]) if depth else "any JSON"
    kind: Any = schema.get("type")
    if isinstance(kind, list):
        return " or ".join([_NAMES.get(str(one), str(one)) for one in kind])
    if kind == "array" and depth and isinstance(schema.get("items"), Mapping):
        return f"list of {_words(form, schema['items'], depth - 1)}"
    if kind == "object" and depth and schema.get("properties"):
        fields = ", ".join(f"{name}: {_words(form, one, depth - 1)}" for name, one in schema["properties"].items())
        return f"object with {fields}"
    named = _NAMES.get(kind or "", "any JSON")
    return f"{named} ({schema['format']})" if "format" in schema else named


def _example(form: Schema, inner: Schema, depth: int) -> Any:  # noqa: ANN401 - any JSON
    schema = _resolved(form, inner)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    for several in ("anyOf", "oneOf"):
        if schema.get(several) and depth:
            return _example(form, schema[several][0], depth - 1)
    if schema.get("properties") and depth:
        required = schema.get("required", ())
        return {name: _example(form, one, depth - 1) for name, one in schema["properties"].items() if name in required}
    kind = schema.get("type", "string")
    return _EXAMPLES.get(kind[0] if isinstance(kind, list) else kind, "...")


def _resolved(form: Schema, schema: Schema) -> Schema:
    for _ in range(DEEPEST):
        name = schema.get("$ref", "")
        if not name.startswith("#/$defs/"):
            break
        schema = form.get("$defs", {}).get(name.removeprefix("#/$defs/"), {})
    return schema
