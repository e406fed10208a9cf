"""Child: the program of a process in which steps run. It serves its parent until that says leave, or is gone.

One attempt in a process of its own and the many of an agent's worker are the same to it. The parent's sides are
flow/own_process.py and agent/workers.py.
"""

import asyncio
import contextlib
import faulthandler
import functools
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.env import Env, FramedWire, SystemEnv, Wire, busy_interpreter, die_with_parent
from watchbill.errors import AttemptLostError, InvalidOptionError, InvalidValueError
from watchbill.flow.context import Attempt, Checkpoint, Finishing
from watchbill.flow.execute import Executor
from watchbill.flow.failures import failure_of
from watchbill.flow.logbook import keep_logs, keep_prints, log_of
from watchbill.flow.logs import marked_records
from watchbill.flow.messages import (
    Ended,
    Finishes,
    Hello,
    Leave,
    Moved,
    Order,
    Ping,
    Planned,
    Ready,
    Saved,
    Stop,
    Unready,
    Written,
    decode_messages,
    decode_plan,
)
from watchbill.flow.outbox import Outbox
from watchbill.flow.program import find_app, read_step
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.model.failure import NOT_BEGUN, Cause, Failure, Remedy
from watchbill.model.policy import Policy, decode_policy

MOST: Final = 1_000_000  # errands at once: the parent counts them
SHOW_EVERY: Final[Micros] = SECOND // 10  # progress is passed on no more often: the parent writes it even more seldom

FindStep = Callable[[str], Step[..., Any]]


class Server:
    """Runs errands, and tells the parent all that becomes of them."""

    def __init__(self, env: Env, outbox: Outbox, find_step: FindStep, threads: int) -> None:
        self._env = env
        self._outbox = outbox
        self._find_step = find_step
        self._executor = Executor(env, slots=MOST, threads=threads)
        self._running: dict[int, Attempt] = {}
        self._begin_until: dict[int, Micros] = {}
        self._saving: dict[tuple[int, int], Checkpoint] = {}
        self._finishing: dict[int, Finishing] = {}
        self._numbers = 0
        self._showing: dict[int, Attempt] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    async def serve(self, channel: Wire) -> bool:
        """Do what the parent says; True when it says leave and all is done, False when it is gone."""
        hear: dict[type, Callable[[Any], None]] = {
            Order: self._begin,
            Stop: self._stop,
            Ping: self._outbox.put,
            Written: self._written,
            Planned: self._planned,
        }
        while (frame := await channel.receive()) is not None:
            for message in decode_messages(frame):
                if isinstance(message, Leave):
                    await self._idle.wait()
                    await self._outbox.empty()
                    return True
                hear[type(message)](message)
        return False

    # --- what the parent says

    def _begin(self, order: Order) -> None:
        try:
            attempt = self._attempt(order)
        except InvalidValueError as error:
            failure = msgspec.structs.replace(failure_of(error), remedy=Remedy.GIVE_UP)
            self._outbox.put(Ended(order.errand, failure=failure))
            return
        except InvalidOptionError as error:
            # The code has changed since it was asked which steps it has: handed back, it costs nothing.
            self._outbox.put(Ended(order.errand, failure=failure_of(error, cause=Cause.CANCELLED)))
            return
        self._idle.clear()
        self._running[order.errand] = attempt
        if order.begin_until is not None:
            self._begin_until[order.errand] = order.begin_until
        self._executor.start(attempt, self, at=order.started_at, boot=order.started_boot)

    def _attempt(self, order: Order) -> Attempt:
        step = self._find_step(order.step)
        args, kwargs = step.signature.decode_args(order.args)
        body = step.asked_by() if order.probe else step
        attempt = Attempt(body, args, kwargs, _policy(order.policy), order.key, order.fence)
        attempt.number, attempt.rung, attempt.restored_body = order.number, order.rung, order.restored
        attempt.owner, attempt.row = order.errand, order.row
        return attempt

    def _stop(self, stop: Stop) -> None:
        attempt = self._running.get(stop.errand)
        if attempt is not None:
            self._executor.cancel(attempt)

    def _written(self, written: Written) -> None:
        checkpoint = self._saving.pop((written.errand, written.number), None)
        attempt = self._running.get(written.errand)
        if checkpoint is not None:
            lost = AttemptLostError(attempt.step.name, attempt.call) if written.lost and attempt is not None else None
            checkpoint.settle(lost)

    def _planned(self, planned: Planned) -> None:
        finishing = self._finishing.pop(planned.errand, None)
        attempt = self._running.get(planned.errand)
        if finishing is not None and attempt is not None:
            lost = AttemptLostError(attempt.step.name, attempt.call)
            finishing.settle(decode_plan(planned.plan) if planned.plan is not None else lost)

    # --- what the executor tells

    @property
    def trusted_until(self) -> None:
        """For ever: each order says for itself until when it may begin."""

    def finished(self, attempt: Attempt) -> None:
        """Send the outcome, as the last word about it."""
        self._show(attempt)
        errand: int = attempt.owner
        del self._running[errand]
        self._showing.pop(errand, None)
        self._begin_until.pop(errand, None)
        log = log_of(attempt) if attempt.logbook is not None else None
        self._outbox.put(Ended(errand, None if attempt.failure else attempt.body, attempt.failure, log))
        if not self._running:
            self._idle.set()

    def refusal(self, attempt: Attempt) -> Failure | None:
        """Refuse what was on its way for so long that it may be somebody else's: both processes may have slept."""
        until = self._begin_until.pop(attempt.owner, None)
        if until is None or self._env.clock.boot() < until:
            return None
        return Failure(NOT_BEGUN, "its agent may have lost it before it could begin", cause=Cause.CANCELLED)

    def lasts(self, attempt: Attempt) -> None:
        """The parent watches it."""

    def moved(self, attempt: Attempt) -> None:
        """Send every new checkpoint at once, and the newest progress soon; and ask how to finish."""
        errand: int = attempt.owner
        if attempt.progress_mark is not None and errand not in self._showing:
            self._showing[errand] = attempt
            self._env.call_later(SHOW_EVERY, lambda: self._show(self._showing.pop(errand, None)))
        for checkpoint in attempt.take_checkpoints():
            self._numbers += 1
            self._saving[errand, self._numbers] = checkpoint
            self._outbox.put(Saved(errand, self._numbers, checkpoint.body))
        if attempt.finishing is not None and not attempt.finishing.plan.done() and errand not in self._finishing:
            self._finishing[errand] = attempt.finishing
            self._outbox.put(Finishes(errand, attempt.finishing.body))

    def _show(self, attempt: Attempt | None) -> None:
        progress = attempt.take_progress() if attempt is not None and attempt.progress_mark is not None else None
        if attempt is not None and progress is not None:
            self._outbox.put(Moved(attempt.owner, *progress))


