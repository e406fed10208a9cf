"""Nemesis: everything that is done to a world, planned from its seed before it begins."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, assert_never

from watchbill.flow.workflows import Workflow
from watchbill.testing.chance import Chance
from watchbill.testing.network import CALM, Weather
from watchbill.testing.virtual import Life
from watchbill.testing.workload import KILLERS, deadly, poisoned
from watchbill.testing.world import MOST_SKEW, Node, World

# Five losses quarantine a call: fewer must never come together by bad luck alone.
MOST_DISRUPTIONS: Final = 4
KILLS: Final = {poisoned.name: 2, deadly.name: 4}  # processes that each takes along before it is quarantined

PATIENCE: Final = 20  # seconds to lie in wait

QUIET_WEATHER: Final = Weather(slow=0.05, slowest=0.9, lost_hints=0.3, contended=0.3)


class Style(Enum):
    """When and whom it hits."""

    GENTLE = "gentle"  # processes are stopped as an operator would, and nothing is lost
    MIXED = "mixed"  # anybody, at any time
    HUNT = "hunt"  # whoever was given work and has not begun it, until somebody else has that work
    FEUD = "feud"  # after the first whoever takes over from it, while he does


LASTING: Final = {Style.GENTLE: (30, 50), Style.MIXED: (60, 100), Style.HUNT: (60, 100), Style.FEUD: (90, 150)}

# The doors at which it lies in wait, between what the store has done and the answer.
DOORS: Final = {
    Style.GENTLE: (),
    Style.MIXED: (
        *("turn", "turn", "turn", "lease", "lease", "report", "report", "take", "renew", "release", "beat", "leave"),
        *("judge", "live", "load", "spawn"),
    ),
    Style.HUNT: ("turn", "turn", "lease", "lease", "spawn"),
    Style.FEUD: ("take", "live", "load", "turn"),
}


@dataclass(frozen=True)
class Plan:
    """How one world will be treated."""

    style: Style
    nodes: int
    runs: int
    storm: float  # seconds
    killer: Workflow[..., Any] | None
    weather: Weather
    disruptions: int


def plan(chance: Chance, *, quiet: bool) -> Plan:
    """Draw it."""
    killer = chance.choose(KILLERS) if not quiet and chance.happens(0.2) else None
    disruptions = chance.below(MOST_DISRUPTIONS - KILLS[killer.name] + 1) if killer is not None else 1 + chance.below(4)
    style = chance.choose((Style.MIXED, Style.MIXED, Style.HUNT, Style.FEUD)) if not quiet else Style.GENTLE
    stormy = Weather(
        lost_requests=chance.choose((0.0, 0.01, 0.03) if style is not Style.FEUD else (0.03, 0.1)),
        lost_replies=chance.choose((0.0, 0.01, 0.03) if style is not Style.FEUD else (0.03, 0.1)),
        slow=chance.choose((0.02, 0.1)),
        slowest=chance.choose((0.5, 5.0)),
        lost_hints=chance.choose((0.2, 0.9)),
        contended=0.3,
    )
    return Plan(
        style=style,
        nodes=3 if style is Style.HUNT else chance.choose((1, 2, 3, 3, 3)),
        runs=12 + chance.below(7),
        storm=chance.within(*LASTING[style]),
        killer=killer,
        weather=QUIET_WEATHER if quiet else stormy,
        disruptions=disruptions,
    )


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

    def begin(self) -> None:
        """Change the weather, and set the times of what will happen."""
        self._world.network.weather = self._plan.weather
        self._world.network.ambush = self._lurk
        chance, storm = self._chance, self._plan.storm
        for _ in range(self._plan.disruptions):
            match self._plan.style:
                case Style.GENTLE:
                    kind = self._stop
                case Style.MIXED:
                    kind = chance.choose((self._strike, self._lie_in_wait, self._stop))
                case Style.HUNT:
                    kind = self._lie_in_wait
                case Style.FEUD:
                    self._world.loop.call_later(chance.within(3, 15), self._strike)
                    break  # the others follow from it
                case _:
                    assert_never(self._plan.style)
            self._world.loop.call_later(chance.within(3, storm * 0.7), kind)
        for _ in range(chance.below(3)):
            self._world.loop.call_later(chance.within(1, storm), self._jump)
        for _ in range(chance.below(4) if self._plan.style is not Style.GENTLE else 0):
            self._world.loop.call_later(chance.within(1, storm), self._nod_off)

    def heal(self) -> None:
        """End all faults."""
        self._left = 0
        self._prey.clear()
        self._world.network.weather = CALM
        self._world.heal()

    # --- disruptions

    def _strike(self) -> None:
        """Kill or freeze somebody now."""
        node = self._victim(self._strike)
        if node is not None:
            self._hit(node)

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
        empty = result == [] or getattr(result, "taken", None) == ()  # nothing was given: not worth it
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
        elif self._chance.happens(0.5) or self._plan.style is Style.FEUD:
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

    # --- what must hurt nobody

    def _nod_off(self) -> None:
        node = self._victim(self._nod_off)
        if node is not None:
            self._pause(node, "nods off", self._chance.within(2, 8))

    def _jump(self) -> None:
        node = self._chance.choose(self._world.nodes)
        node.clock.skew = round(self._chance.within(-MOST_SKEW, MOST_SKEW))
        self._note("has its clock set", node)

    # ---

    def _victim(self, otherwise: Callable[[], None]) -> Node | None:
        """Choose somebody who is up; when nobody is, try again later."""
        up = [node for node in self._world.nodes if node.up]
        if up:
            return self._chance.choose(up)
        if self._left:
            self._world.loop.call_later(2, otherwise)
        return None

    def _pause(self, node: Node, what: str, seconds: float) -> None:
        life = node.life

        def pause() -> None:
            life.pause()
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
