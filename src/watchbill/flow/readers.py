"""Readers: make the function that reads JSON as one type. What msgspec cannot read by itself is put together here."""

import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from watchbill.flow.annotations import (
    NULL,
    OBJECT,
    ONE_OF_THEM,
    TELL_APART,
    Annotation,
    Field,
    UnreadableError,
    builds,
    check_readable,
    class_of,
    constraints,
    container,
    dataclass_info,
    everything,
    fields,
    is_json,
    is_model,
    is_pydantic,
    members,
    needs_us,
    one_of,
    shapes,
    shown,
    tags,
    told_apart_by_pydantic,
    unwrapped,
)
from watchbill.flow.values import Value, from_plain
from watchbill.model.secret import Secret

Read = Callable[[bytes], Value]

_SHAPE_OF: Final = {
    b"n": NULL, b"t": "a boolean", b"f": "a boolean", b'"': "a text", b"[": "an array", b"{": OBJECT
}  # fmt: skip
_SPACE: Final = b" \t\r\n"


def decoder(annotation: Annotation) -> Read:
    """Make the function that reads JSON as one type, strictly; UnreadableError if there is none."""
    if _is_plain(annotation):
        return native(annotation)
    try:
        check_readable(annotation)
        return _Readers().reader(annotation)
    except (TypeError, NotImplementedError) as error:  # msgspec's own refusals
        raise UnreadableError(f"is a type that cannot be read: {error}") from error


def _is_plain(annotation: Annotation) -> bool:
    """Say whether nothing has to be found out about a type: most are such, and programs start with many."""
    return annotation in (Any, type(None), bool, int, float, str, bytes)


def native(annotation: Annotation) -> Read:
    """Make the reader of a type that msgspec reads by itself."""
    return msgspec.json.Decoder(annotation, dec_hook=from_plain).decode


