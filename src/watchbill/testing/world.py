"""World: one store, several nodes with the real rooms, clients, and a network between them, in virtual time."""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from watchbill import events as happened
from watchbill.agent.requests import needs_own_process
from watchbill.app.house import House
from watchbill.app.redrawing import submit_redrawn
from watchbill.bounds import BOUNDS
from watchbill.clock import SECOND, Micros
from watchbill.env import Threads
from watchbill.errors import IdTakenError, StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.flow.failures import KEEPS_TRACEBACKS
from watchbill.flow.values import encode
from watchbill.model.attempt import AttemptRow
from watchbill.model.lease import Member
from watchbill.model.needs import parse_needs
from watchbill.model.profile import INLINE_LEASE, PROFILES
from watchbill.model.run import SHARDS_PER_REGION as SHARDS
from watchbill.model.run import NewRun
from watchbill.model.watcher import Supervision
from watchbill.scheduler.scheduler import LOAD_LIMIT, LOOK_LIMIT, Scheduler
from watchbill.scheduler.share import shares
from watchbill.store.protocol import EVERY, NewFact, Store, Submitted, Told
from watchbill.store.sqlite.database import json_text
from watchbill.testing.chance import Chance
from watchbill.testing.changes import Change, Changes, RunSeen
from watchbill.testing.envs import DAWN, Ids, Machine, SimClock, SimEnv, StoreThreads
from watchbill.testing.invariants import Checker, Violation
from watchbill.testing.ledger import LEDGER, Ledger
from watchbill.testing.network import FarStore, Network, WriteRefused
from watchbill.testing.programs import registry_of
from watchbill.testing.troubles import draft
from watchbill.testing.virtual import Life, VirtualLoop, Vital, rest
from watchbill.testing.workload import RELEASES, SCHEDULES, SPECS, Wish, Word, book, deadly, hasty, poison

NAMESPACE: Final = "simulated"
ENDS: Final = frozenset(
    {
        happened.RUN_COMPLETED,
        happened.RUN_FAILED,
        happened.RUN_CANCELLED,
        happened.RUN_UNDONE,
        happened.RUN_UNDO_FAILED,
    }
)
_LEFT_BEHIND: Final = """
    SELECT run.id, 'fact ' || fact.kind
    FROM main.fact AS fact
    INNER JOIN main.run AS run ON run.num = fact.run
    WHERE run.held IS NULL
    UNION ALL
    SELECT id, 'timer'
    FROM main.run
    WHERE status = 2 AND wake_at < ?
"""
_LEFTOVERS: Final = """
    SELECT run.id, attempt.call
    FROM main.attempt AS attempt
    INNER JOIN main.run AS run ON run.num = attempt.run
    WHERE run.status >= 10
"""
# Of these, what may still act, for all anybody knows: it is given up when it cannot.
_SETTLING: Final = f"{_LEFTOVERS} AND attempt.why = 'settle' AND attempt.watch_at > ?"
PACE: Final = PROFILES["critical"]  # of agents, and of schedulers that run no steps
MOST_SKEW: Final[Micros] = 3_600 * SECOND
MISSED_FROM: Final = 0.5  # of a lease: who is heard in between, every third or fourth of it, is there
# What is ready, less urgent than nothing else of its kind that this agent could do, and yet was left behind.
_OVERTAKEN: Final = """
    SELECT id, rank
    FROM main.attempt
    WHERE state = 0 AND held = 0 AND gate IS NULL
        AND rank < :rank
        AND (alone OR losses >= 2) = :alone
        AND queue IN (SELECT value FROM json_each(:queues))
        AND step IN (SELECT value FROM json_each(:steps))
        AND (avoid IS NOT :agent OR avoid_until <= :now)
"""
# Children that are paused by their parent and should not be, or should be and are not, when they have read the last
# fact that it has sent them.
_ESCAPED: Final = """
    SELECT child.id
    FROM main.run AS child
    INNER JOIN main.run AS parent ON parent.num = child.parent
    WHERE (child.num IN (SELECT value FROM json_each(:nums)) OR parent.num IN (SELECT value FROM json_each(:nums)))
        AND child.status < 10
        AND (parent.status < 10 AND parent.paused AND parent.pauses & 6 <> 0) <> coalesce(
            (
                SELECT fact.kind = 'pause'
                FROM main.fact AS fact
                WHERE fact.run = child.num
                    AND fact.ref LIKE 'parent _%'
                ORDER BY fact.id DESC
                LIMIT 1
            ),
            child.paused AND child.pauses & 4 <> 0
        )
"""
KEPT_FOR: Final[Micros] = 10 * SECOND  # runs of schedules, after their end

