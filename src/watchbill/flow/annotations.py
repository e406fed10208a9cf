"""Annotations: what the values of a type are in JSON, and whether they can be read back from it."""

import enum
import functools
import os
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from inspect import formatannotation
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, Union
from uuid import UUID

import msgspec
from msgspec import _utils as _of_msgspec  # fields as it resolves them itself: generic bases, postponed names

from watchbill.model.secret import Secret

Annotation: TypeAlias = Any  # what people may write behind a colon: a class, a union, a generic, ...

NULL, BOOL, NUMBER, TEXT, ARRAY, OBJECT = "null", "a boolean", "a number", "a text", "an array", "an object"
_ALL: Final = frozenset({NULL, BOOL, NUMBER, TEXT, ARRAY, OBJECT})
_CONTAINERS: Final[dict[Any, type]] = {
    **{kind: kind for kind in (list, tuple, set, frozenset, dict)},
    **dict.fromkeys((abc.Collection, abc.Sequence, abc.MutableSequence), list),
    **dict.fromkeys((abc.Set, abc.MutableSet), set),
    **dict.fromkeys((abc.Mapping, abc.MutableMapping), dict),
}
_resolved: Any = _of_msgspec
_class_annotations: Final[Callable[[Any], dict[str, Any]]] = _resolved.get_class_annotations
_typeddict_info: Final[Callable[[Any], Any]] = _resolved.get_typeddict_info
dataclass_info: Final[Callable[[Any], Any]] = _resolved.get_dataclass_info
_SCALARS: Final = {
    type(None): NULL, bool: BOOL, int: NUMBER, float: NUMBER, str: TEXT, bytes: TEXT, bytearray: TEXT,
    memoryview: TEXT, datetime: TEXT, date: TEXT, time: TEXT, timedelta: TEXT, UUID: TEXT, Decimal: TEXT,
}  # fmt: skip
_JSON: Final = (type(None), bool, int, float, str, Any, object)
_KEYS: Final = (str, int, float, bytes, datetime, date, time, timedelta, UUID, Decimal)
_WRAPPERS: Final = (typing.Required, typing.NotRequired, typing.Final, getattr(typing, "ReadOnly", typing.Required))
_UNKNOWN_NAMES: Final = ("class-not-fully-defined", "undefined-annotation")  # codes of pydantic's errors
# What pydantic writes as a text, and reads as any text: in a union with another one nothing says which it was.
_TEXTS: Final = (str, bytes, datetime, date, time, timedelta, UUID, os.PathLike)


class UnreadableError(Exception):
    """Values of a type cannot be read back: where in it, and why."""

    def __init__(self, why: str, where: str = "") -> None:
        self.why = why
        self.where = where
        super().__init__(f"at {where} it {why}" if where else f"it {why}")


class Field(NamedTuple):
    """One field of a model."""

    name: str
    key: str  # in JSON
    annotation: Annotation
    required: bool


# --- what an annotation is


def origin(annotation: Annotation) -> Any:  # noqa: ANN401 - list of list[int]; None of what has no parameters
    """Give what is behind the parameters of a generic type."""
    return typing.get_origin(annotation)


def class_of(annotation: Annotation) -> Any:  # noqa: ANN401 - a class, mostly
    """Give the type without its parameters."""
    return origin(annotation) or annotation


def unwrapped(annotation: Annotation) -> Annotation:
    """Give the type behind aliases, constraints and the like; a union that pydantic tells apart stays as it is."""
    while True:
        outer = origin(annotation)
        if annotation is None:
            return type(None)
        if outer is Annotated:
            if told_apart_by_pydantic(annotation):
                return annotation
            annotation = annotation.__origin__
        elif outer in _WRAPPERS:
            [annotation] = annotation.__args__
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif hasattr(annotation, "__value__"):  # `type Name = ...`
            annotation = annotation.__value__
        elif hasattr(outer, "__value__"):
            annotation = outer.__value__[annotation.__args__]
        elif isinstance(annotation, typing.TypeVar):
            annotation = annotation.__bound__ or one_of(annotation.__constraints__)
        else:
            return annotation


