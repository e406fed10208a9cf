"""Budgets: of those that have failed before no more start than a dependency bears, and the others pass them."""

import asyncio

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act, Report, Room
from watchbill.model.breaker import CANARY
from watchbill.model.budget import FLOOR, SHARE, SLICE, WINDOW
from watchbill.model.limit import Limit
from watchbill.model.policy import Policy
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.breakers import NO, OTHER, STRIPE, Shop, a_shop
from watchbill.testing.conformance.scene import AGENT, LIMIT, STEPS

BEYOND = FLOOR + 5


@pytest.fixture
async def shop(scene):
    return await a_shop(scene)


async def retries(shop: Shop, count: int, uses: str = "stripe", **changes: object) -> list[int]:
    """Put rows that have failed before, and are ready again."""
    return await shop.put(count, uses, failures=1, **changes)


async def say(shop: Shop, firsts: int, *, well: bool = False) -> None:
    """Let an agent say how many it has tried first of late: with a failure, or with a retry that is done."""
    [id] = await shop.put(1, failures=int(well))
    [row] = [row for row in await shop.lease(slots=1) if row.id == id]
    act, body, error = (Act.DONE, b"1", "") if well else (Act.FAILED, NO, "ConnectionError: no")
    said = Report(row.id, row.fence, act, body, uses="stripe", error=error, pace=0.0 if well else 1.0, firsts=firsts)
    await shop.store.agent.report(AGENT, [said])


async def test_who_has_failed_once_is_leased_at_once_like_any_other(shop):
    [failed] = await retries(shop, 1)
    [first] = await shop.put(1)
    found = await shop.ask()
    assert (sorted(row.id for row in found.rows), found.next_at) == ([failed, first], None)


async def test_beyond_the_budget_those_that_failed_wait_uncharged_and_first_tries_pass_them(shop):
    failed = await retries(shop, BEYOND)
    assert await shop.leased(slots=FLOOR + 1) == failed[:FLOOR]
    firsts = await shop.put(3)
    assert await shop.leased() == firsts
    assert await shop.leased(OTHER) == []
    waiting = [row for row in (await shop.scene.rows()).values() if row.state is AttemptState.READY]
    assert [(row.id, row.failures, row.losses, row.why) for row in waiting] == [
        (id, 1, 0, None) for id in failed[FLOOR:]
    ]
    gate = await shop.gate()
    assert (gate.breaker, gate.retries, gate.budget, gate.waiting) == ("closed", FLOOR, FLOOR, 5)


async def test_they_leave_when_others_are_out_of_the_window_and_it_is_said_when(shop, clock):
    failed = await retries(shop, BEYOND)
    found = await shop.ask()
    assert [row.id for row in found.rows] == failed[:FLOOR]
    assert found.next_at is not None
    assert WINDOW <= found.next_at - found.now <= WINDOW + SLICE
    clock.pass_by(found.next_at - found.now - 1)
    assert await shop.leased() == []
    clock.pass_by(1)
    assert await shop.leased() == failed[FLOOR:]


@pytest.mark.parametrize("well", [False, True])
async def test_the_more_is_tried_for_the_first_time_the_more_may_be_tried_again(shop, clock, well):
    await say(shop, 100, well=well)
    failed = await retries(shop, BEYOND + int(SHARE * 100))
    more = FLOOR + int(SHARE * 100) - well  # the retry that said so was one
    assert await shop.leased() == failed[:more]
    gate = await shop.gate()
    assert (gate.retries, gate.budget) == (FLOOR + SHARE * 100, FLOOR + SHARE * 100)
    clock.pass_by(WINDOW)
    assert (await shop.gate()).budget == FLOOR  # of late nobody has said anything


async def test_what_several_agents_have_tried_first_adds_up_and_the_last_word_of_each_counts(shop):
    await say(shop, 50)
    await say(shop, 100)
    await shop.put(1)
    [row] = await shop.lease(OTHER, slots=1)
    said = Report(row.id, row.fence, Act.FAILED, NO, uses="stripe", error="no", firsts=200)
    await shop.store.agent.report(OTHER, [said])
    assert (await shop.gate()).budget == FLOOR + SHARE * 300


