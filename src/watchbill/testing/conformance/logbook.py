"""Logbook: what people order is written down with it, and stays when it is over."""

from watchbill.clock import SECOND, to_datetime
from watchbill.model.agent import Wish
from watchbill.model.gate import GateAct, GateOrder
from watchbill.model.logbook import KEPT_FOR, LogEntry
from watchbill.model.override import Changes
from watchbill.model.policies import PolicyOrder
from watchbill.model.states import RunState
from watchbill.store.protocol import Deleted, Ordered
from watchbill.testing.conformance.keeping import a_full_run
from watchbill.testing.conformance.people import WHY, gathering, waiting
from watchbill.testing.conformance.scene import NOON, Scene, a_run
from watchbill.testing.conformance.schedules import an_order, announced

EVERY = 1_000


async def logged(scene: Scene, namespace: str = "default") -> list[tuple[str, ...]]:
    found = await scene.store.client.logbook(namespace, EVERY)
    return [(one.by, one.kind, one.name, one.act, one.detail, one.reason) for one in found]


def of_gate(act: GateAct, name: str = "step:charge", by: str = "ann", reason: str = "a flood") -> GateOrder:
    return GateOrder(name, act, by, reason)


async def test_a_pause_by_name_is_known_of_when_it_is_over(scene, clock):
    client = scene.store.client
    assert await client.order_gate("default", of_gate(GateAct.PAUSE))
    clock.pass_by(SECOND)
    assert await client.order_gate("default", of_gate(GateAct.OPEN, by="bob", reason=""))
    assert await client.gates("default") == []
    assert await logged(scene) == [
        ("bob", "gate", "step:charge", "open", "", ""),
        ("ann", "gate", "step:charge", "pause", "", "a flood"),
    ]
    assert [one.at for one in await client.logbook("default", EVERY)] == [
        to_datetime(NOON + SECOND),
        to_datetime(NOON),
    ]
    assert len(await client.logbook("default", 1)) == 1
    assert await logged(scene, "other") == []


async def test_an_order_that_changes_nothing_is_not_written_down(scene):
    client = scene.store.client
    assert not await client.order_gate("default", of_gate(GateAct.PAUSE, "limit:none"))
    assert not await client.order_agent("default", 99, Wish.DRAIN, None, LogEntry("agent", "a", "drain", "ann"))
    row = await announced(scene)
    entry = LogEntry("schedule", row.name, "pause", "ann")
    assert await client.order_schedule(an_order(row, paused_by="ann"))
    assert not await client.order_schedule(an_order(row, paused_by="ann", entry=entry)), "it has changed meanwhile"
    await client.set_policy("default", PolicyOrder("charge", "ann", "over"))
    assert await logged(scene) == []


async def test_deletion_of_a_run_is_written_down_once_it_begins(scene):
    client, order = scene.store.client, LogEntry("run", "o-1", "delete", "ann", "wrong prices", "order")
    live = await scene.run_in(RunState.RUNNING, 2)
    assert await client.delete(live.num, EVERY, order) is Deleted.LIVE
    assert await client.delete(404, EVERY, order) is Deleted.GONE
    assert await logged(scene) == [], "nothing was deleted"
    [run] = await scene.submit(a_run(1))
    await a_full_run(scene, run)
    assert await client.delete(run.num, 1, order) is Deleted.MORE
    written = [("ann", "run", "o-1", "delete", "order", "wrong prices")]
    assert await logged(scene) == written, "also if the client dies before the rest is deleted"
    while await client.delete(run.num, EVERY) is Deleted.MORE:
        pass
    assert await logged(scene) == written


async def test_what_is_ordered_of_policies_agents_and_schedules_is_written_down(scene):
    client = scene.store.client
    await client.set_policy("default", PolicyOrder("charge", "ann", "slow", Changes(retries=6)))
    await client.set_policy("default", PolicyOrder("charge", "ann", "over"))
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    entry = LogEntry("agent", "b", "quarantine", "bob", "hot", "gpu=1")
    assert await client.order_agent("default", 71, Wish.QUARANTINE, ("gpu=1",), entry)
    row = await announced(scene)
    pause = LogEntry("schedule", row.name, "pause", "cid", "holidays")
    assert await client.order_schedule(an_order(row, paused_by="cid", paused_why="holidays", entry=pause))
    assert await logged(scene) == [
        ("cid", "schedule", "order", "pause", "", "holidays"),
        ("bob", "agent", "b", "quarantine", "gpu=1", "hot"),
        ("ann", "policy", "charge", "clear", "", "over"),
        ("ann", "policy", "charge", "set", "retries 6", "slow"),
    ]


async def test_what_is_wanted_for_all_of_an_incident_is_written_down_once(scene):
    client = scene.store.client
    await scene.store.supervisor.attach([gathering(1, [await waiting(scene, 1)])])
    entry = LogEntry("incident", "1", "retry", "ann")
    for number in (5, 5, 6):  # an answer was lost; and the same is wanted once more
        done = await client.order_incident("default", 1, "ann", WHY, 2, number=number, entry=entry)
        assert done is Ordered.DONE
    assert await client.order_incident("default", 1, "bob", WHY, 2, number=7, entry=entry) is Ordered.BUSY
    assert await logged(scene) == [("ann", "incident", "1", "retry", "", "")]


async def test_what_was_ordered_more_than_a_year_ago_is_forgotten(scene, clock):
    await scene.store.client.order_gate("default", of_gate(GateAct.PAUSE))
    clock.pass_by(KEPT_FOR)
    await scene.store.client.order_gate("default", of_gate(GateAct.OPEN))
    assert await scene.store.supervisor.forget_incidents(EVERY) == 0
    assert len(await logged(scene)) == 2
    clock.pass_by(1)
    assert await scene.store.supervisor.forget_incidents(EVERY) == 0
    assert [act for _, _, _, act, _, _ in await logged(scene)] == ["open"]
