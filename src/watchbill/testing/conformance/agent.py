"""The agent's doors: join, beat, lease, report, leave."""

import asyncio

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import (
    AGENTS_FORGOTTEN,
    AGENTS_KEPT_FOR,
    LOG_LIMIT,
    Act,
    Answer,
    AttemptLog,
    ProgressMark,
    Report,
    Room,
    Wish,
)
from watchbill.model.attempt import first_fence
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import OF_A_REFUSAL
from watchbill.model.failure import Cause, Failure
from watchbill.model.policy import OWN_CHILD_FROM, Policy
from watchbill.model.profile import STOPS_WITHIN
from watchbill.model.queue import QueueRow
from watchbill.model.states import AttemptState
from watchbill.supervisor.acting import settles_in
from watchbill.testing.conformance.scene import AGENT, NOON, STEPS, a_run, a_verdict

FAILURE = b'{"type":"ValueError","message":"no"}'


@pytest.fixture
async def run(scene):
    [run] = await scene.submit(a_run(1))
    return run


# --- join and beat


async def test_a_beat_prolongs(scene, run, clock):
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    clock.pass_by(5 * SECOND)
    orders = await scene.store.agent.beat(71, 8 * SECOND, [])
    assert (orders.alive, orders.cancel, orders.lost, orders.now) == (True, (), (), NOON + 5 * SECOND)
    clock.pass_by(5 * SECOND)
    await scene.turn(attempts=[scene.a_row(run)])
    assert len(await scene.lease(71)) == 1


async def test_joining_twice_is_joining_once(scene, clock):
    for _ in range(2):
        await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    assert (await scene.store.agent.beat(71, 8 * SECOND, [])).alive


async def test_an_agent_that_left_or_never_joined_must_join_under_a_new_id(scene, run):
    await scene.store.agent.leave(AGENT)
    for agent in (AGENT, 12345):
        assert not (await scene.store.agent.beat(agent, None, [])).alive
    await scene.store.agent.join(AGENT, "default", "", "a", b"{}", None)
    assert not (await scene.store.agent.beat(AGENT, None, [])).alive
    await scene.turn(attempts=[scene.a_row(run)])
    assert await scene.lease() == []


async def test_a_beat_hears_what_to_stop(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(4)])
    await scene.store.agent.join(71, "default", "", "b", b"{}", None)
    [theirs] = await scene.lease(71, limit=1)
    wanted, unwanted, ended = await scene.lease()
    await scene.turn(dropped=[unwanted.id, ended.id, theirs.id])
    await scene.report(ended, Act.FAILED, FAILURE)
    assert (await scene.store.agent.beat(AGENT, None, [])).cancel == (unwanted.id,)
    assert (await scene.row(wanted.id)).cancel is False


async def test_a_beat_hears_what_it_holds_no_more(scene, run):
    mine = await scene.row_in(AttemptState.RUNNING, run)
    judged = await scene.row_in(AttemptState.RUNNING, run)
    again = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(again, Act.HAND_BACK)
    await scene.lease()  # somebody runs it, under a new fence
    assert await scene.judge(a_verdict(judged, AttemptState.FAILED, watch_in=0))
    held = [(row.id, row.fence) for row in (mine, judged, again)] + [(999_999, 1)]
    assert (await scene.store.agent.beat(AGENT, None, [], held)).lost == (judged.id, again.id, 999_999)


async def test_only_an_increase_moves_the_time_of_progress(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.agent.beat(AGENT, None, [ProgressMark(row.id, row.fence, b'{"done":1}', increased=True)])
    clock.pass_by(9)
    await scene.store.agent.beat(
        AGENT, None, [ProgressMark(row.id, row.fence, b'{"done":1,"note":"?"}', increased=False)]
    )
    found = await scene.row(row.id)
    assert (found.progress, found.progress_at) == (b'{"done":1,"note":"?"}', NOON)


async def test_progress_is_written_to_the_running_row_under_its_fence_only(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(4)])
    mine, other, old, ended = await scene.lease()
    await scene.report(ended, Act.DONE, b"1")
    assert mine.fence == other.fence == ended.fence
    marks = [(mine.id, mine.fence), (old.id, old.fence - 1), (ended.id, ended.fence)]
    await scene.store.agent.beat(AGENT, None, [ProgressMark(*mark, b'{"done":1}', increased=True) for mark in marks])
    rows = await scene.rows()
    assert [rows[row.id].progress for row in (mine, other, old, ended)] == [b'{"done":1}', None, None, None]


async def test_what_an_operator_has_not_changed_is_as_it_joined(scene):
    await scene.store.agent.join(71, "default", "", "b", b"{}", None, needs=("eu", "gpu=2"), slots=5)
    orders = await scene.store.agent.beat(71, None, [])
    assert (orders.wish, orders.needs) == (Wish.NONE, ("eu", "gpu=2"))
    assert (await scene.store.agent.beat(AGENT, None, [])).needs == ()
    gone = await scene.store.agent.beat(12345, None, [], queues=[scene.queue])
    assert (gone.alive, gone.wish, gone.needs, gone.newest_queue, gone.ready) == (False, Wish.NONE, None, 0, False)


