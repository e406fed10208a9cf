"""Misdating: the clock of the store is wrong (I25). What is promised then: `docs/design/clocks.md`.

A store in a file has its real time (`store/sqlite/time.py`), on a wall clock that is ahead, behind, jumps, or was never
set; its boot clock is right. A store that stands for a server has the clock of that server as its time: it jumps ahead,
and is put right. The true time of a world is that of its loop.
"""

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.errors import StoreClockError
from watchbill.model.decision import SUPERVISOR, Decision
from watchbill.model.failure import Cause
from watchbill.model.recurrence import Overlap
from watchbill.store import open as opening
from watchbill.store.queries import load_queries
from watchbill.store.sqlite.lanes import WATCH_EVERY, OwnerLanes
from watchbill.testing.chance import Chance
from watchbill.testing.changes import DecisionSeen
from watchbill.testing.envs import DAWN, SimClock
from watchbill.testing.ledger import Fate
from watchbill.testing.nemesis import Plan, Style
from watchbill.testing.slots import slot_of
from watchbill.testing.virtual import Vital, rest
from watchbill.testing.workload import SPECS, STATES, Wish, chain, hasty_saga, sleeper
from watchbill.testing.world import Clients, Node, World

# From clocks.md, and not from the engine: a mutant of the engine must not change what is checked.
STAYED: Final = 60.0  # seconds for which a wall clock that is ahead has stayed there before it is followed
UNWATCHED: Final = 5.0  # seconds between two looks at it, after which it counts as set anew
FAR: Final[Micros] = 3_600 * SECOND  # a wall clock that is further behind is not used
UNSET: Final[Micros] = 1_735_689_600 * SECOND  # 2025-01-01: a wall clock before that was never set

EXACT: Final[Micros] = 1_000  # what rounding may cost
AGREES: Final[Micros] = SECOND // 5  # of two clocks that agree
DAY: Final[Micros] = 86_400 * SECOND
STORM: Final = (150.0, 210.0)  # seconds: a wall clock is followed after one minute
APART: Final = (3.0, 12.0)  # seconds between two troubles of a wall clock
LONG_APART: Final = (62.0, 70.0)  # likewise, so that the store's time may follow before the next one
BELIEVED: Final = (1.0, 30.0)  # seconds ahead at an opening, which are believed, and made up for at half speed
RESTARTS: Final = 2  # with the disruptions of an embedded world fewer than quarantine a call
AHEAD: Final = (40.0, 90.0)  # seconds by which a server's clock jumps
AHEAD_FOR: Final = (2.0, 20.0)
LAST_JUMP: Final = 60.0  # likewise, just before a world is healed
HEARD_WITHIN: Final = 2.0  # seconds in which every process has heard the time of its store
LATE_BY: Final = 12.0  # seconds, in fair weather: until a run is at work again whose timer is due
WRITTEN_WITHIN: Final = 30.0  # seconds after it was decided that a slot starts; of a file
WRITTEN_LATE: Final = 150.0  # likewise, by a process that was frozen or cut off meanwhile
PROBED_AFTER: Final = 3.0  # seconds after a clock was put right
PROBES: Final = 6
NAPS: Final = (3.0, 7.0, 25.0, 60.0)
DELAYS: Final = (5.0, 20.0, 60.0)
DEADLINE: Final = 7.0  # of `hasty_saga`

_decode: Final = msgspec.json.Decoder(Decision).decode


class ServerClock(SimClock):
    """The clock of a server: all processes get its time, right or wrong."""

    def boot(self) -> Micros:
        """Give what drives the store's time."""
        return super().boot() + self.skew


