"""Wire: what a guest and the owner of a file say to each other. A door travels as its name and its arguments.

How arguments and answers are read follows from the annotations of the doors, so a door that is added to a protocol is
served without a second copy of its signature. Errors travel as data: those of the house are rebuilt as themselves,
without running anything; every other one is a StoreError that says what happened at the owner's.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Protocol, get_type_hints

import msgspec

from watchbill import errors
from watchbill.clock import Micros
from watchbill.errors import ErrorData, StoreError, WatchbillError
from watchbill.store.protocol import AgentStore, ClientStore, Hint

PROTOCOL: Final = 2  # of frames, requests and answers; what the doors are follows from the version of the package
LONGEST: Final = 256 * 1024 * 1024  # bytes of one message: values have up to 100 MB, and a door may carry two

HINTED: Final = 0  # the number of an answer that nobody asked for: its value is a hint


class HintStore(Protocol):
    """For guests who want to be woken; each connection asks for itself."""

    async def listen(self, whom: Hint) -> None:
        """Send this hint over the connection from now on, whenever the owner's store gives it."""
        ...


class Condition(msgspec.Struct, frozen=True):
    """Whether the owner of a file can use it."""

    trouble: str = ""  # the error, if it cannot
    lasted: Micros = 0  # for how long that has been so


class ConditionStore(Protocol):
    """For whoever wants to know how the owner of a file is."""

    async def ask(self) -> Condition:
        """Say whether the owner can write; this reads and writes nothing."""
        ...


# What guests may ask for: the set's name, which is the store's attribute, and its doors; hints, for each connection.
SERVED: Final[Mapping[str, type]] = {
    "client": ClientStore,
    "agent": AgentStore,
    "hints": HintStore,
    "condition": ConditionStore,
}


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """What a guest says first. This and Welcome can be read by every version: fields are added, never changed."""

    protocol: int
    version: str


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """What the owner answers: a sentence if the guest cannot stay, else what is driven here."""

    protocol: int
    version: str
    refused: str = ""
    namespace: str = ""
    workflows: tuple[str, ...] = ()  # of that namespace; none when no scheduler is here


class Request(msgspec.Struct, frozen=True, array_like=True):
    """A door to open. The number comes back with the answer: many may be under way at once."""

    number: int
    door: str
    arguments: msgspec.Raw


class Trouble(msgspec.Struct, frozen=True):
    """An error as data."""

    kind: str
    message: str
    fields: dict[str, Any]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a door gave, or the error it raised; or, numbered HINTED, a hint."""

    number: int
    value: msgspec.Raw
    trouble: Trouble | None = None


encode: Final = msgspec.msgpack.Encoder().encode
decode_hello: Final = msgspec.msgpack.Decoder(Hello).decode
decode_welcome: Final = msgspec.msgpack.Decoder(Welcome).decode
decode_request: Final = msgspec.msgpack.Decoder(Request).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode
decode_hint: Final = msgspec.msgpack.Decoder(Hint).decode
NOTHING: Final = msgspec.Raw(encode(None))


@cache
def our_version() -> str:
    """Give the version of this package."""
    from importlib.metadata import version  # slow to import, and only guests and their owners ask

    return version("watchbill")


# --- doors


class Door:
    """One door, as its protocol declares it."""

    def __init__(self, name: str, method: Any) -> None:  # noqa: ANN401 - whatever signature it has
        types = get_type_hints(method)
        declared = inspect.signature(method)
        self._signature = declared.replace(parameters=list(declared.parameters.values())[1:])  # without self
        fields = [
            (parameter.name, types[parameter.name])
            if parameter.default is parameter.empty
            else (parameter.name, types[parameter.name], parameter.default)
            for parameter in self._signature.parameters.values()
        ]
        arguments = msgspec.defstruct(name.replace(".", "_"), fields, kw_only=True, forbid_unknown_fields=True)
        self.name = name
        self._decode_arguments = msgspec.msgpack.Decoder(arguments).decode
        self._decode_value = msgspec.msgpack.Decoder(types["return"]).decode

    def bound(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - as its signature says
        """Give the arguments of a call by name; raises TypeError if the door cannot be called like that."""
        return self._signature.bind(*args, **kwargs).arguments

    def arguments(self, *args: Any, **kwargs: Any) -> msgspec.Raw:  # noqa: ANN401 - as its signature says
        """Write the arguments of a call; raises TypeError if the door cannot be called like that."""
        return msgspec.Raw(encode(self.bound(*args, **kwargs)))

    def read_arguments(self, sent: msgspec.Raw) -> dict[str, Any]:
        """Read them, checked by the annotations, as keywords of the call; raises msgspec.DecodeError."""
        return msgspec.structs.asdict(self._decode_arguments(sent))

    def read_value(self, sent: msgspec.Raw) -> Any:  # noqa: ANN401 - as its signature says
        """Read what it gave; raises msgspec.DecodeError."""
        return self._decode_value(sent)


def doors_of(name: str, protocol: type) -> dict[str, Door]:
    """Give the doors of a set: the coroutine methods of its protocol, and nothing else."""
    return {
        f"{name}.{method}": Door(f"{name}.{method}", function)
        for method, function in vars(protocol).items()
        if not method.startswith("_") and inspect.iscoroutinefunction(function)
    }


@cache
def served_doors() -> Mapping[str, Door]:
    """Give every door that guests may ask for."""
    return {key: door for name, protocol in SERVED.items() for key, door in doors_of(name, protocol).items()}


# --- errors


_HOUSE: Final = {
    name: kind
    for name in errors.__all__
    if isinstance(kind := getattr(errors, name), type) and issubclass(kind, WatchbillError)
}


def trouble_of(error: Exception) -> Trouble:
    """Write an error as data."""
    kind = type(error)
    if _HOUSE.get(kind.__name__) is kind:
        return Trouble(kind.__name__, str(error), vars(error))
    said = f"the owner of the store could not do it: {kind.__name__}: {error}; its log may say more"
    return Trouble(StoreError.__name__, said, {})


def error_of(trouble: Trouble) -> WatchbillError:
    """Rebuild an error of the house with its message and fields; of unknown kind, it is a StoreError."""
    kind = _HOUSE.get(trouble.kind, StoreError)
    error = kind.__new__(kind, trouble.message)  # past __init__, which would compose the message anew
    vars(error).update({name: _field(value) for name, value in trouble.fields.items()})
    return error


def _field(value: object) -> object:
    """Give a field as the errors have it: sequences are tuples there, and an exception is ErrorData."""
    if isinstance(value, list):
        return tuple(value)
    return ErrorData(**value) if isinstance(value, dict) else value
