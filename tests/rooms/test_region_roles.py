"""A role for each region: the server itself shows a process the rows of its region, and no others."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import asyncpg
import pytest

from tests.rooms.regional import NOWHERE, OWNER, ROLES, Harbour, Trade, a_harbour, is_in, quoted, until
from tests.rooms.scene import ends
from tests.servers import PostgresServer
from watchbill import App, RunFailed, RunUndone, StoreError
from watchbill.app.hall import Hall
from watchbill.bounds import BOUNDS
from watchbill.env import SystemEnv
from watchbill.errors import InvalidOptionError, QuotaExceeded, StoreOutdatedError, StoreRegionError
from watchbill.events import Events
from watchbill.model.chain import looked_at
from watchbill.model.quota import QuotaOrder
from watchbill.model.run import NewRun
from watchbill.model.states import RunState
from watchbill.model.upload import Upload
from watchbill.store.migrate import Migration, known_schema, migrations
from watchbill.store.open import migrate, open_store
from watchbill.store.postgres.statements import statements
from watchbill.store.protocol import EVERY, Deleted, Turn
from watchbill.supervisor.audit import Audit
from watchbill.testing.conformance.scene import a_change, an_entry

# What a role reads of other regions, for each table there is: a new one has to be put somewhere.
NOTHING = {
    "run", "attempt", "fact", "schedule", "journal", "decision", "chain", "blob", "chunk", "upload", "log",
    "failed_run", "incident", "logbook", "alert", "lease", "scheduler", "agent", "supervisor",
}  # fmt: skip
WHERE_THINGS_ARE = {"shard", "queue"}  # each writes its own
SHARED = {"gate", "stat", "policy", "quota", "orphan", "retention", "meta", "region_role"}
VIEWS = {"steps", "workflows", "run_home", "incident_home", "attempt_place", "run_state"}
QUOTING = NOTHING - {"chain", "upload", "alert", "lease", "scheduler", "agent", "supervisor"} | {"steps", "workflows"}


class World:
    """Two regions at work at the same time, each as its role; afterwards some of it stays open."""

    def __init__(self, harbour: Harbour) -> None:
        self.harbour = harbour
        self.trades = {region: Trade(harbour, region) for region in ROLES}
        self.eu, self.us = self.trades.values()

    async def work(self) -> None:
        ways = {"eu": "embedded", "us": "distributed"}
        async with AsyncExitStack() as open:
            for trade in self.trades.values():
                await open.enter_async_context(trade.app.rooms(region=trade.region, supervision=ways[trade.region]))
            await asyncio.gather(*[self._trade(trade) for trade in self.trades.values()])
        for trade in self.trades.values():
            late = await trade.start(trade.ship, "late")
            await late.send("bill", trade.mark)  # a fact that stays
            # The last words of an attempt, as a worker in a process of its own leaves them.
            await self.harbour.ask(
                ROLES[trade.region],
                "INSERT INTO watchbill.log (run, call, fence, number, at, body)"
                " SELECT num, 'charge', 1, 1, 0, $1 FROM watchbill.run WHERE id = $2",
                trade.mark.encode(),
                late.id,
            )
            # An upload that no turn has taken, and its chunk.
            for sql in (
                "INSERT INTO watchbill.upload (run, id, shard, term)"
                " SELECT num, octet_length($1::bytea), shard, 1 FROM watchbill.run WHERE id = $2",
                "INSERT INTO watchbill.chunk (run, upload, n, body)"
                " SELECT num, 1, 0, $1 FROM watchbill.run WHERE id = $2",
            ):
                await self.harbour.ask(ROLES[trade.region], sql, trade.mark.encode(), late.id)
            await trade.app.close()
            await self._link(trade.region)

    async def _link(self, region: str) -> None:
        """Link what was decided, as an auditor of a region does."""
        store = await open_store(self.harbour.of(region), SystemEnv())
        await Audit(SystemEnv(), Events(), store=store.supervisor, polls=True).link()
        await store.close()

    async def _trade(self, trade: Trade) -> None:
        shipped = await trade.start(trade.ship, "ship")
        sunk = await trade.start(trade.doomed, "sunk")
        await trade.start(trade.search, "stuck")
        lost = await trade.start(trade.voyage, "lost")
        await trade.start(trade.wonder, "asked")
        smuggled = await trade.start(trade.smuggle, "smuggled")
        await shipped.send("bill", f"{trade.mark} pays")
        said = await ends(shipped)
        assert said.startswith(f"{trade.mark} charged {trade.mark}"), "with its checkpoint, and a large body"
        assert said.endswith(f"{len(trade.mark)} {trade.mark} pays")
        with pytest.raises(RunUndone):
            await ends(sunk)
        assert trade.undone == [trade.mark]
        with pytest.raises(RunFailed, match="is off its course"):
            await ends(lost)
        with pytest.raises(RunFailed, match="connects as the role of region"):
            await ends(smuggled)

        async def waits_for_people() -> bool:
            there = await trade.app.incidents()
            return len(there) == 2 and len(await trade.app.inbox()) == 2

        await until(waits_for_people)
        [agent] = await trade.app.agents()
        await cast(Hall, trade.app._hall).order_agent(agent.id, wish="none", by="ann", reason=f"{trade.mark} is well")
        assert [one.reason for one in await trade.app.logbook()] == [f"{trade.mark} is well"]
        assert sorted(await trade.runs(trade.ship.name)) == [f"ship-{trade.mark}"]


@pytest.fixture(scope="module")
def harbour(postgres: PostgresServer) -> Iterator[Harbour]:
    with a_harbour(postgres) as harbour:
        yield harbour


@pytest.fixture(scope="module")
def world(harbour: Harbour) -> World:
    world = World(harbour)
    asyncio.run(world.work())
    return world


async def tables(harbour: Harbour) -> dict[str, bool]:
    """Give all that can be read in the store's schema, and whether policies guard it."""
    found = await harbour.ask(
        OWNER,
        "SELECT relname, relrowsecurity FROM pg_class WHERE relnamespace = 'watchbill'::regnamespace"
        " AND relkind IN ('r', 'p', 'v', 'm', 'f')",
    )
    return dict(map(tuple, found))


