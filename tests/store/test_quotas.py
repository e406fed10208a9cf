"""The conformance suite on our own stores: quotas; and several processes on one PostgreSQL."""

import asyncio

from tests.store.stage import a_stage
from watchbill.errors import QuotaExceeded
from watchbill.model.quota import QuotaOrder
from watchbill.testing.conformance.quotas import *  # noqa: F403
from watchbill.testing.conformance.scene import a_run

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
