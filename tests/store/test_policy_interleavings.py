"""A policy is changed while somebody judges, or ends, the very attempt: forced step by step on PostgreSQL."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.store.stage import Stage, a_stage
from watchbill.clock import SECOND
from watchbill.model.agent import Act, Answer, Report
from watchbill.model.attempt import AttemptRow
from watchbill.model.override import Changes
from watchbill.model.policies import PolicyOrder
from watchbill.model.policy import Cures, Policy, Rung, decode_policy
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.scene import AGENT, Scene, a_recast, a_run, a_verdict

LONGER = Changes(timeout=7_200 * SECOND)
POLICY = Policy(cures=Cures((Rung(step="charge", policy=Policy(retries=1)),)))
THE_ROW = "SELECT id FROM watchbill.attempt FOR UPDATE"


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


async def an_attempt(a: Scene, state: AttemptState = AttemptState.RUNNING) -> AttemptRow:
    [run] = await a.submit(a_run(1))
    return await a.row_in(state, run, policy=msgspec.json.encode(POLICY))


def order(step: str = "charge", changes: Changes = LONGER) -> PolicyOrder:
    return PolicyOrder(step, "ann", "slow", changes)


async def test_a_verdict_that_waits_for_a_change_finds_another_policy_and_is_refused(stage: Stage) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_attempt(a)
    late = a_verdict(row, AttemptState.FAILED, failures=1, losses=-1, watch_in=0)._replace(policy=row.policy)

    pin = await stage.pin(THE_ROW)
    changing = stage.begin(b.client.set_policy("default", order()))
    await stage.waits(changing)
    judging = stage.begin(a.store.supervisor.judge([late]))
    await stage.waits(judging)
    await pin.release()

    await stage.ended(changing)
    assert await stage.ended(judging) == [False]
    after = await a.row(row.id)
    assert (after.state, decode_policy(after.policy).timeout) == (AttemptState.RUNNING, 7_200 * SECOND)


async def test_a_change_that_waits_for_a_verdict_finds_what_it_made_of_the_row(stage: Stage) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_attempt(a, AttemptState.FAILED)
    climbed = msgspec.structs.replace(Policy(retries=1), cures=POLICY.cures)
    switched = a_verdict(row, AttemptState.READY, recast=a_recast(row, rung=1, policy=msgspec.json.encode(climbed)))

    pin = await stage.pin(THE_ROW)
    judging = stage.begin(a.store.supervisor.judge([switched._replace(policy=row.policy)]))
    await stage.waits(judging)
    changing = stage.begin(b.client.set_policy("default", order()))
    await stage.waits(changing)
    await pin.release()

    assert await stage.ended(judging) == [True]
    assert await stage.ended(changing) is None
    after = await a.row(row.id)
    policy = decode_policy(after.policy)
    assert (after.state, after.rung, policy.retries, policy.timeout) == (AttemptState.READY, 1, 1, 7_200 * SECOND)


async def test_what_ends_while_its_policy_is_changed_has_ended(stage: Stage) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_attempt(a)

    pin = await stage.pin(THE_ROW)
    reporting = stage.begin(a.store.agent.report(AGENT, [Report(row.id, row.fence, Act.DONE, b"42")]))
    await stage.waits(reporting)
    changing = stage.begin(b.client.set_policy("default", order()))
    await stage.waits(changing)
    await pin.release()

    assert await stage.ended(reporting) == [Answer.ACCEPTED]
    await stage.ended(changing)
    after = await a.row(row.id)
    assert (after.state, after.result, after.policy) == (AttemptState.DONE, b"42", row.policy)


async def test_what_is_changed_while_it_ends_ends_all_the_same(stage: Stage) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_attempt(a)

    pin = await stage.pin(THE_ROW)
    changing = stage.begin(b.client.set_policy("default", order(changes=Changes(timeout=1))))
    await stage.waits(changing)
    reporting = stage.begin(a.store.agent.report(AGENT, [Report(row.id, row.fence, Act.DONE, b"42")]))
    await stage.waits(reporting)
    await pin.release()

    await stage.ended(changing)
    assert await stage.ended(reporting) == [Answer.ACCEPTED]
    assert await a.state_of(row.id) is AttemptState.DONE


async def test_two_orders_at_the_same_moment_are_both_in_force(stage: Stage) -> None:
    a, b = await stage.scene(), await stage.store()
    row = await an_attempt(a)

    pin = await stage.pin(THE_ROW)
    first = stage.begin(a.store.client.set_policy("default", order()))
    await stage.waits(first)
    second = stage.begin(b.client.set_policy("default", order(changes=Changes(retries=9))))
    await stage.waits(second)
    await pin.release()

    await stage.ended(first)
    await stage.ended(second)
    policy = decode_policy((await a.row(row.id)).policy)
    assert (policy.timeout, policy.retries) == (7_200 * SECOND, 9)
    assert [one.revision for one in (await b.client.policies("default")).rows] == [2]
