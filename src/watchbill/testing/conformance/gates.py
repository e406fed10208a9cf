"""Gates: who may start behind them, by number and by rate; and what people see and order."""

import asyncio

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act, Room
from watchbill.model.attempt import NewAttempt
from watchbill.model.gate import GateAct, GateOrder
from watchbill.model.limit import Limit
from watchbill.model.policy import Policy
from watchbill.model.states import AttemptState
from watchbill.store.protocol import Hint, Limited
from watchbill.testing.conformance.scene import AGENT, LIMIT, NOON, STEPS, Scene, a_run, a_verdict

OTHER = 71
ONE = "limit:charge"


def pause(name: str) -> GateOrder:
    return GateOrder(name, GateAct.PAUSE, "ann", "a flood")


def let_go(name: str) -> GateOrder:
    return GateOrder(name, GateAct.OPEN, "bob", "")


class Gates:
    """A limited queue of a scene, and who leases from it."""

    def __init__(self, scene: Scene, run, queue: int) -> None:
        self.scene = scene
        self.run = run
        self.queue = queue
        self._numbers = iter(range(1_000_000, 2_000_000))

    def a_row(self, limit: Limit, gate: str = ONE, **changes: object) -> NewAttempt:
        policy = msgspec.json.encode(Policy(limit=limit.allowance()))
        row = self.scene.a_row(self.run, queue=self.queue, gate=gate, policy=policy)
        return row._replace(**changes)  # type: ignore[arg-type]

    async def put(self, count: int, limit: Limit, gate: str = ONE, **changes: object) -> list[int]:
        rows = [self.a_row(limit, gate, **changes) for _ in range(count)]
        await self.scene.turn(attempts=rows)
        return [row.id for row in rows]

    async def lease(
        self, agent: int = AGENT, *, slots: int = LIMIT, alone: int = LIMIT, lease_no: int | None = None
    ) -> Limited:
        number = next(self._numbers) if lease_no is None else lease_no
        return await self.scene.store.agent.lease_limited(agent, number, [self.queue], Room(slots, alone, STEPS))

    async def leased(self, agent: int = AGENT, *, slots: int = LIMIT, alone: int = LIMIT) -> list[int]:
        return [row.id for row in (await self.lease(agent, slots=slots, alone=alone)).rows]


@pytest.fixture
async def gates(scene):
    [run] = await scene.submit(a_run(1))
    queue = await scene.store.scheduler.queue("default", "", (), "", limited=True)
    await scene.store.agent.join(OTHER, "default", "", "b", b"{}", None)
    return Gates(scene, run, queue)


# --- by number


async def test_no_more_start_than_may_run_at_once(gates):
    ids = await gates.put(5, Limit(at_once=2))
    found = await gates.lease()
    assert [row.id for row in found.rows] == ids[:2]
    assert found.next_at is None  # time alone lets nobody start
    assert await gates.leased() == []
    assert await gates.leased(OTHER) == []


async def test_a_lease_behind_a_gate_is_a_lease_like_any_other(gates, clock):
    [id] = await gates.put(1, Limit(at_once=2))
    clock.pass_by(SECOND)
    [row] = (await gates.lease()).rows
    assert (row.state, row.agent, row.losses, row.started_at) == (AttemptState.RUNNING, AGENT, 1, NOON + SECOND)
    assert row.watch_at == NOON + 61 * SECOND
    assert row.fence == (await gates.scene.row(id)).fence
    assert row.args == b"[1]"


@pytest.mark.parametrize("act", [Act.DONE, Act.FAILED, Act.DIED, Act.HAND_BACK])
async def test_a_slot_is_free_when_its_row_ends_in_whatever_way(gates, act):
    await gates.put(2, Limit(at_once=1))
    [row] = (await gates.lease()).rows
    assert await gates.leased() == []
    body = None if act == Act.HAND_BACK else b'{"type":"ValueError","message":"no"}'
    await gates.scene.report(row, act, body)
    assert len(await gates.leased()) == 1


