"""PatientLoop: virtual time for the tests of users, whose code has real threads.

Time jumps when nobody has anything to do. While a thread works, time stands still, so that a step in a thread takes no
time at all however long it takes; but a timer that is so far away as the thread has been at work in real time comes
all the same: a step that waits for its own timeout gets it. Everything else comes in order, so the same test is the
same each time.
"""

import asyncio
import contextlib
import threading
from asyncio import AbstractEventLoop as Loop
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, cast

from watchbill.clock import SECOND, Micros, SystemClock
from watchbill.env import Done, Job, SystemThreads
from watchbill.errors import WatchbillError
from watchbill.testing.chance import Chance
from watchbill.testing.virtual import LIFE, Life, VirtualLoop

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

AT_ONCE: Final = 0.25  # real seconds that all wait for a job that has begun: most have ended by then, in order
SETTLED_WITHIN: Final = 1.0  # real seconds: a thread that waits for something else must not stop the test for ever
EXECUTOR_THREADS: Final = 32  # of asyncio.to_thread


class NotInTestError(WatchbillError, RuntimeError):
    """A step asked the virtual event loop for the network, another process, or a signal."""

    def __init__(self, call: str) -> None:
        self.call = call
        super().__init__(
            f"asyncio {call}() is not possible under `watch`, whose time is virtual: give the step a fake, or make it a"
            " plain `def` with a blocking client, which runs in a real thread"
        )


def _refused(method: F) -> F:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise NotInTestError(method.__name__)

    return cast(F, refuse)


class PatientLoop(VirtualLoop):
    """Virtual time in order, that waits for threads."""

    def __init__(self) -> None:
        super().__init__(Chance(0))
        self.at_work = 0  # jobs on threads
        self._clock = SystemClock()
        self._called = threading.Event()  # something has come from another thread
        self._waited: Micros = 0  # real time spent with threads since the virtual time moved
        self._settling = False
        self.crews: list[Crew] = []
        self._executors: dict[Life | None, Crew] = {}  # of asyncio.to_thread, by process

    def settle(self) -> None:
        """Let everything happen that can happen now, without any time passing."""
        self._settling = True
        self._waited = 0
        try:
            self.run_forever()
        finally:
            self._settling = False

    def start_on_thread(self, start: Callable[[], None]) -> None:
        """Start a job on a thread, and let everybody wait until it has ended or asks for something."""
        self._called.clear()
        start()
        self._called.wait(AT_ONCE)

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override] # noqa: ANN401 - passed through
        """Run a function on one of our threads, whichever executor is named."""
        life = LIFE.get()
        if life not in self._executors:
            self._executors[life] = Crew(self, "to_thread", EXECUTOR_THREADS)
        future: asyncio.Future[T] = self.create_future()

        def done(result: T | None, error: BaseException | None) -> None:
            if future.done():
                return  # its caller was cancelled
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(cast(T, result))

        self._executors[life].submit(partial(func, *args), done)
        return future

    def close(self) -> None:
        """Let the threads end, too."""
        for crew in self.crews:
            crew.close()
        super().close()

    def _run_once(self) -> None:
        ready = self._ready
        if not ready:
            self._move_on()
        while ready and not self._stopping:
            self._run_one(ready.pop(0))

    def _move_on(self) -> None:
        due = self._next_at()
        if due != self.time():
            span = SETTLED_WITHIN if self._settling else None if due is None else due - self.time()
            if self.at_work and self._wait(span):
                return
            if self._settling:
                self.stop()
                return
        self._waited = 0
        super()._move_on()

    def _wait(self, span: float | None) -> bool:
        """Wait for a thread, really; False when that has taken so many seconds since the time has moved."""
        left = None if span is None else span - self._waited / SECOND
        if left is not None and left <= 0:
            return False
        begun = self._clock.boot()
        self._called.clear()
        if not self._ready:  # whoever says something puts it down first, then wakes us
            self._called.wait(left)
        self._waited += self._clock.boot() - begun
        return True

    def _write_to_self(self) -> None:
        self._called.set()

    add_reader = _refused(Loop.add_reader)
    add_signal_handler = _refused(Loop.add_signal_handler)
    add_writer = _refused(Loop.add_writer)
    connect_read_pipe = _refused(Loop.connect_read_pipe)
    connect_write_pipe = _refused(Loop.connect_write_pipe)
    create_connection = _refused(Loop.create_connection)
    create_datagram_endpoint = _refused(Loop.create_datagram_endpoint)
    create_server = _refused(Loop.create_server)
    create_unix_connection = _refused(Loop.create_unix_connection)
    create_unix_server = _refused(Loop.create_unix_server)
    sock_accept = _refused(Loop.sock_accept)
    sock_connect = _refused(Loop.sock_connect)
    sock_recv = _refused(Loop.sock_recv)
    sock_sendall = _refused(Loop.sock_sendall)
    subprocess_exec = _refused(Loop.subprocess_exec)
    subprocess_shell = _refused(Loop.subprocess_shell)


class Crew:
    """Real threads of one virtual process. What they bring back belongs to it, and is dropped when it is dead.

    Nobody waits for the threads of the dead: one that waits for an answer would never end.
    """

    def __init__(self, loop: PatientLoop, name: str, count: int) -> None:
        self._loop = loop
        self._threads = SystemThreads(name, count)
        self._at_work = 0
        self._closed = False
        loop.crews.append(self)
        life = LIFE.get()
        if life is not None:
            life.on_death(self.close)

    def submit(self, job: Job[T], done: Done[T]) -> None:
        """Run `job` on a thread; then `done(result, error)` on the event loop. What the dead submit never begins."""
        self._loop.call_soon(self._begin, job, done)

    def close(self) -> None:
        """Let the threads end; nobody waits any longer for those that work."""
        if not self._closed:
            self._closed = True
            self._loop.at_work -= self._at_work
            self._threads.close()

    def _begin(self, job: Job[Any], done: Done[Any]) -> None:
        if self._closed:
            return
        self._at_work += 1
        self._loop.at_work += 1
        context = copy_context()

        def work() -> None:
            result: object = None
            failure: BaseException | None = None
            try:
                result = context.run(job)
            except BaseException as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the test is over
                # From no process: that a thread has ended is true, whoever is dead.
                self._loop.call_soon_threadsafe(self._left, context, done, result, failure, context=Context())

        self._loop.start_on_thread(lambda: self._threads.submit(work, _ignore))

    def _left(self, context: Context, done: Done[Any], result: object, failure: BaseException | None) -> None:
        if not self._closed:
            self._at_work -= 1
            self._loop.at_work -= 1
            self._loop.call_soon(done, result, failure, context=context)


def _ignore(*_: object) -> None:
    """Do nothing: the job has told the loop by itself, at once, so that all come in order."""