class Offsets:
    """By how much the store's time was ahead of the true time, from when on."""

    def __init__(self) -> None:
        self._at: list[float] = []
        self._offsets: list[Micros] = []

    def add(self, at: float, offset: Micros) -> None:
        """Add what it is now."""
        if not self._offsets or self._offsets[-1] != offset:
            self._at.append(at)
            self._offsets.append(offset)

    def gained(self, since: float, until: float) -> float:
        """Give by how many seconds more than truly passed the store's time went on."""
        first = max(bisect_right(self._at, since) - 1, 0)
        found = self._offsets[first : bisect_right(self._at, until)]
        return sum(max(later - before, 0) for before, later in pairwise(found)) / SECOND

    def highest(self, since: float, until: float) -> float:
        """Give by how many seconds it was ahead at most."""
        first = max(bisect_right(self._at, since) - 1, 0)
        return max([0, *self._offsets[first : bisect_right(self._at, until)]]) / SECOND


def misdated(usual: Plan, chance: Chance) -> Plan:
    """Give a plan that lasts long enough for a wall clock to be followed, if the store is a file.

    With a server whose clock is ahead nobody measures how soon a loss is found: leases taken meanwhile end late.
    """
    if usual.style is not Style.EMBEDDED:
        return replace(usual, style=Style.MUTINY) if usual.style is Style.WATCH else usual
    storm = chance.within(*STORM)
    return replace(usual, storm=storm, demand=replace(usual.demand, within=storm * 0.6))


class Misdating:
    """What is done to the clock of a store, and what follows from that: nothing, in most worlds."""

    lag = 0.0  # seconds by which whatever is due may be late

    def __init__(self, world: World, chance: Chance, storm: float) -> None:
        self._world = world
        self._chance = chance
        self._storm = storm

    def begin(self) -> None:
        """Set the times at which the clock becomes wrong."""

    def wishes(self) -> list[Wish]:
        """Give what clients want beside the usual."""
        return []

    def allow(self, wanted: list[Wish]) -> list[Wish]:
        """Give what clients want, with all the ways in which it may end."""
        return wanted

    async def heal(self) -> None:
        """Put the clock right, for good."""

    def probe(self, clients: Clients) -> list[Wish]:
        """Ask for something now that the clock is right; gives what was asked for."""
        return []

    async def check(self) -> None:
        """Check, when all runs have ended, what began and ended when, by the true time."""


class WrongClock(Misdating):
    """A clock that is wrong. No wait may be shorter, by the true time, than clocks.md allows."""

    stale = 0.0  # seconds for which a process may not have heard what the store's time is
    written_within = WRITTEN_WITHIN

    def __init__(self, world: World, chance: Chance, storm: float) -> None:
        super().__init__(world, chance, storm)
        self._clock = world.store_clock
        self._offsets = Offsets()
        self._healed_at: float | None = None
        self._dated: list[Wish] = []

    def wishes(self) -> list[Wish]:
        """Draw runs that wait for a time: timers, delayed starts, deadlines."""
        chance, until = self._chance.fork("dated"), self._storm * 0.75
        for number in range(8):
            nap = chance.choose(NAPS)
            self._dated.append(Wish(f"dated-nap-{number}", sleeper, (1, nap), chance.within(0, until), (4,)))
        for number in range(4):
            at, delay = chance.within(0, until), chance.choose(DELAYS)
            self._dated.append(Wish(f"dated-delay-{number}", chain, (7, 1, 0.1), at, (8,), delay=delay))
        for number in range(3):
            states = STATES[hasty_saga.name]
            args = (2, 1, 0.3, "waits")
            self._dated.append(Wish(f"dated-end-{number}", hasty_saga, args, chance.within(0, until), (), states))
        return self._dated

    async def check(self) -> None:
        """Check, when all runs have ended, what began and ended when, by the true time."""
        for wish in self._dated:
            self._check_wait(wish)
        checker = self._world.checker
        for id, at in checker.inserted.items():
            found = slot_of(id)
            if found is not None:
                # One that waits in line was due, by the store's time, when it was put there.
                seen_for = at if SPECS[found[0]].overlap is Overlap.QUEUE else self.written_within
                early = (found[1] - DAWN) / SECOND - at - self._offsets.highest(at - seen_for, at)
                self._world.counts["slots dated"] += 1
                if early > AGREES / SECOND:
                    self._violated(f"{id} started {early:.3f} s before its slot")

    def _check_wait(self, wish: Wish) -> None:
        """Check that one run did not wait for a shorter time than it should have."""
        checker, span, since, until = self._world.checker, 0.0, None, None
        if wish.workflow is sleeper:
            span = wish.args[1]
            ends = [each.ended_at for each in checker.entries(wish.id, "work") if each.fate is Fate.ENDED]
            since = max(ends, default=0.0)
            until = checker.timers.get((wish.id, "sleep")) if ends else None
        elif wish.workflow is hasty_saga:
            span, since, until = DEADLINE, checker.inserted[wish.id], checker.ended_at(wish.id)
        else:
            span, since = wish.delay, checker.inserted[wish.id]
            until = min([each.begun_at for each in checker.entries(wish.id, "work")], default=None)
        if until is None:
            return
        self._world.counts["waits dated"] += 1
        gained = self._gained(since, until)
        if until - since < span - gained - AGREES / SECOND:
            self._violated(
                f"{wish.id} waited for {until - since:.3f} s, not {span:g} s, from {since:.3f} to {until:.3f}; the"
                f" store's time gained {gained:.3f} s meanwhile"
            )

    def _gained(self, since: float, until: float) -> float:
        """Give by how many seconds more than truly passed the store's time went on for a process."""
        return self._offsets.gained(since - self.stale, until)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._world.loop.call_later(seconds, lambda: act() if self._healed_at is None else None)

    def _set(self, skew: Micros, what: str) -> None:
        """Set the clock of the store."""
        if skew == self._clock.skew:
            return
        self._clock.skew = skew
        self._world.note("nemesis:", "the clock of the store is", what, f"{skew / SECOND:.3f}")

    def _violated(self, facts: str) -> None:
        self._world.checker.violated("I25", facts)


