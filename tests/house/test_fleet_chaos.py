"""Three processes on one PostgreSQL under load: killed, frozen, cut off; nothing is lost, nothing is done again.

`WATCHBILL_CHAOS_SECONDS=60` makes it long, as `make soak` does. A trigger of the test's own writes down whoever takes
a shard from somebody else, and whoever is pronounced lost, so that each can be traced to a fault that was injected.
"""

import asyncio
import contextlib
import heapq
import itertools
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.facts import report
from tests.forked import fork
from tests.house.conftest import Kept, check_soundness
from tests.house.crew import SHAPES
from tests.house.ledger import Ledger, Line
from tests.house.resources import exceeded_by, exceeded_in, taken_by
from tests.house.witness import WITNESS, until
from tests.pace import Pace
from tests.servers import PostgresServer, memory_disk, postgres_server
from tests.store.postgres import by_hand, emptied

SECONDS = float(os.environ.get("WATCHBILL_CHAOS_SECONDS", "20"))
CREW = 3
LEASE = 5.0
FAULT_EVERY = 2.0
RESTART_EVERY = 5.0
LONGEST_RESTART = 1.5
CUT_EVERY = 2.0
CUT_AT_ONCE = 4  # backends
SPARED_FOR = 10.0  # one process is left alone for so long, then another: who is disturbed may not judge by silence
LONGEST_FREEZE = 45.0
REQUESTS = 20
HEALED_WITHIN = 90.0
NOTICES_WITHIN = 2.0  # a process that is able to reach the store again does within a second, and this machine is busy
ADDS = {shape.workflow.name: shape.adds for shape in SHAPES}


class Span(NamedTuple):
    """A time in which somebody could do nothing."""

    begin: float
    end: float


