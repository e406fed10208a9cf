"""Property: a value of any type that a decorator accepts comes back equal and of equal type."""

import dataclasses
import enum
import itertools
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, Optional, TypedDict, Union
from uuid import UUID

import msgspec
import pydantic
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from watchbill import Secret
from watchbill.errors import InvalidValueError
from watchbill.flow.signatures import Signature


class Typed(NamedTuple):
    """A type, and the values that it has."""

    annotation: Any
    values: st.SearchStrategy[Any]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Code(str):
    __slots__ = ()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
KEYS = [
    Typed(str, TEXT),
    Typed(int, st.integers()),
    Typed(float, FINITE),
    Typed(bytes, st.binary(max_size=5)),
    Typed(Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    *(Typed(kind, st.from_type(kind)) for kind in (Color, Level)),
    Typed(date, st.dates()),
    Typed(datetime, st.datetimes(timezones=st.just(UTC) | st.none())),
    Typed(time, st.times()),
    Typed(timedelta, st.timedeltas()),
    Typed(UUID, st.uuids()),
    Typed(Path, st.lists(st.sampled_from("abc."), min_size=1, max_size=3).map(lambda parts: Path(*parts))),
    Typed(Code, TEXT.map(Code)),
    Typed(Literal["on", "off"], st.sampled_from(["on", "off"])),
    Typed(Literal[1, 2], st.sampled_from([1, 2])),
]
SCALARS = [*KEYS, Typed(bool, st.booleans()), Typed(None, st.none()), Typed(object, JSON), Typed(Any, JSON)]
NUMBERS = itertools.count()


def lists(item: Typed) -> Typed:
    return Typed(list[item.annotation], st.lists(item.values, max_size=3))  # type: ignore[name-defined]


def tuples(*items: Typed) -> Typed:
    return Typed(tuple[tuple(i.annotation for i in items)], st.tuples(*(i.values for i in items)))  # type: ignore[misc]


def many(item: Typed) -> Typed:
    return Typed(tuple[item.annotation, ...], st.lists(item.values, max_size=3).map(tuple))  # type: ignore[name-defined]


def dicts(key: Typed, value: Typed) -> Typed:
    return Typed(dict[key.annotation, value.annotation], st.dictionaries(key.values, value.values, max_size=3))  # type: ignore[name-defined]


def either(one: Typed, other: Typed) -> Typed:
    return Typed(Union[one.annotation, other.annotation], one.values | other.values)  # noqa: UP007


def perhaps(one: Typed) -> Typed:
    return Typed(Optional[one.annotation], st.none() | one.values)  # noqa: UP045


def model(make: Callable[[str, dict[str, Any]], Any]) -> Callable[..., Typed]:
    """Make a class of fields, with a tag that no other class has."""

    def made(*items: Typed) -> Typed:
        number = next(NUMBERS)
        tag = f"m{number}"
        hints = {"kind": Literal[tag], **{f"f{n}": item.annotation for n, item in enumerate(items)}}
        kind = make(f"Model{number}", hints)
        values = {f"f{n}": item.values for n, item in enumerate(items)}
        return Typed(kind, st.fixed_dictionaries(values).map(lambda given: kind(kind=tag, **given)))

    return made


MODELS = [
    model(lambda name, hints: dataclasses.make_dataclass(name, hints.items())),
    model(lambda name, hints: msgspec.defstruct(name, list(hints.items()))),
    model(lambda name, hints: TypedDict(name, hints)),  # type: ignore[operator]
    model(lambda name, hints: NamedTuple(name, list(hints.items()))),
    model(lambda name, hints: dataclasses.make_dataclass(name, hints.items(), slots=True, kw_only=True)),
]
pydantic_model = model(
    lambda name, hints: pydantic.create_model(
        name,
        __config__=pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64"),
        **{field: (hint, ...) for field, hint in hints.items()},  # type: ignore[call-overload]
    )
)
# Pydantic knows fewer types than we do.
PYDANTIC = st.recursive(
    st.sampled_from([typed for typed in SCALARS if typed.annotation is not Code]),
    lambda inner: st.builds(lists, inner) | st.builds(perhaps, inner) | st.builds(pydantic_model, inner),
    max_leaves=3,
)


def containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    keys = st.sampled_from(KEYS)
    return st.one_of(
        st.builds(lists, inner),
        st.builds(many, inner),
        st.builds(tuples, inner, inner),
        st.builds(dicts, keys, inner),
        st.builds(lambda key: Typed(set[key.annotation], st.sets(key.values, max_size=3)), keys),  # type: ignore[name-defined]
        st.builds(lambda key: Typed(frozenset[key.annotation], st.frozensets(key.values, max_size=3)), keys),  # type: ignore[name-defined]
        st.builds(perhaps, inner),
        st.builds(either, inner, inner),
        *(st.builds(made, inner, inner) for made in MODELS),
        st.builds(pydantic_model, PYDANTIC, PYDANTIC),
    )


TYPED = st.recursive(st.sampled_from(SCALARS), containers, max_leaves=5)


def same(one: Any, other: Any) -> bool:
    """Say whether two values are equal, and all that is in them of equal types."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, list | tuple):
        return all(map(same, one, other))
    if isinstance(one, dict):
        return all(same(one[key], other[key]) for key in one)
    if isinstance(one, set | frozenset):
        return {type(item) for item in one} == {type(item) for item in other}
    names = getattr(type(one), "__annotations__", {}) if not isinstance(one, type) else {}
    return all(same(getattr(one, name), getattr(other, name)) for name in names if hasattr(one, name))


def declared(annotation: Any) -> Signature:
    def f(value, more=None): ...

    f.__annotations__ = {"value": annotation, "return": annotation}
    signature = Signature(f, "step 'f'")
    signature.declare()
    return signature


@given(TYPED, st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_value_of_any_accepted_type_comes_back_equal_and_of_equal_type(typed: Typed, data: st.DataObject) -> None:
    try:
        signature = declared(typed.annotation)
    except InvalidValueError as refused:
        event("refused")
        if "nothing says which of them it was" not in str(refused):
            raise  # all but some unions are accepted
        return
    value = data.draw(typed.values)
    (copy, _), _ = signature.decode_args(signature.encode_args((value,), {}))
    assert same(copy, value), (typed.annotation, value, copy)
    body, returned = signature.encode_result(value)
    assert same(returned, value)
    assert same(signature.decode_result(body), value)


@given(TYPED, st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_secret_of_any_accepted_type_comes_back(typed: Typed, data: st.DataObject) -> None:
    try:
        signature = declared(Secret[typed.annotation])  # type: ignore[name-defined]
    except InvalidValueError:
        return
    signature.seals = True
    value = data.draw(typed.values)
    body, returned = signature.encode_result(Secret(value))
    assert same(returned.reveal(), value)
    assert same(signature.decode_result(body).reveal(), value)
