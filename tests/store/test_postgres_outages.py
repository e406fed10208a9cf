"""Outages of PostgreSQL: each is waited for, said once when it begins and once when it is over, and loses nothing."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tests.servers import PostgresServer, postgres_server
from tests.store.postgres import LISTENING, address_of, by_hand, emptied
from watchbill.borrowed import numbered
from watchbill.env import SystemEnv
from watchbill.errors import StoreCorruptError, StoreError, StoreUnreachableError
from watchbill.store.open import open_store
from watchbill.store.postgres import refusals
from watchbill.store.postgres.connections import PLAIN, connect
from watchbill.store.postgres.store import PostgresStore
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import HandClock, Scene, a_run, an_entry

ADDRESS = address_of("postgresql://ada:s3cr3t@host/shop")
OURS = "application_name = 'watchbill' AND pid <> pg_backend_pid()"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server(max_connections="20", superuser_reserved_connections="3") as server:
        server.sql("CREATE ROLE ada LOGIN; GRANT CREATE ON DATABASE postgres TO ada")
        yield server


@pytest.fixture
async def url(server: PostgresServer) -> str:
    url = server.url(user="ada")
    await emptied(url)
    return url


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    store = await open_store(url, SystemEnv())
    assert isinstance(store, PostgresStore)
    yield store
    await store.close()


@pytest.fixture
async def scene(store: PostgresStore) -> Scene:
    scene = Scene(store, HandClock())
    await scene.open()
    return scene


async def once_back(scene: Scene, num: int) -> None:
    """Submit until it is acknowledged, as a room tries again until the store is back."""
    while True:
        with contextlib.suppress(StoreUnreachableError):
            await scene.submit(a_run(num))
            return


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "watchbill"]


# --- the server


async def test_a_restart_is_waited_for_and_said_twice(scene, server, caplog):
    await scene.submit(a_run(1))
    await scene.turn(journal=[an_entry(1, 1)])
    server.stop()
    for _ in range(5):
        with pytest.raises(StoreUnreachableError):
            await scene.submit(a_run(2))
        with pytest.raises(StoreUnreachableError):
            await scene.turn(journal=[an_entry(1, 2)])
    server.start()
    await once_back(scene, 2)
    assert (await scene.turn(journal=[an_entry(1, 2)])).applied, "terms outlive the server"
    lost, back = said(caplog)
    assert "waiting for it" in lost
    assert "is back after" in back
    assert not any(record.exc_info for record in caplog.records)


async def test_who_listens_during_a_restart_is_woken_after_it_without_a_word_more(scene, server, url, caplog):
    woken = asyncio.Event()
    scene.store.listen(Hint.CLIENT, woken.set)
    await listening(url, 1)
    server.stop()
    with pytest.raises(StoreUnreachableError):
        await scene.submit(a_run(1))
    server.start()
    await once_back(scene, 1)
    await asyncio.wait_for(woken.wait(), 120)
    assert len(said(caplog)) == 2


async def test_no_acknowledgement_is_lost_in_a_crash(scene, server):
    acknowledged: set[int] = set()

    async def keep_submitting(first: int) -> None:
        for num in range(first, first + 400):
            with contextlib.suppress(StoreUnreachableError):
                await scene.submit(a_run(num))
                acknowledged.add(num)

    working = [asyncio.ensure_future(keep_submitting(first)) for first in (1_000, 2_000, 3_000)]
    while len(acknowledged) < 100:
        await asyncio.sleep(0)
    await asyncio.to_thread(server.stop, signal.SIGQUIT)
    await asyncio.gather(*working)
    server.start()
    await once_back(scene, 9_000)
    there = {run.num for run in await scene.store.client.runs("default", limit=10_000)}
    assert acknowledged <= there
    assert len(acknowledged) < 1_200, "the server was away for a while"


async def test_killed_connections_are_opened_again(scene, url):
    await scene.submit(a_run(1))
    await by_hand(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}")
    await once_back(scene, 2)
    assert len(await scene.store.client.runs("default")) == 2


async def test_what_only_reads_is_read_again_when_its_session_is_ended(scene, url, caplog):
    """As of a process that stands still in the middle of it: the server ends transactions that idle."""
    [run] = await scene.submit(a_run(1))
    blocker = await connect(address_of(url), PLAIN)
    await blocker.execute("BEGIN; LOCK TABLE watchbill.journal IN ACCESS EXCLUSIVE MODE")
    read = asyncio.ensure_future(scene.store.client.record(run.namespace, run.id))
    await by_hand(url, "SELECT pg_terminate_backend($1)", await waiting_for_lock(url))
    await blocker.execute("ROLLBACK")
    await blocker.close()
    record = await read
    assert record is not None
    assert record.run.num == 1
    assert said(caplog) == [], "nobody has missed the store"


async def test_what_took_too_long_is_planned_anew_the_next_time(scene, url):
    """By a plan from when its tables were empty it would take too long every time."""
    await scene.submit(a_run(1))
    blocker = await connect(address_of(url), PLAIN)
    await blocker.execute("BEGIN; LOCK TABLE watchbill.journal IN ACCESS EXCLUSIVE MODE")
    turn = scene.a_turn(journal=[an_entry(1, 1)])
    sent = asyncio.ensure_future(scene.store.scheduler.turn(turn))
    await by_hand(url, "SELECT pg_cancel_backend($1)", await waiting_for_lock(url))
    with pytest.raises(StoreUnreachableError, match="took too long"):
        await sent
    await blocker.close()
    [line] = scene.store._lines.turns._lines
    assert line._plans.suspect
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert not line._plans.suspect, "it is made anew"


async def test_a_value_that_cannot_be_sent_spoils_nothing_for_the_next_question(scene):
    [run] = await scene.submit(a_run(1))
    lines = scene.store._lines
    for n in range(3):  # of which none was prepared before
        with pytest.raises(asyncpg.DataError):
            await lines.rows(lines.others, numbered(f"SELECT :many::bigint[] AS asked_{n}"), {"many": [10**25]})
        assert await scene.store.client.record(run.namespace, run.id) is not None


async def waiting_for_lock(url: str) -> int:
    """Wait until a session of ours waits for a lock; gives the number of its process."""
    waiting = f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND wait_event_type = 'Lock'"
    while not (found := await by_hand(url, waiting)):
        pass
    return int(found[0][0])


async def test_an_answer_that_was_cut_off_is_asked_for_again(scene, url):
    """The connection is killed while a turn waits for a lock: it was not applied, and the resend is."""
    await scene.submit(a_run(1))
    blocker = await connect(address_of(url), PLAIN)
    await blocker.execute("BEGIN; LOCK TABLE watchbill.journal IN ACCESS EXCLUSIVE MODE")
    turn = scene.a_turn(journal=[an_entry(1, 1)])
    sent = asyncio.ensure_future(scene.store.scheduler.turn(turn))
    await by_hand(url, "SELECT pg_terminate_backend($1)", await waiting_for_lock(url))
    with pytest.raises(StoreUnreachableError):
        await sent
    await blocker.execute("ROLLBACK")
    await blocker.close()
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert (await scene.store.scheduler.turn(turn, again=True)).applied


async def test_no_connection_to_spare(scene, url, server, caplog):
    crowd = []
    with contextlib.suppress(asyncpg.TooManyConnectionsError):
        while True:
            crowd.append(await connect(address_of(url), PLAIN))
    with pytest.raises(StoreUnreachableError, match="max_connections"):
        await asyncio.gather(
            *(scene.store.supervisor.watch(1) for _ in range(4)), scene.store.scheduler.renew(7, {}, 5)
        )
    for connection in crowd:
        await connection.close()
    while True:
        with contextlib.suppress(StoreUnreachableError):
            await scene.store.scheduler.renew(7, {}, 5)
            break
    away = sum("no connection to spare" in line for line in said(caplog))
    assert away == sum("is back after" in line for line in said(caplog)) > 0, "one line each time, however many asked"


# --- hints across processes


async def test_a_commit_wakes_those_in_other_processes(scene, url):
    other = await open_store(url, SystemEnv())
    woken = {whom: asyncio.Event() for whom in Hint}
    for whom in Hint:
        other.listen(whom, woken[whom].set)
    await listening(url, 1)
    await scene.submit(a_run(1))
    await asyncio.wait_for(woken[Hint.SCHEDULER].wait(), 120)
    assert not woken[Hint.CLIENT].is_set()
    await other.close()


async def test_who_wants_to_hear_of_others_only_does_not_hear_of_this_process(scene, url):
    other = await open_store(url, SystemEnv())
    woken, woken_by_others = asyncio.Event(), asyncio.Event()
    other.listen(Hint.SCHEDULER, woken.set)
    deaf = other.listen(Hint.SCHEDULER, woken_by_others.set, elsewhere=True)
    await listening(url, 1)
    await other.client.submit([a_run(1)])
    assert woken.is_set()
    assert not woken_by_others.is_set()
    await scene.submit(a_run(2, "o-2"))
    await asyncio.wait_for(woken_by_others.wait(), 120)
    deaf()
    await other.close()


async def test_hints_are_gathered_and_do_not_come_back_to_their_sender(scene, url):
    heard: list[str] = []
    listener = await asyncpg.connect(**raw(url))
    await listener.add_listener("watchbill_watchbill", lambda connection, pid, channel, payload: heard.append(payload))
    woken = 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    scene.store.listen(Hint.SCHEDULER, wake)
    await listening(url, 2)
    await scene.submit(a_run(1))
    for _ in range(100):
        scene.store._hints.give(Hint.SCHEDULER)
        scene.store._hints.give(Hint.AGENT)
    assert woken == 101, "here at once, and once for each"
    await scene.store.close()
    await listener.execute("SELECT 1")
    assert sorted({room for payload in heard for room in payload.split()[1].split(",")}) == ["agent", "scheduler"]
    assert len(heard) <= 2
    assert woken == 101, "and no echo"
    await listener.close()


async def test_a_killed_listener_listens_again_and_wakes_everybody_once(scene, url, caplog):
    woken = {whom: asyncio.Event() for whom in Hint}
    for whom in Hint:
        scene.store.listen(whom, woken[whom].set)
    await listening(url, 1)
    [(pid,)] = await by_hand(url, f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND {LISTENING}")
    await by_hand(url, "SELECT pg_terminate_backend($1)", pid)
    for event in woken.values():
        await asyncio.wait_for(event.wait(), 120)
    [line] = said(caplog)
    assert "the listening connection was lost, and is open again" in line


async def listening(url: str, count: int) -> None:
    async with asyncio.timeout(120):
        while len(await by_hand(url, f"SELECT 1 FROM pg_stat_activity WHERE {LISTENING}")) < count:
            pass


def raw(url: str) -> dict[str, str | None]:
    address = address_of(url)
    return {"host": address.host, "user": address.user, "database": address.database}


# --- what a refusal means


REFUSE = """
CREATE FUNCTION watchbill.refuse_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$
"""
ARM = "CREATE TRIGGER refuse_disk BEFORE INSERT ON watchbill.scheduler EXECUTE FUNCTION watchbill.refuse_disk()"


async def test_refused_heartbeats_are_remembered_although_reads_are_answered(store, url):
    async def attend():
        await store.scheduler.attend(7, "default", "", ("work",), b"", 30_000_000)

    def were_refused(within: int) -> bool:
        return store.health.heartbeats.were_refused(0, within)

    await attend()
    assert not were_refused(10**9)
    await by_hand(url, REFUSE)
    await by_hand(url, ARM)
    with pytest.raises(StoreUnreachableError, match="its disk is full"):
        await attend()
    await store.client.runs("default", limit=10)
    assert were_refused(10**9)
    assert were_refused(0), "it still is"
    await by_hand(url, "DROP TRIGGER refuse_disk ON watchbill.scheduler")
    await attend()
    assert were_refused(10**9), "others may not have been heard yet"
    assert not were_refused(0)
    await by_hand(url, "DROP FUNCTION watchbill.refuse_disk")


@pytest.mark.parametrize(
    ("error", "refuses"),
    [
        (asyncpg.DiskFullError("could not extend file"), True),
        (asyncpg.ReadOnlySQLTransactionError("read-only"), True),
        (asyncpg.PostgresIOError("could not write"), True),
        (asyncpg.AdminShutdownError("terminating connection"), False),
        (asyncpg.LockNotAvailableError("lock timeout"), False),
        (ConnectionResetError("reset by peer"), False),
    ],
)
def test_only_a_server_that_answers_refuses_writes(error, refuses):
    assert refusals.refuses_writes(error) is refuses


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (asyncpg.DiskFullError("could not extend file"), "its disk is full"),
        (asyncpg.TooManyConnectionsError("sorry"), "max_connections"),
        (asyncpg.AdminShutdownError("terminating connection"), "terminating connection"),
        (asyncpg.CannotConnectNowError("starting up"), "starting up or shutting down"),
        (asyncpg.DeadlockDetectedError("deadlock detected"), "deadlock"),
        (asyncpg.SerializationError("could not serialize"), "serialize"),
        (asyncpg.QueryCanceledError("statement timeout"), "took too long"),
        (asyncpg.LockNotAvailableError("lock timeout"), "a lock was not to be had"),
        (asyncpg.ReadOnlySQLTransactionError("read-only"), "name the server that can be written"),
        (asyncpg.IdleInTransactionSessionTimeoutError("idle"), "idle"),
        (asyncpg.ConnectionDoesNotExistError("closed in the middle"), "closed in the middle"),
        (asyncpg.InterfaceError("connection is closed"), "connection is closed"),
        (ConnectionResetError("reset by peer"), "reset by peer"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_what_passes_is_waited_for(error, says):
    translated = refusals.at_run_time(error, ADDRESS)
    assert isinstance(translated, StoreUnreachableError)
    assert says in str(translated)
    assert "s3cr3t" not in str(translated)


@pytest.mark.parametrize(
    "error",
    [asyncpg.InvalidPasswordError("no"), asyncpg.InvalidCatalogNameError("no"), OSError("refused"), TimeoutError()],
)
def test_whatever_refuses_a_new_connection_may_pass(error):
    assert isinstance(refusals.at_reconnect(error, ADDRESS), StoreUnreachableError)


def test_what_does_not_pass_is_an_end():
    gone = refusals.at_run_time(asyncpg.UndefinedTableError("relation run does not exist"), ADDRESS)
    assert isinstance(gone, StoreError)
    assert not isinstance(gone, StoreUnreachableError)


def test_a_fault_of_ours_is_nobody_elses():
    for error in (asyncpg.UniqueViolationError("double"), asyncpg.exceptions.DataError("too large"), ValueError("x")):
        assert refusals.at_run_time(error, ADDRESS) is error


async def test_a_blob_that_is_missing_is_damage(scene, url):
    await scene.submit(a_run(1, input=b"x" * 300_000))
    await by_hand(url, "DELETE FROM watchbill.blob")
    with pytest.raises(StoreCorruptError, match="of run 1 is missing"):
        await scene.run_row("o-1")
