"""The store is away for longer than any lease, under 500 long steps: nobody is lost, nobody is charged.

`WATCHBILL_OUTAGE_SECONDS=20` makes it long, as `make soak` does; leases are two fifths of it, 8 s then.
"""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.facts import report
from tests.forked import fork
from tests.house.conftest import check_soundness
from tests.house.ledger import Ledger
from tests.house.witness import WITNESS, until
from tests.pace import Pace
from tests.servers import PostgresServer, memory_disk, postgres_server
from tests.store.postgres import emptied
from watchbill import App

OUTAGE = float(os.environ.get("WATCHBILL_OUTAGE_SECONDS", "10"))
LEASE = OUTAGE * 2 / 5
STEPS = 500
FIRST_DISPATCH = 3.0


class Waiters:
    """tests/house/waiters.py as a process."""

    def __init__(self, url: str, ledger: str, log: Path) -> None:
        self._said = log.open("wb")
        self._process = fork(
            "tests.house.waiters",
            *(url, ledger, str(LEASE)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def tell(self, kind: str) -> None:
        """Let the steps of a kind end."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{kind}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate(timeout=10)
        self._said.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server(place=memory_disk()) as server:
        yield server
        check_soundness(server.url())


async def start(url: str, steps: int) -> None:
    app = App(url)

    @app.workflow
    async def waits(kind: str) -> str:
        raise NotImplementedError  # what it does, the others know

    kinds = ("early", "late")
    await app.start_many([(waits, (kinds[n % 2],), {"id": f"{kinds[n % 2]}-{n}"}) for n in range(steps)])
    await app.close()


async def ask(url: str) -> str:
    app = App(url)

    @app.workflow
    async def hurries() -> str:
        raise NotImplementedError

    handle = await app.start(hurries, id="quick")
    try:
        return await handle.result(timeout=10)
    finally:
        await app.close()


def said(ledger: Ledger, what: str, count: int) -> None:
    """Wait until the ledger has heard of something so many times."""
    end = time.time() + 20
    while sum(line.what == what for line in ledger.lines()) < count:
        assert time.time() < end, f"fewer than {count} steps said {what}"
        time.sleep(0.05)


@pytest.mark.timeout(OUTAGE * 2 + 400)
def test_a_long_outage_loses_and_charges_nobody(
    server: PostgresServer, ledger: Ledger, tmp_path: Path, pace: Pace
) -> None:
    url = server.url()
    asyncio.run(emptied(url))
    server.sql(WITNESS)
    logs = [tmp_path / f"waiters-{n}.log" for n in range(2)]
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: print(*(f"--- {log.name}\n{log.read_text()[-2_000:]}" for log in logs), sep="\n"))
        crew = []
        for log in logs:
            crew.append(Waiters(url, ledger.address, log))
            cleanup.callback(crew[-1].close)
        until(server, "SELECT count(DISTINCT owner) = 2 AND count(owner) = 16 FROM watchbill.lease")
        asyncio.run(start(url, STEPS))
        until(server, f"SELECT count(*) = {STEPS} FROM watchbill.attempt WHERE state = 1")
        server.stop()
        gone_at = time.time()
        for waiters in crew:
            waiters.tell("early")
        said(ledger, "END", STEPS // 2)  # nobody hears of it yet
        time.sleep(max(0.0, gone_at + OUTAGE - time.time()))  # the outage itself
        server.start()
        back_at = time.time()
        assert asyncio.run(ask(url)) == "quick"
        dispatched = time.time() - back_at
        until(server, f"SELECT count(*) = {STEPS // 2} FROM watchbill.run WHERE status = 10 AND id LIKE 'early-%'")
        # Whoever wanted to pronounce somebody lost has had the time.
        time.sleep(max(0.0, back_at + 1.5 * LEASE - time.time()))
        charged = server.sql("SELECT count(*) FROM watchbill.attempt WHERE state <> 1 OR failures <> 0 OR losses <> 1")
        running = server.sql("SELECT count(*) FROM watchbill.attempt WHERE state = 1")
        for waiters in crew:
            waiters.tell("late")
        until(server, "SELECT count(*) = 0 FROM watchbill.run WHERE status < 10")
        decisions = server.sql("SELECT call, convert_from(body, 'utf8') FROM watchbill.decision LIMIT 5")
        takeovers = server.sql("SELECT what, who FROM watchbill.witness WHERE what <> 'came'")
        fences = dict(
            line.split("|")
            for line in server.sql(
                "SELECT run.id, fence FROM watchbill.journal JOIN watchbill.run ON num = run WHERE kind = 0"
            ).splitlines()
        )
        warned = [log.read_text().splitlines() for log in logs]
    begun = [line for line in ledger.lines() if line.what == "BEGIN"]
    report(
        f"outage: {OUTAGE:g} s under {STEPS} steps, leases of {LEASE:g} s: {len(begun) - STEPS - 1} ran again,"
        f" {len(takeovers.splitlines())} takeovers, {len(decisions.splitlines())} charged,"
        f" a new run ended {dispatched:.1f} s after the server was back",
        restarts=1,
        standstill=dispatched,
    )
    assert (charged, running) == ("0", str(STEPS // 2))
    assert decisions == ""
    assert takeovers == ""
    assert len(begun) == STEPS + 1, "something ran twice"
    assert {line.number for line in begun} == {1}
    assert {line.run: str(line.fence) for line in begun} == fences, "the first attempt of each is the one that counts"
    assert dispatched <= pace.limit(FIRST_DISPATCH)
    for lines in warned:
        assert len(lines) == 2, "one line when the store went away, one when it was back"