async def marked(harbour: Harbour, role: str, mark: str) -> set[str]:
    """Give the tables in which somebody reads a mark."""
    found = set()
    for table in await tables(harbour):
        rows = await harbour.ask(role, f'SELECT * FROM watchbill."{table}"')
        if any(is_in(mark, value) for row in rows for value in row):
            found.add(table)
    return found


@asynccontextmanager
async def as_role(harbour: Harbour, region: str) -> AsyncIterator[asyncpg.Connection]:
    """Connect as the role of a region, as anybody could who has its password."""
    connection = await asyncpg.connect(user=ROLES[region], host=str(harbour.server.folder), database="harbour")
    try:
        yield connection
    finally:
        await connection.close()


async def tried(connection: asyncpg.Connection, statement: str) -> list[asyncpg.Record]:
    """Give the rows that a change would touch, and take it back; a refusal touches none."""
    await connection.execute("BEGIN")
    try:
        return list(await connection.fetch(statement))
    except (asyncpg.InsufficientPrivilegeError, asyncpg.RaiseError):
        return []
    finally:
        await connection.execute("ROLLBACK")


async def test_every_table_is_guarded_or_meant_for_all(harbour: Harbour) -> None:
    there = await tables(harbour)
    assert set(there) == NOTHING | WHERE_THINGS_ARE | SHARED | VIEWS
    assert {table for table, guarded in there.items() if guarded} == NOTHING | WHERE_THINGS_ARE


