"""Scan: finds clocks, chance and I/O in a workflow's code before it runs, by reading its bytecode.

A workflow is run again from its journal, and must then do the same again. What its event loop does not offer is refused
by the loop; but `time.time()` and `open()` ask nobody. So each name that the code loads is followed, attribute by
attribute, to the object it stands for, and that object is looked up among the denied ones: an alias does not hide it,
and a variable that merely has such a name is not mistaken for it. Nothing is executed.
"""

import builtins
import contextlib
import dis
import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CellType, ClassMethodDescriptorType, CodeType, FunctionType, MethodType, ModuleType
from typing import Final, NamedTuple

from watchbill.flow.denied import Denied, Thing, Unloaded

DEPTH: Final = 5  # helpers of helpers of ...: below that, who is to blame is anybody's guess

_UNKNOWN: Final = object()  # what a name stands for is only known when the code runs
_FILLERS: Final = frozenset({"CACHE", "EXTENDED_ARG", "NOP"})
_LOCAL: Final = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "STORE_FAST", "STORE_DEREF")


class Scan(NamedTuple):
    """What was found, in sentences: in the workflow itself, and in helpers that it seems to call."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def scan(function: Callable[..., object], *, allow: Iterable[str] = ()) -> Scan:
    """Find what a workflow does that could not be repeated; `allow` names what may stay."""
    denied = Denied(allow)
    own = dict.fromkeys(_functions_of(function))
    errors, used = _search(own, denied)
    warnings: dict[str, None] = {}
    seen = set(own)
    packages = {_package(f) for f in own}
    for _ in range(DEPTH):
        below = dict.fromkeys(f for thing in used for f in _functions_of(thing))
        helpers = [f for f in below if f not in seen and _package(f) in packages]
        seen.update(helpers)
        found, used = _search(helpers, denied)
        warnings |= found
    return Scan(tuple(errors), tuple(warnings))


def _search(functions: Iterable[FunctionType], denied: Denied) -> tuple[dict[str, None], list[Thing]]:
    """Give what was found in some functions, each once and in order, and everything that they use."""
    found: dict[str, None] = {}
    used = []
    for function in functions:
        code = function.__code__
        for thing, line in Reading(code, function.__globals__, _closure(function)):
            used.append(thing)
            if denial := denied.find(thing):
                found[f"{code.co_filename}:{line} in {function.__qualname__}(): {denial.name} {denial.why}"] = None
    return found, used


class Reading:
    """Reads one piece of code, instruction by instruction, and says what it refers to, and in which line."""

    def __init__(self, code: CodeType, names: dict[str, Thing], known: dict[str, Thing]) -> None:
        self._code = code
        self._globals = names
        self._known = known  # local names whose object is known: from closures, imports and assignments
        self._at_hand: Thing = _UNKNOWN  # what the instruction before has loaded
        self._module: Thing = _UNKNOWN  # what is being imported from
        self._constants: tuple[Thing, Thing] = (0, None)  # the last two that were loaded

    def __iter__(self) -> Iterator[tuple[Thing, int]]:
        line = self._code.co_firstlineno
        for instruction in dis.get_instructions(self._code):
            if instruction.opname in _FILLERS:
                continue
            line = (instruction.positions and instruction.positions.lineno) or line
            self._at_hand = self._follow(instruction.opname, instruction.argval)
            if self._at_hand is not _UNKNOWN:
                yield self._at_hand, line
        for constant in self._code.co_consts:
            if isinstance(constant, CodeType):  # a function, lambda, comprehension or class inside this one
                visible = {name: self._known[name] for name in constant.co_freevars if name in self._known}
                yield from Reading(constant, self._globals, visible)

    def _follow(self, operation: str, argument: Thing) -> Thing:
        match operation:
            case "LOAD_ATTR" | "LOAD_METHOD":
                return _member(self._at_hand, argument)
            case "LOAD_GLOBAL" | "LOAD_NAME":
                return self._globals.get(argument, getattr(builtins, argument, _UNKNOWN))
            case "IMPORT_NAME":
                return self._import(argument)
            case "IMPORT_FROM":
                return _member(self._module, argument)
            case "SWAP":
                self._module = self._at_hand  # `import a.b as c` goes down one name at a time
            case "LOAD_CONST" | "LOAD_SMALL_INT":
                self._constants = self._constants[1], argument
            case _ if operation.startswith(_LOCAL):
                return self._local(operation, argument)
        return _UNKNOWN

    def _local(self, operation: str, names: str | tuple[str, ...]) -> Thing:
        # Since 3.13 one instruction may be two, with two names: STORE_FAST_LOAD_FAST.
        for act, name in zip(operation.split("_FAST"), (names,) if isinstance(names, str) else names, strict=False):
            if "STORE" in act:
                self._known[name] = self._at_hand
                self._at_hand = _UNKNOWN
            else:
                self._at_hand = self._known.get(name, _UNKNOWN)
        return self._at_hand

    def _import(self, name: str) -> Thing:
        level, wanted = self._constants
        if level:
            with contextlib.suppress(ImportError):
                name = importlib.util.resolve_name("." * level + name, self._globals.get("__package__"))
        if not wanted:
            name = name.partition(".")[0]  # `import a.b` gives a
        self._module = sys.modules.get(name, Unloaded(name))
        return self._module


def _member(owner: Thing, name: str) -> Thing:
    """Give an attribute without running any code for it: a property or a stand-in might do anything."""
    if owner is _UNKNOWN:
        return _UNKNOWN
    kind = type(owner)
    if kind is Unloaded:
        return Unloaded(f"{owner.name}.{name}")
    if issubclass(kind, ModuleType):
        full = f"{owner.__name__}.{name}"
        return vars(owner).get(name, sys.modules.get(full, Unloaded(full)))
    if not issubclass(kind, type):
        return inspect.getattr_static(kind, name, _UNKNOWN)
    static = inspect.getattr_static(owner, name, _UNKNOWN)
    # Bound to its class, as the code will see it: datetime.now, not a descriptor.
    return getattr(owner, name) if type(static) in (classmethod, staticmethod, ClassMethodDescriptorType) else static


def _functions_of(thing: Thing) -> Iterator[FunctionType]:
    """Give the Python code behind something that can be called, as far as it is plain to see."""
    kind = type(thing)
    if kind is functools.partial:
        yield from _functions_of(thing.func)
    elif kind in (MethodType, staticmethod, classmethod):
        yield from _functions_of(thing.__func__)
    elif kind is FunctionType:
        yield thing
        yield from _functions_of(vars(thing).get("__wrapped__"))
    elif kind is type:
        yield from (f for name in ("__init__", "__post_init__") if type(f := vars(thing).get(name)) is FunctionType)


def _closure(function: FunctionType) -> dict[str, Thing]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: _content(cell) for name, cell in cells}


def _content(cell: CellType) -> Thing:
    try:
        return cell.cell_contents
    except ValueError:  # still empty
        return _UNKNOWN


def _package(function: FunctionType) -> str:
    return str(function.__module__).partition(".")[0]