class Member:
    """One process of the crew, and what was done to it."""

    def __init__(self, url: str, ledger: str, log: Path) -> None:
        self._said = log.open("wb")
        self._zygote = fork(
            "tests.house.crew",
            *(url, ledger, str(LEASE)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        self.pid = 0
        self.frozen_at: float | None = None

    def live(self) -> None:
        """Begin a life."""
        assert self._zygote.stdin is not None
        self._zygote.stdin.write("go\n")
        self._zygote.stdin.flush()
        self.pid = int(self._line())

    def kill(self) -> int:
        """End this life; gives how it ended."""
        with contextlib.suppress(ProcessLookupError):  # it had ended by itself, and the answer says so
            os.kill(self.pid, signal.SIGKILL)
        return int(self._line())

    def freeze(self) -> None:
        """Stop it where it is."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)
        self.frozen_at = time.time()

    def thaw(self) -> Span:
        """Let it go on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)
        assert self.frozen_at is not None
        span, self.frozen_at = Span(self.frozen_at, time.time()), None
        return span

    def close(self) -> None:
        """End it, whatever has become of it; its process dies with the zygote."""
        self._zygote.kill()
        self._zygote.wait(10)
        for pipe in (self._zygote.stdin, self._zygote.stdout, self._said):
            with contextlib.suppress(OSError):
                pipe.close() if pipe is not None else None

    def _line(self) -> str:
        assert self._zygote.stdout is not None
        return self._zygote.stdout.readline().strip()


class Client:
    """The one who starts runs."""

    def __init__(self, url: str, ledger: str, log: Path) -> None:
        self._said = log.open("wb")
        self._process = fork(
            "tests.house.crew",
            *(url, ledger, "client"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        assert self._line() == "starting"

    def stop(self, requests: int = REQUESTS) -> None:
        """Start nothing more, but for the last requests."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"tail {requests}\n")
        self._process.stdin.flush()
        assert self._line() == "stopped"

    def answered(self) -> int:
        """Say how many of the last requests were answered rightly."""
        return int(self._line())

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate(timeout=10)
        self._said.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


class Standstills:
    """Remembers when the whole machine stood still: then nobody could renew, and no fault of ours was to blame."""

    LEAST = 1.0
    EVERY = 0.1

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        seen = time.time()
        while not self._over.wait(self.EVERY):
            now = time.time()
            if now - seen > self.LEAST:
                self.spans.append(Span(seen, now))
            seen = now

    def close(self) -> None:
        """Look no longer."""
        self._over.set()
        self._watch.join()


class Nemesis:
    """Does harm by a timetable that its seed decides, and remembers what it did."""

    def __init__(self, seed: int, server: PostgresServer, crew: list[Member]) -> None:
        self._chance = random.Random(seed)
        self._server = server
        self._crew = crew
        self._table: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._begun = time.time()
        self._end = self._begun + SECONDS
        self.counts: Counter[str] = Counter()
        self.killed: dict[int, float] = {}  # pid -> when
        self.frozen: dict[int, list[Span]] = defaultdict(list)
        self.outages: list[Span] = []
        self._away_since: float | None = None  # the server
        self.cuts: list[Span] = []
        self.died: list[str] = []

    def storm(self) -> None:
        """Do harm until the time is over, then heal."""
        for first, act in ((FAULT_EVERY, self._harm), (RESTART_EVERY / 2, self._crash), (CUT_EVERY / 2, self._cut)):
            self._at(self._begun + first, act)
        while self._table:
            at, _, act = heapq.heappop(self._table)
            if at >= self._end:
                continue
            time.sleep(max(0.0, at - time.time()))  # the moment itself
            act()
        self._come_back()
        for member in self._crew:
            if member.frozen_at is not None:
                self.frozen[member.pid].append(member.thaw())

    def _at(self, at: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._table, (at, next(self._order), act))

    def _harm(self) -> None:
        now = time.time()
        self._at(now + FAULT_EVERY, self._harm)
        spared = self._crew[int((now - self._begun) / SPARED_FOR) % len(self._crew)]
        exposed = [member for member in self._crew if member is not spared]
        awake = [member for member in exposed if member.frozen_at is None]
        if awake and self.counts["freezes"] <= self.counts["kills"]:
            self._freeze(self._chance.choice(awake))
        else:
            # In its sleep only if nobody else is there, and then the last to fall asleep: others are to miss the first.
            self._kill(self._chance.choice(awake) if awake else max(exposed, key=lambda member: member.frozen_at or 0))

    def _kill(self, member: Member) -> None:
        if member.frozen_at is not None:
            self.frozen[member.pid].append(Span(member.frozen_at, time.time()))
            member.frozen_at = None
        self.killed[member.pid] = time.time()
        ended = member.kill()
        if ended != -signal.SIGKILL:
            self.died.append(f"process {member.pid} had ended by itself: {ended}")
        self.counts["kills"] += 1
        member.live()

    def _freeze(self, member: Member) -> None:
        # Beyond the lease, as long as there is time for it, and within it, in turn.
        longest = min(LONGEST_FREEZE, self._end - time.time())
        beyond = longest > 2 * LEASE and self.counts["freezes"] % 2 == 0
        span = self._chance.uniform(1.5 * LEASE, longest) if beyond else self._chance.uniform(1, 0.6 * LEASE)
        pid = member.pid
        member.freeze()
        self.counts["freezes"] += 1
        self.counts["freezes beyond the lease"] += beyond

        def thaw() -> None:
            if member.pid == pid and member.frozen_at is not None:
                self.frozen[pid].append(member.thaw())

        self._at(time.time() + span, thaw)

    def _crash(self) -> None:
        self._at(time.time() + RESTART_EVERY, self._crash)
        self._away_since = time.time()
        self._server.stop(signal.SIGQUIT)
        self._at(time.time() + self._chance.uniform(0, LONGEST_RESTART), self._come_back)

    def _come_back(self) -> None:
        if self._away_since is not None:
            self._server.start()
            self.outages.append(Span(self._away_since, time.time()))
            self._away_since = None
            self.counts["restarts"] += 1

    def _cut(self) -> None:
        self._at(time.time() + CUT_EVERY, self._cut)
        if self._away_since is not None:
            return
        begin = time.time()
        ended = self._server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE application_name = 'watchbill' ORDER BY random() LIMIT {CUT_AT_ONCE}"
        )
        self.cuts.append(Span(begin, time.time()))
        self.counts["backends"] += ended.count("t")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server(place=memory_disk()) as server:
        yield server


@pytest.mark.timeout(SECONDS + HEALED_WITHIN + 400)
def test_three_processes_survive_a_storm(server: PostgresServer, ledger: Ledger, tmp_path: Path, pace: Pace) -> None:
    seed = int(os.environ.get("WATCHBILL_SEED", random.randrange(1_000_000)))
    print(f"replay the timetable with WATCHBILL_SEED={seed}")
    url = server.url()
    asyncio.run(emptied(url))
    server.sql(WITNESS)
    with contextlib.ExitStack() as cleanup:
        logs = [tmp_path / f"member-{n}.log" for n in range(CREW)]
        crew = []
        for log in logs:
            crew.append(Member(url, ledger.address, log))
            cleanup.callback(crew[-1].close)
        client = Client(url, ledger.address, tmp_path / "client.log")
        cleanup.callback(client.close)
        cleanup.callback(lambda: print(*(f"--- {log.name}\n{log.read_text()[-3_000:]}" for log in logs), sep="\n"))
        standstills = Standstills()
        cleanup.callback(standstills.close)
        for member in crew:
            member.live()
        until(server, f"SELECT count(DISTINCT owner) = {CREW} FROM watchbill.lease")
        nemesis = Nemesis(seed, server, crew)
        nemesis.storm()
        healed_at = time.time()
        client.stop()
        answered = client.answered()
        until(server, "SELECT count(*) = 0 FROM watchbill.run WHERE status < 10", HEALED_WITHIN)
        took = time.time() - healed_at
        for member in crew:
            assert member.pid in nemesis.killed or alive(member.pid), "a process ended by itself"
        verdict = Verdict(server.url(), ledger.lines(), nemesis, standstills.spans)
        verdict.calls()
        verdict.takeovers(pace.limit(NOTICES_WITHIN))
        survivors = [member.pid for member in crew if taken_by(member.pid) is not None]
        print("taken:", *map(taken_by, survivors), sep="\n")
        assert exceeded_by(survivors) == []
        assert exceeded_in(Kept(url), len(survivors) + 1) == {}
        check_soundness(url)
        trouble = [line for log in logs for line in log.read_text().splitlines() if "turn.failed" in line]
    counts = nemesis.counts + verdict.counts
    summary = ", ".join(f"{counts[what]} {what}" for what in sorted(counts))
    summary += f", the store away for {sum(span.end - span.begin for span in nemesis.outages):.1f} s"
    print(f"fleet: seed {seed}, {SECONDS:g} s, {summary}, healed within {took:.1f} s")
    report(
        f"fleet chaos: seed {seed}, {SECONDS:g} s: {summary}, {len(verdict.violations)} violations",
        kills=counts["kills"],
        restarts=len(nemesis.outages),
        violations=len(verdict.violations),
    )
    assert verdict.violations == []
    assert nemesis.died == []
    assert trouble == []
    assert answered == REQUESTS, "not all of the last requests were answered"
    least = {
        "runs": 3 * SECONDS,
        "calls": 15 * SECONDS,
        "kills": SECONDS / 6,
        "freezes": SECONDS / 6,
        "freezes beyond the lease": SECONDS / 30,
        "restarts": SECONDS / 6,
        "backends": SECONDS / 1.2,
        "takeovers": SECONDS / 4,
        "calls that ran more than once": 1,
        "after a silence": SECONDS // 60,  # in a short storm everybody may have been disturbed too much to judge
    }
    assert {what: counts[what] for what, count in least.items() if counts[what] < count} == {}, "too little happened"


class Verdict:
    """Judges by the store and the ledger what has become of everything."""

    def __init__(self, url: str, lines: list[Line], nemesis: Nemesis, standstills: list[Span]) -> None:
        self._url = url
        self._lines = lines
        self._nemesis = nemesis
        self._standstills = standstills
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()

    def calls(self) -> None:
        """Every acknowledged run has ended rightly; what is journalled ran once under the last fence that began."""
        runs = dict(self._ask("SELECT id, status FROM watchbill.run"))
        journal = self._ask(
            "SELECT run.id, key, fence, kind, outcome, body FROM watchbill.journal"
            " JOIN watchbill.run ON run.num = journal.run ORDER BY journal.run, seq"
        )
        acked = {line.run: line.number for line in self._lines if line.what == "ACK"}
        self._refuse(f"acknowledged and lost: {id}" for id in acked.keys() - runs.keys())
        self._refuse(f"{id} ended with status {status}" for id, status in runs.items() if status != 10)
        accepted: dict[tuple[str, str], int] = {}
        for run, key, fence, kind, _, body in journal:
            if kind == 0:
                if (run, key) in accepted:
                    self.violations.append(f"{run} {key} is in the journal twice")
                accepted[run, key] = fence
            if kind == 3 and run in acked and int(body) != acked[run] + ADDS[run.split("-")[0]]:
                self.violations.append(f"{run} of {acked[run]} gave {body!r}")
        begun: dict[tuple[str, str], list[int]] = defaultdict(list)
        ended = set()
        for line in self._lines:
            if line.what == "BEGIN":
                begun[line.run, line.call].append(line.fence)
            if line.what == "END":
                ended.add((line.run, line.call, line.fence))
        for call, fence in accepted.items():
            if (*call, fence) not in ended:
                self.violations.append(f"{call} is in the journal, but never ended under fence {fence}")
            if begun[call][-1:] != [fence]:
                self.violations.append(f"{call} ran again after it was journalled under {fence}: {begun[call]}")
            if begun[call] != sorted(set(begun[call])):
                self.violations.append(f"the fences of {call} do not grow: {begun[call]}")
        self._refuse(f"{call} ran, and is not in the journal" for call in begun.keys() - accepted.keys())
        for (left,) in self._ask("SELECT count(*) FROM watchbill.attempt"):
            if left:
                self.violations.append(f"{left} rows are left over")
        self.counts["runs"] = len(runs)
        self.counts["calls"] = len(accepted)
        self.counts["calls that ran more than once"] = sum(len(set(fences)) > 1 for fences in begun.values())

    def takeovers(self, noticed: float) -> None:
        """Nobody was taken over, or pronounced lost, without a fault of ours that kept it from saying that it lives."""
        witness = self._ask("SELECT at, what, who, until, by, pid FROM watchbill.witness ORDER BY at")
        pids = {who: pid for _, what, who, _, _, pid in witness if what == "came"}
        for at, what, who, until_, _, _ in witness:
            if what == "came":
                continue
            self.counts["takeovers" if what == "took" else "agents lost"] += 1
            pid = pids[who]
            if self._nemesis.killed.get(pid, float("inf")) <= at / 1e6:
                continue
            self.counts["after a silence"] += 1
            if until_ == 0:
                self.violations.append(f"process {pid} was buried alive: {what} at {at / 1e6:.3f}")
            elif (free := self._free(pid, Span(until_ / 1e6 - LEASE * 2 / 3, until_ / 1e6))) > noticed:
                self.violations.append(
                    f"{what} {who} (process {pid}) at {at / 1e6:.3f}, though it could have renewed for {free:.1f} s"
                )

    def _free(self, pid: int, window: Span) -> float:
        """Give the longest time within the window in which this process could have reached the store."""
        ours = [*self._nemesis.frozen[pid], *self._nemesis.outages, *self._nemesis.cuts]
        disturbed = sorted([*ours, *self._standstills])
        longest, at = 0.0, window.begin
        for span in disturbed:
            longest = max(longest, min(span.begin, window.end) - at)
            at = max(at, span.end)
        return max(longest, window.end - at)

    def _refuse(self, found: Iterator[str]) -> None:
        self.violations += found

    def _ask(self, sql: str) -> list[Any]:
        return [tuple(row) for row in asyncio.run(by_hand(self._url, sql))]


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
