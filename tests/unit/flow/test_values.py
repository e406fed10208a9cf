"""Values come back as they went in, or are refused where they were given."""

import dataclasses
import enum
import math
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchbill.errors import InvalidValueError
from watchbill.flow import values
from watchbill.flow.readers import decoder
from watchbill.flow.values import encode, encode_in_order, plain

T = TypeVar("T")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLOPPY_NAN: Any = math.nan
WHAT = "the result of step 'f'"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


class Odd(enum.Enum):
    NAN = math.nan


@dataclasses.dataclass(frozen=True)
class Item:
    name: str
    cents: int = 0
    weight: float | None = None


@dataclasses.dataclass
class Order:
    items: list[Item]
    at: datetime
    colors: set[Color] = dataclasses.field(default_factory=set)
    prices: dict[int, Decimal] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Page(Generic[T]):
    rows: list[T]


@dataclasses.dataclass
class Node:
    below: "Node | None" = None


class Point(msgspec.Struct):
    x: float
    y: float | None = None


class Customer(pydantic.BaseModel):
    name: str
    born: date | None = None
    limit: float = 0


class Account(pydantic.BaseModel):
    owner: Customer
    ids: list[UUID] = []


class Row(TypedDict, total=False):
    a: int
    b: str


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclasses.dataclass
class Box:
    extra: dict[str, object]
    more: list[object] = dataclasses.field(default_factory=list)


class Loose(msgspec.Struct):
    extra: dict[str, object]


class Open(pydantic.BaseModel):
    extra: dict[str, object]


class Fields(TypedDict):
    extra: dict[str, object]


class Twin(NamedTuple):
    extra: object


class Miles(float):
    pass


class Code(str):
    pass


class Count(int):
    pass


def round_trip(annotation: Any, value: Any) -> Any:
    read = decoder(annotation)
    ordered = read(encode_in_order(value, what=WHAT))
    assert read(encode(value, what=WHAT)) == ordered
    return ordered


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 3),
        (int, -(2**63)),
        (int, 2**64),
        (int, 10**300),
        (bool, True),
        (float, 1.5),
        (float, 1e300),
        (str, "naïve \x00 \U0001f600"),
        (type(None), None),
        (bytes, b"\x00\xff"),
        (Decimal, Decimal("1.10")),
        (datetime, NOON),
        (datetime, NOON.replace(tzinfo=None)),
        (date, date(2026, 3, 1)),
        (time, time(12, 30)),
        (timedelta, timedelta(days=1, microseconds=3)),
        (UUID, UUID(int=7)),
        (Path, Path("a/b.txt")),
        (PurePosixPath, PurePosixPath("a/b.txt")),
        (Color, Color.RED),
        (Level, Level.LOW),
        (Rights, Rights.READ | Rights.WRITE),
        (Item, Item("a", 3, 1.5)),
        (Order, Order([Item("a")], NOON, {Color.RED, Color.BLUE}, {10: Decimal("1.50"), 9: Decimal(2)})),
        (Page[int], Page([1, 2])),
        (Node, Node(Node())),
        (Point, Point(1.0)),
        (Customer, Customer(name="Ada", born=date(1815, 12, 10))),
        (Account, Account(owner=Customer(name="Ada"), ids=[UUID(int=1)])),
        (list[Customer], [Customer(name="Ada")]),
        (Customer | None, None),
        (Row, {"a": 1}),
        (Pair, Pair(1, "b")),
        (tuple[int, str], (1, "a")),
        (tuple[int, ...], (1, 2, 3)),
        (set[int], {3, 1, 2}),
        (frozenset[str], frozenset({"a", "b"})),
        (set[Color], {Color.RED, Color.BLUE}),
        (set[Item], {Item("b"), Item("a")}),
        (dict[str, list[int]], {"b": [1], "a": []}),
        (dict[int, str], {10: "a", 9: "b"}),
        (dict[Color, int], {Color.RED: 1}),
        (dict[date, int], {date(2026, 1, 1): 1}),
        (dict[float, int], {1.5: 1, 0.5: 2}),
        (dict[Path, int], {Path("a"): 1}),
        (dict[UUID, Path | None], {UUID(int=1): Path("x"), UUID(int=2): None}),
        (int | str | None, "a"),
        (Miles, Miles(3.5)),
        (Code, Code("x")),
        (Count, Count(3)),
        (Any, {"a": [1, 2.5, "x", None, True]}),
        (object, {"a": [1, 2.5, "x", None, True]}),
        (dict[str, object], {"a": [1, {"b": 2.5}], "c": "2026-03-01", "d": None, "e": 10**30}),
        (list[object], [1, "a", None, [True]]),
        (tuple[object, ...], (1, ["a"], None)),
        (dict[str, object | None], {"a": None, "b": [1]}),
        (dict[str, list[object]], {"a": [{"b": 1}]}),
        (Box, Box(extra={"a": [1]}, more=[1, None])),
        (Loose, Loose(extra={"a": [1]})),
        (Open, Open(extra={"a": [1]})),
        (Fields, {"extra": {"a": [1]}}),
        (Twin, Twin({"a": [1]})),
    ],
)
def test_a_value_comes_back_as_its_type(annotation, value):
    copy = round_trip(annotation, value)
    assert copy == value
    assert type(copy) is type(value)


