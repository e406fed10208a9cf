"""A signature turns calls into bytes and back: equal calls are equal bytes, and wrong ones are told which argument."""

# mypy: disable-error-code="empty-body"

import enum
import functools
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Never, NoReturn, NotRequired, ParamSpec, TypedDict, TypeVar

import msgspec
import pytest

from tests.unit.flow import postponed
from watchbill.errors import InvalidOptionError, InvalidValueError
from watchbill.flow.signatures import Signature

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Item:
    name: str
    cents: int


@dataclass
class Row:
    id: int
    extra: dict[str, object]


class Bag(TypedDict):
    kind: NotRequired[Literal["bag"]]
    extra: object


@dataclass
class Tree:
    value: object
    below: "list[Tree]" = field(default_factory=list)


class Kind(enum.Enum):
    A = "a"


class Level(enum.IntEnum):
    LOW = 1


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def charge(order: str, cents: int, currency: str = "EUR") -> str: ...


def signature(function: Callable[..., Any]) -> Signature:
    return Signature(function, f"step {function.__name__!r}")


CHARGE = signature(charge)


def test_every_way_to_write_a_call_gives_the_same_bytes():
    written = b'["a",3,"EUR"]'
    assert CHARGE.encode_args(("a", 3, "EUR"), {}) == written
    assert CHARGE.encode_args(("a", 3), {}) == written
    assert CHARGE.encode_args(("a",), {"cents": 3}) == written
    assert CHARGE.encode_args((), {"currency": "EUR", "cents": 3, "order": "a"}) == written


def test_arguments_come_back_ready_for_the_call():
    assert CHARGE.decode_args(b'["a",3,"EUR"]') == (("a", 3, "EUR"), {})


def test_arguments_are_a_copy():
    def total(items: list[Item]) -> int: ...

    items = [Item("a", 1)]
    args, _ = signature(total).decode_args(signature(total).encode_args((items,), {}))
    assert args == (items,)
    assert args[0][0] is not items[0]


def test_keyword_only_arguments_are_stored_by_name():
    def f(a: int, *rest: int, b: int = 2, **more: Decimal) -> None: ...

    body = signature(f).encode_args((1, 5, 6), {"z": Decimal("1.5"), "b": 3})
    assert body == b'{"*":[1,5,6],"b":3,"z":"1.5"}'
    assert signature(f).decode_args(body) == ((1, 5, 6), {"b": 3, "z": Decimal("1.5")})


def test_many_positional_arguments_are_a_plain_array():
    def f(*paths: Path) -> None: ...

    body = signature(f).encode_args((Path("a"), Path("b")), {})
    assert body == b'["a","b"]'
    assert signature(f).decode_args(body) == ((Path("a"), Path("b")), {})


def test_a_function_without_parameters_has_an_empty_array():
    def f() -> None: ...

    assert signature(f).decode_args(signature(f).encode_args((), {})) == ((), {})


def test_a_name_may_be_positional_only_and_a_keyword_too():
    def f(a: int, /, **more: str) -> None: ...

    body = signature(f).encode_args((1,), {"a": "x"})
    assert signature(f).decode_args(body) == ((1,), {"a": "x"})


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'order'"),
        (("a",), {}, "missing a required argument: 'cents'"),
        (("a", 1, "EUR", 4), {}, "too many positional arguments"),
        (("a", 1), {"order": "b"}, "multiple values for argument 'order'"),
        (("a", 1), {"colour": "b"}, "unexpected keyword argument 'colour'"),
    ],
)
def test_a_call_that_does_not_fit_is_a_type_error_that_names_the_step(args, kwargs, why):
    with pytest.raises(TypeError, match=rf"step 'charge' cannot be called like that: .*{why}") as refusal:
        CHARGE.encode_args(args, kwargs)
    assert type(refusal.value) is TypeError


def test_a_star_is_no_name_of_an_argument():
    def f(**more: int) -> None: ...

    with pytest.raises(TypeError, match="no name of an argument"):
        signature(f).encode_args((), {"*": 1})


