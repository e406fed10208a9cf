"""What a turn does beyond its own runs: starts runs, tells others, holds rows back, lets parked ones go; and copies."""

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.attempt import RowKind
from watchbill.model.call import Kind
from watchbill.model.facts import FactKind
from watchbill.model.failed import Copied
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import EVERY, Deleted, NewFact, TurnFact
from watchbill.testing.conformance.scene import KNOWN, LIMIT, NOON, a_change, a_run, an_entry

LARGE = b'"' + b"x" * 300_000 + b'"'


def a_fact(run: int | None, kind: FactKind = FactKind.CHILD, ref: str = "r", *, id: str = "", body: bytes = b"1"):
    return TurnFact(run, "default", id, kind, ref, "run", body)


async def facts_of(scene):
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, LIMIT)
    return [(fact.run, fact.kind, fact.ref, fact.body) for fact in look.facts]


# --- submit


async def test_a_run_has_what_was_asked_for(scene):
    asked = msgspec.structs.replace(
        a_run(1), priority=7, delay=3 * SECOND, deadline_in=60 * SECOND, tags=("a", "customer:7")
    )
    [made] = await scene.submit(asked)
    found = await scene.run_row("o-1")
    assert found == made
    assert (found.priority, found.wake_at, found.deadline) == (7, NOON + 3 * SECOND, NOON + 60 * SECOND)
    assert (found.tags, found.parent, found.root, found.early) == (("a", "customer:7"), None, 1, False)


async def test_a_run_for_a_time_is_due_at_that_time(scene):
    await scene.submit(msgspec.structs.replace(a_run(1), at=NOON + 5 * SECOND, deadline=NOON + 9 * SECOND))
    found = await scene.run_row("o-1")
    assert (found.wake_at, found.deadline) == (NOON + 5 * SECOND, NOON + 9 * SECOND)
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, LIMIT)
    assert (look.due, look.next_due) == ((), NOON + 5 * SECOND)


# --- copies


async def journal_of(scene, id):
    record = await scene.store.client.record("default", id)
    assert record is not None
    return record.journal


async def a_source(scene):
    [source] = await scene.submit(a_run(1))
    entries = [an_entry(1, 1), an_entry(1, 2), an_entry(1, 3, body=LARGE), an_entry(1, 4, body=b"4")]
    change = a_change(source, RunState.COMPLETED)._replace(begun_at=NOON)
    await scene.turn(journal=list(entries), runs=[change])
    return entries


@pytest.mark.parametrize("loose", [False, True])
async def test_a_copy_goes_on_from_chosen_entries_of_another_journal(scene, loose):
    entries = await a_source(scene)
    copy = a_run(2, "o-1~2", input=LARGE)
    assert await scene.store.client.copy(copy, 1, [4, 1, 3], loose=loose) is Copied.MADE
    found = await scene.run_row("o-1~2")
    assert (found.num, found.status, found.input, found.begun_at, found.early) == (
        2, RunState.SCHEDULED, LARGE, NOON, True,
    )  # fmt: skip
    digest = None if loose else 99
    assert list(await journal_of(scene, "o-1~2")) == [
        entries[place]._replace(run=2, seq=seq, digest=digest) for seq, place in enumerate((0, 2, 3), 1)
    ]
    assert list(await journal_of(scene, "o-1")) == entries
    assert found.copied == 3


async def test_a_copy_has_the_slot_and_the_parents_id_that_it_is_given(scene):
    await a_source(scene)
    copy = msgspec.structs.replace(a_run(2, "o-1~2"), slot=NOON + 5, parent_id="p")
    first = tuple(an_entry(2, 1))
    assert await scene.store.client.copy(copy, 1, [4, 1], loose=False, first=first) is Copied.MADE
    found = await scene.run_row("o-1~2")
    assert (found.slot, found.parent_id, found.parent, found.copied) == (NOON + 5, "p", None, 3)


@pytest.mark.parametrize("body", [b'{"unread":[]}', LARGE])
async def test_a_copy_may_begin_with_an_entry_of_its_own(scene, body):
    entries = await a_source(scene)
    first = an_entry(2, 1, body=body, at=NOON - 7)._replace(kind=Kind.CONTINUED.value, key="ship", digest=0)
    copied = await scene.store.client.copy(a_run(2, "o-1~2"), 1, [3, 4], loose=True, first=tuple(first))
    assert copied is Copied.MADE
    assert list(await journal_of(scene, "o-1~2")) == [
        first,
        entries[2]._replace(run=2, seq=2, digest=None),
        entries[3]._replace(run=2, seq=3, digest=None),
    ]
    again = tuple(first._replace(run=3))
    assert await scene.store.client.copy(a_run(3, "o-1~3"), 1, [], loose=False, first=again) is Copied.MADE
    assert list(await journal_of(scene, "o-1~3")) == [first._replace(run=3)]


