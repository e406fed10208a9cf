"""The server crashes, or a standby is promoted, under load: no journal has a hole, and what was lost is done again.

`WATCHBILL_FAILOVERS=10` does each ten times, as `make soak` does. What a store may lose differs:

- A server that is killed loses nothing, also when it is configured to answer before its disk has a commit: our sessions
  ask for more. If the address asks for that by name, turns are lost, and starts are not.
- A synchronous standby that is promoted has lost nothing. An asynchronous one has lost the last starts, too.
"""

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from tests.facts import report
from tests.house.conftest import check_soundness
from tests.house.ledger import Ledger
from tests.house.test_fleet_chaos import Client, Member
from tests.house.witness import until
from tests.servers import USER, PostgresServer, memory_disk, postgres_server
from tests.store.postgres import emptied
from watchbill import App
from watchbill.cli.checks import look
from watchbill.cli.fields import Finding
from watchbill.cli.place import Where
from watchbill.clock import SECOND

TIMES = int(os.environ.get("WATCHBILL_FAILOVERS", "1"))
CREW = 2
REQUESTS = 3
TREKS = 20
LOAD = 1.5  # seconds before and after the failure
LOST_WITHIN = 1.0  # seconds for which an asynchronous standby hears nothing before it is promoted
HOLES = "SELECT run, count(*), min(seq), max(seq) FROM watchbill.journal GROUP BY run HAVING count(*) <> max(seq)"
# Unflushed commits stay so: nothing but a synchronous commit flushes them.
LAZY = {"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}


class Seen(NamedTuple):
    """What has become of the acknowledged starts and the steps."""

    runs: int
    lost: int  # acknowledged starts of which the store knows nothing
    repeated: int  # calls that were done to their end more than once


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


@contextlib.contextmanager
def crew(url: str, ledger: Ledger, folder: Path) -> Iterator[None]:
    """Have two processes drive the runs of a store."""
    logs = [folder / f"crew-{n}.log" for n in range(CREW)]
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: print(*(f"--- {log.name}\n{log.read_text()[-3_000:]}" for log in logs), sep="\n"))
        for log in logs:
            member = Member(url, ledger.address, log)
            cleanup.callback(member.close)
            member.live()
        yield


@contextlib.contextmanager
def load(url: str, ledger: Ledger, folder: Path) -> Iterator[Client]:
    """Have two processes drive what a client starts."""
    log = folder / "client.log"
    with crew(url, ledger, folder), contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: print(f"--- client\n{log.read_text()[-3_000:]}"))
        client = Client(url, ledger.address, log)
        cleanup.callback(client.close)
        yield client


def settled(client: Client, server: PostgresServer, ledger: Ledger) -> Seen:
    """Wait until all that exists has ended, and look at it."""
    client.stop(REQUESTS)
    answered = client.answered()
    until(server, "SELECT count(*) = 0 FROM watchbill.run WHERE status < 10", 60)
    assert server.sql(HOLES) == "", "a journal has a hole"
    assert server.sql("SELECT id, status FROM watchbill.run WHERE status <> 10") == ""
    assert answered == REQUESTS, "the last requests, after the failure, are answered"
    lines = ledger.lines()
    begun = Counter((line.run, line.call, line.fence) for line in lines if line.what == "BEGIN")
    assert [one for one, times in begun.items() if times > 1] == [], "a fence was issued twice"
    there = set(server.sql("SELECT id FROM watchbill.run").splitlines())
    acknowledged = {line.run for line in lines if line.what == "ACK"}
    ended = Counter((line.run, line.call) for line in lines if line.what == "END" and line.run in there)
    check_soundness(server.url())
    return Seen(len(there), len(acknowledged - there), sum(times > 1 for times in ended.values()))


def under_load(
    url: str,
    ledger: Ledger,
    folder: Path,
    fail: Callable[[], PostgresServer],
    before: Callable[[], None] = lambda: None,
) -> Seen:
    """Let a server fail under load; `fail` gives the one that is there then."""
    with load(url, ledger, folder) as client:
        time.sleep(LOAD)
        before()
        server = fail()
        time.sleep(LOAD)
        return settled(client, server, ledger)


@pytest.mark.parametrize("n", range(TIMES))
def test_server_with_lazy_commits_is_killed_and_loses_nothing(ledger: Ledger, tmp_path: Path, n: int) -> None:
    level = ("server", "role", "database")[n % 3]
    lazy = LAZY if level == "server" else LAZY | {"synchronous_commit": "on"}
    with postgres_server(place=memory_disk(), **lazy) as server:
        if level != "server":
            server.sql(f"ALTER {level} postgres SET synchronous_commit = off")

        def fail() -> PostgresServer:
            server.crash()
            server.start()
            return server

        asyncio.run(emptied(server.url()))
        seen = under_load(server.url(), ledger, tmp_path, fail)
    assert (seen.lost, seen.repeated) == (0, 0)
    report(
        f"killed server, synchronous_commit=off of its {level}: {seen.runs} runs, no start lost, no step repeated",
        failovers=1,
    )


