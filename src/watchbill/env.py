"""Env: everything the house takes from the world comes in here, so that a simulation can be the world."""

import asyncio
import atexit
import contextlib
import functools
import gc
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from typing import IO, Any, Final, Protocol, TypeVar, cast

import msgspec

from watchbill.bounds import BOUNDS, Bounds
from watchbill.clock import SECOND, Clock, Micros, SystemClock
from watchbill.forks import FORKS, abandon, let_go, socket_number
from watchbill.model.outgoing import Outgoing

T = TypeVar("T")
Job = Callable[[], T]
Done = Callable[[T | None, BaseException | None], None]

# An id has 63 bits: 45 bits of time in ticks of 64 microseconds since 2025, which last until 2096, and 18 bits for the
# number of its process. The arithmetic is in docs/design/ids.md.
ID_EPOCH: Micros = 1_735_689_600 * SECOND
TICK_BITS = 6
NUMBER_BITS = 18
GIVEN = 1 << (NUMBER_BITS - 1)  # set in numbers that a store gave; the others are drawn
END_OF_TICKS = 1 << (63 - NUMBER_BITS)
TICKS_OF_2025 = 1 << 38  # about 204 days: a process without a usable clock begins at a random tick of them
YOUNG_OBJECTS = 20_000
SWITCH_INTERVAL = 0.0005  # seconds
TRACES = "/dev/shm/watchbill"  # noqa: S108 - in memory, and seen by this machine, or container, alone
MANY_TRACES = 1_000
TRACES_KEPT = 86_400.0  # seconds
UNREAD = 64 * 1024  # bytes that may wait for the other end of a connection before what may be dropped is dropped
GRACE = 1.0  # seconds that the end of a program may wait for what its loop thread is doing


class Threads(Protocol):
    """Runs jobs off the event loop and hands their results back to it, many in one wake-up."""

    def submit(self, job: Job[T], done: Done[T]) -> None:
        """Run `job` on a thread; then `done(result, error)` on the event loop."""
        ...

    def close(self) -> None:
        """Let the threads end once their queue is empty."""
        ...


class Wire(Protocol):
    """One end of a connection between a process and its child; the two exchange whole messages."""

    async def send(self, message: bytes) -> None:
        """Send one message."""
        ...

    async def receive(self) -> bytes | None:
        """Receive one message; None when the other end is gone."""
        ...


class Child(Wire, Protocol):
    """A child process in which steps run."""

    def memory(self) -> int:
        """Say how many bytes of memory it has; 0 where the system does not tell."""
        ...

    def kill(self) -> None:
        """Kill it now."""
        ...

    async def ended(self) -> str:
        """Wait until the process is gone; gives how it ended, in words."""
        ...