async def test_a_beat_hears_of_new_queues_of_its_namespace_and_region(scene):
    newest = (await scene.store.agent.beat(AGENT, None, [])).newest_queue
    assert newest == scene.queue
    for namespace, region in (("other", ""), ("default", "eu")):
        await scene.store.scheduler.queue(namespace, region, ["gpu"], "")
    assert (await scene.store.agent.beat(AGENT, None, [])).newest_queue == newest
    added = await scene.store.scheduler.queue("default", "", ["gpu"], "")
    assert (await scene.store.agent.beat(AGENT, None, [])).newest_queue == added
    await scene.store.agent.join(71, "nobody", "", "b", b"{}", None)
    assert (await scene.store.agent.beat(71, None, [])).newest_queue == 0


async def test_a_beat_hears_whether_something_is_ready_in_the_queues_it_asks_about(scene, run):
    other = await scene.store.scheduler.queue("default", "", ["gpu"], "")

    async def ready(*queues: int) -> bool:
        return (await scene.store.agent.beat(AGENT, None, [], queues=queues)).ready

    assert not await ready(scene.queue, other)
    await scene.turn(attempts=[scene.a_row(run, queue=other)])
    assert await ready(scene.queue, other)
    assert not await ready(scene.queue)
    assert not await ready()
    await scene.turn(holds=[(run.num, True)])
    assert not await ready(other), "what is held back is not ready"
    await scene.turn(holds=[(run.num, False)])
    await scene.turn(attempts=[scene.a_row(run, alone=True)])
    assert await ready(scene.queue)
    await scene.lease()
    assert not await ready(scene.queue)


async def test_what_starves_is_known_until_it_turns_again(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(3)])
    one, two, three = await scene.lease()
    keys = {row.id: (row.id, row.fence) for row in (one, two, three)}

    async def symptoms() -> list[str | None]:
        rows = await scene.rows()
        return [rows[row.id].symptom for row in (one, two, three)]

    beat = scene.store.agent.beat
    await beat(AGENT, None, [], starved=[keys[one.id], keys[two.id], (three.id, three.fence - 1)])
    assert await symptoms() == ["starved", "starved", None]
    mark = ProgressMark(*keys[three.id], b'{"done":1}', increased=True)
    await beat(AGENT, None, [mark], starved=[keys[two.id], keys[three.id]])
    assert await symptoms() == [None, "starved", "starved"]
    assert (await scene.row(three.id)).progress == b'{"done":1}'
    await beat(AGENT, None, [mark])
    assert await symptoms() == [None, None, None]


async def test_the_next_attempt_begins_without_the_symptoms_of_the_last(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.agent.beat(AGENT, None, [], starved=[(row.id, row.fence)])
    await scene.report(row, Act.HAND_BACK)
    [again] = await scene.lease()
    assert again.symptom is None
    assert (await scene.row(row.id)).symptom is None


async def test_nobody_speaks_for_the_attempts_of_another(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.agent.join(71, "default", "", "b", b"{}", None)
    await scene.store.agent.beat(AGENT, None, [], starved=[(row.id, row.fence)])
    await scene.store.agent.beat(71, None, [], lease_no=1_000_000)
    found = await scene.row(row.id)
    assert (found.symptom, found.state) == ("starved", AttemptState.RUNNING)


async def test_what_a_lost_answer_leased_is_handed_back_uncharged(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(4)])
    held, unheard, cancelled = await scene.lease(lease_no=1, limit=3)
    [open_still] = await scene.lease(lease_no=2, limit=1)
    await scene.turn(dropped=[cancelled.id])
    keys = [(held.id, held.fence)]
    beat = scene.store.agent.beat
    await beat(AGENT, None, [], keys)
    assert await scene.state_of(unheard.id) is AttemptState.RUNNING, "it did not say which requests are over"
    orders = await beat(AGENT, None, [], keys, lease_no=2)
    assert (orders.lost, orders.ready) == ((), False)
    rows = await scene.rows()
    assert {row.id: (row.state, row.losses, row.failures) for row in rows.values()} == {
        held.id: (AttemptState.RUNNING, 1, 0),
        unheard.id: (AttemptState.READY, 0, 0),
        cancelled.id: (AttemptState.FAILED, 0, 0),
        open_still.id: (AttemptState.RUNNING, 1, 0),
    }
    assert (rows[unheard.id].watch_at, rows[cancelled.id].watch_at) == (None, NOON)
    assert b'"cancelled"' in (rows[cancelled.id].result or b"")
    [again] = await scene.lease(lease_no=3)
    assert (again.id, again.fence) == (unheard.id, unheard.fence + 1)


async def test_what_a_beat_speaks_of_is_held(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(2)])
    one, two = await scene.lease(lease_no=1)
    mark = ProgressMark(one.id, one.fence, b'{"done":1}', increased=True)
    await scene.store.agent.beat(AGENT, None, [mark], starved=[(two.id, two.fence)], lease_no=9)
    assert [row.state for row in (await scene.rows()).values()] == [AttemptState.RUNNING] * 2


