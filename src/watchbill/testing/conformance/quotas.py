"""Quotas: how many runs of a namespace may be open, and what is refused; how many attempts may run, and what waits."""

import asyncio

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.errors import QuotaExceeded
from watchbill.model.agent import Act, Room
from watchbill.model.gate import GateAct, GateOrder
from watchbill.model.limit import Limit
from watchbill.model.policy import Policy
from watchbill.model.quota import AttemptsQuota, QuotaKind, QuotaOrder
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import AGENT, LIMIT, STEPS, Scene, a_run, a_verdict

SET = QuotaOrder(2, "ann", "a trial customer")
CLEARED = QuotaOrder(None, "bob", "they pay now")


AT_ONCE = QuotaOrder(2, "ann", "a trial customer", QuotaKind.ATTEMPTS)
NO_LONGER = QuotaOrder(None, "bob", "they pay now", QuotaKind.ATTEMPTS)
OTHER, ELSEWHERE = 71, 73


async def open_and_bound(scene: Scene) -> list[tuple[str, int | None, int | None]]:
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
    await scene.store.client.set_quota("default", msgspec.structs.replace(SET, most=3))
    await scene.run_in(RunState.COMPLETED, 3)
    await scene.submit(a_run(4))
    with pytest.raises(QuotaExceeded):
        await scene.submit(a_run(5))
    assert await open_and_bound(scene) == [("default", 3, 3)]


