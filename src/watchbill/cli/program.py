"""Program: the user's own code, for commands that need it: found by name, and read without being run."""

import contextlib
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType

from watchbill.app.app import App
from watchbill.errors import InvalidOptionError, WatchbillError
from watchbill.flow.program import Program, read_program


@cache
def load_app(name: str) -> App:
    """Give the App that `module:app`, `module` or `file.py` names; what such a file would run is not run."""
    place, attribute = _split(name)
    return _app_in(_read(name, place), name, attribute)


def needed_app(name: str | None, command: str) -> App:
    """Give the App for a command that cannot do without."""
    if not name:
        raise InvalidOptionError(
            f"`{command}` needs your program: name it by --app or $WATCHBILL_APP, as module:app or a file"
        )
    return load_app(name)


def _split(name: str) -> tuple[str, str]:
    place, colon, attribute = name.rpartition(":")
    return (place, attribute) if colon and attribute.isidentifier() else (name, "")


def _read(name: str, place: str) -> ModuleType:
    is_file = place.endswith(".py") or os.sep in place
    file = Path(place).resolve()
    if is_file and not file.is_file():
        raise InvalidOptionError(f"program {name!r} is not there: no file {str(file)!r}")
    folder = str(file.parent) if is_file else os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as Python does it for scripts
    program = Program("" if is_file else place, str(file) if is_file else "", tuple(sys.path), tuple(sys.argv))
    try:
        # What it prints must not stand among our JSON.
        with contextlib.redirect_stdout(sys.stderr):
            return read_program(program)
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and place.startswith(error.name):
            raise InvalidOptionError(
                f"program {name!r} is not there: no module {place!r} in {folder!r} or among the installed packages;"
                " name it as module:app, or by its file"
            ) from error
        raise _broken(name, error) from error
    except WatchbillError:
        raise
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> InvalidOptionError:
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
    return InvalidOptionError(f"program {name!r} cannot be read: {what}")


def _app_in(module: ModuleType, name: str, attribute: str) -> App:
    apps = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    if attribute:
        if attribute not in apps:
            raise InvalidOptionError(f"program {name!r} has no App called {attribute!r}; it has {_named(list(apps))}")
        return apps[attribute]
    if len({id(app) for app in apps.values()}) != 1:
        raise InvalidOptionError(f"program {name!r} must name its App, as module:app; it has {_named(list(apps))}")
    return next(iter(apps.values()))


def _named(apps: list[str]) -> str:
    return ", ".join(apps) if apps else "none"