def one_of(found: tuple[Annotation, ...]) -> Annotation:
    """Give the union of some types; Any for none."""
    return Union[found] if found else Any  # noqa: UP007 - of as many as there are


def constraints(annotation: Annotation) -> tuple[msgspec.Meta, ...]:
    """Give the constraints that msgspec checks."""
    metadata = getattr(annotation, "__metadata__", ()) if origin(annotation) is Annotated else ()
    return tuple(note for note in metadata if isinstance(note, msgspec.Meta))


def members(annotation: Annotation) -> tuple[Annotation, ...]:
    """Give the members of a union; () for any other type."""
    if origin(annotation) not in (Union, types.UnionType):
        return ()
    found: list[Annotation] = []
    for member in typing.get_args(annotation):
        bare = unwrapped(member)
        found += members(bare) or ((member if constraints(member) else bare),)
    return tuple(found)


def is_pydantic(annotation: Annotation) -> bool:
    """Say whether it is a model of pydantic, which we need not import for it."""
    return isinstance(annotation, type) and hasattr(annotation, "model_dump") and hasattr(annotation, "model_fields")


def told_apart_by_pydantic(annotation: Annotation) -> bool:
    """Say whether it is a union that names what tells its members apart: Annotated[A | B, Field(discriminator=...)]."""
    for note in getattr(annotation, "__metadata__", ()) if origin(annotation) is Annotated else ():
        kind = type(note)
        if kind.__module__.partition(".")[0] == "pydantic" and getattr(note, "discriminator", None) is not None:
            return True
    return False


def container(annotation: Annotation) -> type | None:
    """Give the built-in type that a container is read as; None for what is none."""
    return _CONTAINERS.get(class_of(annotation))


def is_model(annotation: Annotation) -> bool:
    """Say whether it is a class of fields: a dataclass, msgspec.Struct, TypedDict, NamedTuple or class of attrs."""
    kind = class_of(annotation)
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or issubclass(kind, msgspec.Struct)
        or typing.is_typeddict(kind)
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
        or hasattr(kind, "__attrs_attrs__")
    )


def is_json(annotation: Annotation) -> bool:
    """Say whether the values of a type are what JSON is read as without a type."""
    return all(bare in _JSON or container(bare) in (list, dict) for _, bare in everything(annotation))


def fields(annotation: Annotation) -> tuple[Field, ...]:
    """Give the fields of a model, in the order in which msgspec writes them."""
    kind = class_of(annotation)
    if is_pydantic(kind):
        return tuple(Field(n, n, f.annotation, f.is_required()) for n, f in kind.model_fields.items())
    if issubclass(kind, msgspec.Struct):
        hints = _class_annotations(annotation)
        known = msgspec.structs.fields(kind)
        return tuple(Field(f.name, f.encode_name, hints.get(f.name, f.type), f.required) for f in known)
    if typing.is_typeddict(kind):
        hints, required = _typeddict_info(annotation)
        return tuple(Field(name, name, hint, name in required) for name, hint in hints.items())
    if issubclass(kind, tuple):
        hints = _class_annotations(annotation)
        return tuple(Field(n, n, hints.get(n, Any), n not in kind._field_defaults) for n in kind._fields)
    _, found, defaults, _, _ = dataclass_info(annotation)
    first = len(found) - len(defaults)
    return tuple(Field(name, name, hint, index < first) for index, (name, hint, _) in enumerate(found))