class Env(Protocol):
    """The world: time, chance, names, threads, processes."""

    clock: Clock
    bounds: Bounds

    def random(self) -> float:
        """Draw a float below 1."""
        ...

    def random_text(self) -> str:
        """Draw 64 random bits, as 16 hexadecimal digits."""
        ...

    def new_id(self) -> int:
        """Make a number of 63 bits, larger than the ones this process made before, unlike any made elsewhere."""
        ...

    def renumber(self, number: int | None = None) -> None:
        """Make the next ids under another number of this process: one that its store gave to it alone, or a new draw.

        Draw when a store has refused an id because it is taken.
        """
        ...

    async def wait(self, event: asyncio.Event, at_most: Micros | None) -> None:
        """Wait until the event is set or the time has passed."""
        ...

    def call_later(self, delay: Micros, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back on the event loop after `delay`."""
        ...

    def look_later(self, delay: Micros, look: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `look` on the event loop after `delay`; mostly it finds nothing to do."""
        ...

    def threads(self, name: str, count: int) -> Threads:
        """Make a pool of at most `count` threads."""
        ...

    def keep_looking(self, every: Micros, look: Callable[[], None]) -> Callable[[], None]:
        """Call `look` from a thread of its own, again and again, whatever the others do; gives what ends it."""
        ...

    async def spawn(self) -> Child:
        """Start a child process in which steps run."""
        ...

    def post(self, outgoing: Outgoing) -> int:
        """Send a webhook or an alert, and give the status of the answer; it blocks.

        Raises NotDeliveredError, or RefusedError if the receiver does not accept it.
        """
        ...

    def process_identity(self) -> bytes:
        """Name this process, as JSON, so that a neighbour on its machine can prove its death."""
        ...

    def is_dead(self, identity: bytes) -> bool:
        """True only with proof: that process was on this machine, and is gone."""
        ...


class SystemEnv:
    """The real world."""

    bounds: Bounds = BOUNDS

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()
        self._ids = Ids()
        self._thread = get_ident()
        self._ids_of_threads = threading.local()  # of the others, such as that of `app.sync`

    def random_text(self) -> str:
        """Draw 64 random bits, as 16 hexadecimal digits."""
        return os.urandom(8).hex()

    def random(self) -> float:
        """Draw a float below 1."""
        return int.from_bytes(os.urandom(7), "big") / (1 << 56)

    def new_id(self) -> int:
        """Make a number of 63 bits: time-ordered, so that rows are appended to their tables."""
        # Each thread has its own: a lock would take as long as all the rest.
        ids = self._ids if get_ident() == self._thread else self._ids_here()
        tick = (self.clock.wall() - ID_EPOCH) >> TICK_BITS
        # If the clock stands still, goes back or is out of range, ids count on from the last one.
        if not ids.tick < tick < END_OF_TICKS:
            tick = ids.tick + 1
        ids.tick = tick
        return tick << NUMBER_BITS | ids.number

    def renumber(self, number: int | None = None) -> None:
        """Make the next ids of this thread under another number: one that a store gave, or a new draw."""
        ids = self._ids if get_ident() == self._thread else self._ids_here()
        ids.number = _drawn(GIVEN) if number is None else GIVEN | number % GIVEN

    def _ids_here(self) -> "Ids":
        others = self._ids_of_threads
        if not hasattr(others, "ids"):
            others.ids = Ids()
        ids: Ids = others.ids
        return ids

    async def wait(self, event: asyncio.Event, at_most: Micros | None) -> None:
        """Wait until the event is set or the time has passed."""
        if at_most is None or event.is_set():
            await event.wait()
            return
        # Not by setting the event: whoever waits for nothing but time would not wait a second time.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(at_most, 0) / SECOND):
                await event.wait()

    def call_later(self, delay: Micros, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back on the event loop after `delay`."""
        return asyncio.get_running_loop().call_later(max(delay, 0) / SECOND, callback)

    def look_later(self, delay: Micros, look: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `look` on the event loop after `delay`; mostly it finds nothing to do."""
        return self.call_later(delay, look)

    def threads(self, name: str, count: int) -> Threads:
        """Make a pool of at most `count` threads."""
        return SystemThreads(name, count)

    def keep_looking(self, every: Micros, look: Callable[[], None]) -> Callable[[], None]:
        """Call `look` from a thread of its own, again and again, whatever the others do; gives what ends it."""
        over = threading.Event()

        def keep_looking() -> None:
            while not over.wait(every / SECOND):
                look()

        threading.Thread(target=keep_looking, name="watchbill-watchdog", daemon=True).start()
        return over.set

    async def spawn(self) -> Child:
        """Start a fresh interpreter that waits for one attempt on a socket of its own."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "watchbill.flow.child",
                str(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                # A session has a process group of its own: what a step starts can be killed with it. Not
                # `process_group=0`: uvloop refuses that.
                start_new_session=True,
                # What is typed is for the program itself, not for a step of it.
                stdin=asyncio.subprocess.DEVNULL,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        return SystemChild(process, reader, writer)

    def post(self, outgoing: Outgoing) -> int:
        """Send a webhook or an alert over the network."""
        from watchbill.posting import deliver  # urllib takes long to import

        return deliver(outgoing)

    def process_identity(self) -> bytes:
        """Name this process: machine, kernel, pid, start time, and its trace."""
        return msgspec.json.encode(process_identity())

    def is_dead(self, identity: bytes) -> bool:
        """True only with proof; whatever cannot be read proves nothing."""
        try:
            named = msgspec.json.decode(identity)
        except (ValueError, msgspec.MsgspecError):
            return False
        return isinstance(named, dict) and is_dead(named)


class Ids:
    """What the ids of one thread are made of: the last tick, and the number that tells it from all others."""

    __slots__ = ("__weakref__", "number", "tick")

    def __init__(self) -> None:
        self.begin()
        _all_ids.add(self)

    def begin(self) -> None:
        """Begin to count at a random tick, which the clock soon replaces, unless it cannot be used."""
        self.tick = _drawn(TICKS_OF_2025)
        self.number = _next_number()


_all_ids: "weakref.WeakSet[Ids]" = weakref.WeakSet()
_numbered: set[int] = set()  # this process, once it has its number, and those that it was forked from


def _drawn(below: int) -> int:
    """Draw a number below a power of two."""
    return int.from_bytes(os.urandom(8), "big") % below


def _next_number() -> int:
    """Draw a number; but the first one of each process is its process id: on one machine they all differ."""
    boot, namespace, pid = _boot_id(), _pid_namespace(), os.getpid()
    if not boot or not namespace or pid in _numbered:
        return _drawn(GIVEN)
    _numbered.add(pid)
    machine = f"{boot} {namespace} {os.uname().nodename}"
    return (zlib.crc32(machine.encode()) + pid) % GIVEN


def _renumber_forked_child() -> None:
    # The child uses no number of its parent's again.
    for ids in _all_ids:
        ids.begin()


os.register_at_fork(after_in_child=_renumber_forked_child)


class SystemThreads:
    """Threads that share one queue; finished jobs gather in a list and wake the event loop once per batch.

    At most one thread is being woken at any time, and the one that has woken up wakes the next if there is more to do.
    So jobs that block get a thread each, at once; and jobs that only compute, for which more threads would only quarrel
    over the interpreter, are done one after the other by those that are awake. (An executor of the standard library
    wakes a thread and the loop for each job: three times slower for short steps.)
    """

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._loop = asyncio.get_running_loop()
        # Any: what a job gives, only its own `done` knows.
        self._jobs: deque[tuple[Job[Any], Done[Any]]] = deque()
        self._finished: deque[tuple[Done[Any], Any, BaseException | None]] = deque()
        self._told = False  # the event loop will look at them
        self._started = 0
        self._starting = threading.Lock()
        self._closed = False
        self._idle: list[threading.Lock] = []  # each is what one thread sleeps on
        self._waking = False  # a thread has been woken and has not looked for a job yet

    def submit(self, job: Job[T], done: Done[T]) -> None:
        """Run `job` on a thread; then `done(result, error)` on the event loop."""
        self._jobs.append((job, done))
        if not self._waking:
            self._wake_one()

    def close(self) -> None:
        """Let the threads end once their queue is empty."""
        self._closed = True
        while self._idle:
            self._idle.pop().release()

    def _wake_one(self) -> None:
        # Two threads at once may both come here: then two are woken, which costs a little time and nothing else.
        while True:
            self._waking = True
            try:
                self._idle.pop().release()
            except IndexError:
                if self._started < self._count and self._start_one():
                    return
            else:
                return
            # All are at work, and look for the next job by themselves. But one may have lain down just now, and a job
            # may have been brought by somebody who believed what was said above.
            self._waking = False
            if not (self._jobs and self._idle):
                return

    def _start_one(self) -> bool:
        with self._starting:
            if self._started >= self._count:
                return False
            self._started += 1
            name = f"{self._name}-{self._started}"
        # Daemon: a step that never returns must not keep the process from ending.
        threading.Thread(target=self._serve, name=name, daemon=True).start()
        return True

    def _serve(self) -> None:
        bed = threading.Lock()
        bed.acquire()
        jobs = self._jobs
        self._waking = False
        while True:
            try:
                job, done = jobs.popleft()
            except IndexError:
                if not self._sleep(bed):
                    return
                continue
            if jobs and not self._waking:
                self._wake_one()
            result = failure = None
            try:
                result = job()
            except BaseException as error:
                failure = error
            self._finished.append((done, result, failure))
            del job, done, result, failure  # an idle thread must not keep them alive
            # Appended first, then asked; `_deliver` forgets first, then takes. So either it sees this one, or this
            # thread sees that it has to tell. No lock: a thread that is interrupted inside would stop all others.
            if not self._told:
                self._told = True
                # The event loop may have ended: then nobody waits for this any more.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._deliver)

    def _sleep(self, bed: threading.Lock) -> bool:
        """Sleep until there may be a job; False when there will be none any more."""
        # Lies down first, then looks once more; who brings a job puts it down first, then looks for somebody to wake.
        # So either it sees this thread, or this thread sees the job. The same with the end.
        self._idle.append(bed)
        if self._jobs or self._closed:
            try:
                self._idle.remove(bed)
            except ValueError:
                bed.acquire()  # somebody is waking this one just now
                self._waking = False
            return bool(self._jobs) or not self._closed
        bed.acquire()
        self._waking = False
        return bool(self._jobs) or not self._closed

    def _deliver(self) -> None:
        self._told = False
        finished = self._finished
        batch = [finished.popleft() for _ in range(len(finished))]
        for done, result, failure in batch:
            done(result, failure)


class LoopThread:
    """An event loop on a thread of its own, for synchronous programs; started when it is first used.

    A forked child has no such thread, and starts a loop of its own.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        FORKS.when_forked(self._forget)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of this process."""
        if self._loop is None:
            with self._starting:
                if self._loop is None:
                    self._loop = self._start()
        return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop, process = asyncio.new_event_loop(), os.getpid()
        threading.Thread(target=loop.run_forever, name=self._name, daemon=True).start()
        atexit.register(lambda: self._cancel_all(loop) if os.getpid() == process else None)
        return loop

    def _forget(self) -> None:
        loop, self._loop = self._loop, None
        self._starting = threading.Lock()
        abandon_loop(loop)

    def _cancel_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what still waits when the program ends: connections are closed, and nobody complains."""
        if loop is not self._loop or not loop.is_running():
            return

        async def cancel() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(cancel(), loop).result(GRACE)


def abandon_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Leave a loop of the parent alone in a forked child, with all of its tasks: ending them would run their code."""
    if loop is not None:
        abandon(loop, asyncio.all_tasks(loop))


class FramedWire:
    """A stream on which each message is framed by its length; one above `longest` bytes is refused unread."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, longest: int | None = None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._longest = longest
        FORKS.when_forked(self._forget)

    def _forget(self) -> None:
        let_go(socket_number(self._writer.transport))

    async def send(self, message: bytes) -> None:
        """Send one message."""
        self._writer.write(len(message).to_bytes(8, "big") + message)
        await self._writer.drain()

    def post(self, message: bytes) -> bool:
        """Send one message without waiting; false, and nothing is sent, if the other end is behind with its reading."""
        transport = self._writer.transport
        if transport.is_closing() or transport.get_write_buffer_size() > UNREAD:
            return False
        self._writer.write(len(message).to_bytes(8, "big") + message)
        return True

    async def receive(self) -> bytes | None:
        """Receive one message; None when the other end is gone. Raises ValueError when it is too long."""
        try:
            size = int.from_bytes(await self._reader.readexactly(8), "big")
            if self._longest is not None and size > self._longest:
                raise ValueError(f"a message of {size} bytes, more than {self._longest}")
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError):
            return None

    def hang_up(self) -> None:
        """Close this end."""
        self._writer.close()

    async def say_goodbye(self, within: float) -> None:
        """Close this end once what was sent has left; after so many seconds it is dropped."""
        self._writer.close()
        try:
            async with asyncio.timeout(within):
                await self._writer.wait_closed()
        except (TimeoutError, OSError):
            self._writer.transport.abort()


class SystemChild(FramedWire):
    """A child process and the socket to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(reader, writer)
        self._process = process

    def memory(self) -> int:
        """Say how many bytes of memory it has; 0 where the system does not tell."""
        fields = _read(f"/proc/{self._process.pid}/statm").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0

    def kill(self) -> None:
        """Kill it now, with all that its steps have started."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def ended(self) -> str:
        """Wait until the process is gone; gives how it ended, in words."""
        self.hang_up()
        code = await self._process.wait()
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


class Served:
    """A program of ours in a process of its own, which ends when it is told to, or when this process has ended.

    Its first argument is the number of a pipe that stays open for as long as this process lives: see
    `when_employer_is_gone`. Its stdin is ours, so that a debugger works in it.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        theirs, ours = os.pipe()
        self._lifeline: int | None = ours
        command = [sys.executable, "-m", module, str(theirs), *arguments]
        try:
            # A session of its own: Ctrl-C is for whoever started it, who decides what becomes of it.
            self._process = subprocess.Popen(command, start_new_session=True, pass_fds=(theirs,))
        finally:
            os.close(theirs)

    @property
    def ended(self) -> bool:
        """True when it has ended by itself."""
        return self._process.poll() is not None

    def end(self, grace: float) -> None:
        """Ask it to end, and wait; kill it when it has not after the grace. Do nothing if that was done before."""
        if not self.ended:
            self._process.terminate()
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


class Terminal:
    """The terminal or pipe that this process was started with, if its closing is to end the process.

    With SIGHUP ignored, as by `nohup`, it is not.
    """

    def __init__(self) -> None:
        self._watched = not ignores_hangup() and not _is_hung_up(0)

    @property
    def gone(self) -> bool:
        """True when it was open and has been closed since."""
        return self._watched and _is_hung_up(0)


def ignores_hangup() -> bool:
    """True when this process was started to survive its terminal."""
    return signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def release_closed_outputs() -> None:
    """Write nothing more to a terminal or pipe that is closed: each write to it would fail, those of steps as well."""
    for file in (0, 1, 2):
        if _is_hung_up(file):
            with contextlib.suppress(OSError), open(os.devnull, "r+b") as nothing:
                os.dup2(nothing.fileno(), file)


def _is_hung_up(file: int) -> bool:
    look = select.poll()
    look.register(file, 0)  # POLLHUP and POLLERR are always reported
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in look.poll(0))


class Employed:
    """A program of ours in a process of its own, for whoever has an event loop."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ended(self) -> int:
        """Wait until it has ended; gives its exit code, which is negative after a signal."""
        return await self._process.wait()

    def terminate(self) -> None:
        """Ask it to end."""
        if self._process.returncode is None:
            self._process.terminate()

    async def end(self, grace: float) -> None:
        """Ask it to end, and wait; kill it when it has not after the grace."""
        self.terminate()
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()


async def employ(*arguments: str, environment: Mapping[str, str] | None = None) -> Employed:
    """Start a program of ours, in a session of its own: Ctrl-C is for whoever started it, who decides what follows.

    Its stdin stays open for as long as this process lives: see `when_employer_is_gone`.
    """
    return Employed(
        await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            start_new_session=True,
            stdin=asyncio.subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
    )


def when_employer_is_gone(tell: Callable[[], None], lifeline: int = 0) -> None:
    """Call back on the event loop when the process that employed this one has died, however it did.

    `lifeline` is the pipe that the employer keeps open.
    Where the kernel can say so, it does, too: the pipe may have been inherited by a fork that lives on. By SIGHUP,
    which nobody counts: when a process with threads dies, it may come several times.
    """
    loop = asyncio.get_running_loop()

    def hear() -> None:
        if not os.read(lifeline, UNREAD):
            loop.remove_reader(lifeline)
            tell()

    loop.add_signal_handler(signal.SIGHUP, tell)
    _be_told_of_parents_death(signal.SIGHUP)
    loop.add_reader(lifeline, hear)


class Companion:
    """A second interpreter beside this one, which answers one question at a time; see `answer_questions`."""

    def __init__(self, module: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )

    def ask(self, question: bytes, *, patience: float) -> bytes | None:
        """Ask, and wait for the answer; None when it is gone, or says nothing for so many seconds."""
        asked, answered = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        try:
            asked.write(len(question).to_bytes(8, "big") + question)
            asked.flush()
            with selectors.DefaultSelector() as selector:  # `select` refuses descriptors from 1,024 on
                selector.register(answered, selectors.EVENT_READ)
                if not selector.select(patience):
                    return None
            return _read_framed(answered)
        except OSError:
            return None

    def close(self) -> None:
        """End it, and wait until it is gone."""
        self._process.kill()
        with contextlib.suppress(OSError), self._process:  # closes the pipes, also one with an unread question
            pass


def answer_questions(answer: Callable[[bytes], bytes]) -> None:
    """Be a companion until nobody asks any more. What the program prints meanwhile, or wants to read, goes nowhere."""
    with open(os.dup(0), "rb") as asked, open(os.dup(1), "wb") as answered, open(os.devnull, "r+b") as nowhere:
        os.dup2(nowhere.fileno(), 0)
        os.dup2(nowhere.fileno(), 1)
        while (question := _read_framed(asked)) is not None:
            said = answer(question)
            answered.write(len(said).to_bytes(8, "big") + said)
            answered.flush()


def _read_framed(file: IO[bytes]) -> bytes | None:
    size = file.read(8)
    return file.read(int.from_bytes(size, "big")) if len(size) == 8 else None


def process_identity() -> dict[str, str | int]:
    """Name this process so that a neighbour can prove its death: machine, kernel, pid, start time, and its trace."""
    pid = os.getpid()
    return {**_machine(), "pid": pid, "started": _started(pid), "user": os.getuid(), "trace": _leave_trace(pid)}


def _machine() -> dict[str, str | int]:
    """Name this machine, or container: what is equal in two processes that see the same process table."""
    return {
        "boot": _boot_id(),
        "pid_namespace": _pid_namespace(),
        "machine": _machine_id(),
        "host": os.uname().nodename,
    }


def is_dead(identity: dict[str, str | int]) -> bool:
    """True only with proof: the same machine and namespace, and that process is gone or is another one now."""
    here = _machine()
    if not here["boot"] or not here["pid_namespace"] or any(identity.get(name) != here[name] for name in here):
        return False  # another machine or container, or a system that tells nobody apart
    pid, then = identity.get("pid"), identity.get("started")
    if not isinstance(pid, int) or pid < 1 or not then:
        return False
    now = _started(pid)
    gone = now != then if now else not _exists(pid)
    return gone and _left_trace(identity, pid)


@functools.cache
def _leave_trace(pid: int) -> str:
    """Leave a random text in the memory of this machine, for as long as it runs; empty where that cannot be written.

    Virtual machines that are cloned from one snapshot of memory have the same boot id, machine id and host name. But a
    process that starts after that leaves its trace in one of them alone.
    """
    trace, folder = os.urandom(8).hex(), f"{TRACES}-{os.getuid()}"
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        _sweep_traces(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(f"{folder}/{pid}", flags, 0o644), "w", encoding="utf-8") as file:
            file.write(trace)
    except OSError:
        return ""
    return trace


def _left_trace(identity: dict[str, str | int], pid: int) -> bool:
    """True if a process was on this very machine, or could leave no trace anywhere."""
    trace = identity.get("trace")
    return trace == "" or (trace is not None and _read(f"{TRACES}-{identity.get('user')}/{pid}") == trace)


def _sweep_traces(folder: str) -> None:
    """Remove traces of processes that are gone for long: they end when the machine does, and it may run for years."""
    names = os.listdir(folder)
    if len(names) < MANY_TRACES:
        return
    for name in names:
        path = f"{folder}/{name}"
        with contextlib.suppress(OSError):
            if not os.path.exists(f"/proc/{name}") and os.stat(path).st_mtime < os.stat(folder).st_mtime - TRACES_KEPT:
                os.unlink(path)


def _exists(pid: int) -> bool:
    # A process of another user may be hidden in /proc, and is there all the same.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def peer_user(connection: asyncio.StreamWriter) -> int | None:
    """Give the user at the other end of a unix socket; None where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    size = struct.calcsize("iII")  # pid, user, group
    credentials = connection.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, option, size)
    user: int = struct.unpack("iII", credentials)[1]
    return user


@functools.cache
def _boot_id() -> str:
    return _read("/proc/sys/kernel/random/boot_id").strip()


@functools.cache
def _machine_id() -> str:
    return _read("/etc/machine-id").strip()


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str:
    # The name in parentheses may hold spaces and parentheses: the fields are counted from the last one.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


class _Tuning:
    """The interpreter's settings while components are open; several Apps of one process share them."""

    def __init__(self) -> None:
        self._users = 0
        self._lock = threading.Lock()
        self._interval = self._interval_before = sys.getswitchinterval()
        self._thresholds = self._thresholds_before = gc.get_threshold()
        FORKS.when_forked(self._forget)

    def enter(self) -> None:
        """Set them for the first user."""
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            self._interval_before, self._thresholds_before = sys.getswitchinterval(), gc.get_threshold()
            sys.setswitchinterval(min(self._interval_before, SWITCH_INTERVAL))
            first, *others = self._thresholds_before
            if first > 0:  # else somebody has turned it off
                gc.set_threshold(max(first, YOUNG_OBJECTS), *others)
            self._interval, self._thresholds = sys.getswitchinterval(), gc.get_threshold()

    def leave(self) -> None:
        """Put them back after the last user, unless the program has changed them meanwhile."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._put_back()

    def _put_back(self) -> None:
        if sys.getswitchinterval() == self._interval:
            sys.setswitchinterval(self._interval_before)
        if gc.get_threshold() == self._thresholds:
            gc.set_threshold(*self._thresholds_before)

    def _forget(self) -> None:
        """Put them back in a forked child, where no component is open."""
        self._lock = threading.Lock()
        if self._users:
            self._users = 0
            self._put_back()


_TUNING: Final = _Tuning()  # of the process, as the settings are


@contextlib.contextmanager
def busy_interpreter() -> Iterator[None]:
    """Tune the interpreter for many small things at once, while the rooms are open.

    Threads take turns every half millisecond instead of every five: SQLite's module gives up the interpreter at every
    row it writes and has to ask for it back. Beside steps that compute in threads, a commit of 200 rows took 127 ms
    with Python's default, and 10 ms with this. And the collector looks for garbage after 20,000 new objects instead of
    700: a turn makes that many at once, nearly none of them in a cycle, and looking took a seventh of all time.
    """
    _TUNING.enter()
    try:
        yield
    finally:
        _TUNING.leave()


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, where it can: Linux, by PR_SET_PDEATHSIG."""
    parent = os.getppid()
    _be_told_of_parents_death(signal.SIGKILL)  # elsewhere the end of its socket tells it, once its event loop turns
    if os.getppid() != parent:  # it died before anybody was asked
        os._exit(1)


def _be_told_of_parents_death(sign: signal.Signals) -> None:
    import ctypes  # only a child asks

    with contextlib.suppress(OSError, AttributeError):  # not everywhere
        ctypes.CDLL(None).prctl(1, sign, 0, 0, 0)


async def pause(seconds: float) -> None:
    """Wait on whatever event loop this runs; a workflow's own loop makes it durable."""
    await asyncio.sleep(seconds)
