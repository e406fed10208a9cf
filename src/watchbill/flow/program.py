"""Program: the user's own code, found again from another process.

A child process reads the file or module that defined a step. A script that calls `app.run` at its end needs no
`if __name__` guard: reading stops there.
"""

import asyncio
import contextlib
import importlib
import os
import sys
from collections.abc import Coroutine, Iterator, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.errors import InvalidOptionError, WatchbillError
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow

_READ_AS: Final = "__watchbill_main__"  # never __main__: guards must not open
_reading: ContextVar[bool] = ContextVar("watchbill_reading", default=False)


class ReadThisFar(BaseException):
    """The program began to run something: all its definitions have been read."""


class StepNotReachableError(WatchbillError):
    """A step cannot be found again from another process."""

    def __init__(self, step: str, why: str) -> None:
        self.step = step
        super().__init__(
            f"step {step!r} cannot run in a process of its own: {why}; define it, and its App, at module level"
        )


class UnguardedRunError(InvalidOptionError):
    """A program starts an event loop while it is read for its definitions."""

    def __init__(self, file: str, line: int) -> None:
        self.file = file
        self.line = line
        super().__init__(
            f"{file}, line {line}, calls asyncio.run() while the program is read for its definitions:"
            ' put that line under `if __name__ == "__main__":`'
        )


class Program(msgspec.Struct, frozen=True):
    """Where to read the code again."""

    module: str  # a module's name, or "" for a script
    file: str  # the script's file
    path: tuple[str, ...]  # sys.path of the one who asks
    arguments: tuple[str, ...]  # its sys.argv: a script may look at it while it is read


def stop_if_reading() -> None:
    """Stop here when the program is only being read for its definitions."""
    if _reading.get():
        raise ReadThisFar


def locate(code: Step[..., Any] | Workflow[..., Any]) -> Program:
    """Say where a step's code, or a workflow's, can be read again."""
    name = code.plain.__module__
    module = sys.modules.get(name)
    path, arguments = tuple(sys.path), tuple(sys.argv)
    if name != "__main__":
        return Program(name, getattr(module, "__file__", None) or "", path, arguments)
    spec = getattr(module, "__spec__", None)
    if spec is not None:
        return Program(spec.name, "", path, arguments)
    file = getattr(module, "__file__", None)
    if file is None:
        raise StepNotReachableError(code.name, "it was typed into an interactive session")
    return Program("", os.path.abspath(file), path, arguments)


def read_step(program: Program, name: str) -> Step[..., Any]:
    """Read the program and find the step in it."""
    for value in _values(program):
        if isinstance(value, Step) and value.name == name:
            return value
        registry = getattr(value, "registry", None)
        if isinstance(registry, Registry) and name in registry.steps:
            return registry.steps[name]
    raise StepNotReachableError(name, f"reading {program.module or program.file!r} did not define it")


def read_workflow(program: Program, name: str) -> Workflow[..., Any] | None:
    """Read the program and find the workflow in it; None when it does not define it at module level."""
    return next((w for w in _values(program) if isinstance(w, Workflow) and w.name == name), None)


def find_app(program: Program, name: str) -> Any:  # noqa: ANN401 - App stands above this floor
    """Read the program and find the App of that name in it; without a name, its only one."""
    apps = {key: value for key, value in _definitions(program).items() if _is_app(value)}
    if name and name in apps:
        return apps[name]
    if name or len({id(app) for app in apps.values()}) != 1:
        raise app_not_there(program.module or program.file, name, list(apps))
    return next(iter(apps.values()))


def app_not_there(program: str, name: str, found: Sequence[str]) -> InvalidOptionError:
    """Give the error that says which Apps a program has, when none of them was meant."""
    there = ", ".join(found) if found else "none"
    if name:
        return InvalidOptionError(f"program {program!r} has no App called {name!r}; it has {there}")
    return InvalidOptionError(f"program {program!r} must name its App, as module:app; it has {there}")


