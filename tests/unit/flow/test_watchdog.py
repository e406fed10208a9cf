"""The watchdog interrupts a drain that it has seen too often, and no other code."""

import threading
import time

from watchbill.flow.watchdog import MOST_LOOKS, NeverYields, Watchdog

PATIENCE = 10  # seconds: only a failing test waits that long


class Drain:
    """A thread that drains until it is interrupted, or may end."""

    def __init__(self) -> None:
        self.interrupted = self.may_end = False
        self._thread = threading.Thread(target=self._drain)
        self._thread.start()
        assert self._thread.ident is not None
        self.dog = Watchdog(self._thread.ident)
        self.dog.running, self.dog.beat = True, 1

    def _drain(self) -> None:
        try:
            while not self.may_end:
                time.sleep(0.001)
        except NeverYields:
            self.interrupted = True

    def look(self, times: int) -> None:
        for _ in range(times):
            self.dog.look()

    def join(self, *, may_end: bool = False) -> None:
        self.may_end = may_end
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def test_drain_that_is_seen_too_often_is_interrupted() -> None:
    drain = Drain()
    drain.look(1 + MOST_LOOKS)
    drain.join()
    assert drain.interrupted
    assert drain.dog.ended()
    assert not drain.dog.ended()


def test_drain_that_comes_again_is_another_one() -> None:
    drain = Drain()
    drain.look(MOST_LOOKS)
    drain.dog.beat += 1
    drain.look(MOST_LOOKS)
    drain.dog.running = False
    drain.look(2 * MOST_LOOKS)
    assert not drain.dog.aimed
    assert not drain.dog.ended()
    drain.join(may_end=True)
    assert not drain.interrupted


class Ending:
    """The lock of a watchdog: while it is waited for, the drain ends."""

    def __init__(self, dog: Watchdog) -> None:
        self._dog = dog

    def __enter__(self) -> None:
        self._dog.running = False

    def __exit__(self, *_: object) -> None: ...


def test_drain_that_ends_while_it_is_aimed_at_is_spared() -> None:
    drain = Drain()
    drain.look(MOST_LOOKS)
    drain.dog._lock = Ending(drain.dog)  # type: ignore[assignment]
    drain.look(1)
    assert drain.dog.aimed
    drain.join(may_end=True)
    assert not drain.interrupted