async def test_however_many_ask_at_once_no_more_than_the_budget_start(shop):
    await retries(shop, 2 * FLOOR)
    found = await asyncio.gather(*(shop.ask(agent, slots=FLOOR) for agent in (AGENT, OTHER) * 4))
    assert sum(len(one.rows) for one in found) == FLOOR
    assert (await shop.gate()).retries == FLOOR


async def test_it_is_one_budget_for_all_queues_that_use_the_dependency_and_none_for_others(shop):
    await retries(shop, 20)
    await retries(shop, 20, "stripe+gpu")
    others = await retries(shop, 20, "twilio")
    rows = await shop.lease()
    assert len([row for row in rows if row.id not in others]) == FLOOR
    assert {row.id for row in rows} >= set(others)


async def test_who_was_lost_is_no_retry(shop):
    lost = await shop.put(BEYOND, losses=1)
    assert await shop.leased() == lost


async def test_what_uses_nothing_has_no_budget(shop):
    rows = [shop.scene.a_row(shop.run)._replace(failures=1) for _ in range(BEYOND)]
    await shop.scene.turn(attempts=rows)
    leased = await shop.store.agent.lease(AGENT, 1, [shop.scene.queue], Room(LIMIT, LIMIT, STEPS))
    assert [row.id for row in leased] == [row.id for row in rows]


async def test_where_the_budget_is_spent_those_that_failed_hide_nobody_behind_a_limit(shop):
    policy = msgspec.json.encode(Policy(uses="stripe", limit=Limit(at_once=1_000).allowance()))
    failed = await retries(shop, BEYOND, "stripe+limit", gate="limit:charge", policy=policy)
    firsts = await shop.put(3, "stripe+limit", gate="limit:charge", policy=policy)
    assert await shop.leased(slots=FLOOR) == failed[:FLOOR]
    assert await shop.leased(slots=2) == firsts[:2]
    assert await shop.leased() == firsts[2:]
    assert (await shop.gate()).retries == FLOOR


async def test_retries_have_their_share_where_first_tries_fill_every_slot(shop):
    await shop.put(10)
    failed = await retries(shop, 2)
    await shop.lease(slots=2)
    assert set(failed) <= set(await shop.leased(slots=2))


async def test_of_those_who_leave_half_may_have_failed_beside_the_budget_and_then_first_tries_pass_them(shop, clock):
    await retries(shop, FLOOR)
    await shop.lease()
    await shop.break_down()
    await shop.put(2)
    await shop.half_open()
    [canary] = await shop.lease()
    await shop.ends(canary, well=True)
    assert await shop.tend() == ["closing"]  # one waits: one a second may leave, and fifteen retries of thirty
    assert len(await shop.leased()) == 1
    failed = await retries(shop, BEYOND)
    firsts = await shop.put(3)
    left = list[int]()
    for _ in range(WINDOW // SECOND // 2 + len(firsts)):
        clock.pass_by(SECOND)
        left += await shop.leased()
    assert left == failed[: WINDOW // SECOND // 2] + firsts
    clock.pass_by(SECOND)
    found = await shop.ask()
    assert (found.rows, found.next_at is not None) == ([], True)


async def test_a_canary_and_a_crowd_that_leaves_after_it_need_no_budget(shop, clock):
    await retries(shop, BEYOND + 20)
    await shop.lease(slots=FLOOR)
    await shop.break_down()
    await shop.half_open()
    [canary] = await shop.lease()
    assert canary.why == CANARY
    await shop.ends(canary, well=True)
    assert await shop.tend() == ["closing"]
    left = 0
    for _ in range(100):
        left += len(await shop.lease())
        clock.pass_by(SECOND // 10)
    assert left == BEYOND + 20 - FLOOR - 1


async def test_a_run_says_that_its_call_waits_for_the_budget(shop):
    failed = await retries(shop, BEYOND)
    await shop.lease(slots=FLOOR)
    [first] = await shop.put(1)
    record = await shop.store.client.record("default", shop.run.id)
    assert record is not None
    stops = {wait.row: wait.stop for wait in record.waits}
    stop = stops[failed[-1]]
    assert stop is not None
    assert (stop.name, stop.breaker, stop.retries, stop.budget) == (STRIPE, "closed", FLOOR, FLOOR)
    assert stop.next_retry_at is not None
    assert stops.get(first) is None
