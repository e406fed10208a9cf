"""The client's doors: submit, tell, and what can be read."""

import pytest
from msgspec.structs import replace

from watchbill.clock import SECOND
from watchbill.errors import DuplicateRun
from watchbill.model.agent import AGENTS_KEPT_FOR, STEPS_SHOWN, AgentRow, AgentSeen, AgentStep, Room, Wish
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.facts import FactKind
from watchbill.model.failed import Copied
from watchbill.model.lease import FOREVER
from watchbill.model.question import DeskItem
from watchbill.model.queue import DEPTH_COUNTED, QueueDepth
from watchbill.model.run import NewRun
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import AVOID_FOR, NewFact, Told
from watchbill.testing.conformance.scene import (
    AGENT,
    KNOWN,
    NOON,
    a_change,
    a_decision,
    a_reason,
    a_run,
    a_verdict,
    an_entry,
)


def a_cancel(id: str, ref: str = "ref-1") -> NewFact:
    return NewFact("default", id, FactKind.CANCEL, ref, "ada", b'"too late"')


async def test_a_submitted_run_is_scheduled_and_due_at_once(scene):
    [answer] = await scene.store.client.submit([a_run(5, "o-5", input=b"[1]")])
    assert answer.new
    found = await scene.run_row("o-5")
    assert found == answer.run
    assert (found.num, found.status, found.wake_at, found.created_at) == (5, RunState.SCHEDULED, NOON, NOON)


async def test_a_run_can_be_submitted_before_anybody_drives_its_namespace(store):
    [answer] = await store.client.submit([a_run(5)])
    shards = await store.scheduler.shards("default", "")
    assert answer.run.shard in shards
    look = await store.scheduler.look(shards, KNOWN, 10)
    assert [run.num for run in look.due] == [5]


async def test_a_run_lives_in_the_region_that_it_was_submitted_to(store):
    runs = [a_run(1), replace(a_run(2), region="eu"), replace(a_run(3), region="us"), replace(a_run(4), region="eu")]
    answers = await store.client.submit(runs)
    shards = {region: await store.scheduler.shards("default", region) for region in ("", "eu", "us")}
    for run, answer in zip(runs, answers, strict=True):
        assert answer.run.shard in shards[run.region]
        assert await store.client.find("default", run.id) == answer.run
        assert (await store.client.record("default", run.id)).region == run.region
    look = await store.scheduler.look(shards["eu"], KNOWN, 10)
    assert [run.num for run in look.due] == [2, 4]


async def test_the_same_id_in_another_region_is_the_same_run(store):
    await store.client.submit([a_run(1, "o")])
    [answer] = await store.client.submit([replace(a_run(2, "o"), region="eu")])
    assert (answer.new, answer.run.num) == (False, 1)
    assert (await store.client.record("default", "o")).region == ""


async def test_a_run_that_a_turn_starts_lives_where_the_turn_says(scene):
    [parent] = await scene.submit(a_run(1))
    shards = await scene.store.scheduler.shards("default", "eu")
    starts = [a_run(8, "o-1/here"), replace(a_run(9, "o-1/there"), region="eu")]
    assert (await scene.turn(runs=[a_change(parent, RunState.RUNNING)], starts=starts)).applied
    assert (await scene.run_row("o-1/here")).shard in scene.terms
    assert (await scene.run_row("o-1/there")).shard in shards


async def test_a_copy_lives_where_it_is_said(scene):
    [source] = await scene.submit(a_run(1))
    copy = replace(a_run(2, "o-1~2"), region="eu")
    assert await scene.store.client.copy(copy, source.num, [], loose=False) is Copied.MADE
    assert (await scene.run_row("o-1~2")).shard in await scene.store.scheduler.shards("default", "eu")


async def test_an_equal_run_that_is_there_is_given_back(scene):
    await scene.submit(a_run(1, "o"))
    [answer] = await scene.store.client.submit([a_run(2, "o")])
    assert (answer.new, answer.run.num) == (False, 1)


