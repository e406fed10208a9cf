"""Functions of authors: which can be steps and workflows, and where they were written."""

import inspect
from collections.abc import Callable, Collection, Iterable

from watchbill.errors import InvalidOptionError


def check_function(function: Callable[..., object], what: str) -> None:
    """Refuse what cannot be called once, with arguments that can be stored, to give one result."""
    if trouble := _trouble(function):
        raise InvalidOptionError(f"{_called(function)} cannot be a {what}: {trouble}")


def check_parameters(names: Iterable[str], reserved: Collection[str], what: str) -> None:
    """Refuse parameters that could never be given, because their names mean something else."""
    for name in names:
        if name in reserved:
            raise InvalidOptionError(
                f"{what} has a parameter {name!r}, but app.start has one too: call it something else"
                f" (taken are {', '.join(sorted(reserved))})"
            )


def is_async(function: Callable[..., object]) -> bool:
    """Say whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def place_of(function: Callable[..., object]) -> str:
    """Say where a function was written: file and line."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else _called(function)


def _trouble(function: Callable[..., object]) -> str:
    if isinstance(function, type):
        return "it is a class; wrap it in a function"
    if not callable(function):
        return "it cannot be called; decorate a function"
    if hasattr(function, "plain") and hasattr(function, "signature"):
        return "it is one already; decorate it once"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "it is a generator, which has no single result; return a list"
    if _is_method(function):
        return "it is a method, and its first argument cannot be stored; make it a function outside the class"
    return ""


def _is_method(function: Callable[..., object]) -> bool:
    # In a class body a method is still a plain function: only names tell what it will be.
    code = getattr(function, "__code__", None)
    in_class = "." in getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    return (
        in_class
        and not inspect.ismethod(function)
        and code is not None
        and code.co_varnames[:1] in (("self",), ("cls",))
    )


def _called(function: object) -> str:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return f"{module}.{name}" if module and name else f"{function!r:.100}"