async def test_nobody_reads_what_another_region_was_given_said_or_became(world: World) -> None:
    for mine, other in ((world.eu, world.us), (world.us, world.eu)):
        role = ROLES[mine.region]
        assert await marked(world.harbour, role, mine.mark) >= QUOTING
        assert await marked(world.harbour, role, other.mark) == set()
    assert await marked(world.harbour, OWNER, world.us.mark) >= QUOTING, "the owner sees all"


async def test_nobody_changes_or_deletes_what_another_region_has(world: World) -> None:
    changes = {
        "run": "waits = waits WHERE status < 10",
        "attempt": "why = why",
        "fact": "actor = actor",
        "incident": "people = people",
        "decision": "actor = actor",
        "failed_run": "incident = NULL",
    }
    async with as_role(world.harbour, "us") as us:
        for table in sorted(NOTHING | WHERE_THINGS_ARE):
            [(mine,)] = await us.fetch(f'SELECT count(*) FROM watchbill."{table}"')
            [(all_of_it,)] = await world.harbour.ask(OWNER, f'SELECT count(*) FROM watchbill."{table}"')
            assert table in {"scheduler", "supervisor", "shard", "queue"} or 0 < mine < all_of_it, table
            for touched in (
                await tried(us, f'DELETE FROM watchbill."{table}" RETURNING *'),
                await tried(us, f'TRUNCATE watchbill."{table}"'),  # which policies do not guard: it is refused
                await tried(us, f"UPDATE watchbill.{table} SET {changes[table]} RETURNING *")
                if table in changes
                else [],
            ):
                assert len(touched) <= mine
                assert not any(is_in(world.eu.mark, value) for row in touched for value in row)
        [(left,)] = await us.fetch("SELECT count(*) FROM watchbill.run")
        assert left > 0, "all of it was taken back"


async def test_each_region_links_what_was_decided_about_its_own_runs(world: World) -> None:
    for region, role in ROLES.items():
        store = await open_store(world.harbour.of(region), SystemEnv())
        seen = looked_at(await store.client.chains("default", EVERY, EVERY))
        await store.close()
        [(linked,)] = await world.harbour.ask(role, "SELECT count(*) FROM watchbill.decision WHERE chain IS NOT NULL")
        assert (seen.entries, seen.faults) == (linked, ())
        assert linked > 0
        assert await world.harbour.ask(role, "SELECT 1 FROM watchbill.decision WHERE chain IS NULL") == []


async def test_nobody_writes_into_another_region(world: World) -> None:
    [(run, shard)] = await world.harbour.ask(
        OWNER, "SELECT num, shard FROM watchbill.run WHERE id = $1", f"stuck-{world.eu.mark}"
    )
    [(incident,)] = await world.harbour.ask(OWNER, "SELECT min(id) FROM watchbill.incident WHERE region = 'eu'")
    forged = [
        f"INSERT INTO watchbill.journal (run, seq, kind, key, outcome, at, body) VALUES ({run}, 900, 0, 'x', 0, 0, '')",
        f"INSERT INTO watchbill.blob (run, n, body) VALUES ({run}, 900, '')",
        f"INSERT INTO watchbill.chunk (run, upload, n, body) VALUES ({run}, 900, 0, '')",
        f"INSERT INTO watchbill.upload (run, id, shard, term) VALUES ({run}, 900, {shard}, 1)",
        f"INSERT INTO watchbill.chain (run, last) VALUES ({run}, '') ON CONFLICT (run) DO UPDATE SET last = ''",
        f"INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body) VALUES ({run}, 'x', 0, 0, 0, 'x', '')",
        f"INSERT INTO watchbill.log (run, call, fence, number, at, body) VALUES ({run}, 'x', 0, 0, 0, '')",
        f"INSERT INTO watchbill.failed_run (run, step, undo, body, at) VALUES ({run}, 'x', false, '', 0)",
        f"UPDATE watchbill.failed_run SET run = {run}",
        "INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)"
        f" VALUES ({shard}, {run}, 'cancel', 'x', 'x', '', 0)",
        "INSERT INTO watchbill.run (num, shard, namespace, id, workflow, version, root, input, created_at)"
        f" VALUES (900, {shard}, 'default', 'x', 'x', 1, 900, '', 0)",
        f"UPDATE watchbill.run SET shard = {shard} WHERE status < 10",
        f"UPDATE watchbill.incident SET region = 'eu' WHERE region = 'us' AND id <> {incident}",
        f"INSERT INTO watchbill.alert (incident, kind, route, due_at) VALUES ({incident}, 7, 'x', 0)",
        "INSERT INTO watchbill.shard (namespace, region, n) VALUES ('default', 'eu', 900)",
        "INSERT INTO watchbill.region_role (role, region) VALUES ('x', 'us')",
        "UPDATE watchbill.region_role SET region = 'eu'",
        "SET ROLE harbour_eu",
        "ALTER TABLE watchbill.run DISABLE ROW LEVEL SECURITY",
    ]
    for statement in forged:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await world.harbour.ask(ROLES["us"], statement)