async def test_namespace_without_a_quota_is_not_bound_by_that_of_another(scene):
    await scene.store.client.set_quota("elsewhere", msgspec.structs.replace(SET, most=1))
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
    await scene.store.client.set_quota("default", msgspec.structs.replace(SET, most=5))
    answers = await asyncio.gather(
        *(scene.store.client.submit([a_run(n)]) for n in range(1, 21)), return_exceptions=True
    )
    refused = [one for one in answers if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [QuotaExceeded] * 15
    assert await open_and_bound(scene) == [("default", 5, 5)]


# --- attempts at once


class Crowd:
    """Ready rows of one run, of a plain queue and of one with a limit; and who leases them."""

    def __init__(self, scene: Scene, run, limited: int) -> None:
        self.scene = scene
        self.run = run
        self.limited = limited
        self._numbers = iter(range(1_000_000, 2_000_000))

    async def put(self, count: int, **changes: object) -> list[int]:
        rows = [self.scene.a_row(self.run)._replace(**changes) for _ in range(count)]  # type: ignore[arg-type]
        await self.scene.turn(attempts=rows)
        return [row.id for row in rows]

    async def put_limited(self, count: int, limit: Limit, gate: str = "limit:charge") -> list[int]:
        policy = msgspec.json.encode(Policy(limit=limit.allowance()))
        return await self.put(count, queue=self.limited, gate=gate, policy=policy)

    async def rows(self, agent: int = AGENT, slots: int = LIMIT):
        room = Room(slots, LIMIT, STEPS)
        return await self.scene.store.agent.lease(agent, next(self._numbers), [self.scene.queue], room)

    async def rows_with_limits(self, agent: int = AGENT, slots: int = LIMIT):
        room = Room(slots, LIMIT, STEPS)
        found = await self.scene.store.agent.lease_limited(agent, next(self._numbers), [self.limited], room)
        return found.rows

    async def leased(self, agent: int = AGENT, slots: int = LIMIT) -> list[int]:
        return [row.id for row in await self.rows(agent, slots)]

    async def leased_with_limits(self, agent: int = AGENT, slots: int = LIMIT) -> list[int]:
        return [row.id for row in await self.rows_with_limits(agent, slots)]

    async def bound(self, most: int | None = 2) -> bool:
        order = msgspec.structs.replace(AT_ONCE, most=most)
        done: bool = await self.scene.store.client.set_quota("default", order)
        return done

    async def running(self) -> list[tuple[str, int | None, int | None]]:
        return [(one.namespace, one.running, one.attempts) for one in await self.scene.store.client.quotas()]


@pytest.fixture
async def crowd(scene):
    [run] = await scene.submit(a_run(1))
    limited = await scene.store.scheduler.queue("default", "", (), "", limited=True)
    await scene.store.agent.join(OTHER, "default", "", "b", b"{}", None)
    return Crowd(scene, run, limited)


async def test_no_more_attempts_of_a_namespace_are_leased_than_its_quota_allows(crowd):
    ids = await crowd.put(5)
    assert await crowd.bound(2)
    assert await crowd.leased() == ids[:2]
    assert await crowd.leased() == []
    assert await crowd.leased(OTHER) == []
    assert await crowd.running() == [("default", 2, 2)]


async def test_attempts_that_run_when_the_quota_is_set_count(crowd):
    ids = await crowd.put(5)
    assert await crowd.leased(slots=3) == ids[:3]
    await crowd.bound(2)
    assert await crowd.leased(OTHER) == []
    assert await crowd.running() == [("default", 3, 2)]
    await crowd.bound(4)
    assert await crowd.leased(OTHER) == ids[3:4]


@pytest.mark.parametrize("act", [Act.DONE, Act.FAILED, Act.DIED, Act.HAND_BACK])
async def test_attempt_that_ends_lets_another_one_of_the_quota_start(crowd, act):
    await crowd.put(2)
    await crowd.bound(1)
    [row] = await crowd.rows()
    assert await crowd.leased(OTHER) == []
    body = None if act == Act.HAND_BACK else b'{"type":"ValueError","message":"no"}'
    await crowd.scene.report(row, act, body)
    assert len(await crowd.leased(OTHER)) == 1
    assert await crowd.running() == [("default", 1, 1)]


async def test_attempt_of_a_dead_agent_counts_until_it_is_judged(crowd, clock):
    await crowd.scene.store.agent.join(72, "default", "", "c", b"{}", 8 * SECOND)
    _, second = await crowd.put(2)
    await crowd.bound(1)
    [row] = await crowd.rows(72)
    clock.pass_by(9 * SECOND)
    assert await crowd.leased() == []  # it may still act
    assert await crowd.scene.judge(a_verdict(row, AttemptState.FAILED, dead_agent=72, watch_in=0))
    assert await crowd.leased() == [second]


async def test_rows_with_and_without_limits_share_the_quota_of_attempts(crowd):
    plain, limited = await crowd.put(3), await crowd.put_limited(3, Limit(at_once=3))
    await crowd.bound(3)
    assert await crowd.leased_with_limits(slots=2) == limited[:2]
    assert await crowd.leased() == plain[:1]
    assert await crowd.leased_with_limits() == []
    await crowd.bound(4)
    assert await crowd.leased_with_limits(OTHER) == limited[2:]
    assert await crowd.leased(OTHER) == []


async def test_rate_of_a_limit_spends_nothing_on_rows_that_the_quota_keeps(crowd, clock):
    limited = await crowd.put_limited(4, Limit("4/s"))
    await crowd.bound(1)
    [row] = await crowd.rows_with_limits()
    assert await crowd.leased_with_limits() == []
    await crowd.scene.report(row, Act.DONE, b"1")
    await crowd.bound(9)
    assert await crowd.leased_with_limits() == limited[1:]


async def test_quota_of_attempts_keeps_no_other_namespace_waiting(crowd):
    scene = crowd.scene
    await crowd.put(2)
    await crowd.bound(1)
    assert len(await crowd.leased()) == 1
    queue = await scene.store.scheduler.queue("elsewhere", "", (), "")
    await scene.store.agent.join(ELSEWHERE, "elsewhere", "", "e", b"{}", None)
    ids = await crowd.put(3, queue=queue)
    rows = await scene.store.agent.lease(ELSEWHERE, 1, [queue], Room(LIMIT, LIMIT, STEPS))
    assert [row.id for row in rows] == ids
    assert await crowd.running() == [("default", 1, 1)]


async def test_cleared_quota_of_attempts_bounds_nothing(crowd):
    ids = await crowd.put(4)
    await crowd.bound(1)
    assert await crowd.leased() == ids[:1]
    client = crowd.scene.store.client
    assert await client.set_quota("default", NO_LONGER)
    assert not await client.set_quota("default", NO_LONGER)
    assert await client.quotas() == []
    assert await crowd.leased(OTHER) == ids[1:]


async def test_both_quotas_of_a_namespace_are_set_listed_and_cleared_apart(scene):
    client = scene.store.client
    await client.set_quota("default", SET)
    await client.set_quota("default", AT_ONCE)
    found = [(one.kind, one.runs, one.open, one.attempts, one.running, one.by) for one in await client.quotas()]
    assert found == [("runs", 2, 0, None, None, "ann"), ("attempts", None, None, 2, 0, "ann")]
    await client.set_quota("default", CLEARED)
    assert [one.kind for one in await client.quotas()] == [QuotaKind.ATTEMPTS]
    await scene.submit(a_run(1), a_run(2), a_run(3))
    orders = [(one.act, one.detail) for one in await client.logbook("default", 10)]
    assert orders[:2] == [("clear", ""), ("set", "at most 2 attempts at once")]


async def test_quota_of_attempts_is_no_gate_that_people_see_or_order(crowd):
    client = crowd.scene.store.client
    await crowd.bound(1)
    assert await client.gates("default") == []
    assert await client.order_gate("default", GateOrder("step:charge", GateAct.PAUSE, "ann", ""))
    assert [gate.name for gate in await client.gates("default")] == ["step:charge"]


async def test_pause_by_name_holds_in_a_namespace_with_a_quota_of_attempts(crowd):
    client = crowd.scene.store.client
    ids = await crowd.put(3)
    await crowd.bound(2)
    await client.order_gate("default", GateOrder("step:charge", GateAct.PAUSE, "ann", ""))
    assert await crowd.leased() == []
    await client.order_gate("default", GateOrder("step:charge", GateAct.OPEN, "ann", ""))
    assert await crowd.leased() == ids[:2]


async def test_record_says_that_the_quota_of_attempts_is_used_up(crowd):
    await crowd.put(3)
    await crowd.bound(2)
    client = crowd.scene.store.client
    record = await client.record("default", crowd.run.id)
    assert [wait.quota for wait in record.waits] == [None] * 3
    assert len(await crowd.leased()) == 2
    record = await client.record("default", crowd.run.id)
    assert [wait.quota for wait in record.waits] == [AttemptsQuota("default", 2, 2)]


async def test_schedulers_hear_of_a_quota_of_attempts_with_their_look(crowd):
    scene = crowd.scene
    look = await scene.store.scheduler.look(list(scene.terms), ["order"], 100)
    assert look.stopped == ()
    await crowd.bound(2)
    look = await scene.store.scheduler.look(list(scene.terms), ["order"], 100)
    assert look.stopped == ("quota.attempts",)


async def test_agents_are_woken_when_an_attempt_of_a_quota_ends_and_when_it_is_raised(crowd):
    woken = []
    await crowd.put(2)
    await crowd.bound(1)
    [row] = await crowd.rows()
    crowd.scene.store.listen(Hint.AGENT, lambda: woken.append("agent"))
    await crowd.scene.report(row, Act.DONE, b"1")
    assert woken == ["agent"]
    await crowd.bound(2)
    assert woken == ["agent"] * 2


async def test_leases_at_the_same_time_do_not_exceed_the_quota_of_attempts(crowd):
    await crowd.put(20)
    await crowd.put_limited(20, Limit(at_once=20))
    await crowd.bound(5)
    asked = [crowd.leased(agent, 3) for agent in (AGENT, OTHER)] + [
        crowd.leased_with_limits(agent, 3) for agent in (AGENT, OTHER)
    ]
    found = await asyncio.gather(*asked)
    assert sum(len(ids) for ids in found) == 5
    assert await crowd.running() == [("default", 5, 5)]
