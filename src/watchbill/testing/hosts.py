"""Hosts: places for agents that are processes of their own; their workers run the real program of a child process."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from watchbill.agent.workers import WorkerError
from watchbill.app.host import Employment, Hosted, working
from watchbill.clock import SECOND, Micros
from watchbill.flow.execute import CHILDREN
from watchbill.flow.messages import Ready
from watchbill.model.profile import Profile
from watchbill.store.protocol import Store
from watchbill.testing.envs import READ_WITHIN, SimChild, SimEnv
from watchbill.testing.invariants import Violation
from watchbill.testing.network import FarStore
from watchbill.testing.programs import program_of
from watchbill.testing.virtual import Life
from watchbill.testing.workload import RELEASES
from watchbill.testing.world import NAMESPACE, PACE, Ears, Post, World

GRACE: Final = 10 * SECOND


@dataclass(frozen=True)
class Berth:
    """What an agent is, for as long as its world exists."""

    release: int = 0
    slots: int = 4
    workers: int = 2
    recycle_after: int | None = None
    rate: float = 1.0  # of its machine's clocks
    kills_orphans: bool = True  # as Linux does
    troubled: bool = False  # its code has what needs cures
    sized: bool = False  # its code has values of many sizes
    needs: tuple[str, ...] = ()  # what it has
    profile: Profile = PACE  # how often it beats, and for how long it leases


class Host(Post):
    """A place for an agent. While one process drains, the next may be at work already, under the same name."""

    def __init__(self, name: str, world: World, berth: Berth) -> None:
        super().__init__(name, world, (0, 0, 1, 2))
        self.berth = berth
        self.clock.rate = berth.rate
        self.hosted: Hosted | None = None  # of the newest process, when it is ready
        self.env: SimEnv
        self._children: list[Life] = []
        self._stop = asyncio.Event()
        self._roomy_since: float | None = None

    @property
    def children(self) -> list[Life]:
        """The workers of its processes that live."""
        self._children = [life for life in self._children if not life.dead]
        return self._children

    @property
    def lease(self) -> Micros:
        """How long somebody who says nothing is believed to be there."""
        return self.berth.profile.lease

    def knows(self, step: str) -> bool:
        """Say whether its code has a step."""
        return step not in RELEASES[self.berth.release]

    def start(self) -> None:
        """Start a new process."""
        self.hosted = None
        self._stop = asyncio.Event()
        super().start()

    def stop(self) -> None:
        """Drain the process as an operator would."""
        super().stop()
        self._stop.set()

    async def live(self, env: SimEnv, life: Life) -> None:
        """Host an agent until somebody wants it to stop."""
        stop, world = self._stop, self.world
        self.env, env.born, env.kills_orphans = env, self._note_child, self.berth.kills_orphans
        env.reads_within = READ_WITHIN
        berth = self.berth
        wanted = Employment(
            slots=berth.slots,
            workers=berth.workers,
            needs=berth.needs,
            name=self.name,
            beat=berth.profile.beat,
            lease=berth.profile.lease,
            grace=GRACE,
            recycle_after=berth.recycle_after,
        )

        async def open_store(_: Ready) -> Store:
            return FarStore(world.network, life)

        try:
            ears = Ears(world, life)
            program = program_of(berth.release, troubled=berth.troubled, sized=berth.sized)
            async with working(env, ears, program, NAMESPACE, wanted, open_store) as hosted:
                if life is self.life:
                    self.hosted = hosted
                await stop.wait()
                world.note(life.name, "drains")
                world.checker.draining.add(life.name)
        except WorkerError:
            life.die()  # its first worker was killed: whoever started it sees why, and starts it again
            return
        self.leave(life)

    def wrong(self) -> str | None:
        """Say what is wrong with an agent that has nothing to do, if anything is."""
        if not self.up or self.hosted is None:
            return "it is not up"
        agent, crew = vars(self.hosted.agent), vars(self.hosted.crew)
        shared = [worker for worker in crew["_workers"] if worker.ready and not worker.retired]
        found = (crew["_free"], crew["_free_alone"], crew["_starting"], len(shared), len(crew["_workers"]))
        due = (self.berth.slots, CHILDREN, 0, self.berth.workers, self.berth.workers)
        if found != due:
            return f"free, free alone, starting, shared workers, workers are {found}, not {due}"
        books = vars(agent["_held"]) | vars(agent["_reports"])
        kept = {name: books[name] for name in ("_running", "_ended", "_items", "_moved", "_undecided") if books[name]}
        kept |= {"_where": crew["_where"]} if crew["_where"] else {}
        return f"it still has {kept}" if kept else None

    def has_room(self, *, alone: bool) -> bool:
        """Say whether its agent would take one more."""
        if not self.up or self.hosted is None:
            return False
        room = self.hosted.crew.room()
        return room.slots > 0 and (room.alone > 0 or not alone)

    @property
    def patience(self) -> float:
        """For how many seconds more than others it may not hear that there is something to do."""
        return (self.berth.profile.beat - PACE.beat) / SECOND

    def look(self, now: float) -> None:
        """Note whether it has room now; to be called again and again."""
        reached = self.world.network.reaches(self.life) and not self.world.checker.is_cut_off(self.life.name)
        if not self.has_room(alone=True) or not reached:
            self._roomy_since = None
        elif self._roomy_since is None:
            self._roomy_since = now

    def idle_for(self, now: float, since: float) -> float:
        """Say for how many seconds since then it has had room, could ask for something to do, and got nothing."""
        if self._roomy_since is None:
            return 0.0
        name = self.life.name
        since = max(since, self._roomy_since, self.world.fed.get(name, 0.0))
        return now - since - self.world.network.waits.held_up(name, since) - self.patience

    def _note_child(self, life: Life, child: SimChild) -> None:
        checker = self.world.checker
        self._children.append(life)
        checker.alive.add(life.name)
        life.on_pause(lambda: checker.hurt.add(life.name))
        life.on_pause(lambda: checker.frozen.add(life.name))

        def died() -> None:
            checker.alive.discard(life.name)
            if child.crash is not None:
                self.world.fail(Violation("I0", f"the program of {life.name} raised {child.crash!r}"))
            if not child.dismissed:
                checker.hurt.add(life.name)
                self.world.note(life.name, "is gone")

        life.on_death(died)


def hire(world: World, berths: Sequence[Berth]) -> None:
    """Let agents of their own run the steps of a world."""
    if not berths:
        return
    world.checker.capacity = sum(berth.slots for berth in berths)
    world.network.leased = world.check_order
    for n, berth in enumerate(berths):
        host = Host(f"host-{n + 1}", world, berth)
        world.hosts.append(host)
        host.start()


def hosts_of(world: World) -> list[Host]:
    """Give the places for agents in a world."""
    return [post for post in world.hosts if isinstance(post, Host)]
