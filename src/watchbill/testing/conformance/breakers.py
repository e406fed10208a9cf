"""Breakers: what is written when a dependency fails, who may try, and who waits; and what is paused by its name."""

import asyncio

import msgspec
import pytest

from watchbill.clock import SECOND, Micros
from watchbill.model.agent import Act, Answer, Report, Room
from watchbill.model.attempt import AttemptRow, NewAttempt
from watchbill.model.breaker import CANARY, BreakerState, Ended, Move, encode, read_breaker, tended, watch_at
from watchbill.model.gate import GateAct, GateOrder, GateRow
from watchbill.model.limit import Limit
from watchbill.model.policy import Policy
from watchbill.model.queue import QueueDepth
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Hint, Limited
from watchbill.testing.conformance.scene import AGENT, LIMIT, NOON, STEPS, Scene, a_change, a_run, a_verdict

OTHER = 71
STRIPE = "uses:stripe"
NO = b'{"type":"ConnectionError","message":"no"}'


class Shop:
    """Queues whose rows use dependencies, who leases from them, and a supervisor that looks when it is time."""

    def __init__(self, scene: Scene, run, queues: dict[str, int]) -> None:
        self.scene = scene
        self.store = scene.store
        self.run = run
        self.queues = queues
        self._numbers = iter(range(1_000_000, 2_000_000))

    async def put(self, count: int, uses: str = "stripe", **changes: object) -> list[int]:
        rows = [self.a_row(uses, **changes) for _ in range(count)]
        await self.scene.turn(attempts=rows)
        return [row.id for row in rows]

    def a_row(self, uses: str = "stripe", **changes: object) -> NewAttempt:
        policy = msgspec.json.encode(Policy(uses=uses.partition("+")[0]))
        row = self.scene.a_row(self.run, queue=self.queues[uses], policy=policy)
        return row._replace(**changes)  # type: ignore[arg-type]

    async def ask(self, agent: int = AGENT, *, slots: int = LIMIT, lease_no: int | None = None) -> Limited:
        number = next(self._numbers) if lease_no is None else lease_no
        room = Room(slots, slots, (*STEPS, "encode"))
        return await self.store.agent.lease_limited(agent, number, sorted(self.queues.values()), room)

    async def lease(self, agent: int = AGENT, *, slots: int = LIMIT) -> list[AttemptRow]:
        return (await self.ask(agent, slots=slots)).rows

    async def leased(self, agent: int = AGENT, *, slots: int = LIMIT) -> list[int]:
        return [row.id for row in await self.lease(agent, slots=slots)]

    async def ends(self, *rows: AttemptRow, well: bool, uses: str = "stripe", pace: float = 10.0) -> list[Answer]:
        act, body, error = (Act.DONE, b"1", "") if well else (Act.FAILED, NO, "ConnectionError: no")
        reports = [
            Report(row.id, row.fence, act, body, uses=uses, error=error, pace=0.0 if well else pace) for row in rows
        ]
        return await self.store.agent.report(AGENT, reports)

    async def break_down(self, uses: str = "stripe") -> None:
        """Let five attempts fail."""
        await self.put(5, uses)
        await self.ends(*await self.lease(slots=5), well=False, uses=uses)

    async def tend(self) -> list[str]:
        """Look as a supervisor does; gives the states of what was moved."""
        moved = []
        for row in await self.store.supervisor.breakers():
            after = tended(read_breaker(row.breaker), row.waiting, row.now)
            move = Move(row.namespace, row.name, row.breaker, encode(after), after.state, watch_at(after))
            if all(await self.store.supervisor.move_breakers([move])):
                moved.append(after.state.word)
        return moved

    async def half_open(self, after: Micros = 5 * SECOND) -> None:
        assert await self.tend() == ["open"]  # told
        self.scene.clock.pass_by(after)
        assert await self.tend() == ["half-open"]

    async def gate(self, name: str = STRIPE) -> GateRow:
        [gate] = [gate for gate in await self.store.client.gates("default") if gate.name == name]
        return gate

    async def order(self, act: GateAct, name: str = STRIPE) -> bool:
        return await self.store.client.order_gate("default", GateOrder(name, act, "ann", "a flood"))


