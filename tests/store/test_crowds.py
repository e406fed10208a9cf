"""A crowd behind one gate: what is behind others is found without reading it."""

import os

import msgspec
import pytest

from tests.store.stage import a_stage
from watchbill.model.agent import Act, Room
from watchbill.model.limit import Limit
from watchbill.model.policy import Policy
from watchbill.store.tour import HEAD
from watchbill.testing.conformance.scene import AGENT, KNOWN, STEPS, Scene, a_run

CROWD = 20_000
TENANT = 10 * int(os.environ.get("WATCHBILL_MANY_RUNS", "1000"))  # calls of one key; 100,000 in `make soak`
SLOTS = 10


async def put(scene: Scene, queue: int, gate: str, count: int, at_once: int = 1) -> list[int]:
    run = await scene.run_row("o-1")
    policy = msgspec.json.encode(Policy(limit=Limit(at_once=at_once).allowance()))
    rows = [scene.a_row(run, queue=queue, gate=gate, policy=policy) for _ in range(count)]
    for first in range(0, count, CROWD):
        await scene.turn(attempts=rows[first : first + CROWD])
    return [row.id for row in rows]


async def test_many_rows_behind_a_full_gate_are_not_read_to_lease_those_behind_others(postgres_url):
    async with a_stage(postgres_url) as stage:
        scene = await stage.scene()
        await scene.submit(a_run(1))
        queue = await scene.store.scheduler.queue("default", "", (), "", limited=True)
        await put(scene, queue, "limit:charge:crowd", 1)
        assert len((await scene.store.agent.lease_limited(AGENT, 1, [queue], Room(9, 9, STEPS))).rows) == 1
        await put(scene, queue, "limit:charge:crowd", CROWD)
        await stage.sql("ANALYZE watchbill.attempt")  # at the worst moment: everybody seems to wait behind one gate
        for n in range(5):
            await put(scene, queue, f"limit:charge:{n}", 1)
        before = [await stage.entries_read(scene.store, index) for index in ("attempt_gated", "attempt_ready")]
        found = await scene.store.agent.lease_limited(AGENT, 2, [queue], Room(50, 50, STEPS))
        after = [await stage.entries_read(scene.store, index) for index in ("attempt_gated", "attempt_ready")]
        assert len(found.rows) == 5
        limited, ready = (new - old for new, old in zip(after, before, strict=True))
        assert limited < 200, limited
        assert ready <= 4 * HEAD, ready


@pytest.mark.parametrize("at_once", [1, 1_000_000], ids=["its limit is full", "its limit has room"])
async def test_single_call_of_a_key_is_in_the_next_lease_beside_the_backlog_of_another(store, clock, at_once):
    scene = Scene(store, clock)
    await scene.open()
    await scene.submit(a_run(1))
    queue = await store.scheduler.queue("default", "", (), "", limited=True)
    await put(scene, queue, "limit:charge:ann", TENANT, at_once)
    clock.pass_by(1)
    assert len((await store.agent.lease_limited(AGENT, 1, [queue], Room(SLOTS, SLOTS, STEPS))).rows) == min(
        at_once, SLOTS
    )
    clock.pass_by(60_000_000)
    [bob] = await put(scene, queue, "limit:charge:bob", 1, at_once)
    clock.pass_by(1)
    found = await store.agent.lease_limited(AGENT, 2, [queue], Room(SLOTS, SLOTS, STEPS))
    assert bob in [row.id for row in found.rows]


async def test_backlog_behind_a_gate_with_room_is_not_read_to_lease_a_few_rows(postgres_url):
    async with a_stage(postgres_url) as stage:
        scene = await stage.scene()
        await scene.submit(a_run(1))
        queue = await scene.store.scheduler.queue("default", "", (), "", limited=True)
        await put(scene, queue, "limit:charge:ann", CROWD, 1_000_000)
        for n in range(5):
            await put(scene, queue, f"limit:charge:{n}", 1, 1_000_000)
        await stage.sql("ANALYZE watchbill.attempt")
        before = await stage.entries_read(scene.store, "attempt_gated")
        found = await scene.store.agent.lease_limited(AGENT, 1, [queue], Room(SLOTS, SLOTS, STEPS))
        after = await stage.entries_read(scene.store, "attempt_gated")
        assert len(found.rows) == SLOTS
        assert len({row.id for row in found.rows}) == SLOTS
        assert after - before < 200, after - before


async def test_call_of_one_namespace_costs_no_reads_of_the_rows_of_another(postgres_url):
    async with a_stage(postgres_url) as stage:
        scene = await stage.scene()
        store = scene.store
        await scene.submit(a_run(1))
        elsewhere = await store.scheduler.queue("crowd", "", (), "", limited=False)
        run = await scene.run_row("o-1")
        await scene.turn(attempts=[scene.a_row(run, queue=elsewhere, shard=9_999) for _ in range(CROWD)])
        await stage.sql("ANALYZE watchbill.attempt")  # at the worst moment: all rows seem to be in one queue
        queue = await store.scheduler.queue("default", "", (), "", limited=False)
        found = await stage.sql(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'watchbill.attempt'::regclass"
        )
        places = ["attempt", *(name.rpartition(".")[2].strip('"') for (name,) in found)]
        assert "attempt_ready" in places
        before = {place: await stage.entries_read(store, place) for place in places}
        [mine] = await scene.submit(a_run(2))
        await store.scheduler.look(list(scene.terms), KNOWN, 100)
        await scene.turn(attempts=[scene.a_row(mine, queue=queue)])
        [row] = await store.agent.lease(AGENT, 1, [queue], Room(SLOTS, SLOTS, STEPS))
        await store.agent.beat(AGENT, None, [], [(row.id, row.fence)], queues=[queue], lease_no=1)
        await scene.report(row, Act.DONE, b"1")
        await store.scheduler.look(list(scene.terms), KNOWN, 100)
        await store.supervisor.watch(100)
        read = {place: await stage.entries_read(store, place) - before[place] for place in places}
        assert row.run == mine.num
        assert sum(read.values()) < 100, read
