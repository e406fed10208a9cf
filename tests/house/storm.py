"""Storm: harm to agents and to those who drive their runs, by a timetable that a seed decides; it is remembered."""

import contextlib
import heapq
import itertools
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.house import deck
from tests.house.commands import Command, Crowd, is_alive

DECK: Final = "tests.house.deck:app"
AGENTS: Final = 4
SMALL: Final = ("--slots", "8", "--workers", "1", "--grace", "2s")
LEASE: Final = 8.0  # of an agent that beats every two seconds
FAULT_EVERY: Final = 0.5
ROOMS_EVERY: Final = 6.0
STARTING: Final = 0.1  # of the faults are for those who are just starting, or asleep
ORPHANED_FOR: Final = 30.0  # seconds, on a busy machine: one that was just starting finds out when it has started
ASLEEP_AT_ONCE: Final = 2  # of four hosts: others are to go on
SHORT, LONGER, BEYOND = (0.1, 1.0), (1.0, 5.0), (LEASE + 1, 12.0)  # seconds, of freezes
LENGTHS: Final = (BEYOND, SHORT, SHORT, LONGER, SHORT)  # in turn: also a short storm has one beyond the lease


class Span(NamedTuple):
    """A time in which somebody could do nothing."""

    begin: float
    end: float


class Storm:
    """Agents, and the rooms that drive their runs; what is done to them."""

    def __init__(self, seed: int, crowd: Crowd, ledger: str, *, rooms: int) -> None:
        self._chance = random.Random(seed)
        self._crowd = crowd
        self._place = {deck.LEDGER: ledger}
        self._table: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._end = 0.0
        self._asleep: dict[int, float] = {}  # pid -> since when
        self._orphans: list[int] = []
        self._leaving: list[Command] = []
        self.counts: Counter[str] = Counter()
        self.killed: dict[int, float] = {}  # pid -> when
        self.frozen: dict[int, list[Span]] = defaultdict(list)
        self.drained: set[int] = set()
        self.wrong: list[str] = []
        self.rooms = [self._open_rooms() for _ in range(rooms)]
        self.agents = [self._hire() for _ in range(AGENTS)]
        self.wait()

    @property
    def faults(self) -> int:
        """How many there were."""
        return self.counts.total()

    def rage(self, seconds: float) -> None:
        """Do harm for so long, then let everybody go on."""
        begun = time.time()
        self._end = begun + seconds
        self._at(begun + FAULT_EVERY, self._harm)
        self._at(begun + ROOMS_EVERY / 2, self._kill_rooms)
        while self._table:
            at, _, act = heapq.heappop(self._table)
            if at < self._end:
                time.sleep(max(0.0, at - time.time()))  # the moment itself
                act()
        for pid in tuple(self._asleep):
            self._thaw(pid)

    def wait(self) -> None:
        """Wait until all are at work, whoever they are now, and those who were told to leave have left."""
        for rooms in self.rooms:
            rooms.wait_for("scheduler, supervisor on")
        for agent in self.agents:
            agent.wait_for("is at work")
        for agent in self._leaving:
            code = agent.process.wait(30)
            if code != 0:
                self.wrong.append(f"an agent that was drained ended with {code}: {agent.said}")
        patience = time.time() + ORPHANED_FOR
        while time.time() < patience and any(map(is_alive, self._orphans)):
            time.sleep(0.05)
        self.wrong += [f"process {pid} has outlived its host" for pid in self._orphans if is_alive(pid)]
        self.wrong += [f"process {one.pid} ended by itself: {one.said}" for one in self.all() if not is_alive(one.pid)]

    def all(self) -> list[Command]:
        """Those who should be there."""
        return [*self.rooms, *self.agents]

    def said(self) -> str:
        """What those who are there have said, the end of it."""
        return "\n".join(f"--- {one.pid}\n{''.join(one.said)[-2_000:]}" for one in [*self.all(), *self._leaving])

    def _at(self, at: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._table, (at, next(self._order), act))

    def _hire(self) -> Command:
        return self._crowd.start("agent", DECK, *SMALL, **self._place)

    def _open_rooms(self) -> Command:
        return self._crowd.start("up", DECK, "--rooms", "scheduler,supervisor", **self._place)

    def _harm(self) -> None:
        self._at(time.time() + FAULT_EVERY, self._harm)
        acts = [self._kill_host, self._kill_worker, self._freeze_host, self._freeze_worker, self._drain]
        self._chance.shuffle(acts)
        # Rather to one that is at work: who dies at its start again and again has nothing to lose.
        places = sorted(range(AGENTS), key=lambda place: (not self._is_at_work(place), self._chance.random()))
        if self._chance.random() < STARTING:
            places.reverse()
        elif not self._is_at_work(places[0]):
            acts.sort(key=self._kill_host.__eq__)  # only if nothing else is possible
        for act in acts:  # one of them is possible
            if act(places[0]):
                self.counts[act.__name__.strip("_").replace("_", " ")] += 1
                return

    def _is_at_work(self, place: int) -> bool:
        host = self.agents[place]
        return host.pid not in self._asleep and host.says("is at work")

    def _kill_host(self, place: int) -> bool:
        host = self.agents[place]
        self._orphans += host.children()
        self._kill(host)
        self.agents[place] = self._hire()
        return True

    def _kill_worker(self, place: int) -> bool:
        workers = self.agents[place].children()
        # The first worker reads the program for its host: without it there is no agent, and it says so and ends.
        if not workers or not self._is_at_work(place):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._chance.choice(workers), signal.SIGKILL)
        return True

    def _freeze_host(self, place: int) -> bool:
        asleep = sum(agent.pid in self._asleep for agent in self.agents)
        return asleep < ASLEEP_AT_ONCE and self._freeze(self.agents[place].pid, self.counts["freeze host"])

    def _freeze_worker(self, place: int) -> bool:
        workers = self.agents[place].children()
        return bool(workers) and self._freeze(self._chance.choice(workers), self.counts["freeze worker"] + 1)

    def _drain(self, place: int) -> bool:
        host = self.agents[place]
        if not self._is_at_work(place):  # a signal to one that is starting is the kernel's business
            return False
        host.signal(signal.SIGTERM)
        self._leaving.append(host)
        self.drained.add(host.pid)
        self.agents[place] = self._hire()
        return True

    def _kill_rooms(self) -> None:
        self._at(time.time() + ROOMS_EVERY, self._kill_rooms)
        place = self.counts["kill rooms"] % len(self.rooms)
        if not self.rooms[place].says("scheduler, supervisor on"):  # on a busy machine it may not be there yet
            return
        self._kill(self.rooms[place])
        self.rooms[place] = self._open_rooms()
        self.counts["kill rooms"] += 1

    def _kill(self, command: Command) -> None:
        if not is_alive(command.pid):
            self.wrong.append(f"process {command.pid} had ended by itself: {command.said}")
        self._asleep.pop(command.pid, None)
        self.killed[command.pid] = time.time()
        command.kill()

    def _freeze(self, pid: int, number: int) -> bool:
        least, most = LENGTHS[number % len(LENGTHS)]
        if pid in self._asleep or time.time() + least > self._end:
            return False
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return False
        self._asleep[pid] = time.time()
        self._at(time.time() + self._chance.uniform(least, most), lambda: self._thaw(pid))
        return True

    def _thaw(self, pid: int) -> None:
        since = self._asleep.pop(pid, None)
        if since is not None:
            with contextlib.suppress(ProcessLookupError):  # its host was killed meanwhile
                os.kill(pid, signal.SIGCONT)
            self.frozen[pid].append(Span(since, time.time()))
