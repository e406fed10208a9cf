"""House: the rooms of one process around one store."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from watchbill.agent.agent import Agent
from watchbill.agent.inline import InlineCrew
from watchbill.agent.teacher import Teacher
from watchbill.app.gauge import Gauge
from watchbill.clock import Micros
from watchbill.env import Env
from watchbill.errors import StoreError
from watchbill.events import Events
from watchbill.flow.copies import successor
from watchbill.flow.execute import DEFAULT_SLOTS, DEFAULT_THREADS, Executor
from watchbill.flow.registry import Registry
from watchbill.loop import Loop
from watchbill.model.agent import EMBEDDED
from watchbill.model.alert import Route
from watchbill.model.needs import written
from watchbill.model.profile import PROFILES, Profile, lease_of
from watchbill.model.watcher import Supervision
from watchbill.scheduler.experience import Experience
from watchbill.scheduler.pruner import Pruner
from watchbill.scheduler.recoveries import Recoveries
from watchbill.scheduler.scheduler import LOAD_LIMIT, LOOK_LIMIT, Scheduler
from watchbill.store.protocol import Hint, Store
from watchbill.supervisor.audit import Audit
from watchbill.supervisor.herald import Herald
from watchbill.supervisor.lookout import Lookout
from watchbill.supervisor.ping import PING_EVERY, Ping
from watchbill.supervisor.pulse import Pulse
from watchbill.supervisor.roster import Roster
from watchbill.supervisor.supervisor import Supervisor
from watchbill.supervisor.wardroom import Wardroom


class House:
    """Starts the rooms in order and stops them in reverse. No room knows another; each gets its own doors."""

    def __init__(
        self,
        env: Env,
        store: Store,
        registry: Registry,
        events: Events,
        *,
        namespace: str,
        region: str = "",
        scheduler: bool = True,
        agent: bool = True,
        supervisor: bool = True,
        slots: int = DEFAULT_SLOTS,
        threads: int = DEFAULT_THREADS,
        have: Mapping[str, int] | None = None,
        profile: Profile = PROFILES["critical"],
        look_limit: int = LOOK_LIMIT,
        load_limit: int = LOAD_LIMIT,
        lease: Micros | None = None,
        retention: Micros | None = None,
        routes: Sequence[Route] = (),
        supervision: Supervision = Supervision.EMBEDDED,
        ping: str | None = None,
        audits: bool = True,
        on_failure: Callable[[StoreError], None] | None = None,
    ) -> None:
        self._store = store
        self._on_failure = on_failure
        self.failed = asyncio.Event()  # a room has ended by itself
        certain = store.lasting_leases
        self._executor = Executor(env, slots=slots, threads=threads, certain=certain) if agent else None
        own = lease_of(profile, inline=agent) if lease is None else lease
        lasting = None if store.lasting_leases else own
        process = env.new_id()
        self.rooms: list[Loop] = []
        self._deaf: list[Callable[[], None]] = []
        if self._executor is not None:
            room = Agent(
                env,
                events,
                store=store.agent,
                transactions=store.transactions,
                crew=InlineCrew(registry, self._executor),
                namespace=namespace,
                region=region,
                process=process,
                name=f"{EMBEDDED}{process}",
                lasting=lasting,
                needs=written(have or {}),
                slots=slots,
            )
            self.rooms.append(Teacher(env, events, store=store.agent, namespace=namespace, lessons=room.lessons))
            self._add(Hint.AGENT, room)
        if supervisor:
            shared = lasting is not None
            roster = Roster(env, store.supervisor, process=process, way=supervision, region=region, shared=shared)
            self._supervise(env, events, lasting, roster, routes=routes, ping=ping, audits=audits)
            self.rooms.append(Gauge(env, events, store=store.client, namespace=namespace, roster=roster))
        if scheduler:
            experience = Experience(env, events, store=store.scheduler, namespace=namespace)
            recoveries = Recoveries(env, events, store=store.scheduler)
            self.rooms[:0] = experience, recoveries  # stopped last: nobody who has work to hand over waits for them
            self._add(
                Hint.SCHEDULER,
                Scheduler(
                    env,
                    events,
                    store=store.scheduler,
                    transactions=store.transactions,
                    registry=registry,
                    executor=self._executor,
                    namespace=namespace,
                    region=region,
                    process=process,
                    lasting=lasting,
                    have=have if agent else None,
                    look_limit=look_limit,
                    load_limit=load_limit,
                    experience=experience,
                    recoveries=recoveries,
                    bound=store.region,
                    heartbeats=store.health.heartbeats,
                ),
            )

            pruner = Pruner(
                env, events, store=store.scheduler, registry=registry, namespace=namespace, retention=retention
            )
            self.rooms.append(pruner)

    def _supervise(
        self,
        env: Env,
        events: Events,
        lasting: Micros | None,
        roster: Roster,
        *,
        routes: Sequence[Route],
        ping: str | None,
        audits: bool,
    ) -> None:
        """Make the supervisor, and its parts beside it."""
        store, polls, pulse = self._store.supervisor, lasting is not None, Pulse()
        every = None if ping is None else PING_EVERY
        supervisor = Supervisor(
            env,
            events,
            store=store,
            lasting=lasting,
            roster=roster,
            pulse=pulse,
            at_least_every=every,
            routes=routes,
            heartbeats=self._store.health.heartbeats,
        )
        self._add(Hint.SUPERVISOR, supervisor)
        lookout = Lookout(env, events, store=store, polls=polls, routes=routes, roster=roster)
        self._add(Hint.AGENT, lookout)  # something is ready
        self._deaf.append(self._store.listen(Hint.SCHEDULER, lookout.hint))  # or was submitted
        wardroom = Wardroom(env, events, store=store, polls=polls, routes=routes, roster=roster, successors=successor)
        self._add(Hint.SUPERVISOR, wardroom)
        if routes:
            self._add(Hint.SUPERVISOR, Herald(env, events, store=store, routes=routes, polls=polls, roster=roster))
        if audits:
            self._add(Hint.SUPERVISOR, Audit(env, events, store=store, polls=polls, roster=roster))
        if ping is not None:
            self.rooms.append(Ping(env, events, url=ping, pulse=pulse, roster=roster))

    def _add(self, whom: Hint, room: Scheduler | Agent | Supervisor | Lookout | Wardroom | Herald | Audit) -> None:
        self.rooms.append(room)
        self._deaf.append(self._store.listen(whom, room.hint))

    async def start(self) -> None:
        """Start every room."""
        for room in self.rooms:
            room.start().add_done_callback(self._room_ended)

    async def stop(self) -> None:
        """Stop in reverse: first who starts work, last who does it and reports it."""
        failure: BaseException | None = None
        for room in reversed(self.rooms):
            try:
                await room.stop()
            except StoreError as error:
                failure = failure or error
        for deaf in self._deaf:
            deaf()
        if self._executor is not None:
            await self._executor.close()
        if failure is not None:
            raise failure

    def _room_ended(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if not isinstance(error, StoreError):
            return
        self.failed.set()
        if self._on_failure is not None:
            self._on_failure(error)