@functools.lru_cache(maxsize=1_024)
def _policy(body: bytes) -> Policy:
    """Read a policy, and leave out what has happened: it is in its own process already."""
    return msgspec.structs.replace(decode_policy(body), own=False)


async def serve(env: Env, channel: Wire, when_read: Callable[[], object] = lambda: None) -> None:
    """Read the program that the parent names, and serve it."""
    frame = await channel.receive()
    if frame is None:
        return
    [hello] = decode_messages(frame)
    if not isinstance(hello, Hello):
        return
    outbox = Outbox(channel)
    async with contextlib.AsyncExitStack() as stack:
        try:
            ready, find_step, lifespan = _read(hello)
            await stack.enter_async_context(lifespan)
            when_read()
        except Exception as error:
            outbox.put(Unready(failure_of(error, cause=Cause.KILLED)))
            await outbox.empty()
            return
        server = Server(env, outbox, find_step, hello.threads)
        stack.enter_context(busy_interpreter())
        outbox.put(ready)
        if not await server.serve(channel):
            raise SystemExit(1)  # the parent is gone: there is nobody to work for, or to tell


def _read(hello: Hello) -> tuple[Ready, FindStep, AbstractAsyncContextManager[Any]]:
    if hello.app is None:
        return _read_step(hello)
    app = find_app(hello.program, hello.app)
    registry: Registry = app.registry
    keys = None if app.keys is None else tuple((key.id, key.secret) for key in app.keys)
    return Ready(tuple(registry.steps), app.url, app.namespace, keys), registry.step, registry.alive()


def _read_step(hello: Hello) -> tuple[Ready, FindStep, AbstractAsyncContextManager[Any]]:
    """Serve one step: whose App it is shows when it is found."""
    step = read_step(hello.program, hello.step)
    step.signature.seals = hello.seals
    lifespan = step.home.alive() if step.home is not None else contextlib.nullcontext()
    return Ready((step.name,)), lambda _: step, lifespan


async def main(fd: int) -> None:
    """Serve the parent on an inherited socket."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd))
    with contextlib.suppress(ConnectionError), marked_records():  # without a parent there is nobody to work for
        # Logs only then: by now the program has configured its logging, and what it turned off is turned on again.
        await serve(SystemEnv(), FramedWire(reader, writer), when_read=keep_logs)
    writer.close()


if __name__ == "__main__":
    # A step that holds the interpreter would not see that its parent is gone, and go on without anybody knowing.
    die_with_parent()
    # Ctrl-C reaches every process of a terminal, and SIGTERM every process of a service: the parent decides what
    # becomes of its attempts. Handlers, not SIG_IGN: what a step starts must not inherit deafness.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: None)
    faulthandler.enable()  # a crash of native code says where
    keep_prints()
    asyncio.run(main(int(sys.argv[1])))
