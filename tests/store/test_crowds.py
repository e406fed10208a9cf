"""A crowd behind one gate: what is behind others is found without reading it."""

import msgspec

from tests.store.stage import a_stage
from watchbill.model.agent import Room
from watchbill.model.limit import Limit
from watchbill.model.policy import Policy
from watchbill.store.tour import HEAD
from watchbill.testing.conformance.scene import AGENT, STEPS, Scene, a_run

CROWD = 20_000


async def put(scene: Scene, queue: int, gate: str, count: int) -> None:
    run = await scene.run_row("o-1")
    policy = msgspec.json.encode(Policy(limit=Limit(at_once=1).allowance()))
    await scene.turn(attempts=[scene.a_row(run, queue=queue, gate=gate, policy=policy) for _ in range(count)])


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
