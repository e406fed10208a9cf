"""Futures: what a workflow can wait for, with a hash that is the same in every replay.

asyncio keeps tasks and futures in sets (wait, TaskGroup), and their default hash is their address: ten tasks would be
cancelled in another order after a crash. So each carries its number in the run, and that is its hash.
"""

import asyncio
from asyncio import _get_running_loop
from collections.abc import Callable
from contextvars import Context
from typing import Any, NamedTuple, Protocol

from watchbill.clock import SECOND, Micros
from watchbill.errors import InvalidOptionError
from watchbill.model.call import Kind
from watchbill.model.failure import FinalFailure

# Unbound: super() costs more than the methods themselves.
_add_done_callback = asyncio.Future[object].add_done_callback
_cancel = asyncio.Future[object].cancel


class Evicted(BaseException):
    """Raised into code of a dead run, wherever it waits: nobody will answer."""


class Home(Protocol):
    """What a call needs of the loop it belongs to."""

    calls: dict[str, "Call"]
    asked: list["Call"]
    stale: int
    cancels: list["Call"]
    never_awaited: int
    undoable: list["UndoableCall"]
    sparing: bool
    dead: bool

    def call_soon(self, callback: Callable[..., object], *args: object, context: Context | None = None) -> object:
        """Run the callback after what is ready already."""
        ...


class Call(asyncio.Future[object]):
    """A step that the workflow asks for: lazy, it starts when it is first awaited or observed.

    A future and no coroutine: it needs no task of its own, which makes a wide gather three times cheaper. Users see it
    typed as a Coroutine, so that create_task() accepts it. The loop sets the attributes: an __init__ would cost as much
    as they do.
    """

    __slots__ = (
        "args",
        "body",
        "decode",
        "digest",
        "handed_out",
        "home",
        "key",
        "name",
        "number",
        "options",
        "started",
        "target",
    )

    kind: Kind = Kind.STEP
    due: Micros | None = None

    home: Home
    number: int
    key: str
    name: str
    digest: int  # of the body
    body: bytes  # the encoded arguments
    target: Any  # what these three are, only whoever made the call knows: for a step call the Step, its arguments
    args: Any  # (decoded) and its options
    options: Any
    decode: Callable[[bytes], object]
    started: bool
    handed_out: bool  # the scheduler has seen it among the commands: a cancel must be told

    def __hash__(self) -> int:
        return self.number

    def add_done_callback(self, fn: Callable[["Call"], object], /, *, context: Context | None = None) -> None:
        """Start the call: gather, wait, TaskGroup and every await come through here."""
        if not self.started:
            self.start()
        _add_done_callback(self, fn, context=context)

    def start(self) -> None:
        """Ask for the outcome, once."""
        home = self.home
        if self.started or home.dead or self.done():
            return
        running: object = _get_running_loop()
        if running is not home:
            raise RuntimeError(f"call {self.key!r} belongs to another run: each run makes its own calls")
        self.started = True
        home.never_awaited -= 1
        if home.calls.setdefault(self.key, self) is not self:
            # An explicit key like a counted one of another branch. Raised here it would leave the task asleep for ever.
            self.set_exception(InvalidOptionError(f"key {self.key!r} is in use by an open call of this run"))
            return
        home.asked.append(self)

    def cancel(self, msg: object = None) -> bool:
        """Drop the call: nobody waits for its outcome any more, and a later one is ignored."""
        if self.done():
            return False
        home = self.home
        if not self.started:
            home.never_awaited -= 1
        elif home.calls.get(self.key) is self:
            del home.calls[self.key]
            if self.handed_out:
                home.cancels.append(self)
            else:
                home.stale += 1
        return _cancel(self, msg)

    def close(self) -> None:
        """Do what TaskGroup expects of a coroutine that it refuses."""
        self.cancel()

    def get_name(self) -> str:
        """Give the key: create_task() returns the call itself, and tasks have names."""
        return self.key

    def set_name(self, value: object) -> None:
        """Change nothing: create_task(call, name=...) makes no branch, so there is nothing to name."""