async def test_role_of_a_region_uploads_takes_discards_and_deletes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemEnv, "bounds", BOUNDS._replace(chunk=10))
    store = await open_store(world.harbour.of("eu"), SystemEnv())
    try:
        scheduler, owner = store.scheduler, SystemEnv().new_id()
        shards = await scheduler.shards("uploads", "eu")
        terms = {lease.shard: lease.term for lease in (await scheduler.take(owner, shards, None)).taken}
        new = NewRun(SystemEnv().new_id(), "uploads", "large", "w", 1, b"[]", region="eu")
        [submitted] = await store.client.submit([new])
        run = submitted.run
        taken, left = (Upload(run.num, id, run.shard, owner, terms[run.shard]) for id in (1, 2))
        stands = await scheduler.upload(taken, b'"' + b"x" * 98 + b'"')
        assert stands is not None
        assert await scheduler.upload(left, b"x" * 100) is not None
        ended = a_change(run, RunState.COMPLETED)
        turn = Turn(owner, terms, journal=[an_entry(run.num, 1, body=stands)], runs=[ended])
        assert (await scheduler.turn(turn)).applied
        [ending] = await store.client.endings([run.num])
        assert len(ending.body) == 100
        count = (
            "SELECT (SELECT count(*) FROM watchbill.chunk WHERE run = $1),"
            " (SELECT count(*) FROM watchbill.upload WHERE run = $1)"
        )
        assert [tuple(row) for row in await world.harbour.ask(OWNER, count, run.num)] == [(20, 1)]
        assert (await scheduler.take(owner, shards, None)).uploads
        [stale] = await scheduler.stale_uploads(shards)
        await scheduler.discard(stale)
        assert [tuple(row) for row in await world.harbour.ask(OWNER, count, run.num)] == [(10, 0)]
        while await scheduler.delete(run.num, 1_000) is not Deleted.GONE:
            pass
        assert [tuple(row) for row in await world.harbour.ask(OWNER, count, run.num)] == [(0, 0)]
    finally:
        await store.close()


