"""One suite for three ways: embedded, centralized and distributed supervisors find the same and decide it once."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from tests.rooms.bridge import HOST_LEASE, ROUTES, Bridge
from tests.rooms.scene import ends
from watchbill import App, InvalidOptionError, Retry, attempt
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.model.agent import Act, Report
from watchbill.model.incident import told_by
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.states import AttemptState, RunState
from watchbill.model.watcher import EMBEDDED_LEASE, SLACK, Supervision
from watchbill.store.open import open_store
from watchbill.store.protocol import EVERY
from watchbill.supervisor.lookout import GRACE, LOOK_EVERY, Lookout
from watchbill.supervisor.supervisor import REFUSED_FOR
from watchbill.testing.conformance.scene import AGENT, KNOWN, ME, HandClock, a_change, a_run

AT_WORK_WITHIN = 10 * SECOND
THREE = 3
LOST = ["mark failed", "retry"]
AGAIN = ["mark failed", "retry later"]


@pytest.fixture(params=list(Supervision))
async def bridge(request: pytest.FixtureRequest, kept: str) -> AsyncIterator[Bridge]:
    """Three supervisors that have listened for long enough to judge by silence."""
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock)
    bridge = Bridge(store, clock, request.param)
    await bridge.scene.open()
    for _ in range(THREE):
        bridge.joins()
    await bridge.passes(HOST_LEASE + SECOND)
    yield bridge
    await store.close()


# --- found, cured, and once


async def test_each_trouble_is_found_and_cured_and_decided_once(bridge: Bridge) -> None:
    late, stalled = await bridge.late(), await bridge.stalled()
    failed, escalated = await bridge.failed(), await bridge.escalated()
    abandoned = await bridge.abandoned()
    await bridge.passes(HOST_LEASE + SECOND)
    assert await bridge.chosen(late) == AGAIN
    assert await bridge.chosen(stalled) == AGAIN
    assert await bridge.chosen(failed) == ["retry later"]
    assert await bridge.chosen(escalated) == ["ask a person"]
    assert await bridge.chosen(abandoned) == LOST
    assert await bridge.state(abandoned) is AttemptState.READY
    assert await bridge.judged_twice() == []
    causes = {event.cause for one in bridge.watchmen for event in one.told if event.kind.startswith("step.")}
    assert {"late", "stalled", "lost"} <= causes


async def test_one_verdict_that_the_store_refuses_keeps_no_other_row_waiting_and_is_told(bridge: Bridge) -> None:
    endless = Policy(timeout=10**25)  # longer than any store can count
    before = await bridge.failed()
    refused = await bridge.failed(Policy(retries=0, cures=Cures((Rung(step="charge", policy=endless),))))
    after = await bridge.failed()
    await bridge.passes(SECOND)
    for row in (before, after):
        assert await bridge.chosen(row) == ["retry later"]
    assert await bridge.state(refused) is AttemptState.FAILED
    [told, *again] = [event for one in bridge.watchmen for event in one.heard("step.unjudged")]
    assert (told.run, told.call, len(again) < THREE) == (refused.run_id, refused.call, True)
    assert told.note.startswith("switch, which the store refuses to write: ")
    later = await bridge.failed()
    await bridge.passes(3 * REFUSED_FOR)  # it is tried again now and then, and nobody spins
    assert await bridge.chosen(later) == ["retry later"]
    assert len([event for one in bridge.watchmen for event in one.heard("step.unjudged")]) <= 4 * THREE


async def test_every_shard_is_watched_and_by_as_few_as_the_way_says(bridge: Bridge) -> None:
    watched = bridge.shared_out()
    each = THREE if bridge.way is Supervision.EMBEDDED else 1
    assert [len(by) for by in watched.values()] == [each] * len(watched)
    if bridge.way is Supervision.DISTRIBUTED:
        assert max(len(one.watched or ()) for one in bridge.watchmen) <= -(-len(watched) // THREE) + SLACK


@pytest.mark.parametrize("way", list(Supervision))
async def test_a_program_differs_in_nothing_but_this_word(kept: str, way: str) -> None:
    app = App(kept)

    @app.step(stall="100ms", retry=Retry(1, backoff="1ms"))
    async def encode() -> int:
        if attempt().number == 1:
            attempt().progress(47, total=100)
            await asyncio.Event().wait()
        return attempt().number

    @app.workflow
    async def wf() -> int:
        return await encode()

    async with app.rooms(supervision=way):
        assert await ends(await app.start(wf, id="r")) == 2
        status = await app.supervision()
    assert status.overdue.total_seconds() < 1
    assert status.orphans == {}
    [one] = status.supervisors
    assert (one.way, one.leads, len(one.shards), one.pid) == (way, True, status.shards, os.getpid())
    with pytest.raises(InvalidOptionError, match="embedded, centralized, distributed"):
        async with app.rooms(supervision="shared"):
            pass
    assert (await app.supervision()).supervisors == [], "who leaves says so"


# --- who dies, freezes, comes and goes


@pytest.mark.parametrize("provably", [False, True], ids=["silently", "provably"])
async def test_after_the_death_of_any_one_others_are_at_work_within_ten_seconds(bridge: Bridge, provably: bool) -> None:
    before = [await bridge.failed() for _ in range(8)]
    victim = bridge.watchmen[0]  # who is there longest: the one at work, where only one is
    bridge.dies(victim, provably=provably)
    await bridge.passes(2 * SECOND if provably else AT_WORK_WITHIN - SECOND)
    assert [await bridge.chosen(row) for row in before] == [["retry later"]] * len(before)
    assert all(len(by) >= 1 for by in bridge.shared_out().values())
    assert await bridge.judged_twice() == []


async def test_living_supervisors_keep_their_rows_and_those_that_die_or_leave_lose_them(bridge: Bridge) -> None:
    async def listed() -> list[bytes]:
        return [watcher.info for watcher in (await bridge.store.client.checkup("default", 1)).watchers]

    assert len(await listed()) == THREE
    await bridge.passes(2 * EMBEDDED_LEASE)
    assert len(await listed()) == THREE
    victim = bridge.watchmen[0]
    bridge.dies(victim)
    await bridge.passes(EMBEDDED_LEASE)
    assert victim.identity not in await listed()
    await bridge.leaves(bridge.watchmen[0])
    assert len(await listed()) == THREE - 2


async def test_one_that_freezes_is_followed_and_what_it_writes_when_it_wakes_is_refused(bridge: Bridge) -> None:
    for watchman in list(bridge.watchmen):
        await bridge.leaves(watchman)
    sleeper = bridge.joins(slow=True)
    await bridge.passes(HOST_LEASE + SECOND)
    row = await bridge.failed()
    sleeper.room.hint()
    asleep = asyncio.create_task(sleeper.room.turn())
    await sleeper.doors.frozen.wait()  # it has looked, and is about to write its verdict
    bridge.watchmen.remove(sleeper)
    bridge.joins()
    await bridge.passes(AT_WORK_WITHIN)
    assert await bridge.chosen(row) == ["retry later"]
    sleeper.doors.thawed.set()
    await asleep
    assert sleeper.doors.applied == [False]
    assert await bridge.chosen(row) == ["retry later"]
    assert sleeper.heard("step.retried") == []
    if bridge.way is not Supervision.EMBEDDED:
        assert sleeper.watched == (), "nothing is its to watch before it has said again that it is there"
    bridge.watchmen.append(sleeper)
    await bridge.passes(SECOND)
    assert all(len(by) >= 1 for by in bridge.shared_out().values())


async def test_without_any_of_them_runs_go_on_and_what_has_failed_is_found_once_on_return(bridge: Bridge) -> None:
    for watchman in list(bridge.watchmen):
        await bridge.leaves(watchman)
    late, failed = await bridge.late(), await bridge.failed()
    run = await bridge.a_run()
    await bridge.scene.turn(attempts=[bridge.scene.a_row(run)])
    bridge.clock.pass_by(300 * SECOND)
    [healthy] = await bridge.scene.lease()
    await bridge.store.agent.report(AGENT, [Report(healthy.id, healthy.fence, Act.DONE, b"1")])
    await bridge.scene.turn(finals_done=[healthy.id], runs=[a_change(run, RunState.COMPLETED)])
    assert (await bridge.scene.run_row(run.id)).status is RunState.COMPLETED
    assert [await bridge.chosen(row) for row in (late, failed)] == [[], []]
    back = [bridge.joins(), bridge.joins()]
    await bridge.passes(HOST_LEASE + SECOND)
    assert await bridge.chosen(late) == AGAIN
    assert await bridge.chosen(failed) == ["retry later"]
    assert await bridge.judged_twice() == []
    assert any(one.heard("supervisor.late") for one in back)


@pytest.mark.parametrize("bridge", [Supervision.DISTRIBUTED], indirect=True)
async def test_one_that_comes_or_goes_moves_about_its_share(bridge: Bridge) -> None:
    before = bridge.shared_out()
    newcomer = bridge.joins()
    await bridge.passes(3 * SECOND)
    after = bridge.shared_out()
    share = -(-len(after) // (THREE + 1))
    # How much moves depends on the numbers of the shards, which are new for each test; on average (tests/unit/model) it
    # is one more than the share.
    assert 1 <= sum(before[shard] != after[shard] for shard in after) <= 2 * share
    assert newcomer.heard("watch.changed")[-1].note.endswith(f"of {len(after)} shards are watched here; 4 stand watch")
    await bridge.leaves(newcomer)
    await bridge.passes(3 * SECOND)
    assert bridge.shared_out() == before


# --- everybody dead at once


@pytest.fixture
async def alone(kept: str) -> AsyncIterator[Bridge]:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock)
    bridge = Bridge(store, clock, Supervision.EMBEDDED)
    await bridge.scene.open()
    bridge.joins()
    yield bridge
    await store.close()


async def test_fifty_agents_with_five_thousand_steps_die_and_that_is_one_incident_and_no_retry(alone: Bridge) -> None:
    agents, each = range(100, 150), 100
    scene, store = alone.scene, alone.store
    await store.agent.leave(AGENT)
    for agent in agents:
        await store.agent.join(agent, "default", "", f"a{agent}", b"{}", HOST_LEASE)
    runs = await scene.submit(*(a_run(n) for n in range(1, len(agents) + 1)))
    rows = [scene.a_row(run, call=f"c{n}") for run in runs for n in range(each)]
    await scene.turn(attempts=rows, runs=[a_change(run, RunState.RUNNING) for run in runs])
    for agent in agents:
        assert len(await scene.lease(agent, limit=each)) == each
    [watchman] = alone.watchmen
    lookout = Lookout(watchman.room.env, watchman.room.events, store=store.supervisor, polls=True, routes=ROUTES)
    await store.scheduler.attend(ME, "default", "", KNOWN, b"{}", None)
    await alone.passes(2 * HOST_LEASE)
    for _ in range(2 * GRACE // LOOK_EVERY):
        await lookout.turn()
        alone.clock.pass_by(LOOK_EVERY)
    found = (await scene.rows()).values()
    assert len(found) == len(agents) * each
    assert {(row.state, row.failures, row.losses) for row in found} == {(AttemptState.READY, 0, 1)}
    [incident] = await store.client.incidents("default", 10)
    assert (incident.cause, incident.members) == ("lost agents", len(agents))
    said = told_by(incident).said
    assert said.startswith("50 agents were lost: 'a100' at ")
    assert "it did not renew its lease, the 100 attempts that it held are moved" in said
    assert said.endswith("; and 40 more; no agent is left")
    assert len(watchman.heard("agent.lost")) == len(agents)
    marks = [route.mark for route in ROUTES]
    assert len((await store.supervisor.take_alerts(marks, EVERY >> 1, SECOND)).alerts) == 1
    assert await alone.judged_twice() == []