async def test_a_copy_is_made_once_and_under_no_id_that_is_taken(scene):
    await a_source(scene)
    first = tuple(an_entry(2, 1))
    copy = scene.store.client.copy
    assert await copy(a_run(2, "o-1~2"), 1, [1], loose=False, first=first) is Copied.MADE
    assert await copy(a_run(2, "o-1~2"), 1, [1], loose=False, first=first) is Copied.MADE, "the answer was lost"
    other = tuple(an_entry(3, 1))
    assert await copy(a_run(3, "o-1~2"), 1, [1], loose=False, first=other) is Copied.TAKEN
    assert len(await journal_of(scene, "o-1~2")) == 2


async def test_what_was_deleted_is_not_gone_on_with(scene):
    await a_source(scene)
    first = tuple(an_entry(2, 1))
    assert await scene.store.client.delete(1, EVERY) is Deleted.GONE
    assert await scene.store.client.copy(a_run(2, "o-1~2"), 1, [1], loose=False, first=first) is Copied.GONE
    assert await scene.store.client.find("default", "o-1~2") is None


# --- starts


async def test_a_turn_starts_runs(scene):
    [parent] = await scene.submit(a_run(1))
    child = msgspec.structs.replace(a_run(2, "o-1/ship"), parent=1, root=1, priority=3)
    assert (await scene.turn(runs=[a_change(parent, RunState.RUNNING)], starts=[child])).applied
    found = await scene.run_row("o-1/ship")
    assert (found.num, found.status, found.parent, found.root, found.priority) == (2, RunState.SCHEDULED, 1, 1, 3)
    assert found.wake_at == NOON


async def test_a_run_is_started_once(scene):
    first, second = (msgspec.structs.replace(a_run(num, "o-1/ship", input=LARGE), parent=1, root=1) for num in (2, 3))
    await scene.turn(starts=[first])
    assert (await scene.turn(starts=[second])).applied, "the call has started it before"
    found = await scene.run_row("o-1/ship")
    assert (found.num, found.input) == (2, LARGE)


async def test_a_refused_turn_starts_nothing(scene):
    lost = {shard: term + 1 for shard, term in scene.terms.items()}
    answer = await scene.store.scheduler.turn(
        msgspec.structs.replace(scene.a_turn(starts=[a_run(2, "o-1/ship")], facts=[a_fact(1)]), terms=lost)
    )
    assert not answer.applied
    assert await scene.store.client.find("default", "o-1/ship") is None


# --- facts


async def test_a_turn_tells_other_runs_by_number_and_by_id(scene):
    await scene.submit(a_run(1), a_run(2))
    await scene.turn(facts=[a_fact(1), a_fact(None, FactKind.CANCEL, "p", id="o-2", body=b'"no"')])
    assert sorted(await facts_of(scene)) == [
        (1, FactKind.CHILD, "r", b"1"),
        (2, FactKind.CANCEL, "p", b'"no"'),
    ]


async def test_a_fact_is_told_once_and_not_to_those_who_have_ended_or_never_were(scene):
    [one, ended] = await scene.submit(a_run(1), a_run(2))
    await scene.turn(runs=[a_change(ended, RunState.COMPLETED)])
    told = [a_fact(one.num), a_fact(one.num, body=b"2"), a_fact(ended.num), a_fact(404), a_fact(None, id="nobody")]
    assert (await scene.turn(facts=told)).applied
    assert await facts_of(scene) == [(1, FactKind.CHILD, "r", b"1")]


async def test_a_turn_tells_all_open_children_of_a_run_once(scene):
    kin = [(2, "o-1/a", 1), (3, "o-1/b", 1), (4, "o-1/c", 1), (5, "o-1/a/x", 2)]
    [run, *_] = await scene.submit(a_run(1), a_run(9))
    starts = [msgspec.structs.replace(a_run(num, id), parent=parent, root=1) for num, id, parent in kin]
    await scene.turn(runs=[a_change(run, RunState.RUNNING)], starts=starts)
    await scene.turn(runs=[a_change(4, RunState.CANCELLED)])
    pause = a_fact(1, FactKind.PAUSE)._replace(children=True)
    for _ in range(2):
        assert (await scene.turn(facts=[pause, a_fact(9, ref="one")])).applied
    assert sorted(await facts_of(scene)) == [
        (2, FactKind.PAUSE, "r", b"1"),
        (3, FactKind.PAUSE, "r", b"1"),
        (9, FactKind.CHILD, "one", b"1"),
    ]