def _is_app(value: object) -> bool:
    return not isinstance(value, type) and isinstance(getattr(value, "registry", None), Registry)


def _values(program: Program) -> list[object]:
    """Give what a program defines at module level."""
    return list(_definitions(program).values())


def _definitions(program: Program) -> dict[str, object]:
    sys.path[:] = program.path
    sys.argv[:] = program.arguments
    return dict(vars(read_program(program)))


class Named(NamedTuple):
    """A program as people name it: `module:app`, `module` or `file.py`."""

    program: Program
    app: str  # "" is its only one


def named_program(name: str) -> Named:
    """Find where a program is, without reading it; the folder of a file, else the current one, is importable."""
    place, colon, app = name.rpartition(":")
    if not name.strip() or (colon and not place):
        raise InvalidOptionError(f"program {name!r} names none: give it as module:app, or by its file")
    if not colon or not app.isidentifier():
        place, app = name, ""
    is_file = place.endswith(".py") or os.sep in place
    file = os.path.realpath(place)
    if is_file and not os.path.isfile(file):
        raise InvalidOptionError(f"program {name!r} is not there: no file {file!r}")
    folder = os.path.dirname(file) if is_file else os.getcwd()
    path = sys.path if folder in sys.path else [folder, *sys.path]  # as Python does it for scripts
    program = Program("" if is_file else place, file if is_file else "", tuple(path), tuple(sys.argv))
    return Named(program, app)


def read_program(program: Program) -> ModuleType:
    """Read a program for its definitions: what it would run is not run."""
    token = _reading.set(True)
    try:
        with _no_event_loops():
            if program.module:
                return _import(program)
            return _execute(_READ_AS, program.file)
    finally:
        _reading.reset(token)


@contextlib.contextmanager
def _no_event_loops() -> Iterator[None]:
    """Refuse asyncio.run() to a program that is being read: it would run the user's main function."""
    run, run_in = asyncio.run, asyncio.Runner.run

    def refuse(main: object) -> None:
        if _reading.get():
            if isinstance(main, Coroutine):
                main.close()
            raise UnguardedRunError(*_module_line())

    def guarded(main: Any, **options: Any) -> Any:  # noqa: ANN401 - as asyncio.run
        refuse(main)
        return run(main, **options)

    def guarded_in(runner: asyncio.Runner, main: Any, **options: Any) -> Any:  # noqa: ANN401 - as Runner.run
        refuse(main)
        return run_in(runner, main, **options)

    asyncio.run, asyncio.Runner.run = guarded, guarded_in  # type: ignore[assignment]
    try:
        yield
    finally:
        asyncio.run, asyncio.Runner.run = run, run_in  # type: ignore[method-assign]


def _module_line() -> tuple[str, int]:
    """Find the line at module level that is being executed."""
    frame = sys._getframe()  # noqa: SLF001 - what inspect does, without reading sources
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _import(program: Program) -> ModuleType:
    try:
        return importlib.import_module(program.module)
    except ReadThisFar:
        # An import that was stopped leaves no module behind: read its file once more, and keep what it defined.
        from importlib.util import find_spec  # only a child process reads programs

        spec = find_spec(program.module)
        if spec is None or spec.origin is None:
            raise StepNotReachableError(program.module, "its module has no file") from None
        return _execute(program.module, spec.origin)
    except ModuleNotFoundError as error:
        if error.name != program.module or not program.file:
            raise
        return _execute(program.module, program.file)  # a module that was loaded from its file, not from the path


def _execute(name: str, file: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location  # only a child process reads programs

    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise StepNotReachableError(name, f"{file!r} cannot be read as Python")
    module = module_from_spec(spec)
    sys.modules[name] = module
    with contextlib.suppress(ReadThisFar):  # then all that stands above the call is defined
        spec.loader.exec_module(module)
    return module