def test_what_is_made_of_a_pydantic_model_is_that_model():
    copy = round_trip(Account, Account(owner=Customer(name="Ada")))
    assert isinstance(copy.owner, Customer)


def test_subclasses_of_simple_types_are_written_by_their_value_not_by_their_methods():
    class Loud(str):
        def __str__(self):
            return "LOUD"

    class Wrong(int):
        def __int__(self):
            return 99

    assert encode([Loud("quiet"), Wrong(3), Miles(2)], what=WHAT) == b'["quiet",3,2.0]'


def test_equal_arguments_are_equal_bytes():
    assert encode_in_order({"b": 1, "a": 2}, what=WHAT) == encode_in_order({"a": 2, "b": 1}, what=WHAT)
    assert encode_in_order({2: 1, 10: 2}, what=WHAT) == encode_in_order({10: 2, 2: 1}, what=WHAT)
    assert encode_in_order({"b", "a", "c"}, what=WHAT) == b'["a","b","c"]'
    assert encode_in_order({None, 1, "a"}, what=WHAT) == b'["a",1,null]'
    assert encode_in_order(OrderedDict(b=1, a=2), what=WHAT) == b'{"a":2,"b":1}'


def test_a_result_keeps_the_order_its_author_gave_it():
    assert list(plain(encode({"total": 1, "items": 2}, what=WHAT))) == ["total", "items"]


TEXT = st.text('aN1 "\\\x00é\u2028\U0001f600')


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
        lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXT, below, max_size=4),
        max_leaves=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_plain_json_comes_back_unchanged(value):
    assert plain(encode(value, what=WHAT)) == value
    assert plain(encode_in_order(value, what=WHAT)) == value


def contains_itself() -> list[Any]:
    value: list[Any] = []
    value.append({"me": value})
    return value


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


async def forgotten() -> None: ...


REFUSED = {
    "nan": (math.nan, "it is nan"),
    "infinity": (math.inf, "it is inf"),
    "nan in a list": ([1, None, math.nan], "at [2] it is nan"),
    "nan in a dict": ({"a": [{"b": -math.inf}]}, "at ['a'][0]['b'] it is -inf"),
    "nan in a dataclass": (Item("a", weight=math.nan), "at .weight it is nan"),
    "nan in a struct": ([Point(math.nan)], "at [0].x it is nan"),
    "nan in a pydantic model": (Customer(name="a", limit=math.inf), "at ['limit'] it is inf"),
    "nan in an enum": (Odd.NAN, "at .value it is nan"),
    "nan in a namedtuple": (Pair(1, SLOPPY_NAN), "at [1] it is nan"),
    "nan in a set": ({math.nan}, "at [0] it is nan"),
    "nan of a subclass": (Miles("nan"), "it is nan"),
    "decimal nan": ([Decimal("NaN")], "at [0] it is Decimal('NaN')"),
    "decimal signalling nan": (Decimal("sNaN"), "Decimal('sNaN')"),
    "decimal infinity": (Decimal("-Infinity"), "Decimal('-Infinity')"),
    "surrogate": ("a\ud800", "lone surrogate (at 1)"),
    "surrogate inside": ({"a": ["\udfff"]}, "at ['a'][0] it is text with a lone surrogate"),
    "surrogate in a path": (Path("\udcff"), "lone surrogate"),
    "surrogate in a key": ({"\ud800": 1}, "has the key"),
    "an int beyond all digits": (10**5000, "4300 digits"),
    "object": (object(), "it is of type object"),
    "object inside": ({"a": (1, object())}, "at ['a'][1] it is of type object"),
    "function": (print, "builtin_function_or_method"),
    "class": ([Item], "at [0] it is of type type"),
    "exception": (ValueError("x"), "of type ValueError"),
    "complex": (1j, "of type complex"),
    "ellipsis": (..., "of type ellipsis"),
    "iterator": (iter([1]), "make a list of it"),
    "generator": ((i for i in range(3)), "make a list of it"),
    "tuple key": ({(1, 2): 3}, "has the key (1, 2)"),
    "none key": ({"a": {None: 1}}, "at ['a'] it has the key None"),
    "bool key": ({True: 1}, "has the key True"),
    "cycle": (contains_itself(), "contains itself"),
    "too deep": (nested(20_000), "nested more than 400 levels deep"),
    "unset": (msgspec.UNSET, "UnsetType"),
}


