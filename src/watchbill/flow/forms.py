"""Forms: what an answer must look like, as the JSON schema that is stored with its question."""

import os
import sys
import typing
from typing import Any, Final

import msgspec

from watchbill.flow.annotations import (
    ARRAY,
    OBJECT,
    Annotation,
    UnreadableError,
    class_of,
    container,
    everything,
    fields,
    is_model,
    is_pydantic,
    members,
    needs_us,
    shapes,
    shown,
    tags,
    told_apart_by_pydantic,
    unwrapped,
)
from watchbill.model.secret import Secret

_REFS: Final = "#/$defs/{model}"  # as msgspec writes them


def schema_of(annotation: Annotation) -> dict[str, Any]:
    """Give the JSON schema of a type that can be read; UnreadableError if people cannot answer it."""
    for path, bare in everything(annotation):
        if class_of(bare) is Secret:
            raise UnreadableError(f"is {shown(bare)}: an answer is shown to whoever looks, and holds no Secret", path)
    schemas = _Schemas()
    schema = schemas.of(annotation)
    return {**schema, "$defs": schemas.named} if schemas.named else schema


class _Schemas:
    """The schemas of one annotation, with those of the models in it by name."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}
        self._names: dict[Annotation, str] = {}

    def of(self, annotation: Annotation) -> dict[str, Any]:
        """Give the schema of a type."""
        bare = unwrapped(annotation)
        if not any(needs_us(inner) for _, inner in everything(bare)):
            return self._lifted(msgspec.json.schema(annotation, schema_hook=_of_others))
        if told_apart_by_pydantic(bare):
            adapter = sys.modules["pydantic"].TypeAdapter(bare)
            return self._lifted(adapter.json_schema(by_alias=False, ref_template=_REFS))
        if is_pydantic(bare):
            return self._lifted(bare.model_json_schema(by_alias=False, ref_template=_REFS))
        if found := members(bare):
            return {} if Any in found or object in found else {"anyOf": self._union(found)}
        return self._model(bare) if is_model(bare) else self._container(bare)

    def _union(self, found: tuple[Annotation, ...]) -> list[dict[str, Any]]:
        models = tuple(member for member in found if shapes(member) == {OBJECT})
        tagged = tags(models) if len(models) > 1 else None
        # What tells them apart must be there, also if it has a default.
        must = {} if tagged is None else {"required": [tagged.key]}
        return [{**self.of(member), **(must if member in models else {})} for member in found]

    def _container(self, bare: Annotation) -> dict[str, Any]:
        inside = typing.get_args(bare)
        if shapes(bare) == {OBJECT}:
            return {"type": "object", "additionalProperties": self.of(inside[1])}
        if container(bare) is tuple and ... not in inside:
            return _row([self.of(item) for item in inside], len(inside))
        return {"type": "array", "items": self.of(inside[0])}

    def _model(self, bare: Annotation) -> dict[str, Any]:
        if bare not in self._names:
            name = self._names[bare] = self._free(class_of(bare).__name__)
            self.named[name] = {}  # it may contain itself
            its = fields(bare)
            if shapes(bare) == {ARRAY}:
                inside = [self.of(field.annotation) for field in its]
                self.named[name] = _row(inside, sum(field.required for field in its))
            else:
                properties = {field.key: self.of(field.annotation) for field in its}
                required = [field.key for field in its if field.required]
                self.named[name] = {"title": name, "type": "object", "properties": properties, "required": required}
        return {"$ref": f"#/$defs/{self._names[bare]}"}

    def _free(self, name: str) -> str:
        return name if name not in self.named else self._free(f"{name}_")

    def _lifted(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Put the models of a schema among ours; of two with one name each keeps its own."""
        named = schema.pop("$defs", {})
        moved = {name: self._free(name) for name, its in named.items() if self.named.get(name, its) != its}
        lifted = {moved.get(name, name): _renamed(its, moved) for name, its in named.items()}
        self.named.update(lifted)
        return typing.cast("dict[str, Any]", _renamed(schema, moved))


def _renamed(schema: Any, moved: dict[str, str]) -> Any:  # noqa: ANN401 - any part of a schema
    if not moved:
        return schema
    if isinstance(schema, list):
        return [_renamed(part, moved) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _renamed(part, moved) for key, part in schema.items()}
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return {**found, "$ref": f"#/$defs/{moved[name]}"} if name in moved else found


def _row(items: list[dict[str, Any]], required: int) -> dict[str, Any]:
    return {"type": "array", "prefixItems": items, "items": False, "minItems": required, "maxItems": len(items)}


def _of_others(kind: Annotation) -> dict[str, Any]:
    """Give the schema of what msgspec leaves to us."""
    if kind is object:
        return {"description": "any JSON value"}
    if issubclass(class_of(kind), str | os.PathLike):
        return {"type": "string"}
    return {"type": "integer" if issubclass(kind, int) else "number"}