async def test_a_slot_is_free_when_its_agent_is_dead_and_its_row_is_judged(gates, clock):
    await gates.scene.store.agent.join(72, "default", "", "c", b"{}", 8 * SECOND)
    first, second = await gates.put(2, Limit(at_once=1))
    [row] = (await gates.lease(72)).rows
    clock.pass_by(9 * SECOND)
    assert await gates.leased() == []  # nobody has found it dead yet
    assert await gates.scene.judge(a_verdict(row, AttemptState.FAILED, dead_agent=72, watch_in=0))
    assert await gates.leased() == [second]
    assert row.id == first


async def test_a_slot_is_free_when_its_agent_has_left(gates):
    first, second = await gates.put(2, Limit(at_once=1))
    assert await gates.leased(OTHER) == [first]
    await gates.scene.store.agent.leave(OTHER)
    assert await gates.leased() == [first]
    assert second


async def test_a_slot_of_a_cancelled_attempt_is_free_when_it_has_stopped(gates):
    first, second = await gates.put(2, Limit(at_once=1))
    [row] = (await gates.lease()).rows
    await gates.scene.turn(dropped=[first])
    assert await gates.leased() == []
    await gates.scene.report(row, Act.FAILED, b'{"type":"Cancelled","message":"no"}')
    assert await gates.leased() == [second]


@pytest.mark.parametrize("act", [Act.DONE, Act.FAILED, Act.DIED])
async def test_whoever_waits_hears_of_a_free_slot_at_once(gates, act):
    await gates.put(2, Limit(at_once=1))
    [row] = (await gates.lease()).rows
    heard = []
    gates.scene.store.listen(Hint.AGENT, lambda: heard.append(1))
    await gates.scene.report(row, act, b'{"type":"ValueError","message":"no"}')
    assert heard


async def test_a_plain_row_that_ends_wakes_no_agent(gates):
    row = await gates.scene.row_in(AttemptState.RUNNING, gates.run)
    heard = []
    gates.scene.store.listen(Hint.AGENT, lambda: heard.append(1))
    await gates.scene.report(row, Act.DONE, b"1")
    assert heard == []


# --- keys, and crowds


async def test_each_key_has_a_gate_of_its_own(gates):
    ann = await gates.put(3, Limit(at_once=1), f"{ONE}:ann")
    bob = await gates.put(3, Limit(at_once=1), f"{ONE}:bob")
    assert await gates.leased() == [ann[0], bob[0]]


async def test_a_full_gate_hides_nobody_behind_another_one(gates):
    await gates.put(1, Limit(at_once=1), f"{ONE}:ann")
    assert len(await gates.leased()) == 1
    await gates.put(300, Limit(at_once=1), f"{ONE}:ann")
    [late] = await gates.put(1, Limit(at_once=1), f"{ONE}:bob")
    assert await gates.leased(slots=1) == [late]


async def test_the_most_urgent_start_first_whatever_their_gate(gates):
    one = await gates.put(2, Limit(at_once=9), f"{ONE}:ann")
    [urgent] = await gates.put(1, Limit(at_once=9), f"{ONE}:bob", rank_ahead=60 * SECOND)
    assert await gates.leased(slots=2) == [urgent, one[0]]


async def test_keys_take_turns_while_the_limits_of_all_have_room(gates, clock):
    ann = await gates.put(50, Limit(at_once=1_000), f"{ONE}:ann")
    clock.pass_by(SECOND)
    bob = await gates.put(3, Limit(at_once=1_000), f"{ONE}:bob")
    clock.pass_by(SECOND)
    taken = []
    for _ in range(4):
        taken += await gates.leased(slots=1)
        clock.pass_by(1)
    assert taken == [ann[0], bob[0], ann[1], bob[1]]
    assert sorted(await gates.leased(slots=5)) == sorted([*ann[2:6], bob[2]])


async def test_key_with_one_call_does_not_wait_for_the_backlog_of_another(gates, clock):
    ann = await gates.put(300, Limit("1000000/s"), f"{ONE}:ann")
    clock.pass_by(SECOND)
    assert await gates.leased(slots=10) == ann[:10]
    clock.pass_by(60 * SECOND)
    [bob] = await gates.put(1, Limit("1000000/s"), f"{ONE}:bob")
    assert bob in await gates.leased(slots=2)