async def test_a_row_that_became_visible_is_not_handed_back(scene, run):
    row = scene.a_row(run, AttemptState.RUNNING)  # of no lease
    await scene.turn(attempts=[row])
    await scene.store.agent.beat(AGENT, None, [], lease_no=9)
    assert await scene.state_of(row.id) is AttemptState.RUNNING


async def test_the_dead_hand_nothing_back(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.store.supervisor.bury([AGENT])
    assert not (await scene.store.agent.beat(AGENT, None, [], starved=[(row.id, row.fence)], lease_no=10_000_000)).alive
    found = await scene.row(row.id)
    assert (found.state, found.symptom) == (AttemptState.RUNNING, None)


# --- queues and leases


async def test_queues_are_read_with_what_they_ask_for(store):
    queue = store.scheduler.queue
    plain, gpu = await queue("default", "", [], ""), await queue("default", "", ["gpu=1", "eu"], "")
    uses, limited = await queue("default", "", [], "bank"), await queue("default", "", [], "", limited=True)
    await queue("other", "", [], "")
    elsewhere = await queue("default", "eu", [], "")
    assert await store.agent.queues("default", "") == [
        QueueRow(plain, (), "", False),
        QueueRow(gpu, ("eu", "gpu=1"), "", False),
        QueueRow(uses, (), "bank", False),
        QueueRow(limited, (), "", True),
    ]
    assert await store.agent.queues("default", "eu") == [QueueRow(elsewhere, (), "", False)]
    assert await store.agent.queues("nobody", "") == []


async def test_the_same_needs_are_the_same_queue(store):
    queue = store.scheduler.queue
    first = await queue("default", "", ["gpu", "eu"], "")
    assert await queue("default", "", ["eu", "gpu", "eu"], "") == first
    assert await queue("default", "", ["eu", "gpu"], "", limited=True) != first


async def test_a_lease_gives_a_new_fence_and_puts_a_loss_on_account(scene, run, clock):
    new = scene.a_row(run, span=2_000)
    await scene.turn(attempts=[new])
    clock.pass_by(10)
    [row] = await scene.lease(lease_no=3)
    assert (row.id, row.state, row.fence, row.losses, row.agent) == (
        new.id, AttemptState.RUNNING, first_fence(scene.terms[run.shard]) + 1, 1, AGENT,
    )  # fmt: skip
    assert (row.started_at, row.watch_at) == (NOON + 10, NOON + 10 + 2 * SECOND)
    assert row == await scene.row(new.id)


async def test_the_most_urgent_come_first_from_all_queues(scene, run, clock):
    other = await scene.store.scheduler.queue("default", "", ["gpu"], "")
    rows = []
    for queue in (scene.queue, other, scene.queue, other):
        rows.append(scene.a_row(run, queue=queue))
        await scene.turn(attempts=[rows[-1]])
        clock.pass_by(1)
    lease = scene.store.agent.lease
    assert [row.id for row in await lease(AGENT, 1, [scene.queue, other], Room(3, 3, STEPS))] == [
        row.id for row in rows[:3]
    ]
    assert [row.id for row in await lease(AGENT, 2, [scene.queue], Room(3, 3, STEPS))] == []
    assert [row.id for row in await lease(AGENT, 3, [other], Room(3, 3, STEPS))] == [rows[3].id]


async def test_few_that_need_a_process_of_their_own_and_the_others_are_not_hidden(scene, run, clock):
    other = await scene.store.scheduler.queue("default", "", ["gpu"], "")
    wanted = [scene.a_row(run, alone=True, queue=queue) for queue in (scene.queue, other, scene.queue)]
    lost_twice = scene.a_row(run, losses=OWN_CHILD_FROM)
    plain = [scene.a_row(run, losses=OWN_CHILD_FROM - 1), scene.a_row(run)]
    for row in (*wanted, lost_twice, *plain):
        await scene.turn(attempts=[row])
        clock.pass_by(1)
    lease, both = scene.store.agent.lease, [scene.queue, other]
    assert [row.id for row in await lease(AGENT, 1, both, Room(9, 0, STEPS))] == [row.id for row in plain]
    assert [row.id for row in await lease(AGENT, 2, both, Room(9, 2, STEPS))] == [row.id for row in wanted[:2]]
    assert [row.id for row in await lease(AGENT, 3, both, Room(1, 2, STEPS))] == [wanted[2].id]
    assert [row.id for row in await lease(AGENT, 4, both, Room(9, 9, STEPS))] == [lost_twice.id]


async def test_those_that_need_their_own_process_wait_in_the_same_line(scene, run, clock):
    rows = []
    for alone in (True, False, True, False):
        rows.append(scene.a_row(run, alone=alone))
        await scene.turn(attempts=[rows[-1]])
        clock.pass_by(1)
    assert [row.id for row in await scene.lease()] == [row.id for row in rows]


async def test_agents_do_not_get_each_others_rows_leases_or_ends(scene, run, clock):
    for agent in (71, 72):
        await scene.store.agent.join(agent, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    [mine] = await scene.lease(71, lease_no=1, limit=1)
    [theirs] = await scene.lease(72, lease_no=1, limit=1)
    assert [row.id for row in await scene.lease(71, lease_no=1)] == [mine.id]
    assert [row.id for row in await scene.lease(72, lease_no=1)] == [theirs.id]
    clock.pass_by(5 * SECOND)
    await scene.store.agent.beat(71, 8 * SECOND, [])
    clock.pass_by(5 * SECOND)
    assert [row.id for row in (await scene.store.supervisor.watch(9)).orphans] == [theirs.id], "72 did not beat"
    await scene.store.agent.leave(72)
    assert await scene.state_of(theirs.id) is AttemptState.READY
    assert await scene.state_of(mine.id) is AttemptState.RUNNING
    assert (await scene.store.agent.beat(71, 8 * SECOND, [])).alive


async def test_cancelled_row_of_an_agent_that_leaves_may_act_until_its_process_has_ended(scene, run):
    """What the agent had stopped it would have reported: nothing is undone beside what it could not stop."""
    await scene.turn(attempts=[scene.a_row(run)])
    [row] = await scene.lease(limit=1)
    await scene.turn(dropped=[row.id])
    await scene.store.agent.leave(AGENT)
    [failed] = [one for one in (await scene.store.supervisor.watch(9)).due if one.id == row.id]
    assert (failed.state, failed.cancel, failed.unsure) == (AttemptState.FAILED, True, True)
    failure = msgspec.json.decode(failed.result or b"", type=Failure)
    assert failure.cause is Cause.LOST
    assert settles_in(failed, failure.cause, Policy(), 0) >= STOPS_WITHIN


async def test_a_lost_answer_to_a_lease_is_asked_for_again(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(5)])
    first = await scene.lease(lease_no=1, limit=3)
    assert await scene.lease(lease_no=1, limit=3) == first
    second = await scene.lease(lease_no=2, limit=3)
    assert len(second) == 2
    assert await scene.lease(lease_no=1, limit=3) == first


async def test_a_lease_number_that_got_nothing_may_be_used_again(scene, run):
    assert await scene.lease(lease_no=0) == []
    await scene.turn(attempts=[scene.a_row(run)])
    assert len(await scene.lease(lease_no=0)) == 1


async def test_a_repeated_lease_leaves_out_what_has_ended(scene, run):
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    one, two = await scene.lease(lease_no=1)
    await scene.report(one, Act.DONE, b"1")
    assert await scene.lease(lease_no=1) == [two]


async def test_an_agent_out_of_time_leases_nothing(scene, run, clock):
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run)])
    clock.pass_by(8 * SECOND)
    assert await scene.lease(71) == []
    await scene.store.agent.beat(71, 8 * SECOND, [])
    assert len(await scene.lease(71)) == 1


