"""Suspended agents: what they say of what they did, who suspends them, what they get, and who lets them back."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from watchbill.clock import SECOND
from watchbill.model.agent import Act, Room, Wish
from watchbill.model.doings import Suspending
from watchbill.model.gate import GateAct, GateOrder
from watchbill.model.limit import Allowance
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.states import AttemptState
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import AGENT, NOON, STEPS, a_run, a_verdict

OTHER, THIRD = 71, 72
LASTING = 8 * SECOND
SAID, WHY, LONGER = b'{"error":"OSError"}', b'{"why":"1"}', b'{"why":"2"}'


@pytest.fixture
async def fleet(scene):
    """Three agents: one says that it fails."""
    await scene.store.agent.join(OTHER, "default", "", "b", b"{}", LASTING)
    await scene.store.agent.join(THIRD, "default", "", "c", b"{}", LASTING)
    await scene.store.agent.beat(AGENT, None, [], doings=SAID)
    return scene


def a_suspension(**changes):
    return Suspending(AGENT, None, SAID, WHY, (OTHER,))._replace(**changes)


async def suspension_of(store, agent=AGENT):
    return next(doer.suspension for doer in (await store.supervisor.doings()).doers if doer.id == agent)


async def lease(scene, agent=AGENT, *, trial=False):
    room = Room(1, 1, STEPS, trial=trial)
    return await scene.store.agent.lease(agent, next(scene._ids), [scene.queue], room)


async def waiting(scene, count=1):
    [run] = await scene.submit(a_run(1))
    rows = [scene.a_row(run, call=f"charge.{n}") for n in range(count)]
    await scene.turn(attempts=rows)
    return run, rows


# --- what agents say


async def test_what_an_agent_says_is_read_with_the_time_at_which_it_was_said(fleet, clock):
    clock.pass_by(SECOND)
    await fleet.store.agent.beat(OTHER, LASTING, [], doings=b'{"error":"E"}')
    clock.pass_by(SECOND)
    roll = await fleet.store.supervisor.doings()
    assert roll.now == NOON + 2 * SECOND
    doers = {doer.name: doer for doer in roll.doers}
    assert list(doers) == ["a", "b", "c"]
    assert (doers["b"].doings, doers["b"].beat_at) == (b'{"error":"E"}', NOON + SECOND)
    assert (doers["a"].doings, doers["c"].doings) == (SAID, b"")
    assert all(doer.wanted and doer.suspension is None and doer.judged_from == 0 for doer in doers.values())
    assert {(doer.region, doer.needs) for doer in doers.values()} == {("", ())}
    await fleet.store.agent.join(75, "default", "eu", "e", b"{}", LASTING, needs=("gpu=2",))
    assert [(doer.region, doer.needs) for doer in (await fleet.store.supervisor.doings()).doers][-1] == (
        "eu",
        ("gpu=2",),
    )


async def test_what_is_not_new_stays_as_it_was_said(fleet):
    await fleet.store.agent.beat(AGENT, None, [])
    assert (await fleet.store.supervisor.doings()).doers[0].doings == SAID


async def test_who_is_out_of_time_or_has_left_is_not_compared(fleet, clock):
    await fleet.store.agent.leave(THIRD)
    assert [doer.id for doer in (await fleet.store.supervisor.doings()).doers] == [AGENT, OTHER]
    clock.pass_by(LASTING)
    assert [doer.id for doer in (await fleet.store.supervisor.doings()).doers] == [AGENT]


# --- suspending


async def test_a_suspended_agent_hears_of_it_and_is_shown_as_such(fleet):
    woken = set()
    for whom in Hint:
        fleet.store.listen(whom, lambda whom=whom: woken.add(whom))
    assert await fleet.store.supervisor.suspend(a_suspension())
    assert Hint.AGENT in woken
    assert (await fleet.store.agent.beat(AGENT, None, [])).suspension == WHY
    assert (await fleet.store.agent.beat(OTHER, LASTING, [])).suspension is None
    shown = {row.id: row.suspension for row in await fleet.store.client.agents("default")}
    assert shown == {AGENT: WHY, OTHER: None, THIRD: None}


async def test_it_gets_nothing_but_what_it_is_tried_with(fleet):
    await waiting(fleet, 3)
    assert await fleet.store.supervisor.suspend(a_suspension())
    assert await lease(fleet) == []
    assert len(await lease(fleet, trial=True)) == 1
    assert await lease(fleet, OTHER, trial=True) == [], "who is not suspended is not tried"
    assert len(await lease(fleet, OTHER)) == 1


async def test_behind_gates_it_is_the_same(fleet):
    store = fleet.store
    [run] = await fleet.submit(a_run(1))
    queue = await store.scheduler.queue("default", "", (), "stripe")
    limited = await store.scheduler.queue("default", "", (), "", limited=True)
    policy = b'{"limit":{"at_once":5}}'
    await fleet.turn(
        attempts=[
            fleet.a_row(run, call="a", queue=queue, policy=b'{"uses":"stripe"}'),
            fleet.a_row(run, call="b", queue=limited, gate="limit:charge", policy=policy),
        ]
    )
    assert await store.supervisor.suspend(a_suspension())
    plain, tried = Room(2, 2, STEPS), Room(2, 2, STEPS, trial=True)
    assert (await store.agent.lease_limited(AGENT, 1, [queue, limited], plain)).rows == []
    assert len((await store.agent.lease_limited(AGENT, 2, [queue, limited], tried)).rows) == 2


async def test_while_something_is_paused_it_is_the_same(fleet):
    await waiting(fleet, 2)
    await fleet.store.client.order_gate("default", GateOrder("step:other", GateAct.PAUSE, "me", ""))
    assert await fleet.store.supervisor.suspend(a_suspension())
    assert await lease(fleet) == []
    assert len(await lease(fleet, trial=True)) == 1


async def test_what_nobody_else_can_do_it_goes_on_with_and_with_nothing_else(fleet):
    """Also by amounts, and behind gates; another that can do it, and gets work, is left to do it."""
    store = fleet.store
    [run] = await fleet.submit(a_run(1))
    gpu = await store.scheduler.queue("default", "", ("gpu=2",), "")
    limited = await store.scheduler.queue("default", "", ("gpu=2",), "", limited=True)
    uses = await store.scheduler.queue("default", "", ("gpu=2",), "stripe")
    rows = [fleet.a_row(run, call=f"gpu.{n}", queue=gpu) for n in range(3)]
    rows.append(fleet.a_row(run, call="uses", queue=uses, policy=b'{"uses":"stripe"}'))
    rows.append(fleet.a_row(run, call="limited", queue=limited, gate="limit:a", policy=b'{"limit":{"at_once":5}}'))
    await fleet.turn(attempts=[*rows, *(fleet.a_row(run, call=f"common.{n}") for n in range(3))])
    assert await store.client.order_agent("default", AGENT, needs=("gpu=2",))
    assert await store.client.order_agent("default", OTHER, needs=("gpu=1",))
    assert await store.supervisor.suspend(a_suspension())
    await store.agent.beat(AGENT, None, [])
    room = Room(2, 2, STEPS)
    assert [row.call for row in await store.agent.lease(AGENT, 1, [fleet.queue, gpu], room)] == ["gpu.0", "gpu.1"]
    behind = await store.agent.lease_limited(AGENT, 2, [uses, limited], room)
    assert sorted(row.call for row in behind.rows) == ["limited", "uses"]
    assert {one.needs for one in await store.supervisor.able()} == {("gpu=2",), ("gpu=1",), ()}, "somebody is there"
    assert await store.client.order_agent("default", OTHER, needs=("gpu=2",))
    assert await store.agent.lease(AGENT, 3, [fleet.queue, gpu], room) == [], "now somebody else can do it"
    await store.agent.leave(OTHER)
    assert [row.call for row in await store.agent.lease(AGENT, 4, [fleet.queue, gpu], room)] == ["gpu.2"]
    await store.agent.leave(THIRD)
    assert len(await store.agent.lease(AGENT, 5, [fleet.queue, gpu], room)) == 2, "nobody else is left for anything"


async def test_it_is_never_tried_with_what_must_not_be_repeated(fleet):
    """Its failure would leave a doubt whether it took effect; also behind gates, and while something is paused."""
    store = fleet.store
    [run] = await fleet.submit(a_run(1))
    uses = await store.scheduler.queue("default", "", (), "stripe")
    limited = await store.scheduler.queue("default", "", (), "", limited=True)
    once, limit = Cures(idempotent=False), Allowance(at_once=5)
    asked = {
        "plain": {"queue": fleet.queue, "policy": Policy(cures=once)},
        "ladder": {"queue": fleet.queue, "policy": Policy(cures=Cures((Rung(step="b", policy=Policy(cures=once)),)))},
        "uses": {"queue": uses, "policy": Policy(uses="stripe", cures=once)},
        "limited": {"queue": limited, "policy": Policy(limit=limit, cures=once), "gate": "limit:charge"},
    }
    again = {name: {**how, "policy": replace(how["policy"], cures=None)} for name, how in asked.items()}
    for call, how in [*asked.items(), *((f"{name} again", how) for name, how in again.items())]:
        row = fleet.a_row(run, call=call, **{**how, "policy": msgspec.json.encode(how["policy"])})
        await fleet.turn(attempts=[row])
    assert await store.supervisor.suspend(a_suspension())
    tried = Room(9, 9, STEPS, trial=True)
    rows = [*await store.agent.lease(AGENT, 1, [fleet.queue], tried._replace(slots=1))]
    await store.client.order_gate("default", GateOrder("step:other", GateAct.PAUSE, "me", ""))
    rows += await store.agent.lease(AGENT, 2, [fleet.queue], tried)
    rows += (await store.agent.lease_limited(AGENT, 3, [uses, limited], tried)).rows
    assert sorted(row.call for row in rows) == sorted(f"{name} again" for name in again)
    others = await store.agent.lease(OTHER, 1, [fleet.queue], Room(9, 9, STEPS))
    assert sorted(row.call for row in others) == ["ladder", "plain"]


async def test_what_it_hands_back_after_a_try_costs_nothing_and_is_anybodys(fleet):
    await waiting(fleet)
    assert await fleet.store.supervisor.suspend(a_suspension())
    [row] = await lease(fleet, trial=True)
    await fleet.report(row, Act.STOPPED, b'{"type":"OSError","message":"full"}')
    [again] = await lease(fleet, OTHER)
    assert (again.id, again.failures, again.losses) == (row.id, 0, 1)


async def test_a_failed_attempt_is_not_kept_for_somebody_who_is_suspended(fleet):
    """Whoever had it may have it again at once, if the only other one gets no work."""
    await fleet.store.agent.leave(THIRD)
    await fleet.store.agent.beat(OTHER, LASTING, [], doings=SAID)
    [run] = await fleet.submit(a_run(1))
    row = await fleet.row_in(AttemptState.RUNNING, run)
    assert await fleet.store.supervisor.suspend(a_suspension(agent=OTHER, others=(AGENT,)))
    await fleet.report(row, Act.FAILED, b'{"type":"ValueError","message":"no"}')
    assert await fleet.judge(a_verdict(await fleet.row(row.id), AttemptState.READY))
    assert len(await lease(fleet)) == 1


async def test_it_is_not_counted_among_those_who_could_do_something(fleet):
    run, _ = await waiting(fleet)
    await fleet.store.agent.leave(OTHER)
    await fleet.store.agent.beat(THIRD, LASTING, [], doings=SAID)
    assert await fleet.store.supervisor.suspend(a_suspension(others=(THIRD,)))
    [queue] = [one for one in await fleet.store.supervisor.backlog() if one.depth]
    assert queue.served_by == 1
    [wait] = (await fleet.store.client.record("default", run.id)).waits
    assert (wait.able, wait.suspended, wait.others) == (1, 1, 0)


async def test_the_history_of_a_run_says_that_its_agent_is_suspended(fleet):
    [run] = await fleet.submit(a_run(1))
    await fleet.row_in(AttemptState.RUNNING, run)
    assert await fleet.store.supervisor.suspend(a_suspension())
    [seen] = (await fleet.store.client.record("default", run.id)).agents
    assert seen.suspension == WHY


# --- evidence


async def test_what_it_has_said_meanwhile_saves_it(fleet):
    await fleet.store.agent.beat(AGENT, None, [], doings=b"{}")
    assert not await fleet.store.supervisor.suspend(a_suspension())
    assert await suspension_of(fleet.store) is None


async def test_it_is_suspended_once(fleet):
    assert await fleet.store.supervisor.suspend(a_suspension())
    assert not await fleet.store.supervisor.suspend(a_suspension(after=LONGER))
    assert await suspension_of(fleet.store) == WHY


async def test_a_suspension_is_changed_by_whoever_has_seen_it_as_it_is(fleet):
    assert await fleet.store.supervisor.suspend(a_suspension())
    assert not await fleet.store.supervisor.suspend(a_suspension(seen=LONGER, after=None))
    assert await fleet.store.supervisor.suspend(a_suspension(seen=WHY, after=LONGER, others=()))
    assert await suspension_of(fleet.store) == LONGER


async def test_who_has_left_is_not_suspended(fleet):
    await fleet.store.agent.leave(AGENT)
    assert not await fleet.store.supervisor.suspend(a_suspension())


async def leaves(fleet):
    await fleet.store.agent.leave(OTHER)


async def is_out_of_time(fleet):
    fleet.clock.pass_by(LASTING)


async def is_quarantined(fleet):
    await fleet.store.client.order_agent("default", OTHER, Wish.QUARANTINE)


async def is_suspended(fleet):
    await fleet.store.agent.beat(OTHER, LASTING, [], doings=SAID)
    assert await fleet.store.supervisor.suspend(a_suspension(agent=OTHER, others=(THIRD,)))


@pytest.mark.parametrize("what", [leaves, is_out_of_time, is_quarantined, is_suspended])
async def test_nobody_is_suspended_when_those_who_did_better_are_not_there_any_more(fleet, what):
    await what(fleet)
    assert not await fleet.store.supervisor.suspend(a_suspension())
    assert await fleet.store.supervisor.suspend(a_suspension(others=(OTHER, THIRD))) is (what is not is_out_of_time)


async def test_two_are_not_suspended_because_of_each_other(fleet):
    await fleet.store.agent.beat(OTHER, LASTING, [], doings=SAID)
    done = await asyncio.gather(
        fleet.store.supervisor.suspend(a_suspension()),
        fleet.store.supervisor.suspend(a_suspension(agent=OTHER, others=(AGENT,))),
    )
    assert sorted(done) == [False, True]


# --- coming back


async def test_who_is_let_back_works_and_what_it_did_before_is_forgiven(fleet, clock):
    await waiting(fleet)
    assert await fleet.store.supervisor.suspend(a_suspension())
    clock.pass_by(SECOND)
    assert await fleet.store.supervisor.suspend(a_suspension(seen=WHY, after=None, others=()))
    assert (await fleet.store.agent.beat(AGENT, None, [])).suspension is None
    assert (await fleet.store.supervisor.doings()).doers[0].judged_from == NOON + SECOND
    assert await lease(fleet, trial=True) == []
    assert len(await lease(fleet)) == 1


async def alone(fleet, *unable):
    return await fleet.store.supervisor.suspend(a_suspension(seen=WHY, after=None, others=unable, alone=True))


async def test_who_is_let_back_as_the_only_one_left_is_the_only_one_left(fleet):
    """Those who were seen to be unable may be there; and nobody counts who gets no work, or is elsewhere."""
    await fleet.store.agent.join(75, "default", "eu", "e", b"{}", LASTING)
    await fleet.store.agent.join(76, "other", "", "o", b"{}", LASTING)
    assert await fleet.store.supervisor.suspend(a_suspension())
    assert not await alone(fleet)
    assert not await alone(fleet, OTHER)
    assert not await fleet.store.supervisor.suspend(a_suspension(seen=LONGER, after=None, others=(), alone=True))
    await fleet.store.client.order_agent("default", THIRD, Wish.QUARANTINE)
    assert not await alone(fleet)
    assert await alone(fleet, OTHER)
    assert await suspension_of(fleet.store) is None


@pytest.mark.parametrize("what", [leaves, is_out_of_time, is_quarantined, is_suspended])
async def test_who_gets_no_work_keeps_nobody_from_being_let_back(fleet, what):
    assert await fleet.store.supervisor.suspend(a_suspension())
    await what(fleet)
    assert await alone(fleet, THIRD)


async def test_an_operator_lets_it_back(fleet, clock):
    await waiting(fleet)
    assert await fleet.store.supervisor.suspend(a_suspension())
    clock.pass_by(SECOND)
    assert await fleet.store.client.order_agent("default", AGENT, Wish.NONE)
    [doer, *_] = (await fleet.store.supervisor.doings()).doers
    assert (doer.suspension, doer.judged_from) == (None, NOON + SECOND)
    assert len(await lease(fleet)) == 1


async def test_a_quarantine_is_not_lifted_with_a_suspension_nor_the_other_way_round(fleet):
    await waiting(fleet)
    assert await fleet.store.supervisor.suspend(a_suspension())
    assert await fleet.store.client.order_agent("default", AGENT, Wish.QUARANTINE)
    assert await suspension_of(fleet.store) == WHY
    assert await fleet.store.client.order_agent("default", AGENT, needs=("gpu",))
    assert await suspension_of(fleet.store) == WHY
    assert await lease(fleet, trial=True) == [], "nor is it tried"
    assert await fleet.store.supervisor.suspend(a_suspension(seen=WHY, after=None, others=()))
    assert await lease(fleet) == []
    assert (await fleet.store.agent.beat(AGENT, None, [])).wish is Wish.QUARANTINE


async def test_who_was_lost_and_joins_anew_is_still_suspended(fleet):
    assert await fleet.store.supervisor.suspend(a_suspension())
    await fleet.store.supervisor.bury([AGENT])
    await fleet.store.agent.join(73, "default", "", "a", b"{}", LASTING, before=AGENT)
    assert (await fleet.store.agent.beat(73, LASTING, [])).suspension == WHY
    await fleet.store.agent.join(74, "default", "", "a", b"{}", LASTING)
    assert (await fleet.store.agent.beat(74, LASTING, [])).suspension is None, "another process begins anew"