@pytest.fixture
async def shop(scene):
    return await a_shop(scene)


async def a_shop(scene: Scene) -> Shop:
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    make = scene.store.scheduler.queue
    queues = {
        "stripe": await make("default", "", (), "stripe"),
        "twilio": await make("default", "", (), "twilio"),
        "stripe+gpu": await make("default", "", ("gpu=1",), "stripe"),
        "stripe+limit": await make("default", "", (), "stripe", limited=True),
    }
    await scene.store.agent.join(OTHER, "default", "", "b", b"{}", None)
    return Shop(scene, run, queues)


# --- opening


async def test_rows_of_a_dependency_that_is_well_are_leased_like_any_others_and_leave_no_trace(shop):
    ids = await shop.put(3)
    rows = await shop.lease()
    assert [row.id for row in rows] == ids
    await shop.ends(*rows, well=True)
    gate = await shop.gate()
    assert (gate.breaker, gate.failures, gate.running, gate.waiting) == ("closed", 0, 0, 0)
    assert await shop.store.supervisor.forget_gates(None, 100) is None
    assert [one.name for one in await shop.store.client.gates("default")] == [STRIPE, "uses:twilio"]


async def test_after_five_failures_nothing_more_is_leased_and_nobody_is_charged(shop):
    ids = await shop.put(20)
    for n in range(5):
        [row] = await shop.lease(slots=1)
        assert row.id == ids[n]
        await shop.ends(row, well=False)
    assert await shop.leased() == []
    assert await shop.leased(OTHER) == []
    gate = await shop.gate()
    assert (gate.breaker, gate.failures, gate.waiting) == ("open", 5, 15)
    assert gate.why is not None
    assert gate.why.startswith("5 failures in a row")
    waiting = [row for row in (await shop.scene.rows()).values() if row.state is AttemptState.READY]
    assert {(row.failures, row.losses) for row in waiting} == {(0, 0)}


async def test_a_dependency_that_is_down_keeps_none_of_another(shop):
    await shop.break_down()
    ids = await shop.put(3, "twilio")
    await shop.put(3)
    assert await shop.leased() == ids


async def test_the_same_dependency_is_down_in_every_queue_and_region_of_its_namespace(shop):
    await shop.break_down()
    await shop.put(1, "stripe+gpu")
    await shop.put(1, "stripe+limit", gate="limit:charge", policy=msgspec.json.encode(a_limit(5)))
    assert await shop.leased() == []
    elsewhere = await shop.store.scheduler.queue("elsewhere", "", (), "stripe")
    await shop.scene.turn(attempts=[shop.a_row()._replace(queue=elsewhere)])
    await shop.store.agent.join(72, "elsewhere", "", "c", b"{}", None)
    found = await shop.store.agent.lease_limited(72, 1, [elsewhere], Room(9, 9, STEPS))
    assert len(found.rows) == 1


async def test_failures_of_two_agents_count_together_and_a_success_between_them_begins_anew(shop):
    await shop.put(20)
    rows = await shop.lease(slots=4)
    await shop.ends(*rows[:2], well=False)
    await shop.ends(*rows[2:], well=False)
    [fifth] = await shop.lease(OTHER, slots=1)
    await shop.ends(fifth, well=True)
    await shop.ends(*await shop.lease(slots=4), well=False)
    assert (await shop.gate()).breaker == "closed"
    await shop.ends(*await shop.lease(OTHER, slots=1), well=False)
    assert (await shop.gate()).breaker == "open"


async def test_what_says_nothing_about_the_dependency_does_not_count(shop):
    await shop.put(10)
    for row in await shop.lease():
        await shop.scene.report(row, Act.FAILED, NO)  # for reasons of its own: its agent names no dependency
    assert (await shop.gate()).breaker == "closed"


