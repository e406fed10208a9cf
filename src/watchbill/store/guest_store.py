"""GuestStore: what an agent has of a file that another process owns, whoever that is at the moment.

It keeps itself connected. While nobody has the rooms of the store open, doors raise StoreUnreachableError; when
somebody has, everything goes on: hints are asked for anew, all who listen are woken once, because nobody knows what
was missed, and the agents of this process beat, so that the new owner knows them to be alive. It never becomes the
owner itself. An owner that refuses this process (another version, another user) ends it: waiting would not help.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.errors import StoreError, StoreUnreachableError
from watchbill.events import log
from watchbill.model.agent import Orders
from watchbill.store.guest import Guest, GuestDoors
from watchbill.store.health import Health
from watchbill.store.hints import Hints
from watchbill.store.protocol import AgentStore, Hint, Transactions
from watchbill.store.wire import Door

FIRST_PAUSE: Final[Micros] = SECOND // 50  # an owner that has just died may have a successor already
LONGEST_PAUSE: Final[Micros] = SECOND // 2  # a new owner is found well within the beat after which agents are missed


class GuestStore:
    """The doors of agents, through whichever process owns the file."""

    lasting_leases = False
    hinted = True
    region: str | None = None

    def __init__(
        self, url: str, env: Env, transactions: Transactions, find: Callable[[], Awaitable[Guest | None]]
    ) -> None:
        self.url = url
        self._env = env
        self._transactions = transactions
        self._find = find
        self._agent = cast(AgentStore, GuestDoors(self, "agent"))  # as the protocol's annotations say
        self._health = Health(url, env.clock)
        self._hints = Hints()
        self._wanted: set[Hint] = set()
        self._joined: dict[int, Micros | None] = {}  # agents of this process, and for how long their leases last
        self._guest: Guest | None = None
        self._refused: StoreError | None = None
        self._found = asyncio.Event()  # the first owner, or that there will be none for us
        self._closing = asyncio.Event()
        self._keeping = asyncio.get_running_loop().create_task(self._keep_connected())

    @property
    def agent(self) -> AgentStore:
        """For agents."""
        return self._agent

    @property
    def transactions(self) -> Transactions:
        """For what is written in a user's own transaction."""
        return self._transactions

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Call `wake` when something may concern that room; `elsewhere`: all commits are those of another process."""
        if whom not in self._wanted:
            self._wanted.add(whom)
            if self._guest is not None:
                self._listen_through(self._guest, whom)
        return self._hints.listen(whom, wake)

    async def opened(self) -> None:
        """Wait for the first owner; raises StoreOwnedError when it refuses this process."""
        await self._found.wait()
        if self._refused is not None:
            raise self._refused

    async def call(self, door: Door, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - the door's
        """Open a door at the owner's of this moment."""
        guest = self._connected()
        try:
            value = await guest.call(door, args, kwargs)
        except StoreUnreachableError as error:
            self._health.failed(error)
            raise
        self._health.answered()
        self._note(door, door.bound(*args, **kwargs), value)
        return value

    async def close(self) -> None:
        """Hang up."""
        self._closing.set()
        self._keeping.cancel()
        await asyncio.wait({self._keeping})

    def _connected(self) -> Guest:
        if self._refused is not None:
            raise self._refused
        if self._closing.is_set():
            raise StoreError(f"store {self.url!r} is closed: open it again to use it")
        if self._guest is None:
            raise StoreUnreachableError(f"nobody has the rooms of store {self.url!r} open; nothing was written")
        return self._guest

    def _note(self, door: Door, arguments: dict[str, Any], value: object) -> None:
        """Remember which agents are alive here: they beat when there is a new owner."""
        agent: int = arguments.get("agent", 0)  # every door that is named here has it
        match door.name:
            case "agent.beat" if isinstance(value, Orders) and not value.alive:
                self._joined.pop(agent, None)
            case "agent.leave":
                self._joined.pop(agent, None)
            case "agent.join" | "agent.beat":
                self._joined[agent] = arguments.get("lasting")
            case _:
                pass

    # --- staying connected

    async def _keep_connected(self) -> None:
        try:
            while (guest := await self._search()) is not None:
                try:
                    await self._stay(guest)
                finally:
                    self._guest = None
                    await guest.close()
        except StoreError as refused:
            self._refused = refused
            self._wake_all()  # whoever opens a door hears of it
        finally:
            self._found.set()

    async def _search(self) -> Guest | None:
        """Look for an owner, however long it takes; None when it is time to stop."""
        pause = FIRST_PAUSE
        while not self._closing.is_set():
            try:
                guest = await self._find()
            except StoreUnreachableError as error:  # it died, or is frozen
                self._health.failed(error)
                guest = None
            if guest is not None:
                return guest
            if not self._found.is_set() and pause == FIRST_PAUSE:
                log.warning(
                    "waits for a process that has the rooms of store %r open: watchbill up or watchbill dev", self.url
                )
            await self._env.wait(self._closing, pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return None

    async def _stay(self, guest: Guest) -> None:
        self._guest = guest
        for whom in self._wanted:
            self._listen_through(guest, whom)
        with contextlib.suppress(StoreError):  # whatever is wrong with it, those who open doors will hear
            await self._say_who_is_here()
        self._found.set()
        self._health.answered()
        self._wake_all()
        await guest.gone.wait()
        if not self._closing.is_set():
            self._health.failed(StoreUnreachableError(f"the process that had store {self.url!r} open is gone"))

    async def _say_who_is_here(self) -> None:
        """Let every agent of this process beat: its connection is another one now, and perhaps the owner is."""
        for agent, lasting in tuple(self._joined.items()):
            await self._agent.beat(agent, lasting, ())

    def _listen_through(self, guest: Guest, whom: Hint) -> None:
        guest.listen(whom, lambda: self._hints.give(whom))

    def _wake_all(self) -> None:
        for whom in self._wanted:
            self._hints.give(whom)
