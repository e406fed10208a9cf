"""Evidence of death, on every store that several processes can use: a connection that is gone, and a beat missed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.store.postgres import by_hand, emptied
from tests.store.stage import a_stage
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.model.agent import Room
from watchbill.model.states import AttemptState
from watchbill.store.open import Driven, open_for_agent, open_store, receiving_guests
from watchbill.store.postgres.store import PostgresStore
from watchbill.store.protocol import AgentAccess, Store
from watchbill.testing.conformance.scene import STEPS, HandClock, Scene, a_run, a_verdict

LONG = 120  # seconds: reached only by a test that fails
GUEST = 700
LASTING = 8 * SECOND
SESSION = """
SELECT pid
FROM pg_locks
WHERE locktype = 'advisory' AND (classid::bigint << 32) | objid::bigint = watchbill.witness_lock($1)
"""
WITNESSED = "SELECT witness FROM watchbill.agent WHERE id = $1"


@pytest.fixture(params=["sqlite file", "postgres"])
async def url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite file":
        return f"sqlite:///{folder}/store.db"
    address: str = request.getfixturevalue("postgres_url")
    await emptied(address)
    return address


@pytest.fixture
async def store(url: str, clock: HandClock) -> AsyncIterator[Store]:
    """The store where the supervisor is, who has been there for long."""
    store = await open_store(url, SystemEnv(), clock=clock)
    async with receiving_guests(store, SystemEnv(), lambda: Driven("default", ())):
        scene = Scene(store, clock)
        await scene.open()
        clock.pass_by(60 * SECOND)
        yield store
    await store.close()


@contextlib.asynccontextmanager
async def an_agent(url: str, clock: HandClock, agent: int = GUEST) -> AsyncIterator[AgentAccess]:
    access = await open_for_agent(url, SystemEnv(), clock=_same(clock))
    await access.agent.join(agent, "default", "", "guest", b"{}", LASTING)
    yield access
    await access.close()


def _same(clock: HandClock) -> HandClock:
    """Give the same time to a process that begins later."""

    class Later(HandClock):
        def wall(self) -> int:
            return clock.wall_now

        def boot(self) -> int:
            return clock.boot_now

    return Later()


async def silent(store: Store) -> list[int]:
    return list((await store.supervisor.watch(1)).silent)


async def falls_silent(store: Store, clock: HandClock, agent: int = GUEST) -> None:
    """Look once a second, as a supervisor does, until its silence is noticed."""
    async with asyncio.timeout(LONG):
        while await silent(store) != [agent]:
            clock.pass_by(SECOND // 20)
            await asyncio.sleep(0.01)


async def is_never_silent(store: Store, clock: HandClock) -> None:
    for _ in range(20):
        assert await silent(store) == []
        clock.pass_by(SECOND)


async def test_an_agent_that_ends_without_a_word_is_silent_and_its_work_is_an_orphan_at_once(url, store, clock):
    scene = Scene(store, clock)
    async with an_agent(url, clock) as access:
        scene.queue = await store.scheduler.queue("default", "", (), "")
        shards = await store.scheduler.shards("default", "")
        scene.terms = {shard.shard: shard.term for shard in (await store.scheduler.take(7, shards, None)).taken}
        [run] = await scene.submit(a_run(1))
        await scene.turn(attempts=[scene.a_row(run)])
        [row] = await access.agent.lease(GUEST, 1, [scene.queue], Room(1, 1, STEPS))
        ends = (await access.agent.beat(GUEST, 90 * SECOND, ())).now + 90 * SECOND
    await falls_silent(store, clock)
    assert (await store.supervisor.watch(10)).orphans == ()
    await store.supervisor.bury([GUEST], unheard=True)
    watch = await store.supervisor.watch(10, expired=False)
    assert [orphan.id for orphan in watch.orphans] == [row.id]
    assert await silent(store) == []
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, dead_agent=GUEST, watch_in=0))
    [failed] = (await store.supervisor.watch(10, expired=False)).due
    assert failed.leased_until == ends, "it may live, and act until then"


async def test_an_agent_that_is_there_and_says_nothing_is_not_silent(url, store, clock):
    async with an_agent(url, clock):
        await is_never_silent(store, clock)


async def test_an_agent_that_has_left_is_not_silent(url, store, clock):
    async with an_agent(url, clock) as access:
        await access.agent.leave(GUEST)
    await is_never_silent(store, clock)


async def test_an_agent_that_beats_over_another_connection_is_not_silent(url, store, clock):
    async with an_agent(url, clock, GUEST + 1) as other:
        async with an_agent(url, clock):
            pass
        for _ in range(20):
            assert (await other.agent.beat(GUEST, LASTING, ())).alive
            assert await silent(store) == []
            clock.pass_by(SECOND)


async def test_who_is_heard_at_the_last_moment_is_not_buried(url, store, clock):
    async with an_agent(url, clock, GUEST + 1) as other:
        async with an_agent(url, clock):
            pass
        await falls_silent(store, clock)
        await other.agent.beat(GUEST, LASTING, ())
        await store.supervisor.bury([GUEST], unheard=True)
        assert (await other.agent.beat(GUEST, LASTING, ())).alive


# --- on PostgreSQL, where it is a lock in a session


@pytest.fixture
async def shared(postgres_url: str, clock: HandClock) -> AsyncIterator[PostgresStore]:
    await emptied(postgres_url)
    store = await open_store(postgres_url, SystemEnv(), clock=clock)
    assert isinstance(store, PostgresStore)
    await Scene(store, clock).open()
    clock.pass_by(60 * SECOND)
    yield store
    await store.close()


async def becomes_witnessed(url: str, witnessed: bool) -> None:
    async with asyncio.timeout(LONG):
        while [tuple(row) for row in await by_hand(url, WITNESSED, GUEST)] != [(witnessed,)]:
            await asyncio.sleep(0.01)


async def test_a_session_that_was_killed_is_opened_again_with_its_lock(postgres_url, shared, clock):
    async with an_agent(postgres_url, clock) as access:
        assert isinstance(access, PostgresStore)
        [(pid,)] = await by_hand(postgres_url, SESSION, GUEST)
        await by_hand(postgres_url, "SELECT pg_terminate_backend($1)", pid)
        await becomes_witnessed(postgres_url, False)  # said at once, over another connection
        async with asyncio.timeout(LONG):
            while not access._hints.witness.vouches_for(GUEST):
                await asyncio.sleep(0.01)
        await access.agent.beat(GUEST, LASTING, ())
        await becomes_witnessed(postgres_url, True)
        await is_never_silent(shared, clock)


async def test_who_cannot_listen_any_more_takes_its_word_back_and_lives_by_its_lease(postgres_url, clock):
    async with a_stage(postgres_url) as stage:
        supervisor = await stage.store()
        await stage.scene(supervisor)
        stage.clock.pass_by(60 * SECOND)
        line = await stage.wire()
        agent = await stage.store(line.url())
        await agent.agent.join(GUEST, "default", "", "guest", b"{}", LASTING)
        await becomes_witnessed(postgres_url, True)
        [(pid,)] = await by_hand(postgres_url, SESSION, GUEST)
        line.lose(b"LISTEN")
        await stage.kill(pid)
        await becomes_witnessed(postgres_url, False)
        await is_never_silent(supervisor, stage.clock)
        await agent.agent.beat(GUEST, LASTING, ())
        await becomes_witnessed(postgres_url, False)
        line.cut()


async def test_who_has_just_come_does_not_judge_by_sessions(postgres_url, shared, clock):
    async with an_agent(postgres_url, clock):
        pass
    newcomer = await open_store(postgres_url, SystemEnv(), clock=_same(clock))
    await newcomer.agent.join(GUEST + 1, "default", "", "newcomer", b"{}", None)  # it has a session of its own
    for _ in range(7):
        assert await silent(newcomer) == []
        clock.pass_by(SECOND)
    await falls_silent(newcomer, clock)
    await newcomer.close()


async def test_a_supervisor_without_a_session_of_its_own_cannot_tell(postgres_url, shared, clock):
    async with an_agent(postgres_url, clock):
        pass
    deaf = await open_store(postgres_url, SystemEnv(), clock=_same(clock))
    await is_never_silent(deaf, clock)
    await deaf.close()
    await falls_silent(shared, clock)


async def test_behind_a_pooler_no_lock_is_announced(postgres_url, shared, clock):
    pooled = f"{postgres_url}{'&' if '?' in postgres_url else '?'}pooler=transaction"
    async with an_agent(pooled, clock) as access:
        await access.agent.beat(GUEST, LASTING, ())
        await becomes_witnessed(postgres_url, False)
    await is_never_silent(shared, clock)


async def test_a_lock_that_somebody_else_has_is_not_announced(postgres_url, shared, clock):
    async with a_stage(postgres_url) as stage:
        pin = await stage.pin("SELECT pg_advisory_xact_lock(watchbill.witness_lock($1))", GUEST)
        async with an_agent(postgres_url, clock) as access:
            await becomes_witnessed(postgres_url, False)
            await pin.release()
            await access.agent.beat(GUEST, LASTING, ())
            await becomes_witnessed(postgres_url, False)