class WrongServer(WrongClock):
    """The clock of a server jumps ahead, and is put right: nothing is moved for good."""

    stale = 2 * HEARD_WITHIN
    written_within = WRITTEN_LATE
    lag = max(*AHEAD, LAST_JUMP)

    def begin(self) -> None:
        """Set the times of the jumps."""
        self._world.committed = self._look
        self._world.ahead_at = lambda at: self._offsets.highest(at, at)
        for _ in range(2 + self._chance.below(2)):
            self._later(self._chance.within(3, self._storm * 0.7), self._jump)

    def allow(self, wanted: list[Wish]) -> list[Wish]:
        """Let runs complete whose deadline was set while the clock was ahead: it is late by as much."""
        return [
            replace(wish, states=(*wish.states, "completed")) if wish.workflow is hasty_saga else wish
            for wish in wanted
        ]

    async def heal(self) -> None:
        """Jump once more, put the clock right, and ask for runs that need the time soon afterwards."""
        self._put_right()
        self._jump_by(LAST_JUMP)
        await rest(self._chance.within(2, 6))
        self._healed_at = self._world.loop.time()
        self._put_right()

    def probe(self, clients: Clients) -> list[Wish]:
        """Ask for runs that wait a little: the clock is right, so they wait for no longer than they should."""
        wanted = [
            Wish(f"dated-probe-{number}", sleeper, (1, self._chance.choose(NAPS[:2])), PROBED_AFTER, (4,))
            for number in range(PROBES)
        ]
        self._dated += wanted
        clients.ask(wanted)
        return wanted

    async def check(self) -> None:
        """Check also that what began after the clock was put right was not late by how much it had been ahead."""
        await super().check()
        for wish in self._dated:
            self._check_late(wish)

    def _check_late(self, wish: Wish) -> None:
        entries = self._world.checker.entries(wish.id, "work")
        if wish.workflow is not sleeper or self._healed_at is None:
            return
        ends = [each.ended_at for each in entries if each.fate is Fate.ENDED]
        until = self._world.checker.timers.get((wish.id, "sleep"))
        if not ends or until is None:
            return  # it has not ended, which is another violation
        since = max(ends)
        # No process could see that it was due while the last one that had it was dead, and not missed yet.
        late = until - since - wish.args[1] - self._world.orphaned(wish.id, since + wish.args[1], until)
        if since >= self._healed_at + self.stale - HEARD_WITHIN and late > LATE_BY:
            self._violated(
                f"{wish.id} waited for {until - since:.3f} s, not {wish.args[1]:g} s, and the clock was right again"
                f" {since - self._healed_at:.3f} s before"
            )

    def _gained(self, since: float, until: float) -> float:
        """Give that; also if the clock was put right just before, and the process has not heard that yet."""
        return max(super()._gained(since, until), self._offsets.highest(since - self.stale, until))

    def _jump(self) -> None:
        if self._clock.skew == 0:
            self._jump_by(self._chance.within(*AHEAD))
            self._later(self._chance.within(*AHEAD_FOR), self._put_right)

    def _jump_by(self, seconds: float) -> None:
        # A process whose question is on a long way knows only that the time was not later when it asked.
        self.stale = 2 * HEARD_WITHIN + self._world.network.weather.lag
        self._set(round(seconds * SECOND), "ahead by")
        self._world.counts["server clocks ahead"] += 1
        # By the server's clock all processes were silent for so long, as if they had stood still.
        self._world.checker.hurt |= self._world.checker.alive
        self._world.checker.frozen |= self._world.checker.alive
        self._world.checker.misled |= self._world.checker.alive
        self._look()

    def _put_right(self) -> None:
        self._set(0, "right")
        self._look()

    def _look(self) -> None:
        self._offsets.add(self._world.loop.time(), self._world.now - DAWN - self._world.loop.now)


