"""Replay: the deterministic event loop a workflow runs on.

The same function, the same arguments and the same outcomes, fed one at a time, make the same calls under the same keys:
live, after a crash, on another machine. What breaks that is named where it is prevented; tests/simulation proves it on
random programs that crash after every journal entry.

    loop = WorkflowLoop(function, args, kwargs)
    loop.begin(at)                       # runs until nothing is ready
    start(loop.take_commands())          # what it asks for
    loop.feed(key, at, outcome, ...)     # one outcome, then again until nothing is ready
    loop.ended                           # how it ended, if it has
"""

import asyncio
import sys
from asyncio import _get_running_loop, _set_running_loop
from asyncio.tasks import _unregister_task
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Final
from zlib import crc32

import msgspec
from msgspec import UNSET

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError, StepFailed
from watchbill.flow import asyncio_patches
from watchbill.flow.branches import Branch, BranchTask, name_of
from watchbill.flow.divergence import Diverged, not_asked, read
from watchbill.flow.drain import Broken, Drain, is_fatal, step_guard
from watchbill.flow.endings import rebuild_ending
from watchbill.flow.failures import step_failed
from watchbill.flow.futures import (
    Call,
    Evicted,
    Handle,
    Promise,
    Receive,
    Timer,
    Unanswered,
    UndoableCall,
    nothing,
    untie,
)
from watchbill.flow.mailbox import Mailbox, Message
from watchbill.flow.switched import take_over
from watchbill.flow.undo import Ended, undo_all, undo_key
from watchbill.model.call import Kind, Outcome
from watchbill.model.failure import FinalFailure
from watchbill.model.run import CurrentRun

__all__ = [
    "Broken",
    "Call",
    "Continued",
    "Diverged",
    "Ended",
    "Evicted",
    "Message",
    "WorkflowLoop",
    "current",
    "step_guard",
]

FOREVER: Final = 10_000_000_000  # seconds: sleep(math.inf) is a due time in three centuries, which a store can hold
SWITCHED: Final = Outcome.SWITCHED  # on the way of every step
NONE_SPARED: Final[frozenset[str]] = frozenset()  # shared by all runs: few have any
KEPT_AT_FIRST: Final = 32  # of a list, before what is over in it is looked for

# asyncio's callbacks of timers, by what the author wrote.
TIMER_NAMES: Final = {"_set_result_unless_cancelled": "sleep", "_on_timeout": "timeout", "_release_waiter": "timeout"}

_decode_failure = msgspec.json.Decoder(FinalFailure).decode
# 3.11's current_task() is written in Python; its dict answers in a quarter of the time.
_current_task: Callable[[asyncio.AbstractEventLoop], object] = (
    asyncio.current_task if sys.version_info >= (3, 12) else vars(asyncio.tasks)["_current_tasks"].get
)