def test_the_argument_that_cannot_be_stored_is_named():
    with pytest.raises(InvalidValueError, match="argument 'cents' of step 'charge' cannot be stored: it is nan"):
        CHARGE.encode_args(("a", math.nan), {})

    def f(a: Any, *, b: Any, **more: Any) -> None: ...

    with pytest.raises(InvalidValueError, match=r"argument 'b' of step 'f' cannot be stored: at \['x'\] it is of type"):
        signature(f).encode_args((1,), {"b": {"x": object()}})
    with pytest.raises(InvalidValueError, match="argument 'z' of step 'f'"):
        signature(f).encode_args((1,), {"b": 1, "z": {(1, 2): 3}})


def test_arguments_that_only_together_are_too_large_are_refused_as_a_whole(monkeypatch):
    monkeypatch.setattr("watchbill.flow.values.LARGEST", 30)
    with pytest.raises(InvalidValueError, match="the arguments of step 'charge' cannot be stored: 50 bytes"):
        CHARGE.encode_args(("a" * 20, 10, "b" * 20), {})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'["a","3","EUR"]', "argument 'cents' of step 'charge' must be int: Expected int, got str"),
        (b'[1,3,"EUR"]', "argument 'order' of step 'charge' must be str"),
        (b'["a"]', "do not fit its parameters: missing a required argument: 'cents'"),
        (b'["a",3,"EUR",9]', "no parameter for the stored argument 3: was it removed?"),
        (b'{"*":["a"],"cents":3,"color":1}', "no parameter for the stored argument color"),
        (b'{"*":["a"],"cents":"3"}', "argument 'cents' of step 'charge' must be int"),
        (b'{"*":3}', "were not stored as JSON of ours"),
        (b"3", "were not stored as JSON of ours"),
        (b"nonsense", "were not stored as JSON of ours"),
    ],
)
def test_stored_arguments_that_do_not_fit_say_which_and_why(body, why):
    with pytest.raises(InvalidValueError) as refusal:
        CHARGE.decode_args(body)
    assert why in str(refusal.value)


def test_the_path_inside_an_argument_begins_with_its_name():
    def f(order: list[Item]) -> None: ...

    with pytest.raises(InvalidValueError, match=r"Expected int, got str - at order\[0\]\.cents"):
        signature(f).decode_args(b'[[{"name":"a","cents":"b"}]]')


def test_what_older_code_stored_still_fits_when_a_parameter_with_a_default_was_added():
    assert CHARGE.decode_args(b'["a",3]') == (("a", 3), {})
    assert CHARGE.decode_args(b'{"*":["a"],"cents":3}') == (("a",), {"cents": 3})


@pytest.mark.parametrize("value", [b"bytes", Path("x"), Decimal(1), 3])
def test_only_text_is_text(value):
    # In JSON all of these could be text.
    with pytest.raises(InvalidValueError, match=r"argument 'order' of step 'charge' must be str"):
        CHARGE.decode_args(CHARGE.encode_args((value, 3), {}))
    with pytest.raises(InvalidValueError, match=f"step 'charge' must return str, returned {type(value).__qualname__}"):
        CHARGE.encode_result(value)

    def f(*, note: str | None) -> str | None: ...

    with pytest.raises(InvalidValueError, match=r"argument 'note' of step 'f' must be str \| None"):
        signature(f).encode_args((), {"note": value})
    assert signature(f).encode_result(None) == (b"null", None)


def test_a_result_comes_with_the_copy_that_everybody_will_get():
    def f() -> list[Item]: ...

    result = [Item("a", 1)]
    body, copy = signature(f).encode_result(result)
    assert copy == result == signature(f).decode_result(body)
    assert copy[0] is not result[0]


def test_a_result_of_a_wrong_type_says_what_was_promised_and_what_came():
    def f() -> int: ...

    with pytest.raises(InvalidValueError, match="step 'f' must return int, returned str: Expected int, got str"):
        signature(f).encode_result("3")

    def g() -> None: ...

    with pytest.raises(InvalidValueError, match="step 'g' must return None, returned int"):
        signature(g).encode_result(3)
    with pytest.raises(InvalidValueError, match="the result of step 'f' cannot be stored: it is of type object"):
        signature(f).encode_result(object())


def test_a_stored_result_that_is_not_the_type_any_more_is_named():
    def f() -> Item: ...

    with pytest.raises(InvalidValueError, match=r"the result of step 'f' was stored in a form that is not .*Item"):
        signature(f).decode_result(b'{"name":"a"}')


