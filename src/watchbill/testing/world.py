"""World: one store, several nodes with the real rooms, clients, and a network between them, in virtual time."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from watchbill import events as happened
from watchbill.app.house import House
from watchbill.clock import SECOND, Micros
from watchbill.env import Threads
from watchbill.errors import StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.flow.registry import Registry
from watchbill.flow.values import encode
from watchbill.model.run import NewRun
from watchbill.scheduler.scheduler import Scheduler
from watchbill.store.open import open_store
from watchbill.store.protocol import FactKind, NewFact
from watchbill.testing.chance import Chance
from watchbill.testing.changes import Changes
from watchbill.testing.envs import Ids, Machine, SimClock, SimEnv, StoreThreads
from watchbill.testing.invariants import Checker, Violation
from watchbill.testing.ledger import LEDGER, Ledger
from watchbill.testing.network import FarStore, Network
from watchbill.testing.virtual import Life, VirtualLoop, Vital, rest
from watchbill.testing.workload import Wish, deadly, poison

NAMESPACE: Final = "simulated"
MOST_SKEW: Final[Micros] = 3_600 * SECOND

Line = tuple[object, ...]  # of the trace: when, who, what


class World:
    """Everything that is simulated; the nemesis and the clients act on it."""

    def __init__(self, loop: VirtualLoop, chance: Chance, registry: Registry) -> None:
        self.loop = loop
        self.chance = chance
        self.registry = registry
        self.trace: list[Line] = []
        self.counts: Counter[str] = Counter()
        self.violation: Violation | None = None
        self.checker = Checker(poison=poison.name, deadly=deadly.name, tell=self.fail)
        self.ledger = Ledger(self.checker)
        self.ids = Ids(loop)
        self.nodes: list[Node] = []
        self.machines = (Machine("machine-1"), Machine("machine-2"))
        self.network: Network
        self.life = Life("world", loop)
        self._connection: sqlite3.Connection | None = None
        self._changes: Changes
        loop.set_exception_handler(self._callback_failed)

    async def open(self, nodes: int) -> None:
        """Open the store, and start the nodes."""
        clock = SimClock(self.loop, boot=self.chance.below(1 << 40))
        env = StoreEnv(self.loop, clock, self.chance.fork("store"), self.ids, self.ledger, self._transacted)
        store = await open_store("sqlite:///:memory:", env, clock=clock, lasting_leases=False)
        lanes: Any = vars(store)["_lanes"]  # the file itself, past all doors
        self._connection = vars(vars(lanes)["_writer"])["_connection"]
        self._changes = Changes(self._connection)
        env.watched = True
        self.network = Network(self.loop, store, self.checker, self.chance.fork("network"), self.note)
        for n in range(nodes):
            node = Node(f"node-{n + 1}", self)
            self.nodes.append(node)
            node.start()

    def close(self) -> None:
        """End the world, in silence: nothing more is written down, and what the processes left behind is closed."""
        self.ledger.close()
        self.loop.bury_all()
        for node in self.nodes:
            node.bury()
        if self._connection is not None:
            self._connection.close()

    def note(self, *line: object) -> None:
        """Add a line to the trace."""
        self.trace.append((self.loop.now, *line))

    def fail(self, violation: Violation) -> None:
        """Stop the world at its first violation."""
        if self.violation is None:
            self.violation = violation
            self.note("VIOLATION", violation.invariant, violation.facts)
            self.loop.stop()

    def heal(self) -> None:
        """Let nothing fail from now on, and bring everybody back."""
        for node in self.nodes:
            node.life.resume()
            node.life.defuse()
            node.clock.skew = 0
            if node.life.dead:
                node.start()

    def restart(self, node: "Node", after: float) -> None:
        """Start a node again, later."""
        self.loop.call_later(after, self._start_again, node)

    def _start_again(self, node: "Node") -> None:
        if node.life.dead:
            node.start()

    def _transacted(self) -> None:
        changes = self._changes.take()
        if changes:
            self.trace.append((self.loop.now, "commit", tuple(changes)))
            self.checker.committed(changes)

    def _callback_failed(self, _: object, context: dict[str, Any]) -> None:
        # Only what a callback raised: what the collector finds, it finds when it likes.
        if "handle" in context:
            self.fail(Violation("I0", f"a callback raised {context.get('exception')!r}: {context['handle']!r}"))


class StoreEnv(SimEnv):
    """The store's world: its transactions take no time, and each is looked at as soon as it is over."""

    def __init__(  # noqa: PLR0913 - one more than every process's
        self,
        loop: VirtualLoop,
        clock: SimClock,
        chance: Chance,
        ids: Ids,
        ledger: Ledger,
        transacted: Callable[[], None],
    ) -> None:
        super().__init__(loop, clock, chance, ids, ledger)
        self.watched = False
        self._transacted = transacted

    def threads(self, name: str, count: int) -> Threads:
        """Make the threads of the store's file."""
        return StoreThreads(self.loop, lambda: self._transacted() if self.watched else None)