_SHARD: Final = "SELECT shard FROM main.run WHERE id = ?"
_HAS: Final = "SELECT 1 FROM main.attempt WHERE id = ? UNION ALL SELECT 1 FROM main.run WHERE num = ?"

Line = tuple[object, ...]  # of the trace: when, who, what


class World:
    """Everything that is simulated; the nemesis and the clients act on it."""

    def __init__(self, loop: VirtualLoop, chance: Chance) -> None:
        self.loop = loop
        self.chance = chance
        self.trace: list[Line] = []
        self.counts: Counter[str] = Counter()
        self.violation: Violation | None = None
        self.bounds = BOUNDS  # of every process, and of the store
        self._over = False
        self.healed = False  # whoever stops from now on comes back soon
        self.checker = Checker(
            poison=poison.name,
            deadly=deadly.name,
            undoable=book.name,
            unsure=frozenset({hasty.name, draft.name}),
            schedules=SPECS,
            now=loop.time,
            tell=self.fail,
        )
        self.ledger = Ledger(self.checker)
        self.ids = Ids(loop)
        self.nodes: list[Node] = []
        self.hosts: list[Post] = []  # of agents that are processes of their own
        self.machines = (Machine("machine-1"), Machine("machine-2"), Machine("machine-3"))
        self.died_at: dict[str, float] = {}  # processes, and when they were gone
        self.fed: dict[str, float] = {}  # when an agent got something to do for the last time
        self.network: Network
        self.store_clock: SimClock
        self.opening: Callable[[], Awaitable[None]] | None = None  # called before a process opens the file
        self.committed: Callable[[], None] | None = None  # called after each commit that wrote something
        self.ahead_at: Callable[[float], float] = lambda _: (
            0.0
        )  # by how many seconds the clock of a server was ahead then
        self.life = Life("world", loop)
        self._lanes: Any = None
        self._connection: sqlite3.Connection | None = None
        self._changes: Changes | None = None
        loop.set_exception_handler(self._callback_failed)

    async def open(
        self,
        nodes: Sequence["Kind"],
        *,
        embedded: bool,
        network: type[Network] = Network,
        clock: type[SimClock] = SimClock,
    ) -> None:
        """Open the store, and start the nodes; `embedded`: one process owns it, and its leases never end."""
        self.store_clock = clock(self.loop, boot=self.chance.below(1 << 40))
        env = StoreEnv(self.loop, self.store_clock, self.chance.fork("store"), self.ids, self.ledger, self._transacted)
        env.bounds = self.bounds
        store = await network.opened(env, self.store_clock, embedded=embedded)
        self.adopt(store)
        env.watched = True
        self.network = network(self.loop, store, self.checker, self.chance.fork("network"), self.note)
        self.network.local = embedded
        self.checker.held_up = self.network.waits.held_up
        self.checker.is_cut_off = self._is_cut_off
        for n, kind in enumerate(nodes):
            node = Node(f"node-{n + 1}", self, kind)
            self.nodes.append(node)
            if not kind.joins_at:
                node.start()
            else:
                self.loop.call_later(kind.joins_at, self.start_again, node)

    def adopt(self, store: Store) -> None:
        """Look at a store that was just opened."""
        self._lanes = vars(store)["_lanes"]  # the file itself, past all doors
        self.watch(vars(vars(self._lanes)["_writer"])["_connection"])

    def watch(self, connection: sqlite3.Connection | None) -> None:
        """Look at what is written through a connection from now on; None: there is none."""
        self._connection = connection
        self._changes = None if connection is None else Changes(connection)

    def close(self) -> None:
        """End the world, in silence: nothing more is written down, and what the processes left behind is closed."""
        self._over = True
        self.ledger.close()
        self.loop.bury_all()
        for post in self.posts:
            post.bury()
        if self._connection is not None:
            self._connection.close()
        if "network" in vars(self):
            self.network.close()

    def note(self, *line: object) -> None:
        """Add a line to the trace."""
        if folder := self.network.folder:
            line = tuple(part.replace(folder, "") if isinstance(part, str) else part for part in line)
        self.trace.append((self.loop.now, *line))

    def fail(self, violation: Violation) -> None:
        """Stop the world at its first violation."""
        if self.violation is None and not self._over:
            self.violation = violation
            self.note("VIOLATION", violation.invariant, violation.facts)
            self.loop.stop()

    def heal(self) -> None:
        """Let nothing fail from now on, and bring everybody back."""
        self.healed = True
        for post in self.posts:
            post.life.resume()
            post.life.defuse()
            post.clock.skew = 0
            self.start_again(post)

    def _is_cut_off(self, life: str) -> bool:
        """Say whether a process was held up for so much of a lease that others may take it for dead."""
        post = next((post for post in self.posts if post.name == life.rpartition(".")[0]), None)
        if post is None:
            return False
        lease = post.lease / SECOND
        # By a slow clock it beats later, and has less of its lease left then.
        excuses = lease * (1 - (1 - MISSED_FROM) / min(post.clock.rate, 1.0))
        return self.network.silences.held_up(life, self.loop.time() - lease - 1) >= excuses

    @property
    def posts(self) -> "list[Post]":
        """All places at which processes run."""
        return [*self.nodes, *self.hosts]

    def restart(self, post: "Post", after: float) -> None:
        """Start a process somewhere again, later."""
        self.loop.call_later(after, self.start_again, post)

    def start_again(self, post: "Post") -> None:
        """Start a process where none is."""
        if post.life.dead:
            post.start()

    async def own(self) -> None:
        """Do what opening a file as its owner does: whoever had it before is provably dead."""
        if self.opening is not None:
            await self.opening()
        if self.network.local:
            await self.network.own()

    def uneven(self) -> str | None:
        """Say what is wrong with how the shards are shared out among those who are up, if anything is."""
        assert self._connection is not None  # noqa: S101 - the world is open
        owners = self.checker.owners
        up = [Member(owners.get(node.life.name, 0), node.knows, b"") for node in self.nodes if node.up]
        due = shares(up, SHARDS)
        held = Counter([owner for (owner,) in self._connection.execute("SELECT owner FROM main.lease")])
        if {id: count for id, count in due.items() if count} == dict(held):
            return None
        return f"held: {dict(held)}, due: {due}, processes: {self.checker.processes}"

    @property
    def now(self) -> Micros:
        """The store's time."""
        now: Micros = vars(self._lanes)["_writer"].now()
        return now

    async def prune(self) -> None:
        """Delete the ended runs of schedules, as retention does: what was decided about their slots must stay."""
        if self.network.down:
            return
        with contextlib.suppress(WriteRefused, StoreUnreachableError):
            for one in SCHEDULES:
                code = one.name, one.version
                await self.network.store.scheduler.sweep(NAMESPACE, code, KEPT_FOR, (0, 0), EVERY)

    def has(self, id: int) -> bool:
        """Say whether a run or a row has that id."""
        assert self._connection is not None  # noqa: S101 - the world is open
        return self._connection.execute(_HAS, (id, id)).fetchone() is not None

    def orphaned(self, run: str, since: float, until: float) -> float:
        """Say for how many seconds of that time the shard of a run was that of a dead process."""
        assert self._connection is not None  # noqa: S101 - the world is open
        (shard,) = self._connection.execute(_SHARD, (run,)).fetchone()
        lost = 0.0
        for (at, owner), (next_at, _) in pairwise([*self.checker.had.get(shard, []), (until, None)]):
            died_at = until if owner is None else self.died_at.get(owner, until)
            lost += max(min(next_at, until) - max(at, died_at, since), 0.0)
        return lost

    def left_behind(self) -> list[object]:
        """Give what waits in the store for a run, or is due there, although everybody had the time to see it."""
        assert self._connection is not None  # noqa: S101 - the world is open
        return list(self._connection.execute(_LEFT_BEHIND, (DAWN + self.loop.now - 60 * SECOND,)))

    def leftovers(self, most_tasks: int) -> list[object]:
        """Give rows of runs that have ended, and processes with more tasks than they need to wait for something."""
        assert self._connection is not None  # noqa: S101 - the world is open
        tasks = [(post.life.name, post.life.tasks) for post in self.posts if post.up]
        return [*self._connection.execute(_LEFTOVERS), *[crowded for crowded in tasks if crowded[1] > most_tasks]]

    def settling(self) -> list[object]:
        """Give rows of runs that have ended which nobody gives up yet, because whoever had them may still act."""
        assert self._connection is not None  # noqa: S101 - the world is open
        return list(self._connection.execute(_SETTLING, (self.now,)))

    def check_order(self, asked: tuple[Any, ...], leased: Sequence[AttemptRow]) -> None:
        """See whether a lease that got rows has left behind what is more urgent."""
        assert self._connection is not None  # noqa: S101 - the world is open
        agent, _, queues, room = asked
        self.fed[self.checker.processes[agent]] = self.loop.time()
        steps = [] if self.checker.remedies.is_paused else room.steps
        values = {"queues": json_text(queues), "steps": json_text(steps), "agent": agent, "now": self.now}
        for alone in (False, True):
            ranks = [self.checker.rank_of(row.id) for row in leased if needs_own_process(row) == alone]
            given = {**values, "alone": alone, "rank": max(ranks, default=0)}
            if left := self._connection.execute(_OVERTAKEN, given).fetchall():
                self.checker.violated("I18", f"{agent} got rows up to rank {max(ranks)}, and not {left}")

    def _check_families(self, changes: Sequence[Change]) -> None:
        """Check that the open children of the runs that have changed are paused if their parents are."""
        assert self._connection is not None  # noqa: S101 - the world is open
        changed = [run for run in changes if isinstance(run, RunSeen)]
        nums = [run.num for run in changed if run.parent is not None or run.num in self.checker.parents]
        if nums and (escaped := self._connection.execute(_ESCAPED, {"nums": json_text(nums)}).fetchall()):
            self.checker.violated("I26", f"these are not paused as their parents are: {escaped}")

    def _transacted(self) -> None:
        changes = None if self._changes is None else self._changes.take()
        if changes:
            self.trace.append((self.loop.now, "commit", tuple(changes)))
            self.checker.committed(changes)
            self._check_families(changes)
            if self.committed is not None:
                self.committed()

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