async def test_an_agent_out_of_time_hears_what_a_lost_answer_gave_it(scene, run, clock):
    """It holds these rows: it could never hand back what it has not heard of, and nobody else would find them."""
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    first = await scene.lease(71, lease_no=1, limit=1)
    clock.pass_by(8 * SECOND)
    assert await scene.lease(71, lease_no=1, limit=1) == first
    assert await scene.lease(71, lease_no=2, limit=1) == []


async def test_a_new_attempt_finds_nothing_of_the_one_before_but_its_checkpoint(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.CHECKPOINT, b'"half"')
    await scene.store.agent.beat(AGENT, None, [ProgressMark(row.id, row.fence, b'{"done":1}', increased=True)])
    await scene.report(row, Act.FAILED, FAILURE)
    await scene.judge(a_verdict(await scene.row(row.id), AttemptState.READY, why="retry"))
    [again] = await scene.lease()
    assert (again.id, again.fence, again.checkpoint) == (row.id, row.fence + 1, b'"half"')
    assert (again.result, again.why, again.progress, again.progress_at, again.ended_at) == (None,) * 5
    assert (again.failures, again.losses, again.number) == (1, 1, 2)


async def test_no_row_is_leased_twice_and_none_is_missed(scene, run):
    rows = [scene.a_row(run) for _ in range(2_000)]
    await scene.turn(attempts=rows)
    agents = range(100, 108)
    for agent in agents:
        await scene.store.agent.join(agent, "default", "", "a", b"{}", None)

    async def claim(agent: int) -> list[int]:
        got: list[int] = []
        while leased := await scene.lease(agent, limit=7):
            got += [row.id for row in leased]
        return got

    claimed = await asyncio.gather(*(claim(agent) for agent in agents))
    together = [id for got in claimed for id in got]
    assert sorted(together) == [row.id for row in rows]
    assert all(claimed), "every agent got some"


# --- who is forgotten


async def known(scene, *agents: int) -> list[bool]:
    """Say which of these agents the store remembers: those of whom it does not may join again."""
    remembered = []
    for agent in agents:
        await scene.store.agent.join(agent, "default", "", "again", b"{}", None)
        remembered.append(not (await scene.store.agent.beat(agent, None, [])).alive)
    return remembered