async def test_a_resend_of_submit_is_the_same_run_and_still_new(scene):
    first = await scene.store.client.submit([a_run(1), a_run(2)])
    assert await scene.store.client.submit([a_run(1), a_run(2)]) == first


@pytest.mark.parametrize("changed", [{"workflow": "refund"}, {"input": b"[2]"}])
async def test_an_id_taken_by_other_work_refuses_the_whole_submit(scene, changed):
    await scene.submit(a_run(1, "o"))
    with pytest.raises(DuplicateRun) as refused:
        await scene.store.client.submit([a_run(2), a_run(3, "o", **changed), a_run(4)])
    assert "'o'" in str(refused.value)
    assert "'order' version 1" in refused.value.existing
    assert await scene.store.client.find("default", "o-2") is None
    assert await scene.store.client.find("default", "o-4") is None


async def test_the_same_id_twice_in_one_submit_is_one_run(scene):
    answers = await scene.store.client.submit([a_run(1, "o"), a_run(2, "o")])
    assert [(answer.run.num, answer.new) for answer in answers] == [(1, True), (1, False)]


async def test_a_number_that_belongs_to_another_run_is_refused(scene):
    await scene.submit(a_run(1, "o"))
    with pytest.raises(ValueError, match="run number 1 is taken"):
        await scene.submit(a_run(1, "p"))


async def test_namespaces_do_not_see_each_other(scene):
    await scene.submit(a_run(1, "o"))
    assert await scene.store.client.find("other", "o") is None
    assert await scene.store.client.runs("other") == []
    elsewhere = NewFact("other", "o", FactKind.CANCEL, "r", "ada", b"")
    assert await scene.store.client.tell([elsewhere]) == [Told.UNKNOWN]


async def test_telling_twice_is_telling_once(scene):
    [run] = await scene.submit(a_run(1))
    assert await scene.store.client.tell([a_cancel("o-1"), a_cancel("o-1")]) == [Told.TOLD, Told.TOLD]
    assert await scene.store.client.tell([a_cancel("o-1")]) == [Told.TOLD]
    look = await scene.store.scheduler.look([run.shard], [], 10)
    [fact] = look.facts
    assert (fact.run, fact.shard, fact.kind, fact.actor, fact.body, fact.at) == (
        1, run.shard, FactKind.CANCEL, "ada", b'"too late"', NOON,
    )  # fmt: skip


async def test_the_ended_and_the_unknown_cannot_be_told(scene):
    await scene.run_in(RunState.COMPLETED, 1)
    assert await scene.store.client.tell([a_cancel("o-1"), a_cancel("nobody")]) == [Told.ENDED, Told.UNKNOWN]


async def test_an_ending_carries_the_last_entry_of_the_journal(scene):
    [run, open_run] = await scene.submit(a_run(1), a_run(2))
    end = JournalEntry(1, 2, Kind.END, "", 0, 0, Outcome.OK, None, None, NOON, b'"paid"')
    await scene.turn(journal=[an_entry(1, 1), end], runs=[a_change(run, RunState.COMPLETED)])
    ended, still_open = await scene.store.client.endings([1, 2, 3])
    assert (ended.num, ended.status, ended.body, ended.held) == (1, RunState.COMPLETED, b'"paid"', None)
    assert (still_open.num, still_open.status, still_open.body) == (open_run.num, RunState.SCHEDULED, b"")


async def test_a_held_run_says_why(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.RUNNING, held="it killed its process twice")])
    [ending] = await scene.store.client.endings([1])
    assert ending.held == "it killed its process twice"


