"""Objects: what stands where an annotation says `object`, any JSON value, and would come back as something else."""

import enum
import itertools
import typing
from collections.abc import Callable, Iterator
from typing import NamedTuple

from watchbill.flow.annotations import (
    OBJECT,
    Annotation,
    class_of,
    container,
    everything,
    fields,
    is_model,
    members,
    origin,
    shapes,
    unwrapped,
)
from watchbill.flow.values import Value, encode, plain
from watchbill.model.secret import Secret

Places = Callable[[Value], Iterator[tuple[str, Value]]]


class Lost(NamedTuple):
    """A value that JSON does not have, where it stands, and what it comes back as."""

    path: str
    kind: str
    comes_back: str

    def __str__(self) -> str:
        return f"{f'at {self.path} it' if self.path else 'it'} is {self.kind}, and comes back as {self.comes_back}"


def objects_in(annotation: Annotation) -> Places | None:
    """Make the function that gives what stands where a type says `object`, with its path; None where it never does."""
    if not any(bare is object for _, bare in everything(annotation)):
        return None
    return _Finder({}).places(annotation)


def lost_in(places: Places, value: Value) -> Lost | None:
    """Find the first value under `object` that is not JSON, and would come back as something else."""
    try:
        return next((lost for path, found in places(value) if (lost := _lost(found, path)) is not None), None)
    except RecursionError:
        return None  # JSON may be deeper than we can look; what is lost there is seen by whoever reads it


def _lost(value: Value, path: str) -> Lost | None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return Lost(path, f"a dict with the key {key!r:.60}", f"one with the key {str(key)!r:.60}")
            if (lost := _lost(item, f"{path}[{key!r:.60}]")) is not None:
                return lost
        return None
    if isinstance(value, list):
        found = (_lost(item, f"{path}[{n}]") for n, item in enumerate(value))
        return next((lost for lost in found if lost is not None), None)
    if value is None or (isinstance(value, str | bool | int | float) and not isinstance(value, enum.Enum)):
        return None
    back = plain(encode(value, what="it", sealed=True))
    return Lost(path, f"of type {type(value).__qualname__}", _NAMES.get(type(back), type(back).__name__))


_NAMES = {str: "text", int: "a number", float: "a number", list: "a list", dict: "a dict"}


class _Finder:
    """Makes the functions for one annotation. Models may contain themselves, so each is made once."""

    def __init__(self, models: dict[Annotation, Places]) -> None:
        self._models = models

    def places(self, annotation: Annotation) -> Places:
        """Give the function for a type; it gives nothing where it is called with a value of another one."""
        bare = unwrapped(annotation)
        if bare is object:
            return lambda value: iter((("", value),))
        if origin(bare) is Secret or not any(found is object for _, found in everything(bare)):
            return lambda value: iter(())
        if found := members(bare):
            return self._union(found)
        if is_model(bare):
            return self._model(bare)
        return self._container(bare)

    def _union(self, found: tuple[Annotation, ...]) -> Places:
        if object in found:
            return lambda value: iter((("", value),))
        each = [(class_of(one), self.places(one)) for one in map(unwrapped, found)]

        def union(value: Value) -> Iterator[tuple[str, Value]]:
            for kind, places in each:
                runtime = container(kind) or kind
                typed = dict if typing.is_typeddict(runtime) else runtime
                if isinstance(typed, type) and isinstance(value, typed):
                    return places(value)
            return iter(())

        return union

    def _model(self, bare: Annotation) -> Places:
        if bare not in self._models:
            its: list[tuple[str, Places]] = []
            by_key = typing.is_typeddict(class_of(bare))

            def model(value: Value) -> Iterator[tuple[str, Value]]:
                for name, places in its:
                    if by_key:
                        inner = [value[name]] if isinstance(value, dict) and name in value else []
                    else:
                        inner = [getattr(value, name)] if hasattr(value, name) else []
                    for one in inner:
                        yield from ((f".{name}{path}", found) for path, found in places(one))

            self._models[bare] = model
            its += [(field.name, self.places(field.annotation)) for field in fields(bare)]
        return self._models[bare]

    def _container(self, bare: Annotation) -> Places:
        inside = typing.get_args(bare)
        if shapes(bare) == {OBJECT}:
            places = self.places(inside[1])

            def of_dict(value: Value) -> Iterator[tuple[str, Value]]:
                for key, item in value.items() if isinstance(value, dict) else ():
                    yield from ((f"[{key!r:.60}]{path}", found) for path, found in places(item))

            return of_dict
        each = [self.places(item) for item in inside if item is not ...]
        fixed = container(bare) is tuple and ... not in inside

        def of_items(value: Value) -> Iterator[tuple[str, Value]]:
            items = value if isinstance(value, list | tuple | set | frozenset) else ()
            for n, (item, places) in enumerate(zip(items, each if fixed else itertools.repeat(each[0]), strict=False)):
                yield from ((f"[{n}]{path}", found) for path, found in places(item))

        return of_items
