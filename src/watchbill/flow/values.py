"""Values: what programs hand to Watchbill and get back, as typed JSON. Never pickle, and nothing is lost in silence."""

import enum
import math
import os
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import CoroutineType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from watchbill.errors import InvalidValueError
from watchbill.flow.annotations import Annotation
from watchbill.model.keys import MAKE_ONE
from watchbill.model.secret import HIDDEN, Secret

Value: TypeAlias = Any  # what users' programs hold; only their own annotations know more

LARGEST: Final = 100 * 2**20  # bytes of JSON; beyond it a value belongs into a file or bucket, and its address in here
NOT_SEALED: Final = (
    "arguments, results, messages and checkpoints may hold one, where keys seal them: give some by App(keys=) or"
    f" $WATCHBILL_KEYS; make one: {MAKE_ONE}"
)
DEEPEST: Final = 400  # levels; the decoders of every Python we run on can go twice as deep


def encode(value: object, *, what: str, sealed: bool = False) -> bytes:
    """Write a value as JSON; dicts keep the order their author gave them. `what` names it in the error.

    `sealed`: it will be, so it may hold Secrets; they are written as what they hold.
    """
    form = _REVEALING if sealed else _PLAIN
    try:
        body = form.as_given(value)
    except Exception as error:
        raise _refusal(value, what, error, form) from error
    if (_N in body and body.find(b"null") >= 0) or _CAPITAL_N in body or _CAPITAL_I in body or len(body) > LARGEST:
        _look_closer(value, body, what, form)
    return body


def encode_in_order(value: object, *, what: str, sealed: bool = False) -> bytes:
    """Write a value as JSON so that equal values are equal bytes, in every process."""
    form = _REVEALING if sealed else _PLAIN
    try:
        body = form.in_order(value)
    except Exception:
        body = _encode_what_has_no_order(value, what, form)
    if (_N in body and body.find(b"null") >= 0) or _CAPITAL_N in body or _CAPITAL_I in body or len(body) > LARGEST:
        _look_closer(value, body, what, form)
    return body


def encode_hidden(value: object) -> bytes:
    """Write a value as JSON to be shown: `***` in place of each Secret."""
    return _HIDING.as_given(value)


def plain(body: bytes) -> Value:
    """Read JSON without a type: dicts, lists, text, numbers, booleans, None."""
    try:
        return msgspec.json.decode(body)
    except Exception as error:
        raise InvalidValueError(f"what was stored is not JSON: {error}; it begins with {body[:40]!r}") from error


def _to_plain(value: Value) -> object:
    """Give the plain form of what msgspec does not know."""
    kind = type(value)
    if kind is Secret:
        raise TypeError(NOT_SEALED)
    if hasattr(kind, "model_dump") and hasattr(kind, "model_validate"):  # pydantic, which we need not import for it
        return value.model_dump(mode="json", by_alias=False, round_trip=True)  # as `readers` reads it
    if isinstance(value, os.PathLike):
        return str(value)
    # Subclasses of the simple types, like those of numpy and markupsafe: never by their own, possibly altered methods.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):  # True comes here only as a key, and it is no number
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise TypeError(f"a value of type {kind.__qualname__} has no JSON form")


def _revealed(value: Value) -> object:
    return value.reveal() if type(value) is Secret else _to_plain(value)


def _hidden(value: Value) -> object:
    return HIDDEN if type(value) is Secret else _to_plain(value)


def from_plain(kind: Annotation, value: object) -> object:
    """Make what `_to_plain` took apart."""
    if kind is object:
        return value  # any JSON value
    if isinstance(kind, type) and issubclass(kind, os.PathLike | str) and isinstance(value, str):
        make: Callable[[str], object] = kind
        return make(value)
    if isinstance(kind, type) and issubclass(kind, float) and isinstance(value, int | float):
        return kind(value)
    if isinstance(kind, type) and issubclass(kind, int) and isinstance(value, int):
        return kind(value)
    raise TypeError(f"JSON cannot be read as {getattr(kind, '__qualname__', kind)}")


class Form:
    """One way to write values as JSON: what becomes of those that msgspec does not know."""

    def __init__(self, to_plain: Callable[[Value], object]) -> None:
        self.to_plain = to_plain
        self.as_given = msgspec.json.Encoder(enc_hook=to_plain).encode
        self.in_order = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic").encode
        self.packed = msgspec.msgpack.Encoder(enc_hook=to_plain).encode


_PLAIN: Final = Form(_to_plain)
_REVEALING: Final = Form(_revealed)
_HIDING: Final = Form(_hidden)

# One byte of `null`, `NaN` and `Infinity` each: a body without them is clean, and to know that costs next to nothing.
_N, _CAPITAL_N, _CAPITAL_I = b"nNI"
_NOT_FINITE: Final = rb"\xcb[\x7f\xff][\xf0-\xff]"  # a double whose exponent is all ones, in msgpack


def _look_closer(value: object, body: bytes, what: str, form: Form) -> None:
    if len(body) > LARGEST:
        raise InvalidValueError(
            f"{what} cannot be stored: {len(body):,} bytes of JSON are more than {LARGEST:,};"
            " put it into a file or bucket, and pass its address"
        )
    if _may_hide_nan(value, body, form) and (found := _defect(value, form)):
        raise InvalidValueError(f"{what} cannot be stored: {found}")


def _may_hide_nan(value: object, body: bytes, form: Form) -> bool:
    if body.find(b'NaN"') >= 0 or body.find(b'Infinity"') >= 0:
        return True  # a Decimal, or just text that reads like one
    if body.find(b"null") < 0:
        return False
    # In JSON both None and NaN are null. In msgpack they differ, and that is faster than walking through the value.
    try:
        return re.search(_NOT_FINITE, form.packed(value)) is not None
    except Exception:
        return True