async def test_a_diverged_run_tells_the_schedulers_newest_message(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(
        runs=[a_change(run, RunState.DIVERGED)],
        decisions=[
            a_decision(1, n=1, message="asked for 'pay'"),
            a_decision(1, n=2, message="asked for 'refund'"),
            a_decision(1, n=3, actor="supervisor", message="something else"),
            a_decision(2, n=1, message="about another run"),
        ],
    )
    [ending] = await scene.store.client.endings([1])
    assert ending.held == "asked for 'refund'"


async def test_a_quarantined_call_holds_its_run_only_when_nothing_else_moves(scene):
    [run] = await scene.submit(a_run(1))
    poison = await scene.row_in(AttemptState.FAILED, run)
    other = await scene.row_in(AttemptState.FAILED, run, call="ship")
    assert await scene.judge(a_verdict(poison, AttemptState.PARKED, why="quarantine", message="5 processes died"))
    assert (await scene.store.client.endings([1]))[0].held is None
    assert await scene.judge(a_verdict(other, AttemptState.PARKED, why="backoff", watch_in=5))
    assert (await scene.store.client.endings([1]))[0].held is None
    await scene.turn(dropped=[other.id])
    assert (await scene.store.client.endings([1]))[0].held == "call 'charge' is quarantined: 5 processes died"


async def test_runs_are_listed_newest_first_by_status_and_workflow(scene):
    for num in (1, 2, 3):
        await scene.submit(a_run(num, workflow="refund" if num == 2 else "order"))
        scene.clock.pass_by(1)
    await scene.turn(runs=[a_change(3, RunState.RUNNING)])
    runs = scene.store.client.runs
    assert [run.num for run in await runs("default")] == [3, 2, 1]
    assert [run.num for run in await runs("default", limit=2)] == [3, 2]
    assert [run.num for run in await runs("default", statuses=[RunState.SCHEDULED])] == [2, 1]
    assert [run.num for run in await runs("default", statuses=[RunState.RUNNING, RunState.FAILED])] == [3]
    assert [run.num for run in await runs("default", workflow="refund")] == [2]


async def test_a_record_holds_all_about_a_run(scene):
    [run] = await scene.submit(a_run(1))
    row = scene.a_row(run)
    await scene.turn(
        journal=[an_entry(1, 1), an_entry(1, 2, body=b'"x"')],
        attempts=[row],
        runs=[a_change(run, RunState.RUNNING)],
        decisions=[a_decision(1, n=1), a_decision(1, n=2)],
    )
    scene.clock.pass_by(3)
    record = await scene.store.client.record("default", "o-1")
    assert record.run.status is RunState.RUNNING
    assert record.journal == (an_entry(1, 1), an_entry(1, 2, body=b'"x"'))
    assert [found.id for found in record.attempts] == [row.id]
    assert [(decision.n, at) for decision, at in record.decisions] == [(1, NOON), (2, NOON)]
    assert (record.now, record.cancelling) == (NOON + 3, False)
    await scene.store.client.tell([a_cancel("o-1")])
    assert (await scene.store.client.record("default", "o-1")).cancelling


async def test_there_is_no_record_of_nobody(scene):
    assert await scene.store.client.record("default", "nobody") is None


async def test_a_record_names_the_agents_of_its_rows_and_of_its_journal(scene, clock):
    [run] = await scene.submit(a_run(1))
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND)
    await scene.turn(attempts=[scene.a_row(run)], journal=[an_entry(1, 1)._replace(agent=71)])
    await scene.lease()
    clock.pass_by(9 * SECOND)
    record = await scene.store.client.record("default", "o-1")
    assert sorted(record.agents) == [
        AgentSeen(AGENT, "a", "alive", NOON, None, FOREVER),
        AgentSeen(71, "b", "silent", NOON, None, NOON + 8 * SECOND),
    ]


