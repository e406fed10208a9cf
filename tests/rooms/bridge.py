"""Bridge: several supervisors on one store, on a clock that is moved by hand, and all that can go wrong below them."""

import asyncio
from collections import Counter
from typing import Any, cast

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.model.agent import Act, Report
from watchbill.model.alert import read_routes
from watchbill.model.attempt import AttemptRow
from watchbill.model.decision import Decision
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.model.watcher import Supervision
from watchbill.store.protocol import Store, SupervisorStore
from watchbill.supervisor.roster import Roster
from watchbill.supervisor.supervisor import Supervisor
from watchbill.testing.conformance.scene import AGENT, HandClock, Scene, a_change, a_run

HOST_LEASE = 8 * SECOND
MOMENT = SECOND // 5  # between two turns of everybody
ROUTES = read_routes("https://x.y")
FAILURE = b'{"type":"ConnectionError","message":"no"}'


class Machine(SystemEnv):
    """The machine on which processes of a test run: it knows by name which of them are dead."""

    def __init__(self, name: str, clock: HandClock, dead: set[bytes]) -> None:
        super().__init__()
        self.clock = clock
        self._name = name.encode()
        self._dead = dead

    def process_identity(self) -> bytes:
        return self._name

    def is_dead(self, identity: bytes) -> bool:
        return identity in self._dead


class Slow:
    """The doors of supervisors as one has them who freezes between its look and its verdict."""

    def __init__(self, doors: SupervisorStore) -> None:
        self._doors = doors
        self.frozen = asyncio.Event()
        self.thawed = asyncio.Event()
        self.applied: list[bool] | None = None

    def __getattr__(self, door: str) -> Any:
        return getattr(self._doors, door)

    async def judge(self, judgements: Any) -> list[bool]:
        self.frozen.set()
        await self.thawed.wait()
        self.applied = await self._doors.judge(judgements)
        return self.applied


class Watchman:
    """One process with a supervisor."""

    def __init__(self, bridge: "Bridge", number: int, *, slow: bool = False) -> None:
        env = Machine(f"p{number}", bridge.clock, bridge.dead)
        self.doors: Any = Slow(bridge.store.supervisor) if slow else bridge.store.supervisor
        doors, events = cast(SupervisorStore, self.doors), Events()
        self.told: list[Event] = []
        events.subscribe(self.told.extend)
        self.identity = env.process_identity()
        self.roster = Roster(env, doors, process=number, way=bridge.way)
        self.room = Supervisor(env, events, store=doors, lasting=HOST_LEASE, roster=self.roster, routes=ROUTES)

    @property
    def watched(self) -> tuple[int, ...] | None:
        return self.roster.shards

    def heard(self, kind: str) -> list[Event]:
        return [event for event in self.told if event.kind == kind]


class Bridge:
    """Supervisors that divide the work in one way, and the store below them."""

    def __init__(self, store: Store, clock: HandClock, way: Supervision) -> None:
        self.store = store
        self.clock = clock
        self.way = way
        self.dead: set[bytes] = set()
        self.scene = Scene(store, clock)
        self.watchmen: list[Watchman] = []
        self._numbers = iter(range(501, 600))
        self._runs = iter(range(1, 10_000))

    def joins(self, *, slow: bool = False) -> Watchman:
        watchman = Watchman(self, next(self._numbers), slow=slow)
        self.watchmen.append(watchman)
        return watchman

    async def leaves(self, watchman: Watchman) -> None:
        self.watchmen.remove(watchman)
        await watchman.room.close()

    def dies(self, watchman: Watchman, *, provably: bool = False) -> None:
        self.watchmen.remove(watchman)
        if provably:
            self.dead.add(watchman.identity)

    async def passes(self, span: Micros) -> None:
        """Let time pass; all take their turns, and at the same time."""
        until = self.clock.boot() + span
        while True:
            await asyncio.gather(*(self._turn(watchman) for watchman in self.watchmen))
            if (left := until - self.clock.boot()) <= 0:
                return
            self.clock.pass_by(min(left, MOMENT))

    @staticmethod
    async def _turn(watchman: Watchman) -> None:
        """Take a turn, and once more if the store does not answer, as a room does: on a busy machine it may not."""
        try:
            await watchman.room.turn()
        except StoreUnreachableError:
            await watchman.room.turn()

    # --- what can go wrong

    async def a_run(self) -> RunRow:
        [run] = await self.scene.submit(a_run(next(self._runs)))
        await self.scene.turn(runs=[a_change(run, RunState.RUNNING)])
        return run

    async def a_call(self, policy: Policy, agent: int = AGENT) -> AttemptRow:
        """Let an agent have a call."""
        run = await self.a_run()
        span = -(-policy.first_look // 1_000)
        await self.scene.turn(attempts=[self.scene.a_row(run, policy=msgspec.json.encode(policy), span=span)])
        [row] = await self.scene.lease(agent)
        return row

    async def late(self) -> AttemptRow:
        return await self.a_call(Policy(timeout=SECOND, backoff=3_600 * SECOND))

    async def stalled(self) -> AttemptRow:
        return await self.a_call(Policy(stall=SECOND, backoff=3_600 * SECOND))

    async def failed(self, policy: Policy = Policy(backoff=3_600 * SECOND)) -> AttemptRow:  # noqa: B008 - frozen
        row = await self.a_call(policy)
        await self.store.agent.report(AGENT, [Report(row.id, row.fence, Act.FAILED, FAILURE)])
        return row

    async def escalated(self) -> AttemptRow:
        return await self.failed(Policy(retries=0, cures=Cures(ladder=(Rung(to="team"),))))

    async def abandoned(self, agent: int = 71) -> AttemptRow:
        """Let an agent have a call, and never say another word."""
        await self.store.agent.join(agent, "default", "", "b", b"{}", HOST_LEASE)
        return await self.a_call(Policy(), agent)

    # --- what became of it

    async def chosen(self, row: AttemptRow) -> list[str]:
        """Give what was decided about one attempt, in order."""
        found = [
            one for one in await self.scene.decisions(row.run_id) if (one.call, one.fence) == (row.call, row.fence)
        ]
        return [msgspec.json.decode(one.body, type=Decision).chosen for one in found]

    async def state(self, row: AttemptRow) -> AttemptState | None:
        record = await self.store.client.record("default", row.run_id)
        assert record is not None
        return next((one.state for one in record.attempts if one.id == row.id), None)

    async def judged_twice(self) -> list[object]:
        """Find decisions that were made twice about one attempt under one fence."""
        twice: list[object] = []
        for run in await self.store.client.runs("default", limit=10_000):
            counts: Counter[object] = Counter()
            for one in await self.scene.decisions(run.id):
                counts[one.call, one.fence, msgspec.json.decode(one.body, type=Decision).chosen] += 1
            twice += [decided for decided, times in counts.items() if times > 1]
        return twice

    def shared_out(self) -> dict[int, list[Watchman]]:
        """Say who watches each shard."""
        shards = sorted(self.scene.terms)
        return {
            shard: [one for one in self.watchmen if one.watched is None or shard in one.watched] for shard in shards
        }
