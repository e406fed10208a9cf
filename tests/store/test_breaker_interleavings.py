"""Interleaving 13 of the protocol, and what belongs to it, forced step by step on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from tests.store.stage import Stage, a_stage
from watchbill.clock import SECOND
from watchbill.model.agent import Act, Report, Room
from watchbill.model.breaker import CANARY, Ended, Move, encode, read_breaker, tended, watch_at
from watchbill.model.budget import FLOOR
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.scene import AGENT, STEPS, Scene, a_run, a_verdict

X = 71
LARGE = b'"' + b"x" * 300_000 + b'"'


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


async def half_open(stage: Stage) -> tuple[Scene, int]:
    """Let a dependency be half-open, with two rows that wait; a lease of the first can be held by its old result."""
    a = await stage.scene()
    queue = await a.store.scheduler.queue("default", "", (), "stripe")
    await a.store.supervisor.hear([Ended(queue, n, 1, False) for n in range(5)])
    await tend(a)
    [run] = await a.submit(a_run(1))
    rows = [a.a_row(run, AttemptState.FAILED, result=LARGE, queue=queue) for _ in range(2)]
    await a.turn(attempts=rows)
    for row in rows:
        assert await a.judge(a_verdict(await a.row(row.id), AttemptState.READY))
    stage.clock.pass_by(20 * SECOND)
    await tend(a)
    return a, queue


async def tend(a: Scene) -> list[bool]:
    [row] = await a.store.supervisor.breakers()
    after = tended(read_breaker(row.breaker), row.waiting, row.now)
    move = Move(row.namespace, row.name, row.breaker, encode(after), after.state, watch_at(after))
    return await a.store.supervisor.move_breakers([move])


async def test_13_two_agents_ask_at_the_same_moment_and_one_gets_the_canary(stage: Stage):
    a, queue = await half_open(stage)
    x = await stage.store()
    await x.agent.join(X, "default", "", "x", b"{}", None)
    room = Room(9, 9, STEPS)

    # A has the gate, and a row; it is held inside before it can commit. X has to wait for the gate.
    pin = await stage.pin("SELECT n FROM watchbill.blob FOR UPDATE")
    first = stage.begin(a.store.agent.lease_limited(AGENT, 1, [queue], room))
    await stage.waits(first)
    second = stage.begin(x.agent.lease_limited(X, 1, [queue], room))
    await stage.waits(second)
    await pin.release()

    [canary] = (await stage.ended(first)).rows
    assert canary.why == CANARY
    assert (await stage.ended(second)).rows == []
    running = [row for row in (await a.rows()).values() if row.state is AttemptState.RUNNING]
    assert [row.id for row in running] == [canary.id]


async def test_13_a_verdict_on_the_gate_waits_for_the_canary_that_starts_and_finds_it_changed(stage: Stage):
    a, queue = await half_open(stage)
    b = await stage.store()
    pin = await stage.pin("SELECT n FROM watchbill.blob FOR UPDATE")
    leasing = stage.begin(a.store.agent.lease_limited(AGENT, 1, [queue], Room(9, 9, STEPS)))
    await stage.waits(leasing)
    hearing = stage.begin(b.supervisor.hear([Ended(queue, 5, 1, True)]))
    await stage.waits(hearing)
    await pin.release()
    [canary] = (await stage.ended(leasing)).rows
    await stage.ended(hearing)
    [gate] = await a.store.client.gates("default")
    assert gate.breaker == "half-open"  # somebody else's success is none of the canary's
    await a.store.agent.report(AGENT, [Report(canary.id, canary.fence, Act.DONE, b"1", uses="stripe")])
    [gate] = await a.store.client.gates("default")
    assert gate.breaker == "closing"


async def test_two_agents_ask_at_the_same_moment_and_one_gets_the_last_retry_that_the_budget_allows(stage: Stage):
    a = await stage.scene()
    queue = await a.store.scheduler.queue("default", "", (), "stripe")
    [run] = await a.submit(a_run(1))
    await a.turn(attempts=[a.a_row(run, queue=queue, failures=1) for _ in range(FLOOR - 1)])
    assert len((await a.store.agent.lease_limited(AGENT, 1, [queue], Room(99, 99, STEPS))).rows) == FLOOR - 1
    rows = [a.a_row(run, AttemptState.FAILED, result=LARGE, queue=queue) for _ in range(2)]
    await a.turn(attempts=rows)
    for row in rows:
        assert await a.judge(a_verdict(await a.row(row.id), AttemptState.READY, failures=1))
    x = await stage.store()
    await x.agent.join(X, "default", "", "x", b"{}", None)

    # A has the gate, and a row; it is held inside before it can commit. X has to wait for the gate.
    pin = await stage.pin("SELECT n FROM watchbill.blob FOR UPDATE")
    first = stage.begin(a.store.agent.lease_limited(AGENT, 2, [queue], Room(9, 9, STEPS)))
    await stage.waits(first)
    second = stage.begin(x.agent.lease_limited(X, 1, [queue], Room(9, 9, STEPS)))
    await stage.waits(second)
    await pin.release()

    assert len((await stage.ended(first)).rows) == 1
    assert (await stage.ended(second)).rows == []
    [gate] = await a.store.client.gates("default")
    assert (gate.retries, gate.budget) == (FLOOR, FLOOR)


async def test_a_step_without_a_dependency_is_leased_while_a_gate_is_open(stage: Stage):
    a = await stage.scene()
    queue = await a.store.scheduler.queue("default", "", (), "stripe")
    await a.store.supervisor.hear([Ended(queue, n, 1, False) for n in range(5)])
    [run] = await a.submit(a_run(1))
    await a.turn(attempts=[a.a_row(run), a.a_row(run, queue=queue)])
    room = Room(9, 9, STEPS)
    assert len(await a.store.agent.lease(AGENT, 1, [a.queue], room)) == 1
    assert (await a.store.agent.lease_limited(AGENT, 2, [queue], room)).rows == []


async def test_what_uses_a_dependency_that_has_just_gone_down_is_not_leased_by_who_has_not_heard_of_it(stage: Stage):
    a, x = await stage.scene(), await stage.store()
    queue = await a.store.scheduler.queue("default", "", (), "stripe")
    room = Room(9, 9, STEPS)
    assert (await a.store.agent.lease_limited(AGENT, 1, [queue], room)).rows == []  # all is well, as far as A knows
    [run] = await a.submit(a_run(1))
    row = a.a_row(run, queue=queue)
    await a.turn(attempts=[row])
    await x.supervisor.hear([Ended(queue, n, 1, False) for n in range(5)])
    assert (await a.store.agent.lease_limited(AGENT, 2, [queue], room)).rows == []
    assert await a.state_of(row.id) is AttemptState.READY


async def test_13_while_the_loss_of_a_canary_is_told_twice_nobody_else_tries_and_it_opens_once(stage: Stage):
    a, queue = await half_open(stage)
    b, x = await stage.store(), await stage.store()
    await x.agent.join(X, "default", "", "x", b"{}", None)
    room = Room(9, 9, STEPS)
    [canary] = (await a.store.agent.lease_limited(AGENT, 1, [queue], room)).rows
    lost = Ended(queue, canary.id, canary.fence, False, "Lost: no")
    # Its process has died, and its host says so. Two supervisors tell the gate of it, and X asks it whom to try.
    await a.store.agent.report(AGENT, [Report(canary.id, canary.fence, Act.DIED, b"{}")])
    pin = await stage.pin("SELECT name FROM watchbill.gate FOR UPDATE")
    telling = []
    for store in (a.store, b):
        telling.append(stage.begin(store.supervisor.hear([lost])))
        await stage.waits(telling[-1])
    assert (await x.agent.lease_limited(X, 1, [queue], room)).rows == []
    await pin.release()
    for one in telling:
        await stage.ended(one)
    assert (await x.agent.lease_limited(X, 2, [queue], room)).rows == []
    [gate] = await a.store.client.gates("default")
    assert gate.breaker == "open"
    [body] = await stage.sql("SELECT breaker FROM watchbill.gate")
    assert read_breaker(body[0]).wait == 10 * SECOND  # twice as long as before, and not four times
    assert await a.judge(a_verdict(await a.row(canary.id), AttemptState.READY))
    assert (await x.agent.lease_limited(X, 3, [queue], room)).rows == []
