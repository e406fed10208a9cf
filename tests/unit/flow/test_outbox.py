"""An outbox sends what is put in, whatever became of what was put in before."""

import asyncio
import contextlib

from watchbill.flow.messages import Leave, Ping, decode_messages
from watchbill.flow.outbox import Outbox


class Line:
    """A wire that breaks once."""

    def __init__(self) -> None:
        self.trouble: Exception | None = RuntimeError("cannot be sent")
        self.sent: list[object] = []

    async def send(self, message: bytes) -> None:
        if self.trouble is not None:
            trouble, self.trouble = self.trouble, None
            raise trouble
        self.sent += decode_messages(message)

    async def receive(self) -> bytes | None:
        return None


async def test_after_something_that_cannot_be_sent_the_next_is_sent_and_nobody_waits_for_ever():
    line = Line()
    outbox = Outbox(line)
    outbox.put(Ping(1))
    sending = outbox._sending
    async with asyncio.timeout(10):
        await outbox.empty()
        outbox.put(Leave())
        await outbox.empty()
    assert line.sent == [Leave()]
    with contextlib.suppress(RuntimeError):
        assert sending is not None
        sending.result()