async def test_what_a_supervisor_finds_late_counts(shop):
    await shop.put(5)
    rows = await shop.lease()
    heard = []
    shop.store.listen(Hint.SUPERVISOR, lambda: heard.append(1))
    await shop.store.supervisor.hear([Ended(row.queue, row.id, row.fence, False, "Late: no") for row in rows])
    assert heard
    assert (await shop.gate()).breaker == "open"


async def test_a_report_that_comes_too_late_says_nothing(shop):
    await shop.put(5)
    rows = await shop.lease()
    stale = [msgspec.structs.replace(row, fence=row.fence - 1) for row in rows]
    assert await shop.ends(*stale, well=False) == [Answer.LATE] * 5
    assert (await shop.gate()).breaker == "closed"


async def test_many_who_report_at_once_open_it_once(shop):
    await shop.put(40)
    rows = await shop.lease()
    await asyncio.gather(*(shop.ends(row, well=False) for row in rows))
    gate = await shop.gate()
    assert (gate.breaker, gate.opened_at is not None) == ("open", True)
    assert await shop.tend() == ["open"]
    assert await shop.tend() == []


# --- the canary


async def test_when_it_is_time_exactly_one_may_try_whoever_asks(shop):
    await shop.break_down()
    ids = await shop.put(10)
    await shop.half_open()
    found = await asyncio.gather(*(shop.ask(agent) for agent in (AGENT, OTHER) * 4))
    rows = [row for one in found for row in one.rows]
    assert len(rows) == 1
    assert rows[0].why == CANARY
    assert rows[0].id in ids
    assert await shop.leased() == []


async def test_agents_hear_when_one_may_try(shop):
    await shop.break_down()
    await shop.put(1)
    heard = []
    shop.store.listen(Hint.AGENT, lambda: heard.append(1))
    await shop.half_open()
    assert heard


async def test_a_canary_that_is_done_lets_the_others_go_at_a_pace(shop, clock):
    await shop.break_down()
    ids = await shop.put(50)
    await shop.half_open()
    [canary] = await shop.lease()
    await shop.ends(canary, well=True)
    assert await shop.leased() == []  # nobody has counted them yet
    assert await shop.tend() == ["closing"]
    began, starts = clock.boot(), list[int]()
    while len(starts) < 49:
        found = await shop.ask()
        starts += [clock.boot() - began] * len(found.rows)
        if len(starts) < 49:
            assert found.next_at is not None
            clock.pass_by(found.next_at - found.now)
    assert starts[0] == 0
    assert 4 * SECOND < starts[-1] < 6 * SECOND  # 49 of them, over five seconds
    for start in starts:
        assert sum(start <= at < start + SECOND for at in starts) <= 20  # twice what there was before, in any second
    assert {canary.id, *[row.id for row in (await shop.scene.rows()).values() if row.agent]} >= set(ids)
    clock.pass_by(SECOND)
    assert await shop.tend() == ["closed"]
    [late] = await shop.put(1)
    assert await shop.leased() == [late]


async def test_a_canary_that_fails_is_charged_nothing_and_goes_to_the_end_of_the_line(shop, clock):
    await shop.break_down()
    first, second = await shop.put(2)
    await shop.half_open()
    [canary] = await shop.lease()
    before = await shop.scene.row(first)
    assert canary.id == first
    assert await shop.ends(canary, well=False) == [Answer.ACCEPTED]
    row = await shop.scene.row(first)
    assert (row.state, row.failures, row.losses) == (AttemptState.READY, 0, 0)
    assert (row.watch_at, row.ended_at, row.result) == (None, None, None)
    assert before.losses == 1
    assert await shop.ends(canary, well=False) == [Answer.ALREADY]
    assert (await shop.gate()).breaker == "open"
    assert await shop.tend() == ["open"]
    clock.pass_by(9 * SECOND)
    assert await shop.tend() == []  # it waits for twice as long now
    clock.pass_by(SECOND)
    assert await shop.tend() == ["half-open"]
    assert await shop.leased() == [second]


