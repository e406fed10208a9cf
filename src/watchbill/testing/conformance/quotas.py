"""Quotas: how many runs of a namespace may be open, and what is refused above it."""

import asyncio

import msgspec
import pytest

from watchbill.errors import QuotaExceeded
from watchbill.model.quota import QuotaOrder
from watchbill.model.states import RunState
from watchbill.testing.conformance.scene import Scene, a_run

SET = QuotaOrder(2, "ann", "a trial customer")
CLEARED = QuotaOrder(None, "bob", "they pay now")


async def open_and_bound(scene: Scene) -> list[tuple[str, int, int]]:
    return [(one.namespace, one.open, one.runs) for one in await scene.store.client.quotas()]


async def test_start_above_the_quota_is_refused_and_nothing_is_written(scene):
    client = scene.store.client
    assert await client.set_quota("default", SET)
    await scene.submit(a_run(1), a_run(2))
    with pytest.raises(QuotaExceeded, match=r"the quota of namespace 'default' is 2 open runs") as refused:
        await scene.submit(a_run(3))
    assert (refused.value.namespace, refused.value.quota, refused.value.asked) == ("default", 2, 1)
    assert await client.find("default", "o-3") is None
    assert await open_and_bound(scene) == [("default", 2, 2)]


async def test_runs_that_are_submitted_together_are_all_refused_or_none(scene):
    client = scene.store.client
    await client.set_quota("default", SET)
    await scene.submit(a_run(1))
    with pytest.raises(QuotaExceeded, match="2 runs were not started"):
        await scene.submit(a_run(2), a_run(3))
    assert await client.find("default", "o-2") is None
    await scene.submit(a_run(2))


async def test_run_that_is_there_already_is_given_back_above_the_quota(scene):
    await scene.store.client.set_quota("default", SET)
    await scene.submit(a_run(1), a_run(2))
    [again] = await scene.store.client.submit([a_run(1)])
    assert (again.run.id, again.new) == ("o-1", True)  # the same number: the answer was lost
    [other] = await scene.store.client.submit([msgspec.structs.replace(a_run(1), num=77)])
    assert (other.run.id, other.new) == ("o-1", False)


async def test_run_that_ends_makes_room(scene):
    await scene.store.client.set_quota("default", SET)
    await scene.submit(a_run(1))
    await scene.run_in(RunState.WAITING, 2)
    with pytest.raises(QuotaExceeded):
        await scene.submit(a_run(4))
    await scene.store.client.set_quota("default", msgspec.structs.replace(SET, runs=3))
    await scene.run_in(RunState.COMPLETED, 3)
    await scene.submit(a_run(4))
    with pytest.raises(QuotaExceeded):
        await scene.submit(a_run(5))
    assert await open_and_bound(scene) == [("default", 3, 3)]


async def test_namespace_without_a_quota_is_not_bound_by_that_of_another(scene):
    await scene.store.client.set_quota("elsewhere", msgspec.structs.replace(SET, runs=1))
    await scene.submit(*(a_run(n) for n in range(1, 6)))
    there = [msgspec.structs.replace(a_run(n), namespace="elsewhere") for n in (6, 7)]
    await scene.store.client.submit(there[:1])
    with pytest.raises(QuotaExceeded, match="elsewhere"):
        await scene.store.client.submit(there[1:])


async def test_children_are_not_refused_and_count(scene):
    client = scene.store.client
    await client.set_quota("default", SET)
    [parent] = await scene.submit(a_run(1))
    children = [msgspec.structs.replace(a_run(n), parent=parent.num, root=parent.num) for n in (2, 3)]
    shards = [msgspec.structs.replace(child, shard=parent.shard) for child in children]
    assert (await scene.turn(starts=shards)).applied
    assert await client.find("default", "o-3") is not None
    with pytest.raises(QuotaExceeded):
        await scene.submit(a_run(4))


async def test_cleared_quota_bounds_nothing(scene):
    client = scene.store.client
    await client.set_quota("default", SET)
    await scene.submit(a_run(1), a_run(2))
    assert await client.set_quota("default", CLEARED)
    assert not await client.set_quota("default", CLEARED)
    await scene.submit(a_run(3), a_run(4))
    assert await client.quotas() == []


async def test_orders_about_quotas_are_in_the_logbook(scene):
    await scene.store.client.set_quota("default", SET)
    await scene.store.client.set_quota("default", CLEARED)
    logged = await scene.store.client.logbook("default", 10)
    assert [(one.kind, one.name, one.act, one.by, one.reason, one.detail) for one in logged] == [
        ("quota", "default", "clear", "bob", "they pay now", ""),
        ("quota", "default", "set", "ann", "a trial customer", "at most 2 open runs"),
    ]


async def test_quota_says_who_set_it_and_why(scene):
    await scene.store.client.set_quota("default", SET)
    [one] = await scene.store.client.quotas()
    assert (one.namespace, one.runs, one.open, one.by, one.reason) == ("default", 2, 0, "ann", "a trial customer")


async def test_starts_at_the_same_time_do_not_exceed_the_quota(scene):
    await scene.store.client.set_quota("default", msgspec.structs.replace(SET, runs=5))
    answers = await asyncio.gather(
        *(scene.store.client.submit([a_run(n)]) for n in range(1, 21)), return_exceptions=True
    )
    refused = [one for one in answers if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [QuotaExceeded] * 15
    assert await open_and_bound(scene) == [("default", 5, 5)]
