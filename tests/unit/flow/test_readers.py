"""Readers: unions come back as the member they were, and what cannot be read back is refused."""

import dataclasses
import enum
import fractions
import os
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from watchbill import Secret
from watchbill.flow.annotations import UnreadableError
from watchbill.flow.readers import decoder
from watchbill.flow.values import encode, encode_in_order

T = TypeVar("T")
WHAT = "it"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclasses.dataclass(frozen=True)
class Card:
    number: str
    kind: Literal["card"] = "card"


@dataclasses.dataclass(frozen=True)
class Cash:
    cents: int
    kind: Literal["cash", "coins"] = "cash"
    given_at: datetime | None = None


class Voucher(TypedDict):
    kind: Literal["voucher"]
    code: str
    note: NotRequired[str]


class Transfer(msgspec.Struct, frozen=True, tag="transfer", tag_field="kind"):
    iban: str


class Cheque(msgspec.Struct, frozen=True, rename="camel"):
    drawn_on: str
    kind: Literal["cheque"] = "cheque"


class Stamp(pydantic.BaseModel):
    kind: Literal["stamp"] = "stamp"
    at: datetime
    number: int = pydantic.Field(default=0, alias="stampNumber")


class Seal(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    kind: Literal["seal"] = "seal"
    at: datetime
    blob: pydantic.Base64Bytes = b""


Payment = Card | Cash | Voucher | Transfer | Cheque | Stamp | Seal
PAYMENTS: list[Any] = [
    Card("1"),
    Cash(5),
    Cash(5, "coins", NOON),
    {"kind": "voucher", "code": "x"},
    {"kind": "voucher", "code": "x", "note": "y"},
    Transfer("DE1"),
    Cheque("bank"),
    Stamp(at=NOON, stampNumber=10**30),
    Seal(at=NOON),
]


@dataclasses.dataclass
class Order:
    payment: Card | Cash
    id: int = 0
    rest: list[Payment] = dataclasses.field(default_factory=list)
    by_name: dict[str, Payment | None] = dataclasses.field(default_factory=dict)
    total: int = dataclasses.field(init=False, default=-1)

    def __post_init__(self) -> None:
        self.total = self.id * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    payment: Card | Cash


class Basket(msgspec.Struct, forbid_unknown_fields=True):
    payment: Card | Cash
    paid_at: datetime | None = None


class Line(msgspec.Struct, array_like=True):
    payment: Card | Cash
    count: int = 1


class Offer(NamedTuple):
    payment: Card | Cash
    pieces: int = 1


class Bill(TypedDict, total=False):
    payment: Card | Cash
    count: int


@dataclasses.dataclass
class Leaf:
    value: int
    kind: Literal["leaf"] = "leaf"


@dataclasses.dataclass
class Branch:
    left: "Leaf | Branch"
    right: "Leaf | Branch"
    kind: Literal["branch"] = "branch"


@dataclasses.dataclass
class Page(Generic[T]):
    rows: list[T]
    more: "Page[T] | None" = None


class Customer(pydantic.BaseModel):
    name: str
    count: int = 0


class Folder(pydantic.BaseModel):
    name: str
    below: "list[Folder]" = []


class Names(pydantic.RootModel[list[str]]):
    pass


class Shape(pydantic.BaseModel):
    shape: Annotated[Stamp | Seal, pydantic.Field(discriminator="kind")]

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> str:
        return self.shape.kind


class Strictly(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True)
    on: date
    span: timedelta
    price: Decimal
    path: Path


class Blob(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    body: bytes


class Color(enum.Enum):
    RED = "red"


def round_trip(annotation: Any, value: Any) -> Any:
    read = decoder(annotation)
    copy = read(encode_in_order(value, what=WHAT))
    assert read(encode(value, what=WHAT)) == copy
    return copy


ANNOTATED: list[tuple[Any, Any]] = [
    *((Payment, payment) for payment in PAYMENTS),
    *((Payment | None, payment) for payment in (*PAYMENTS, None)),
    (list[Payment], PAYMENTS),
    (tuple[Payment, int], (Card("1"), 3)),
    (tuple[Payment, ...], tuple(PAYMENTS)),
    (dict[date, Card | Cash], {date(2026, 1, 1): Cash(3)}),
    (set[Card | Cash], {Card("1"), Cash(1)}),
    (frozenset[Card | Cash], frozenset({Card("1")})),
    (Order, Order(Cash(1), 3, PAYMENTS, {"a": None, "b": Card("2")})),
    (Order | None, Order(Card("1"))),
    (Slotted, Slotted(Cash(1))),
    (Basket, Basket(Card("1"), NOON)),
    (Line, Line(Cash(1), 2)),
    (Offer, Offer(Cash(1))),
    (Bill, {"count": 2}),
    (Bill, {"payment": Card("3")}),
    (Branch, Branch(Leaf(1), Branch(Leaf(2), Leaf(3)))),
    (Leaf | Branch, Branch(Leaf(1), Leaf(2))),
    (Page[Card | Cash], Page([Card("1")], Page([Cash(2)]))),
    (Page[Customer], Page([Customer(name="a")])),
    (Folder, Folder(name="a", below=[Folder(name="b")])),
    (Names, Names(["a"])),
    (Names | Customer | None, Names(["a"])),
    (Names | Customer | None, Customer(name="a")),
    (Shape, Shape(shape=Seal(at=NOON, blob=b"eA=="))),
    (Strictly, Strictly(on=NOON.date(), span=timedelta(seconds=-3), price=Decimal("1.10"), path=Path("a"))),
    (Annotated[Stamp | Seal, pydantic.Field(discriminator="kind")], Seal(at=NOON)),
    (Annotated[Stamp | Seal, pydantic.Field(discriminator="kind")] | None, None),
    (Annotated[Stamp | Seal, pydantic.Field(discriminator="kind")] | None, Stamp(at=NOON)),
    (Annotated[list[Card | Cash], msgspec.Meta(max_length=3)], [Card("1")]),
    (Card | list[int] | str | int | None, [1]),
    (Card | Path | int | None, Path("x")),
    (Card | datetime | float, NOON),
    (Customer | str | bool, True),
    (Customer | list[Customer], [Customer(name="a")]),
    (Blob, Blob(body=b"\xff")),
    (Color | int | None, Color.RED),
    (str | int | None, "a"),
    (datetime | None, NOON),
    (object | int, {"a": 1}),
    (dict[str, dict[str, Any] | object], {"a": [1]}),
    (Secret[Card | Cash], Secret(Cash(1))),
    (Sequence[Card | Cash], [Card("1")]),
    (Mapping[str, Card | Cash], {"a": Card("1")}),
]


@pytest.mark.parametrize(("annotation", "value"), ANNOTATED)
def test_a_value_comes_back_equal_and_of_its_type(annotation: Any, value: Any) -> None:
    if isinstance(value, Secret):
        copy = decoder(annotation)(encode(value, what=WHAT, sealed=True)).reveal()
        value = value.reveal()
    else:
        copy = round_trip(annotation, value)
    assert copy == value
    assert type(copy) is type(value)
    if isinstance(value, list):
        assert [type(item) for item in copy] == [type(item) for item in value]


def test_a_recursive_model_with_unions_may_be_150_levels_deep() -> None:
    tree: Leaf | Branch = Leaf(0)
    for n in range(150):
        tree = Branch(Leaf(n), tree)
    copy = decoder(Leaf | Branch)(encode(tree, what=WHAT))
    for _ in range(150):
        assert copy.left == tree.left  # type: ignore[union-attr]
        copy, tree = copy.right, tree.right  # type: ignore[union-attr]
    assert copy == Leaf(0)


# --- refusals


@dataclasses.dataclass
class Plain:
    number: str


@dataclasses.dataclass
class Other:
    number: str


@dataclasses.dataclass
class SameCard:
    kind: Literal["card"] = "card"


class Quiet(msgspec.Struct, omit_defaults=True):
    kind: Literal["quiet"] = "quiet"


class Perhaps(TypedDict, total=False):
    kind: Literal["perhaps"]


@dataclasses.dataclass
class Holder:
    items: list[Plain | Other]


@dataclasses.dataclass
class WithInit:
    a: dataclasses.InitVar[int]


class Excluding(pydantic.BaseModel):
    password: str = pydantic.Field(default="", exclude=True)


class Hiding(pydantic.BaseModel):
    password: pydantic.SecretStr


class Bytes(pydantic.BaseModel):
    body: bytes


class HalfBytes(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_bytes="base64")
    body: bytes


class Around(pydantic.BaseModel):
    inner: list[Excluding]


class Arbitrary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    thing: types.SimpleNamespace


class Guess(pydantic.BaseModel):
    who: Customer | Folder


class TextOrTime(pydantic.BaseModel):
    when: str | datetime


class Mixed(enum.Enum):
    A = 1
    B = "b"


class Shapes(enum.Enum):
    A = (1, 2)


class Tags(list[str]):
    pass


UNREADABLE: list[tuple[Any, str]] = [
    (Plain | Other, "Plain and Other: both are objects in JSON.*give each a field with its own Literal"),
    (Card | SameCard, "Card and SameCard"),
    (Card | Plain, "Card and Plain"),
    (Card | dict[str, int], "Card and dict"),
    (Card | Quiet, "Card and Quiet"),
    (Card | Perhaps, "Card and Perhaps"),
    (Customer | Folder, "Customer and Folder"),
    (Holder, r"at \.items\[\.\.\.\] it may be Plain and Other"),
    (dict[str, Holder | None], r"at \[\.\.\.\]\.items\[\.\.\.\] it may be Plain and Other"),
    (Card | object, "Card and any JSON value"),
    (dict[str, bytes | Any], "bytes and any JSON value"),
    (datetime | str, "datetime and str, which are all a text in JSON"),
    (Path | str | None, "Path and str"),
    (bytes | str, "bytes and str"),
    (Decimal | str, "Decimal and str"),
    (list[int] | tuple[int, ...], "which are all an array in JSON"),
    (set[int] | list[int], "which are all an array in JSON"),
    (complex, "it is complex, which has no form in JSON"),
    (list[complex], r"at \[\.\.\.\] it is complex"),
    (fractions.Fraction, "Fraction"),
    (deque[int], "deque"),
    (OrderedDict[str, int], "OrderedDict"),
    (Iterator[int], "Iterator"),
    (Callable[[], int], "Callable"),
    (type[int], "type"),
    (Exception, "Exception"),
    (Tags, "Tags"),
    (os.PathLike[str], "write pathlib.Path"),
    (tuple[int, *tuple[str, ...]], "a part of any length inside a tuple"),
    (dict[tuple[int, int], str], "keys must be text, numbers, dates"),
    (dict[bool, str], "keys must be text, numbers, dates"),
    (dict[None, str], "keys must be text, numbers, dates"),
    (dict[int | str, str], "in JSON every key is text"),
    (dict[Card, str], "keys must be"),
    (Mixed, "Enum Mixed: give all its members text, or whole numbers"),
    (Shapes, "Enum Shapes"),
    (WithInit, "InitVar"),
    (Excluding, "'password' is never written"),
    (Around, "Excluding, whose field 'password' is never written"),
    (HalfBytes, "in one form and reads them in another"),
    (Hiding, r"'password' is written as asterisks.*Secret\[str\]"),
    (Bytes, "ser_json_bytes='base64'"),
    (Arbitrary, "which pydantic itself cannot write"),
    (list[Arbitrary], "which pydantic itself cannot write"),
    (Guess, "whose field 'who' has Customer and Folder"),
    (TextOrTime, "whose field 'when' has str and datetime"),
    (Secret[Plain | Other], "Plain and Other"),
]


@pytest.mark.parametrize(("annotation", "why"), UNREADABLE, ids=[str(annotation) for annotation, _ in UNREADABLE])
def test_a_type_that_cannot_be_read_back_is_refused(annotation: Any, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        decoder(annotation)


@pytest.mark.parametrize(
    ("annotation", "body", "why"),
    [
        (Card | Cash, b'{"kind":"gold"}', r"Invalid value 'gold': it is one of 'card', 'cash', 'coins' - at `\$.kind`"),
        (Card | Cash, b'{"number":"1"}', "Object missing required field `kind`: it is one of"),
        (Card | Cash, b'{"kind":["card"]}', "Invalid value"),
        (Card | Cash | None, b"3", r"Expected `Card \| Cash \| None`, got a number"),
        (list[Card | Cash], b'[{"kind":"cash","cents":"x"}]', r"Expected `int`, got `str` - at `\$\[0\].cents`"),
        (Order, b'{"payment":{"kind":"cash"}}', r"missing required field `cents` - at `\$.payment`"),
        (Order, b'{"id":3}', "missing required field `payment`"),
        (dict[str, Card | Cash], b'{"a":null}', r"Expected `object`, got `null` - at `\$\['a'\]`"),
        (Basket, b'{"payment":{"kind":"cash","cents":1},"x":1}', "unknown field `x`"),
        (tuple[Card | Cash, int], b"[1,2]", r"Expected `object`, got `int` - at `\$\[0\]`"),
        (Customer, b'{"name":3,"count":"many"}', r"valid string \(and 1 more\) - at `\$.name`"),
        (list[Customer], b'[{"name":"a"},{}]', r"Field required - at `\$\[1\].name`"),
        (Annotated[list[Card | Cash], msgspec.Meta(max_length=1)], b"[1,2]", "length <= 1"),
        (Secret[Card | Cash], b'{"kind":"x"}', "it does not hold what"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_place(annotation: Any, body: bytes, why: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=why):
        decoder(annotation)(body)


def test_a_model_whose_own_check_fails_is_refused() -> None:
    @dataclasses.dataclass
    class Picky:
        payment: Card | Cash

        def __post_init__(self) -> None:
            raise ValueError("not today")

    with pytest.raises(msgspec.ValidationError, match="not today"):
        decoder(Picky)(b'{"payment":{"kind":"card","number":"1"}}')