async def test_urgent_calls_of_a_busy_key_are_before_what_has_waited_less_than_their_head_start(gates, clock):
    urgent = await gates.put(9, Limit(at_once=1_000), f"{ONE}:ann", rank_ahead=300 * SECOND)
    plain = await gates.put(9, Limit(at_once=1_000), f"{ONE}:bob")
    clock.pass_by(SECOND)
    assert await gates.leased(slots=3) == urgent[:3]
    clock.pass_by(SECOND)
    assert await gates.leased(slots=3) == urgent[3:6]
    clock.pass_by(300 * SECOND)
    await gates.leased(slots=1)
    clock.pass_by(SECOND)
    assert await gates.leased(slots=1) == [plain[0]]


async def test_keys_beyond_those_of_one_look_have_their_turn_while_all_have_room(gates, clock):
    crowd = [gates.a_row(Limit(at_once=9), f"{ONE}:{n:03}") for n in range(250) for _ in range(2)]
    await gates.scene.turn(attempts=crowd)
    clock.pass_by(SECOND)
    [late] = await gates.put(1, Limit(at_once=9), f"{ONE}:zoe")
    taken: list[int] = []
    for _ in range(251):
        clock.pass_by(1)
        taken += await gates.leased(slots=1)
    assert late in taken


async def test_among_very_many_gates_each_has_its_turn(gates):
    ids = [gates.a_row(Limit(at_once=1), f"{ONE}:{n:03}") for n in range(450)]
    await gates.scene.turn(attempts=ids)
    assert len(await gates.leased(slots=1_000)) == 450
    more = [gates.a_row(Limit(at_once=1), f"{ONE}:{n:03}") for n in range(450)]
    await gates.scene.turn(attempts=more)
    assert await gates.leased(slots=1_000) == []
    running = (await gates.scene.rows())[ids[300].id]
    await gates.scene.report(running, Act.DONE, b"1")
    assert await gates.leased(slots=1_000) == [more[300].id]


async def test_gates_of_another_namespace_of_the_same_name_are_others(gates):
    queue = await gates.scene.store.scheduler.queue("elsewhere", "", (), "", limited=True)
    await gates.put(1, Limit(at_once=1))
    assert len(await gates.leased()) == 1
    row = gates.a_row(Limit(at_once=1))._replace(queue=queue)
    await gates.scene.turn(attempts=[row])
    found = await gates.scene.store.agent.lease_limited(AGENT, 5, [queue], Room(LIMIT, LIMIT, STEPS))
    assert [leased.id for leased in found.rows] == [row.id]


async def test_a_gate_counts_over_all_queues_and_regions_of_its_namespace(gates):
    queue = await gates.scene.store.scheduler.queue("default", "eu", ("gpu",), "", limited=True)
    await gates.put(1, Limit(at_once=1))
    assert len(await gates.leased()) == 1
    await gates.scene.turn(attempts=[gates.a_row(Limit(at_once=1))._replace(queue=queue)])
    found = await gates.scene.store.agent.lease_limited(AGENT, 5, [queue], Room(LIMIT, LIMIT, STEPS))
    assert found.rows == []


# --- by rate