@dataclass(frozen=True)
class Kind:
    """What a node is, for as long as its world exists."""

    release: int = 0  # of its code: 0 is the newest, which knows everything
    joins_at: float = 0.0  # seconds
    look_limit: int = LOOK_LIMIT
    load_limit: int = LOAD_LIMIT
    schedules: bool = False
    leads: bool = False  # it runs no steps: agents of their own do
    rate: float = 1.0  # of its clocks
    troubled: bool = False  # its code has what needs cures
    sized: bool = False  # its code has values of many sizes
    beside: bool = False  # on one machine with all others that are
    needs: tuple[str, ...] = ()  # what it has, if it runs steps
    supervision: Supervision = Supervision.EMBEDDED


class Post:
    """A place on a machine at which one process after the other runs."""

    def __init__(self, name: str, world: World, machines: Sequence[int]) -> None:
        self.name = name
        self.world = world
        self.chance = world.chance.fork(name)
        self.machine = world.machines[self.chance.choose(machines)]
        skew = round(self.chance.within(-MOST_SKEW, MOST_SKEW))
        self.clock = SimClock(world.loop, boot=self.chance.below(1 << 40), skew=skew)
        self.life = Life(f"{name}.0", world.loop)  # it was never there
        self.life.die()
        self.since = 0.0  # when nothing had been done to it for the last time
        self._lives = 0

    @property
    def lease(self) -> Micros:
        """How long somebody who says nothing is believed to be there."""
        raise NotImplementedError

    @property
    def up(self) -> bool:
        """True while its process runs and nobody has asked it to stop."""
        return self.life.vital is Vital.RUNNING and self.life.name not in self.world.checker.stopping

    def start(self) -> None:
        """Start a new process."""
        world = self.world
        self._lives += 1
        self.since = world.loop.time()
        self.life = life = Life(f"{self.name}.{self._lives}", world.loop)
        life.context.run(LEDGER.set, world.ledger)
        life.context.run(KEEPS_TRACEBACKS.set, world.bounds is BOUNDS)
        life.on_death(lambda: self._died(life))
        life.on_pause(lambda: world.checker.frozen.add(life.name))
        env = SimEnv(world.loop, self.clock, self.chance, world.ids, world.ledger, self.machine.place(life))
        env.bounds = world.bounds
        env.spawning = lambda parent: world.network.strike(parent, "spawn", None)
        life.start(self._run(env, life))
        world.checker.alive.add(life.name)
        world.note(life.name, "starts")

    async def live(self, env: SimEnv, life: Life) -> None:
        """Be the process's main program."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the process as an operator would."""
        self.world.checker.stopping.add(self.life.name)

    def bury(self) -> None:
        """Close what its processes had in memory."""

    def leave(self, life: Life) -> None:
        """Note that a process has stopped as it was asked to."""
        self.world.note(life.name, "has stopped")
        self.world.network.has_stopped(life)
        self.world.counts["graceful stops"] += 1
        life.die()

    async def _run(self, env: SimEnv, life: Life) -> None:
        try:
            await self.live(env, life)
        except Exception as error:
            self.world.fail(Violation("I0", f"the program of {life.name} raised {error!r}"))

    def _died(self, life: Life) -> None:
        world = self.world
        world.note(life.name, "is gone")
        world.died_at[life.name] = world.loop.time()
        world.checker.alive.discard(life.name)
        stopping = life.name in world.checker.stopping
        if not stopping:
            world.counts["deaths"] += 1
            world.checker.hurt.add(life.name)
        if life is self.life:
            away = stopping and not world.network.local and self.chance.happens(0.3) and not world.healed
            world.restart(self, self.chance.within(20, 60) if away else self.chance.within(0.5, 15))


