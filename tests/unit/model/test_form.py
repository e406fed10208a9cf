"""An answer is held against its form: what does not fit is named, with what was expected there."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.flow.test_readers import ANNOTATED
from watchbill import Secret
from watchbill.flow.annotations import UnreadableError
from watchbill.flow.forms import schema_of
from watchbill.flow.values import encode, plain
from watchbill.model.form import misfit


@dataclass
class Card:
    number: str
    kind: Literal["card"] = "card"


@dataclass
class Cash:
    cents: Annotated[int, msgspec.Meta(gt=0, le=100)]
    kind: Literal["cash"] = "cash"
    on: date | None = None


@dataclass
class Verdict:
    approved: bool
    payment: Card | Cash | None = None
    notes: list[str] = field(default_factory=list)


class Review(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    approved: bool
    stars: int = pydantic.Field(ge=1, le=5)
    below: "list[Review]" = []


YES = {"approved": True}


@pytest.mark.parametrize(
    ("form", "answer", "says"),
    [
        (bool, "yes", "it must be true or false, got 'yes'"),
        (int, 1.5, "it must be a whole number, got 1.5"),
        (int, True, "it must be a whole number, got true"),
        (str, None, "it must be text, got null"),
        (float, [1], "it must be a number, got a list"),
        (str | None, 3, "it must be text or null, got 3"),
        (Literal["a", "b"], "c", "it must be 'a' or 'b', got 'c'"),
        (datetime, 3, "it must be text, got 3"),
        (Annotated[datetime, msgspec.Meta(tz=True)], "noon", "it must be a time, like 2026-03-01T12:00:00Z, got"),
        (date, "2026-13-01", "it must be a date, like 2026-03-01, got '2026-13-01'"),
        (UUID, "x", "it must be a UUID, got 'x'"),
        (Decimal, "x", "it must be a decimal number as text"),
        (Verdict, [], "it must be an object, got a list"),
        (Verdict, {}, "it must have the key 'approved'"),
        (Verdict, {"approved": "yes"}, "at .approved it must be true or false, got 'yes'"),
        (Verdict, {**YES, "notes": ["a", 3]}, "at .notes[1] it must be text, got 3"),
        (Verdict, {**YES, "payment": {"kind": "cash", "cents": 0}}, "at .payment.cents it must be more than 0"),
        (Verdict, {**YES, "payment": {"kind": "cash", "cents": 101}}, "at .payment.cents it must be at most 100"),
        (Verdict, {**YES, "payment": 3}, "at .payment it must be an object or null, got 3"),
        (Verdict, {**YES, "payment": {"kind": "gold"}}, "at .payment.kind it must be 'card' or 'cash', got 'gold'"),
        (Verdict, {**YES, "payment": {"number": "1"}}, "at .payment it must have the key 'kind'"),
        (Verdict, {**YES, "payment": {"kind": "cash", "cents": 1, "on": "x"}}, "at .payment.on it must be"),
        (Review, {"approved": True}, "it must have the key 'stars'"),
        (Review, {"approved": True, "stars": 6}, "at .stars it must be at most 5, got 6"),
        (Review, {"approved": True, "stars": 1, "more": 1}, "it must not have the key 'more', but only 'approved'"),
        (Review, {**YES, "stars": 1, "below": [{"approved": 1}]}, "at .below[0] it must have the key"),
        (tuple[int, str], [1], "it must have at least 2 items, got 1"),
        (tuple[int, str], [1, "a", 3], "it must have at most 2 items, got 3"),
        (dict[str, int], {"a": "b"}, "at .a it must be a whole number, got 'b'"),
        (Annotated[str, msgspec.Meta(min_length=2)], "a", "it must have at least 2 characters, got 1"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(form: Any, answer: object, says: str) -> None:
    assert str(misfit(answer, schema_of(form))).startswith(says)


@pytest.mark.parametrize(("annotation", "value"), [pair for pair in ANNOTATED if not isinstance(pair[1], Secret)])
def test_every_value_of_a_type_fits_the_form_that_is_made_of_it(annotation: Any, value: object) -> None:
    schema = plain(encode(schema_of(annotation), what="it"))
    assert misfit(plain(encode(value, what="it")), schema) is None


def test_an_object_may_be_any_json() -> None:
    schema = schema_of(dict[str, object])
    assert misfit({"a": [1, None], "b": "x"}, schema) is None
    assert str(misfit([], schema)) == "it must be an object, got a list"


def test_a_secret_is_no_answer() -> None:
    with pytest.raises(UnreadableError, match="holds no Secret"):
        schema_of(list[Secret[str]])


def test_what_a_schema_says_beyond_that_is_left_to_the_run() -> None:
    schema: Any
    for schema in ({"pattern": "^a"}, {"$ref": "elsewhere"}, {"type": "odd"}, {"format": "email"}, {"if": {}}, True):
        assert misfit("b", schema) is None or schema == {"type": "odd"}
    assert str(misfit(1, False)) == "it must not be there"
    deep: Any = []
    for _ in range(390):
        deep = [deep]
    itself = {"$ref": "#/$defs/L", "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}}
    assert misfit(deep, itself) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "kind"]), inner, max_size=3),
    max_leaves=6,
)
SCHEMAS = st.recursive(
    st.sampled_from([True, False, {}, {"type": "string"}, {"const": 1}, {"enum": ["a"]}, {"format": "date"}]),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "anyOf": st.lists(inner, max_size=2),
            "items": inner,
            "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "additionalProperties": inner,
        },
    ),
    max_leaves=6,
)


@given(JSON, SCHEMAS)
@settings(max_examples=100)
def test_any_answer_can_be_held_against_any_form(answer: object, schema: Any) -> None:
    found = misfit(answer, schema)
    assert found is None or "it must" in str(found)