async def test_a_rate_lets_a_burst_of_a_second_start_and_then_as_many_as_tokens_come(gates, clock):
    ids = await gates.put(20, Limit("10/s"))
    found = await gates.lease()
    assert [row.id for row in found.rows] == ids[:10]
    assert found.next_at is not None
    assert found.next_at - NOON == pytest.approx(SECOND // 10, abs=2)
    assert await gates.leased() == []
    clock.pass_by(found.next_at - NOON)
    assert await gates.leased(OTHER) == ids[10:11]
    clock.pass_by(SECOND // 2)
    assert await gates.leased() == ids[11:16]


async def test_a_slow_rate_lets_one_start_at_a_time(gates, clock):
    ids = await gates.put(3, Limit("1/m"))
    assert await gates.leased() == ids[:1]
    clock.pass_by(59 * SECOND)
    found = await gates.lease()
    assert (found.rows, found.next_at) == ([], pytest.approx(NOON + 60 * SECOND, abs=2))
    clock.pass_by(SECOND + 2)
    assert await gates.leased() == ids[1:2]


async def test_a_rate_and_a_number_must_both_have_room(gates, clock):
    ids = await gates.put(20, Limit("10/s", at_once=3))
    assert await gates.leased() == ids[:3]
    clock.pass_by(SECOND)
    found = await gates.lease()
    assert (found.rows, found.next_at) == ([], None)


async def test_agents_that_come_for_the_same_rows_spend_a_token_for_each_that_starts_and_no_more(gates):
    ids = await gates.put(20, Limit("100/s"))
    found = await asyncio.gather(*(gates.leased(agent) for agent in (AGENT, OTHER) * 4))
    assert sorted(id for rows in found for id in rows) == ids
    [gate] = await gates.scene.store.client.gates("default")
    assert (gate.running, gate.tokens) == (20, 80.0)


async def test_nothing_that_waits_makes_no_time_to_wake_up_at(gates):
    await gates.put(1, Limit("1/m"))
    assert (await gates.lease()).next_at is None
    assert (await gates.lease()).next_at is None


# --- what is allowed


async def test_a_newer_policy_says_what_is_allowed(gates):
    old = await gates.put(3, Limit(at_once=1))
    assert await gates.leased() == old[:1]
    await gates.put(3, Limit(at_once=3))
    assert await gates.leased() == old[1:]  # also those that were there before
    [gate] = await gates.scene.store.client.gates("default")
    assert (gate.at_once, gate.running, gate.waiting) == (3, 3, 3)


async def test_older_rows_do_not_bring_old_numbers_back(gates):
    await gates.put(2, Limit(at_once=2), held=True)
    [new] = await gates.put(1, Limit(at_once=5))
    assert await gates.leased() == [new]
    await gates.scene.turn(holds=[(gates.run.num, False)])
    assert len(await gates.leased()) == 2
    [gate] = await gates.scene.store.client.gates("default")
    assert gate.at_once == 5


async def test_a_limit_that_was_lowered_counts_at_once(gates):
    await gates.put(5, Limit(at_once=5))
    assert len(await gates.leased(slots=3)) == 3
    await gates.put(1, Limit(at_once=2))
    assert await gates.leased() == []


# --- who may lease


async def test_asking_again_with_the_same_number_gives_the_same_rows(gates):
    ids = await gates.put(3, Limit(at_once=3))
    first = await gates.lease(slots=2, lease_no=5)
    again = await gates.lease(slots=2, lease_no=5)
    assert [row.id for row in again.rows] == ids[:2]
    assert again.rows == first.rows
    assert await gates.leased() == ids[2:]


async def test_an_agent_that_is_out_of_time_or_has_left_gets_nothing(gates, clock):
    await gates.scene.store.agent.join(72, "default", "", "c", b"{}", 8 * SECOND)
    await gates.put(1, Limit(at_once=3))
    clock.pass_by(9 * SECOND)
    assert await gates.leased(72) == []
    await gates.scene.store.agent.leave(OTHER)
    assert await gates.leased(OTHER) == []
    assert len(await gates.leased()) == 1


async def test_only_what_the_agent_knows_and_has_room_for_is_leased(gates):
    await gates.put(1, Limit(at_once=9), step="unknown", gate=f"{ONE}:x")
    lonely = await gates.put(2, Limit(at_once=9), alone=True)
    plain = await gates.put(2, Limit(at_once=9))
    assert await gates.leased(slots=3, alone=1) == [lonely[0], *plain]
    assert await gates.leased(slots=3, alone=0) == []
    assert await gates.leased(slots=0) == []
    assert await gates.leased(slots=3, alone=1) == [lonely[1]]


async def test_rows_of_a_paused_run_wait(gates):
    await gates.put(1, Limit(at_once=9), held=True)
    assert await gates.leased() == []
    await gates.scene.turn(holds=[(gates.run.num, False)])
    assert len(await gates.leased()) == 1


async def test_two_agents_at_the_same_moment_never_exceed_a_limit(gates):
    for n in range(10):
        gate = f"{ONE}:{n}"
        await gates.put(12, Limit(at_once=5), gate)
        await gates.put(12, Limit(at_once=5), f"{gate}b")
        await asyncio.gather(*(gates.lease(agent, slots=4) for agent in (AGENT, OTHER) * 5))
        running = [row.id for row in (await gates.scene.rows()).values() if row.state is AttemptState.RUNNING]
        assert len(running) == 10 * (n + 1)


# --- people


async def test_people_see_who_runs_and_who_waits(gates, clock):
    await gates.put(12, Limit("4/s", at_once=2), f"{ONE}:ann")
    await gates.put(1, Limit(at_once=2))
    await gates.lease()
    clock.pass_by(SECOND // 4)
    plain, ann = await gates.scene.store.client.gates("default")
    assert (plain.name, plain.at_once, plain.rate, plain.running, plain.waiting) == (ONE, 2, None, 1, 0)
    assert (ann.name, ann.at_once, ann.rate, ann.running, ann.waiting) == (f"{ONE}:ann", 2, "4/s", 2, 10)
    assert ann.tokens == pytest.approx(3)
    assert await gates.scene.store.client.gates("elsewhere") == []


async def test_a_paused_gate_lets_nobody_start_until_it_is_opened(gates):
    client = gates.scene.store.client
    ids = await gates.put(3, Limit(at_once=1))
    [row] = (await gates.lease()).rows
    assert await client.order_gate("default", pause(ONE))
    await gates.scene.report(row, Act.DONE, b"1")
    assert (await gates.lease()).rows == []
    assert [gate.paused for gate in await client.gates("default")] == [True]
    heard = []
    gates.scene.store.listen(Hint.AGENT, lambda: heard.append(1))
    assert await client.order_gate("default", let_go(ONE))
    assert heard
    assert await gates.leased() == ids[1:2]


async def test_a_gate_that_is_not_there_cannot_be_paused(gates):
    assert not await gates.scene.store.client.order_gate("default", pause(ONE))
    await gates.put(1, Limit(at_once=1))
    await gates.lease()
    assert not await gates.scene.store.client.order_gate("elsewhere", pause(ONE))


async def test_gates_that_nobody_uses_are_forgotten_once_their_buckets_are_full(gates, clock):
    supervisor = gates.scene.store.supervisor
    for n, limit in enumerate([Limit(at_once=1), Limit("1/s"), Limit("1/d"), Limit(at_once=1)]):
        await gates.put(1, limit, f"{ONE}:{n}")
    await gates.lease()
    await gates.scene.store.client.order_gate("default", pause(f"{ONE}:3"))
    assert await supervisor.forget_gates(None, 100) is None
    assert len(await gates.scene.store.client.gates("default")) == 4
    clock.pass_by(2 * 3_600 * SECOND)
    place = await supervisor.forget_gates(None, 1)
    assert place == ("default", f"{ONE}:0")
    assert [gate.name for gate in await gates.scene.store.client.gates("default")] == [f"{ONE}:{n}" for n in (1, 2, 3)]
    assert await supervisor.forget_gates(place, 100) is None
    assert [gate.name for gate in await gates.scene.store.client.gates("default")] == [f"{ONE}:2", f"{ONE}:3"]


async def test_a_gate_that_was_forgotten_still_counts_who_runs(gates, clock):
    await gates.put(3, Limit(at_once=1))
    assert len(await gates.leased()) == 1
    clock.pass_by(2 * 3_600 * SECOND)
    await gates.scene.store.supervisor.forget_gates(None, 100)
    assert await gates.scene.store.client.gates("default") == []
    assert await gates.leased() == []


# --- what waits


async def test_the_backlog_says_what_waits_behind_paused_gates(gates):
    await gates.put(3, Limit(at_once=5), f"{ONE}:ann")
    gates.scene.clock.pass_by(SECOND)
    await gates.put(2, Limit(at_once=5), f"{ONE}:bob")
    await gates.leased(slots=1)
    assert await gates.scene.store.client.order_gate("default", pause(f"{ONE}:ann"))
    [queue] = [queue for queue in await gates.scene.store.client.backlog("default") if queue.id == gates.queue]
    assert (queue.limited, queue.depth, queue.running, queue.paused) == (True, 4, 1, 2)
    assert (queue.oldest, queue.moving, queue.age) == (SECOND, 2, 0), "those of bob have come just now"
