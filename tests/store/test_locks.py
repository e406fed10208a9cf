"""Locks on PostgreSQL: who waits for whom, who must not, and in which order, each forced on a Stage."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.store.stage import Stage, a_stage
from tests.store.test_interleavings import LARGE, LEASE, X, a_mark, done_with, keep_result, keep_row, running
from watchbill.model.agent import AGENTS_KEPT_FOR, Answer
from watchbill.model.failed import Copied
from watchbill.model.run import NewRun
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Told
from watchbill.testing.conformance import failed as ended
from watchbill.testing.conformance.client import a_cancel
from watchbill.testing.conformance.people import WHY, gathering
from watchbill.testing.conformance.scene import AGENT, Scene, a_change, a_run, a_verdict


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


# --- who waits


async def test_nobody_is_pronounced_dead_who_beats_at_that_moment(stage: Stage):
    a, judges = await stage.scene(), await stage.store()
    await a.store.agent.join(X, "default", "", "x", b"{}", LEASE)
    [run] = await a.submit(a_run(1))
    await a.turn(attempts=[a.a_row(run, call="charge.1"), a.a_row(run, call="charge.2")])
    row, other = await a.lease(X)
    stage.clock.pass_by(LEASE + 1)

    pin = await keep_row(stage, other.id)
    beat = stage.begin(a.store.agent.beat(X, LEASE, [a_mark(other)]))
    await stage.waits(beat)
    verdict = stage.begin(judges.supervisor.judge([a_verdict(row, AttemptState.FAILED, dead_agent=X)]))
    await stage.waits(verdict)
    await pin.release()
    assert (await stage.ended(beat)).alive
    assert await stage.ended(verdict) == [False]
    assert await a.decisions("o-1") == []


async def test_a_run_that_ends_at_that_moment_is_not_told(stage: Stage):
    a, clients = await stage.scene(), await stage.store()
    runs = await a.submit(a_run(1), a_run(2))

    pin = await stage.pin("SELECT num FROM watchbill.run WHERE num = 2 FOR UPDATE")
    ending = stage.begin(a.turn(runs=[a_change(run, RunState.COMPLETED) for run in runs]))
    await stage.waits(ending)
    telling = stage.begin(clients.client.tell([a_cancel("o-1")]))
    await stage.waits(telling)
    await pin.release()
    assert (await stage.ended(ending)).applied
    assert await stage.ended(telling) == [Told.ENDED]
    assert await stage.sql("SELECT id FROM watchbill.fact") == []


# --- who must not


async def test_two_claimers_do_not_wait_for_each_other(stage: Stage):
    a, others = await stage.scene(), await stage.store()
    await others.agent.join(X, "default", "", "x", b"{}", LEASE)
    [run] = await a.submit(a_run(1))
    first, second = a.a_row(run, AttemptState.FAILED, result=LARGE), a.a_row(run, call="charge.2")
    await a.turn(attempts=[first, second])
    assert await a.judge(a_verdict(await a.row(first.id), AttemptState.READY))

    pin = await keep_result(stage)
    claim = stage.begin(a.lease(limit=1))
    await stage.waits(claim)
    elsewhere = Scene(others, stage.clock)
    elsewhere.queue = a.queue
    [theirs] = await stage.goes_through(stage.begin(elsewhere.lease(X, limit=1)))
    assert theirs.id == second.id
    await pin.release()
    assert [row.id for row in await stage.ended(claim)] == [first.id]


async def test_who_beats_at_that_moment_is_not_forgotten(stage: Stage):
    a = await stage.scene()
    await a.store.agent.join(X, "default", "", "x", b"{}", LEASE)
    stage.clock.pass_by(2 * AGENTS_KEPT_FOR)

    beat = await stage.pin("UPDATE watchbill.agent SET until = 4611686018427387904 WHERE id = $1", X)
    await stage.goes_through(stage.begin(a.store.agent.join(X + 1, "default", "", "y", b"{}", LEASE)))
    await beat.commit()
    assert (await a.store.agent.beat(X, LEASE, [])).alive


# --- in which order


@pytest.mark.parametrize("first", ["report", "judge"])
async def test_reports_and_verdicts_lock_rows_in_one_order(stage: Stage, first: str):
    """One asks for b, c, a and has all but c; the other asks for a, b: in that order, whatever was asked for."""
    scene, judges = await stage.scene(), await stage.store()
    a, b, c = await running(stage, scene, 3)

    def report(*rows):
        return scene.store.agent.report(AGENT, [done_with(row) for row in rows])

    def judge(*rows):
        return judges.supervisor.judge([a_verdict(row, AttemptState.FAILED) for row in rows])

    pin = await keep_row(stage, c.id)
    one = stage.begin((report if first == "report" else judge)(b, c, a))
    await stage.waits(one)
    other = stage.begin((judge if first == "report" else report)(a, b))
    await stage.waits(other)
    await pin.release()
    answers = list(await asyncio.gather(one, other, return_exceptions=True))
    if first == "report":
        assert answers == [[Answer.ACCEPTED] * 3, [False, False]]
    else:
        assert answers == [[True] * 3, [Answer.LATE, Answer.LATE]]


async def test_a_lease_asked_for_again_waits_for_the_first_one(stage: Stage):
    a = await stage.scene()
    [run] = await a.submit(a_run(1))
    first, second = a.a_row(run, AttemptState.FAILED, result=LARGE), a.a_row(run, call="charge.2")
    await a.turn(attempts=[first, second])
    assert await a.judge(a_verdict(await a.row(first.id), AttemptState.READY))

    pin = await keep_result(stage)
    lost = stage.begin(a.lease(lease_no=9, limit=1))
    await stage.waits(lost)
    again = stage.begin(a.lease(lease_no=9, limit=1))
    await stage.waits(again)
    await pin.release()
    assert [row.id for row in await stage.ended(lost)] == [first.id]
    assert [row.id for row in await stage.ended(again)] == [first.id]
    assert await a.state_of(second.id) is AttemptState.READY


async def test_members_are_told_without_holding_a_run_while_waiting_for_one_before_it(stage: Stage):
    a = await stage.scene()
    low, high = await a.submit(a_run(1), a_run(2))
    await a.turn(runs=[a_change(run, RunState.RUNNING) for run in (low, high)])
    # The calls were made in another order than their runs, as calls are that come after a pause.
    rows = [await a.row_in(AttemptState.PARKED, run, why="escalate") for run in (high, low)]
    assert rows[0].id < rows[1].id
    await a.store.supervisor.attach([gathering(7, rows)])
    await a.store.client.order_incident("default", 7, "ada", WHY, 50)
    [order] = (await a.store.supervisor.muster(10)).orders

    pin = await stage.pin("SELECT num FROM watchbill.run WHERE num = $1 FOR UPDATE", low.num)  # as a turn has it
    feeding = stage.begin(a.store.supervisor.feed(order, 50))
    await stage.waits(feeding)
    await stage.pin("SELECT num FROM watchbill.run WHERE num = $1 FOR UPDATE NOWAIT", high.num)  # and goes on with it
    await stage.pin("SELECT id FROM watchbill.attempt WHERE run = $1 FOR UPDATE NOWAIT", high.num)
    for held in stage._pins[1:]:
        await held.release()
    await pin.release()
    assert await stage.ended(feeding) == 2


async def test_a_copy_waits_for_who_goes_on_with_the_run_before_it_holds_an_id(stage: Stage):
    a, b = await stage.scene(), await stage.store()
    [run] = await ended.failed(a, 1)
    await a.store.supervisor.attach_failed([ended.gathering(7, 1)])
    pin = await stage.pin("SELECT run FROM watchbill.failed_run FOR UPDATE")
    copy = NewRun(3, "default", "o-1~2", "order", 1, b"[]")
    copying = stage.begin(b.client.copy(copy, run.num, (), loose=False, member=7))
    await stage.waits(copying)
    other = NewRun(4, "default", "o-1~2", "order", 1, b"[]")
    await stage.goes_through(stage.begin(a.store.client.submit([other])))
    await pin.release()
    assert await stage.ended(copying) is Copied.TAKEN


@pytest.mark.parametrize("first", ["a person", "the wardroom"])
async def test_a_run_that_two_go_on_with_at_once_goes_on_once(stage: Stage, first: str):
    a, b = await stage.scene(), await stage.store()
    [run] = await ended.failed(a, 1)
    await a.store.supervisor.attach_failed([ended.gathering(7, 1)])
    copy = NewRun(3, "default", "o-1~2", "order", 1, b"[]")
    by_hand = b.client.copy(copy, run.num, (), loose=False, member=7)
    for_all = ended.retried(a, 7, run, 4)
    pin = await stage.pin("SELECT run FROM watchbill.failed_run FOR UPDATE")
    doors = []
    for door in (by_hand, for_all) if first == "a person" else (for_all, by_hand):
        doors.append(stage.begin(door))
        await stage.waits(doors[-1])
    await pin.release()
    assert await stage.ended(doors[0]) is Copied.MADE
    assert await stage.ended(doors[1]) in (Copied.GONE, Copied.TAKEN)
    assert await stage.sql("SELECT id FROM watchbill.run WHERE id <> 'o-1'") == [("o-1~2",)]
