"""A pool of processes: kept running, grown and shrunk. The processes are the test's own."""

import asyncio

import pytest

from watchbill.app.pool import LOOPING_AFTER, Pool
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreError
from watchbill.events import AGENT_ENDED, AGENT_LOOPING, Event, Events
from watchbill.model.fleet import Load, Size


class Clock:
    """A clock that stands still until it is told."""

    now = 0

    def boot(self) -> int:
        return self.now

    def wall(self) -> int:
        return self.now


class Member:
    """A process that lives until somebody ends it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.asked = False
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ended(self) -> int:
        return await asyncio.shield(self.code)

    async def end(self, grace: float) -> None:
        self.asked = True
        if not self.code.done():
            self.code.set_result(0)


class Yard:
    """A pool, its processes and what it told."""

    def __init__(self, least: int, most: int) -> None:
        self.started: list[Member] = []
        self.load = Load(0, 0, 0)
        self.trouble: StoreError | None = None
        self.told: list[Event] = []
        env = SystemEnv()
        self.clock = env.clock = Clock()
        events = Events()
        events.subscribe(self.told.extend)
        self.pool = Pool(
            env, events, employ=self._employ, read_load=self._read, size=Size(least, most, slots=10), grace=0.0
        )

    @property
    def there(self) -> list[int]:
        """Those that have not ended, and should not."""
        return [member.pid for member in self.started if not member.code.done()]

    async def _employ(self) -> Member:
        self.started.append(Member(len(self.started)))
        return self.started[-1]

    async def _read(self) -> Load:
        if self.trouble is not None:
            raise self.trouble
        return self.load

    async def turn(self, after: float = 1) -> None:
        self.clock.now += round(after * SECOND)
        await asyncio.sleep(0)
        await self.pool.turn()
        await asyncio.sleep(0)

    async def dies(self, member: Member, code: int = -9) -> None:
        member.code.set_result(code)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_the_least_are_started_and_whoever_dies_is_replaced():
    yard = Yard(2, 4)
    await yard.turn()
    assert yard.there == [0, 1]
    await yard.turn(after=60)
    await yard.dies(yard.started[0])
    await yard.turn()
    assert yard.there == [1, 2]
    assert [event.kind for event in yard.told] == [AGENT_ENDED]
    assert yard.told[0].cause == "signal 9"
    await yard.pool.close()


async def test_who_ends_soon_after_the_start_again_and_again_is_started_ever_later_and_somebody_is_told():
    yard = Yard(1, 1)
    await yard.turn()
    pauses = []
    for _ in range(LOOPING_AFTER + 1):
        await yard.dies(yard.started[-1], code=1)
        count, waited = len(yard.started), 0
        while len(yard.started) == count:
            await yard.turn(after=1)
            waited += 1
        pauses.append(waited)
    assert pauses == [2, 3, 5, 9]
    assert [event.kind for event in yard.told] == [AGENT_ENDED, AGENT_ENDED, AGENT_LOOPING, AGENT_LOOPING]
    await yard.pool.close()


async def test_work_that_waits_makes_it_grow_and_idleness_lets_go_of_all():
    yard = Yard(0, 4)
    await yard.turn()
    assert not yard.there
    yard.load = Load(50, 0, 0)
    await yard.turn()
    assert len(yard.there) == 1
    yard.load = Load(50, 5 * SECOND, 10)
    await yard.turn(after=6)
    await yard.turn(after=6)
    assert len(yard.there) == 4
    yard.load = Load(0, 0, 0)
    await yard.turn()
    await yard.turn(after=40)
    assert not yard.there
    assert all(member.asked for member in yard.started)
    await yard.pool.close()


async def test_closing_ends_every_process():
    yard = Yard(3, 3)
    await yard.turn()
    await yard.pool.close()
    assert [member.asked for member in yard.started] == [True, True, True]


async def test_a_store_that_cannot_be_used_ends_the_pool_and_every_process():
    yard = Yard(2, 4)
    keeping = yard.pool.start()
    while len(yard.started) < 2:
        await asyncio.sleep(0)
    yard.trouble = StoreError("gone for good")
    yard.pool.wake()
    await asyncio.wait({keeping})
    with pytest.raises(StoreError, match="gone for good"):
        await yard.pool.stop()
    assert [member.asked for member in yard.started] == [True, True]