async def test_a_canary_that_is_found_late_goes_to_the_end_of_the_line_too(shop):
    await shop.break_down()
    first, second = await shop.put(2)
    await shop.half_open()
    [canary] = await shop.lease()
    assert canary.id == first
    late = a_verdict(canary, AttemptState.FAILED, losses=-1, watch_in=0)._replace(last=True)
    assert await shop.scene.judge(late)
    await shop.store.supervisor.hear([Ended(canary.queue, canary.id, canary.fence, False, "Late: no")])
    assert await shop.scene.judge(a_verdict(await shop.scene.row(first), AttemptState.READY))
    await shop.half_open(10 * SECOND)
    assert await shop.leased() == [second]


async def test_a_canary_that_may_have_taken_effect_is_judged_and_not_begun_again_and_opens_it_all_the_same(shop):
    await shop.break_down()
    [id] = await shop.put(1)
    await shop.half_open()
    [canary] = await shop.lease()
    said = Report(id, canary.fence, Act.FAILED, NO, uses="stripe", error="ConnectionError: no", doubt=True)
    assert await shop.store.agent.report(AGENT, [said]) == [Answer.ACCEPTED]
    row = await shop.scene.row(id)
    assert (row.state, row.failures, row.losses) == (AttemptState.FAILED, 1, 0)
    assert (row.result, row.watch_at is not None, row.ended_at is not None) == (NO, True, True)
    assert (await shop.gate()).breaker == "open"
    assert await shop.store.agent.report(AGENT, [said]) == [Answer.ALREADY]


async def test_a_canary_that_fails_and_was_answered_is_judged_and_lets_the_others_go(shop):
    await shop.break_down()
    [id] = await shop.put(1)
    await shop.half_open()
    [canary] = await shop.lease()
    said = Report(id, canary.fence, Act.FAILED, NO, uses="stripe", well=True)
    assert await shop.store.agent.report(AGENT, [said]) == [Answer.ACCEPTED]
    row = await shop.scene.row(id)
    assert (row.state, row.failures, row.result) == (AttemptState.FAILED, 1, NO)
    assert (await shop.gate()).breaker == "closing"


async def test_a_cancelled_canary_that_fails_is_not_tried_again(shop):
    await shop.break_down()
    [id] = await shop.put(1)
    await shop.half_open()
    [canary] = await shop.lease()
    await shop.scene.turn(dropped=[id])
    await shop.ends(canary, well=False)
    failed = await shop.scene.row(id)
    assert (failed.state, failed.failures) == (AttemptState.FAILED, 1), "an attempt as any other"


async def test_nobody_else_tries_before_it_was_heard_that_the_canarys_agent_died(shop, clock):
    await shop.store.agent.join(72, "default", "", "c", b"{}", 8 * SECOND)
    await shop.break_down()
    first, second = await shop.put(2)
    await shop.half_open()
    clock.pass_by(SECOND)
    await shop.store.agent.beat(72, 8 * SECOND, ())
    [canary] = await shop.lease(72)
    assert canary.id == first
    clock.pass_by(9 * SECOND)
    assert await shop.leased() == []  # nobody has found it dead yet
    verdict = a_verdict(canary, AttemptState.FAILED, dead_agent=72, watch_in=0)
    assert await shop.scene.judge(verdict)
    assert await shop.leased() == []  # it is not judged yet whether it will try again
    await shop.store.supervisor.hear([Ended(canary.queue, canary.id, canary.fence, False, "Lost: no")])
    assert (await shop.gate()).breaker == "open"
    await shop.store.supervisor.hear([Ended(canary.queue, canary.id, canary.fence, False, "Lost: no")])
    await shop.half_open(10 * SECOND)  # twice as long, and heard twice no longer than that
    [other] = await shop.lease()
    assert (other.id, other.why) == (second, CANARY)
    await shop.ends(other, well=True)
    assert (await shop.gate()).breaker == "closing"


async def test_another_one_tries_when_the_canarys_run_is_cancelled(shop):
    await shop.break_down()
    first, second = await shop.put(2)
    await shop.half_open()
    [canary] = await shop.lease()
    await shop.scene.report(canary, Act.HAND_BACK)
    await shop.scene.turn(dropped=[first])
    assert await shop.scene.state_of(first) is None
    assert await shop.leased() == [second]


