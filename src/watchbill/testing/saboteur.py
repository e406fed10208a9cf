"""Saboteur: what is done to agents that are processes of their own, to their workers, and to those who lead them."""

from collections.abc import Callable
from typing import Any, Final

from watchbill.flow.workflows import Workflow
from watchbill.scheduler.scheduler import LOAD_LIMIT
from watchbill.testing.chance import Chance
from watchbill.testing.detection import Detection
from watchbill.testing.hosts import Berth, Host
from watchbill.testing.nemesis import (
    KILLS,
    LASTING,
    LOSSLESS,
    MOST_CUTS,
    MOST_DISRUPTIONS,
    QUIET_WEATHER,
    REPEATED,
    Nemesis,
    Plan,
    Prey,
    Style,
    worsened,
)
from watchbill.testing.network import CALM, Weather
from watchbill.testing.virtual import Life
from watchbill.testing.workload import KILLERS, Demand
from watchbill.testing.world import MOST_SKEW, Kind, Node, Post, World

# A beat every 2 s, a lease of 8 s, and a message or two that take their time: who sleeps no longer is not missed.
NAP: Final = (0.1, 2.4)
SLEEP: Final = (2.4, 24.0)  # three leases
BLOCKED: Final = (0.5, 60.0)
BARREN: Final = 0.4  # of mutinies: a worker dies where no other can be made
SPACED: Final = 24.0  # seconds between two faults whose effects are measured

CLOCK_RATES: Final = (0.93, 1.0, 1.0, 1.07)  # a lease is believed in for seven eighths of it


def plan_crew(chance: Chance, *, quiet: bool) -> Plan:
    """Draw a world with agents of their own."""
    loud = (Style.MUTINY, Style.MUTINY, Style.WATCH)
    style = chance.choose((Style.SHIFTS, Style.SHIFTS, Style.BLACKOUT) if quiet else loud)
    storm = chance.within(*LASTING[style])
    killer = chance.choose(KILLERS) if style is Style.MUTINY and chance.happens(0.25) else None
    slow, slowest = chance.choose(((0.1, 0.8), (0.02, 5.0)))
    stormy = Weather(
        lost_requests=chance.choose((0.0, 0.01, 0.03)),
        lost_replies=chance.choose((0.0, 0.01, 0.03)),
        slow=slow,
        slowest=slowest,
        lost_hints=chance.choose((0.2, 0.9)),
        contended=0.3,
        repeated=chance.choose(REPEATED),
    )
    stormy = worsened(stormy, chance.fork("far"))
    weather = QUIET_WEATHER if quiet else CALM if style is Style.WATCH else stormy
    many = chance.choose((2, 3)) if style is Style.WATCH else chance.choose((1, 2, 2, 3))
    nodes = tuple(
        Kind(load_limit=chance.choose((2, LOAD_LIMIT)), leads=True, rate=chance.choose(CLOCK_RATES))
        for _ in range(many)
    )
    long = style is Style.WATCH or chance.happens(0.3)
    within = 0.9 if style is Style.WATCH else 0.6
    return Plan(
        style=style,
        nodes=nodes,
        demand=Demand(22 + chance.below(12), storm * within, killer=killer, crewed=True, long=long),
        storm=storm,
        weather=weather,
        disruptions=int(storm / SPACED) if style is Style.WATCH else 3 + chance.below(5),
        hosts=tuple(_berth(chance, style, n) for n in range(2 + chance.below(3))),
        cuts=_cuts(chance.fork("cuts"), killer) if style is Style.MUTINY else 0,
    )


def _cuts(chance: Chance, killer: Workflow[..., Any] | None) -> int:
    """Draw how many links are cut: each may cost a row a loss, as what kills whoever runs it does."""
    return chance.below(max(0, min(MOST_CUTS, MOST_DISRUPTIONS - (0 if killer is None else KILLS[killer.name]))) + 1)


def _berth(chance: Chance, style: Style, n: int) -> Berth:
    return Berth(
        release=chance.choose((0, 0, 0, 1, 2)) if n > 1 else 0,
        slots=chance.choose((8, 12)) if style is Style.WATCH else chance.choose((1, 2, 3, 4, 8)),
        workers=chance.choose((1, 2, 3)),
        recycle_after=chance.choose((None, 3, 10)),
        rate=chance.choose(CLOCK_RATES),
        kills_orphans=chance.happens(0.7),
    )