def test_without_annotations_values_are_plain_json():
    def f(a, b=(1, 2)):
        return a, b

    assert signature(f).decode_args(signature(f).encode_args((Item("a", 1),), {})) == (
        ({"name": "a", "cents": 1}, [1, 2]),
        {},
    )
    assert signature(f).encode_result((1, Path("x"))) == (b'[1,"x"]', [1, "x"])


def test_a_default_of_none_means_what_it_says():
    def f(limit: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    assert signature(f).decode_args(signature(f).encode_args((), {})) == ((None,), {})


def test_annotations_that_say_nothing_about_a_value_are_any():
    def f(a: object, *args: P.args, **kwargs: P.kwargs) -> NoReturn: ...  # type: ignore[valid-type]
    def g(a: object) -> Never: ...

    for function in (f, g):
        assert signature(function).encode_result(3) == (b"3", 3)
        assert signature(function).decode_args(b"[[1]]") == (([1],), {})


def test_constraints_of_annotations_are_checked():
    def f(percent: Annotated[int, msgspec.Meta(le=100)], kind: Literal["a", "b"]) -> None: ...

    with pytest.raises(InvalidValueError, match="argument 'percent' of step 'f'"):
        signature(f).decode_args(b'[101,"a"]')
    with pytest.raises(InvalidValueError, match="argument 'kind' of step 'f'"):
        signature(f).decode_args(b'[1,"c"]')


def test_an_annotation_that_cannot_be_read_back_is_refused_when_the_function_is_declared():
    def f(when: Path | str) -> None: ...
    def g() -> Path | str: ...

    with pytest.raises(InvalidValueError, match=r"argument 'when' of step 'f' is annotated as .*Path \| str, which"):
        signature(f).declare()
    with pytest.raises(InvalidValueError, match=r"the result of step 'g' is annotated as .*Path \| str, which"):
        signature(g).declare()


def rows(row: dict[str, object], more: list[Row] | None = None) -> dict[str, object]: ...


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"at": NOON}, r"at \['at'\] it is of type datetime, and comes back as text; annotate it"),
        ({"a": {"b": [1, (2, 3)]}}, r"at \['a'\]\['b'\]\[1\] it is of type tuple, and comes back as a list"),
        ({"a": Item("a", 1)}, r"at \['a'\] it is of type Item, and comes back as a dict"),
        ({"a": {1: 2}}, r"at \['a'\] it is a dict with the key 1, and comes back as one with the key '1'"),
        ({"a": Kind.A}, r"at \['a'\] it is of type Kind"),
        ({"a": {1, 2}}, r"at \['a'\] it is of type set"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused_where_an_argument_says_object(value, why):
    rows_of = signature(rows)
    with pytest.raises(InvalidValueError, match=f"argument 'row' of step 'rows' cannot be stored as it is: {why}"):
        rows_of.encode_args((value,), {})
    with pytest.raises(InvalidValueError, match=r"argument 'more' of step 'rows' .*at \[0\]\.extra"):
        rows_of.encode_args(({}, [Row(1, value)]), {})


def test_json_is_taken_where_an_argument_says_object():
    value = {"a": [1, 2.5, None, True, {"b": OrderedDict(x="y")}], "e": 10**30, "k": Level.LOW.value}
    args, _ = signature(rows).decode_args(signature(rows).encode_args((value, [Row(1, value)]), {}))
    assert args == (value, [Row(1, value)])

    def f(
        a: object, b: object | int, c: tuple[int, object], d: Tree, e: Bag | list[int] | None, *rest: object
    ) -> None: ...

    given = (value, value, (1, value), Tree(value, [Tree(value)]), {"extra": value}, value)
    assert signature(f).decode_args(signature(f).encode_args(given, {})) == (given, {})
    for number, bad in enumerate(
        (NOON, NOON, (1, NOON), Tree(value, [Tree(NOON)]), {"kind": "bag", "extra": NOON}, NOON)
    ):
        wrong = (*given[:number], bad, *given[number + 1 :])
        with pytest.raises(InvalidValueError, match="datetime, and comes back as text"):
            signature(f).encode_args(wrong, {})


def test_a_result_that_says_object_comes_back_as_json_and_that_is_logged_once(caplog):
    value = {"at": NOON, "pair": (1, 2)}
    rows_of = signature(rows)
    body, copy = rows_of.encode_result(value)
    assert copy == {"at": "2026-03-01T12:00:00Z", "pair": [1, 2]}
    assert rows_of.decode_result(body) == copy
    [record] = caplog.records
    assert record.name == "watchbill.values"
    assert record.getMessage().startswith(
        "the result of step 'rows' is stored as JSON: at ['at'] it is of type datetime, and comes back as text"
    )


def test_json_under_object_may_be_as_deep_as_any():
    deep: Any = []
    tree = Tree(1)
    for _ in range(390):
        deep, tree = [deep], Tree(1, [tree] if len(str(tree)) < 2_000 else [])

    def f(row: dict[str, object], tree: Tree) -> tuple[object, Tree]: ...

    assert signature(f).decode_args(signature(f).encode_args(({"a": deep}, tree), {})) == (({"a": deep}, tree), {})
    assert signature(f).encode_result((deep, tree))[1] == (deep, tree)


def test_what_any_takes_comes_back_as_json():
    def f(a: Any, b: dict[str, Any]) -> None: ...

    args, _ = signature(f).decode_args(signature(f).encode_args((NOON, {"a": (1, Path("x"))}), {}))
    assert args == ("2026-03-01T12:00:00Z", {"a": [1, "x"]})


def test_postponed_annotations_are_resolved_at_first_use():
    price = signature(postponed.price)
    args, _ = price.decode_args(price.encode_args(([postponed.Late(3)],), {}))
    assert isinstance(args[0][0], postponed.Late)


def test_postponed_annotations_may_name_what_is_local_to_the_function_around():
    local, kind = postponed.local_function()
    args, _ = local.decode_args(b'[{"n":3}]')
    assert isinstance(args[0], kind)


def test_annotations_that_name_nothing_are_refused_clearly():
    with pytest.raises(InvalidValueError, match="annotations of step 'lost' cannot be read: name 'Nowhere'"):
        signature(postponed.lost).encode_args((1,), {})


def test_other_callables_have_signatures_too():
    class Multiply:
        def __call__(self, a: int, b: int = 2) -> int: ...

    partial = Signature(functools.partial(charge, "a"), "step 'p'")
    assert partial.decode_args(b'[3,"EUR"]') == ((3, "EUR"), {})
    with pytest.raises(InvalidValueError, match="argument 'cents' of step 'p' must be int"):
        partial.decode_args(b'["x","EUR"]')
    called = Signature(Multiply(), "step 'm'")
    assert called.encode_args((1,), {}) == b"[1,2]"
    with pytest.raises(InvalidValueError, match="step 'm' must return int"):
        called.encode_result("x")
    assert Signature(math.sqrt, "step 'sqrt'").decode_args(b"[4]") == ((4,), {})

    @functools.wraps(charge)
    def wrapped(*args: Any, **kwargs: Any) -> Any: ...

    assert signature(wrapped).encode_args(("a", 1), {}) == b'["a",1,"EUR"]'


def test_a_function_whose_parameters_nobody_can_read_is_refused():
    with pytest.raises(InvalidOptionError, match="the parameters of step 'dict' cannot be read"):
        Signature(dict, "step 'dict'")


def test_a_generic_function_takes_anything():
    def first(items: list[T]) -> T: ...

    assert signature(first).decode_args(b'[[1,"a"]]') == (([1, "a"],), {})


def test_a_lack_of_memory_says_nothing_about_a_value():
    @dataclass
    class Heavy:
        size: int

        def __post_init__(self) -> None:
            raise MemoryError

    def f() -> Heavy: ...

    with pytest.raises(MemoryError):
        signature(f).decode_result(b'{"size":1}')


def test_arguments_are_replaced_by_name_if_they_have_one_and_fit():
    def pay(order: str, *cents: int, currency: str = "EUR") -> None: ...

    signature = Signature(pay, "step 'pay'")
    changes = signature.changes({"order": "o-2", "currency": "USD"})
    assert [(change.place, bytes(change.body)) for change in changes] == [(0, b'"o-2"'), ("currency", b'"USD"')]
    with pytest.raises(InvalidValueError, match="argument 'cents' of step 'pay' stands for several"):
        signature.changes({"cents": [1, 2]})
    with pytest.raises(InvalidValueError, match="argument 'order' of step 'pay' must be str"):
        signature.changes({"order": 3})