class Node:
    """A host on which one process after the other runs the rooms."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self._world = world
        self._chance = world.chance.fork(name)
        # Two of three share a machine: whoever is alone on his can be missed, but not proved dead.
        self._machine = world.machines[self._chance.below(3) // 2]
        skew = round(self._chance.within(-MOST_SKEW, MOST_SKEW))
        self.clock = SimClock(world.loop, boot=self._chance.below(1 << 40), skew=skew)
        self._slots = self._chance.choose((4, 1_000, 1_000))
        self._threads = self._chance.choose((1, 2, 32))
        self._lives = 0
        self._houses: list[House] = []
        self._stopping = False
        self.life: Life

    @property
    def up(self) -> bool:
        """True while its process runs and nobody has asked it to stop."""
        return self.life.vital is Vital.RUNNING and not self._stopping

    def start(self) -> None:
        """Start a new process."""
        world = self._world
        self._stopping = False
        self._lives += 1
        self.life = life = Life(f"{self.name}.{self._lives}", world.loop)
        life.context.run(LEDGER.set, world.ledger)
        life.on_death(lambda: self._died(life))
        env = SimEnv(world.loop, self.clock, self._chance, world.ids, world.ledger, self._machine.place(life))
        env.spawning = lambda parent: world.network.strike(parent, "spawn", None)
        life.start(self._open(env, life))
        world.note(life.name, "starts")

    def stop(self) -> None:
        """Stop the process as an operator would."""
        self._stopping = True
        self.life.start(self._close(self.life))

    def bury(self) -> None:
        """Close the runs that its processes had in memory."""
        for house in self._houses:
            for room in house.rooms:
                if isinstance(room, Scheduler):
                    room._residence.clear()  # noqa: SLF001 - nobody else knows them

    async def _open(self, env: SimEnv, life: Life) -> None:
        store = FarStore(self._world.network, life)
        house = House(
            env,
            store,
            self._world.registry,
            Ears(self._world, life),
            namespace=NAMESPACE,
            slots=self._slots,
            threads=self._threads,
        )
        self._houses.append(house)
        await house.start()

    async def _close(self, life: Life) -> None:
        self._world.note(life.name, "stops")
        await self._houses[-1].stop()
        self._world.note(life.name, "has stopped")
        self._world.counts["graceful stops"] += 1
        life.die()

    def _died(self, life: Life) -> None:
        self._world.note(life.name, "is gone")
        if not self._stopping:
            self._world.counts["deaths"] += 1
            self._world.checker.hurt.add(life.name)
        self._world.restart(self, self._chance.within(0.5, 15))


class Ears(Events):
    """Hears what the rooms of one process tell: a turn that raised is a fault of ours, unless the store was away."""

    def __init__(self, world: World, life: Life) -> None:
        super().__init__()
        self._world = world
        self._life = life

    def tell(self, events: Sequence[Event]) -> None:
        """Take note."""
        for event in events:
            self._world.note(self._life.name, event.kind, event.run, event.call, event.cause, event.note)
            self._world.counts[event.kind] += 1
            if event.kind == happened.TURN_FAILED and event.cause != StoreUnreachableError.__name__:
                self._world.fail(Violation("I0", f"a turn of {self._life.name} {event.actor} raised {event.note}"))


class Clients:
    """Those who start runs, cancel some, and ask again when they get no answer."""

    def __init__(self, world: World, wishes: Sequence[Wish]) -> None:
        self.waiting = len(wishes)  # for what they asked to be acknowledged
        self._world = world
        self._life = Life("clients", world.loop)
        self._store = FarStore(world.network, self._life).client
        for wish in wishes:
            self._life.start(self._ask(wish))

    async def _ask(self, wish: Wish) -> None:
        await rest(wish.at)
        await self._submit(wish)
        self.waiting -= 1
        if wish.twice:
            await self._submit(wish)
        if wish.cancel_after is not None:
            await rest(wish.cancel_after)
            await self._cancel(wish)

    async def _submit(self, wish: Wish) -> None:
        body = wish.workflow.signature.encode_args(wish.args, {})
        num = self._world.ids.new()
        run = NewRun(num, NAMESPACE, wish.id, wish.workflow.name, wish.workflow.version, body)
        while True:
            try:
                (submitted,) = await self._store.submit([run])
            except StoreUnreachableError:
                continue
            break
        if submitted.run.id != wish.id:
            self._world.checker.violated("I1", f"asked for {wish.id}, got {submitted}")
        self._world.ledger.acknowledge(wish.id)

    async def _cancel(self, wish: Wish) -> None:
        reason = encode("not wanted any more", what="the reason")
        fact = NewFact(NAMESPACE, wish.id, FactKind.CANCEL, str(self._world.ids.new()), "client", reason)
        while True:
            try:
                await self._store.tell([fact])
            except StoreUnreachableError:
                continue
            return