def below(annotation: Annotation) -> Iterator[tuple[str, Annotation]]:
    """Give the types inside a type, each with the path that leads there."""
    if is_pydantic(annotation):
        return  # all that is in it is pydantic's own
    if found := members(annotation):
        yield from (("", member) for member in found)
    elif is_model(annotation):
        yield from ((f".{field.name}", field.annotation) for field in fields(annotation))
    elif container(annotation) is dict:
        key, value = typing.get_args(annotation) or (Any, Any)
        yield from (("[key]", key), ("[...]", value))
    elif container(annotation) is tuple:
        items = typing.get_args(annotation)
        yield from ((f"[{index}]", item) for index, item in enumerate(items) if item is not ...)
    elif container(annotation) is not None:
        yield from (("[...]", item) for item in typing.get_args(annotation))
    elif origin(annotation) is Secret:
        yield from ((".reveal()", held) for held in typing.get_args(annotation))


def everything(annotation: Annotation) -> Iterator[tuple[str, Annotation]]:
    """Give a type and all types inside it, each model once, with their paths."""
    seen: list[Annotation] = []
    waiting: list[tuple[str, Annotation]] = [("", annotation)]
    while waiting:
        path, found = waiting.pop()
        bare = unwrapped(found)
        if is_model(bare) or is_pydantic(bare):
            if bare in seen:
                continue
            seen.append(bare)
        yield path, bare
        waiting += [(path + part, inner) for part, inner in below(bare)]


def shapes(annotation: Annotation) -> frozenset[str]:
    """Say as what values of a type may stand in JSON."""
    bare = unwrapped(annotation)
    if bare in (Any, object):
        return _ALL
    if found := members(bare):
        return frozenset().union(*map(shapes, found))
    if told_apart_by_pydantic(bare):
        return frozenset({OBJECT})
    if (held := container(bare)) is not None:
        return frozenset({OBJECT if held is dict else ARRAY})
    kind = class_of(bare)
    if kind is Literal:
        return frozenset(_shape_of(value) for value in typing.get_args(bare))
    if kind is Secret:
        return shapes((*typing.get_args(bare), Any)[0])
    return _shapes_of_class(kind) if isinstance(kind, type) else _ALL


def _shapes_of_class(kind: Any) -> frozenset[str]:  # noqa: ANN401 - any class
    if issubclass(kind, enum.Enum):
        return frozenset(_shape_of(member.value) for member in kind)
    if kind in _SCALARS:
        return frozenset({_SCALARS[kind]})
    if is_pydantic(kind):
        return shapes(kind.model_fields["root"].annotation) if _is_root(kind) else frozenset({OBJECT})
    if issubclass(kind, tuple) or (issubclass(kind, msgspec.Struct) and kind.__struct_config__.array_like):
        return frozenset({ARRAY})
    if is_model(kind):
        return frozenset({OBJECT})
    return frozenset({NUMBER if issubclass(kind, int | float) else TEXT})


def _shape_of(value: object) -> str:
    return _SCALARS.get(type(value), TEXT)


def _is_root(kind: Any) -> bool:  # noqa: ANN401 - a model of pydantic
    return bool(getattr(kind, "__pydantic_root_model__", False))