def _encode_what_has_no_order(value: object, what: str, form: Form) -> bytes:
    """Encode dicts whose keys are no text and sets whose members cannot be compared, still in one order."""
    try:
        ordered = msgspec.to_builtins(
            _with_sets_in_order(value, form), str_keys=True, order="deterministic", enc_hook=form.to_plain
        )
        return form.in_order(ordered)
    except Exception as error:
        raise _refusal(value, what, error, form) from error


def _with_sets_in_order(value: object, form: Form) -> object:
    match value:
        case dict():
            if len(msgspec.to_builtins(dict.fromkeys(value), str_keys=True, enc_hook=_to_plain)) != len(value):
                raise ValueError("two of its keys are the same text in JSON")
            if any(isinstance(key, float) and not math.isfinite(key) for key in value):
                raise ValueError("a key is not finite")
            return {key: _with_sets_in_order(item, form) for key, item in value.items()}
        case list() | tuple():
            return [_with_sets_in_order(item, form) for item in value]
        case Secret() if form is _REVEALING:
            return _with_sets_in_order(value.reveal(), form)
        case set() | frozenset():
            return sorted((_with_sets_in_order(item, form) for item in value), key=form.in_order)
    import dataclasses  # most programs never come here

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _with_sets_in_order(getattr(value, field.name), form) for field in dataclasses.fields(value)
        }
    return value


def _refusal(value: object, what: str, error: Exception, form: Form) -> InvalidValueError:
    found = _defect(value, form)
    if found is None and isinstance(error, MemoryError | RecursionError):
        raise error  # the process is short of memory or stack: that says nothing about the value
    return InvalidValueError(f"{what} cannot be stored: {found or error}")


class Defect(NamedTuple):
    """What makes a value impossible to store, and where in it."""

    path: str
    trouble: str

    def __str__(self) -> str:
        return f"at {self.path} it {self.trouble}" if self.path else f"it {self.trouble}"


def _defect(value: object, form: Form) -> Defect | None:
    """Walk through a value to the first thing in it that cannot be stored; only done when something is wrong."""
    levels: list[Iterator[tuple[str, object]]] = [iter((("", value),))]
    path: list[str] = []
    while levels:
        below = next(levels[-1], None)
        if below is None:
            levels.pop()
            del path[-1:]
            continue
        part, item = below
        path.append(part)
        if trouble := _trouble(item, form):
            return Defect("".join(path), trouble)
        if len(levels) > DEEPEST:
            return Defect("".join(path[:4]), f"is nested more than {DEEPEST} levels deep, or contains itself")
        levels.append(_inside(item))
    return None


def _trouble(item: object, form: Form) -> str:
    """Say what is wrong with one thing itself, whatever is inside it."""
    match item:
        case Secret():
            return "" if form is _REVEALING else f"is a Secret: {NOT_SEALED}"
        case float() if not math.isfinite(item):
            return f"is {float(item)}: JSON has no NaN and no infinity, use None or a text instead"
        case Decimal() if not item.is_finite():
            return f"is Decimal('{item}'), which is no number: use None or a text instead"
        case dict():
            return next((trouble for key in item if (trouble := _key_trouble(key))), "")
        case list() | tuple() | set() | frozenset():
            return ""
    if _fields(item) is not None or isinstance(item, enum.Enum):
        return ""
    try:
        form.as_given(item)
    except UnicodeEncodeError as error:
        return f"is text with a lone surrogate (at {error.start}), which no UTF-8 can hold: pass it as bytes"
    except Exception as error:
        return f"is of type {_named(item)}, which cannot be written as JSON: {_advice(item, error)}"
    return ""


def _key_trouble(key: object) -> str:
    if isinstance(key, float) and not math.isfinite(key):
        return f"has the key {key}: JSON has no NaN and no infinity"
    try:
        _PLAIN.as_given({key: 0})
    except Exception:
        return f"has the key {_short(key)}: keys must be text, numbers, dates, UUIDs or enums of these"
    return ""


def _inside(item: object) -> Iterator[tuple[str, object]]:
    match item:
        case dict():
            return ((f"[{_short(key)}]", below) for key, below in item.items())
        case list() | tuple() | set() | frozenset():
            return ((f"[{index}]", below) for index, below in enumerate(item))
        case enum.Enum():
            return iter(((".value", item.value),))
        case Secret():
            return iter(((".reveal()", item.reveal()),))
    if (names := _fields(item)) is not None:
        return ((f".{name}", getattr(item, name, None)) for name in names)
    if hasattr(type(item), "model_dump"):
        return iter((("", _to_plain(item)),))
    return iter(())


def _fields(item: object) -> tuple[str, ...] | None:
    import dataclasses  # only to say what is wrong

    kind = type(item)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    attributes = getattr(kind, "__attrs_attrs__", None)
    return tuple(attribute.name for attribute in attributes) if attributes is not None else None


def _advice(item: object, error: Exception) -> str:
    if isinstance(item, CoroutineType):
        return "was an await forgotten?"
    if isinstance(item, Iterator):
        return "make a list of it"
    if hasattr(item, "tolist"):  # numpy and its relatives
        return "give item.tolist() instead"
    if isinstance(item, int) or hasattr(type(item), "model_dump"):
        return str(error)
    return "use built-in types, a dataclass, a TypedDict or a pydantic model; open files and connections inside steps"


def _named(item: object) -> str:
    kind = type(item)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(key: object) -> str:
    try:
        return f"{key!r:.60}"
    except Exception:
        return f"of type {_named(key)}"