@pytest.mark.parametrize("consumed", [False, True])
async def test_a_canary_that_finishes_in_a_transaction_of_its_users_own_counts_too(shop, consumed):
    await shop.break_down()
    await shop.put(2)
    await shop.half_open()
    [canary] = await shop.lease()
    await shop.scene.report(canary, Act.DONE, b"1")  # as the user's transaction does it, without a word to the gate
    if consumed:
        await shop.scene.turn(finals_done=[canary.id])
    said = Report(canary.id, canary.fence, Act.DONE, b"1", uses="stripe", queue=canary.queue)
    assert await shop.store.agent.report(AGENT, [said]) == [Answer.LATE if consumed else Answer.ALREADY]
    assert (await shop.gate()).breaker == "closing"


async def test_two_supervisors_that_look_at_the_same_moment_never_both_act(shop, clock):
    await shop.break_down()
    assert await shop.tend() == ["open"]
    clock.pass_by(5 * SECOND)
    [row] = await shop.store.supervisor.breakers()
    after = tended(read_breaker(row.breaker), row.waiting, row.now)
    move = Move(row.namespace, row.name, row.breaker, encode(after), after.state, watch_at(after))
    moved = await asyncio.gather(*(shop.store.supervisor.move_breakers([move]) for _ in range(5)))
    assert sorted(moved) == [[False]] * 4 + [[True]]


async def test_what_a_supervisor_read_before_the_canary_started_moves_nothing(shop):
    await shop.break_down()
    await shop.put(1)
    await shop.half_open()
    seen = await shop.gate()
    [canary] = await shop.lease()
    stale = Move("default", STRIPE, b"{}", encode(read_breaker(b"")), BreakerState.CLOSED, None)
    assert await shop.store.supervisor.move_breakers([stale]) == [False]
    assert (seen.breaker, (await shop.gate()).breaker) == ("half-open", "half-open")
    await shop.ends(canary, well=True)


async def test_a_watch_says_that_a_breaker_is_due_and_when_the_next_is(shop, clock):
    assert not (await shop.store.supervisor.watch(10)).breakers
    await shop.break_down()
    assert (await shop.store.supervisor.watch(10)).breakers
    await shop.tend()
    for row in [row for row in (await shop.scene.rows()).values() if row.state is AttemptState.FAILED]:
        await shop.scene.judge(a_verdict(row, AttemptState.GAVE_UP))
    watch = await shop.store.supervisor.watch(10)
    assert (watch.breakers, watch.next_at) == (False, NOON + 5 * SECOND)
    clock.pass_by(5 * SECOND)
    assert (await shop.store.supervisor.watch(10)).breakers


async def test_asking_again_with_the_same_number_gives_the_same_canary(shop):
    await shop.break_down()
    await shop.put(3)
    await shop.half_open()
    first = await shop.ask(lease_no=5)
    assert [row.id for row in (await shop.ask(lease_no=5)).rows] == [row.id for row in first.rows]
    assert len(first.rows) == 1


# --- with a limit


def a_limit(at_once: int) -> Policy:
    return Policy(uses="stripe", limit=Limit(at_once=at_once).allowance())


async def put_limited(shop: Shop, count: int, at_once: int = 2) -> list[int]:
    return await shop.put(count, "stripe+limit", gate="limit:charge", policy=msgspec.json.encode(a_limit(at_once)))


async def test_a_row_with_a_limit_and_a_dependency_must_pass_both(shop, clock):
    ids = await put_limited(shop, 6)
    assert await shop.leased() == ids[:2]
    rows = [(await shop.scene.rows())[id] for id in ids[:2]]
    await shop.ends(*rows, well=True)
    await shop.break_down()
    assert await shop.leased() == []
    await shop.half_open()
    [canary] = await shop.lease()
    assert (canary.id, canary.why) == (ids[2], CANARY)
    await shop.ends(canary, well=True)
    assert await shop.tend() == ["closing"]
    clock.pass_by(SECOND)
    assert await shop.leased(OTHER) == [ids[3]]
    for _ in range(20):
        clock.pass_by(SECOND)
        await shop.lease()
    running = [row.id for row in (await shop.scene.rows()).values() if row.state is AttemptState.RUNNING]
    assert running == ids[3:5]  # the pace would allow the last one, its limit does not


