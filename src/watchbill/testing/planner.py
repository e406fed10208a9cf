"""Planner: a client of the simulated world that creates schedules at run time, and changes them."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from watchbill.app.schedules import Schedules
from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.model.recurrence import ScheduleSpec
from watchbill.store.protocol import ClientStore
from watchbill.testing.chance import Chance
from watchbill.testing.envs import SimClock, SimEnv
from watchbill.testing.network import FarStore
from watchbill.testing.virtual import Life, rest
from watchbill.testing.workload import CREATED, report
from watchbill.testing.world import NAMESPACE, Clients, World

T = TypeVar("T")

PLACES: Final = ("eu", "us")


class Planner:
    """Creates each schedule some time after the beginning, several times, with other arguments now and then."""

    namespace = NAMESPACE

    def __init__(self, world: World, clients: Clients, chance: Chance, storm: float) -> None:
        self._world = world
        self._clients = clients
        self._chance = chance
        self._storm = storm
        self._life = Life("planner", world.loop)
        self.env: Env = SimEnv(world.loop, SimClock(world.loop), chance.fork("ids"), world.ids)
        self._store = FarStore(world.network, self._life).client

    def begin(self) -> None:
        """Begin to create them; the world does not end before all are there."""
        for name, spec in CREATED.items():
            self._clients.waiting += 1
            self._life.start(self._plan(name, spec))

    async def _plan(self, name: str, spec: ScheduleSpec) -> None:
        for at in sorted(self._chance.within(0, self._storm / 3) for _ in range(3)):
            await rest(at)
            place = self._chance.choose(PLACES)
            body = report.signature.encode_args((place,), {})
            made = await Schedules(self).create(name, report, spec, body, "", "planner")
            if (made.name, made.workflow, made.created) != (name, report.name, True):
                self._world.checker.violated("I11", f"asked for the schedule {name}, and there is {made}")
            self._world.counts["schedules created"] += 1
        self._clients.waiting -= 1

    async def read(self, work: Callable[[ClientStore], Awaitable[T]]) -> T:
        """Read something, until the store answers."""
        return await self.write(work)

    async def write(self, work: Callable[[ClientStore], Awaitable[T]]) -> T:
        """Write something, until the store answers."""
        while True:
            try:
                return await work(self._store)
            except StoreUnreachableError as error:
                await self._world.network.wait_after(error)
