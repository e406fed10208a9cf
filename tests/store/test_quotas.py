"""The conformance suite on our own stores: quotas; and several processes on one PostgreSQL."""

import asyncio

from tests.store.stage import a_stage
from watchbill.env import SystemEnv
from watchbill.errors import QuotaExceeded
from watchbill.model.agent import Room
from watchbill.model.quota import QuotaKind, QuotaOrder
from watchbill.store.open import MEMORY, open_store
from watchbill.testing.conformance.quotas import *  # noqa: F403
from watchbill.testing.conformance.scene import AGENT, STEPS, HandClock, Scene, a_run

QUOTA = 7


async def test_processes_that_start_runs_at_the_same_time_do_not_exceed_the_quota(postgres_url):
    async with a_stage(postgres_url) as stage:
        stores = [await stage.store() for _ in range(3)]
        await stores[0].client.submit([a_run(1)])
        await stores[0].client.set_quota("default", QuotaOrder(QUOTA, "ann", "a trial"))
        starts = [(stores[n % 3], [a_run(n)] if n % 2 else [a_run(n), a_run(1_000 + n)]) for n in range(2, 26)]
        answers = await asyncio.gather(*(store.client.submit(runs) for store, runs in starts), return_exceptions=True)
        refused = [one for one in answers if isinstance(one, BaseException)]
        assert {type(one) for one in refused} == {QuotaExceeded}
        started = sum(len(one) for one in answers if not isinstance(one, BaseException))
        [(there,)] = await stage.sql("SELECT count(*) FROM watchbill.run")
        assert there == started + 1 <= QUOTA
        assert there >= QUOTA - 1, "one place may be left beside those that want two"


async def test_start_waits_for_another_one_that_is_counted_and_then_counts_it(postgres_url):
    async with a_stage(postgres_url) as stage:
        store = await stage.store()
        await store.client.submit([a_run(1)])
        await store.client.set_quota("default", QuotaOrder(2, "ann", "a trial"))
        other = await stage.pin("SELECT 1 FROM watchbill.quota FOR UPDATE")
        door = stage.begin(store.client.submit([a_run(2)]))
        await stage.waits(door)
        await stage.sql(
            "INSERT INTO watchbill.run (num, shard, namespace, id, workflow, version, root, input, created_at)"
            " SELECT 900, min(shard), 'default', 'o-900', 'order', 1, 900, '[]', 0 FROM watchbill.run"
        )
        await other.commit()
        [refused] = await asyncio.gather(stage.ended(door), return_exceptions=True)
        assert isinstance(refused, QuotaExceeded)


async def test_quota_counts_for_starts_in_the_same_commit():
    store = await open_store(MEMORY, SystemEnv())
    try:
        client = store.client
        await client.submit([a_run(1)])
        doors = (
            client.submit([a_run(2)]),
            client.set_quota("default", QuotaOrder(2, "ann", "")),
            client.submit([a_run(3)]),
        )
        _, _, refused = await asyncio.gather(*doors, return_exceptions=True)
        assert isinstance(refused, QuotaExceeded)
        assert await client.find("default", "o-3") is None
    finally:
        await store.close()


AT_ONCE = QuotaOrder(QUOTA, "ann", "a trial", QuotaKind.ATTEMPTS)


async def test_processes_that_lease_at_the_same_time_do_not_exceed_the_quota_of_attempts(postgres_url):
    async with a_stage(postgres_url) as stage:
        stores = [await stage.store() for _ in range(3)]
        scene = Scene(stores[0], HandClock())
        await scene.open()
        [run] = await scene.submit(a_run(1))
        await scene.turn(attempts=[scene.a_row(run) for _ in range(40)])
        for agent in range(3):
            await stores[agent].agent.join(80 + agent, "default", "", f"p{agent}", b"{}", None)
        await stores[0].client.set_quota("default", AT_ONCE)
        room = Room(2, 2, STEPS)
        asked = [stores[n % 3].agent.lease(80 + n % 3, 1 + n, [scene.queue], room) for n in range(24)]
        leased = [row.id for rows in await asyncio.gather(*asked) for row in rows]
        assert len(leased) == len(set(leased)) == QUOTA
        [(running,)] = await stage.sql("SELECT count(*) FROM watchbill.attempt WHERE state = 1")
        assert running == QUOTA


async def test_lease_waits_for_another_one_of_its_quota_and_then_counts_it(postgres_url):
    async with a_stage(postgres_url) as stage:
        store = await stage.store()
        scene = Scene(store, HandClock())
        await scene.open()
        [run] = await scene.submit(a_run(1))
        rows = [scene.a_row(run) for _ in range(3)]
        await scene.turn(attempts=rows)
        await store.client.set_quota("default", QuotaOrder(1, "ann", "a trial", QuotaKind.ATTEMPTS))
        other = await stage.pin("SELECT 1 FROM watchbill.gate WHERE name = 'quota.attempts' FOR UPDATE")
        door = stage.begin(store.agent.lease(AGENT, 1, [scene.queue], Room(2, 2, STEPS)))
        await stage.waits(door)
        await stage.sql(f"UPDATE watchbill.attempt SET state = 1, agent = 90 WHERE id = {rows[2].id}")
        await other.commit()
        assert await stage.ended(door) == []
