"""Signature: a function's parameters and result, as the types that its arguments and results are stored by."""

import functools
import inspect
import logging
import types
import typing
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.errors import InvalidOptionError, InvalidValueError
from watchbill.flow.annotations import Annotation
from watchbill.flow.names import did_you_mean
from watchbill.flow.objects import Places, lost_in, objects_in
from watchbill.flow.readers import decoder
from watchbill.flow.values import Value, encode, encode_hidden, encode_in_order
from watchbill.model.ladder import SPLAT as _SPLAT
from watchbill.model.policy import Change

Args = tuple[tuple[Value, ...], dict[str, Value]]
Values = tuple[Value, ...] | dict[str, Value]  # bound arguments as they are encoded

_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_SHAPELESS: Final = (
    Parameter.empty,
    object,
    typing.NoReturn,
    typing.Never,
)  # annotations of any JSON value, or of none
_ATOMS: Final = (bool, int, float, str)
ANNOTATE: Final = "annotate it as what it is, in a dataclass or a TypedDict, or make JSON of it"
UNREADABLE: Final = b'"(not shown: it may hold Secrets, and is not what the annotations say)"'

_log = logging.getLogger("watchbill.values")
_split = msgspec.json.Decoder(list[msgspec.Raw] | dict[str, msgspec.Raw]).decode
_split_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Typed(NamedTuple):
    """One annotation, ready for use."""

    annotation: Annotation
    decode: Callable[[bytes], Value]
    text: bool  # str, maybe None: in JSON bytes, dates and UUIDs are text too, and would pass for it
    atom: type | None = None  # a value of exactly this type cannot change: it is its own copy
    objects: Places | None = None  # where it says `object`, which is any JSON value and nothing else

    def __str__(self) -> str:
        return "None" if self.annotation is type(None) else inspect.formatannotation(self.annotation)


