"""Branches: the tasks of a workflow, and the keys that are counted in them.

A key is `branch + name[.N]`, where N counts the calls of that name made in that task: `encode`, `encode.2`,
`order.2/charge`. Counted per run a key would mean other calls whenever two tasks race differently: after a rewind
`charge.3` could be another customer under an old idempotency key.
"""

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context
from operator import attrgetter
from typing import Final

from watchbill.flow.futures import Evicted, untie

LONGEST_BRANCH: Final = 200  # characters: keys are stored and read; beyond it a hash stands for the branch
MOST_THROWS: Final = 100  # each `finally` that waits needs one more; a bare `except:` in a loop would need endless ones

_waited_for = attrgetter("_fut_waiter")
_NUMBERED: Final = r"\.\d+\Z"


class Branch:
    """Where calls are counted: one per task, and one for all callbacks that run in none."""

    __slots__ = ("counts", "latest", "name", "parent", "prefix")

    def __init__(self, name: str, prefix: str, parent: "Branch | None") -> None:
        if len(prefix) > LONGEST_BRANCH:
            import hashlib  # hardly ever: a hundred nested tasks

            prefix = hashlib.sha256(prefix.encode()).hexdigest()[:24] + "/"
        self.name = name
        self.prefix = prefix
        self.parent = parent
        self.latest = ""  # the prefix of the newest child
        self.counts: dict[str, int] = {}  # calls by name, tasks by name and "/"

    def key(self, name: str) -> str:
        """Make the key of the next call of that name: `name`, `name.2`, ..."""
        try:
            number = self.counts[name] + 1
        except KeyError:
            name = _unambiguous(name)
            number = self.counts.get(name, 0) + 1
        self.counts[name] = number
        return f"{self.prefix}{name}.{number}" if number > 1 else self.prefix + name

    def has_used(self, key: str) -> bool:
        """Say whether a call of main got that key by counting."""
        name, _, number = key.rpartition(".")
        return key in self.counts or (number.isdecimal() and 1 < int(number) <= self.counts.get(name, 0))

    def child(self, name: str) -> "Branch":
        """Make the branch of the next task of that name: `name/`, `name.2/`, ..."""
        name = _unambiguous(name)
        number = self.counts[name + "/"] = self.counts.get(name + "/", 0) + 1
        child = Branch(name, f"{self.prefix}{name}.{number}/" if number > 1 else f"{self.prefix}{name}/", self)
        self.latest = child.prefix
        return child

    def renamed(self, name: str) -> "Branch":
        """Give the branch that this one, the newest of its parent, would have been with another name."""
        if self.parent is None or self.parent.latest != self.prefix:
            return self
        self.parent.counts[self.name + "/"] -= 1
        return self.parent.child(name)


class BranchTask(asyncio.Task[object]):
    """A task of a workflow: main, or a branch of it."""

    __slots__ = ("branch", "number")

    def __init__(  # noqa: PLR0913 (what a task of asyncio takes, and two of ours)
        self,
        coroutine: Coroutine[object, object, object],
        loop: asyncio.AbstractEventLoop,
        number: int,
        branch: Branch,
        name: str,
        context: Context | None,
    ) -> None:
        # Before asyncio's own part, which asks for the hash.
        self.number = number
        self.branch = branch
        # Never without a name: asyncio would count tasks per process, and a workflow that looks at it would diverge.
        super().__init__(coroutine, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self.number

    def set_name(self, value: object) -> None:
        """Name the task, and its branch if it is brand new: before 3.13 create_task(name=) names it after making it."""
        super().set_name(str(value))
        coroutine = self.get_coro()
        if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            self.branch = self.branch.renamed(str(value))

    def bury(self) -> None:
        """Close the coroutine and forget it: the synchronous part of its `finally` blocks runs, no more."""
        coroutine = self.get_coro()
        if not _is_closed_by(coroutine.throw):
            _never_free(coroutine)
        untie(self)
        waited_for = _waited_for(self)
        if waited_for is not None:
            untie(waited_for)


def bury_generator(generator: AsyncGenerator[object, object]) -> None:
    """Close an async generator like a task."""
    closing = generator.aclose()
    try:
        closing.send(None)
    except BaseException:
        return
    if not _is_closed_by(closing.throw):
        _never_free(generator)


def _is_closed_by(throw: Callable[[BaseException], object]) -> bool:
    # Not close(): before 3.13 it does not reach an async generator that the coroutine waits in.
    for _ in range(MOST_THROWS):
        try:
            throw(Evicted())
        except BaseException:
            return True
    return False


def _never_free(unclosable: object) -> None:
    """Leak it on purpose: freed, also at exit, it would run once more, outside of its run, and call steps for real."""
    import ctypes  # costs milliseconds, and almost no program comes here

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(unclosable))


def name_of(coroutine: object) -> str:
    """Give the name that a branch gets from its coroutine."""
    return str(getattr(coroutine, "__name__", "task"))


def _unambiguous(name: str) -> str:
    """Keep a name apart from what keys are made of: `a.2` is the second `a`, and `/` ends a branch.

    A task may have any name, and keys are stored: what no store can hold is escaped, as `repr()` shows it.
    """
    if not name.isprintable():
        # Lone surrogates, as os.fsdecode() makes them, are no UTF-8; PostgreSQL has no NUL in a text.
        name = name.replace("\0", "\\x00").encode(errors="backslashreplace").decode()
    name = name.replace("/", "_")
    return name + "_" if re.search(_NUMBERED, name) else name
