"""Lost agents: who is missed, once and with the evidence, what was taken from them, and whose threads run on."""

import asyncio

import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act
from watchbill.model.complement import AWAY_FOR, LOST_AGENTS, SAYS_SO
from watchbill.model.incident import NewIncident
from watchbill.model.lost import Dead, Found
from watchbill.model.states import AttemptState
from watchbill.store.protocol import Hint
from watchbill.testing.conformance.scene import AGENT, LIMIT, NOON, a_run, a_verdict

OTHER, THIRD = 71, 72
LASTING = 8 * SECOND
THREADS = SAYS_SO + b'[{"run":"o-1","call":"c","step":"s","started_at":1,"since":2}],"threads":1}'


@pytest.fixture
async def crew(scene):
    """Two agents whose leases end, beside one that is there for ever."""
    await scene.store.agent.join(OTHER, "default", "", "b", b'{"pid":1}', LASTING, needs=("gpu=1",))
    await scene.store.agent.join(THIRD, "other", "eu", "c", b"{}", LASTING)
    return scene


async def untold(scene, **asked):
    return (await scene.store.supervisor.watch(LIMIT, **asked)).untold


async def hands(scene):
    return {hand.id: hand for hand in (await scene.store.supervisor.complement()).hands}


async def held_by(scene, agent, rows=1):
    """Let an agent have some rows."""
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, call=f"charge.{n}") for n in range(rows)])
    return await scene.lease(agent)


# --- missed once


async def test_an_idle_agent_whose_lease_has_ended_is_missed_once(crew, clock):
    miss = crew.store.supervisor.miss
    clock.pass_by(LASTING - 1)
    assert (await untold(crew), await miss([AGENT, OTHER, THIRD])) == ((), [])
    clock.pass_by(1)
    assert await untold(crew) == (OTHER, THIRD)
    assert await untold(crew, expired=False) == (), "who could not say a word is not judged yet"
    [lost] = await miss([AGENT, OTHER])
    assert (lost.id, lost.namespace, lost.region, lost.name) == (OTHER, "default", "", "b")
    assert (lost.found, lost.lost_at, lost.beat_at, lost.held) == (Found.EXPIRED, NOON + LASTING, NOON, 0)
    assert (await untold(crew), await miss([OTHER])) == ((THIRD,), [])
    clock.pass_by(100 * LASTING)
    assert (await untold(crew), await miss([OTHER])) == ((THIRD,), [])


