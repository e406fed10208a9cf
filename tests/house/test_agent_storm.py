"""Agents as processes in a storm: killed, frozen, drained, their store's owner killed; nothing lost, nothing twice.

`WATCHBILL_CHAOS_SECONDS=90` makes it long, as `make soak` does. A trigger of the test's own writes down on PostgreSQL
who was pronounced lost or lost a shard, so that each can be traced to a fault that was injected.
"""

import asyncio
import contextlib
import itertools
import json
import os
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.facts import report
from tests.house import deck
from tests.house.commands import crowd, is_alive
from tests.house.conftest import Kept, check_soundness
from tests.house.ledger import Ledger, Line, record
from tests.house.proxy import Link, PostgresProxy, Proxy, SocketProxy
from tests.house.resources import MOST_FILES, MOST_GUESTS, exceeded_by, exceeded_in, taken_by
from tests.house.storm import DECK, LEASE, SMALL, Span, Storm
from tests.house.witness import WITNESS
from tests.pace import Pace
from tests.servers import memory_disk, postgres_server
from tests.store.postgres import emptied
from watchbill import StoreError
from watchbill.app.hall import Hall

SECONDS = float(os.environ.get("WATCHBILL_CHAOS_SECONDS", "20"))
PEACE = 0.15  # seconds between two starts
HEALED_WITHIN = 150.0  # an undo waits until an attempt that was lost by silence cannot act: a lease and a minute
LOOK_EVERY = 0.1
NOTICES_WITHIN = 2.5  # seconds: a beat comes every two, and this machine is busy
ADDS = {shape.workflow.name: shape.adds for shape in deck.SHAPES}
COMPLETED, UNDONE = 10, 12


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    """An empty store; on PostgreSQL with a witness, so with a server of its own."""
    if request.param == "file":
        yield Kept(f"sqlite:///{tmp_path}/store.db")
        return  # its file is looked into with all others
    with postgres_server(place=memory_disk()) as server:
        asyncio.run(emptied(server.url()))
        server.sql(WITNESS)
        yield Kept(server.url())
        check_soundness(server.url())


@pytest.fixture
def client(kept: Kept) -> Iterator[Any]:
    """A client in the test's own process, which has no rooms."""
    app = deck.app
    back = app.meet_in(Hall(kept.url, app.namespace, app.registry, app.events))
    yield app.sync
    app.sync.close()
    back()


class Demand:
    """Starts runs in a thread of its own, and tells the ledger of every acknowledgement."""

    def __init__(
        self,
        client: Any,
        ledger: str,
        seed: int,
        *,
        shapes: tuple[deck.Shape, ...] = deck.SHAPES,
        peace: float = PEACE,
        count: int = 1_000_000,
    ) -> None:
        self.refused: list[str] = []
        self._client = client
        self._ledger = ledger
        self._shapes = shapes
        self._chance = random.Random(seed)
        self._peace = peace
        self._count = count
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._start_runs)
        self._thread.start()

    def end(self) -> None:
        """Start nothing more."""
        self._enough.set()
        self.join()

    def join(self) -> None:
        """Wait until all are started."""
        self._thread.join()

    def _start_runs(self) -> None:
        for number in range(1, self._count + 1):
            if self._enough.wait(self._peace):
                return
            shape = self._chance.choice(self._shapes)
            id = f"{shape.workflow.name}-{number}"
            try:
                self._client.start(shape.workflow, number, id=id)
            except StoreError as error:
                self.refused.append(f"{id}: {error}")
            else:
                record(self._ledger, "ACK", id, number=number)


def wait(there: Callable[[], bool], what: Callable[[], object], within: float = HEALED_WITHIN) -> None:
    """Wait until something is so; `what` says how it is instead."""
    end = time.time() + within
    while not there():
        assert time.time() < end, f"not within {within:g} s: {what()}"
        time.sleep(LOOK_EVERY)