async def test_an_agent_is_silent_after_two_beats_and_lost_when_it_was_missed_until_it_beats_again(scene, clock):
    for agent, lease in ((71, 8), (72, 30), (73, 90), (74, 20)):
        await scene.store.agent.join(agent, "default", "", f"{agent}", b"{}", lease * SECOND)

    async def silent() -> list[int]:
        agents = await scene.store.client.agents("default")
        return sorted([agent.id for agent in agents if agent.state == "silent"])

    passed = 0
    for at, gone in ((3, []), (4, [71]), (9, [71]), (10, [71, 74]), (20, [71, 72, 74]), (60, [71, 72, 73, 74])):
        clock.pass_by((at - passed) * SECOND)
        passed = at
        assert await silent() == gone
    await scene.store.supervisor.miss([71])
    state = {agent.id: agent.state for agent in await scene.store.client.agents("default")}
    assert (state[71], state[74]) == ("lost", "silent")
    clock.pass_by(1)
    await scene.store.agent.beat(71, 8 * SECOND, [])
    assert {agent.id: agent.state for agent in await scene.store.client.agents("default")}[71] == "alive"


async def test_a_record_says_who_could_take_what_is_ready_and_what_is_before_it(scene):
    [first, run] = await scene.submit(a_run(1), a_run(2))
    await scene.store.agent.leave(AGENT)
    await scene.store.agent.join(71, "default", "", "b", b"{}", None, needs=("gpu=2",), slots=3)
    await scene.store.agent.join(72, "default", "eu", "c", b"{}", None, slots=3)
    gpu = await scene.store.scheduler.queue("default", "", ("gpu=1",), "")
    await scene.turn(attempts=[scene.a_row(first, queue=gpu), scene.a_row(first, call="charge.2", queue=gpu)])
    [one] = await scene.store.agent.lease(71, 1, [gpu], Room(1, 1, ("charge",)))
    await scene.turn(attempts=[scene.a_row(run, queue=gpu), scene.a_row(run, call="charge.2")])
    waits = (await scene.store.client.record("default", "o-2")).waits
    assert [(wait.needs, wait.able, wait.others, wait.free, wait.ahead) for wait in waits] == [
        (("gpu=1",), 1, 0, 1, 1),
        ((), 1, 0, 2, 0),
    ]
    await scene.store.agent.lease(71, 2, [gpu], Room(1, 1, ("charge",)))
    waits = (await scene.store.client.record("default", "o-2")).waits
    assert [(wait.free, wait.ahead) for wait in waits] == [(0, 0), (1, 0)], "both gpus are in use, and one slot is free"
    await scene.judge(a_verdict(one, AttemptState.FAILED, watch_in=0))
    failed = await scene.row(one.id)
    await scene.store.agent.join(73, "default", "", "d", b"{}", None, needs=("gpu=2",), slots=3)
    await scene.judge(a_verdict(failed, AttemptState.READY))
    [wait] = (await scene.store.client.record("default", "o-1")).waits
    assert (wait.avoid, wait.avoid_until, wait.able) == (71, NOON + AVOID_FOR, 2)


async def test_a_record_has_what_lies_on_somebodys_desk(scene, clock):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.FAILED, run)
    await scene.judge(a_verdict(row, AttemptState.PARKED, why="escalate"))
    [item] = (await scene.store.client.record("default", "o-1")).desk
    assert item == DeskItem(row.id, NOON, None, None, None)
    await scene.store.client.claim("default", row.id, "ada", 60 * SECOND, 9_000_000, a_reason("x"))
    [item] = (await scene.store.client.record("default", "o-1")).desk
    assert (item.claimed_by, item.claimed_until) == ("ada", NOON + 60 * SECOND)
    clock.pass_by(61 * SECOND)
    [item] = (await scene.store.client.record("default", "o-1")).desk
    assert item.claimed_by is None


# --- history