async def test_who_is_gone_for_a_day_and_holds_nothing_is_forgotten(scene, run, clock):
    for agent in (71, 72, 73, 74):
        await scene.store.agent.join(agent, "default" if agent < 74 else "other", "", "b", b"{}", 8 * SECOND)
    await scene.store.agent.leave(71)
    await scene.store.supervisor.bury([72])
    clock.pass_by(AGENTS_KEPT_FOR)
    await scene.store.agent.join(75, "default", "", "c", b"{}", None)
    assert not (await scene.store.agent.beat(71, 8 * SECOND, [])).alive
    assert (await scene.store.agent.beat(73, 8 * SECOND, [])).alive, "who was only silent is welcome"
    clock.pass_by(1)
    await scene.store.agent.join(76, "default", "", "c", b"{}", None)
    assert await known(scene, 71, 72) == [False, False]
    clock.pass_by(8 * SECOND)
    await scene.store.agent.join(77, "default", "", "c", b"{}", None)
    assert not (await scene.store.agent.beat(74, 8 * SECOND, [])).alive, "silent for more than a day"
    assert (await scene.store.agent.beat(73, 8 * SECOND, [])).alive


async def test_nobody_is_forgotten_whom_a_running_attempt_names(scene, run, clock):
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run)])
    [row] = await scene.lease(71)
    await scene.store.supervisor.bury([71])
    clock.pass_by(2 * AGENTS_KEPT_FOR)
    await scene.store.agent.join(72, "default", "", "c", b"{}", None)
    assert await known(scene, 71) == [True]
    assert [orphan.id for orphan in (await scene.store.supervisor.watch(9)).orphans] == [row.id]
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, dead_agent=71))
    await scene.store.agent.join(73, "default", "", "c", b"{}", None)
    assert await known(scene, 71) == [False]


async def test_many_are_forgotten_little_by_little(scene, clock):
    gone = range(1_000, 1_000 + AGENTS_FORGOTTEN + 1)
    for agent in gone:
        await scene.store.agent.join(agent, "default", "", "b", b"{}", None)
        await scene.store.agent.leave(agent)
        clock.pass_by(1)
    clock.pass_by(AGENTS_KEPT_FOR)
    await scene.store.agent.join(71, "default", "", "c", b"{}", None)
    await scene.store.agent.join(gone[-1], "default", "", "b", b"{}", None)
    assert not (await scene.store.agent.beat(gone[-1], None, [])).alive, "the oldest go first"
    await scene.store.agent.join(72, "default", "", "c", b"{}", None)
    assert await known(scene, gone[0], gone[-1]) == [False, False]


# --- what an operator wants


async def test_who_was_lost_and_comes_back_is_wanted_as_before_and_has_what_it_was_given(scene, clock):
    agents = scene.store.agent
    await agents.join(71, "default", "", "b", b"{}", 8 * SECOND, needs=("cpu",))
    assert await scene.store.client.order_agent("default", 71, wish=Wish.QUARANTINE, needs=("gpu=1",))
    await scene.store.supervisor.bury([71])
    clock.pass_by(AGENTS_KEPT_FOR + SECOND)  # it could be forgotten now, and is not before it is back
    await agents.join(72, "default", "", "b", b"{}", 8 * SECOND, needs=("cpu",), before=71)
    orders = await agents.beat(72, 8 * SECOND, [])
    assert (orders.alive, orders.wish, orders.needs) == (True, Wish.QUARANTINE, ("gpu=1",))
    await agents.join(73, "default", "", "c", b"{}", 8 * SECOND, needs=("cpu",), before=99)
    orders = await agents.beat(73, 8 * SECOND, [])
    assert (orders.wish, orders.needs) == (Wish.NONE, ("cpu",)), "nobody knows who that was"


@pytest.mark.parametrize("wish", [Wish.DRAIN, Wish.QUARANTINE])
async def test_who_is_to_drain_or_quarantined_gets_nothing_until_wanted_again(scene, run, wish):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(2)])
    order, beat = scene.store.client.order_agent, scene.store.agent.beat
    [before] = await scene.lease(lease_no=1, limit=1)
    assert await order("default", AGENT, wish)
    orders = await beat(AGENT, None, [])
    assert (orders.alive, orders.wish) == (True, wish)
    assert await scene.lease(lease_no=2) == []
    assert await scene.lease(lease_no=1, limit=1) == [before], "what it holds it can ask for again"
    assert await scene.report(before, Act.DONE, b"1") is Answer.ACCEPTED
    assert await order("default", AGENT, Wish.NONE)
    assert (await beat(AGENT, None, [])).wish is Wish.NONE
    assert len(await scene.lease()) == 1


