"""Hints: each commit wakes those whom it may concern, and nobody else."""

import pytest

from watchbill.model.agent import Act, Wish
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Hint, Turn
from watchbill.testing.conformance.client import a_cancel
from watchbill.testing.conformance.scene import AGENT, Scene, a_change, a_run, a_verdict, an_entry

CLIENT, SCHEDULER, AGENTS, SUPERVISOR = Hint


@pytest.fixture
async def run(scene):
    [run] = await scene.submit(a_run(1))
    return run


@pytest.fixture
def heard(scene, run):
    """Who has been woken since the last time somebody asked."""
    woken: set[Hint] = set()
    for whom in Hint:
        scene.store.listen(whom, lambda whom=whom: woken.add(whom))

    def ask() -> set[Hint]:
        told = set(woken)
        woken.clear()
        return told

    return ask


async def test_a_new_run_concerns_schedulers(scene, heard):
    await scene.submit(a_run(2))
    assert heard() == {SCHEDULER}
    await scene.submit(a_run(3, "o-2"))
    assert heard() == set()


async def test_a_fact_concerns_schedulers(scene, heard):
    await scene.store.client.tell([a_cancel("o-1")])
    assert heard() == {SCHEDULER}
    await scene.store.client.tell([a_cancel("nobody")])
    assert heard() == set()


async def test_turns(scene, run, heard):
    await scene.turn(journal=[an_entry(1, 1)], runs=[a_change(run, RunState.RUNNING)])
    assert heard() == set()
    await scene.turn(attempts=[scene.a_row(run)])
    assert heard() == {AGENTS}
    await scene.turn(attempts=[scene.a_row(run, AttemptState.FAILED)])
    assert heard() == {SUPERVISOR}
    row = scene.a_row(run, AttemptState.RUNNING, watch_in=5)
    await scene.turn(attempts=[row])
    assert heard() == {SUPERVISOR}
    await scene.turn(dropped=[row.id])
    assert heard() == {SUPERVISOR, AGENTS}, "it has to be stopped, and looked at if it does not"
    await scene.turn(runs=[a_change(run, RunState.RUNNING, held="waits for nothing")])
    assert heard() == {CLIENT, SUPERVISOR}, "nothing moves it: that is an incident"
    await scene.turn(runs=[a_change(run, RunState.DIVERGED)])
    assert heard() == {CLIENT, SUPERVISOR}
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    assert heard() == set()
    await scene.turn(runs=[a_change(run, RunState.COMPLETED)])
    assert heard() == {CLIENT}


async def test_a_refused_turn_concerns_nobody(scene, run, heard):
    turn = Turn(99, dict(scene.terms), attempts=[scene.a_row(run)], runs=[a_change(run, RunState.COMPLETED)])
    await scene.store.scheduler.turn(turn)
    assert heard() == set()


async def test_a_lease_of_what_is_soon_late_sets_a_time_for_the_supervisor(scene, run, heard):
    await scene.turn(attempts=[scene.a_row(run)._replace(span=1_000)])
    heard()
    await scene.lease()
    assert heard() == {SUPERVISOR}
    await scene.lease()
    assert heard() == set()


@pytest.mark.parametrize(
    ("act", "concerned"),
    [
        (Act.DONE, {SCHEDULER}),
        (Act.FAILED, {SUPERVISOR}),
        (Act.DIED, {SUPERVISOR}),
        (Act.HAND_BACK, {AGENTS}),
        (Act.CHECKPOINT, set()),
    ],
)
async def test_reports(scene, run, heard, act, concerned):
    row = await scene.row_in(AttemptState.RUNNING, run)
    heard()
    await scene.report(row, act, b"1")
    assert heard() == concerned
    await scene.report(row, Act.DONE if act is not Act.CHECKPOINT else act, b"1")
    assert heard() == set()


@pytest.mark.parametrize(
    ("before", "after", "why", "concerned"),
    [
        (AttemptState.RUNNING, AttemptState.FAILED, None, {SUPERVISOR, AGENTS}),
        (AttemptState.FAILED, AttemptState.READY, None, {AGENTS}),
        (AttemptState.FAILED, AttemptState.PARKED, "backoff", {SUPERVISOR}),
        (AttemptState.FAILED, AttemptState.PARKED, "escalate", {CLIENT, SUPERVISOR}),
        (AttemptState.FAILED, AttemptState.GAVE_UP, None, {SCHEDULER}),
        (AttemptState.PARKED, AttemptState.READY, None, {AGENTS}),
        (AttemptState.PARKED, AttemptState.PARKED, "escalate", {CLIENT, SUPERVISOR}),
        (AttemptState.PARKED, AttemptState.GAVE_UP, None, {SCHEDULER}),
    ],
)
async def test_verdicts(scene, run, heard, before, after, why, concerned):
    row = await scene.row_in(before, run)
    heard()
    verdict = a_verdict(row, after, watch_in=5, why=why)
    assert await scene.judge(verdict)
    assert heard() == concerned
    assert not await scene.judge(verdict)
    assert heard() == set()


@pytest.mark.parametrize(("after", "why"), [(AttemptState.PARKED, "backoff"), (AttemptState.GAVE_UP, None)])
async def test_that_a_canary_has_ended_concerns_agents_whatever_becomes_of_it(scene, run, heard, after, why):
    row = await scene.row_in(AttemptState.FAILED, run)
    heard()
    assert await scene.judge(a_verdict(row, after, watch_in=5, why=why)._replace(tried=True))
    assert AGENTS in heard()


async def test_released_shards_concern_other_schedulers(scene, heard):
    await scene.store.scheduler.release(7, dict(scene.terms))
    assert heard() == {SCHEDULER}


async def test_an_agent_that_leaves_concerns_the_others(scene, run, heard):
    await scene.row_in(AttemptState.RUNNING, run)
    heard()
    await scene.store.agent.leave(AGENT)
    assert heard() == {AGENTS}


async def test_who_stops_listening_hears_nothing(scene: Scene):
    heard = []
    deaf = scene.store.listen(Hint.SCHEDULER, lambda: heard.append(1))
    await scene.submit(a_run(1))
    deaf()
    deaf()
    await scene.submit(a_run(2))
    assert heard == [1]


async def test_what_a_lost_answer_leased_concerns_agents_again(scene, run, heard):
    await scene.row_in(AttemptState.RUNNING, run)
    heard()
    await scene.store.agent.beat(AGENT, None, [])
    assert heard() == set()
    await scene.store.agent.beat(AGENT, None, [], lease_no=9_999_999)
    assert heard() == {AGENTS}


async def test_an_order_concerns_agents(scene, heard):
    await scene.store.client.order_agent("default", AGENT, Wish.DRAIN)
    assert heard() == {AGENTS}
    await scene.store.client.order_agent("default", 12345, Wish.DRAIN)
    assert heard() == set()