async def test_history_has_what_was_decided_within_a_time_and_counts_the_runs_made_then(scene, clock):
    store = scene.store
    await scene.submit(a_run(1))
    await scene.turn(decisions=[a_decision(1, n=1, message="long ago")])
    clock.pass_by(3_600 * SECOND)
    runs = await scene.submit(a_run(2), a_run(3))
    await store.client.submit([NewRun(4, "other", "o-4", "order", 1, b"[]")])
    await scene.turn(
        runs=[a_change(runs[0], RunState.COMPLETED)],
        journal=[JournalEntry(2, 1, Kind.END, "", 0, 0, Outcome.OK, None, None, NOON, b"1")],
        decisions=[a_decision(2, n=1, message="first"), a_decision(2, n=2, message="second"), a_decision(1, n=2)],
    )
    found = await store.client.history("default", 60 * SECOND)
    assert (found.now, found.since) == (NOON + 3_600 * SECOND, NOON + 3_540 * SECOND)
    assert [(row.decision.run, row.decision.n, row.at, row.status) for row in found.decisions] == [
        (2, 1, found.now, RunState.COMPLETED),
        (2, 2, found.now, RunState.COMPLETED),
        (1, 2, found.now, RunState.SCHEDULED),
    ]
    assert found.decisions[0].decision.body == a_reason("first")
    assert dict(found.runs) == {RunState.COMPLETED: 1, RunState.SCHEDULED: 1}
    assert len((await store.client.history("default", 7_200 * SECOND)).decisions) == 4
    elsewhere = await store.client.history("other", 60 * SECOND)
    assert (elsewhere.decisions, dict(elsewhere.runs)) == ((), {RunState.SCHEDULED: 1})


async def test_history_says_when_those_were_last_heard_who_are_gone_and_what_is_due_for_a_look(scene, clock):
    [run] = await scene.submit(a_run(1))
    assert (await scene.store.client.history("default", SECOND)).overdue == 0
    for agent in (71, 72, 73):
        await scene.store.agent.join(agent, "default", "", f"agent-{agent}", b"{}", 8 * SECOND)
    clock.pass_by(2 * SECOND)
    await scene.store.agent.beat(71, 8 * SECOND, [])
    await scene.store.agent.beat(73, 80 * SECOND, [])
    await scene.store.supervisor.bury([71])
    await scene.turn(attempts=[scene.a_row(run, AttemptState.FAILED)])
    clock.pass_by(10 * SECOND)
    found = await scene.store.client.history("default", 60 * SECOND)
    assert dict(found.heard) == {71: NOON + 2 * SECOND, 72: NOON}, "buried, and silent; the others are well"
    assert found.overdue == 10 * SECOND


# --- the fleet


async def test_agents_are_read_with_what_they_have_say_and_hold(scene, clock):
    [run] = await scene.submit(a_run(1))
    await scene.store.agent.join(71, "default", "eu", "b", b'{"pid":7}', 8 * SECOND, needs=("eu", "gpu=2"), slots=5)
    await scene.turn(attempts=[scene.a_row(run, call="charge.1"), scene.a_row(run, call="charge.2")])
    await scene.lease(71)
    clock.pass_by(3)
    await scene.store.agent.beat(71, 8 * SECOND, [], said=b'{"lag":1}')
    clock.pass_by(2)
    await scene.store.agent.beat(71, 8 * SECOND, [])
    await scene.store.client.order_agent("default", 71, Wish.DRAIN)
    first, second = await scene.store.client.agents("default")
    assert second == AgentRow(
        id=71, name="b", namespace="default", region="eu", state="alive", needs=("eu", "gpu=2"), slots=5,
        joined_at=NOON, beat_at=NOON + 5, until=NOON + 5 + 8 * SECOND, wish=Wish.DRAIN, info=b'{"pid":7}',
        said=b'{"lag":1}', running=2,
        steps=(AgentStep("o-1", "charge.1", "charge"), AgentStep("o-1", "charge.2", "charge")),
    )  # fmt: skip
    assert (first.id, first.name, first.state, first.until, first.running, first.steps) == (
        AGENT, "a", "alive", FOREVER, 0, (),
    )  # fmt: skip
    assert await scene.store.client.agents("other") == []


async def test_of_many_attempts_of_an_agent_some_are_shown(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, call=f"charge.{n}") for n in range(STEPS_SHOWN + 1)])
    await scene.lease()
    [agent] = await scene.store.client.agents("default")
    assert (agent.running, len(set(agent.steps))) == (STEPS_SHOWN + 1, STEPS_SHOWN)


