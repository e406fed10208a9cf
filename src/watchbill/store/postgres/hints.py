"""Hints across processes: a commit wakes those in this process at once, and those in others by NOTIFY.

Never in the committing transaction: notifications are handed out in the order of commits, under one lock for the whole
server, and would bring every commit to a quarter of its speed. So they are gathered and sent over the connection that
listens, a few milliseconds apart. Losing one costs time: the rooms also look every second or two. After a lost
connection everybody is woken once, because nobody knows what was missed.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.events import log
from watchbill.store.hints import Hints
from watchbill.store.postgres import refusals
from watchbill.store.postgres.connections import HOT, Connection, Connections, connect
from watchbill.store.postgres.statements import statements
from watchbill.store.postgres.witness import Witness
from watchbill.store.protocol import Hint

APART: Final[Micros] = SECOND // 200  # between two notifications: five milliseconds are not noticed, and cost little
FIRST_PAUSE: Final[Micros] = SECOND // 10
TRIES: Final = 4  # after that many it is worth a word, unless the whole store is away, which has been said
VOUCH_WITHIN: Final[Micros] = SECOND  # for a first connection; without it the next beat says that it is there
LONGEST_PAUSE: Final[Micros] = 5 * SECOND  # the rooms look by themselves every second or two: no hurry


def channel_of(schema: str) -> str:
    """Name the channel of a store."""
    return f"watchbill_{schema}"


class SharedHints:
    """Hints of this process and of the others."""

    def __init__(self, lines: Connections) -> None:
        self.witness = Witness(lines)
        self._local = Hints()
        self._elsewhere = Hints()  # who wants to hear of other processes only
        self._loop = asyncio.get_running_loop()
        self._lines = lines
        self._env = lines.env
        self._address = lines.address
        self._channel = channel_of(lines.address.schema)
        self._notify = statements(lines.address.schema)["notify"]
        self._connection: Connection | None = None
        self._listening: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # the connection was lost, or it is time to stop
        self._opened = asyncio.Event()  # for the first time
        self._stopping = False
        self._me = f"{lines.env.new_id():x}"  # not the connection: some are sent over another one
        self._pending: set[Hint] = set()
        self._sending: asyncio.Task[None] | None = None

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` from now on; gives the function that ends it."""
        self._begin_listening()
        return (self._elsewhere if elsewhere else self._local).listen(whom, wake)

    async def vouch(self, agent: int) -> bool:
        """Hold the lock of an agent from now on, on the connection that listens; says whether it is held now."""
        if self._address.pooled:
            return False
        self._begin_listening()
        await self._env.wait(self._opened, VOUCH_WITHIN)
        return await self.witness.vouch(agent)

    def give(self, whom: Hint) -> None:
        """Wake everybody who listens, here at once, elsewhere soon."""
        self._local.give(whom)
        self._pending.add(whom)
        if self._sending is None:
            self._sending = self._loop.create_task(self._send_pending())

    async def close(self) -> None:
        """Tell what is pending, and stop listening."""
        self._stopping = True
        if self._sending is not None:
            await self._sending
        self._changed.set()
        if self._listening is not None:
            await self._listening

    # --- listening

    def _begin_listening(self) -> None:
        if self._listening is None and not self._address.pooled:
            # A pooler of transactions lends its sessions: nobody can listen through it.
            self._listening = self._loop.create_task(self._keep_listening())

    async def _keep_listening(self) -> None:
        lost, outages = False, 0
        while not self._stopping:
            # If the whole store was away, that has been said, and that it is back, too.
            opened = await self._open(FIRST_PAUSE, alone=lost and outages == self._lines.health.outages)
            if opened is None:
                return
            self._connection, outages = opened, self._lines.health.outages
            self._opened.set()
            if lost:
                self._wake_all()
            await self._changed.wait()
            self._connection, lost = None, True
            self.witness.lost(alive=not self._stopping)
            if self._stopping:
                await self._part_with(opened)
            else:
                opened.terminate()

    async def _open(self, pause: Micros, *, alone: bool) -> Connection | None:
        """Open the connection, however long it takes; None when it is time to stop. `alone`: no other one was lost."""
        failures, said = 0, False
        while not self._stopping:
            self._changed.clear()
            try:
                connection = await self._listen()
            except Exception as error:
                refusal = refusals.at_reconnect(error, self._address)
                if refusal is error:
                    raise
                failures += 1
                if failures == TRIES and not self._lines.health.away:
                    said = True
                    log.warning("%s; without it the rooms look every second or two", refusal)
                await self._env.wait(self._changed, pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            if said or (alone and not failures):
                log.warning("store %r: the listening connection was lost, and is open again", self._address.shown)
            return connection
        return None

    async def _listen(self) -> Connection:
        connection = await connect(self._address, HOT)
        try:
            connection.add_termination_listener(lambda *_: self._changed.set())
            await connection.add_listener(self._channel, self._heard)
            await self.witness.opened(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _heard(self, connection: Connection, pid: int, channel: str, payload: str) -> None:
        sender, _, rooms = payload.partition(" ")
        if sender == self._me:
            return  # those here were woken at the commit
        for word in rooms.split(","):
            with contextlib.suppress(ValueError):  # of a newer Watchbill
                self._wake(Hint(word))

    def _wake_all(self) -> None:
        for whom in Hint:
            self._wake(whom)

    def _wake(self, whom: Hint) -> None:
        self._local.give(whom)
        self._elsewhere.give(whom)

    async def _part_with(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=2)
        except Exception:
            connection.terminate()

    # --- telling others

    async def _send_pending(self) -> None:
        try:
            while self._pending:
                rooms, self._pending = f"{self._me} {','.join(sorted(self._pending))}", set()
                # A hint may be lost; that the store is away is said elsewhere.
                with contextlib.suppress(Exception):
                    await self._send(rooms)
                await self._env.wait(asyncio.Event(), APART)
        finally:
            self._sending = None

    async def _send(self, rooms: str) -> None:
        if self._connection is not None:
            async with self.witness.speaking:
                await self._connection.fetch(self._notify.text, self._channel, rooms)
        else:
            # Nobody listens here yet, but somebody may elsewhere.
            await self._lines.rows(self._lines.others, "notify", {"channel": self._channel, "rooms": rooms})
