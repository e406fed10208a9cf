"""Child: the program of a process that runs one attempt and tells its parent about it."""

import asyncio
import contextlib
import signal
import socket
import sys
from contextlib import AbstractAsyncContextManager

import msgspec

from watchbill.env import Env, FramedWire, SystemEnv, Wire
from watchbill.errors import AttemptLostError
from watchbill.flow.context import Attempt, Checkpoint, Finishing
from watchbill.flow.execute import Executor
from watchbill.flow.failures import failure_of
from watchbill.flow.logs import marked_records
from watchbill.flow.own_process import (
    Ended,
    Finishes,
    Message,
    Moved,
    Order,
    Planned,
    Saved,
    decode_message,
    decode_plan,
    encode_message,
)
from watchbill.flow.program import read_step
from watchbill.model.failure import Cause


class Reporter:
    """The host of the one attempt in a child: everything goes to the parent."""

    def __init__(self, channel: Wire) -> None:
        self._channel = channel
        self._waiting: dict[int, Checkpoint] = {}
        self._finishing: list[tuple[Attempt, Finishing]] = []
        self._numbers = 0
        self._outbox: asyncio.Queue[Message | None] = asyncio.Queue()

    def finished(self, attempt: Attempt) -> None:
        """Send the outcome, as the last message."""
        self._outbox.put_nowait(Ended(None if attempt.failure else attempt.body, attempt.failure))
        self._outbox.put_nowait(None)

    def refusal(self, attempt: Attempt) -> None:
        """Refuse nothing: the parent has looked before it sent the order."""

    def lasts(self, attempt: Attempt) -> None:
        """The parent watches it."""

    def moved(self, attempt: Attempt) -> None:
        """Send the newest progress and every new checkpoint, and ask how to finish."""
        if attempt.progress_mark is not None and attempt.finishing is None:
            self._outbox.put_nowait(Moved(attempt.progress_mark))
        for checkpoint in attempt.take_checkpoints():
            self._numbers += 1
            self._waiting[self._numbers] = checkpoint
            self._outbox.put_nowait(Saved(self._numbers, checkpoint.body))
        if attempt.finishing is not None and not attempt.finishing.plan.done():
            self._finishing.append((attempt, attempt.finishing))
            self._outbox.put_nowait(Finishes(attempt.finishing.body))

    async def relay(self) -> None:
        """Send what gathers, until the outcome is out."""
        with contextlib.suppress(ConnectionError):  # the parent is gone: `hear` says so
            while (message := await self._outbox.get()) is not None:
                await self._channel.send(encode_message(message))

    async def hear(self) -> None:
        """Hear which checkpoints are durable, and how to finish; without a parent there is nobody to work for."""
        while (message := await self._channel.receive()) is not None:
            reply = decode_message(message)
            if isinstance(reply, Saved):
                self._waiting.pop(reply.number).settle()
            elif isinstance(reply, Planned):
                attempt, finishing = self._finishing.pop(0)
                lost = AttemptLostError(attempt.step.name, attempt.call)
                finishing.settle(decode_plan(reply.plan) if reply.plan is not None else lost)


async def serve(env: Env, channel: Wire) -> None:
    """Run the one attempt that comes over the channel."""
    message = await channel.receive()
    if message is None:
        return
    order = decode_message(message)
    if not isinstance(order, Order):
        return
    reporter = Reporter(channel)
    try:
        attempt = _attempt(order)
    except Exception as error:
        # Not the step's failure: it never ran. It counts as one more death, and a person will see why.
        await channel.send(encode_message(Ended(failure=failure_of(error, cause=Cause.KILLED))))
        return
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(_alive(attempt))
        except Exception as error:
            await channel.send(encode_message(Ended(failure=failure_of(error, cause=Cause.KILLED))))
            return
        executor = Executor(env, slots=1, threads=1)
        executor.start(attempt, reporter, at=order.started_at, boot=order.started_boot)
        loop = asyncio.get_running_loop()
        hearing, relaying = loop.create_task(reporter.hear()), loop.create_task(reporter.relay())
        await asyncio.wait({hearing, relaying}, return_when=asyncio.FIRST_COMPLETED)
        hearing.cancel()
        if not relaying.done():
            raise SystemExit(1)  # the parent is gone: there is nobody to work for, or to tell


def _alive(attempt: Attempt) -> AbstractAsyncContextManager[None]:
    home = attempt.step.home
    return home.alive() if home is not None else contextlib.nullcontext()


def _attempt(order: Order) -> Attempt:
    step = read_step(order.program, order.step)
    step.signature.seals = order.seals
    args, kwargs = step.signature.decode_args(order.args)
    policy = msgspec.structs.replace(order.policy, own=False)  # it is in its own process already
    attempt = Attempt(step, args, kwargs, policy, order.key, order.fence)
    attempt.number, attempt.rung, attempt.restored_body = order.number, order.rung, order.restored
    attempt.row = order.row
    return attempt


async def main(fd: int) -> None:
    """Serve the parent on an inherited socket."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd))
    with contextlib.suppress(ConnectionError), marked_records():  # without a parent there is nobody to work for
        await serve(SystemEnv(), FramedWire(reader, writer))
    writer.close()


if __name__ == "__main__":
    # Ctrl-C reaches every process of a terminal: the parent decides what becomes of this attempt.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(main(int(sys.argv[1])))