class WrongMachine(WrongClock):
    """The wall clock of the machine that has the file is wrong in every way; its boot clock is right."""

    stale = 2 * WATCH_EVERY / SECOND

    def __init__(self, world: World, chance: Chance, storm: float) -> None:
        super().__init__(world, chance, storm)
        self._lanes: OwnerLanes = vars(world)["_lanes"]
        self._connection: sqlite3.Connection = vars(world)["_connection"]
        self._sql = load_queries("sqlite")
        self._last: tuple[Micros, Micros] | None = None  # the true time, and the store's
        self._seen: tuple[float, Micros] | None = None  # the last look at the wall clock: when, and how wrong it was
        self._stays_since = 0.0  # since when each such look has found it in the same place
        self._restarts = RESTARTS
        self._node: Node = world.nodes[0]

    def begin(self) -> None:
        """Set the times of what becomes of the wall clock; perhaps it was never set before the world begins."""
        world, chance = self._world, self._chance
        world.opening = self._open
        world.committed = self._look
        world.checker.decided = self._check_late
        at = 0.0
        if chance.happens(0.5):
            closed_for = chance.choose((10 * SECOND, 45 * SECOND, 3_000 * SECOND, 3 * DAY)[: 2 if self._slotted else 4])
            self._connection.execute(self._sql["set_time"], {"time": DAWN - closed_for})
            self._unset()
            at = chance.within(2, 30)
            self._later(at, self._put_right)
        while at < self._storm * 0.8:
            at += chance.within(*chance.choose((APART, APART, LONG_APART)))
            for seconds, act in self._trouble():
                at += seconds
                self._later(at, act)
        self._tick()

    async def heal(self) -> None:
        """Put the clock right."""
        self._healed_at = self._world.loop.time()
        self._put_right()

    async def check(self) -> None:
        """Check also that the store's time comes to be right, now that the wall clock is."""
        await super().check()
        lead = max(self._world.now - self._clock.wall(), 0) / SECOND
        for _ in range(round(2 * lead + STAYED) + 10):
            if abs(self._world.now - self._clock.wall()) <= AGREES:
                return
            await rest(1)
        lead = (self._world.now - self._clock.wall()) / SECOND
        self._violated(f"the wall clock is right for long, and the store's time is ahead of it by {lead:.3f} s")

    @property
    def _slotted(self) -> bool:
        return self._node.schedules

    # --- troubles

    def _trouble(self) -> Iterator[tuple[float, Callable[[], None]]]:
        """Draw one trouble of the clock: what happens, each so many seconds after the one before."""
        chance = self._chance
        restarts = (self._opened_ahead, self._opened_behind, self._refused, self._rebooted) if self._restarts else ()
        kinds = (self._ahead_for_a_moment, self._to_and_fro, self._behind, self._far_behind)
        yield from chance.choose((*kinds, *restarts, *restarts))()

    def _ahead_for_a_moment(self) -> Iterator[tuple[float, Callable[[], None]]]:
        yield 0.0, lambda: self._set(self._far_or_near(), "ahead by")
        yield self._chance.within(1, STAYED - 2), self._put_right

    def _to_and_fro(self) -> Iterator[tuple[float, Callable[[], None]]]:
        for _ in range(3 + self._chance.below(5)):
            sign = self._chance.choose((1, 1, -1))
            skew = sign * self._far_or_near()
            yield self._chance.within(1, 15), lambda skew=skew: self._set(skew, "off by")  # type: ignore[misc] # bound now
        yield self._chance.within(1, 15), self._put_right

    def _behind(self) -> Iterator[tuple[float, Callable[[], None]]]:
        skew = -round(self._chance.within(1, 30) * SECOND)
        yield 0.0, lambda: self._set(skew, "behind by")
        yield self._chance.within(5, 40), self._put_right

    def _far_behind(self) -> Iterator[tuple[float, Callable[[], None]]]:
        skew = -round(self._chance.within(2, 2_000) * FAR)
        yield 0.0, lambda: self._set(skew, "behind by")
        yield self._chance.within(5, 40), self._put_right

    def _opened_ahead(self) -> Iterator[tuple[float, Callable[[], None]]]:
        skew = round(self._chance.within(*BELIEVED) * SECOND)
        yield 0.0, lambda: self._restart_with(skew, "ahead by")
        yield self._chance.within(18, 30), self._put_right

    def _opened_behind(self) -> Iterator[tuple[float, Callable[[], None]]]:
        skew = -round(self._chance.within(5, 50) * SECOND)
        yield 0.0, lambda: self._restart_with(skew, "behind by")
        yield self._chance.within(18, 40), self._put_right

    def _refused(self) -> Iterator[tuple[float, Callable[[], None]]]:
        skew = -round(self._chance.within(2, 2_000) * FAR)
        yield 0.0, lambda: self._restart_with(skew, "behind by")
        yield self._chance.within(18, 25), self._put_right

    def _rebooted(self) -> Iterator[tuple[float, Callable[[], None]]]:
        def reboot() -> None:
            self._unset()
            self._restart()

        yield 0.0, reboot
        yield self._chance.within(18, 30), self._put_right

    def _far_or_near(self) -> Micros:
        return round(self._chance.within(*self._chance.choose(((1, 50), (3_700, 90_000), (1e6, 3e7)))) * SECOND)

    def _restart_with(self, skew: Micros, what: str) -> None:
        self._set(skew, what)
        self._restart()

    def _restart(self) -> None:
        """Kill the owner of the file: it is started again soon, while the clock is wrong."""
        if self._restarts and self._node.up:
            self._restarts -= 1
            self._world.checker.hurt.add(self._node.life.name)
            self._node.life.die()

    def _unset(self) -> None:
        self._set(self._chance.below(100) * SECOND - DAWN - self._world.loop.now, "not set:")

    def _put_right(self) -> None:
        self._set(0, "right")

    def _set(self, skew: Micros, what: str) -> None:
        self._world.counts["wall clocks set wrong"] += skew not in (0, self._clock.skew)
        super()._set(skew, what)

    # --- the store's time

    def _tick(self) -> None:
        """Compare both clocks twice a second, as the owner of a file does."""
        if self._node.life.vital is Vital.RUNNING:
            self._see_clock()
            self._lanes.correct_time()
            self._look()
        self._world.loop.call_later(WATCH_EVERY / SECOND, self._tick)

    def _see_clock(self) -> None:
        """Note what the owner of the file can know: not what the clock was in the moments between two looks."""
        at, skew = self._world.loop.time(), self._clock.skew
        if self._seen is None or self._seen[1] != skew or at - self._seen[0] > UNWATCHED:
            self._stays_since = at
        self._seen = at, skew

    def _look(self) -> None:
        """Check how the store's time went on since the last look."""
        at, now = self._world.loop.now, self._world.now
        if self._last is not None:
            passed, gained = at - self._last[0], now - self._last[1] - (at - self._last[0])
            if now < self._last[1]:
                self._violated(f"the store's time went back by {(self._last[1] - now) / SECOND:.6f} s")
            elif gained > EXACT:
                self._check_gain(gained, now)
            elif gained < -passed // 2 - EXACT:
                self._violated(
                    f"in {passed / SECOND:.6f} s the store's time went on by {(passed + gained) / SECOND:.6f} s"
                )
        self._take(at, now)

    def _check_gain(self, gained: Micros, now: Micros) -> None:
        """Check that the store's time may follow the wall clock."""
        stayed = self._world.loop.time() - self._stays_since
        if stayed < STAYED or now > self._clock.wall() + EXACT:
            self._violated(
                f"the store's time followed the wall clock by {gained / SECOND:.3f} s; that clock is seen in its place"
                f" for {stayed:.3f} s, and is now ahead by {self._clock.skew / SECOND:.3f} s"
            )
        self._world.counts["store times followed"] += 1

    def _take(self, at: Micros, now: Micros) -> None:
        self._last = at, now
        self._offsets.add(at / SECOND, now - DAWN - at)

    async def _open(self) -> None:
        """Open the file as a process does that becomes its owner; one that may not ends."""
        life = self._node.life
        if not self._open_once():
            self._world.checker.stopping.add(life.name)  # it ends with an error, and is started again
            life.die()
            await self._world.loop.create_future()

    def _open_once(self) -> bool:
        world, store_time = self._world, self._lanes.now
        if self._clock.skew > BELIEVED[1] * SECOND:
            # A clock that is far ahead at an opening is believed, and only a person can say that it was wrong.
            self._set(round(self._chance.within(*BELIEVED) * SECOND), "ahead by")
        wall, written = self._clock.wall(), self._connection.total_changes
        (newest,) = self._connection.execute(self._sql["latest_time"]).fetchone()
        far = wall >= UNSET and newest - wall > FAR
        try:
            time: Any = vars(opening)["_time"](self._connection, self._sql, self._clock, refused_by="simulated")
        except StoreClockError:
            world.counts["openings refused for the clock"] += 1
            world.note(self._node.life.name, "may not open the file: the clock is behind")
            if not far or self._connection.total_changes != written:
                self._violated(
                    f"refused: the newest time is {newest}, the wall clock's {wall}, or the file was changed"
                )
            return False
        if far:
            self._violated(f"opened, and the newest time is {newest}, the wall clock's {wall}")
        for name in type(store_time).__slots__:
            setattr(store_time, name, getattr(time, name))
        now = store_time()
        if not newest <= now <= max(newest, wall) + EXACT:
            self._violated(f"opened at {now}, and the newest time is {newest}, the wall clock's {wall}")
        world.counts["openings with a wrong clock"] += abs(self._clock.skew) > SECOND
        self._take(world.loop.now, now)
        return True

    def _check_late(self, seen: DecisionSeen) -> None:
        """Check that an attempt which is judged late has really had its time."""
        if seen.actor != SUPERVISOR or _decode(seen.body).cause is not Cause.LATE:
            return
        now, checker = self._world.loop.time(), self._world.checker
        for entry in checker.entries(checker.runs[seen.run].id, seen.call):
            if entry.fence == seen.fence:
                timeout = entry.attempt.policy.timeout / SECOND
                gained = self._offsets.gained(entry.begun_at - self.stale, now)
                self._world.counts["timeouts dated"] += 1
                if now - entry.begun_at < timeout - gained - 1:
                    self._violated(f"{entry} was judged late after {now - entry.begun_at:.3f} s, not {timeout:g} s")