async def test_an_operator_may_change_what_an_agent_has(scene):
    order, beat = scene.store.client.order_agent, scene.store.agent.beat
    assert await order("default", AGENT, None, ("eu", "gpu=2"))
    assert (await beat(AGENT, None, [])).needs == ("eu", "gpu=2")
    assert await order("default", AGENT, Wish.DRAIN)
    orders = await beat(AGENT, None, [])
    assert (orders.wish, orders.needs) == (Wish.DRAIN, ("eu", "gpu=2"))
    assert await order("default", AGENT, None, ())
    orders = await beat(AGENT, None, [])
    assert (orders.wish, orders.needs) == (Wish.DRAIN, ())
    await scene.store.agent.join(AGENT, "default", "", "a", b"{}", None, needs=("us",))
    assert (await beat(AGENT, None, [])).needs == (), "joining twice is joining once"


async def test_nobody_orders_the_gone_the_unknown_or_those_of_others(scene):
    order = scene.store.client.order_agent
    assert not await order("other", AGENT, Wish.DRAIN)
    assert not await order("default", 12345, Wish.DRAIN)
    await scene.store.agent.join(71, "default", "", "b", b"{}", None)
    assert (await scene.store.agent.beat(AGENT, None, [])).wish is Wish.NONE
    await scene.store.supervisor.bury([71])
    await scene.store.agent.leave(AGENT)
    assert not await order("default", AGENT, Wish.DRAIN)
    assert not await order("default", 71, Wish.DRAIN)


async def test_a_silent_agent_obeys_when_it_comes_back(scene, run, clock):
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    clock.pass_by(9 * SECOND)
    assert await scene.store.client.order_agent("default", 71, Wish.QUARANTINE)
    assert (await scene.store.agent.beat(71, 8 * SECOND, [])).wish is Wish.QUARANTINE
    await scene.turn(attempts=[scene.a_row(run)])
    assert await scene.lease(71) == []


# --- reports


async def test_done_takes_the_loss_back(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(4)
    assert await scene.report(row, Act.DONE, b"42") is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.result, found.losses, found.failures) == (AttemptState.DONE, b"42", 0, 0)
    assert (found.ended_at, found.watch_at) == (NOON + 4, None)


async def test_a_failure_counts_instead_of_the_loss_and_is_due_at_once(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(4)
    assert await scene.report(row, Act.FAILED, FAILURE) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.result, found.losses, found.failures) == (AttemptState.FAILED, FAILURE, 0, 1)
    assert (found.ended_at, found.watch_at) == (NOON + 4, NOON + 4)


async def test_the_loss_of_a_dead_child_stands(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    assert await scene.report(row, Act.DIED, FAILURE) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.losses, found.failures, found.watch_at) == (AttemptState.FAILED, 1, 0, NOON)


async def test_handing_back_costs_nothing_and_keeps_the_place(scene, run, clock):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(1)
    later = await scene.row_in(AttemptState.READY, run)
    assert await scene.report(row, Act.HAND_BACK) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.losses, found.failures, found.watch_at) == (AttemptState.READY, 0, 0, None)
    assert [leased.id for leased in await scene.lease()] == [row.id, later.id]


