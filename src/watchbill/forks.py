"""Forks: what a process does before it forks, and what its forked child forgets.

A forked child has a copy of the memory and of the descriptors of its parent, and none of the threads. Event loops,
connections and locks of the parent stay the parent's: the child never uses them, and never closes them in a way that
the parent or a server could notice. Each class that holds such a thing registers a method by `when_forked`. The child
calls the method before anything else runs there.

A fork must not cut a job of SQLite in two: a thread that holds one of SQLite's mutexes would not exist in the child.
Jobs run under locks of `lock_for_jobs`; a fork waits until these locks are free.
"""

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

import msgspec

PATIENCE: Final = 10.0  # seconds; a job of SQLite waits 5 s for a file that is locked, and ends then


class _Kept(msgspec.Struct, gc=False):
    """Refers to itself, and the collector does not see it: so nothing in it is ever freed, not even at exit."""

    things: tuple[object, ...]
    itself: "_Kept | None" = None


class Forks:
    """The forks of this process. There is one, because hooks of forks cannot be removed."""

    def __init__(self) -> None:
        self.was_clean = True  # in a child: no job was cut in two
        self._forking = threading.Lock()  # one thread at a time
        self._held: list[threading.Lock] = []
        self._jobs: dict[int, weakref.ref[threading.Lock]] = {}
        self._forgetting: dict[tuple[int, str], weakref.ref[object]] = {}
        os.register_at_fork(
            before=self._before, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
        )

    def lock_for_jobs(self) -> threading.Lock:
        """Make a lock for jobs that a fork must not cut in two; the jobs must not wait for each other."""
        lock, jobs = threading.Lock(), self._jobs
        key = id(lock)
        jobs[key] = weakref.ref(lock, lambda _: jobs.pop(key, None))
        return lock

    def when_forked(self, forget: Callable[[], None]) -> None:
        """Call a method of an object in every forked child, for as long as the object is there."""
        owner, forgetting = forget.__self__, self._forgetting  # type: ignore[attr-defined]
        key = id(owner), forget.__name__
        forgetting[key] = weakref.ref(owner, lambda _: forgetting.pop(key, None))

    def _before(self) -> None:
        self._forking.acquire(timeout=PATIENCE)
        self.was_clean = True
        for found in list(self._jobs.values()):
            lock = found()
            if lock is None:
                continue
            if not lock.acquire(timeout=PATIENCE):
                self.was_clean = False
                return
            self._held.append(lock)

    def _after_in_parent(self) -> None:
        self._release()
        with contextlib.suppress(RuntimeError):  # it was not free in time
            self._forking.release()

    def _after_in_child(self) -> None:
        self._forking = threading.Lock()
        self._release()
        for (_, name), found in list(self._forgetting.items()):
            owner = found()
            if owner is not None:
                getattr(owner, name)()

    def _release(self) -> None:
        while self._held:
            self._held.pop().release()


FORKS: Final = Forks()


def abandon(*things: object) -> None:
    """Keep things of the parent for ever: freeing them would close what the parent uses."""
    kept = _Kept(things)
    kept.itself = kept


def forget_wakeups() -> None:
    """Send no signal of this child to the event loop of its parent; Python 3.12 and newer do so by themselves."""
    with contextlib.suppress(ValueError):  # not on the main thread, which the only thread of a child is
        signal.set_wakeup_fd(-1)


def let_go(descriptor: int) -> None:
    """Close a descriptor of the parent in this child; its number stays taken, so that no other file gets it."""
    if descriptor < 0:
        return
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.dup2(nothing, descriptor, inheritable=False)
        finally:
            os.close(nothing)


def socket_number(transport: Any) -> int:  # noqa: ANN401 - of asyncio or of uvloop
    """Give the descriptor of a transport; -1 if it is closed."""
    if transport is None or transport.is_closing():
        return -1
    connected = transport.get_extra_info("socket")
    return -1 if connected is None else int(connected.fileno())