@pytest.mark.parametrize("write", [encode, encode_in_order])
@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_stored_is_refused_with_its_place_and_reason(value, why, write):
    with pytest.raises(InvalidValueError) as refusal:
        write(value, what=WHAT)
    assert str(refusal.value).startswith(f"{WHAT} cannot be stored: ")
    assert why in str(refusal.value)


def test_a_forgotten_await_is_recognized():
    coroutine = forgotten()
    with pytest.raises(InvalidValueError, match="was an await forgotten"):
        encode(coroutine, what=WHAT)
    coroutine.close()


def test_numpy_like_objects_are_told_what_to_do():
    class Array:
        def tolist(self):
            return [1]

    with pytest.raises(InvalidValueError, match="tolist"):
        encode(Array(), what=WHAT)


def test_keys_that_become_the_same_text_are_refused_in_arguments():
    with pytest.raises(InvalidValueError, match="two of its keys are the same text"):
        encode_in_order({1: "a", "1": "b"}, what=WHAT)


def test_a_key_that_is_nan_is_refused_in_arguments():
    with pytest.raises(InvalidValueError, match=r"at \[0\] it has the key nan"):
        encode_in_order([{math.nan: 1}], what=WHAT)


def test_words_that_only_look_like_nan_pass():
    for value in ["NaN", "null", "Infinity", ["nan", None], {"null": "NaN"}, {"NaN": None, "x": b"\xcb\x7f\xf8"}]:
        assert round_trip(Any, value) is not None


def test_none_beside_numbers_passes():
    assert round_trip(list[float | None], [1.5, None]) == [1.5, None]
    assert round_trip(list[int | None], [10**30, None]) == [10**30, None]


def test_a_key_whose_text_cannot_be_made_is_refused_too():
    class Mute:
        def __repr__(self):
            raise ValueError

    with pytest.raises(InvalidValueError, match="has the key of type"):
        encode({Mute(): 1}, what=WHAT)


def test_a_value_that_raises_while_it_is_written_is_refused():
    class Broken(pydantic.BaseModel):
        def model_dump(self, **_: Any) -> dict[str, Any]:
            raise KeyError("lost")

    with pytest.raises(InvalidValueError, match="lost"):
        encode([Broken()], what=WHAT)


def test_more_than_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(values, "LARGEST", 1_000)
    assert encode("x" * 998, what=WHAT)
    with pytest.raises(InvalidValueError, match=r"1,001 bytes of JSON are more than 1,000; .*bucket"):
        encode("x" * 999, what=WHAT)


def test_a_full_stack_is_not_blamed_on_the_value():
    with pytest.raises(RecursionError):
        raise values._refusal([1], WHAT, RecursionError(), values._PLAIN)


@pytest.mark.parametrize("body", [b"", b"{", b"nope", b'"\xff"', b"[1] 2", b"[" * 100_000])
def test_stored_bytes_that_are_no_json_are_named(body):
    with pytest.raises(InvalidValueError, match="not JSON"):
        plain(body)


@pytest.mark.parametrize(
    ("annotation", "body"),
    [
        (int, b'"1"'),
        (int, b"1.5"),
        (bool, b"1"),
        (Color, b'"green"'),
        (Item, b'{"cents":1}'),
        (Customer, b'{"name":1}'),
        (Path, b"1"),
        (Count, b"1.5"),
        (Count, b'"1"'),
        (Miles, b'"1"'),
    ],
)
def test_reading_is_strict(annotation, body):
    with pytest.raises(msgspec.ValidationError):
        decoder(annotation)(body)