async def test_a_cancelled_row_that_is_handed_back_is_not_started_again(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.turn(dropped=[row.id])
    assert await scene.report(row, Act.HAND_BACK) is Answer.ACCEPTED
    found = await scene.row(row.id)
    assert (found.state, found.losses, found.failures, found.cancel) == (AttemptState.FAILED, 0, 0, True)
    assert b'"cancelled"' in (found.result or b"")
    assert await scene.lease() == []
    assert await scene.report(row, Act.HAND_BACK) is Answer.ALREADY


async def test_what_was_stopped_after_it_began_costs_nothing_unless_its_run_is_being_stopped_too(scene, run):
    drained, unwanted = [await scene.row_in(AttemptState.RUNNING, run) for _ in range(2)]
    await scene.turn(dropped=[unwanted.id])
    for row in (drained, unwanted):
        assert (
            await scene.report(row, Act.STOPPED, b'{"type":"x","message":"y","cause":"cancelled"}') is Answer.ACCEPTED
        )
        assert await scene.report(row, Act.STOPPED, b"{}") is Answer.ALREADY
    found = await scene.row(drained.id)
    assert (found.state, found.losses, found.failures, found.unsure) == (AttemptState.READY, 0, 0, True)
    assert b'"cancelled"' in (found.result or b""), "if its run is stopped before it begins again, that is how it ended"
    found = await scene.row(unwanted.id)
    assert (found.state, found.losses, found.failures) == (AttemptState.FAILED, 0, 1), "it may have taken effect"
    assert b'"cancelled"' in (found.result or b"")
    assert [row.id for row in await scene.lease()] == [drained.id]


async def test_a_checkpoint_is_kept_while_it_runs(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    for body in (b"1", b"2"):
        assert await scene.report(row, Act.CHECKPOINT, body) is Answer.ACCEPTED
    assert (await scene.row(row.id)).checkpoint == b"2"
    await scene.report(row, Act.DONE, b"42")
    assert await scene.report(row, Act.CHECKPOINT, b"3") is Answer.LATE


@pytest.mark.parametrize("act", [Act.DONE, Act.FAILED, Act.DIED, Act.HAND_BACK])
async def test_a_repeated_report_hears_that_it_is_known(scene, run, act):
    row = await scene.row_in(AttemptState.RUNNING, run)
    assert await scene.report(row, act, FAILURE) is Answer.ACCEPTED
    before = await scene.row(row.id)
    assert await scene.report(row, act, FAILURE) is Answer.ALREADY
    assert await scene.row(row.id) == before


@pytest.mark.parametrize("act", list(Act))
async def test_a_report_changes_its_own_row_only(scene, run, act):
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    mine, other = await scene.lease()
    assert mine.fence == other.fence
    assert await scene.report(mine, act, FAILURE) is Answer.ACCEPTED
    assert await scene.row(other.id) == other


@pytest.mark.parametrize("act", list(Act))
async def test_whoever_lost_the_row_comes_too_late(scene, run, act):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.HAND_BACK)
    [again] = await scene.lease()
    assert await scene.report(row, act, FAILURE) is Answer.LATE
    assert await scene.row(row.id) == again


async def test_done_after_a_verdict_comes_too_late(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    assert await scene.judge(a_verdict(row, AttemptState.FAILED, failures=1, losses=-1, watch_in=0, result=FAILURE))
    assert await scene.report(row, Act.DONE, b"42") is Answer.LATE
    assert (await scene.row(row.id)).result == FAILURE


async def test_of_a_row_that_is_gone_nothing_is_known(scene, run):
    row = await scene.row_in(AttemptState.DONE, run)
    await scene.turn(finals_done=[row.id])
    assert await scene.report(row, Act.DONE, b"42") is Answer.LATE


async def test_a_result_that_comes_too_late_is_written_down_once(scene, run):
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.HAND_BACK)
    [again] = await scene.lease()
    for act in (Act.FAILED, Act.CHECKPOINT, Act.DONE, Act.DONE):
        assert await scene.report(row, act, FAILURE) is Answer.LATE
    [told] = await scene.decisions(run.id)
    assert (told.call, told.fence, told.n, told.actor) == ("charge", row.fence, OF_A_REFUSAL, "agent")
    assert await scene.report(again, Act.DONE, b"1") is Answer.ACCEPTED
    assert len(await scene.decisions(run.id)) == 1


async def test_a_late_result_of_a_call_that_is_done_is_written_down_unless_it_is_the_one_that_counted(scene, run):
    late = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(late, Act.HAND_BACK)
    [done] = await scene.lease()
    await scene.report(done, Act.DONE, b"1")
    entry = JournalEntry(run.num, 1, Kind.STEP, "charge", 9, done.fence, Outcome.OK, AGENT, None, NOON, b"1")
    await scene.turn(finals_done=[done.id], journal=[entry])
    for row in (done, late):
        report = Report(row.id, row.fence, Act.DONE, b"1", run=run.num, call="charge")
        assert await scene.store.agent.report(AGENT, [report]) == [Answer.LATE]
    assert [told.fence for told in await scene.decisions(run.id)] == [late.fence]
    unknown = Report(late.id, late.fence, Act.DONE, b"1", run=99, call="charge")
    assert await scene.store.agent.report(AGENT, [unknown]) == [Answer.LATE], "of a run that has been deleted"


async def test_many_reports_are_answered_one_by_one(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(4)])
    one, two, three, four = await scene.lease()
    await scene.report(three, Act.DONE, b"3")
    reports = [
        Report(one.id, one.fence, Act.DONE, b"1"),
        Report(two.id, two.fence + 1, Act.DONE, b"2"),
        Report(three.id, three.fence, Act.DONE, b"3"),
        Report(four.id, four.fence, Act.FAILED, FAILURE),
    ]
    answers = await scene.store.agent.report(AGENT, reports)
    assert answers == [Answer.ACCEPTED, Answer.LATE, Answer.ALREADY, Answer.ACCEPTED]


async def test_reports_about_one_row_count_in_their_order(scene, run):
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    one, two = await scene.lease()
    reports = [
        Report(one.id, one.fence, Act.CHECKPOINT, b'"a"'),
        Report(one.id, one.fence, Act.CHECKPOINT, b'"b"'),
        Report(one.id, one.fence, Act.DONE, b"1"),
        Report(one.id, one.fence, Act.DONE, b"1"),
        Report(one.id, one.fence, Act.CHECKPOINT, b'"c"'),
        Report(two.id, two.fence, Act.HAND_BACK),
        Report(two.id, two.fence, Act.DONE, b"2"),
    ]
    answers = await scene.store.agent.report(AGENT, reports)
    accepted, already, late = Answer
    assert answers == [accepted, accepted, accepted, already, late, accepted, late]
    rows = await scene.rows()
    assert (rows[one.id].state, rows[one.id].checkpoint, rows[one.id].result) == (AttemptState.DONE, b'"b"', b"1")
    assert (rows[two.id].state, rows[two.id].result) == (AttemptState.READY, None)


