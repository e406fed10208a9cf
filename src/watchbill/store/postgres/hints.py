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
LONGEST_PAUSE: Final[Micros] = 2 * SECOND  # a process that polls is much slower than one that listens
# The connection may be half-open, or closed without notice. A hundred idle agents ask eleven times a second.
CHECK_EVERY: Final[Micros] = 9 * SECOND
CHECK_WITHIN: Final = 5.0  # seconds for the answer; a live server answers in milliseconds


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
        self._listening_to = statements(lines.address.schema)["listening_to"]
        self._connection: Connection | None = None  # on which this process listens now
        self._newest: Connection | None = None  # the same one, or the one that is just being opened
        self._listening: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # the connection was lost, or it is time to stop
        self._opened = asyncio.Event()  # for the first time
        self._failing = False  # the last attempt to open it failed
        self._stopping = False
        self._me = f"{lines.env.new_id():x}"  # not the connection: some are sent over another one
        self._pending: set[Hint] = set()
        self._sending: asyncio.Task[None] | None = None

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` from now on; gives the function that ends it."""
        self._begin_listening()
        return (self._elsewhere if elsewhere else self._local).listen(whom, wake)

    @property
    def listens(self) -> bool:
        """True while this process hears hints from others; never behind a pooler of transactions."""
        if self._connection is None:
            # The first connection is just being opened.
            return self._listening is not None and not self._opened.is_set() and not self._failing
        return not self._connection.is_closed()

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
        """Listen until the store is closed: after every loss, and after every error, again."""
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
            await self._stay(opened)
            self._connection, self._newest, lost = None, None, True
            self.witness.lost(alive=not self._stopping)
            if self._stopping:
                await self._part_with(opened)
            else:
                opened.terminate()

    async def _stay(self, connection: Connection) -> None:
        """Wait until the connection is lost, or the store is closed.

        The driver does not report every loss: if a statement is sent after the server's last message has arrived and
        before its end of file, the driver closes the connection without calling its listeners. And a half-open
        connection ends only when a statement gets no answer.
        """
        await self._env.wait(self._changed, CHECK_EVERY)
        while not self._changed.is_set() and await self._still_listens(connection):
            await self._env.wait(self._changed, CHECK_EVERY)

    async def _still_listens(self, connection: Connection) -> bool:
        """Ask the server whether this session listens to our channel."""
        try:
            async with self.witness.speaking:
                found = await connection.fetch(self._listening_to.text, self._channel, timeout=CHECK_WITHIN)
        except asyncio.CancelledError:
            _raise_if_cancelled()
            return False
        except Exception:
            return False
        return bool(found)

    async def _open(self, pause: Micros, *, alone: bool) -> Connection | None:
        """Open the connection, however long it takes; None when it is time to stop. `alone`: no other one was lost."""
        failures, said = 0, False
        while not self._stopping:
            self._changed.clear()
            try:
                connection = await self._listen()
            except asyncio.CancelledError:
                _raise_if_cancelled()
                error: BaseException = ConnectionAbortedError("the driver cancelled its own attempt to connect")
            except Exception as raised:
                error = raised
            else:
                self._failing = False
                if said or (alone and not failures):
                    log.warning("store %r: the listening connection was lost, and is open again", self._address.shown)
                return connection
            failures += 1
            self._failing = True
            said |= self._say_that_it_failed(error, failures)
            await self._env.wait(self._changed, pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return None

    def _say_that_it_failed(self, error: BaseException, failures: int) -> bool:
        """Log the reason why this process cannot listen, once; true if it was logged."""
        refusal = refusals.at_reconnect(error, self._address)
        unexpected = refusal is error
        if (failures == 1 and unexpected) or (failures == TRIES and not self._lines.health.away):
            log.warning(
                "store %r: this process cannot listen for hints and polls once a second until it can: %s",
                self._address.shown,
                refusal,
                exc_info=error if unexpected else None,
            )
            return True
        return False

    async def _listen(self) -> Connection:
        self._newest = connection = await connect(self._address, HOT)
        try:
            connection.add_termination_listener(lambda *_: self._ended(connection))
            await connection.add_listener(self._channel, self._heard)
            await self.witness.opened(connection)
        except BaseException:
            self._newest = None
            connection.terminate()
            raise
        return connection

    def _ended(self, connection: Connection) -> None:
        """Take note that a connection has ended, unless it was given up before: the driver says so later."""
        if connection is self._newest:
            self._changed.set()

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
        connection = self._connection
        if connection is not None:
            try:
                async with self.witness.speaking:
                    await connection.fetch(self._notify.text, self._channel, rooms, timeout=CHECK_WITHIN)
                return
            except Exception:
                self._ended(connection)  # whatever it was: a notification cannot fail on a connection that is well
        # This process does not listen (yet), but others may.
        await self._lines.rows(self._lines.others, "notify", {"channel": self._channel, "rooms": rooms})


def _raise_if_cancelled() -> None:
    """Raise `CancelledError` again if this task was cancelled; else the driver cancelled a future of its own."""
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise asyncio.CancelledError
