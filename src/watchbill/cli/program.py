"""Program: the user's own code, for commands that need it: found by name, and read without being run."""

import contextlib
import os
import sys
import traceback
from functools import cache
from types import ModuleType

from watchbill.app.app import App
from watchbill.errors import InvalidOptionError, WatchbillError
from watchbill.flow.program import Named, app_not_there, named_program, read_program


@cache
def load_app(name: str) -> App:
    """Give the App that `module:app`, `module` or `file.py` names; what such a file would run is not run."""
    named = named_program(name)
    return _app_in(_read(name, named), name, named.app)


def needed_app(name: str | None, command: str) -> App:
    """Give the App for a command that cannot do without."""
    if not name:
        raise InvalidOptionError(
            f"`{command}` needs your program: name it by --app or $WATCHBILL_APP, as module:app or a file"
        )
    return load_app(name)


def _read(name: str, named: Named) -> ModuleType:
    program = named.program
    sys.path[:] = program.path
    try:
        # What it prints must not stand among our JSON.
        with contextlib.redirect_stdout(sys.stderr):
            return read_program(program)
    except ModuleNotFoundError as error:
        if program.module and error.name is not None and program.module.startswith(error.name):
            raise InvalidOptionError(
                f"program {name!r} is not there: no module {program.module!r} in {os.getcwd()!r} or among the installed"
                " packages; name it as module:app, or by its file"
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
    if attribute and attribute in apps:
        return apps[attribute]
    if attribute or len({id(app) for app in apps.values()}) != 1:
        raise app_not_there(name, attribute, list(apps))
    return next(iter(apps.values()))