class Signature:
    """Writes and reads a function's arguments and results.

    Arguments are a JSON array in the order of the parameters, defaults filled in: equal calls are equal bytes. Where
    there are keyword-only parameters it is an object instead, of their names, and "*" for the others.
    """

    seals = False  # what is written is sealed: its App has keys, so values may hold Secrets

    def __init__(self, function: Callable[..., Value], owner: str) -> None:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise InvalidOptionError(
                f"the parameters of {owner} cannot be read: {error}; wrap it in a function"
            ) from error
        self.owner = owner  # "step 'encode'"
        self.parameters = signature.parameters
        self._function = function
        self._signature = signature
        # Text annotations may name what is local to where the function is defined: that is only visible now.
        self._local_names = _local_names(function)
        everything = tuple(self.parameters.values())
        self._positional = tuple(p for p in everything if p.kind in _POSITIONAL)
        self._named_too = any(p.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD) for p in everything)
        self._simple = len(self._positional) == len(everything)
        self._defaults = tuple(p.default for p in self._positional)
        self._what_arguments = f"the arguments of {owner}"
        self._what_result = f"the result of {owner}"
        self._types: dict[str, Typed] = {}
        self._texts: tuple[int, ...] = ()
        self._decode_all: Callable[[bytes], tuple[Value, ...]] | None = None
        self._returns: Typed | None = None
        self._says_object = False  # of a parameter
        self._has_warned = False

    def declare(self) -> None:
        """Refuse what cannot be read back; annotations that name what stands further down in the module wait for it."""
        try:
            self.check()
        except InvalidValueError as error:
            if not isinstance(error.__cause__, NameError):
                raise

    def check(self) -> None:
        """Refuse what cannot be read back, and annotations that name what is not there."""
        if self._returns is None:
            self._resolve()

    # --- arguments

    def encode_args(self, args: tuple[Value, ...], kwargs: dict[str, Value]) -> bytes:
        """Write a call's arguments; a call that does not fit the parameters is a TypeError.

        Whether they have the right types shows when they are read: `decode_args`.
        """
        if self._returns is None:
            self._resolve()
        values: Value = args
        if kwargs or not self._simple or len(args) != len(self._positional):
            values = self._bind(args, kwargs)
        for index in self._texts:
            if type(values[index]) is not str and values[index] is not None:
                self._check_texts(values)
        if not self._simple:
            self._check_texts(values)
        try:
            body = encode_in_order(values, what=self._what_arguments, sealed=self.seals)
        except InvalidValueError:
            self._blame(values)
            raise
        if self._says_object:
            self._check_objects(values)
        return body

    def decode_args(self, body: bytes) -> Args:
        """Read a call's arguments as their types: a fresh copy, ready to call the function with."""
        if self._returns is None:
            self._resolve()
        if self._decode_all is not None:
            try:
                return self._decode_all(body), {}
            except Exception:
                # Stored by other code, or of a wrong type: one by one it works, or says which.
                return self._decode_each(body)
        return self._decode_each(body)

    def with_changes(self, body: bytes, changes: dict[str, Value]) -> bytes:
        """Give stored arguments with some of them changed, by name."""
        args, kwargs = self.decode_args(body)
        bound = self._signature.bind(*args, **kwargs)
        for name, value in changes.items():
            if name not in self.parameters:
                raise InvalidValueError(f"{self.owner} has no parameter {name!r}{did_you_mean(name, self.parameters)}")
            bound.arguments[name] = self._several(name, value)
        changed = self.encode_args(bound.args, bound.kwargs)
        self.decode_args(changed)
        return changed

    def _several(self, name: str, value: Value) -> Value:
        """Refuse what cannot stand for several arguments, where a name does."""
        kind, wanted = self.parameters[name].kind, ""
        if kind is Parameter.VAR_POSITIONAL and not isinstance(value, list | tuple):
            wanted = "a list of them"
        elif kind is Parameter.VAR_KEYWORD and not isinstance(value, dict):
            wanted = "an object of their names"
        if wanted:
            raise InvalidValueError(f"{self._what(name)} stands for several, and must be {wanted}")
        return value

    @property
    def readable(self) -> bool:
        """True when all that the annotations name is there; it may stand further down in the module."""
        try:
            self._returns or self._resolve()
        except InvalidValueError:
            return False
        return True

    def changes(self, values: dict[str, Value]) -> tuple[Change, ...]:
        """Give arguments by name as they replace stored ones; each must have the type of its parameter."""
        if self._returns is None:
            self._resolve()
        named = {p.name for p in self.parameters.values() if p.kind is Parameter.KEYWORD_ONLY}
        order = [p.name for p in self._positional]
        found = []
        for name, value in values.items():
            if name not in named and name not in order:
                raise InvalidValueError(f"{self._what(name)} stands for several, and cannot be replaced by name")
            place = name if name in named else order.index(name)
            body = msgspec.Raw(encode_in_order(value, what=self._what(name)))
            self._decode_one(place, body)
            found.append(Change(place, body))
        return tuple(found)

    def read_change(self, change: Change) -> tuple[str, Value]:
        """Give the name of the parameter that a change is for, and the value as its type."""
        return self._parameter(change.place), self._decode_one(*change)

    def takes_what(self, other: "Signature") -> bool:
        """Say whether it can be called with whatever the other one is called with."""
        kinds = [(p.kind in _POSITIONAL, p.kind is Parameter.VAR_POSITIONAL) for p in self.parameters.values()]
        theirs = [(p.kind in _POSITIONAL, p.kind is Parameter.VAR_POSITIONAL) for p in other.parameters.values()]
        return kinds == theirs and _names(self) == _names(other)

    def check_called_alike(self, function: Callable[..., Value], what: str, *before: str) -> None:
        """Refuse a function that cannot be called with `before`, and then with all that this one is called with."""
        kinds = {p.kind for p in self.parameters.values()}
        if kinds & {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
            return  # how many there are shows when it is called
        named = {p.name: None for p in self.parameters.values() if p.kind is Parameter.KEYWORD_ONLY}
        try:
            inspect.signature(function).bind(*before, *self._positional, **named)
        except TypeError as error:
            called = ", ".join((*before, *self.parameters))
            raise InvalidOptionError(
                f"{what} of {self.owner} is called with ({called}), and cannot be: {error}"
            ) from error
        except ValueError:
            return  # its parameters cannot be read

    def argument(self, name: str, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        """Give the value that a call with these arguments has for one parameter."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments[name]

    # --- results

    def encode_result(self, value: Value) -> tuple[bytes, Value]:
        """Write a result; also gives the typed copy that everybody will get, which checks it."""
        returns = self._returns or self._resolve()
        body = encode(value, what=self._what_result, sealed=self.seals)
        if type(value) is returns.atom:
            return body, value
        if returns.objects is not None:
            self._warn_of(returns.objects, value)
        try:
            if returns.text and not isinstance(value, str | None):
                raise TypeError("bytes, dates and the like are not text: convert it")
            return body, returns.decode(body)
        except Exception as error:
            raise InvalidValueError(
                f"{self.owner} must return {returns}, returned {type(value).__qualname__}: {_reason(error, 'result')}"
            ) from error

    def decode_result(self, body: bytes) -> Value:
        """Read a stored result as its type."""
        returns = self._returns or self._resolve()
        try:
            return returns.decode(body)
        except Exception as error:
            raise InvalidValueError(
                f"{self._what_result} was stored in a form that is not {returns}: {_reason(error, 'result')}"
            ) from error

    # --- to be shown

    def shown_args(self, body: bytes) -> bytes:
        """Give stored arguments as people may see them: without Secrets, as far as the annotations tell."""
        if not self.seals:
            return body
        try:
            args, kwargs = self.decode_args(body)
            return encode_hidden({_SPLAT: args, **kwargs} if kwargs else args)
        except Exception:
            return UNREADABLE

    def shown_result(self, body: bytes) -> bytes:
        """Give a stored result as people may see it."""
        if not self.seals:
            return body
        try:
            return encode_hidden(self.decode_result(body))
        except Exception:
            return UNREADABLE

    # --- behind the doors

    def _bind(self, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Values:
        if self._simple and not kwargs and len(args) < len(self._positional):
            values = args + self._defaults[len(args) :]
            if values[len(args)] is not Parameter.empty:  # behind a default there are only defaults
                return values
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.owner} cannot be called like that: {error}") from None
        bound.apply_defaults()
        if not self._named_too:
            return bound.args
        if _SPLAT in bound.kwargs:
            raise TypeError(f"{self.owner} cannot be called like that: {_SPLAT!r} is no name of an argument")
        return {_SPLAT: bound.args, **bound.kwargs}

    def _resolve(self) -> Typed:
        """Read the annotations. Not before the first use: they may name what stands further down in the module."""
        hints = self._hints()
        self._types = {name: self._typed(p, hints.get(name, Any)) for name, p in self.parameters.items()}
        if self._simple:
            order = tuple(typed.annotation for typed in self._types.values())
            self._decode_all = decoder(types.GenericAlias(tuple, order))
            self._texts = tuple(index for index, typed in enumerate(self._types.values()) if typed.text)
        self._says_object = any(typed.objects is not None for typed in self._types.values())
        said = hints.get("return", Any)
        returns = _usable(said)
        atom = returns if returns in _ATOMS else None
        decode = self._decoder(returns, self._what_result)
        self._returns = Typed(returns, decode, _is_text(returns), atom, objects_in(said))
        self._local_names = {}
        return self._returns

    def _hints(self) -> dict[str, Annotation]:
        function = self._function
        while isinstance(function, functools.partial):
            function = function.func
        if not isinstance(inspect.unwrap(function), types.FunctionType | types.MethodType | types.BuiltinFunctionType):
            function = type(function).__call__  # an object that can be called
        try:
            return typing.get_type_hints(function, localns=self._local_names or None, include_extras=True)
        except Exception as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> InvalidValueError:
        return InvalidValueError(
            f"the annotations of {self.owner} cannot be read: {error}; what they name must be there at run time:"
            " define it at module level, and import it outside `if TYPE_CHECKING`"
        )

    def _typed(self, parameter: Parameter, annotation: Annotation) -> Typed:
        usable = _usable(annotation)
        if parameter.default is None and usable is not Any:
            usable = usable | None  # `x: int = None` is read as it was meant
        decode = self._decoder(usable, self._what(parameter.name))
        return Typed(usable, decode, _is_text(usable), objects=objects_in(annotation))

    def _decoder(self, annotation: Annotation, what: str) -> Callable[[bytes], Value]:
        try:
            return decoder(annotation)
        except NameError as error:
            raise self._unreadable(error) from error
        except Exception as error:
            raise InvalidValueError(
                f"{what} is annotated as {inspect.formatannotation(annotation)}, which cannot be read back from JSON:"
                f" {error}"
            ) from error

    def _what(self, name: str) -> str:
        return f"argument {name!r} of {self.owner}"

    def _parameter(self, place: int | str) -> str:
        """Give the parameter that takes the argument at a position or of a name; "" when none does."""
        if isinstance(place, str):
            parameter = self.parameters.get(place)
            named = parameter is not None and parameter.kind is not Parameter.POSITIONAL_ONLY
            return place if named else self._collector(Parameter.VAR_KEYWORD)
        if place < len(self._positional):
            return self._positional[place].name
        return self._collector(Parameter.VAR_POSITIONAL)

    def _collector(self, kind: object) -> str:
        return next((p.name for p in self.parameters.values() if p.kind is kind), "")

    def _arguments(self, values: Values) -> Iterator[tuple[str, Typed, Value]]:
        """Give each argument with its name and type."""
        positional = values if isinstance(values, tuple) else values[_SPLAT]
        named = {} if isinstance(values, tuple) else {name: values[name] for name in values if name != _SPLAT}
        for index, value in enumerate(positional):
            name = self._parameter(index)
            yield name, self._types[name], value
        for name, value in named.items():
            yield name, self._types[self._parameter(name)], value

    def _blame(self, values: Values) -> None:
        """Raise for the first argument that cannot be stored; return when each of them alone could be."""
        for name, _, value in self._arguments(values):
            encode_in_order(value, what=self._what(name), sealed=self.seals)

    def _check_texts(self, values: Values) -> None:
        for name, typed, value in self._arguments(values):
            if typed.text and not isinstance(value, str | None):
                raise InvalidValueError(
                    f"{self._what(name)} must be {typed}, got {type(value).__qualname__}: convert it first"
                )

    def _check_objects(self, values: Values) -> None:
        """Refuse what would come back as something else; nothing has happened yet."""
        for name, typed, value in self._arguments(values):
            if typed.objects is not None and (lost := lost_in(typed.objects, value)) is not None:
                raise InvalidValueError(f"{self._what(name)} cannot be stored as it is: {lost}; {ANNOTATE}")

    def _warn_of(self, places: Places, value: Value) -> None:
        """Log, once, that a result comes back as something else: the step has run, and must not fail for that."""
        if not self._has_warned and (lost := lost_in(places, value)) is not None:
            self._has_warned = True
            _log.warning("%s is stored as JSON: %s; %s", self._what_result, lost, ANNOTATE)

    def _decode_each(self, body: bytes) -> Args:
        try:
            parts = _split(body)
            positional = parts if isinstance(parts, list) else _split_list(parts.pop(_SPLAT, b"[]"))
            named = {} if isinstance(parts, list) else parts
        except Exception as error:
            raise InvalidValueError(f"{self._what_arguments} were not stored as JSON of ours: {error}") from error
        args = tuple(self._decode_one(index, raw) for index, raw in enumerate(positional))
        kwargs = {name: self._decode_one(name, raw) for name, raw in named.items()}
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidValueError(f"{self._what_arguments} do not fit its parameters: {error}") from error
        return args, kwargs

    def _decode_one(self, place: int | str, raw: msgspec.Raw) -> Value:
        parameter = self._parameter(place)
        if not parameter:
            raise InvalidValueError(f"{self.owner} has no parameter for the stored argument {place}: was it removed?")
        typed = self._types[parameter]
        try:
            return typed.decode(raw)
        except Exception as error:
            name = place if isinstance(place, str) else parameter
            raise InvalidValueError(f"{self._what(name)} must be {typed}: {_reason(error, name)}") from error


def _names(signature: Signature) -> list[str]:
    return [p.name for p in signature.parameters.values() if p.kind not in _POSITIONAL]


def _usable(annotation: Annotation) -> Annotation:
    if annotation in _SHAPELESS or isinstance(annotation, typing.ParamSpecArgs | typing.ParamSpecKwargs):
        return Any
    origin: object = typing.get_origin(annotation)
    return Any if origin is typing.Unpack else annotation


def _is_text(annotation: Annotation) -> bool:
    return annotation in (str, str | None)


def _reason(error: Exception, root: str) -> str:
    """Give msgspec's reason with our name for the root of the path."""
    if isinstance(error, MemoryError):
        raise error  # that says nothing about the value
    return str(error).replace("`$", f"`{root}").replace("`", "")


def _local_names(function: Callable[..., Value]) -> dict[str, Value]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    frame = inspect.currentframe() if "<locals>" in getattr(function, "__qualname__", "") else None
    while frame is not None:
        if any(constant is code for constant in frame.f_code.co_consts):
            return dict(frame.f_locals)
        frame = frame.f_back
    return {}
