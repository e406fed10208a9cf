"""Mailbox: messages that were sent to a run, per topic and in order, and the calls that wait for them."""

from collections import deque
from typing import NamedTuple

from watchbill.errors import InvalidValueError
from watchbill.flow.futures import Receive


class Message(NamedTuple):
    """One message; its reference makes sending it twice the same message."""

    topic: str
    ref: str
    body: bytes


class Mailbox:
    """Every message is received once, the oldest first, also when it came before anybody waited for it."""

    __slots__ = ("_refs", "_unread", "_waiting")

    def __init__(self) -> None:
        self._unread: dict[str, deque[Message]] = {}
        self._waiting: dict[str, deque[Receive]] = {}
        self._refs: set[str] = set()

    def arrive(self, message: Message) -> bool:
        """Give a message to whoever has waited longest, or keep it; False when it was there before."""
        if message.ref in self._refs:
            return False
        self._refs.add(message.ref)
        waiting = self._waiting.get(message.topic)
        while waiting:
            call = waiting.popleft()
            if not call.done():
                _settle(call, message.body)
                return True
        self._unread.setdefault(message.topic, deque()).append(message)
        return True

    def take(self, call: Receive) -> bool:
        """Settle the call with the oldest unread message; False: there is none, and it waits from now on."""
        unread = self._unread.get(call.topic)
        if unread:
            _settle(call, unread.popleft().body)
            return True
        self._waiting.setdefault(call.topic, deque()).append(call)
        return False

    def leave(self, call: Receive) -> None:
        """Wait no longer."""
        waiting = self._waiting.get(call.topic)
        if waiting is not None and call in waiting:
            waiting.remove(call)

    def unread(self) -> list[Message]:
        """Give what nobody has received: it goes on to the run's next part."""
        return [message for messages in self._unread.values() for message in messages]


def _settle(call: Receive, body: bytes) -> None:
    call.home.calls.pop(call.key, None)
    try:
        value = call.decode(body)
    except Exception as error:
        call.set_exception(
            InvalidValueError(
                f"a message on {call.topic!r} is not what receive() asks for: {error}; it is {body[:200]!r}"
            )
        )
    else:
        call.set_result(value)