# --- people


async def test_people_can_say_that_a_dependency_is_down_and_that_it_is_up(shop):
    await shop.put(2)
    assert await shop.order(GateAct.CLOSE)
    gate = await shop.gate()
    assert (gate.breaker, gate.why) == ("open", "closed by ann (a flood)")
    assert await shop.leased() == []
    assert await shop.order(GateAct.OPEN)
    assert (await shop.gate()).breaker == "closing"
    assert await shop.tend() == ["closing"]
    assert len(await shop.leased()) == 1


async def test_a_paused_dependency_lets_nobody_try_until_it_is_opened(shop, clock):
    await shop.put(2)
    assert await shop.order(GateAct.PAUSE)
    gate = await shop.gate()
    assert (gate.paused, gate.paused_by, gate.paused_why) == (True, "ann", "a flood")
    assert await shop.leased() == []
    await shop.order(GateAct.CLOSE)
    await shop.half_open()
    clock.pass_by(60 * SECOND)
    assert await shop.leased() == []
    await shop.order(GateAct.OPEN)
    assert await shop.tend() == ["closing"]
    assert len(await shop.leased()) == 1


async def test_a_gate_in_trouble_is_not_forgotten_and_one_that_was_is(shop, clock):
    await shop.break_down()
    await shop.put(1)
    clock.pass_by(2 * 3_600 * SECOND)
    await shop.store.supervisor.forget_gates(None, 100)
    assert (await shop.gate()).breaker == "open"
    await shop.order(GateAct.OPEN)
    await shop.tend()
    assert len(await shop.leased()) == 1
    clock.pass_by(SECOND)
    assert await shop.tend() == ["closed"]
    clock.pass_by(2 * 3_600 * SECOND)
    await shop.store.supervisor.forget_gates(None, 100)
    assert (await shop.gate()).failures == 0


async def test_a_run_says_what_its_calls_wait_for(shop):
    await shop.break_down()
    [id] = await shop.put(1)
    record = await shop.store.client.record("default", shop.run.id)
    assert record is not None
    [stop] = [wait.stop for wait in record.waits if wait.row == id]
    assert stop is not None
    assert (stop.name, stop.breaker) == (STRIPE, "open")


async def test_a_backlog_says_which_queues_nothing_leaves(shop):
    async def stopped() -> list[str]:
        names = {queue: name for name, queue in shop.queues.items()}
        return sorted(names[queue.id] for queue in await shop.store.client.backlog("default") if queue.stopped)

    assert await stopped() == []
    await shop.order(GateAct.PAUSE, "needs:gpu")
    assert await stopped() == ["stripe+gpu"]
    await shop.break_down()
    assert await stopped() == ["stripe", "stripe+gpu", "stripe+limit"]
    await shop.half_open()
    assert await stopped() == ["stripe+gpu"]  # one may try: somebody has to be there for it


# --- paused by name


@pytest.mark.parametrize("name", ["step:charge", "workflow:order", "needs:gpu", STRIPE])
async def test_what_is_paused_by_its_name_stays_where_it_is_and_goes_when_it_is_opened(shop, name):
    held = await shop.put(2, "stripe+gpu")
    other = [] if name == "workflow:order" else await shop.put(2, "twilio", step="encode")
    assert await shop.order(GateAct.PAUSE, name)
    assert await shop.leased() == other
    record = await shop.store.client.record("default", shop.run.id)
    assert record is not None
    stops = [wait.stop for wait in record.waits if wait.row in held]
    assert [(stop.name, stop.paused_by) for stop in stops if stop is not None] == [(name, "ann")] * 2
    heard = []
    shop.store.listen(Hint.AGENT, lambda: heard.append(1))
    assert await shop.order(GateAct.OPEN, name)
    assert heard
    assert await shop.leased() == held
    assert name == STRIPE or name not in [gate.name for gate in await shop.store.client.gates("default")]