class Node(Post):
    """A place for the rooms."""

    def __init__(self, name: str, world: World, kind: "Kind") -> None:
        # Two of three share a machine: whoever is alone on his can be missed, but not proved dead.
        super().__init__(name, world, (0, 0, 1))
        self._kind = kind
        self._slots = self.chance.choose((4, 1_000, 1_000))
        self._threads = self.chance.choose((1, 2, 32))
        if kind.beside:
            self.machine = world.machines[0]
        self.clock.rate = kind.rate
        self._houses: list[House] = []
        self.schedules = kind.schedules
        self._registry = registry_of(
            RELEASES[kind.release], troubled=kind.troubled, sized=kind.sized, schedules=kind.schedules
        )

    @property
    def lease(self) -> Micros:
        """How long somebody who says nothing is believed to be there."""
        return PACE.lease if self._kind.leads else INLINE_LEASE

    @property
    def knows(self) -> tuple[str, ...]:
        """The workflows that its code has."""
        return self._registry.names()

    def stop(self) -> None:
        """Stop the process as an operator would."""
        super().stop()
        self.life.start(self._close(self.life))

    def bury(self) -> None:
        """Close the runs that its processes had in memory."""
        for house in self._houses:
            for room in house.rooms:
                if isinstance(room, Scheduler):
                    room._residence.clear()  # noqa: SLF001 - nobody else knows them

    async def live(self, env: SimEnv, life: Life) -> None:
        """Run the rooms."""
        try:
            await self.world.own()
        except StoreUnreachableError:
            life.die()  # it cannot open the file: whoever started it sees why, and starts it again
            return
        store = FarStore(self.world.network, life, self.clock)
        house = House(
            env,
            store,
            self._registry,
            Ears(self.world, life),
            namespace=NAMESPACE,
            agent=not self._kind.leads,
            slots=self._slots,
            threads=self._threads,
            have=parse_needs(self._kind.needs),
            look_limit=self._kind.look_limit,
            load_limit=self._kind.load_limit,
            lease=PACE.lease if self._kind.leads else None,
            supervision=self._kind.supervision,
            audits=False,  # at the end, past the network: it must find nothing that it could repair
        )
        self._houses.append(house)
        await house.start()

    async def _close(self, life: Life) -> None:
        self.world.note(life.name, "stops")
        await self._houses[-1].stop()
        self.leave(life)


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
            if event.kind in ENDS:
                self._world.checker.told(event.run)
            if event.kind == happened.SHARDS_LOST and event.cause == "failed":
                self._world.fail(Violation("I24", f"{self._life.name} has dropped all that it had: {event.note}"))
            away = event.cause == StoreUnreachableError.__name__ or self._world.network.excuses(event.note)
            if event.kind == happened.TURN_FAILED and not away:
                self._world.fail(Violation("I0", f"a turn of {self._life.name} {event.actor} raised {event.note}"))