async def test_a_refused_turn_tells_no_children(scene):
    [run] = await scene.submit(a_run(1))
    child = msgspec.structs.replace(a_run(2, "o-1/a"), parent=1, root=1)
    await scene.turn(runs=[a_change(run, RunState.RUNNING)], starts=[child])
    lost = {shard: term + 1 for shard, term in scene.terms.items()}
    turn = scene.a_turn(facts=[a_fact(1, FactKind.PAUSE)._replace(children=True)])
    assert not (await scene.store.scheduler.turn(msgspec.structs.replace(turn, terms=lost))).applied
    assert await facts_of(scene) == []


async def test_a_client_tells_with_a_reference(scene):
    await scene.submit(a_run(1))
    await scene.store.client.tell([NewFact("default", "o-1", FactKind.SEND, "m-1", "ada", b'["t",1]')])
    assert await facts_of(scene) == [(1, FactKind.SEND, "m-1", b'["t",1]')]


# --- rows


async def test_rows_of_a_paused_run_are_held_back_until_it_goes_on(scene):
    [run, other] = await scene.submit(a_run(1), a_run(2))
    await scene.turn(attempts=[scene.a_row(run), scene.a_row(other)])
    change = a_change(run, RunState.RUNNING)._replace(paused=True, pauses=5)
    await scene.turn(runs=[change], holds=[(run.num, True)])
    paused = await scene.run_row(run.id)
    assert (paused.paused, paused.pauses) == (True, 5)
    [loaded] = await scene.store.scheduler.load([run.num])
    assert loaded.run.pauses == 5
    assert [row.run for row in await scene.lease()] == [other.num]
    await scene.turn(runs=[change._replace(paused=False, pauses=0)], holds=[(run.num, False)])
    assert (await scene.run_row(run.id)).pauses == 0
    assert [row.run for row in await scene.lease()] == [run.num]


async def test_a_row_may_begin_as_held(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, held=True)])
    assert await scene.lease() == []


async def test_what_is_released_has_fresh_budgets(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.PARKED, run, failures=4, losses=5)
    await scene.turn(released=[row.id])
    [again] = await scene.lease()
    assert (again.id, again.failures, again.losses, again.why) == (row.id, 0, 1, None)


async def test_a_question_waits_for_a_person_and_no_agent_gets_it(scene):
    [run] = await scene.submit(a_run(1))
    row = scene.a_row(run, AttemptState.PARKED, kind=RowKind.ASK, why="ask", step="ask")
    await scene.turn(attempts=[row])
    found = await scene.row(row.id)
    assert (found.kind, found.why, found.state) == (RowKind.ASK, "ask", AttemptState.PARKED)
    await scene.turn(released=[row.id])
    assert await scene.lease() == []
    assert (await scene.store.supervisor.watch(LIMIT)).due == ()
    await scene.turn(dropped=[row.id])
    assert await scene.state_of(row.id) is None


async def test_the_more_urgent_row_is_leased_first(scene):
    [run] = await scene.submit(a_run(1))
    low, high = scene.a_row(run), scene.a_row(run, rank_ahead=60 * SECOND)
    await scene.turn(attempts=[low, high])
    assert [row.id for row in await scene.lease(limit=1)] == [high.id]


async def test_an_urgent_row_is_the_next_one_behind_any_number_of_ordinary_ones(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, call=f"ordinary.{n}") for n in range(300)])
    for n in range(10):
        assert len(await scene.lease(limit=1)) == 1
        urgent = scene.a_row(run, call=f"urgent.{n}", rank_ahead=60 * SECOND)
        await scene.turn(attempts=[urgent])
        assert [row.id for row in await scene.lease(limit=1)] == [urgent.id]


# --- runs


@pytest.mark.parametrize("published", [None, b'{"a":1}', b'{"b":"' + b"x" * 400_000 + b'"}'])
async def test_a_run_keeps_its_part_what_it_published_and_what_came_early(scene, published):
    [run] = await scene.submit(a_run(1))
    change = a_change(run, RunState.SCHEDULED, wake_at=NOON)._replace(part=2, published=published, early=True)
    await scene.turn(runs=[change])
    found = await scene.run_row(run.id)
    assert (found.part, found.published, found.early, found.wake_at) == (2, published, True, NOON)


async def test_what_an_earlier_part_has_done_hides_no_attempt_of_the_next(scene):
    [run] = await scene.submit(a_run())
    done = await scene.row_in(AttemptState.DONE, run)
    again = scene.a_row(run, AttemptState.RUNNING, part=1, fence=done.fence)
    assert (await scene.turn(attempts=[again], finals_done=[done.id])).applied
    assert await scene.state_of(again.id) is AttemptState.RUNNING
    assert await scene.state_of(done.id) is None