class Saboteur(Nemesis):
    """Carries such a plan out."""

    def __init__(self, world: World, plan: Plan, chance: Chance) -> None:
        super().__init__(world, plan, chance)
        killer = plan.demand.killer
        # What may cost a row a loss.
        self._costly = MOST_DISRUPTIONS - plan.cuts - (0 if killer is None else KILLS[killer.name])
        # What waits for a person, a bank or a probe is at work when they say so, and not within seconds.
        self._detection = Detection(world, measures=plan.style is Style.WATCH and plan.troubles is None)
        self._hosts = [host for host in world.hosts if isinstance(host, Host)]

    def begin(self) -> None:
        """Change the weather, and set the times of what will happen."""
        world, plan, chance = self._world, self._plan, self._chance
        world.network.weather = plan.weather
        world.network.ambush = self._lurk
        world.checker.lossless = plan.style in LOSSLESS
        for n in range(plan.disruptions):
            at = (
                4 + SPACED * n + chance.within(0, 2)
                if plan.style is Style.WATCH
                else chance.within(3, plan.storm * 0.8)
            )
            self._later(at, self._kind_of_disruption(n))
        for _ in range(chance.below(3)):
            self._later(chance.within(1, plan.storm), self._jump)
        for _ in range(chance.below(5) if plan.style in (Style.SHIFTS, Style.MUTINY) else 0):
            self._later(chance.within(1, plan.storm), self._nap)
        if plan.style is Style.MUTINY and (rare := chance.fork("barren")).happens(BARREN):
            self._later(rare.within(4, plan.storm * 0.5), self._refuse_a_successor)
        self._plan_cuts()

    def heal(self) -> None:
        """End all faults."""
        super().heal()
        self._detection.disturb()
        for host in self._hosts:
            for child in host.children:
                child.resume()
                child.defuse()
            if not host.life.dead:
                host.env.barren = False

    def suspend(self, seconds: float) -> None:
        """Measure nothing for so long: somebody else makes a fault that delays everybody."""
        self._detection.suspend(seconds)

    def _kind_of_disruption(self, n: int) -> Callable[[], None]:
        match self._plan.style:
            case Style.SHIFTS:
                return self._chance.choose((self._drain, self._drain, self._nap_worker))
            case Style.BLACKOUT:
                return self._take_the_store_away
            case Style.WATCH:
                return self._chance.choose(
                    (
                        *(self._kill_host, self._kill_host, self._kill_worker, self._kill_worker),
                        *(self._freeze_host, self._freeze_host, self._freeze_host, self._drain, self._kill_node),
                    )
                )
            case _:
                return self._chance.choose(
                    (
                        *(self._kill_host, self._lie_in_wait, self._lie_in_wait, self._kill_worker, self._kill_newborn),
                        *(self._freeze_host, self._freeze_worker, self._freeze_worker, self._drain, self._drain),
                        *(self._kill_node, self._kill_node, self._refuse_processes),
                    )
                )

    # --- hosts

    def _kill_host(self) -> None:
        host = self._somebody()
        if host is not None and self._afford():
            self._kill_that_host(host)

    def _kill_that_host(self, host: Host) -> None:
        life = self._begin_fault("host dies", host)
        life.on_death(lambda: self._detection.host_died(host, life))
        life.light_fuse(self._moment(), life.die)

    def _freeze_host(self) -> None:
        host = self._somebody()
        if host is not None and self._afford():
            self._freeze_that_host(host)

    def _freeze_that_host(self, host: Host) -> None:
        span = self._chance.within(14, SLEEP[1]) if self._plan.style is Style.WATCH else self._chance.within(*SLEEP)
        life = self._begin_fault("host freezes", host)
        children = host.children if self._chance.happens(0.8) else []  # the whole machine sleeps, or one process

        def pause() -> None:
            if life.dead:
                return
            self._detection.host_froze(host, life)
            for each in (life, *children):
                each.pause()
                self._world.loop.call_later(span, each.resume, context=self._world.life.context)

        life.light_fuse(self._moment(), pause)

    def _drain(self) -> None:
        """Drain somebody; often another one is at work already, under the same name."""
        host = self._somebody()
        if host is None or (self._plan.style is Style.MUTINY and not self._afford()):
            return
        life = host.life
        self._note("host is drained", host)
        self._detection.disturb()
        if self._plan.style is Style.MUTINY:
            self._world.checker.hurt.add(life.name)  # its last messages may be lost
        self._detection.host_drains(host, life)
        host.stop()
        if self._chance.happens(0.6):
            host.start()

    def _nap(self) -> None:
        """Let a host stand still, not long enough for anybody to miss it."""
        host = self._somebody()
        if host is not None:
            life, span = host.life, self._chance.within(*NAP)
            self._world.checker.napped.add(life.name)
            self._note("host nods off", host)
            self._detection.disturb()
            life.pause()
            self._world.network.silences.hold_up(life.name, span)
            self._world.loop.call_later(span, life.resume, context=self._world.life.context)

    def _refuse_processes(self) -> None:
        """Let no process be made on a host for a while."""
        host = self._somebody()
        if host is not None:
            env = host.env
            self._note("host gets no processes", host)
            env.barren = True

            def again() -> None:
                env.barren = False

            self._world.loop.call_later(self._chance.within(1, 10), again)

    def _refuse_a_successor(self) -> None:
        """Kill a worker on a host that gets no processes for a while."""
        host = self._somebody()
        if host is not None and host.children and self._afford():
            env = host.env
            self._note("host gets no processes", host)
            env.barren = True
            self._kill_worker_of(host)

            def again() -> None:
                env.barren = False

            self._world.loop.call_later(self._chance.within(5, 15), again)

    # --- workers

    def _kill_worker(self) -> None:
        host = self._somebody()
        if host is not None and host.children and self._afford():
            child = self._some_child(host)
            self._note("worker dies", host, child)
            self._detection.disturb()
            self._world.checker.hurt.add(child.name)
            self._detection.child_died(host, child)
            child.die()

    def _kill_newborn(self) -> None:
        """Kill a worker when it is just there, perhaps before it is ready."""
        host = self._somebody()
        if host is None or not host.children or not self._afford():
            return
        self._kill_worker_of(host)
        newborn = len(host.children)

        def again() -> None:
            if len(host.children) > newborn and self._afford():
                child = host.children[-1]
                self._note("worker dies young", host, child)
                self._world.checker.hurt.add(child.name)
                child.light_fuse(self._moment(), child.die)

        for _ in range(8):
            self._later(self._chance.within(0.1, 2), again)

    def _kill_worker_of(self, host: Host) -> None:
        child = self._some_child(host)
        self._note("worker dies", host, child)
        self._world.checker.hurt.add(child.name)
        child.light_fuse(self._moment(), child.die)

    def _freeze_worker(self) -> None:
        self._pause_worker(self._chance.within(*BLOCKED))

    def _nap_worker(self) -> None:
        self._pause_worker(self._chance.within(*NAP))

    def _pause_worker(self, span: float) -> None:
        host = self._somebody()
        if host is not None and host.children:
            child = self._some_child(host)
            self._note("worker freezes", host, child)
            self._detection.disturb()
            child.pause()
            self._world.loop.call_later(span, child.resume, context=self._world.life.context)

    # --- those who lead

    def _kill_node(self) -> None:
        """Kill, freeze or stop one of the schedulers and supervisors."""
        node = self._victim(self._kill_node)
        if node is None:
            return
        life = node.life
        self._detection.disturb()
        if self._plan.style is Style.WATCH or self._chance.happens(0.4):
            self._world.checker.hurt.add(life.name)
            self._note("node dies", node)
            life.on_death(lambda: self._detection.node_died(life))
            life.light_fuse(self._moment(), life.die)
        elif self._chance.happens(0.4):
            self._world.checker.hurt.add(life.name)
            self._note("node is stopped", node)
            node.stop()
        else:
            self._world.checker.hurt.add(life.name)
            self._pause(node, "node freezes", self._chance.within(*SLEEP))

    def _jump(self) -> None:
        post = self._chance.choose(self._world.posts)
        post.clock.skew = round(self._chance.within(-MOST_SKEW, MOST_SKEW))
        self._note("has its clock set", post)

    # --- in wait

    def _lurk(self, life: Life, door: str, result: object) -> None:
        post = next((post for post in self._world.posts if post.life is life), None)
        prey = next((prey for prey in self._prey if prey.door == door), None)
        if post is None or prey is None or result == []:
            return
        prey.passing -= 1
        if prey.passing >= 0:
            return
        self._prey.remove(prey)
        if isinstance(post, Node):
            self._world.checker.hurt.add(life.name)
            self._note("node dies", post)
            life.light_fuse(self._moment(), life.die)
        elif isinstance(post, Host) and self._afford():
            self._chance.choose((self._kill_that_host, self._freeze_that_host))(post)

    def _grow_tired(self, prey: Prey) -> None:
        if prey in self._prey:
            self._prey.remove(prey)
            self._kill_worker()

    # ---

    def _somebody(self) -> Host | None:
        """Choose a host that is up, rather one that has something to do."""
        up = [host for host in self._hosts if host.up] if self._left else []
        busy = [host for host in up if self._world.checker.running_under(host.life.name)]
        return self._chance.choose(busy or up) if up else None

    def _some_child(self, host: Host) -> Life:
        checker = self._world.checker
        at_work = {checker.runs_in(row) for row in checker.running_under(host.life.name)}
        busy = [child for child in host.children if child.name in at_work]
        return self._chance.choose(busy or host.children)

    def _afford(self) -> bool:
        """Spend one of the faults that may cost a row a loss: five of them would be a quarantine."""
        if self._plan.style is not Style.WATCH:
            self._costly -= 1
        return self._costly >= 0

    def _begin_fault(self, what: str, host: Host) -> Life:
        self._note(what, host)
        self._detection.disturb()
        self._world.checker.hurt.add(host.life.name)
        return host.life

    def _note(self, what: str, post: Post, child: Life | None = None) -> None:
        self._world.counts["faults"] += 1
        self._world.counts[what] += 1
        self._world.note("nemesis:", (child or post.life).name, what)
