"""Mailbox: messages that were sent to a run, per topic and in order, and the calls that wait for them."""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from watchbill.errors import InvalidValueError
from watchbill.flow.futures import Receive

MOST_REMEMBERED: Final = 1_000  # references that a run's next part knows: a message is sent again within seconds


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
        self._refs: dict[str, None] = {}  # in order

    def arrive(self, message: Message) -> bool:
        """Give a message to whoever has waited longest, or keep it; False when it was there before."""
        if message.ref in self._refs:
            return False
        self._refs[message.ref] = None
        if not self._hand_out(message):
            self._unread.setdefault(message.topic, deque()).append(message)
        return True

    def put_back(self, message: Message, *, hand_out: bool) -> None:
        """Take a message back that nobody has seen: it is the oldest again, unless somebody else is to have it."""
        if not hand_out or not self._hand_out(message):
            self._unread.setdefault(message.topic, deque()).appendleft(message)

    def _hand_out(self, message: Message) -> bool:
        waiting = self._waiting.get(message.topic)
        while waiting:
            call = waiting.popleft()
            if not call.done():
                _settle(call, message)
                return True
        return False

    def take(self, call: Receive) -> bool:
        """Settle the call with the oldest unread message; False: there is none, and it waits from now on."""
        unread = self._unread.get(call.topic)
        if unread:
            _settle(call, unread.popleft())
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

    def received(self) -> list[str]:
        """Give the references of the newest messages that were received: sent again they are still the same."""
        unread = {message.ref for message in self.unread()}
        return [ref for ref in self._refs if ref not in unread][-MOST_REMEMBERED:]

    def take_over(self, unread: Iterable[Message], received: Iterable[str]) -> None:
        """Go on where the mailbox of the part before was."""
        for message in unread:
            self.arrive(message)
        self._refs.update(dict.fromkeys(received))


def _settle(call: Receive, message: Message) -> None:
    body = message.body
    call.message = message
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