def healed(kept: Kept, client: Any, within: float = HEALED_WITHIN) -> int:
    """Wait until every run has ended; what was lost too often by bad luck is tried again, and counted."""
    tried: set[str] = set()

    def ended() -> bool:
        for (id,) in kept.ask("SELECT run_id FROM watchbill.attempt WHERE state = 3 AND why = 'quarantine'"):
            if id not in tried:
                tried.add(id)
                client.handle(id).retry(reason="the storm is over")
        return kept.ask("SELECT count(*) FROM watchbill.run WHERE status < 10") == [(0,)]

    wait(ended, lambda: open_work(kept), within)
    return len(tried)


def open_work(kept: Kept) -> str:
    runs = kept.ask("SELECT id, status, held FROM watchbill.run WHERE status < 10")
    rows = kept.ask("SELECT run_id, call, state, agent, losses, failures, why FROM watchbill.attempt")
    agents = kept.ask("SELECT id, state, until, beat_at, name FROM watchbill.agent WHERE state = 1")
    return f"runs {runs}\nattempts {rows}\nagents {agents}"


def agents_of(kept: Kept, state: int) -> list[int]:
    """Give the processes of the agents in a state."""
    return [json.loads(info)["pid"] for (info,) in kept.ask(f"SELECT info FROM watchbill.agent WHERE state = {state}")]


@pytest.mark.timeout(SECONDS + 2 * HEALED_WITHIN + 400)
def test_a_storm_over_four_agents_loses_nothing_and_does_nothing_twice(
    kept: Kept, client: Any, ledger: Ledger, pace: Pace
) -> None:
    seed = int(os.environ.get("WATCHBILL_SEED", random.randrange(1_000_000)))
    print(f"replay the timetable with WATCHBILL_SEED={seed}")
    with contextlib.ExitStack() as cleanup:
        there = cleanup.enter_context(crowd(kept.url))
        storm = Storm(seed, there, ledger.address, rooms=1 if kept.is_file else 2)
        cleanup.callback(lambda: print(storm.said()))
        demand = Demand(client, ledger.address, seed)
        cleanup.callback(demand.end)
        storm.rage(SECONDS)
        healed_at = time.time()
        demand.end()
        storm.wait()
        quarantined = healed(kept, client)
        took = time.time() - healed_at
        wait(lambda: all(map(is_alive, agents_of(kept, 1))), lambda: f"alive, but dead: {agents_of(kept, 1)}")
        listed = json.loads(there.run("agents", "list", "-o", "json"))
        verdict = Verdict(kept, ledger.lines())
        verdict.calls()
        verdict.losses(storm, pace.limit(NOTICES_WITHIN))
        survivors = [one.pid for one in storm.all()]
        workers = [pid for agent in storm.agents for pid in agent.children()]
        print("taken:", *map(taken_by, survivors + workers), sep="\n")
        assert exceeded_by([agent.pid for agent in storm.agents] + workers) == []
        guests = len(survivors) * MOST_GUESTS if kept.is_file else 0
        assert exceeded_by([rooms.pid for rooms in storm.rooms], MOST_FILES + guests) == []
        processes = len(survivors) + 1  # and who starts runs
        wait(lambda: exceeded_in(kept, processes) == {}, lambda: exceeded_in(kept, processes))
    counts = Counter(
        {**storm.counts, **verdict.counts, "quarantined": quarantined, "starts refused": len(demand.refused)}
    )
    summary = ", ".join(f"{counts[what]} {what}" for what in sorted(counts))
    store = "SQLite" if kept.is_file else "PostgreSQL"
    line = f"agent storm on {store}: seed {seed}, {SECONDS:g} s, {storm.faults} faults"
    print(f"{line}: {summary}, healed within {took:.1f} s")
    report(
        f"{line}: {summary}, {len(verdict.violations)} violations",
        faults=storm.faults,
        violations=len(verdict.violations),
    )
    assert verdict.violations == []
    assert storm.wrong == []
    assert [agent for agent in listed if agent["running"]] == [], "slots are taken by nobody"
    assert kept.ask("SELECT count(*) FROM watchbill.attempt") == [(0,)]
    least = {
        "runs": 2 * SECONDS,
        "runs undone": 1,
        "calls": 7 * SECONDS,
        "kill rooms": SECONDS // 8,
        "bodies that ran again": 1,
    }
    assert {what: counts[what] for what, count in least.items() if counts[what] < count} == {}, "too little happened"
    assert storm.faults >= SECONDS * 150 / 90