async def test_those_alive_come_first_and_who_is_gone_for_a_day_is_left_out(scene, clock):
    for agent in (71, 72, 73):
        await scene.store.agent.join(agent, "default", "", f"{agent}", b"{}", 8 * SECOND)
    await scene.store.agent.leave(71)
    await scene.store.supervisor.bury([72])

    async def shown() -> list[tuple[int, str]]:
        return [(agent.id, agent.state) for agent in await scene.store.client.agents("default")]

    assert await shown() == [(73, "alive"), (AGENT, "alive"), (71, "left"), (72, "lost")]
    clock.pass_by(8 * SECOND)
    assert await shown() == [(AGENT, "alive"), (71, "left"), (72, "lost"), (73, "silent")]
    clock.pass_by(AGENTS_KEPT_FOR - 8 * SECOND)
    assert await shown() == [(AGENT, "alive"), (73, "silent")]
    clock.pass_by(8 * SECOND)
    assert await shown() == [(AGENT, "alive")]
    await scene.store.supervisor.bury([AGENT])
    assert await shown() == [(AGENT, "lost")], "however long it was alive before"


async def test_the_backlog_tells_what_waits_and_who_is_there_for_it(scene, clock):
    [run] = await scene.submit(a_run(1))
    gpu = await scene.store.scheduler.queue("default", "", ["eu", "gpu=2"], "bank", limited=True)
    await scene.store.scheduler.queue("other", "", [], "")
    await scene.turn(attempts=[scene.a_row(run, AttemptState.RUNNING, queue=gpu), scene.a_row(run, queue=gpu)])
    clock.pass_by(4)
    await scene.turn(attempts=[scene.a_row(run, queue=gpu, alone=True), scene.a_row(run, AttemptState.FAILED)])
    clock.pass_by(1)
    await scene.store.agent.join(71, "default", "", "b", b"{}", 8 * SECOND, needs=("eu", "gpu=1"))  # by name alone
    assert await scene.store.client.backlog("default") == [
        QueueDepth("default", scene.queue, "", (), "", False, depth=0, oldest=0, served_by=2, running=0),
        QueueDepth("default", gpu, "", ("eu", "gpu=2"), "bank", True, depth=2, oldest=5, served_by=1, running=1),
    ]
    assert await scene.store.client.backlog("nobody") == []


async def test_beyond_a_lot_nothing_is_counted(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run) for _ in range(DEPTH_COUNTED + 1)])
    [queue] = await scene.store.client.backlog("default")
    assert queue.depth == DEPTH_COUNTED


async def test_what_is_held_back_does_not_wait_and_those_alone_do(scene, clock):
    runs = await scene.submit(a_run(1), a_run(2))
    await scene.turn(attempts=[scene.a_row(runs[0])])
    await scene.turn(holds=[(1, True)])
    clock.pass_by(4)
    await scene.turn(attempts=[scene.a_row(runs[1], alone=True)])
    clock.pass_by(1)
    [queue] = await scene.store.client.backlog("default")
    assert (queue.depth, queue.oldest) == (1, 1)


async def test_who_can_do_nothing_serves_no_queue(scene, clock):
    async def served_by() -> int:
        [queue] = await scene.store.client.backlog("default")
        return queue.served_by

    for agent, namespace, region in ((71, "default", ""), (72, "default", "eu"), (73, "other", "")):
        await scene.store.agent.join(agent, namespace, region, "b", b"{}", 8 * SECOND)
    assert await served_by() == 2
    await scene.store.client.order_agent("default", AGENT, Wish.QUARANTINE)
    assert await served_by() == 1
    clock.pass_by(8 * SECOND)
    assert await served_by() == 0


async def test_a_head_start_counts_as_waiting(scene, clock):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, rank_ahead=-60 * SECOND)])
    assert [queue.oldest for queue in await scene.store.client.backlog("default")] == [0]
    await scene.turn(attempts=[scene.a_row(run, rank_ahead=60 * SECOND)])
    assert [queue.oldest for queue in await scene.store.client.backlog("default")] == [60 * SECOND]