@pytest.mark.parametrize("act", [Act.DONE, Act.FAILED, Act.DIED, Act.HAND_BACK])
async def test_the_last_words_of_an_attempt_are_kept_with_its_report(scene, run, clock, act):
    row = await scene.row_in(AttemptState.RUNNING, run)
    clock.pass_by(4)
    report = Report(row.id, row.fence, act, FAILURE, b"one line\n")
    assert await scene.store.agent.report(AGENT, [report]) == [Answer.ACCEPTED]
    assert await scene.store.client.logs("default", run.id) == [
        AttemptLog("charge", 1, row.fence, NOON + 4, b"one line\n")
    ]
    assert await scene.store.agent.report(AGENT, [report._replace(log=b"another")]) == [Answer.ALREADY]
    assert [log.body for log in await scene.store.client.logs("default", run.id)] == [b"one line\n"]


async def test_each_attempt_has_its_own_last_words(scene, run, clock):
    other = await scene.row_in(AttemptState.RUNNING, run, call="ship")
    row = await scene.row_in(AttemptState.RUNNING, run)
    for number in (1, 2, 3):
        act = (Act.FAILED, Act.DIED, Act.DONE)[number - 1]
        log = b"attempt %d " % number + b"." * (LOG_LIMIT - 10)
        await scene.store.agent.report(AGENT, [Report(row.id, row.fence, act, FAILURE, log)])
        clock.pass_by(1)
        if act is not Act.DONE:
            assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.READY))
            [row] = await scene.lease()
    await scene.store.agent.report(AGENT, [Report(other.id, other.fence, Act.DONE, b"1", b"")])
    logs = await scene.store.client.logs("default", run.id)
    assert [(log.call, log.number, log.body[:9]) for log in logs] == [
        ("charge", 1, b"attempt 1"),
        ("charge", 2, b"attempt 2"),
        ("charge", 3, b"attempt 3"),
        ("ship", 1, b""),
    ]
    assert [log.at for log in logs] == [NOON, NOON + 1, NOON + 2, NOON + 3]
    assert await scene.store.client.logs("other", run.id) == []


async def test_reports_without_last_words_checkpoints_and_those_that_come_late_leave_none(scene, run):
    await scene.turn(attempts=[scene.a_row(run, call=f"charge.{n}") for n in range(4)])
    one, two, three, four = await scene.lease()
    await scene.report(three, Act.HAND_BACK)
    reports = [
        Report(one.id, one.fence, Act.DONE, b"1"),
        Report(two.id, two.fence, Act.CHECKPOINT, b"1", b"too early"),
        Report(three.id, three.fence, Act.DONE, b"1", b"too late"),
        Report(four.id, four.fence - 1, Act.DONE, b"1", b"too late"),
    ]
    await scene.store.agent.report(AGENT, reports)
    assert await scene.store.client.logs("default", run.id) == []
    reports = [
        Report(two.id, two.fence, Act.CHECKPOINT, b"2", b"too early"),
        Report(two.id, two.fence, Act.FAILED, FAILURE, b"in time"),
        Report(two.id, two.fence, Act.DONE, b"1", b"too late"),
        Report(four.id, four.fence, Act.DONE, b"1"),
    ]
    await scene.store.agent.report(AGENT, reports)
    assert [(log.call, log.body) for log in await scene.store.client.logs("default", run.id)] == [
        ("charge.1", b"in time")
    ]


async def test_of_two_attempts_of_one_name_the_newer_has_the_last_word(scene, run):
    """After a rewind the same call is made again, under the same term: its fences begin again."""
    for word in (b"before", b"after"):
        row = await scene.row_in(AttemptState.RUNNING, run)
        await scene.store.agent.report(AGENT, [Report(row.id, row.fence, Act.DONE, b"1", word)])
        await scene.turn(finals_done=[row.id])
    assert [log.body for log in await scene.store.client.logs("default", run.id)] == [b"after"]
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(run)])
    reports = [Report(row.id, row.fence, Act.DONE, b"1", b"twice") for row in await scene.lease()]
    assert await scene.store.agent.report(AGENT, reports) == [Answer.ACCEPTED] * 2
    assert [log.body for log in await scene.store.client.logs("default", run.id)] == [b"twice"]


async def test_an_agent_that_leaves_hands_everything_back(scene, run):
    await scene.turn(attempts=[scene.a_row(run) for _ in range(3)])
    one, two, _ = await scene.lease()
    await scene.report(one, Act.DONE, b"1")
    await scene.turn(dropped=[two.id])
    for _ in range(2):
        await scene.store.agent.leave(AGENT)
    rows = sorted((await scene.rows()).values(), key=lambda row: row.id)
    assert [row.state for row in rows] == [AttemptState.DONE, AttemptState.FAILED, AttemptState.READY]
    assert [row.losses for row in rows] == [0, 0, 0]
    assert await scene.lease() == []


async def test_nobody_leases_a_step_that_its_code_does_not_know(scene):
    [run] = await scene.submit(a_run())
    await scene.turn(attempts=[scene.a_row(run)])
    stranger = Room(slots=5, alone=5, steps=("refund",))
    assert await scene.store.agent.lease(AGENT, 7, [scene.queue], stranger) == []
    assert len(await scene.lease()) == 1