LINKED_RUNS = 200
LAST_RUNS = 40  # when all is well again: more than two of the three agents have slots for
LAST = "sequence-last-"
LINKED_AGENTS = 2  # and one whose link is whole: it is never lost
WORSE = (Link.CUT, Link.SLOW, Link.HALF_OPEN, Link.DEAF)
SWITCHES = 12
HEALED_AFTER_LINKS = 90.0  # an answer that never comes is waited for, for fifteen seconds
WITHOUT_UNDO = tuple(shape for shape in deck.SHAPES if shape.workflow is not deck.trip)  # an undo waits for a minute


@contextlib.contextmanager
def links(kept: Kept, seed: int) -> Iterator[list[Proxy]]:
    """Proxies for agents that start from now on."""
    with contextlib.ExitStack() as cleanup:
        if kept.is_file:
            # A Unix socket does not lose bytes; whoever lost some here hears of it when the link is better.
            made: list[Proxy] = [
                SocketProxy(Path(kept.url.removeprefix("sqlite:///") + ".socket"), mends=True, seed=seed)
            ]
        else:
            made = [PostgresProxy(kept.url, seed=seed + n) for n in range(LINKED_AGENTS)]
        for one in made:
            cleanup.callback(one.close)
        yield made


@pytest.mark.timeout(SWITCHES * 2 + HEALED_AFTER_LINKS + 400)
def test_links_that_are_cut_slow_half_open_or_deaf_lose_nothing_and_do_nothing_twice(
    kept: Kept, client: Any, ledger: Ledger
) -> None:
    seed = int(os.environ.get("WATCHBILL_SEED", random.randrange(1_000_000)))
    print(f"replay the timetable with WATCHBILL_SEED={seed}")
    chance = random.Random(seed)
    with contextlib.ExitStack() as cleanup:
        there = cleanup.enter_context(crowd(kept.url))
        place = {deck.LEDGER: ledger.address}
        there.rooms(DECK, **place)
        near = there.agent(DECK, *SMALL, "--slots", "2", **place)  # most is done by the others
        assert client.start(deck.sequence, 0, id="sequence-0").result(timeout=HEALED_WITHIN) == ADDS["sequence"]
        proxies = cleanup.enter_context(links(kept, seed))
        urls = [
            one.url if isinstance(one, PostgresProxy) else kept.url for one in (proxies * LINKED_AGENTS)[:LINKED_AGENTS]
        ]
        far = [there.start("agent", DECK, *SMALL, **place, WATCHBILL_STORE=url) for url in urls]
        for agent in far:
            agent.wait_for("is at work")
        cleanup.callback(lambda: print(*("".join(agent.said)[-2_000:] for agent in [near, *far]), sep="---\n"))
        demand = Demand(client, ledger.address, seed, shapes=WITHOUT_UNDO, peace=0.05, count=LINKED_RUNS)
        cleanup.callback(demand.end)
        for n in range(SWITCHES):
            for one, worse in zip(proxies, itertools.cycle(chance.sample(WORSE, len(WORSE))), strict=False):
                one.switch(worse if n < len(WORSE) or chance.random() < 0.8 else Link.WHOLE)
            time.sleep(chance.uniform(1, 2))  # how long it is so
        for one in proxies:
            one.switch(Link.WHOLE)
        healed_at = time.time()
        demand.join()
        quarantined = healed(kept, client, HEALED_AFTER_LINKS)
        took = time.time() - healed_at
        assert all(is_alive(one.pid) for one in [near, *far]), "an agent has ended by itself"
        everybody = {agent.pid for agent in [near, *far]}
        wait(lambda: set(agents_of(kept, 1)) == everybody, lambda: f"of {everybody} there are {agents_of(kept, 1)}")
        print("links:", *map(taken_by, everybody))
        assert exceeded_by(everybody) == [], "each link that was cut has left something open"
        lost = agents_of(kept, 2)
        verdict = Verdict(kept, ledger.lines())
        verdict.calls()
        idle = everybody
        until = time.monotonic() + HEALED_WITHIN
        for first in itertools.count(0, LAST_RUNS):  # whoever still waits for an answer that never comes has a while
            numbers = range(first, first + LAST_RUNS)
            last = [client.start(deck.sequence, n, id=f"{LAST}{n}") for n in numbers]
            for n, handle in zip(numbers, last, strict=True):
                assert handle.result(timeout=HEALED_WITHIN) == n + ADDS["sequence"]
            idle = everybody - {
                line.host for line in ledger.lines() if line.what == "END" and line.run.startswith(LAST)
            }
            if not idle or time.monotonic() > until:
                break
    hosts = Counter(line.host for line in ledger.lines() if line.what == "END")
    summary = ", ".join(f"{verdict.counts[what]} {what}" for what in sorted(verdict.counts))
    print(f"links: {summary}, {quarantined} quarantined, {len(lost)} agents lost, healed within {took:.1f} s, {hosts}")
    assert verdict.violations == []
    assert demand.refused == []
    assert set(lost) <= {agent.pid for agent in far}, "an agent was lost whose link was whole"
    assert not idle, "somebody does nothing, though all links are whole"
    assert verdict.counts["runs"] == LINKED_RUNS + 1


