"""SimEnv: the world as one simulated process sees it: its clocks, its chance, its threads, its children."""

import asyncio
import contextlib
import errno
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from watchbill.bounds import BOUNDS, Bounds
from watchbill.clock import SECOND, Clock, Micros
from watchbill.env import ID_EPOCH, NUMBER_BITS, TICK_BITS, Child, Done, Job, Threads, Wire
from watchbill.flow.child import serve
from watchbill.flow.failures import KEEPS_TRACEBACKS
from watchbill.model.outgoing import Outgoing
from watchbill.testing.chance import Chance
from watchbill.testing.ledger import LEDGER, Ledger
from watchbill.testing.virtual import LIFE, Life, VirtualLoop, rest

T = TypeVar("T")

DAWN: Final[Micros] = ID_EPOCH + 400 * 86_400 * SECOND  # the wall time at which a world begins
ACCEPTED: Final = 200  # the status of an answer
LONG_THREAD: Final = 0.1  # the share of jobs that keep their thread for seconds
SPAWNED_WITHIN: Final = (0.05, 0.4)  # seconds: a fresh interpreter
READ_WITHIN: Final = (0.01, 0.4)  # seconds: a program with its imports


class SimClock:
    """A host's clocks: both run at its own rate, and wall time is what the host believes."""

    def __init__(self, loop: VirtualLoop, *, boot: Micros = 0, skew: Micros = 0, rate: float = 1.0) -> None:
        self._loop = loop
        self._boot = boot
        self.skew = skew
        self.rate = rate

    def wall(self) -> Micros:
        """Wall time, wrong by this host's skew."""
        return DAWN + self._elapsed() + self.skew

    def boot(self) -> Micros:
        """Time since this host's boot."""
        return self._boot + self._elapsed()

    def _elapsed(self) -> Micros:
        return self._loop.now if self.rate == 1.0 else round(self._loop.now * self.rate)


class Ids:
    """Numbers that are unique and time-ordered in the whole world, whatever its clocks say."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._last = 0

    def new(self, nth: int = 1, by: object = None) -> int:
        """Make one; `nth`: of its process, whose first one is its own; `by`: that process."""
        self._last = max(self._last + 1, (DAWN - ID_EPOCH + self._loop.now) << (NUMBER_BITS - TICK_BITS))
        return self._last


class SimThreads:
    """Runs each job in line, as soon as there is a thread for it; its result comes when that thread is free again."""

    def __init__(self, loop: VirtualLoop, count: int, lasts: Callable[[], float]) -> None:
        self._loop = loop
        self._free = count
        self._lasts = lasts
        self._queue: deque[Callable[[], None]] = deque()

    def submit(self, job: Job[T], done: Done[T]) -> None:
        """Run the job when a thread is free; then `done(result, error)` on the event loop."""

        def work() -> None:
            result: T | None = None
            failure: BaseException | None = None
            try:
                result = job()
            except BaseException as error:
                failure = error
            self._loop.call_later(self._lasts(), self._end, lambda: done(result, failure))

        self._queue.append(work)
        self._work()

    def close(self) -> None:
        """Do nothing: there are no threads."""

    def _work(self) -> None:
        while self._free and self._queue:
            self._free -= 1
            self._queue.popleft()()

    def _end(self, finish: Callable[[], None]) -> None:
        self._free += 1
        self._work()
        finish()


class StoreThreads:
    """The threads of the store's file: a job takes no time, and is looked at as soon as it is over."""

    def __init__(self, loop: VirtualLoop, after: Callable[[], None]) -> None:
        self._loop = loop
        self._after = after

    def submit(self, job: Job[T], done: Done[T]) -> None:
        """Run the job now; `done(result, error)` comes later all the same."""
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = job()
        except BaseException as error:
            failure = error
        self._after()
        self._loop.call_soon(done, result, failure)

    def close(self) -> None:
        """Do nothing: there are no threads."""