@pytest.mark.parametrize("name", ["step:charge", "workflow:order", "needs:gpu"])
async def test_plain_queues_and_limited_ones_know_what_is_paused(shop, name):
    scene = shop.scene
    needy = await scene.store.scheduler.queue("default", "", ("gpu=1",), "")
    limited = await scene.store.scheduler.queue("default", "", ("gpu=1",), "", limited=True)
    policy = msgspec.json.encode(Policy(limit=Limit(at_once=9).allowance()))
    plain = scene.a_row(shop.run, queue=needy)
    gated = scene.a_row(shop.run, queue=limited, gate="limit:charge", policy=policy)
    await scene.turn(attempts=[plain, gated])
    room = Room(9, 9, STEPS)
    for act, expected in ((GateAct.PAUSE, []), (GateAct.OPEN, [plain.id, gated.id])):
        assert await shop.order(act, name)
        rows = await scene.store.agent.lease(AGENT, next(shop._numbers), [needy], room)
        rows += (await scene.store.agent.lease_limited(AGENT, next(shop._numbers), [limited], room)).rows
        assert [row.id for row in rows] == expected


@pytest.mark.parametrize(
    ("name", "waiting"), [("step:charge", 2), ("step:encode", 1), ("workflow:order", 4), ("needs:gpu", 2)]
)
async def test_people_see_how_many_run_and_wait_behind_a_paused_name(shop, name, waiting):
    await shop.put(1, "stripe+gpu")
    await shop.lease(slots=1)
    await shop.put(2, "stripe+gpu")
    await shop.put(1, "twilio", step="encode")
    await shop.scene.submit(a_run(2), msgspec.structs.replace(a_run(3), delay=SECOND))
    assert await shop.order(GateAct.PAUSE, name)
    gate = await shop.gate(name)
    running = 0 if name == "step:encode" else 1
    assert (gate.running, gate.waiting, gate.paused) == (running, waiting, True)
    elsewhere = GateOrder(name, GateAct.PAUSE, "ann", "")
    assert await shop.store.client.order_gate("elsewhere", elsewhere)
    [other] = [gate for gate in await shop.store.client.gates("elsewhere") if gate.name == name]
    assert (other.running, other.waiting) == (0, 0)


@pytest.mark.parametrize(
    ("name", "moving"), [("step:charge", (1, 2)), ("step:encode", (3, 5)), ("workflow:order", (0, 0))]
)
async def test_the_backlog_says_how_much_of_it_could_start_while_a_name_is_paused(shop, clock, name, moving):
    async def queue() -> QueueDepth:
        [found] = [one for one in await shop.store.client.backlog("default") if one.id == shop.queues["twilio"]]
        return found

    await shop.put(3, "twilio")
    clock.pass_by(3 * SECOND)
    await shop.put(1, "twilio", step="encode")
    clock.pass_by(2 * SECOND)
    before = await queue()
    assert (before.depth, before.paused, before.moving, before.age) == (4, 0, 4, before.oldest)
    assert await shop.order(GateAct.PAUSE, name)
    found = await queue()
    assert (found.depth, found.oldest, found.stopped) == (4, before.oldest, False), "whoever looks for agents sees all"
    assert (found.moving, found.age) == (moving[0], moving[1] * SECOND)
    assert await shop.order(GateAct.OPEN, name)
    assert await queue() == before


async def test_a_pause_of_another_namespace_is_none_of_ours(shop):
    order = GateOrder("step:charge", GateAct.PAUSE, "ann", "")
    assert await shop.store.client.order_gate("elsewhere", order)
    ids = await shop.put(2)
    assert await shop.leased() == ids


async def test_what_is_not_paused_cannot_be_opened(shop):
    assert not await shop.order(GateAct.OPEN, "step:charge")
    assert not await shop.order(GateAct.OPEN)