@pytest.mark.parametrize("n", range(TIMES))
def test_killed_server_forgets_turns_if_the_address_asks_for_it(ledger: Ledger, tmp_path: Path, n: int) -> None:
    with postgres_server(place=memory_disk(), **LAZY) as server:

        def fail() -> PostgresServer:
            server.crash()
            server.start()
            return server

        asyncio.run(emptied(server.url()))
        [told] = [found for found in doctor(server.url() + "&synchronous_commit=off") if found.check == "durability"]
        assert told.level == "bad"
        seen = under_load(server.url() + "&synchronous_commit=off", ledger, tmp_path, fail)
    assert seen.lost == 0
    report(
        f"killed server, address with synchronous_commit=off: {seen.runs} runs, {seen.repeated} steps done again",
        failovers=1,
    )


def doctor(url: str) -> list[Finding]:
    """Give what `watchbill doctor` finds."""
    return look(Where(url, "default", None), 3600 * SECOND)[0]


def both(primary: PostgresServer, standby: PostgresServer) -> str:
    """Give the address of the store on either."""
    return f"postgresql://{USER}@/postgres?host={quote(f'{primary.folder},{standby.folder}')}"


@pytest.mark.parametrize("n", range(TIMES))
def test_promoted_asynchronous_standby_loses_starts_and_leaves_no_hole(ledger: Ledger, tmp_path: Path, n: int) -> None:
    with postgres_server(place=memory_disk()) as primary, contextlib.ExitStack() as cleanup:
        asyncio.run(emptied(primary.url()))
        standby = primary.standby()
        cleanup.callback(standby.forget)
        [told] = [found for found in doctor(primary.url()) if found.check == "durability"]
        assert (told.level, "no commit waits for one" in told.said) == ("warn", True)

        def lag() -> None:
            standby.cut_off()
            time.sleep(LOST_WITHIN)

        def fail() -> PostgresServer:
            primary.crash()
            standby.promote()
            return standby

        seen = under_load(both(primary, standby), ledger, tmp_path, fail, lag)
        assert seen.lost > 0, "the standby had everything: nothing was tested"
        terms = standby.sql("SELECT count(*) FROM watchbill.lease WHERE term < 1000000")
        assert terms == "0", "all shards were taken under terms that the old primary cannot have issued"
    report(
        f"promoted asynchronous standby: {seen.runs} runs, {seen.lost} acknowledged starts lost,"
        f" {seen.repeated} steps done again, no hole",
        failovers=1,
    )


async def start_treks(url: str) -> None:
    app = App(url)

    @app.workflow
    async def trek(n: int) -> int:
        raise NotImplementedError  # what it does, the crew knows

    await app.start_many([(trek, (n,), {"id": f"trek-{n}"}) for n in range(TREKS)])
    await app.close()


@pytest.mark.parametrize("n", range(TIMES))
def test_promoted_asynchronous_standby_has_runs_that_go_on_where_it_is(ledger: Ledger, tmp_path: Path, n: int) -> None:
    """No run is new, so the store knows all that the schedulers have in memory, and knows it as it was before."""
    with postgres_server(place=memory_disk()) as primary, contextlib.ExitStack() as cleanup:
        asyncio.run(emptied(primary.url()))
        standby = primary.standby()
        cleanup.callback(standby.forget)
        url = both(primary, standby)
        asyncio.run(start_treks(url))
        with crew(url, ledger, tmp_path):
            going = (
                f"SELECT count(*) = {TREKS} FROM (SELECT run FROM watchbill.journal WHERE seq >= 5 GROUP BY 1) AS going"
            )
            until(standby, going)
            standby.cut_off()
            seen = primary.sql("SELECT max(seq) FROM watchbill.journal")
            until(
                primary,
                f"SELECT min(seq) > {seen} + 10 FROM (SELECT max(seq) FROM watchbill.journal GROUP BY run) AS m (seq)",
            )
            primary.crash()
            standby.promote()
            until(standby, "SELECT count(*) = 0 FROM watchbill.run WHERE status < 10", 60)
        assert standby.sql(HOLES) == "", "a journal has a hole"
        assert standby.sql("SELECT count(*) FROM watchbill.run WHERE status = 10") == str(TREKS)
        check_soundness(standby.url())
        lines = ledger.lines()
    begun = Counter((line.run, line.call, line.fence) for line in lines if line.what == "BEGIN")
    assert max(begun.values()) == 1, "a fence was issued twice"
    ended = Counter((line.run, line.call) for line in lines if line.what == "END")
    again = sum(times > 1 for times in ended.values())
    assert again > TREKS, "what was lost is done again"
    report(
        f"promoted asynchronous standby, no new runs: {TREKS} runs, {again} steps done again, no hole",
        failovers=1,
    )


@pytest.mark.parametrize("n", range(TIMES))
def test_promoted_synchronous_standby_has_lost_nothing(ledger: Ledger, tmp_path: Path, n: int) -> None:
    with postgres_server(place=memory_disk()) as primary, contextlib.ExitStack() as cleanup:
        asyncio.run(emptied(primary.url()))
        standby = primary.standby()
        cleanup.callback(standby.forget)
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
        until(primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        assert [found for found in doctor(primary.url()) if found.check == "durability"] == []

        def fail() -> PostgresServer:
            primary.crash()
            standby.promote()
            return standby

        seen = under_load(both(primary, standby), ledger, tmp_path, fail)
    assert (seen.lost, seen.repeated) == (0, 0)
    report(
        f"promoted synchronous standby: {seen.runs} runs, no start lost, no step repeated",
        failovers=1,
    )