class SimEnv:
    """What one process takes from the world."""

    bounds: Bounds = BOUNDS

    def __init__(  # noqa: PLR0913 - a process is made in one place
        self,
        loop: VirtualLoop,
        clock: Clock,
        chance: Chance,
        ids: Ids,
        ledger: Ledger | None = None,
        place: "Place | None" = None,
    ) -> None:
        self.clock = clock
        self.loop = loop
        self._place = place
        self.spawning: Callable[[Life], None] | None = None  # called while a child is being made
        self.born: Callable[[Life, SimChild], None] | None = None  # called when it is there, before it does anything
        self.barren = False  # no process can be made now
        self.reads_within: tuple[float, float] | None = None  # seconds in which a child has read its program
        self.kills_orphans = False  # the kernel kills children with their parent; else they see the end of the wire
        self._chance = chance
        self._ids = ids
        self._ledger = ledger
        self._children = 0
        self._drawn = 0  # ids

    def random(self) -> float:
        """Draw a float below 1."""
        return self._chance.fraction()

    def random_text(self) -> str:
        """Draw 64 random bits, as 16 hexadecimal digits."""
        return f"{int(self.random() * (1 << 32)):08x}{int(self.random() * (1 << 32)):08x}"

    def new_id(self) -> int:
        """Make a number that nobody else in this world has."""
        self._drawn += 1
        return self._ids.new(self._drawn, self)

    def renumber(self, number: int | None = None) -> None:
        """Do nothing: all processes of this world count together."""

    async def wait(self, event: asyncio.Event, at_most: Micros | None) -> None:
        """Wait until the event is set or the time has passed."""
        if at_most is None or event.is_set():
            await event.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._seconds(at_most)):
                await event.wait()

    def call_later(self, delay: Micros, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back on the event loop after `delay`."""
        return self.loop.call_later(self._seconds(delay), callback)

    def look_later(self, delay: Micros, look: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `look` after `delay`, so that a world in which it finds nothing is the same as without it."""
        return self.loop.look_later(self._seconds(delay), look)

    def _seconds(self, span: Micros) -> float:
        """Say how long a span of this host's clock really takes."""
        return max(span, 0) / SECOND / (self.clock.rate if isinstance(self.clock, SimClock) else 1.0)

    def threads(self, name: str, count: int) -> Threads:
        """Make a pool whose jobs take their time, now and then seconds."""
        return SimThreads(self.loop, count, self._job_lasts)

    def keep_looking(self, every: Micros, look: Callable[[], None]) -> Callable[[], None]:
        """Look at nothing: in virtual time no code takes any."""
        return lambda: None

    def _job_lasts(self) -> float:
        return self._chance.within(0.5, 4) if self._chance.happens(LONG_THREAD) else self._chance.within(0.001, 0.1)

    async def spawn(self) -> Child:
        """Start a child that runs the real program of a child process; a fresh interpreter takes its time."""
        parent = LIFE.get()
        if parent is None:
            raise TypeError("only a simulated process has children")
        if self.spawning is not None:
            self.spawning(parent)
        await rest(self._chance.within(*SPAWNED_WITHIN))
        if self.barren:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        self._children += 1
        life = Life(f"{parent.name}/child-{self._children}", self.loop)
        if self._ledger is not None:
            life.context.run(LEDGER.set, self._ledger)
        life.context.run(KEEPS_TRACEBACKS.set, self.bounds is BOUNDS)
        ours, theirs = make_wire()
        env = self._child_env()
        child = SimChild(life, ours, self._ledger)
        parent.on_death(life.die if self.kills_orphans else theirs.cut)
        life.on_death(ours.cut)
        if self.born is not None:
            self.born(life, child)
        reading = 0.0 if self.reads_within is None else self._chance.within(*self.reads_within)
        life.start(child.run(env, theirs, reading))
        return child

    def _child_env(self) -> "SimEnv":
        env = SimEnv(self.loop, self.clock, self._chance, self._ids, self._ledger)
        env.bounds = self.bounds
        return env

    def post(self, outgoing: Outgoing) -> int:
        """Send nothing: every post is accepted."""
        return ACCEPTED

    def process_identity(self) -> bytes:
        """Name this process and its machine."""
        return b"" if self._place is None else f"{self._place.machine.name} {self._place.process}".encode()

    def is_dead(self, identity: bytes) -> bool:
        """True when it was on this machine, and is gone; of other machines nobody knows anything."""
        machine, _, process = identity.decode().partition(" ")
        here = self._place
        return here is not None and here.machine.name == machine and here.machine.has_seen_die(process)


class Machine:
    """A host of several processes, who can prove each other's death, as the process table of a kernel lets them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lives: dict[str, Life] = {}

    def place(self, life: Life) -> "Place":
        """Let a process start here."""
        self._lives[life.name] = life
        return Place(self, life.name)

    def has_seen_die(self, process: str) -> bool:
        """True when that process was here, and is gone."""
        return process in self._lives and self._lives[process].dead


class Place(NamedTuple):
    """Where a process runs, and under which name."""

    machine: Machine
    process: str


class SimWire:
    """One end of a connection; messages are whole, and those sent before a death still arrive."""

    def __init__(self, inbox: "Inbox", outbox: "Inbox") -> None:
        self.inbox = inbox
        self.outbox = outbox

    async def send(self, message: bytes) -> None:
        """Send one message; into the void when the other end is gone."""
        self.outbox.put(message)

    async def receive(self) -> bytes | None:
        """Receive one message; None when the other end is gone."""
        return await self.inbox.get()

    def cut(self) -> None:
        """See the end of the connection: the other process is gone."""
        self.inbox.close()


class Inbox:
    """Messages that have arrived at one process."""

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._closed = False
        self._waiting: asyncio.Future[None] | None = None

    def put(self, message: bytes) -> None:
        """Add a message."""
        if not self._closed:
            self._messages.append(message)
            self._wake()

    def close(self) -> None:
        """Let the reader see the end, after what is there."""
        self._closed = True
        self._wake()

    async def get(self) -> bytes | None:
        """Wait for the next message, or the end."""
        while not self._messages and not self._closed:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._messages.popleft() if self._messages else None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def make_wire() -> tuple[SimWire, SimWire]:
    """Make both ends of a connection."""
    one, other = Inbox(), Inbox()
    return SimWire(one, other), SimWire(other, one)


class SimChild(SimWire):
    """A child process: the real code of a child, in a life of its own."""

    def __init__(self, life: Life, wire: SimWire, ledger: Ledger | None) -> None:
        super().__init__(wire.inbox, wire.outbox)
        self._life = life
        self._ledger = ledger
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        life.on_death(self._mourn)
        self._how = "killed by signal 9"
        self.dismissed = False  # it left, or its parent killed it: nothing was done to it
        self.crash: Exception | None = None  # what its main program raised

    async def run(self, env: SimEnv, wire: Wire, reading: float) -> None:
        """Be the child's main program; reading the user's takes its time."""
        if reading:
            await rest(reading)
        try:
            await serve(env, wire)
            self._how, self.dismissed = "exit code 0", True
        except SystemExit:
            self._how, self.dismissed = "exit code 1", True
        except Exception as error:
            self._how, self.crash = "exit code 1", error
        self._life.die()

    def memory(self) -> int:
        """Say nothing: simulated processes do not grow."""
        return 0

    def kill(self) -> None:
        """Kill it now: whatever it still does is stopped."""
        if not self._life.dead:
            self.dismissed = True
            if self._ledger is not None:
                self._ledger.stop_all(self._life.name)
            self._life.die()

    async def ended(self) -> str:
        """Wait until the process is gone; gives how it ended, in words."""
        return await self._gone

    def _mourn(self) -> None:
        if not self._gone.done():
            self._gone.set_result(self._how)