@pytest.mark.parametrize("unheard", [False, True])
async def test_who_is_buried_is_missed_once_with_the_evidence(crew, clock, unheard):
    clock.pass_by(LASTING // 2)  # it has been silent for a beat
    await crew.store.supervisor.bury([OTHER], unheard=unheard)
    if (await hands(crew))[OTHER].here:
        assert unheard, "whoever keeps a list of connections believes by that alone that one is silent"
        return
    assert await untold(crew, expired=False) == (OTHER,)
    [lost] = await crew.store.supervisor.miss([OTHER])
    assert lost.found is (Found.SILENT if unheard else Found.DEAD)
    assert (lost.lost_at, lost.beat_at) == (NOON + LASTING // 2, NOON)
    await crew.store.supervisor.bury([OTHER])
    assert (await untold(crew, expired=False), await crew.store.supervisor.miss([OTHER])) == ((), [])


async def test_a_scheduler_that_finds_an_agent_dead_leaves_it_to_be_missed(crew):
    await crew.store.scheduler.bury([OTHER])
    [lost] = await crew.store.supervisor.miss([OTHER])
    assert lost.found is Found.DEAD


async def test_of_several_who_miss_an_agent_one_is_given_it(crew, clock):
    clock.pass_by(LASTING)
    found = await asyncio.gather(*(crew.store.supervisor.miss([OTHER, THIRD]) for _ in range(8)))
    assert sorted(lost.id for one in found for lost in one) == [OTHER, THIRD]


async def test_who_left_in_peace_is_never_missed(crew, clock):
    await crew.store.agent.leave(OTHER)
    clock.pass_by(2 * LASTING)
    assert await untold(crew) == (THIRD,)
    assert await crew.store.supervisor.miss([OTHER]) == []
    await crew.store.supervisor.bury([OTHER])
    assert (await untold(crew), await crew.store.supervisor.miss([OTHER])) == ((THIRD,), [])
    assert OTHER not in await hands(crew)


async def test_who_is_heard_again_is_welcome_and_missed_again_when_it_is_lost_anew(crew, clock):
    miss, beat = crew.store.supervisor.miss, crew.store.agent.beat
    clock.pass_by(LASTING)
    assert len(await miss([OTHER])) == 1
    assert (await hands(crew))[OTHER].told
    clock.pass_by(SECOND)
    assert (await beat(OTHER, LASTING, [])).alive
    back = (await hands(crew))[OTHER]
    assert (back.here, back.told) == (True, False)
    assert (await untold(crew), await miss([OTHER])) == ((THIRD,), [])
    clock.pass_by(LASTING)
    assert await untold(crew) == (OTHER, THIRD)
    assert len(await miss([OTHER])) == 1


async def test_who_was_missed_and_is_then_found_dead_is_not_told_of_again_and_who_was_heard_between_is(crew, clock):
    supervisor = crew.store.supervisor
    clock.pass_by(LASTING)
    await supervisor.miss([OTHER, THIRD])
    clock.pass_by(SECOND)
    await crew.store.agent.beat(THIRD, LASTING, [])
    clock.pass_by(SECOND)
    await supervisor.bury([OTHER, THIRD])
    assert await untold(crew) == (THIRD,)
    assert [lost.id for lost in await supervisor.miss([OTHER, THIRD])] == [THIRD]
    assert (await hands(crew))[OTHER].lost_at == NOON + LASTING


async def test_a_time_to_look_at_is_kept_while_somebody_is_lost_and_nobody_has_missed_it(crew, clock):
    clock.pass_by(LASTING)
    assert (await crew.store.supervisor.watch(LIMIT, expired=False)).guests
    await crew.store.supervisor.miss([OTHER, THIRD])
    assert await untold(crew) == ()


# --- what they had


async def test_what_was_taken_from_an_agent_is_counted_with_it(crew, clock):
    supervisor = crew.store.supervisor
    rows = await held_by(crew, OTHER, 3)
    clock.pass_by(LASTING)
    [lost] = await supervisor.miss([OTHER])
    assert lost.held == 3
    for row in rows[:2]:
        assert await crew.judge(a_verdict(row, AttemptState.FAILED, watch_in=0, dead_agent=OTHER))
    assert (await hands(crew))[OTHER].held == 3, "two were taken, one is about to be"
    assert not await crew.judge(a_verdict(rows[0], AttemptState.FAILED, watch_in=0, dead_agent=OTHER)), "once"
    assert await crew.judge(a_verdict(rows[2], AttemptState.FAILED, watch_in=0, dead_agent=OTHER))
    assert (await hands(crew))[OTHER].held == 3
    assert (await hands(crew))[AGENT].held == 0


async def test_of_one_whose_rows_were_judged_before_it_was_missed_it_is_the_same(crew, clock):
    [row] = await held_by(crew, OTHER)
    clock.pass_by(LASTING)
    assert await crew.judge(a_verdict(row, AttemptState.FAILED, watch_in=0, dead_agent=OTHER))
    [lost] = await crew.store.supervisor.miss([OTHER])
    assert lost.held == 1


async def test_what_runs_under_the_dead_comes_with_how_they_are_known_to_be(crew, clock):
    supervisor = crew.store.supervisor
    [run] = await crew.submit(a_run(1))
    await crew.turn(attempts=[crew.a_row(run, AttemptState.RUNNING, call="a", agent=4_711)])
    await crew.turn(attempts=[crew.a_row(run, call="b")])
    [row] = await crew.lease(OTHER)
    [heard_at] = [agent.beat_at for agent in await crew.store.client.agents("default") if agent.id == OTHER]
    assert (await supervisor.watch(LIMIT)).dead == (Dead(4_711, "", Found.LEFT),)
    clock.pass_by(LASTING)
    watch = await supervisor.watch(LIMIT)
    assert watch.dead == (Dead(OTHER, "b", Found.EXPIRED, heard_at), Dead(4_711, "", Found.LEFT))
    await supervisor.bury([OTHER])
    assert (await supervisor.watch(LIMIT)).dead[0] == Dead(OTHER, "b", Found.DEAD, heard_at)
    await crew.report(row, Act.DONE, b"1")
    assert OTHER not in {one.id for one in (await supervisor.watch(LIMIT)).dead}


# --- who is there


async def test_the_complement_is_who_is_there_and_who_was_lost_of_late(crew, clock):
    clock.pass_by(SECOND)
    await crew.store.supervisor.bury([OTHER])
    await crew.store.supervisor.miss([OTHER])
    complement = await crew.store.supervisor.complement()
    assert (complement.now, complement.incidents) == (NOON + SECOND, False)
    found = {hand.id: hand for hand in complement.hands}
    assert sorted(found) == [AGENT, OTHER, THIRD]
    lost, there = found[OTHER], found[THIRD]
    assert (lost.here, lost.told, lost.found, lost.lost_at) == (False, True, Found.DEAD, NOON + SECOND)
    assert (lost.info, lost.needs, lost.joined_at, lost.beat_at) == (b'{"pid":1}', ("gpu=1",), NOON, NOON)
    assert (there.here, there.told, there.namespace, there.region) == (True, False, "other", "eu")
    clock.pass_by(AWAY_FOR)
    assert sorted(await hands(crew)) == [AGENT, THIRD], "this one has just run out of time, long ago as that was"
    clock.pass_by(LASTING)
    assert sorted(await hands(crew)) == [AGENT]


async def test_it_says_whether_an_incident_is_open_that_is_about_agents(crew):
    supervisor = crew.store.supervisor
    await supervisor.open_incidents([NewIncident(1, "default", "no agent", 1, b'{"said":"x"}')])
    assert not (await supervisor.complement()).incidents
    for id, cause in ((2, LOST_AGENTS), (3, "abandoned threads of agent 'b'")):
        await supervisor.open_incidents([NewIncident(id, "default", cause, 1, b'{"said":"x"}')])
        assert (await supervisor.complement()).incidents
        await supervisor.resolve_incidents([id])
        assert not (await supervisor.complement()).incidents


async def test_one_without_agents_has_a_time(scene, clock):
    await scene.store.agent.leave(AGENT)
    clock.pass_by(SECOND)
    complement = await scene.store.supervisor.complement()
    assert (complement.hands, complement.now) == ((), NOON + SECOND)


async def test_whose_threads_run_on_is_heard_until_it_says_otherwise_or_is_gone(crew, clock):
    supervisor, beat = crew.store.supervisor, crew.store.agent.beat
    woken = []
    crew.store.listen(Hint.SUPERVISOR, lambda: woken.append(1))
    await beat(OTHER, LASTING, [], said=b'{"workers":2}')
    assert not (await supervisor.watch(LIMIT)).abandoned
    woken.clear()
    await beat(OTHER, LASTING, [], said=THREADS)
    assert woken or crew.store.lasting_leases is False, "whoever is alone with its store looks only when it is told to"
    assert (await supervisor.watch(LIMIT)).abandoned
    assert (await hands(crew))[OTHER].said == THREADS
    assert (await hands(crew))[THIRD].said == b""
    await beat(OTHER, LASTING, [], said=b"{}")
    assert not (await supervisor.watch(LIMIT)).abandoned
    await beat(OTHER, LASTING, [], said=THREADS)
    clock.pass_by(LASTING)
    assert not (await supervisor.watch(LIMIT)).abandoned