class Verdict:
    """Judges by the store and the ledger what has become of everything."""

    def __init__(self, kept: Kept, lines: list[Line]) -> None:
        self._kept = kept
        self._lines = lines
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()

    def calls(self) -> None:
        """Every acknowledged run has ended rightly; each call has one outcome, under the largest fence that began."""
        runs = dict(self._kept.ask("SELECT id, status FROM watchbill.run"))
        journal = self._kept.ask(
            "SELECT run.id, journal.key, journal.fence, journal.kind, journal.body FROM watchbill.journal"
            " JOIN watchbill.run ON run.num = journal.run ORDER BY journal.run, journal.seq"
        )
        acked = {line.run: line.number for line in self._lines if line.what == "ACK"}
        self._refuse(f"acknowledged and lost: {id}" for id in acked.keys() - runs.keys())
        undone = {id for id in runs if id.startswith("trip-") and deck.fails(int(id.removeprefix("trip-")))}
        wrong = {id: status for id, status in runs.items() if status != (UNDONE if id in undone else COMPLETED)}
        self._refuse(f"{id} ended with status {status}" for id, status in wrong.items())
        accepted: dict[tuple[str, str], int] = {}
        results: dict[str, int] = {}
        for run, key, fence, kind, body in journal:
            if kind == 0:
                if (run, key) in accepted:
                    self.violations.append(f"{run} {key} is in the journal twice")
                accepted[run, key] = fence
            if kind == 3 and run not in undone:
                results[run] = int(body)
        for run, number in acked.items():
            if run not in undone and results.get(run) != number + ADDS[run.split("-")[0]]:
                self.violations.append(f"{run} of {number} gave {results.get(run)}")
        self._judge_bodies(accepted)
        self._judge_undos(accepted, undone)
        self.counts["runs"] = len(runs)
        self.counts["calls"] = len(accepted)

    def _judge_bodies(self, accepted: dict[tuple[str, str], int]) -> None:
        begun: dict[tuple[str, str], list[int]] = defaultdict(list)
        effects: dict[tuple[str, str], list[int]] = defaultdict(list)  # that a sink which knows fences would let in
        ended = set()
        for line in self._lines:
            call = (line.run, line.call)
            if line.what == "BEGIN":
                begun[call].append(line.fence)
            elif line.what == "EFFECT":
                if line.fence >= max(begun[call]):
                    effects[call].append(line.fence)
                else:
                    self.counts["effects refused by their fence"] += 1
            elif line.what == "END":
                ended.add((*call, line.fence))
        for call, fence in accepted.items():
            fences = begun[call]
            if (*call, fence) not in ended:
                self.violations.append(f"{call} is in the journal, but never ended under fence {fence}: {fences}")
            if fence != max(fences, default=None):
                self.violations.append(f"{call} is in the journal under {fence}, and began under {fences}")
            if len(fences) != len(set(fences)):
                self.violations.append(f"{call} began twice under one fence: {fences}")
            if effects[call][-1:] != [fence]:
                self.violations.append(f"the last effect of {call} is not that of {fence}: {effects[call]}")
            self.counts["bodies that ran again"] += len(fences) - 1
            self.counts["effects that were done again"] += len(effects[call]) - 1
            self.counts["began after a newer one"] += fences != sorted(fences)
        self._refuse(f"{call} ran, and is not in the journal" for call in begun.keys() - accepted.keys())

    def _judge_undos(self, accepted: dict[tuple[str, str], int], undone: set[str]) -> None:
        """A run that failed has undone each of its effects, in reverse order; no other run has undone anything."""
        calls: dict[str, list[str]] = defaultdict(list)
        for run, call in accepted:
            calls[run].append(call)
        for run, keys in calls.items():
            undos = [key.removeprefix("undo:") for key in keys if key.startswith("undo:")]
            if undos != ([key for key in keys if not key.startswith("undo:")][::-1] if run in undone else []):
                self.violations.append(f"{run} has undone {undos} of {keys}")
        self.counts["runs undone"] = len(undone)

    def losses(self, storm: Storm, noticed: float) -> None:
        """Nobody was pronounced lost, or lost a shard, without a fault of ours that kept it from saying it lives."""
        lost = agents_of(self._kept, 2)
        self.counts["agents lost"] = len(lost)
        if self._kept.is_file:
            # Who leaves while the owner is away has nobody to tell, and does not wait for ever.
            for pid in set(lost) - storm.drained:
                if pid not in storm.killed and longest(storm.frozen[pid]) < LEASE / 4:
                    self.violations.append(f"agent {pid} was pronounced lost, and nothing had been done to it")
            return
        witness = self._kept.ask("SELECT at, what, who, until FROM watchbill.witness WHERE what <> 'came'")
        pids = dict(self._kept.ask("SELECT who, pid FROM watchbill.witness WHERE what = 'came'"))
        for at, what, who, until in witness:
            self.counts["shards taken over"] += what == "took"
            pid = pids[who]
            if storm.killed.get(pid, float("inf")) <= at / 1e6:
                continue
            self.counts["taken after a silence"] += 1
            if until == 0 or until > at:
                self.violations.append(f"process {pid} was buried alive: {what} at {at / 1e6:.3f}")
                continue
            window = Span(until / 1e6 - LEASE * 2 / 3, until / 1e6)
            if (free := longest_between(storm.frozen[pid], window)) > noticed:
                self.violations.append(f"{what}: process {pid}, though it could have beaten for {free:.1f} s")

    def _refuse(self, found: Iterator[str]) -> None:
        self.violations += found


def longest(spans: list[Span]) -> float:
    return max((span.end - span.begin for span in spans), default=0.0)


def longest_between(spans: list[Span], window: Span) -> float:
    """Give the longest time within the window in which a process could have reached the store."""
    free, at = 0.0, window.begin
    for span in sorted(spans):
        free = max(free, min(span.begin, window.end) - at)
        at = max(at, span.end)
    return max(free, window.end - at)