class Clients:
    """Those who start runs, cancel some, and ask again when they get no answer."""

    def __init__(self, world: World, wishes: Sequence[Wish]) -> None:
        self.waiting = 0  # for what they asked to be acknowledged
        self._started: list[tuple[float, Wish]] = []  # when it was acknowledged
        self._told: list[tuple[float, NewFact]] = []  # likewise
        self._lost_since: list[float] = []  # losses of the store after which not all was told again yet
        self._world = world
        self._life = Life("clients", world.loop)
        clock = SimClock(world.loop)
        self._env = SimEnv(world.loop, clock, world.chance.fork("clients"), world.ids)
        self._store = FarStore(world.network, self._life).client
        self.ask(wishes)

    def ask(self, wishes: Sequence[Wish]) -> None:
        """Ask for runs, each at its time from now on; those of one time together."""
        self.waiting += len(wishes)
        moments: dict[float, list[Wish]] = {}
        for wish in wishes:
            moments.setdefault(wish.at, []).append(wish)
        for at, together in moments.items():
            self._life.start(self._ask(at, together))

    async def _ask(self, at: float, wishes: list[Wish]) -> None:
        await rest(at)
        await self._submit(wishes)
        self.waiting -= len(wishes)
        for wish in wishes:
            for word in wish.words:
                self._life.start(self._tell(wish, word))
        again = [wish for wish in wishes if wish.twice]
        if again:
            await self._submit(again)

    async def _submit(self, wishes: list[Wish]) -> None:
        """Ask for all of them at once."""
        runs = [
            NewRun(
                self._env.new_id(),
                NAMESPACE,
                wish.id,
                wish.workflow.name,
                wish.workflow.version,
                wish.workflow.signature.encode_args(wish.args, {}),
                priority=wish.priority,
                deadline=wish.workflow.deadline[0],
                deadline_in=wish.workflow.deadline[1],
                delay=round(wish.delay * SECOND),
            )
            for wish in wishes
        ]
        while True:
            try:
                answers = await self._submitted(runs)
            except StoreUnreachableError as error:
                await self._world.network.wait_after(error)
                continue
            break
        for wish, submitted in zip(wishes, answers, strict=True):
            if submitted.run.id != wish.id:
                self._world.checker.violated("I1", f"asked for {wish.id}, got {submitted}")
            self._world.ledger.acknowledge(wish.id)
            self._started.append((self._world.loop.time(), wish))

    async def _submitted(self, runs: list[NewRun]) -> list[Submitted]:
        try:
            return await self._store.submit(runs)
        except IdTakenError:
            return await submit_redrawn(self._env, runs, lambda ask: ask(self._store))

    async def _tell(self, wish: Wish, word: Word) -> None:
        """Tell a run something, until there is an answer; some say it twice all the same."""
        self.waiting += 1
        await rest(word.after)
        body = encode(word.body, what="what is told")
        ref = word.ref or str(self._world.ids.new())
        fact = NewFact(NAMESPACE, wish.id, word.kind, ref, "client", body)
        for _ in range(2 if word.twice else 1):
            await self._insist(fact)
            self._told.append((self._world.loop.time(), fact))
            await rest(0.5)
        self._world.counts[f"told {word.kind.value}"] += 1
        if word.then is not None:
            await self._tell(wish, word.then)
        self.waiting -= 1

    async def _insist(self, fact: NewFact, *, repeated: bool = False) -> None:
        """Tell a run something until there is an answer; what the store has forgotten is told again first."""
        while True:
            while self._lost_since and not repeated:
                await rest(0.1)
            try:
                [told] = await self._store.tell([fact])
            except StoreUnreachableError as error:
                await self._world.network.wait_after(error)
                continue
            if told is not Told.UNKNOWN:
                return
            await rest(1)

    def repeat(self, since: float) -> None:
        """Ask again for what was acknowledged since then: the store has forgotten it."""
        self._lost_since.append(since)
        if len(self._lost_since) == 1:
            self._life.start(self._repeat())

    async def _repeat(self) -> None:
        """Ask again, in the same order, after one loss at a time: what is asked for again may be lost again."""
        self.waiting += 1
        while self._lost_since:
            since = self._lost_since[0]
            there = self._world.checker.nums
            lost = {wish.id: wish for at, wish in self._started if at >= since and wish.id not in there}
            self._world.counts["starts forgotten"] += len(lost)
            if lost:
                await self._submit([*lost.values()])
            for place, (at, fact) in enumerate(self._told):
                if at >= since:
                    self._world.counts["messages forgotten"] += 1
                    await self._insist(fact, repeated=True)
                    self._told[place] = self._world.loop.time(), fact
            del self._lost_since[0]
        self.waiting -= 1