class _Readers:
    """The readers of one annotation. Models may contain themselves, so each is made once."""

    def __init__(self) -> None:
        self._models: dict[Annotation, Read | None] = {}

    def special(self, annotation: Annotation) -> bool:
        """Say whether there is something in a type that msgspec cannot read by itself."""
        return any(needs_us(bare) for _, bare in everything(annotation))

    def reader(self, annotation: Annotation) -> Read:
        """Make the reader of a type."""
        if not self.special(annotation):
            return native(annotation)
        bare = unwrapped(annotation)
        if told_apart_by_pydantic(bare):
            return _by_adapter(bare)
        if is_pydantic(bare):
            return _by_pydantic(bare)
        if found := members(bare):
            return self._union(found)
        if class_of(bare) is Secret:
            return self._secret(bare)
        if is_model(bare):
            return self._model(bare)
        return self._container(bare, constraints(annotation))

    # --- unions

    def _union(self, found: tuple[Annotation, ...]) -> Read:
        if Any in found or object in found:
            if other := next((one for one in found if not is_json(one)), None):
                raise UnreadableError(f"may be {shown(other)} and any JSON value: {ONE_OF_THEM}")
            return native(Any)
        by_shape = {
            shape: tuple(one for one in found if shape in shapes(one)) for shape in set().union(*map(shapes, found))
        }
        readers = {shape: self._among(its, shape) for shape, its in sorted(by_shape.items())}
        # Of models alone: one call less for each level of recursive ones.
        return readers[OBJECT] if set(readers) == {OBJECT} else _Choice(readers, " | ".join(map(shown, found)))

    def _among(self, found: tuple[Annotation, ...], shape: str) -> Read:
        """Make the reader of those members that may stand as one kind of JSON value."""
        if len(found) == 1:
            return self.reader(found[0])
        if not any(map(self.special, found)) and builds(one_of(found)):
            return native(one_of(found))
        names = " and ".join(map(shown, found))
        if shape != OBJECT:
            raise UnreadableError(f"may be {names}, which are all {shape} in JSON: {ONE_OF_THEM}")
        tagged = tags(found)
        if tagged is None:
            raise UnreadableError(f"may be {names}: {TELL_APART}")
        owners = {value: self.reader(member) for value, member in tagged.owners.items()}
        return _Tagged(tagged.key, owners)

    # --- what has other types inside

    def _part(self, annotation: Annotation, place: str) -> "_Part":
        if not self.special(annotation):
            return _Part(annotation, None)
        try:
            return _Part(msgspec.Raw, self.reader(annotation))
        except UnreadableError as error:
            raise UnreadableError(error.why, place + error.where) from None

    def _secret(self, bare: Annotation) -> Read:
        read = self.reader((*typing.get_args(bare), Any)[0])

        def secret(body: bytes) -> Value:
            try:
                return Secret(read(body))
            except msgspec.ValidationError:
                # Not the reason: it may quote the value.
                raise msgspec.ValidationError(f"it does not hold what {bare} says") from None

        return secret

    def _container(self, bare: Annotation, limits: tuple[msgspec.Meta, ...]) -> Read:
        kind, inside = container(bare), typing.get_args(bare)
        if kind is dict:
            key, part = inside[0], self._part(inside[1], "[...]")
            decode = native(_limited(types.GenericAlias(dict, (key, part.native)), limits))
            return lambda body: {key: part.made(value, f"[{key!r}]") for key, value in decode(body).items()}
        if kind is tuple and inside[-1] is not ...:
            parts = [self._part(item, f"[{n}]") for n, item in enumerate(inside)]
            decode = native(types.GenericAlias(tuple, tuple(part.native for part in parts)))
            return lambda body: tuple(
                part.made(value, f"[{n}]") for n, (part, value) in enumerate(zip(parts, decode(body), strict=True))
            )
        part = self._part(inside[0], "[...]")
        decode = native(_limited(types.GenericAlias(list, (part.native,)), limits))
        make: Any = kind
        return lambda body: make([part.made(value, f"[{n}]") for n, value in enumerate(decode(body))])

    def _model(self, bare: Annotation) -> Read:
        if bare not in self._models:
            self._models[bare] = None
            self._models[bare] = self._new_model(bare)
        made = self._models[bare]
        # Inside itself: it is there when something is read.
        return made if made is not None else lambda body: typing.cast(Read, self._models[bare])(body)

    def _new_model(self, bare: Annotation) -> Read:
        """Read a model by one that is like it, but leaves the fields that msgspec cannot read as they are."""
        kind = class_of(bare)
        its = fields(bare)
        parts = [self._part(field.annotation, f".{field.name}") for field in its]
        alike = msgspec.defstruct(
            kind.__name__,
            [_alike(n, field, part) for n, (field, part) in enumerate(zip(its, parts, strict=True))],
            **_settings(kind),
        )
        decode, make = native(alike), _maker(bare)
        named = [(f"f{n}", field.name, part) for n, (field, part) in enumerate(zip(its, parts, strict=True))]

        def read(body: bytes) -> Value:
            raw = decode(body)
            values = {}
            for place, name, part in named:  # no comprehension: models may be deep, and each frame counts
                if (value := getattr(raw, place)) is not msgspec.UNSET:
                    values[name] = part.made(value, f".{name}")
            try:
                return make(values)
            except (ValueError, TypeError) as error:
                raise msgspec.ValidationError(str(error)) from error

        return read


class _Part(NamedTuple):
    """A type inside another one: as what msgspec reads it, and what reads the rest."""

    native: Annotation
    read: Read | None

    def made(self, value: Value, place: str) -> Value:
        """Make the value, if that is left to do."""
        if self.read is None:
            return value
        try:
            return self.read(bytes(value))
        except msgspec.ValidationError as error:
            what, _, path = str(error).partition(" - at `$")
            raise msgspec.ValidationError(f"{what} - at `${place}{path or '`'}") from error


