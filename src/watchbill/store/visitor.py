"""Visitor: one guest as the owner of a file sees it: its connection, the hints it wants, the agents it speaks for."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.env import Env, FramedWire
from watchbill.store import wire
from watchbill.store.presence import Presence
from watchbill.store.protocol import Hint, Store
from watchbill.store.wire import Answer

APART: Final[Micros] = SECOND // 200  # between two pushes: five milliseconds are not noticed, and spare both sides
_HINTS: Final = {whom: wire.encode(Answer(wire.HINTED, msgspec.Raw(wire.encode(whom)))) for whom in Hint}


class Visitor:
    """A guest that was let in, until its connection ends."""

    def __init__(self, env: Env, store: Store, presence: Presence, line: FramedWire) -> None:
        self.line = line
        self._env = env
        self._store = store
        self._presence = presence
        self._deaf: dict[Hint, Callable[[], None]] = {}
        self._pending: set[Hint] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._over = False

    async def listen(self, whom: Hint) -> None:
        """Send this hint from now on."""
        if not self._over and whom not in self._deaf:
            self._deaf[whom] = self._store.listen(whom, lambda: self._push(whom))

    def heard(self, method: str, arguments: dict[str, Any]) -> None:
        """Take note of which agent speaks through this guest; every door of agents that names one says so."""
        agent = arguments.get("agent")
        if agent is None:
            return
        if method == "leave":
            self._presence.forget([agent])
            return
        self._presence.heard(agent, self, arguments.get("lasting"))
        if self._over:  # it was said before the connection ended, and is read after that
            self._presence.ended(self)

    def leave(self) -> None:
        """Its connection has ended."""
        self._over = True
        for deaf in self._deaf.values():
            deaf()
        if self._pause is not None:
            self._pause.cancel()
        self._presence.ended(self)

    def _push(self, whom: Hint) -> None:
        self._pending.add(whom)
        if self._pause is None:
            self._send()

    def _send(self) -> None:
        """Send what is pending; whatever comes within the next moments is sent together, each kind once."""
        self._pause = None
        pending, self._pending = self._pending, set()
        for whom in pending:
            self.line.post(_HINTS[whom])  # dropped for one that does not read: it will look by itself
        if pending:
            self._pause = self._env.call_later(APART, self._send)
