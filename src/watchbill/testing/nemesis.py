"""Nemesis: everything that is done to a world, planned from its seed before it begins."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, assert_never

from watchbill.model.profile import PROFILES
from watchbill.model.states import AttemptState
from watchbill.scheduler.scheduler import LOAD_LIMIT, LOOK_LIMIT
from watchbill.testing.chance import Chance
from watchbill.testing.hosts import Berth
from watchbill.testing.links import EVERYBODY
from watchbill.testing.network import CALM, Letter, Weather
from watchbill.testing.troubles import STRENGTH
from watchbill.testing.virtual import Life
from watchbill.testing.workload import KILLERS, Demand, deadly, poisoned
from watchbill.testing.world import MOST_SKEW, Kind, Node, World

# Five losses quarantine a call: fewer must never come together by bad luck alone.
MOST_DISRUPTIONS: Final = 4
KILLS: Final = {poisoned.name: 2, deadly.name: 5}  # processes that each takes along before it is quarantined

MOST_CUTS: Final = 2  # likewise, of links
FAR: Final = 0.15  # of stormy worlds: a few messages are on their way for up to half a minute
FAR_WEATHER: Final = (0.02, 30.0)
SLUGGISH: Final = 0.25  # of stormy worlds: many messages take a second or two, so that two of them cross
SLUGGISH_WEATHER: Final = (0.4, 3.0)
LONG: Final = 0.5  # of worlds whose store is away: for longer than a lease and the silence after it
LONG_OUTAGE: Final = (100.0, 120.0)  # seconds
DEPARTURES: Final = 0.5  # of gentle worlds: a scheduler leaves when three of them have been there for a lease
SETTLED: Final = 40.0  # seconds for which they have been there by then
DETAINING: Final = 0.5  # of stormy worlds: verdicts on what is late are long on their way
MOST_DETAINED: Final = 4
DETAINED_FOR: Final = 9.0  # seconds, at most; and no longer than until what is late is tried again
BESIDE: Final = 0.6  # of worlds with several releases: they are on one machine, and can prove each other dead
PURCHASES: Final = 4  # that last, in worlds in which whoever runs them is cut off
IN_THE_ACT: Final = 4.5  # seconds after its lease: most purchases are done by then, and none is late yet
CUT_OFF: Final = (45.0, 90.0)  # seconds: longer than most leases
REPEATED: Final = (0.0, 0.02, 0.2)  # of requests
CRAWLERS: Final = 8  # so that whoever is cut off is at one of them
RUSHES: Final = 3  # together more than a budget for retries can bear at once

PATIENCE: Final = 20  # seconds to lie in wait

QUIET_WEATHER: Final = Weather(slow=0.05, slowest=0.9, lost_hints=0.3, contended=0.3)


class Style(Enum):
    """When and whom it hits."""

    GENTLE = "gentle"  # processes are stopped as an operator would, and nothing is lost
    OUTAGE = "outage"  # the whole store is away for a while, and nothing else happens
    EMBEDDED = "embedded"  # one process owns the store, its leases never end, and no hint is lost
    MIXED = "mixed"  # anybody, at any time
    HUNT = "hunt"  # whoever was given work and has not begun it, until somebody else has that work
    DEPLOY = "deploy"  # whoever has the newest code, while those beside it have older code
    FEUD = "feud"  # after the first whoever takes over from it, while he does
    SHIFTS = "shifts"  # agents of their own are drained and relieved, and nothing is lost
    BLACKOUT = "blackout"  # likewise, but the whole store is away for a while
    WATCH = "watch"  # one fault after the other, in fair weather: it is measured how long somebody is missed
    MUTINY = "mutiny"  # agents, their workers, schedulers: anybody, at any time


LOSSLESS: Final = frozenset({Style.GENTLE, Style.OUTAGE, Style.SHIFTS, Style.BLACKOUT})


LASTING: Final = {
    Style.GENTLE: (30, 50),
    Style.OUTAGE: (60, 150),
    Style.EMBEDDED: (20, 40),
    Style.MIXED: (60, 100),
    Style.HUNT: (60, 100),
    Style.DEPLOY: (60, 100),
    Style.FEUD: (90, 150),
    Style.SHIFTS: (40, 60),
    Style.BLACKOUT: (60, 150),
    Style.WATCH: (100, 130),
    Style.MUTINY: (60, 110),
}

# The doors at which it lies in wait, between what the store has done and the answer.
DOORS: Final = {
    Style.GENTLE: (),
    Style.OUTAGE: (),
    Style.EMBEDDED: ("turn", "lease", "report", "take", "live", "load", "spawn", "attend"),
    Style.MIXED: (
        *("turn", "turn", "turn", "lease", "lease", "report", "report", "take", "renew", "release", "beat", "leave"),
        *("judge", "live", "load", "look", "spawn", "attend", "bury"),
    ),
    Style.HUNT: ("turn", "lease", "lease", "look", "look", "look", "spawn"),
    Style.DEPLOY: ("turn", "look", "lease", "release"),
    Style.FEUD: ("take", "live", "load", "turn"),
    Style.SHIFTS: (),
    Style.BLACKOUT: (),
    Style.WATCH: (),
    Style.MUTINY: ("lease", "lease", "report", "report", "beat", "join", "leave", "spawn", "queues", "turn", "judge"),
}


@dataclass(frozen=True)
class Troubles:
    """What a world has beside the usual: runs that need cures, a bank that is down, and names that are paused."""

    many: int
    outages: tuple[tuple[float, float], ...]
    pauses: int
    lasting: int = 0  # purchases that take effect late
    crawlers: int = 0  # purchases that go on for longer than most leases, though they are late
    rushes: int = 0  # runs that want much of a bank which fails every third call


@dataclass(frozen=True)
class Plan:
    """How one world will be treated."""

    style: Style
    nodes: tuple[Kind, ...]
    demand: Demand
    storm: float  # seconds
    weather: Weather
    disruptions: int
    hosts: tuple[Berth, ...] = ()
    troubles: Troubles | None = None
    cuts: int = 0  # of the link between one process and the store
    in_the_act: bool = False  # links are cut while a process runs what must not happen twice
    long_outage: bool = False  # the store is away for longer than an agent goes on in silence
    detained: int = 0  # verdicts that are long on their way
    late_departure: bool = False  # a scheduler leaves two others, all three have been there for longer than a lease


def with_troubles(usual: Plan, chance: Chance) -> Plan:
    """Give a plan with less of the usual, and whatever an author can have a cure for."""
    lossless = usual.style in LOSSLESS
    starts = [chance.within(2, usual.storm * 0.6) for _ in range(chance.below(3))]
    outages = tuple((start, start + chance.within(3, 25)) for start in starts)
    kinds = [replace(kind, troubled=True, needs=(STRENGTH,) if not n else ()) for n, kind in enumerate(usual.nodes)]
    berths = [replace(one, troubled=True, needs=(STRENGTH,) if not n else ()) for n, one in enumerate(usual.hosts)]
    return replace(
        usual,
        nodes=tuple(kinds),
        hosts=tuple(berths),
        demand=replace(usual.demand, many=4 + chance.below(4), killer=None),
        disruptions=max(1, usual.disruptions if lossless else min(usual.disruptions, MOST_DISRUPTIONS - MOST_CUTS)),
        troubles=Troubles(10 + chance.below(5), outages, chance.below(4)),
        cuts=0 if lossless else chance.below(MOST_CUTS + 1),
        detained=0,
    )


def with_cuts_in_the_act(usual: Plan) -> Plan:
    """Give a plan with lasting purchases: whoever runs them is cut off before they take effect."""
    assert usual.troubles is not None  # noqa: S101 - drawn before
    troubles = replace(usual.troubles, lasting=PURCHASES)
    longer = usual.storm + CUT_OFF[1]
    return replace(usual, troubles=troubles, storm=longer, cuts=MOST_CUTS, in_the_act=True)


def with_a_moody_bank(usual: Plan) -> Plan:
    """Give a plan whose bank is never down, and fails every third call of many."""
    assert usual.troubles is not None  # noqa: S101 - drawn before
    return replace(usual, troubles=replace(usual.troubles, outages=(), rushes=RUSHES))


def with_long_leases(usual: Plan, chance: Chance) -> Plan:
    """Give a plan whose agents beat seldom, and may act for long after nobody hears them any more."""
    assert usual.troubles is not None  # noqa: S101 - drawn before
    names = [chance.choose(("standard", "batch", "batch")) for _ in usual.hosts]
    berths = [replace(berth, profile=PROFILES[name]) for berth, name in zip(usual.hosts, names, strict=True)]
    lossless = usual.style in LOSSLESS
    return replace(
        usual,
        hosts=tuple(berths),
        cuts=usual.cuts if lossless else MOST_CUTS,
        in_the_act=not lossless,
        storm=usual.storm if lossless or usual.in_the_act else usual.storm + CUT_OFF[1],
        troubles=replace(usual.troubles, crawlers=CRAWLERS),
    )


def worsened(usual: Weather, chance: Chance) -> Weather:
    """Draw whether some messages are on their way for very long."""
    slow, slowest = FAR_WEATHER
    return replace(usual, slow=slow, slowest=slowest) if chance.happens(FAR) else usual


def slowed(usual: Weather, chance: Chance) -> Weather:
    """Draw whether many messages are slow."""
    slow, slowest = SLUGGISH_WEATHER
    return replace(usual, slow=slow, slowest=slowest) if chance.happens(SLUGGISH) else usual


def with_late_departure(usual: Plan, chance: Chance) -> Plan:
    """Draw whether a gentle plan has three schedulers, one of which leaves late, and nobody before."""
    if usual.style is not Style.GENTLE or not chance.happens(DEPARTURES):
        return usual
    nodes = [Kind(load_limit=kind.load_limit) for kind in (usual.nodes * 3)[:3]]
    storm = usual.storm + SETTLED
    return replace(usual, nodes=tuple(nodes), storm=storm, disruptions=1, late_departure=True)


def plan(chance: Chance, *, quiet: bool, embedded: bool) -> Plan:
    """Draw it."""
    if embedded:
        return _embedded(chance)
    killer = chance.choose(KILLERS) if not quiet and chance.happens(0.2) else None
    most = MOST_DISRUPTIONS - (0 if killer is None else KILLS[killer.name])
    disruptions = 1 + chance.below(most) if killer is None else chance.below(max(most, 0) + 1)
    loud = (Style.MIXED, Style.MIXED, Style.HUNT, Style.DEPLOY, Style.FEUD)
    style = chance.choose(loud if not quiet else (Style.GENTLE, Style.OUTAGE))
    stormy = Weather(
        lost_requests=chance.choose((0.0, 0.01, 0.03) if style is not Style.FEUD else (0.03, 0.1)),
        lost_replies=chance.choose((0.0, 0.01, 0.03) if style is not Style.FEUD else (0.03, 0.1)),
        slow=chance.choose((0.02, 0.1)),
        slowest=chance.choose((0.5, 5.0)),
        lost_hints=chance.choose((0.2, 0.9)),
        contended=0.3,
        repeated=chance.fork("repeated").choose(REPEATED),
    )
    storm = chance.within(*LASTING[style])
    long_outage = style is Style.OUTAGE and chance.fork("long outage").happens(LONG)
    drawn = Plan(
        style=style,
        nodes=_nodes(chance, style, storm),
        demand=Demand(12 + chance.below(7), storm * 0.6, killer=killer),
        storm=storm + (LONG_OUTAGE[1] if long_outage else 0),
        weather=QUIET_WEATHER if quiet else worsened(slowed(stormy, chance.fork("sluggish")), chance.fork("far")),
        disruptions=disruptions,
        cuts=0 if quiet else chance.fork("cuts").below(max(0, min(MOST_CUTS, most - disruptions)) + 1),
        long_outage=long_outage,
        detained=MOST_DETAINED if not quiet and chance.fork("detained").happens(DETAINING) else 0,
    )
    return with_late_departure(drawn, chance.fork("late departure"))


def _nodes(chance: Chance, style: Style, storm: float) -> tuple[Kind, ...]:
    """Draw the nodes: some join later, and some have older code; the first has all of it."""
    many = {Style.HUNT: 3, Style.DEPLOY: 2}.get(style, chance.choose((1, 2, 2, 3, 3, 3)))
    releases = (1, 2) if style is Style.DEPLOY else (0, 0, 0, 1, 2)
    late = 0.35 if style is not Style.DEPLOY else 0.0
    beside = style is Style.DEPLOY and chance.fork("machines").happens(BESIDE)
    return tuple(
        Kind(
            beside=beside,
            release=chance.choose(releases) if n else 0,
            joins_at=chance.within(2, storm * 0.8) if n and chance.happens(late) else 0.0,
            load_limit=chance.choose((2, LOAD_LIMIT)),
        )
        for n in range(many)
    )


def _embedded(chance: Chance) -> Plan:
    storm = chance.within(*LASTING[Style.EMBEDDED])
    kind = Kind(look_limit=chance.choose((16, 16, 16, LOOK_LIMIT)), load_limit=chance.choose((2, LOAD_LIMIT)))
    demand = Demand(20 + chance.below(30), storm * 0.6, bursts=1 + chance.below(3), quick=chance.happens(0.7))
    return Plan(Style.EMBEDDED, (kind,), demand, storm, CALM, 1 + chance.below(2))


class Detained(NamedTuple):
    """A request that stays on its way."""

    letter: Letter
    since: float
    fences: dict[int, int]  # of the rows that it is about


class Prey:
    """Whom it lies in wait for: whoever calls that door, after so many others."""

    def __init__(self, door: str, passing: int) -> None:
        self.door = door
        self.passing = passing


class Nemesis:
    """Carries the plan out."""

    def __init__(self, world: World, plan: Plan, chance: Chance) -> None:
        self._world = world
        self._plan = plan
        self._chance = chance
        self._prey: list[Prey] = []
        self._left = plan.disruptions
        self._to_be_detained = plan.detained
        self._detained: Detained | None = None
        self._healed = False

    def begin(self) -> None:
        """Change the weather, and set the times of what will happen."""
        self._world.network.weather = self._plan.weather
        self._world.checker.lossless = self._plan.style in LOSSLESS
        self._world.network.ambush = self._lurk
        self._world.network.detains = self._detains
        chance, storm = self._chance, self._plan.storm
        if self._plan.style is Style.FEUD:
            self._later(chance.within(3, 15), self._strike)  # the others follow from it
        else:
            for n in range(self._plan.disruptions):
                at = chance.within(3, storm * 0.7)
                self._later(SETTLED if self._plan.late_departure else at, self._kind_of_disruption(n))
            self._world.counts["late departures"] += self._plan.late_departure
        for _ in range(chance.below(3)):
            self._later(chance.within(1, storm), self._jump)
        for _ in range(chance.below(4) if self._plan.style not in (Style.GENTLE, Style.OUTAGE) else 0):
            self._later(chance.within(1, storm), self._nod_off)
        if self._plan.long_outage:
            rare = chance.fork("long outage")
            self._later(rare.within(10, 25), lambda: self._lose_the_store_for(rare.within(*LONG_OUTAGE)))
        self._plan_cuts()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something to the world then, unless it was healed before: that may be as soon as all is done."""
        self._world.loop.call_later(seconds, lambda: None if self._healed else act())

    def _plan_cuts(self) -> None:
        """Set the times at which somebody loses the store, and the store him, while all others have it."""
        for _ in range(self._plan.cuts):
            at = self._chance.within(3, self._plan.storm * 0.7)
            if self._plan.in_the_act:
                self._later(3, self._sever_in_the_act)
            else:
                self._later(at, self._sever)

    def _kind_of_disruption(self, n: int) -> Callable[[], None]:
        """Draw what the n-th one will be."""
        match self._plan.style:
            case Style.GENTLE:
                return self._stop
            case Style.OUTAGE:
                return self._take_the_store_away
            case Style.EMBEDDED:
                # Nobody lies in wait at first: when all is done already, nobody would come.
                return self._chance.choose((self._stop, self._stop, self._strike, self._lie_in_wait)[: 4 if n else 3])
            case Style.MIXED:
                return self._chance.choose((self._strike, self._lie_in_wait, self._stop))
            case Style.HUNT:
                return self._lie_in_wait
            case Style.DEPLOY | Style.FEUD:
                drawn = self._chance.choose((self._strike, self._lie_in_wait))
                return drawn if n or self._plan.style is Style.FEUD else self._kill_newest
            case Style.SHIFTS | Style.BLACKOUT | Style.WATCH | Style.MUTINY:
                return self._stop  # what else becomes of agents: testing/saboteur.py
            case _:
                assert_never(self._plan.style)

    def heal(self) -> None:
        """End all faults."""
        self._healed = True
        self._left = self._to_be_detained = 0
        self._prey.clear()
        self._world.network.waits.mend_all()
        self._world.network.weather = CALM
        self._world.heal()

    def suspend(self, seconds: float) -> None:
        """Measure nothing for so long: another fault delays all processes."""

    # --- disruptions

    def _strike(self) -> None:
        """Kill or freeze somebody now."""
        node = self._victim(self._strike)
        if node is not None:
            self._hit(node)

    def _kill_newest(self, patience: int = PATIENCE) -> None:
        """Kill whoever has the newest code and is at work; wait until one with older code can prove that it is dead."""
        newest, *others = self._world.nodes
        beside = [other for other in others if other.up and other.machine is newest.machine]
        if not self._left:
            return
        if newest.up and beside and self._world.checker.shards_of(newest.life.name):
            self._left -= 1
            self._world.checker.hurt.add(newest.life.name)
            self._world.counts["newest code dies"] += 1
            self._note("dies", newest)
            newest.life.light_fuse(self._moment(), newest.life.die)
        elif patience:
            self._later(1, lambda: self._kill_newest(patience - 1))
        else:
            self._strike()

    def _lie_in_wait(self) -> None:
        """Kill or freeze whoever calls a certain door, after the store has done it and before the answer is there."""
        passing = self._chance.below(2 if self._plan.style is Style.FEUD else 4)
        prey = Prey(self._chance.choose(DOORS[self._plan.style]), passing)
        self._prey.append(prey)
        patience = 2 * PATIENCE if self._plan.style is Style.FEUD else PATIENCE  # a lease must run out first
        self._world.loop.call_later(patience, self._grow_tired, prey)

    def _grow_tired(self, prey: Prey) -> None:
        if prey in self._prey:
            self._prey.remove(prey)
            self._strike()

    def _lurk(self, life: Life, door: str, result: object) -> None:
        node = next((node for node in self._world.nodes if node.life is life), None)
        # Nothing was given: not worth it. A look that found nothing may do: what ended meanwhile comes with it.
        empty = result == [] or getattr(result, "taken", None) == ()
        for prey in self._prey if node is not None and not empty else ():
            if prey.door == door:
                prey.passing -= 1
                if prey.passing < 0 and node is not None:
                    self._prey.remove(prey)
                    self._hit(node)
                return

    def _hit(self, node: Node) -> None:
        if not self._left:
            return
        self._left -= 1
        self._world.checker.hurt.add(node.life.name)
        if self._plan.style is Style.HUNT:
            self._pause(node, "freezes", self._chance.within(35, 50))  # it wakes when somebody else has its work
        elif node.up and self._chance.happens(0.25 if self._plan.style is Style.MIXED or self._left > 1 else 0.8):
            self._note("is stopped", node)
            node.stop()
        elif self._chance.happens(0.5) or self._plan.style in (Style.FEUD, Style.DEPLOY):
            self._note("dies", node)
            node.life.light_fuse(self._moment(), node.life.die)
        else:
            self._pause(node, "freezes", self._chance.within(10, 60))
        if self._plan.style is Style.FEUD:
            self._lie_in_wait()

    def _stop(self) -> None:
        """Stop somebody as an operator would."""
        node = self._victim(self._stop)
        if node is not None and self._left:
            self._left -= 1
            # In a storm the last messages of a process may be lost: then its end is not clean.
            if self._plan.style is not Style.GENTLE:
                self._world.checker.hurt.add(node.life.name)
            node.stop()
            self._note("is stopped", node)

    def _sever(self) -> None:
        """Cut somebody off from the store, for shorter or longer than his lease; whatever he runs goes on.

        Rather one who is at something that must not happen twice.
        """
        checker = self._world.checker
        up = [post for post in self._world.posts if post.up]
        if not up:
            return
        busy = [post for post in up if checker.running_under(post.life.name)]
        delicate = [post for post in busy if checker.runs_unrepeatable(post.life.name)]
        self._cut_off(self._chance.choose(delicate or busy or up).life, self._chance.within(5, 90))

    def _sever_in_the_act(self) -> None:
        """Cut somebody off who has begun something that must not happen twice; wait until there is one."""
        checker, waits = self._world.checker, self._world.network.waits
        up = [post for post in self._world.posts if post.up and not waits.is_cut(post.life.name)]
        delicate = [post for post in up if checker.runs_unrepeatable(post.life.name, IN_THE_ACT)]
        if delicate:
            longest = max(post.lease for post in delicate)  # others believe in it for longest
            chosen = self._chance.choose([post for post in delicate if post.lease == longest])
            self._cut_off(chosen.life, self._chance.within(*CUT_OFF))
        else:
            self._later(0.5, self._sever_in_the_act)

    def _cut_off(self, life: Life, span: float) -> None:
        self._world.counts["faults"] += 1
        self._world.counts["links cut"] += 1
        self._world.checker.hurt.add(life.name)
        self._world.network.waits.cut(life.name)
        self._world.note("nemesis:", life.name, "is cut off for", round(span, 3))
        self._world.loop.call_later(span, self._world.network.waits.mend, life.name)

    # --- what must hurt nobody

    def _take_the_store_away(self) -> None:
        """Let nobody reach the store for a while: shorter than a lease, or long enough to end every one of them."""
        links = self._world.network.waits
        if links.is_cut(EVERYBODY) or not self._left:
            return
        self._left -= 1
        self._lose_the_store_for(self._chance.choose((self._chance.within(3, 15), self._chance.within(15, 90))))

    def _lose_the_store_for(self, seconds: float) -> None:
        links = self._world.network.waits
        if links.is_cut(EVERYBODY):
            self._later(1, lambda: self._lose_the_store_for(seconds))
            return
        links.cut(EVERYBODY)
        self._world.counts["faults"] += 1
        self._world.counts["outages"] += 1
        self._world.note("nemesis:", "the store is away for", round(seconds, 3))
        self._world.loop.call_later(seconds, self._bring_the_store_back)

    def _bring_the_store_back(self) -> None:
        self._world.network.waits.mend(EVERYBODY)
        self._world.note("nemesis:", "the store is back")

    def _nod_off(self) -> None:
        node = self._victim(self._nod_off)
        if node is not None:
            self._pause(node, "nods off", self._chance.within(2, 8))

    def _detains(self, letter: Letter) -> bool:
        """Say whether a request stays on its way: a verdict on a late attempt, until others have it retried."""
        if self._detained is None:
            self._detained = self._to_detain(letter)
        if self._detained is None or self._detained.letter is not letter:
            return False
        _, since, fences = self._detained
        fence_of = self._world.checker.fence_of
        retried = any(fence_of(id) not in (None, fence) for id, fence in fences.items())
        if retried or self._healed or self._world.loop.time() >= since + DETAINED_FOR:
            self._detained = None
            return False
        return True

    def _to_detain(self, letter: Letter) -> Detained | None:
        """Detain a request if it is a verdict on what is late, and another supervisor is there."""
        if not self._to_be_detained or letter.door != "judge" or letter.journey.again is not None:
            return None
        late = {one.id: one.fence for one in letter.args[0] if one.state is AttemptState.RUNNING}
        if not late or not any(node.up and node.life is not letter.life for node in self._world.nodes):
            return None
        self._to_be_detained -= 1
        self._world.counts["faults"] += 1
        self._world.counts["verdicts detained"] += 1
        self._world.note("nemesis:", letter.life.name, "sends a verdict that is long on its way")
        return Detained(letter, self._world.loop.time(), late)

    def _jump(self) -> None:
        node = self._chance.choose(self._world.nodes)
        node.clock.skew = round(self._chance.within(-MOST_SKEW, MOST_SKEW))
        self._note("has its clock set", node)

    # ---

    def _victim(self, otherwise: Callable[[], None]) -> Node | None:
        """Choose somebody who is up; when nobody is, try again later."""
        up = [node for node in self._world.nodes if node.up]
        if self._plan.style is Style.DEPLOY:
            up = [node for node in up if node is self._world.nodes[0]]
        if up:
            return self._chance.choose(up)
        if self._left:
            self._world.loop.call_later(2, otherwise)
        return None

    def _pause(self, node: Node, what: str, seconds: float) -> None:
        life = node.life

        def pause() -> None:
            life.pause()
            self._world.network.silences.hold_up(life.name, seconds)
            self._world.loop.call_later(seconds, life.resume, context=self._world.life.context)

        self._note(what, node)
        life.light_fuse(self._moment(), pause)

    def _moment(self) -> int:
        """Draw how many callbacks later it happens: at once, or in the middle of something."""
        return self._chance.below(self._chance.choose((1, 6, 60)))

    def _note(self, what: str, node: Node) -> None:
        self._world.counts["faults"] += 1
        self._world.counts[f"node {what}"] += 1
        self._world.note("nemesis:", node.life.name, what)
