"""Watchdog: stops workflow code that never yields, from another thread; the drain itself only sees code that does.

`while True: pass` in a workflow would stop every run of its process. The watchdog looks every second whether the same
drain still runs; after five it raises in that thread, wherever the code is, and again until the code has ended.
"""

import threading
from typing import Final

from watchbill.clock import SECOND, Micros

LOOK_EVERY: Final[Micros] = SECOND
MOST_LOOKS: Final = 5  # in which the same drain may be seen: other runs wait meanwhile


class NeverYields(BaseException):
    """Raised into workflow code that has run for too long. No Exception, so that `except Exception` lets it pass."""


class Watchdog:
    """Watches the drains of one scheduler. The drain says that it runs, `look` is called from another thread."""

    __slots__ = ("_lock", "_looks", "_seen", "aimed", "beat", "running", "thread")

    def __init__(self, thread: int) -> None:
        self.beat = 0  # counts drains
        self.running = False
        self.thread = thread  # whose drains they are
        self._seen = self._looks = 0
        self.aimed = False
        self._lock = threading.Lock()

    def look(self) -> None:
        """Look whether the same drain still runs; if it has for too long, interrupt it."""
        if not self.running or self.beat != self._seen:
            self._seen, self._looks = self.beat, 0
            return
        self._looks += 1
        if self._looks < MOST_LOOKS:
            return
        with self._lock:
            # Aimed before it is looked at again: a drain that ends now sees that, and waits for the lock.
            self.aimed = True
            if self.running and self.beat == self._seen:
                _raise_in(self.thread, NeverYields)

    def ended(self) -> bool:
        """Take back what was aimed at the drain that ends, and say whether there was something."""
        if not self.aimed:
            return False
        with self._lock:
            _raise_in(self.thread, None)
            self.aimed = False
        return True


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Raise an exception in another thread, at its next instruction; None: take one back that was not raised yet."""
    import ctypes  # costs milliseconds, and almost no program comes here

    raised = ctypes.py_object() if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
