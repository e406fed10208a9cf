"""The wire between guests and the owner: every door by its annotations, every error of the house as itself."""

import types
import typing
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum, IntEnum
from typing import Any, NamedTuple, Protocol

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchbill import errors
from watchbill.errors import ErrorData, StoreError, StoreOwnedError, WatchbillError
from watchbill.store import wire
from watchbill.store.protocol import AgentStore, ClientStore
from watchbill.store.wire import Answer, ConditionStore, Door, Hello, HintStore, Request, Trouble, Welcome, doors_of

SETS = {"client": ClientStore, "agent": AgentStore, "hints": HintStore, "condition": ConditionStore}
DOORS = {name: door for kind, protocol in SETS.items() for name, door in doors_of(kind, protocol).items()}
METHODS = {name: getattr(SETS[name.partition(".")[0]], name.partition(".")[2]) for name in DOORS}


def anything(annotation: Any) -> st.SearchStrategy[Any]:
    """Draw values of a type, as the protocols' annotations spell it."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(anything, inner))
    if origin in (list, Sequence):
        return st.lists(anything(inner[0]), max_size=3)
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(anything(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(anything, inner))
    if origin is dict and inner[0] is int:
        return st.dictionaries(anything(int), anything(inner[1]), max_size=2)
    if origin is dict:  # what only JSON knows
        return st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.booleans(), max_size=2)
    if annotation is int:
        return st.integers(-(2**63), 2**63 - 1)
    if annotation is float:
        return st.floats(allow_nan=False)
    if annotation is str:
        return st.text(st.characters(codec="utf-8"), max_size=20)
    if annotation is bytes:
        return st.binary(max_size=20)
    if annotation is datetime:
        return st.datetimes(timezones=st.just(UTC))
    if annotation in (bool, type(None)):
        return st.sampled_from([True, False] if annotation is bool else [None])
    if annotation is msgspec.UnsetType:
        return st.just(msgspec.UNSET)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if issubclass(annotation, msgspec.Struct) or hasattr(annotation, "_fields"):
        hints = typing.get_type_hints(annotation)
        return st.builds(annotation, **{name: anything(hint) for name, hint in hints.items()})
    raise AssertionError(f"no values of {annotation}")


def test_every_method_of_the_protocols_is_a_door():
    assert set(doors_of("client", ClientStore)) == {
        f"client.{name}" for name in vars(ClientStore) if not name.startswith("_")
    }
    assert "agent.lease" in DOORS
    assert set(wire.served_doors()) == set(DOORS)


few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", DOORS)
@few
@given(data=st.data())
def test_the_arguments_of_every_door_come_through(name: str, data: st.DataObject):
    hints = typing.get_type_hints(METHODS[name])
    values = {key: data.draw(anything(hint)) for key, hint in hints.items() if key != "return"}
    request = wire.encode(Request(7, name, DOORS[name].arguments(**values)))
    heard = wire.decode_request(request)
    assert (heard.number, heard.door) == (7, name)
    assert DOORS[name].read_arguments(heard.arguments) == values


@pytest.mark.parametrize("name", DOORS)
@few
@given(data=st.data())
def test_the_answers_of_every_door_come_through(name: str, data: st.DataObject):
    value = data.draw(anything(typing.get_type_hints(METHODS[name])["return"]))
    heard = wire.decode_answer(wire.encode(Answer(7, msgspec.Raw(wire.encode(value)))))
    assert (heard.number, heard.trouble) == (7, None)
    read = DOORS[name].read_value(heard.value)
    assert read == value
    assert type(read) is type(value)


class Colour(IntEnum):
    RED = 1


class Spot(NamedTuple):
    colour: Colour
    size: int | None


class Later(Protocol):
    """A protocol as it may look one day."""

    async def paint(self, spots: Sequence[Spot], *, thick: bool = False, names: Sequence[str] = ()) -> None: ...

    def not_a_door(self) -> None: ...

    async def _private(self) -> None: ...


def test_a_door_that_is_added_to_a_protocol_needs_nothing_more():
    doors = doors_of("later", Later)
    assert list(doors) == ["later.paint"]
    door: Door = doors["later.paint"]
    sent = door.arguments([Spot(Colour.RED, None)], names=["a"])
    assert door.read_arguments(sent) == {"spots": [Spot(Colour.RED, None)], "thick": False, "names": ["a"]}
    assert door.read_value(wire.NOTHING) is None


def test_a_call_that_does_not_fit_is_refused_on_both_sides():
    door = DOORS["client.find"]
    with pytest.raises(TypeError, match="missing a required argument: 'id'"):
        door.arguments("default")
    wrongs: list[Any] = [{"namespace": "n"}, {"namespace": 1, "id": "x"}, {"namespace": "n", "id": "x", "more": 1}, []]
    for wrong in wrongs:
        with pytest.raises(msgspec.DecodeError):
            door.read_arguments(msgspec.Raw(wire.encode(wrong)))


def test_hello_and_welcome_can_be_read_by_versions_with_other_fields():
    later = msgspec.msgpack.encode({"type": "hello", "protocol": 9, "version": "9.0", "mood": "fine"})
    assert wire.decode_hello(later) == Hello(9, "9.0")
    earlier = msgspec.msgpack.encode({"type": "welcome", "protocol": 1, "version": "0.1"})
    assert wire.decode_welcome(earlier) == Welcome(1, "0.1")


# --- errors


URL = "sqlite:///x.db"
MADE: list[WatchbillError] = [
    errors.Ambiguous("no answer"),
    errors.AttemptLostError("charge", "charge.2"),
    errors.Busy("30s"),
    errors.QuotaExceeded("default", 2, 1),
    errors.DuplicateRun("o", existing="a", asked="b"),
    errors.IdTakenError("run number 7 is taken"),
    errors.ImpureWorkflowError("order", ("file.py:1: a clock", "file.py:2: a die")),
    errors.InvalidOptionError("no such option"),
    errors.InvalidValueError("no such value"),
    errors.NotInWorkflowError("run_in_executor"),
    errors.Permanent("never", 3),
    errors.RunCancelled("o", "too late"),
    errors.RunFailed("o", ErrorData("ValueError", "no", "trace"), step="charge", attempts=3, cause="raised"),
    errors.RunHeld("o", "quarantined"),
    errors.AlreadyAnswered("1f"),
    errors.AlreadyDecided("1f", "ada"),
    errors.ClaimedByOther("1f", "ada"),
    errors.ItemNotFound("1f", "default"),
    errors.QuestionNotFound("1f", "default"),
    errors.RunInCreationError(["a", "b"]),
    errors.RunNotFound("o", "default"),
    errors.SealedError("o", "sealed with key 'k1'"),
    errors.StepFailed(step="s", type="ValueError", message="no", attempts=2, cause="raised", traceback="trace"),
    errors.StoreClockError(URL, 2_000_000_000_000_000, 1_800_000_000_000_000),
    errors.StoreCorruptError(URL, "torn"),
    errors.StoreError("closed"),
    errors.StoreFailingError(URL, "disk"),
    errors.StoreFullError(URL, "disk"),
    errors.StoreReplacedError(URL, "its log was deleted", "start again"),
    errors.StoreNewerError(URL, 9, 2),
    errors.StoreOutdatedError(URL, 1, 2),
    errors.StoreOwnedError(URL, 42, "/x.db.socket", "why"),
    errors.StoreRegionError(URL, "of no region"),
    errors.StoreReadOnlyError(URL, "mode"),
    errors.StoreUnreachableError("no answer"),
    errors.StoreUrlError(URL, "no"),
    errors.WatchbillError("plain"),
]


def through(error: Exception) -> WatchbillError:
    heard = wire.decode_answer(wire.encode(Answer(1, wire.NOTHING, wire.trouble_of(error))))
    assert heard.trouble is not None
    return wire.error_of(heard.trouble)


def test_no_error_of_the_house_is_forgotten_here():
    kinds = {getattr(errors, name) for name in errors.__all__} - {ErrorData}
    assert {type(error) for error in MADE} == kinds


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_every_error_of_the_house_comes_through_as_itself(error: WatchbillError):
    heard = through(error)
    assert type(heard) is type(error)
    assert str(heard) == str(error)
    assert vars(heard) == vars(error)


class Odd(StoreOwnedError):
    """Of nobody's tree."""


@pytest.mark.parametrize("error", [ValueError("run number 3 is taken"), KeyError("x"), Odd(URL, 1)])
def test_any_other_error_says_what_happened_at_the_owners(error: Exception):
    heard = through(error)
    assert type(heard) is StoreError
    assert f"the owner of the store could not do it: {type(error).__name__}: {error}" in str(heard)


def test_an_error_of_a_version_that_is_not_ours_is_a_store_error():
    heard = wire.error_of(Trouble("StoreOnFireError", "it burns", {"degrees": 451}))
    assert (type(heard), str(heard)) == (StoreError, "it burns")
    assert wire.error_of(Trouble("ErrorData", "no exception", {})).__class__ is StoreError