class WorkflowLoop(Drain):
    """One run in memory: its loop, its tasks, its open calls.

    Per run, not shared: asyncio itself then refuses futures and locks that leaked in from another run.
    """

    __slots__ = (
        "_args",
        "_callbacks",
        "_cancel_requested",
        "_context",
        "_explicit",
        "_fatal",
        "_function",
        "_kwargs",
        "_mailbox",
        "_main",
        "_most_tasks",
        "_number",
        "_root",
        "_tasks",
        "acts_until",
        "asked",
        "at",
        "calls",
        "cancels",
        "continued",
        "copied",
        "ended",
        "identified",
        "identity",
        "late",
        "never_awaited",
        "news",
        "now",
        "owner",
        "patches",
        "published",
        "seed",
        "spared",
        "sparing",
        "stale",
        "stopped",
        "undo",
        "undo_from",
        "undoable",
        "undoing",
    )

    def __init__(
        self,
        function: Callable[..., Awaitable[object]],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        clock: Callable[[], Micros] | None = None,
    ) -> None:
        super().__init__(clock)
        self._function = function
        self._args = args
        self._kwargs = kwargs
        # Fresh: a copy would carry the trace span and the variables of whoever happens to run the turn.
        self._context = Context()
        self._root = Branch("", "", None)
        self._callbacks: Branch | None = None  # for calls made in no task
        self._explicit: dict[str, str] | None = None  # keys that the user chose, and the branches of their calls
        self._number = 0  # of the newest future
        self._main: BranchTask | None = None
        self._tasks: list[BranchTask] = []  # asyncio itself holds tasks weakly, and the collector has no order
        self._most_tasks = KEPT_AT_FIRST
        self._cancel_requested = False
        self._fatal: BaseException | None = None
        self.asked: list[Call] = []  # started and not handed out yet
        self.stale = 0  # so many of these are over again
        self.calls: dict[str, Call] = {}
        self.cancels: list[Call] = []
        self.now: Micros = 0  # what the workflow sees; it never goes back
        # The time of the last outcome: behind `now` if the clock of the store was ahead and was put right. Timers count
        # from it, or all that a run waits for would be late by as much.
        self.at: Micros = 0
        self.ended: Ended | None = None
        self.never_awaited = 0
        self.owner: object = None
        self.seed = ""  # of chance inside the workflow: the run's own
        self.identity: CurrentRun | None = None
        self.identified = False  # its code has asked which run it is
        self.copied = 0  # so many entries of its journal were copied from another run, which has another id
        self._mailbox: Mailbox | None = None
        self.patches: dict[str, bool] = {}  # which way was taken, of those that were asked for or are in the journal
        # New ways that were taken and are not in the journal yet; and waits that were in vain.
        self.news: list[str | Unanswered] = []
        self.published: dict[str, msgspec.Raw] | None = None
        self.continued: Continued | None = None
        self.late = False  # its deadline has passed
        self.stopped: str | None = None  # why a person stopped it as a failure
        self.undo = False  # what can be undone is, when it fails
        self.undoable: list[UndoableCall] = []
        self.spared = NONE_SPARED  # cancelled calls that took no effect
        self.sparing = False
        self.acts_until: Micros = 0  # until then an attempt of it may act that was taken from its agent
        self.undoing: Ended | None = None  # why
        self.undo_from = 0  # the number of the last call before

    # For the scheduler.

    def begin(self, at: Micros) -> None:
        """Start the function and run it until it rests."""
        self.now = self.at = at
        self._main = self._make_task(self._play(), self._root, "main", self._context)
        self._drain()

    def feed(  # noqa: PLR0913 (a journal entry, unpacked: this is the hot path)
        self, key: str, at: Micros, outcome: Outcome, body: bytes, digest: int | None, value: object = UNSET
    ) -> None:
        """Deliver one outcome, then run until nothing is ready; only then comes the next, live and in replay alike."""
        call = self.calls.get(key)
        if call is None or (call.digest != digest and digest is not None):
            raise not_asked(key, digest, self.calls, ended=self.ended is not None)
        if outcome is SWITCHED:
            value, outcome = read(call, partial(take_over, call), body), Outcome.OK
        failure = read(call, REBUILD[call.kind], body) if outcome else None
        if failure is None and value is UNSET:
            value = read(call, call.decode, body)
        del self.calls[key]
        if not call.handed_out:
            self._forget_stale()
        self.at = at
        if at > self.now:
            self.now = at
        if failure is None:
            call.set_result(value)
        else:
            call.set_exception(failure)
        self._drain()

    def cancel(self, at: Micros, reason: str, *, late: bool = False, stopped: bool = False) -> None:
        """Raise CancelledError where the workflow waits; it may still clean up, and call steps for it."""
        self.at = at
        if at > self.now:
            self.now = at
        if self.undoing is not None:
            return  # it is being stopped already, and ends when all is undone
        self.late = self.late or late
        self.stopped = reason if stopped else self.stopped
        self._cancel_requested = True
        if self._main is not None:
            self._main.cancel(reason)
        self._drain()

    @property
    def stopping(self) -> Kind | None:
        """What has told it to stop, if anything has, whatever its code makes of that."""
        if not self._cancel_requested:
            return None
        return Kind.LATE if self.late else Kind.CANCEL if self.stopped is None else Kind.STOPPED

    @property
    def fails(self) -> bool:
        """True when its code has ended otherwise than by a result."""
        return self.ended is not None and self.ended.outcome is not Outcome.OK

    def edit(self, key: str, body: bytes) -> None:
        """Give an open call other arguments: it is tried, and undone, with these. Raises Diverged."""
        call = self.calls.get(key)
        if call is None:
            raise not_asked(key, None, self.calls, ended=self.ended is not None)
        call.args = read(call, call.target.signature.decode_args, body)
        call.body = body

    def can_be_undone(self, key: str) -> bool:
        """Say whether a call has begun that can be."""
        return any(call.key == key for call in self.undoable)

    def spare(self, at: Micros, key: str) -> None:
        """Undo a call not that the workflow had cancelled: it took no effect. Raises Diverged."""
        if not self.can_be_undone(key):
            raise not_asked(key, None, self.calls, ended=self.ended is not None)
        self.at = at
        if at > self.now:
            self.now = at
        self.spared = self.spared | {key}
        undo = self.calls.get(undo_key(key))
        if undo is not None:
            undo.cancel()
        self._drain()

    def may_act(self, until: Micros) -> None:
        """Undo nothing before that: an attempt that was taken from its agent may act until then."""
        self.acts_until = max(self.acts_until, until)

    def message(self, at: Micros, message: Message) -> bool:
        """Deliver a message, then run until nothing is ready; False when it was delivered before."""
        if not self.mailbox.arrive(message):
            return False
        self.at = at
        if at > self.now:
            self.now = at
        self._drain()
        return True

    def close(self) -> None:
        """Evict the run: its code gets nothing more, and what it does on the way out is ignored."""
        if self.dead:
            return
        if self.is_running():
            self.refuse("close")
        host = _get_running_loop()
        _set_running_loop(self)
        try:
            self._die()
        finally:
            _set_running_loop(host)

    @property
    def mailbox(self) -> Mailbox:
        """The messages that were sent to this run; most get none, and need none."""
        if self._mailbox is None:
            self._mailbox = Mailbox()
        return self._mailbox

    @property
    def commands(self) -> list[Call]:
        """The calls to start, in order: one made and cancelled before anybody looked is not among them."""
        if self.stale:
            self.asked = [call for call in self.asked if self.calls.get(call.key) is call]
            self.stale = 0
        return self.asked

    def take_commands(self) -> list[Call]:
        """Give the calls to start, and count them as started."""
        commands = self.commands if self.stale else self.asked
        if commands:
            self.asked = []
            for call in commands:
                call.handed_out = True
        return commands

    def take_cancels(self) -> list[Call]:
        """Give the calls to stop."""
        cancels = self.cancels
        if cancels:
            self.cancels = []
        return cancels

    # For steps, and for asyncio.

    def step_call(  # noqa: PLR0913 (all facts of a call at once: an object for them would cost as much as the call)
        self,
        target: object,
        name: str,
        body: bytes,
        args: object,
        decode: Callable[[bytes], object],
        key: str | None = None,
        options: object = None,
        kind: type[Call] = Call,
    ) -> Call:
        """Make the call of a step, or of something like it; it starts when it is awaited."""
        call = kind(loop=self)
        self._number += 1
        call.number = self._number
        call.home = self
        if key is not None:
            call.key = self._explicit_key(key)
        else:
            call.key = self._branch().key(name) if self._explicit is None else self._next_key(name)
        call.name = name
        call.digest = crc32(body)
        call.body = body
        call.target = target
        call.args = args
        call.options = options
        call.decode = decode
        call.started = False
        call.handed_out = False
        self.never_awaited += 1
        return call

    def is_stopping(self, call: Call) -> bool:
        """True for a call that was asked to stop before the undo: its outcome is waited for, and not tried again."""
        return self.undoing is not None and call.number <= self.undo_from

    def receive_call(self, topic: str, decode: Callable[[bytes], object]) -> Receive:
        """Make a call that the next message on a topic answers."""
        call = self.step_call(None, f"receive:{topic}", topic.encode(), (), decode, kind=Receive)
        assert isinstance(call, Receive)  # noqa: S101 - made just now
        call.topic = topic
        call.inbox = self.mailbox
        call.message = None
        return call

    def patched(self, name: str) -> bool:
        """Say whether the run takes the new way at this place: for good, and only if it had not passed it before."""
        known = self.patches.get(name)
        if known is None:
            known = self.patches[name] = not self.replaying
            if known:
                self.news.append(name)
        return known

    def unanswered(self, call: Receive, span: Micros) -> None:
        """Take note that nobody has sent what a call waited for; what is in the journal was noted before."""
        if not self.replaying:
            self.news.append(Unanswered(call.key, call.topic, span, self.now))

    def chance(self) -> bytes:
        """Give 16 bytes that are the same in every replay, and unlike those of any other place or run."""
        import hashlib  # takes longer to import than most of what we need

        key = self._branch().key("random")
        return hashlib.blake2b(f"{self.seed}\0{key}".encode(), digest_size=16).digest()

    @property
    def newest(self) -> int:
        """The number of the newest call, task or future: whatever is made later has a higher one."""
        return self._number

    def branch_of(self, key: str) -> str:
        """Say in which branch the call of a key was made."""
        chosen = None if self._explicit is None else self._explicit.get(key)
        return key[: key.rfind("/") + 1] if chosen is None else chosen

    @property
    def branches(self) -> set[str]:
        """The branches whose tasks have not ended."""
        return {task.branch.prefix for task in self._tasks if not task.done()}

    @property
    def arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """What the workflow was called with."""
        return self._args, self._kwargs

    def publish(self, key: str, body: bytes) -> None:
        """Set a value that everybody can read."""
        self.published = {**(self.published or {}), key: msgspec.Raw(body)}

    def call_later(  # type: ignore[override]  # a Timer does all that a TimerHandle does
        self, delay: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> "Timer | Handle":
        """Ask for a timer: a call like any other, answered when the journal's time has come."""
        return self._make_timer(round(min(delay, FOREVER) * SECOND), callback, args, context)

    def call_at(  # type: ignore[override]  # a Timer does all that a TimerHandle does
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> "Timer | Handle":
        """Ask for a timer at a time of this loop; until 2038 a double holds microseconds, so rounding is exact."""
        return self._make_timer(round(min(when, FOREVER) * SECOND) - self.now, callback, args, context)

    def create_task(  # type: ignore[override]  # a call is its own task
        self, coro: Coroutine[object, object, object] | Call, *, name: object = None, context: Context | None = None
    ) -> BranchTask | Call:
        """Start a branch; a call needs none and is started itself."""
        if isinstance(coro, Call):
            coro.start()
            return coro
        if self.dead:
            coro.close()  # it will never run, and must not complain about it
        if name is None:
            branch = self._branch().child(name_of(coro))
            return self._make_task(coro, branch, branch.prefix[:-1], context)
        return self._make_task(coro, self._branch().child(str(name)), str(name), context)

    def create_future(self) -> Promise:
        """Make a future that locks, queues, gather and sleep can wait on."""
        promise = Promise(loop=self)
        self._number += 1
        promise.number = self._number
        return promise

    def time(self) -> float:
        """Give the journal's time in seconds; it moves only between outcomes."""
        return self.now / SECOND

    def get_task_factory(self) -> None:
        """Give none: tasks are made here."""

    # How it works.

    async def _play(self) -> None:
        # The user's coroutine is awaited here and not one call deeper: every step goes through each of these frames.
        try:
            value = await self._function(*self._args, **self._kwargs)
        except BaseException as error:
            # The second: nobody holds this run any more, and the collector closes it.
            if self.dead or _get_running_loop() is not self:
                raise
            self._failed(error)
        else:
            if self.dead:
                return
            self.ended = Ended(Outcome.OK, value, None)
        if self.ended is not None and self.ended.outcome is not Outcome.OK and self.undo and self.undoable:
            self.undoing, self.ended, self.undo_from = self.ended, None, self._number
            self._stop_others()
            self.ended = await undo_all(self, self.undoing)
        self._over = True
        # The first return of main decides: what is ready now must not run, it could make calls.
        self._ready.clear()

    def _failed(self, error: BaseException) -> None:
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # begins in the user's function, and holds no loop
        if is_fatal(error):
            self._fatal = error
        elif isinstance(error, Continued):
            self.continued = error
            self.ended = Ended(Outcome.OK, None, None)
        elif isinstance(error, asyncio.CancelledError) and self._cancel_requested:
            # Stopped as by a cancel, but it is a failure: what was undone by it ends it as undone.
            fails = self.late or self.stopped is not None
            self.ended = Ended(Outcome.FAILED if fails else Outcome.CANCELLED, None, error)
        else:
            self.ended = Ended(Outcome.FAILED, None, error)

    def _stop_others(self) -> None:
        """End everything but main, before it undoes: nobody else may go on, and what runs is asked to stop.

        Calls that can be undone stay open: whether they took effect shows when their attempts have ended.
        """
        main, self._tasks = self._main, [task for task in self._tasks if task is not self._main]
        open, self.calls = self.calls, {}
        never_awaited = self.never_awaited
        self.dead = self.sparing = True  # dead for their code, which gets calls that nobody sees
        self._bury()
        self.dead = self.sparing = False
        self.never_awaited = never_awaited
        self._tasks = [] if main is None else [main]
        self.commands.clear()
        for key, call in open.items():
            if call.handed_out:
                self.cancels.append(call)
            if isinstance(call, UndoableCall) and call.handed_out:
                self.calls[key] = call
                call.forsake()
            else:
                untie(call)
        self._ready.clear()  # last: callbacks of what was untied would go on, and make calls that nobody undoes

    def _end(self) -> None:
        """End the run: its other tasks are closed and not cancelled, so they make no new calls."""
        if self._fatal is not None:
            raise Broken(f"{type(self._fatal).__name__} left the workflow: {self._fatal}") from self._fatal
        if self.refused is not None:
            # Also when the code swallowed it: it would go on with an answer that nobody gave.
            self.ended = Ended(Outcome.FAILED, None, self.refused)
        self.cancels.extend(call for call in self.calls.values() if call.handed_out)
        self._die()

    def _die(self) -> None:
        # From here on the code may ask for what it likes: it gets calls that nobody sees, and Evicted where it awaits.
        self.dead = True
        open, self.calls = self.calls, {}
        never_awaited = self.never_awaited
        self._context.run(self._bury)
        for call in open.values():
            untie(call)
        self.never_awaited = never_awaited
        self.calls = {}
        self.asked = []
        self.stale = 0
        self._ready.clear()
        self._main = None

    def _bury(self) -> None:
        # Explicitly and newest first: left to the collector, a `finally` would run in the middle of another run.
        while self._tasks:
            task = self._tasks.pop()
            if not task.done():
                task.bury()
        self._bury_generators()

    def _branch(self) -> Branch:
        task = _current_task(self)
        if type(task) is BranchTask:
            return task.branch
        # A done-callback runs between tasks: a branch of its own, so that it cannot shift main's numbers.
        if self._callbacks is None:
            self._callbacks = self._root.child("callback")
        return self._callbacks

    def _next_key(self, name: str) -> str:
        branch = self._branch()
        key = branch.key(name)
        if self._explicit is not None:
            while key in self._explicit:
                key = branch.key(name)
        return key

    def _explicit_key(self, key: str) -> str:
        if self._explicit is None:
            self._explicit = {}
        if key in self._explicit or key in self.calls or self._root.has_used(key):
            raise InvalidOptionError(f"key {key!r} was used before in this run: give each call a key of its own")
        self._explicit[key] = self._branch().prefix
        return key

    def _make_timer(
        self, delay: Micros, callback: Callable[..., object], args: tuple[object, ...], context: Context | None
    ) -> Timer | Handle:
        if delay <= 0:
            return self.call_soon(callback, *args, context=context)
        timer = Timer(loop=self)
        self._number += 1
        timer.number = self._number
        timer.home = self
        timer.name = TIMER_NAMES.get(getattr(callback, "__name__", ""), "timer")
        timer.key = self._next_key(timer.name)
        timer.body = str(delay).encode()
        timer.digest = crc32(timer.body)
        timer.target = callback
        timer.args = args
        timer.options = None
        timer.decode = nothing
        timer.due = self.at + delay
        timer.started = True
        timer.handed_out = False
        timer.context = copy_context() if context is None else context
        self.calls[timer.key] = timer
        self.asked.append(timer)
        return timer

    def _make_task(
        self, coroutine: Coroutine[object, object, object], branch: Branch, name: str, context: Context | None
    ) -> BranchTask:
        self._number += 1
        task = BranchTask(coroutine, self, self._number, branch, name, context)
        # asyncio's set of all tasks serves the host program; and equal numbers of all runs would collide there.
        _unregister_task(task)
        tasks = self._tasks
        if len(tasks) >= self._most_tasks:
            tasks[:] = [kept for kept in tasks if not kept.done()]
            self._most_tasks = max(KEPT_AT_FIRST, 2 * len(tasks))
        tasks.append(task)
        return task

    def _forget_stale(self) -> None:
        # In a replay nobody takes the commands: without this a run of a million calls would hold them all.
        self.stale += 1
        if self.stale > KEPT_AT_FIRST and 2 * self.stale > len(self.asked):
            _ = self.commands


def current() -> WorkflowLoop | None:
    """Give the run whose code runs in this thread now, if any: never a global, sync steps run in other threads."""
    loop = _get_running_loop()
    return loop if type(loop) is WorkflowLoop else None


class Continued(BaseException):
    """Leaves the workflow: another one goes on with the run. No Exception, so that `except Exception` lets it pass."""

    def __init__(self, workflow: str, version: int, input: bytes) -> None:
        self.workflow = workflow
        self.version = version
        self.input = input
        super().__init__(workflow)


def rebuild_failure(body: bytes) -> StepFailed:
    """Make the exception that the workflow sees: from what is stored, so that live and replay cannot differ."""
    return step_failed(_decode_failure(body))


REBUILD: Final[dict[Kind, Callable[[bytes], Exception]]] = {
    Kind.STEP: rebuild_failure,
    Kind.TIMER: rebuild_failure,
    Kind.ASK: rebuild_failure,
    Kind.CHILD: rebuild_ending,
}

asyncio_patches.apply()