def shown(annotation: Annotation) -> str:
    """Name a type as its author would."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__ if annotation is not type(None) else "None"
    return " | ".join(map(shown, found)) if (found := members(annotation)) else formatannotation(annotation)


# --- what msgspec reads


def needs_us(bare: Annotation) -> bool:
    """Say whether a type is none that msgspec reads by itself, whatever is inside it."""
    if is_pydantic(bare) or told_apart_by_pydantic(bare) or class_of(bare) is Secret:
        return True
    found = members(bare)
    return bool(found) and (Any in found or object in found or not builds(bare))


def builds(annotation: Annotation) -> bool:
    """Say whether msgspec finds nothing wrong with a type."""
    try:
        msgspec.json.Decoder(annotation, dec_hook=lambda kind, value: value)
    except TypeError:
        return False
    return True


# --- what tells the members of a union apart


class Tags(NamedTuple):
    """The key in JSON that says which member of a union it is, and each member with the values that stand for it."""

    key: str
    owners: dict[object, Annotation]


def tags(found: tuple[Annotation, ...]) -> Tags | None:
    """Find the key that tells models apart: one that each of them has, with values that no other one has."""
    by_member = [_tags_of(member) for member in found]
    for key in by_member[0] if by_member else ():
        owners: dict[object, Annotation] = {}
        for member, its in zip(found, by_member, strict=True):
            for value in its.get(key, ()):
                owners.setdefault(value, member)
        count = sum(len(its.get(key, ())) for its in by_member)
        if len(owners) == count and all(key in its for its in by_member):
            return Tags(key, owners)
    return None


def _tags_of(annotation: Annotation) -> dict[str, tuple[object, ...]]:
    """Give what may tell a model from others: the keys that are always there, and have one of a few values."""
    bare = unwrapped(annotation)
    kind = class_of(bare)
    if not is_model(bare) and not is_pydantic(bare):
        return {}
    omits = False
    its: dict[str, tuple[object, ...]] = {}
    if issubclass(kind, msgspec.Struct):
        settings = kind.__struct_config__
        omits = settings.omit_defaults
        if settings.tag_field is not None:
            its[settings.tag_field] = (settings.tag,)
    for field in fields(bare):
        literal = unwrapped(field.annotation)
        # A key that may be missing says nothing; what has a default is written all the same.
        always = field.required or not (omits or typing.is_typeddict(kind))
        if origin(literal) is Literal and always:
            values = typing.get_args(literal)
            its[field.key] = tuple(value.value if isinstance(value, enum.Enum) else value for value in values)
    return its


# --- what cannot be read back


def check_readable(annotation: Annotation) -> None:
    """Raise UnreadableError for a type whose values could be written, and not be read back as they were."""
    for path, found in everything(annotation):
        if trouble := _trouble(found):
            raise UnreadableError(trouble, path)


def _trouble(bare: Annotation) -> str:
    """Say why one type cannot be read back, whatever is inside it."""
    if bare in (Any, object) or members(bare) or told_apart_by_pydantic(bare):
        return ""  # of unions whoever makes their reader says it
    kind = class_of(bare)
    if is_pydantic(kind):
        return _trouble_of_pydantic(kind)
    if kind in (Literal, Secret, msgspec.Raw, msgspec.UnsetType) or kind in _SCALARS or is_model(bare):
        return ""
    held = container(bare)
    if held is dict:
        return _trouble_of_key((*typing.get_args(bare), Any)[0])
    if held is tuple and any(map(_is_unpacked, typing.get_args(bare))):
        return "has a part of any length inside a tuple: write tuple[X, ...], or a list for that part"
    return "" if held is not None else _trouble_of_class(bare)


def _is_unpacked(item: Annotation) -> bool:
    return origin(item) is typing.Unpack or getattr(item, "__unpacked__", False)


def _trouble_of_class(bare: Annotation) -> str:
    if bare is os.PathLike or origin(bare) is os.PathLike:
        return "is os.PathLike, of which none can be made: write pathlib.Path"
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        its = {type(member.value) for member in bare}
        return "" if its in ({str}, {int}) else f"is Enum {shown(bare)}: give all its members text, or whole numbers"
    if isinstance(bare, type) and issubclass(bare, str | int | float | os.PathLike):
        return ""
    return (
        f"is {shown(bare)}, which has no form in JSON that it could be read back from: use built-in types, a dataclass,"
        " a msgspec.Struct, a TypedDict, a NamedTuple or a pydantic model; `object` is any JSON value"
    )


def _trouble_of_key(key: Annotation) -> str:
    bare = unwrapped(key)
    if bare in (Any, object):
        return ""
    found = members(bare)
    kinds = [class_of(one) for one in map(unwrapped, found or (bare,))]
    if found and not all(kind is Literal or kind is str for kind in kinds):
        return f"is a dict with keys of type {shown(bare)}: in JSON every key is text, and nothing says which it was"
    for kind in kinds:
        plain = isinstance(kind, type) and kind is not bool
        if kind is not Literal and not (plain and issubclass(kind, (*_KEYS, enum.Enum, os.PathLike))):
            return f"is a dict with keys of type {shown(bare)}: {KEYS}"
    return ""


@functools.lru_cache(maxsize=1_024)  # its schema takes long to make, and many steps may take the same model
def _trouble_of_pydantic(kind: Any) -> str:  # noqa: ANN401 - a model of pydantic
    """Say what of a model, and of those inside it, pydantic does not write, or would not read as it was."""
    for model in _models_of_pydantic(kind):
        config = model.model_config
        if config.get("ser_json_bytes", "utf8") != config.get("val_json_bytes", "utf8"):
            return f"is {shown(model)}, which writes bytes in one form and reads them in another: {SAME_BYTES}"
        for name, field in model.model_fields.items():
            if field.exclude:
                return f"is {shown(model)}, whose field {name!r} is never written: take exclude= away, or the field"
            for _, bare in everything(field.annotation):
                if (found := members(bare)) and field.discriminator is None and (trouble := _untold(found)):
                    return f"is {shown(model)}, whose field {name!r} {trouble}"
    return _unwritable(kind)


def _models_of_pydantic(kind: Any) -> list[Any]:  # noqa: ANN401 - a model of pydantic
    found = [kind]
    for model in found:  # which grows
        for field in model.model_fields.values():
            inside = (bare for _, bare in everything(field.annotation) if is_pydantic(bare))
            found += (bare for bare in dict.fromkeys(inside) if bare not in found)
    return found


def _untold(found: tuple[Annotation, ...]) -> str:
    """Say which members of a union in a field of pydantic nothing tells apart."""
    models = tuple(member for member in found if is_model(unwrapped(member)) or is_pydantic(unwrapped(member)))
    if len(models) > 1 and tags(models) is None:
        return f"has {' and '.join(map(shown, models))}: {TELL_APART}"
    texts = [member for member in found if isinstance(member, type) and issubclass(member, _TEXTS)]
    if len(texts) > 1:
        return f"has {' and '.join(map(shown, texts))}, which are all text in JSON: {ONE_OF_THEM}"
    return ""


def _unwritable(kind: Any) -> str:  # noqa: ANN401 - a model of pydantic
    import warnings  # few programs have such models

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            schema = kind.model_json_schema(mode="serialization")
        except Exception as error:
            if getattr(error, "code", None) in _UNKNOWN_NAMES:
                raise NameError(str(error).partition("\n")[0]) from error
            return f"is {shown(kind)}, which pydantic itself cannot write as JSON: {str(error).partition(chr(10))[0]}"
    for path, form in _formats(schema, ""):
        if form == "password":
            return f"is {shown(kind)}, of which{path} is written as asterisks: {NO_ASTERISKS}"
        if form == "binary":
            return f"is {shown(kind)}, of which{path} has bytes that pydantic writes as text: {SAME_BYTES}"
    return ""


def _formats(schema: object, path: str) -> Iterator[tuple[str, object]]:
    """Give each format that a JSON schema names, with the name of the property that it is for."""
    if isinstance(schema, dict):
        if isinstance(schema.get("format"), str):
            yield path, schema["format"]
        for key, value in schema.items():
            named = key == "properties" and isinstance(value, dict)
            for name, inner in value.items() if named else [("", value)]:
                yield from _formats(inner, f" {name!r}" if named else path)
    elif isinstance(schema, list):
        for item in schema:
            yield from _formats(item, path)


NO_ASTERISKS: Final = "take a parameter of type watchbill.Secret[str] instead"
SAME_BYTES: Final = "give the model model_config = ConfigDict(ser_json_bytes='base64', val_json_bytes='base64')"
KEYS: Final = "keys must be text, numbers, dates, UUIDs or Enums of these"
TELL_APART: Final = (
    "both are objects in JSON, and nothing says which of them it was: give each a field with its own Literal, like"
    " `kind: Literal['card']`, or make them msgspec.Structs with tag=True"
)
ONE_OF_THEM: Final = "nothing says which of them it was: leave one, or put each into a model of its own"
