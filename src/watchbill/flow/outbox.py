"""Outbox: messages that gather while others are being sent, and leave in one frame."""

import asyncio
import contextlib

from watchbill.env import Wire
from watchbill.flow.messages import Message, encode_messages


class Outbox:
    """Sends messages over a wire in order; whoever puts one in does not wait."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._messages: list[Message] = []
        self._sending: asyncio.Task[None] | None = None

    def put(self, message: Message) -> None:
        """Send a message soon."""
        self._messages.append(message)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def empty(self) -> None:
        """Wait until everything has left, or nobody is there to receive it."""
        while self._sending is not None:
            await asyncio.wait({self._sending})

    async def _send(self) -> None:
        # A lost connection is seen by whoever listens at this end.
        try:
            with contextlib.suppress(ConnectionError):
                while self._messages:
                    messages, self._messages = self._messages, []
                    await self._wire.send(encode_messages(messages))
        finally:
            self._sending = None  # whatever happened: who comes next must not wait for ever
