"""The supervisor's rooms on a real store: time passes when a test says so, and agents are played by their doors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.events import Event, Events
from watchbill.flow.copies import successor
from watchbill.model.agent import Act, Answer, ProgressMark, Report
from watchbill.model.alert import AlertKind, AlertState, SettledAlert, read_routes
from watchbill.model.attempt import AttemptRow
from watchbill.model.lease import HOST_LEASE
from watchbill.model.run import RunRow
from watchbill.model.states import RunState
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor.lookout import Lookout
from watchbill.supervisor.supervisor import Supervisor
from watchbill.supervisor.wardroom import Wardroom
from watchbill.testing.conformance.scene import AGENT, KNOWN, ME, HandClock, HandEnv, Scene, a_change, a_run

OTHER = 71  # an agent that can be silent: its lease has an end
A_LEASE = HOST_LEASE // SECOND + 2  # seconds after which it is missed by a supervisor that looks every second
MANY = 20
ROUTES = read_routes("https://team.example")


class Watched:
    """A store with the supervisor's rooms; time passes when a test says so, and they look every second."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.scene = Scene(store, clock)
        self.clock = clock
        self.told: list[Event] = []
        self.sent: list[tuple[AlertKind, str]] = []
        env, events = HandEnv(clock), Events()
        events.subscribe(self.told.extend)
        doors = store.supervisor
        self.supervisor = Supervisor(env, events, store=doors, lasting=HOST_LEASE, routes=ROUTES)
        self.wardroom = Wardroom(env, events, store=doors, polls=True, routes=ROUTES, successors=successor)
        self.lookout = Lookout(env, events, store=doors, polls=True, routes=ROUTES)

    async def open(self) -> None:
        await self.scene.open()
        await self.scene.store.scheduler.attend(ME, "default", "", KNOWN, b"{}", None)
        await self.passes(A_LEASE)  # who has just come judges nobody by silence

    async def passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.pass_by(SECOND)
            await self.looks()

    async def looks(self) -> None:
        self.supervisor.hint()  # as whatever was reported does
        while await self.supervisor.turn() == 0:
            pass
        self.wardroom.hint()
        await self.wardroom.turn()
        await self.lookout.turn()
        doors = self.scene.store.supervisor
        due = (await doors.take_alerts([route.mark for route in ROUTES], MANY, SECOND)).alerts
        self.sent += [(alert.kind, alert.incident.cause) for alert in due]
        await doors.settle_alerts(
            [SettledAlert(alert.incident.id, alert.kind, alert.route, AlertState.SENT) for alert in due]
        )

    async def joins(self, agent: int, lasting: Micros = HOST_LEASE) -> None:
        await self.scene.store.agent.join(agent, "default", "", f"agent-{agent}", b"{}", lasting)

    async def beats(self, agent: int, *marks: ProgressMark) -> bool:
        lasting = None if agent == AGENT else HOST_LEASE  # that one is there for ever
        return (await self.scene.store.agent.beat(agent, lasting, marks)).alive

    async def a_run(self, num: int = 1) -> RunRow:
        [run] = await self.scene.submit(a_run(num))
        await self.scene.turn(runs=[a_change(run, RunState.RUNNING)])
        return run

    async def ready(self, *, rows: int = 1, num: int = 1, **changes: Any) -> list[int]:
        """Let one run call a step so many times; gives the rows."""
        run = await self.a_run(num)
        new = [self.scene.a_row(run, call=f"charge.{n}", **changes) for n in range(rows)]
        await self.scene.turn(attempts=new)
        return [row.id for row in new]

    async def report(self, row: AttemptRow, act: Act, body: bytes, *, agent: int = AGENT) -> Answer:
        [answer] = await self.scene.store.agent.report(agent, [Report(row.id, row.fence, act, body)])
        return answer

    def heard(self, kind: str) -> int:
        return len([event for event in self.told if event.kind == kind])


@asynccontextmanager
async def watching(url: str) -> AsyncIterator[Watched]:
    """Open the rooms for the length of a test; they have been there for a while."""
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    watched = Watched(store, clock)
    try:
        await watched.open()
        yield watched
    finally:
        await store.close()