class UndoableCall(Call):
    """A call that can be undone: the loop remembers it from its start."""

    __slots__ = ()

    def start(self) -> None:
        """Ask for the outcome, once."""
        started = self.started
        super().start()
        if self.started and not started:
            self.home.undoable.append(self)

    def forsake(self) -> None:
        """Part the call from the code that waits for it: it is over, but the outcome is still to come."""
        for callback, _ in self._callbacks or ():
            self.remove_done_callback(callback)


class RefusedCall(Call):
    """An undo that cannot be made with what it would get: it fails when it is to begin, if it still is then."""

    __slots__ = ("failure",)

    failure: FinalFailure


class ChildCall(UndoableCall):
    """A run that this one starts, and waits for."""

    __slots__ = ()

    kind = Kind.CHILD


class AskCall(Call):
    """A question to a person."""

    __slots__ = ()

    kind = Kind.ASK


class Inbox(Protocol):
    """What a call for a message needs of the mailbox."""

    def take(self, call: "Receive") -> bool:
        """Settle the call with the oldest unread message, or let it wait."""
        ...

    def leave(self, call: "Receive") -> None:
        """Wait no longer."""
        ...

    def put_back(self, message: Any, *, hand_out: bool) -> None:  # noqa: ANN401 - what the mailbox gave
        """Take a message back that nobody has seen."""
        ...


class Unanswered(NamedTuple):
    """A wait for a message that was in vain."""

    call: str  # its key
    topic: str
    span: Micros  # for so long
    due_at: Micros


class Receive(Call):
    """A call that a message answers: nothing is asked of anybody for it."""

    __slots__ = ("inbox", "message", "topic")

    kind = Kind.MESSAGE

    inbox: Inbox
    topic: str
    message: Any  # what the mailbox gave, once it did

    def start(self) -> None:
        """Take the oldest unread message, or wait for the next."""
        before = len(self.home.asked)
        super().start()
        if len(self.home.asked) > before:
            self.home.asked.pop()  # there is nothing to start
            self.handed_out = True
            self.inbox.take(self)

    def cancel(self, msg: object = None) -> bool:
        """Wait no longer."""
        if self.done():
            return False
        self.inbox.leave(self)
        self.home.calls.pop(self.key, None)
        if not self.started:
            self.home.never_awaited -= 1
        return _cancel(self, msg)

    def give_back(self) -> None:
        """Let somebody else have the message: whoever waited for it was stopped in the moment in which it came.

        When the whole run is, that is its next part.
        """
        if self.message is not None:
            self.inbox.put_back(self.message, hand_out=not self.home.dead)


class Timer(Call):
    """A call that time answers; it is also the handle that call_later() returns."""

    __slots__ = ("context", "due")

    kind = Kind.TIMER

    context: Context
    target: Callable[..., object]
    args: tuple[object, ...]
    due: Micros

    def set_result(self, result: object) -> None:
        """Fire: the callback is ready."""
        super().set_result(result)
        self.home.call_soon(self.target, *self.args, context=self.context)

    def when(self) -> float:
        """Say when it is due, in the loop's time."""
        return self.due / SECOND


class Promise(asyncio.Future[object]):
    """What create_future() gives: locks, events, queues, gather and sleep wait on these."""

    __slots__ = ("number",)

    number: int

    def __hash__(self) -> int:
        return self.number


class Handle:
    """A callback that is ready."""

    __slots__ = ("args", "callback", "context")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...], context: Context) -> None:
        self.callback = callback
        self.args = args
        self.context = context

    def cancel(self) -> None:
        """Do nothing when its time comes."""
        self.callback = nothing

    def cancelled(self) -> bool:
        """Say whether it was cancelled."""
        return self.callback is nothing


def untie(future: asyncio.Future[Any]) -> None:
    """Part a future of a dead run from those that wait for it, so that memory is free without the collector."""
    if isinstance(future, UndoableCall) and future.home.sparing and future.handed_out:
        return  # its outcome decides what is to be undone
    # Future's own cancel, also for tasks and gathers: theirs would wait for code that never runs again.
    _cancel(future)


def nothing(*_: object) -> None:
    """Do nothing."""
