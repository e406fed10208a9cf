"""Pool: agents as processes on this machine: kept running, and as many as the work needs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from watchbill import events as happened
from watchbill.clock import SECOND, Micros
from watchbill.env import Env
from watchbill.events import Event, Events
from watchbill.loop import Loop
from watchbill.model.fleet import Fleet, Load, Size, size_of

LOOK_EVERY: Final[Micros] = SECOND
YOUNG: Final[Micros] = 10 * SECOND  # who ends before that, unasked, is replaced after a pause that doubles
FIRST_PAUSE: Final[Micros] = SECOND
LONGEST_PAUSE: Final[Micros] = 60 * SECOND
LOOPING_AFTER: Final = 3  # quick ends in a row: then it is the program's fault, and somebody should know
LEAVES_WITHIN: Final = 5.0  # seconds that an agent may need beyond its grace


class Process(Protocol):
    """An agent's process."""

    async def ended(self) -> int:
        """Wait until it has ended; gives its exit code."""
        ...

    async def end(self, grace: float) -> None:
        """Ask it to end, and wait; kill it when it has not after the grace."""
        ...


class Member(NamedTuple):
    """One agent, and who waits for its end."""

    process: Process
    began_at: Micros
    watching: "asyncio.Task[int]"


class Pool(Loop):
    """Starts agents, starts those again that die, and ends those that nobody needs."""

    name = "pool"

    def __init__(
        self,
        env: Env,
        events: Events,
        *,
        employ: Callable[[], Awaitable[Process]],
        read_load: Callable[[], Awaitable[Load]],
        size: Size,
        grace: float,
    ) -> None:
        super().__init__(env, events)
        self._employ = employ
        self._read_load = read_load
        self._size = size
        self._grace = grace
        self._members: list[Member] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._fleet = Fleet()
        self._quick_ends = 0
        self._not_before: Micros = 0  # after quick ends

    async def turn(self) -> Micros | None:
        """See who has ended, and have as many as there should be."""
        boot = self.env.clock.boot()
        self._see_who_ended(boot)
        load = await self._read_load()
        wanted, self._fleet = size_of(self._fleet, load, len(self._members), self._size, boot)
        while len(self._members) > wanted:
            self._let_go(self._members.pop())
        while len(self._members) < wanted and boot >= self._not_before:
            await self._start()
        return LOOK_EVERY

    async def stop(self) -> None:
        """End them all, gently, and wait until they are gone; raises what ended the loop, if anything did."""
        try:
            await super().stop()
        finally:
            await self._parted()

    async def close(self) -> None:
        """End them all, gently."""
        self.abandon()
        await self._parted()

    def abandon(self) -> None:
        """End them all: whoever reads the store here cannot."""
        for member in self._members:
            self._let_go(member)
        self._members.clear()

    async def _parted(self) -> None:
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _start(self) -> None:
        process = await self._employ()
        watching = asyncio.get_running_loop().create_task(process.ended())
        watching.add_done_callback(lambda _: self.wake())
        self._members.append(Member(process, self.env.clock.boot(), watching))

    def _let_go(self, member: Member) -> None:
        leaving = asyncio.get_running_loop().create_task(member.process.end(self._grace + LEAVES_WITHIN))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    def _see_who_ended(self, boot: Micros) -> None:
        for member in [member for member in self._members if member.watching.done()]:
            self._members.remove(member)
            code = member.watching.result()
            if boot - member.began_at >= YOUNG:
                self._quick_ends = 0
                self._tell(happened.AGENT_ENDED, code, "it is started again")
                continue
            self._quick_ends += 1
            pause = min(FIRST_PAUSE << (self._quick_ends - 1), LONGEST_PAUSE)
            self._not_before = boot + pause
            kind = happened.AGENT_LOOPING if self._quick_ends >= LOOPING_AFTER else happened.AGENT_ENDED
            self._tell(
                kind, code, f"{self._quick_ends} in a row soon after the start; the next in {pause / SECOND:g} s"
            )

    def _tell(self, kind: str, code: int, note: str) -> None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        self.tell([Event(kind, self.env.clock.boot(), self.name, cause=how, note=note)])
