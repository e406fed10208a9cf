"""Reloading: runs a program's rooms in a process of their own, and starts that anew whenever a source file changes."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer

from watchbill.env import Served, Terminal, ignores_hangup

LOOK_EVERY: Final = 0.3  # seconds between two looks at the files
GRACE: Final = 15  # seconds for what runs to end; a second change, or Ctrl-C, does not wait
PASSED_OVER: Final = frozenset({"__pycache__", "node_modules", "venv", "site-packages"})

Sources = dict[str, int]


def reload_on_change(program: str, store: str | None) -> int:
    """Serve a program until somebody stops it; gives the exit code."""
    stopped, terminal = threading.Event(), Terminal()
    for sign in (signal.SIGINT, signal.SIGTERM, *(() if ignores_hangup() else (signal.SIGHUP,))):
        signal.signal(sign, lambda _number, _frame: stopped.set())
    folder = folder_of(program)
    while True:
        before = sources(folder)
        serving = Served("watchbill.cli.serve", program, *([] if store is None else [store]))
        changed = _watch(folder, before, serving, stopped, terminal)
        serving.end(GRACE)
        if changed is None:
            return 0
        typer.echo(f"watchbill: {changed} changed; starting again", err=True)


def _watch(folder: Path, before: Sources, serving: Served, stopped: threading.Event, terminal: Terminal) -> str | None:
    """Wait until a source changes, and name it; None: a signal or the end of the terminal stops this process.

    A program that has ended waits for a change, too.
    """
    told = False
    while not stopped.wait(LOOK_EVERY) and not terminal.gone:
        now = sources(folder)
        if now != before:
            differ = {file for file, _ in now.items() ^ before.items()}
            return os.path.relpath(min(differ), folder)
        if serving.ended and not told:
            told = True
            typer.echo("watchbill: the program has ended; change it, and it is started again", err=True)
    return None


def folder_of(program: str) -> Path:
    """Give the folder whose sources are looked at: the program's own, or for a module the current one."""
    place = program.rpartition(":")[0] or program
    return Path(place).resolve().parent if place.endswith(".py") else Path.cwd()


def sources(folder: Path) -> Sources:
    """Give every source file under a folder with the time of its last change."""
    found: Sources = {}
    for file in _python_files(str(folder)):
        try:
            found[file] = os.stat(file).st_mtime_ns
        except OSError:
            continue  # gone a moment ago
    return found


def _python_files(folder: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in PASSED_OVER:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _python_files(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path