async def test_nobody_writes_about_runs_of_others_in_its_own_name(world: World) -> None:
    ask, us = world.harbour.ask, ROLES["us"]
    [(mine,)] = await ask(us, "SELECT min(id) FROM watchbill.shard WHERE region = 'us'")
    [(theirs,)] = await ask(OWNER, "SELECT num FROM watchbill.run WHERE id = $1", f"stuck-{world.eu.mark}")
    owners = 900
    await ask(
        OWNER,
        "INSERT INTO watchbill.run (num, shard, namespace, id, workflow, version, root, input, created_at)"
        f" VALUES ({owners}, 900, 'default', 'of-the-owner', 'x', 1, 900, '', 0)",
    )
    try:
        for run in (theirs, owners):
            for statement in (
                "INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)"
                f" VALUES ({mine}, {run}, 'cancel', 'x', 'x', '', 0)",
                "INSERT INTO watchbill.attempt (id, run, run_id, part, shard, call, step, queue, rank, state, fence,"
                f" policy, args) VALUES (900, {run}, 'x', 0, {mine}, 'x', 'x', 1, 0, 0, 1, '{{}}', '')",
                f"UPDATE watchbill.fact SET run = {run}, ref = 'x'",
                f"UPDATE watchbill.attempt SET run = {run}",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                    await ask(us, statement)
    finally:
        await ask(OWNER, f"DELETE FROM watchbill.run WHERE num = {owners}")


async def test_the_canary_of_a_region_is_seen_by_all(world: World) -> None:
    ask, sql = world.harbour.ask, statements("watchbill")
    [(canary, fence, state)] = await ask(
        OWNER, "SELECT id, fence, state FROM watchbill.attempt WHERE run_id = $1", f"stuck-{world.us.mark}"
    )
    queues = [queue for (queue,) in await ask(OWNER, "SELECT id FROM watchbill.queue WHERE uses = 'bank'")]
    gate = "namespace = 'default' AND name = 'uses:bank'"
    [before] = await ask(OWNER, f"SELECT state, watch_at, canary, canary_fence FROM watchbill.gate WHERE {gate}")
    change = f"UPDATE watchbill.gate SET state = $1, watch_at = $2, canary = $3, canary_fence = $4 WHERE {gate}"
    values: dict[str, object] = {
        "namespaces": ["default"], "names": ["uses:bank"], "running": state, "failed": state, "most": 9,
        "queues": queues, "now": 1,
    }  # fmt: skip
    answers = {}
    await ask(OWNER, change, 2, 0, canary, fence)
    try:
        for role in (OWNER, *ROLES.values()):
            for name in ("breakers", "breakers_locked", "breakers_of_queues"):
                rows = await ask(role, sql[name].text, *[values[value] for value in sql[name].names])
                answers[name, role] = list(map(tuple, rows))
    finally:
        await ask(OWNER, change, *before)
    assert all(answers.values()), "each has found the gate"
    assert answers["breakers_locked", OWNER][0][-1] is True, "the canary runs"
    for name, role in answers:
        assert answers[name, role] == answers[name, OWNER], (name, role)


async def test_the_servers_log_has_a_regions_payload_in_the_words_of_its_role_alone(world: World) -> None:
    said: dict[str, list[str]] = {}
    who = ""
    for line in world.harbour.server.log().splitlines():
        name, bar, rest = line.partition("|")
        who = name if bar and not line.startswith("\t") else who
        said.setdefault(who, []).append(rest if bar and not line.startswith("\t") else line)
    for trade in world.trades.values():
        spellings = (trade.mark, trade.mark.encode().hex())
        # The owner only looked, for the tests, and named an id: nobody who works here connects as the owner.
        speakers = {
            name
            for name, lines in said.items()
            if name != OWNER and any(spelling in line for line in lines for spelling in spellings)
        }
        assert speakers == {ROLES[trade.region]}
    assert not any(word in line for line in said[OWNER] for word in ("SKIP LOCKED", "pg_notify"))


async def test_a_supervisor_judges_the_rows_of_its_region_alone(world: World) -> None:
    eu, us = Trade(world.harbour, "eu"), Trade(world.harbour, "us")

    async def judged(id: str) -> bool:
        found = await world.harbour.ask(
            OWNER, "SELECT 1 FROM watchbill.decision JOIN watchbill.run ON num = run WHERE run.id = $1", id
        )
        return bool(found)

    async with us.app.rooms(region="us"):
        async with eu.app.rooms(region="eu", supervisor=False):
            there, here = await eu.start(eu.search, eu.new("late")), await us.start(us.search, us.new("judged"))
            await until(lambda: judged(here.id))

            async def has_failed() -> bool:
                rows = await world.harbour.ask(
                    OWNER, "SELECT 1 FROM watchbill.attempt WHERE run_id = $1 AND state = 2", there.id
                )
                return bool(rows)

            await until(has_failed)
            again = await us.start(us.search, us.new("judged"))
            await until(lambda: judged(again.id))
            assert not await judged(there.id), "it has failed, is due for a look, and nobody who may has looked"
        async with eu.app.rooms(region="eu", supervision="centralized"):
            await until(lambda: judged(there.id))


async def test_a_region_goes_on_when_another_one_is_cut_off(world: World) -> None:
    eu, us = Trade(world.harbour, "eu"), Trade(world.harbour, "us")
    server, role = world.harbour.server, ROLES["us"]
    try:
        async with eu.app.rooms(region="eu", supervision="distributed"), us.app.rooms(region="us"):
            server.sql(f"ALTER ROLE {quoted(role)} NOLOGIN")
            name = role.replace("'", "''")
            server.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'")
            shipped = await eu.start(eu.ship, eu.new("meanwhile"))
            await shipped.send("bill", "paid")
            assert (await ends(shipped)).endswith("paid")
            server.sql(f"ALTER ROLE {quoted(role)} LOGIN")
            late = await us.start(us.ship, us.new("afterwards"))
            await late.send("bill", "paid")
            assert (await ends(late)).endswith("paid")
    finally:
        server.sql(f"ALTER ROLE {quoted(role)} LOGIN")


async def test_what_the_owner_had_gathered_is_handed_over_or_gathered_anew(world: World) -> None:
    eu, us = Trade(world.harbour, "eu"), Trade(world.harbour, "us")

    async def as_owner(statement: str) -> list[asyncpg.Record]:
        return await world.harbour.ask(OWNER, statement)

    async def given() -> None:
        await asyncio.to_thread(migrate, world.harbour.owner, list(ROLES.items()))

    mine = [incident.id for incident in await eu.app.incidents()]
    await as_owner("UPDATE watchbill.incident SET region = ''")
    assert await eu.app.incidents() == []
    await given()
    assert [incident.id for incident in await eu.app.incidents()] == mine
    assert all(region in ROLES for (region,) in await as_owner("SELECT region FROM watchbill.incident"))
    # One that had calls of both: none of them may read what it says.
    await as_owner("UPDATE watchbill.incident SET region = ''")
    await as_owner(
        "UPDATE watchbill.attempt SET incident = (SELECT min(id) FROM watchbill.incident)"
        " WHERE incident IS NOT NULL AND kind <> 1"
    )
    await as_owner("UPDATE watchbill.failed_run SET incident = (SELECT max(id) FROM watchbill.incident)")
    await given()
    assert await as_owner("SELECT id FROM watchbill.incident WHERE state = 0 AND NOT asks") == []
    async with eu.app.rooms(region="eu"), us.app.rooms(region="us"):
        for trade in (eu, us):
            await until(lambda of=trade: both_again(of))


async def both_again(trade: Trade) -> bool:
    """Say whether a region has an incident about a call that waits, and one about a run that has ended, of its own."""
    return sorted([one.member for one in await trade.app.incidents()]) == ["call", "run"]


async def test_what_the_owners_supervisor_tells_of_is_told_to_the_region_whose_runs_it_is_about(world: World) -> None:
    """One that connects as the owner sees all regions; what it opens is theirs, and they go on with it."""
    eu, us, owner = Trade(world.harbour, "eu"), Trade(world.harbour, "us"), App(world.harbour.owner, alerts=NOWHERE)

    async def as_owner(statement: str) -> list[asyncpg.Record]:
        return await world.harbour.ask(OWNER, statement)

    for table in ("attempt", "failed_run"):
        await as_owner(f"UPDATE watchbill.{table} SET incident = NULL")
    await as_owner("DELETE FROM watchbill.incident")
    await as_owner("DELETE FROM watchbill.alert")

    async def each_has_its_own() -> bool:
        asked = await as_owner("SELECT region FROM watchbill.incident WHERE asks")
        there = [await both_again(trade) for trade in (eu, us)]
        return all(there) and sorted(region for (region,) in asked) == ["eu", "us"]

    async with owner.rooms(scheduler=False, agent=False):
        await until(each_has_its_own)
    assert await as_owner("SELECT id FROM watchbill.incident WHERE region = ''") == []
    # Now a supervisor of the region reminds of them: those who were told of the question, and of the call.
    await as_owner("UPDATE watchbill.attempt SET remind_at = 1 WHERE incident IS NOT NULL")

    async def both_are_reminded() -> bool:
        return len(await world.harbour.ask(ROLES["eu"], "SELECT incident FROM watchbill.alert WHERE kind = 2")) == 2

    async with eu.app.rooms(region="eu", scheduler=False, agent=False):
        await until(both_are_reminded)


async def test_people_of_a_region_decide_about_its_calls(world: World) -> None:
    eu = Trade(world.harbour, "eu")
    eu.mended = True
    async with eu.app.rooms(region="eu"):
        [item] = [item for item in await eu.app.inbox() if item.run == f"stuck-{eu.mark}"]
        await eu.app.resolve(item.id, "retry", reason="mended")
        assert await ends(eu.app.handle(f"stuck-{eu.mark}", eu.search)) == eu.mark
        explained = await eu.app.handle(f"asked-{eu.mark}").explain()
        assert f"Is {eu.mark} heavy?" in str(explained)
    assert await eu.app.gates() != []


async def test_runs_of_a_region_that_have_failed_go_on_when_its_people_want_that(world: World) -> None:
    us = Trade(world.harbour, "us")
    us.mended = True
    async with us.app.rooms(region="us"):
        await until(lambda: both_again(us))
        [incident] = [one for one in await us.app.incidents() if one.member == "run"]
        assert incident.examples == (f"lost-{us.mark}",)
        assert f"{us.mark} is off its course" in incident.said
        await us.app.resolve(incident.id, "retry", reason="mended")
        again = us.app.handle(f"lost-{us.mark}~2", us.voyage)

        async def is_there() -> bool:
            return again.id in await us.runs(us.voyage.name)

        await until(is_there)
        assert await ends(again) == us.mark


async def test_rooms_of_another_region_than_their_role_has_do_not_open(world: World) -> None:
    app = App(world.harbour.of("eu"))
    for region in ("us", None):
        with pytest.raises(StoreRegionError, match=r"opened by the role of region 'eu'.* these rooms are of"):
            async with app.rooms(region=region):
                pass


async def test_a_run_for_another_region_is_refused_and_says_why(world: World) -> None:
    eu = Trade(world.harbour, "eu")
    for region in ("us", None):
        with pytest.raises(StoreRegionError, match="neither reads nor writes what is elsewhere"):
            await eu.app.start(eu.ship, "x", region=region)
    with pytest.raises(ValueError, match="by a run of another region"):
        await eu.app.start(eu.ship, "x", region="eu", id=f"ship-{world.us.mark}")


def test_giving_a_region_its_role_again_changes_nothing(harbour: Harbour) -> None:
    policies = "SELECT polname, polrelid::regclass, pg_get_expr(polqual, polrelid) FROM pg_policy ORDER BY 1, 2"
    before = harbour.server.sql(policies, "harbour")
    migrate(harbour.owner, list(ROLES.items()))
    assert harbour.server.sql(policies, "harbour") == before
    assert harbour.server.sql("SELECT count(*) FROM watchbill.region_role", "harbour") == "2"


def test_an_upgrade_is_the_owners_and_gives_the_roles_what_they_need_of_it(
    harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = known_schema("postgres") + 1
    text = f"REVOKE ALL ON watchbill.run FROM {quoted(ROLES['eu'])}"  # as if its table were new
    known = (*migrations("postgres"), Migration(newer, False, text))
    harbour.server.sql("CREATE ROLE former LOGIN")
    try:
        migrate(harbour.owner, [("asia", "former")])
        harbour.server.sql("DROP OWNED BY former", "harbour")  # which takes the region from it
        monkeypatch.setattr("watchbill.store.postgres.schema.migrations", lambda dialect: known)
        monkeypatch.setattr("watchbill.store.postgres.schema.known_schema", lambda dialect: newer)
        with pytest.raises(StoreOutdatedError, match="run `watchbill migrate`"):
            migrate(harbour.of("eu"))
        assert migrate(harbour.owner) == (newer - 1, newer)
        reads = "SELECT has_table_privilege('{}', 'watchbill.run', 'SELECT')"
        assert harbour.server.sql(reads.format(ROLES["eu"]), "harbour") == "t"
        assert harbour.server.sql(reads.format("former"), "harbour") == "f"
    finally:
        harbour.server.sql(f"UPDATE watchbill.meta SET value = '{newer - 1}' WHERE key = 'schema'", "harbour")
        harbour.server.sql("DELETE FROM watchbill.region_role WHERE role = 'former'", "harbour")
        harbour.server.sql("DROP ROLE former")


def test_what_cannot_be_a_regions_role_is_refused(harbour: Harbour, file: str) -> None:
    for url, role, why in (
        (harbour.owner, "nobody's", r"there is no role \"nobody's\" for region 'asia': make it first"),
        (harbour.owner, OWNER, "who owns the tables"),
        (harbour.owner, "postgres", "is a superuser"),
        (harbour.of("eu"), ROLES["eu"], f"only '{OWNER}', who owns its tables"),
    ):
        with pytest.raises(StoreError, match=why):
            migrate(url, [("asia", role)])
    with pytest.raises(StoreError, match="a file has no roles"):
        migrate(file, [("eu", "x")])


def test_a_role_of_no_region_is_told_so(harbour: Harbour) -> None:
    harbour.server.sql("CREATE ROLE stranger LOGIN")
    harbour.server.sql("GRANT USAGE ON SCHEMA watchbill TO stranger", "harbour")
    harbour.server.sql("GRANT SELECT ON ALL TABLES IN SCHEMA watchbill TO stranger", "harbour")
    try:
        with pytest.raises(StoreRegionError, match="role 'stranger' is of no region"):
            migrate(harbour.url("stranger"))
    finally:
        harbour.server.sql("DROP OWNED BY stranger", "harbour")
        harbour.server.sql("DROP ROLE stranger")


@pytest.mark.parametrize("said", ["eu", "eu=", "=role", "e u=role"])
def test_the_command_says_how_a_role_is_given(said: str) -> None:
    from watchbill.cli.migrate import read_role

    with pytest.raises(InvalidOptionError):
        read_role(said)


async def test_quota_counts_the_runs_of_all_regions(world: World) -> None:
    namespace = "bounded"
    owner = await open_store(world.harbour.url(OWNER), SystemEnv())
    stores = {region: await open_store(world.harbour.of(region), SystemEnv()) for region in ROLES}

    def a_run(n: int, region: str) -> NewRun:
        return NewRun(900_000 + n, namespace, f"q-{n}", "x", 1, b"[]", region=region)

    try:
        assert await owner.client.set_quota(namespace, QuotaOrder(2, "ann", "a trial"))
        await stores["eu"].client.submit([a_run(1, "eu")])
        await stores["us"].client.submit([a_run(2, "us")])
        for region, store in stores.items():
            with pytest.raises(QuotaExceeded):
                await store.client.submit([a_run(3, region)])
            [seen] = [one for one in await store.client.quotas() if one.namespace == namespace]
            assert (seen.open, seen.runs) == (2, 2)
        assert await stores["us"].client.set_quota(namespace, QuotaOrder(None, "bob", ""))
        await stores["eu"].client.submit([a_run(3, "eu")])
    finally:
        await world.harbour.ask(OWNER, "DELETE FROM watchbill.run WHERE namespace = $1", namespace)
        await world.harbour.ask(OWNER, "DELETE FROM watchbill.quota")
        for store in (owner, *stores.values()):
            await store.close()
