"""Two schedulers and two agents hear hints again after every crash of PostgreSQL and every cut of their connections.

Work goes from process to process: a step waits for a hint to an agent, and its result for a hint to a scheduler. On
polling alone each run makes about one step a second. `make soak` plays 30 crashes and 100 cuts, and compares the
throughput before and after each.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.facts import report
from tests.house import relay
from tests.house.commands import Crowd, crowd
from tests.house.conftest import check_soundness
from tests.servers import PostgresServer, memory_disk, postgres_server
from watchbill.app.hall import Hall
from watchbill.env import SystemEnv
from watchbill.store.open import open_store

PROGRAM = "tests.house.relay:app"
RUNS = 20
PROCESSES = 4  # each has one connection on which it listens
RESTARTS = int(os.environ.get("WATCHBILL_RESTARTS", "2"))
CUTS = int(os.environ.get("WATCHBILL_CUTS", "6"))
CUT_AT_ONCE = 2  # connections: one that listens, and another one
MEASURED = "WATCHBILL_RESTARTS" in os.environ
PATIENCE = 120.0  # seconds: reached only by a test that fails
WINDOW = 2.0  # seconds over which throughput is measured
WITHIN = 10.0  # seconds until throughput is back
LEAST = 0.8  # of the throughput before

# The last statement on a connection that listens is one of those that are sent there alone.
LISTENS = "query ~ '^LISTEN|pg_notify|pg_listening_channels|pg_try_advisory_lock_shared'"
OURS = "application_name = 'watchbill' AND datname = current_database()"


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server(place=memory_disk()) as server:
        yield server


@pytest.fixture
def there(server: PostgresServer) -> Iterator[Crowd]:
    with crowd(server.url()) as processes:
        yield processes


class Return(NamedTuple):
    """How throughput came back after a fault."""

    what: str
    before: float  # steps a second
    best: float  # of all windows within the time
    took: float  # seconds until it was back; infinite if it was not


class Counter:
    """Counts steps by the size of a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def steps(self) -> int:
        """Give the number of steps that have run."""
        return self._file.stat().st_size if self._file.exists() else 0

    def rate(self, seconds: float) -> float:
        """Give the steps a second from now on."""
        steps, begun = self.steps(), time.monotonic()
        time.sleep(seconds)
        return (self.steps() - steps) / (time.monotonic() - begun)

    def passes(self, least: int, what: str) -> None:
        """Wait until so many steps have run."""
        becomes(lambda: self.steps() >= least, f"work goes on after a {what}")

    def back(self, what: str, before: float) -> Return:
        """Wait until throughput is back, or the time is over."""
        begun, seen = time.monotonic(), [(time.monotonic(), self.steps())]
        best = 0.0
        while time.monotonic() - begun < WITHIN:
            time.sleep(WINDOW / 10)
            seen.append((time.monotonic(), self.steps()))
            for at, steps in seen[:-1]:
                if seen[-1][0] - at >= WINDOW:
                    best = max(best, (seen[-1][1] - steps) / (seen[-1][0] - at))
            if best >= LEAST * before:
                return Return(what, before, best, time.monotonic() - begun)
        return Return(what, before, best, float("inf"))


def becomes(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.05)


def listeners(server: PostgresServer) -> int:
    return int(server.sql(f"SELECT count(*) FROM pg_stat_activity WHERE {OURS} AND {LISTENS}"))


def all_listen(server: PostgresServer) -> bool:
    return listeners(server) == PROCESSES


async def polling(url: str) -> tuple[str, ...]:
    """Ask as a doctor does for the processes that hear no hints."""
    store = await open_store(url, SystemEnv())
    try:
        return (await store.client.checkup("default", 10)).polling
    finally:
        await store.close()


def crash(server: PostgresServer) -> None:
    server.stop(signal.SIGQUIT)
    server.start()


def cut(server: PostgresServer) -> None:
    for which in (LISTENS, f"NOT ({LISTENS})"):
        server.sql(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS} AND {which} ORDER BY random() LIMIT 1"
        )


@pytest.mark.timeout(180 + 30 * (RESTARTS + CUTS))
def test_every_process_hears_hints_after_every_crash_and_every_cut_under_load(server, there, tmp_path):
    counter = Counter(tmp_path / "steps")
    for _ in range(2):
        there.rooms(PROGRAM)
        there.agent(PROGRAM, "--workers", "1", "--slots", str(RUNS))
    client = relay.app
    client.meet_in(Hall(server.url(), client.namespace, client.registry, client.events))
    try:
        for n in range(RUNS):
            client.sync.start(relay.relay, str(tmp_path / "steps"), id=f"relay-{n}")
    finally:
        client.sync.close()
    becomes(lambda: counter.steps() >= 10 * RUNS, "all runs are under way")
    becomes(lambda: all_listen(server), "all processes listen")

    faults: list[tuple[str, Callable[[PostgresServer], None]]] = [("crash", crash)] * RESTARTS
    faults += [("cut", cut)] * (CUTS // CUT_AT_ONCE)
    random.shuffle(faults)
    returns = []
    for what, happen in faults:
        before = counter.rate(WINDOW) if MEASURED else 0.0
        happen(server)
        steps = counter.steps()
        if MEASURED:
            returns.append(counter.back(what, before))
        becomes(lambda: all_listen(server), f"all processes listen after a {what}")
        counter.passes(steps + RUNS, what)
    becomes(lambda: asyncio.run(polling(server.url())) == (), "no process is named as one that polls")
    check_soundness(server.url())
    if MEASURED:
        judge(returns)


def judge(returns: list[Return]) -> None:
    """Assert that throughput came back after every fault, and leave a line for `make soak`."""
    late = [one for one in returns if one.took > WITHIN]
    usual = sorted(one.before for one in returns)[len(returns) // 2]
    longest = max(one.took for one in returns)
    report(
        f"hints: {RESTARTS} crashes, {CUTS} cut connections, {PROCESSES} processes, {usual:.0f} steps/s:"
        f" {LEAST:.0%} of the throughput within {longest:.1f} s; {len(late)} times later than {WITHIN:g} s"
    )
    for one in returns:
        print(f"{one.what}: {one.before:.0f} steps/s before, {one.best:.0f} after, back in {one.took:.1f} s")
    assert usual > 2 * RUNS, "so slow is a fleet that lives on polling"
    assert late == []
