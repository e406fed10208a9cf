"""Idle: processes that have nothing to do, and what they ask of PostgreSQL meanwhile: counted on the wire.

Time is theirs: their rooms have their turns when they wish to, or are hinted at. For tests, and for the benchmark.
"""

from collections import Counter
from collections.abc import Sequence

from tests.house.idlers import Nobody
from tests.rooms.crowded import MINUTE, Turns
from tests.store.stage import Stage
from tests.store.wire import Wire
from watchbill import App, Limit
from watchbill.agent.agent import Agent
from watchbill.agent.teacher import Teacher
from watchbill.app.host import Employment
from watchbill.app.house import House
from watchbill.clock import SECOND
from watchbill.events import Events
from watchbill.loop import Loop
from watchbill.model.alert import read_routes
from watchbill.model.profile import PROFILES
from watchbill.model.watcher import Supervision
from watchbill.store.postgres.store import PostgresStore
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import HandEnv

A_MOMENT = SECOND // 10


class Process:
    """One process, whose way to the server is looked at."""

    def __init__(self, stage: Stage, wire: Wire, store: PostgresStore) -> None:
        self.store = store
        self.env = HandEnv(stage.clock)
        self._clock = stage.clock
        self._wire = wire
        self._before: Counter[str] = Counter()

    async def opens(self, rooms: Sequence[Loop]) -> None:
        self.turns = Turns(rooms, self._clock)
        await self.turns.open()

    async def opens_house(self, way: Supervision, *, all_rooms: bool) -> None:
        """Open all rooms there are, or those of a supervisor, with somebody to tell of incidents.

        With the short lease that they have in `watchbill up`, which has its agent in a process of its own.
        """
        routes, registry = read_routes("https://team.example"), a_shop().registry
        house = House(
            self.env, self.store, registry, Events(), namespace="default",
            scheduler=all_rooms, agent=all_rooms, supervision=way, routes=routes, lease=PROFILES["critical"].lease,
        )  # fmt: skip
        await self.opens(house.rooms)

    async def opens_host(self) -> None:
        """Work as `watchbill agent` does."""
        wanted = Employment()
        agent = Agent(
            self.env, Events(), store=self.store.agent, transactions=self.store.transactions, crew=Nobody(),
            namespace="default", region="", process=self.env.new_id(), name="host",
            lasting=wanted.lease, beat=wanted.beat, slots=wanted.slots,
        )  # fmt: skip
        self.store.listen(Hint.AGENT, agent.hint)
        teacher = Teacher(self.env, Events(), store=self.store.agent, namespace="default", lessons=agent.lessons)
        await self.opens([agent, teacher])

    def asked(self) -> Counter[str]:
        """Give what it had the server run since this was asked before."""
        before, self._before = self._before, self._wire.statements()
        return self._before - before


def a_shop() -> App:
    """A program with a queue behind gates, and one without."""
    app = App("sqlite:///:memory:")

    @app.step(limit=Limit("10/s"))
    async def charge(n: int) -> int:
        return n

    @app.step
    async def ship(n: int) -> int:
        return n

    @app.workflow
    async def order(n: int) -> int:
        return await ship(await charge(n))

    return app


async def a_process(stage: Stage) -> Process:
    wire = await stage.wire()
    return Process(stage, wire, await stage.store(wire.url()))


async def asked_in_a_minute(*processes: Process) -> list[Counter[str]]:
    """Let them stand side by side for a minute, after one in which they do what is done once."""
    for _ in range(2):
        for process in processes:
            process.asked()
        for _ in range(MINUTE // A_MOMENT):
            for process in processes:
                await process.turns.passes(0)
            processes[0].turns.clock.pass_by(A_MOMENT)
    asked = [process.asked() for process in processes]
    for process in processes:
        await process.turns.close()
    return asked
