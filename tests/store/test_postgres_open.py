"""Opening on PostgreSQL: what is refused and how it is said, schemas, migrations, readers, and life behind a pooler."""

import asyncio
import builtins
import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import msgspec
import pytest

from tests.servers import PostgresServer, free_port, postgres_server
from tests.store.postgres import address_of, by_hand, emptied
from watchbill.borrowed import numbered
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import (
    StoreCorruptError,
    StoreError,
    StoreNewerError,
    StoreOutdatedError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from watchbill.store.migrate import known_schema, migrations
from watchbill.store.open import migrate, open_reader, open_store
from watchbill.store.postgres.connections import FIRST_TRIES, HOT, connect, connect_first
from watchbill.store.postgres.refusals import at_opening
from watchbill.store.postgres.schema import first_look
from watchbill.store.postgres.store import PostgresStore, migrate_postgres
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import HandClock, Scene, a_run

SECRET = "p%40ss%2Fw%23rd"  # p@ss/w#rd
KNOWN_SCHEMA = known_schema("postgres")


@pytest.fixture(scope="module")
def strict() -> Iterator[PostgresServer]:
    """A server on a port, with people, passwords and rights."""
    with postgres_server(listen_addresses="127.0.0.1", port=str(free_port())) as server:
        server.sql("CREATE ROLE ada LOGIN PASSWORD 'p@ss/w#rd'")
        server.sql("CREATE ROLE bob LOGIN")
        server.sql("CREATE DATABASE shop")
        server.sql("GRANT CREATE ON DATABASE shop TO ada")
        server.admit(
            "host shop ada 127.0.0.1/32 scram-sha-256", "host all bob 127.0.0.1/32 trust", "hostssl all eve all trust"
        )
        yield server


def strict_url(server: PostgresServer, login: str, database: str = "shop", **options: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"postgresql://{login}@127.0.0.1:{server.port}/{database}" + (f"?{query}" if query else "")


@pytest.fixture
async def url(postgres_url: str) -> str:
    await emptied(postgres_url)
    return postgres_url


@pytest.fixture
async def new_url(postgres_url: str) -> AsyncIterator[str]:
    """An address whose schema is not there yet."""
    address = f"{postgres_url.partition('&schema=')[0]}&schema=brand_new"
    await by_hand(address, "DROP SCHEMA IF EXISTS brand_new CASCADE")
    yield address
    await by_hand(address, "DROP SCHEMA IF EXISTS brand_new CASCADE")


async def refusal(url: str, kind: type[StoreError] = StoreError) -> str:
    with pytest.raises(kind) as refused:
        await open_store(url, SystemEnv())
    assert type(refused.value) is kind
    assert not isinstance(refused.value, StoreUnreachableError)
    said = str(refused.value)
    assert "p@ss" not in said
    assert "p%40ss" not in said
    assert "wrong-one" not in said
    assert refused.value.__suppress_context__, "no traceback of the driver"
    reader = open_reader(url, SystemEnv())
    with pytest.raises(StoreError):
        await reader.find("default", "o-1")
    await reader.close()
    return said


# --- refusals


async def test_nobody_there():
    said = await refusal(f"postgresql://ada:{SECRET}@127.0.0.1:{free_port()}/shop")
    assert "cannot be reached" in said
    assert "is it running" in said
    assert "ada:***@127.0.0.1" in said


async def test_no_such_host():
    assert "cannot be reached" in await refusal("postgresql://ada@no-such-host.invalid/shop")


async def test_no_such_socket(tmp_path):
    assert "cannot be reached" in await refusal(f"postgresql://ada@/shop?host={tmp_path}")


async def test_a_server_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        said = await refusal(f"postgresql://ada@127.0.0.1:{port}/shop?connect_timeout=0.2")
    assert "did not answer within 0.2 s" in said


async def test_a_wrong_password(strict):
    said = await refusal(strict_url(strict, "ada:wrong-one"))
    assert 'password authentication failed for user "ada"' in said
    assert "check user and password" in said


async def test_an_odd_password(strict):
    store = await open_store(strict_url(strict, f"ada:{SECRET}"), SystemEnv())
    assert "ss" not in store.url.partition("@")[0].removeprefix("postgresql")
    await store.client.submit([a_run(1)])
    await store.close()


async def test_an_unknown_database(strict):
    said = await refusal(strict_url(strict, "bob", "nowhere"))
    assert 'database "nowhere" does not exist' in said
    assert "createdb nowhere" in said


async def test_somebody_whom_the_server_does_not_admit(strict):
    strict.sql("CREATE ROLE carl LOGIN")
    assert "pg_hba.conf admit" in await refusal(strict_url(strict, "carl"))
    said = await refusal(strict_url(strict, "eve"))
    assert "no encryption" in said
    assert "sslmode=require" in said


async def test_tls_that_the_server_does_not_have(strict):
    said = await refusal(strict_url(strict, "bob", sslmode="require"))
    assert "SSL" in said
    assert "sslmode=prefer" in said


async def test_no_right_to_make_a_schema(strict):
    said = await refusal(strict_url(strict, "bob", schema="not_yet"))
    assert "permission denied for database shop" in said
    assert 'CREATE SCHEMA IF NOT EXISTS "not_yet"' in said


async def test_no_rights_in_the_schema(strict):
    await (await open_store(strict_url(strict, f"ada:{SECRET}", schema="mine"), SystemEnv())).close()
    said = await refusal(strict_url(strict, "bob", schema="mine"))
    assert "no rights on schema 'mine'" in said
    assert 'GRANT ALL ON SCHEMA "mine"' in said


async def test_rights_lost_on_the_way_are_a_clear_end(strict):
    ours = strict_url(strict, f"ada:{SECRET}", schema="lent")
    store = await open_store(ours, SystemEnv())
    strict.sql("ALTER TABLE lent.run OWNER TO postgres; REVOKE ALL ON lent.run FROM ada", "shop")
    with pytest.raises(StoreError, match="GRANT ALL ON ALL TABLES") as refused:
        await store.client.submit([a_run(1)])
    assert not isinstance(refused.value, StoreUnreachableError)
    await store.close()


async def test_a_server_that_is_too_old(url, monkeypatch):
    monkeypatch.setattr("watchbill.store.postgres.schema.OLDEST", 99)
    assert "needs 99 or newer" in await refusal(url)


async def test_a_server_that_is_read_only(strict):
    login = f"ada:{SECRET}"
    await (await open_store(strict_url(strict, login), SystemEnv())).close()
    strict.sql("ALTER ROLE ada SET default_transaction_read_only = on")
    try:
        with pytest.raises(StoreReadOnlyError, match="standby or read-only"):
            await open_store(strict_url(strict, login), SystemEnv())
        reader = open_reader(strict_url(strict, login), SystemEnv())
        assert await reader.runs("nobody") == []
        await reader.close()
    finally:
        strict.sql("ALTER ROLE ada RESET default_transaction_read_only")


async def test_without_the_driver(monkeypatch):
    plain = builtins.__import__

    def without(name, *rest):
        if name == "asyncpg":
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for opening in (open_reader, lambda url, env: migrate(url)):
        with pytest.raises(StoreError, match=r"pip install 'watchbill\[postgres\]'"):
            opening("postgresql://localhost/x", SystemEnv())


def test_the_driver_is_imported_only_for_postgresql():
    script = (
        "import sys, watchbill.store.open as o; from watchbill.env import SystemEnv;"
        " o.open_reader('postgresql://h/x', SystemEnv()) if len(sys.argv) > 1 else 0"
    )
    script += "; print('asyncpg' in sys.modules)"
    said = [
        subprocess.run([sys.executable, "-c", script, *more], capture_output=True, text=True, check=True).stdout.strip()
        for more in ([], ["postgresql"])
    ]
    assert said == ["False", "True"]


# --- schemas


async def test_an_empty_database_becomes_a_store(new_url):
    store = await open_store(new_url, SystemEnv())
    await store.client.submit([a_run(1)])
    await store.close()
    [(schema,)] = await by_hand(new_url, "SELECT convert_from(value, 'UTF8') FROM watchbill.meta WHERE key = 'schema'")
    assert schema == str(KNOWN_SCHEMA)


async def test_many_that_open_an_empty_database_at_once_make_one_store(new_url):
    stores = await asyncio.gather(*(open_store(new_url, SystemEnv()) for _ in range(6)))
    answers = await asyncio.gather(*(store.client.submit([a_run(n)]) for n, store in enumerate(stores)))
    assert all(answer.new for [answer] in answers)
    for store in stores:
        await store.close()


async def test_migrate_makes_and_says_from_where_to_where(new_url):
    assert await migrate_postgres(address_of(new_url)) == (0, KNOWN_SCHEMA)
    assert await migrate_postgres(address_of(new_url)) == (KNOWN_SCHEMA, KNOWN_SCHEMA)


def test_migrate_is_for_commands_too(postgres_url):
    assert migrate(postgres_url)[1] == KNOWN_SCHEMA


async def test_a_migration_that_fails_leaves_nothing(new_url, monkeypatch):
    first = migrations("postgres")[0]
    broken = (first._replace(text=f"{first.text}; CREATE TABLE watchbill.meta (x int)"),)
    monkeypatch.setattr("watchbill.store.postgres.schema.migrations", lambda dialect: broken)
    with pytest.raises(StoreError, match="already exists"):
        await migrate_postgres(address_of(new_url))
    assert await by_hand(new_url, "SELECT to_regnamespace('brand_new')::text") == [(None,)]


async def test_a_newer_store_is_refused(new_url):
    await (await open_store(new_url, SystemEnv())).close()
    await by_hand(new_url, "UPDATE watchbill.meta SET value = '99'")
    assert "install the newer Watchbill" in await refusal(new_url, StoreNewerError)
    with pytest.raises(StoreNewerError):
        await migrate_postgres(address_of(new_url))


@pytest.mark.parametrize("columns", ["id int", "key text, value int", "key text, value bytea"])
async def test_a_schema_of_another_program_is_left_alone(new_url, columns):
    await by_hand(new_url, "CREATE SCHEMA brand_new")
    await by_hand(new_url, f"CREATE TABLE watchbill.meta ({columns})")
    assert "not ours" in await refusal(new_url, StoreCorruptError)


async def test_two_schemas_are_two_stores(url, new_url):
    one, two = await open_store(url, SystemEnv()), await open_store(new_url, SystemEnv())
    await one.client.submit([a_run(1)])
    assert await two.client.find("default", "o-1") is None
    await two.client.submit([a_run(1)])
    for store in (one, two):
        await store.close()


# --- types


async def test_a_connection_asks_for_no_type_of_postgresqls_own(url):
    connection = await connect(address_of(url), HOT)
    prepared = "SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%pg_type%' AND name <> ''"
    given = [[True, None], [b"\0"], [1, 2**62], [-1], [2**31 - 1], ["a", "", "{,}"], [0.5], []]
    types = ["boolean", "bytea", "bigint", "smallint", "integer", "text", "double precision", "text"]
    [row] = await connection.fetch(f"SELECT {', '.join(f'${n}::{type}[]' for n, type in enumerate(types, 1))}", *given)
    assert list(row) == given
    questions = await connection.fetch(prepared)
    assert [text for (text,) in questions if text != prepared] == []
    schema = address_of(url).schema
    [[entries]] = await connection.fetch(f'SELECT NULL::"{schema}".journal_entry[]')
    assert entries is None
    questions = await connection.fetch(prepared)
    [own] = [text for (text,) in questions if text != prepared]
    assert str(own).startswith("SELECT\n    described.oid"), "of our own types it asks, and not as the driver does"
    await connection.close()


@pytest.mark.parametrize("is_pooled", [False, True])
@pytest.mark.parametrize("is_mixed", [False, True])
async def test_types_that_we_describe_are_as_the_driver_describes_them(url, is_pooled, is_mixed):
    address = msgspec.structs.replace(address_of(url), pooled=is_pooled)
    row = (2**62, 7, 3, "charge", -1, 1, 0, None, 5, 6, b"\0body")
    question = f'SELECT $1::"{address.schema}".journal_entry[], $2::integer[]'
    question += ", ARRAY[int4range(1, 3)]" * is_mixed
    ours, theirs = await connect(address, HOT), await asyncpg.connect(re.sub(r"[?&]schema=[^&]*", "", url))
    found: list[Any] = [(await connection.fetch(question, [row, row], [1]))[0] for connection in (ours, theirs)]
    assert found[0] == found[1]
    for entries, numbers, *_ in found:
        assert [tuple(entry) for entry in entries] == [row, row]
        assert entries[0]["started_at"] == 5
        assert numbers == [1]
    for connection in (ours, theirs):
        await connection.close()


# --- closing


async def test_doors_waiting_when_it_closes_are_finished(url):
    store = await open_store(url, SystemEnv())
    waiting = [asyncio.ensure_future(store.client.submit([a_run(num)])) for num in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    assert all([(await door)[0].new for door in waiting])


async def test_a_closed_store_says_so(url):
    store = await open_store(url, SystemEnv())
    await store.close()
    for door in (store.client.submit([a_run(1)]), store.client.find("default", "o-1")):
        with pytest.raises(StoreError, match="is closed: open it again"):
            await door


async def test_nothing_is_left_on_the_server(url):
    store = await open_store(url, SystemEnv())
    scene = Scene(store, HandClock())
    await scene.open()
    for whom in Hint:
        store.listen(whom, lambda: None)
    await asyncio.gather(*(scene.submit(a_run(num)) for num in range(20)))
    await store.close()
    left = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'watchbill' AND pid <> pg_backend_pid()"
    async with asyncio.timeout(120):
        while await by_hand(url, left):
            pass


async def test_a_caller_that_is_cancelled_leaves_no_connection_in_the_middle(url):
    store = await open_store(url, SystemEnv())
    assert isinstance(store, PostgresStore)
    door = asyncio.ensure_future(store.client.record("default", "o-1"))
    await asyncio.sleep(0)
    door.cancel()
    with pytest.raises(asyncio.CancelledError):
        await door
    assert await store.client.record("default", "o-1") is None
    await store.close()


# --- reading beside others


async def test_a_reader_sees_what_is_committed_and_writes_nothing(url):
    store = await open_store(url, SystemEnv())
    reader = open_reader(url, SystemEnv())
    await store.client.submit([a_run(1), a_run(2)])
    assert await reader.find("default", "o-1") is not None
    assert len(await reader.runs("default", limit=(1 << 63) - 1)) == 2
    assert await reader.record("default", "o-2") is not None
    assert len(await reader.endings([1, 2])) == 2
    with pytest.raises(StoreReadOnlyError, match="opened to read only"):
        await reader.submit([a_run(3)])
    await reader.close()
    await store.close()


async def test_a_reader_of_nothing_asks_for_a_migration(new_url):
    reader = open_reader(new_url, SystemEnv())
    with pytest.raises(StoreOutdatedError, match="run `watchbill migrate`"):
        await reader.find("default", "o-1")
    await reader.close()
    assert await by_hand(new_url, "SELECT to_regnamespace('brand_new')::text") == [(None,)]


# --- behind a pooler


async def test_behind_a_pooler_nothing_lives_in_the_session(url):
    """A pooler may give each transaction another session: ours prepare nothing and set nothing that stays."""
    store = await open_store(f"{url}&pooler=transaction", SystemEnv())
    assert isinstance(store, PostgresStore)
    scene = Scene(store, HandClock())
    await scene.open()
    await scene.submit(a_run(1))

    async def session(db):
        connection = db._connection
        asked = (
            "SELECT count(*)::text FROM pg_prepared_statements WHERE name <> ''",
            "SHOW plan_cache_mode",
            "SHOW statement_timeout",
        )
        return [(await connection.fetch(sql))[0][0] for sql in asked]

    assert await store._lines.run(store._lines.others, session) == ["0", "force_generic_plan", "10s"]
    await store.close()


async def test_a_connection_that_is_cut_in_the_first_look_is_a_clear_error(url):
    connection = await connect(address_of(url), HOT)
    await by_hand(url, "SELECT pg_terminate_backend($1)", connection.get_server_pid())
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)) as cut:
        await first_look(connection, address_of(url))
    connection.terminate()
    driver = asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")
    for error in (cut.value, driver):
        assert type(at_opening(error, address_of(url))) is StoreError


# --- whoever stands still while it opens a store


async def test_a_session_that_ends_in_the_first_look_is_opened_again(url):
    """As of a process that is stopped in the middle of it: the server ends transactions that idle."""
    blocker = await connect(address_of(url), HOT)
    await blocker.execute("SET idle_in_transaction_session_timeout = 0; BEGIN")
    await blocker.execute("LOCK TABLE watchbill.meta IN ACCESS EXCLUSIVE MODE")
    opening = asyncio.ensure_future(open_store(url, SystemEnv()))
    looking = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> $1"
    while not await by_hand(url, looking, blocker.get_server_pid()):
        await asyncio.sleep(0.01)
    await blocker.close()
    store = await opening
    await store.client.submit([a_run(1)])
    await store.close()


@pytest.mark.parametrize(("stopped_for", "tries"), [(0, 1), (12, FIRST_TRIES)])
async def test_a_time_to_connect_that_is_over_while_we_stood_still_is_begun_again(stopped_for, tries):
    clock = HandClock()
    came = 0
    left = asyncio.Semaphore(0)

    async def be_silent(reader, writer):
        nonlocal came
        came += 1
        clock.pass_by(stopped_for * SECOND)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()
        left.release()

    async with await asyncio.start_server(be_silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        address = address_of(f"postgresql://ada@127.0.0.1:{port}/shop?connect_timeout=0.2&sslmode=disable")
        with pytest.raises(StoreError, match=r"did not answer within 0\.2 s"):
            await connect_first(address, HOT, clock, first_look)
        for _ in range(came):
            await left.acquire()
    assert came == tries


@pytest.mark.parametrize(
    ("server", "option", "turns", "others"),
    [
        ("off", "", "on", "on"),
        ("local", "", "on", "on"),
        ("remote_apply", "", "remote_apply", "remote_apply"),
        ("remote_write", "", "remote_write", "remote_write"),
        ("on", "off", "off", "on"),
        ("off", "local", "local", "local"),
    ],
)
async def test_sessions_commit_to_the_disk_unless_the_address_names_less(new_url, server, option, turns, others):
    database = (await by_hand(new_url, "SELECT current_database()"))[0][0]
    await by_hand(new_url, f'ALTER DATABASE "{database}" SET synchronous_commit = {server}')
    try:
        store = await open_store(f"{new_url}&synchronous_commit={option}" if option else new_url, SystemEnv())
        lines = store._lines  # type: ignore[attr-defined]
        shown = numbered("SELECT current_setting('synchronous_commit')")
        pools = (lines.turns, lines.beats, lines.others)
        assert [(await lines.row(pool, shown, {}))[0] for pool in pools] == [turns, others, others]
        await store.close()
    finally:
        await by_hand(new_url, f'ALTER DATABASE "{database}" RESET synchronous_commit')


async def test_store_that_became_another_server_issues_no_number_twice(new_url):
    """As a backup that was restored elsewhere: what says which server it is has changed."""
    store = await open_store(new_url, SystemEnv())
    shards = await store.scheduler.shards("default", "")
    before = (await store.scheduler.take(1, shards, None)).taken[0].term
    await by_hand(new_url, "UPDATE watchbill.meta SET value = 'another' WHERE key = 'server'")
    other = await open_store(new_url, SystemEnv())
    assert (await other.scheduler.take(1, shards, None)).taken[0].term >= before + 1_000_000
    [(floor,)] = await by_hand(
        new_url, "SELECT convert_from(value, 'UTF8')::bigint FROM watchbill.meta WHERE key = 'fence_floor'"
    )
    assert floor >= (before + 1_000_000) << 20
    third = await open_store(new_url, SystemEnv())
    assert (await third.scheduler.take(1, shards, None)).taken[0].term < before + 1_000_100, "it jumps once"
    for opened in (store, other, third):
        await opened.close()