class _Choice:
    """Reads a union by what stands there in JSON."""

    def __init__(self, readers: dict[str, Read], names: str) -> None:
        self._readers, self._names = readers, names

    def __call__(self, body: bytes) -> Value:
        shape = _SHAPE_OF.get(bytes(body).lstrip(_SPACE)[:1], "a number")
        read = self._readers.get(shape)
        if read is None:
            raise msgspec.ValidationError(f"Expected `{self._names}`, got {shape}")
        return read(body)


class _Tagged:
    """Reads a union of models by the key that tells them apart."""

    def __init__(self, key: str, readers: dict[object, Read]) -> None:
        self._key, self._readers = key, readers
        self._read_tag = native(
            msgspec.defstruct("Tag", [("value", Any, msgspec.field(name=key, default=msgspec.UNSET))])
        )

    def __call__(self, body: bytes) -> Value:
        value = self._read_tag(body).value
        read = self._readers.get(value) if isinstance(value, str | int) else None
        if read is None:
            one_of = ", ".join(map(repr, self._readers))
            if value is msgspec.UNSET:
                raise msgspec.ValidationError(f"Object missing required field `{self._key}`: it is one of {one_of}")
            raise msgspec.ValidationError(f"Invalid value {value!r:.100}: it is one of {one_of} - at `$.{self._key}`")
        return read(body)


def _limited(annotation: Annotation, limits: tuple[msgspec.Meta, ...]) -> Annotation:
    return Annotated[(annotation, *limits)] if limits else annotation


def _alike(number: int, field: Field, part: _Part) -> tuple[str, Annotation, Any]:
    default = msgspec.NODEFAULT if field.required else msgspec.UNSET
    return f"f{number}", part.native, msgspec.field(name=field.key, default=default)


def _settings(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - any class of fields
    """Give how a model is written, as options of a Struct that is like it."""
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        return {
            "array_like": config.array_like,
            "forbid_unknown_fields": config.forbid_unknown_fields,
            "tag_field": config.tag_field,
            "tag": config.tag,
            "kw_only": not config.array_like,
        }
    return {"array_like": True} if issubclass(kind, tuple) else {"kw_only": True}


def _maker(bare: Annotation) -> Callable[[dict[str, Value]], Value]:
    """Give what makes an instance of a model, as msgspec does it: without __init__ for dataclasses and attrs."""
    kind = class_of(bare)
    if typing.is_typeddict(kind):
        return lambda values: values
    if issubclass(kind, msgspec.Struct | tuple):
        return lambda values: kind(**values)
    _, its, defaults, before, after = dataclass_info(bare)
    optional = list(zip(its[len(its) - len(defaults) :], defaults, strict=True))

    def make(values: dict[str, Value]) -> Value:
        made = kind.__new__(kind)
        if before is not None:
            before(made)
        for (name, _, is_factory), default in optional:
            if name not in values:
                values[name] = default() if is_factory else default
        for name, value in values.items():
            object.__setattr__(made, name, value)
        if after is not None:
            after(made)
        return made

    return make


# --- pydantic: imported already, if there is one of its models


def _by_pydantic(model: Any) -> Read:  # noqa: ANN401 - a model of pydantic
    return _read_by(model.model_validate_json)


def _by_adapter(union: Annotation) -> Read:
    return _read_by(sys.modules["pydantic"].TypeAdapter(union).validate_json)


def _read_by(validate: Callable[..., Value]) -> Read:
    """Read by pydantic what it has written: by the names of fields, whatever aliases they have."""
    import inspect  # few programs have such models

    options = {"by_name": True} if "by_name" in inspect.signature(validate).parameters else {}

    def read(body: bytes) -> Value:
        try:
            return validate(body, **options)
        except ValueError as error:
            raise msgspec.ValidationError(_first_of(error)) from error

    return read


def _first_of(error: ValueError) -> str:
    """Say the first thing that pydantic found wrong, and how many more there are; not with which value."""
    found = error.errors(include_url=False, include_input=False) if hasattr(error, "errors") else []
    if not found:
        return str(error)
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found[0]["loc"])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0]['msg']}{more}" + (f" - at `${path}`" if path else "")
