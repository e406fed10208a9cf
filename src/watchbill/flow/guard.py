"""Guard: refuses files, sockets, processes and threads in a workflow's code while it runs; for tests and `dev`.

The scan reads a workflow's code before it runs, and cannot see through a library. Python itself tells, by its audit
events, when a file is opened or a process is started, by whomever. A hook for them cannot be removed again and costs
every audited call of the process a little, so it is set only by those who want the guard. Clocks and chance are not
audited; a replay finds those.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from watchbill.errors import NotInWorkflowError
from watchbill.flow.drain import Drain
from watchbill.flow.replay import WorkflowLoop, current
from watchbill.flow.workflows import Workflow

# Events of Python, by what `allow` of a workflow calls them. A dot at the end stands for all of that module.
WATCHED: Final = {
    "open": "open",
    "builtins.input": "input",
    "glob.": "glob.glob",
    "os.listdir": "os.listdir",
    "os.mkdir": "os.mkdir",
    "os.remove": "os.remove",
    "os.rename": "os.rename",
    "os.rmdir": "os.rmdir",
    "os.scandir": "os.scandir",
    "shutil.": "shutil.*",
    "tempfile.": "tempfile.*",
    "sqlite3.connect": "sqlite3.connect",
    "socket.": "socket.socket",
    "ftplib.": "ftplib.FTP",
    "http.client.": "http.client.HTTPConnection",
    "smtplib.": "smtplib.SMTP",
    "urllib.Request": "urllib.request.urlopen",
    "os.exec": "os.system",
    "os.fork": "os.fork",
    "os.posix_spawn": "os.posix_spawn",
    "os.spawn": "os.system",
    "os.system": "os.system",
    "subprocess.Popen": "subprocess.Popen",
    "_thread.": "threading.Thread",  # since 3.12
    "time.sleep": "time.sleep",  # since 3.13
}

# Who may open files while a workflow runs: what they read does not reach the workflow.
LET_THROUGH: Final = frozenset(
    {"_frozen_importlib", "_frozen_importlib_external", "_pytest", "encodings", "importlib", "linecache", "logging"}
    | {"pkgutil", "tokenize", "traceback", "warnings", "zoneinfo", "zipimport"}
)


class Guard:
    """The hook, and whether it does anything."""

    def __init__(self) -> None:
        self._wanted = 0
        self._set = False

    @contextmanager
    def on(self) -> Iterator[None]:
        """Guard workflows for a while."""
        if not self._set:
            self._set = True
            sys.addaudithook(self._hear)
        self._wanted += 1
        try:
            yield
        finally:
            self._wanted -= 1

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._wanted:
            return
        name = WATCHED.get(event) or WATCHED.get(event.rpartition(".")[0] + ".")
        if name is None:
            return
        loop = current()
        if loop is not None and loop.is_running() and not _is_allowed(loop, name) and not _is_harmless(event, args):
            loop.refuse_for(NotInWorkflowError(name, _written(event, args)))


def _is_allowed(loop: WorkflowLoop, name: str) -> bool:
    workflow = loop.owner
    allowed: Iterable[str] = workflow.allow if isinstance(workflow, Workflow) else ()
    return any(name in (each, f"builtins.{each}") or name.endswith(f".{each}") for each in allowed)


def _is_harmless(event: str, args: tuple[Any, ...]) -> bool:
    if event == "open" and _is_zone(args[0]):
        return True
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - there is no other way to see who asks
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module in (Drain.__module__, WorkflowLoop.__module__):
            return False  # from here on down it is ours
        if module in LET_THROUGH or module.partition(".")[0] in LET_THROUGH:
            return True
        frame = frame.f_back
    return False


def _is_zone(path: object) -> bool:
    # The first use of a zone reads its file, and does so in C: no frame says who asks.
    zoneinfo = sys.modules.get("zoneinfo")
    return isinstance(path, str) and path.startswith(tuple(getattr(zoneinfo, "TZPATH", ())))


def _written(event: str, args: tuple[Any, ...]) -> str:
    return f"{event}({args[0]!r:.80})" if args and isinstance(args[0], str | bytes) else f"{event}()"


# One for the process, as the hook is: what is wanted by one test is off again in the next.
GUARD: Final = Guard()
