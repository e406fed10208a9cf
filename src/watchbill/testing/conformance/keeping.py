"""What is kept: runs found page by page, questions and their answers, trees that are deleted, a doctor's view."""

import asyncio

import msgspec
import pytest

from watchbill.clock import SECOND, to_datetime
from watchbill.model.agent import Act, Report
from watchbill.model.attempt import RowKind
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.facts import FactKind
from watchbill.model.failed import NewFailed
from watchbill.model.question import Question, inbox_item
from watchbill.model.run import NewRun, RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import Deleted, EndedCode, NewFact, Store, Told
from watchbill.testing.conformance.scene import (
    AGENT,
    ME,
    NOON,
    Scene,
    a_change,
    a_decision,
    a_run,
    a_verdict,
    an_entry,
)

LARGE = b'"' + b"x" * 300_000 + b'"'
HOUR = 3_600 * SECOND


def tagged(num: int, *tags: str, **changes: object) -> NewRun:
    return msgspec.structs.replace(a_run(num, **changes), tags=tags)  # type: ignore[arg-type]


def a_child(num: int, parent: int, root: int) -> NewRun:
    return msgspec.structs.replace(a_run(num, f"o-{parent}/c-{num}"), parent=parent, root=root)


# --- pages


async def test_pages_have_every_run_once_newest_first_also_those_of_one_instant(scene):
    for num in range(1, 8):
        await scene.submit(a_run(num))
        if num % 3 == 0:
            scene.clock.pass_by(SECOND)
    seen: list[int] = []
    before = None
    while page := await scene.store.client.runs("default", before=before, limit=2):
        seen += [run.num for run in page]
        before = page[-1].created_at, page[-1].num
    assert seen == [7, 6, 5, 4, 3, 2, 1]


async def test_runs_are_found_by_all_of_their_tags(scene):
    await scene.submit(tagged(1, "eu", "gold"), tagged(2, "eu"), tagged(3, "eugold"), a_run(4), tagged(5, 'a"b%_'))
    runs = scene.store.client.runs

    async def found(*tags: str) -> list[int]:
        return [run.num for run in await runs("default", tags=tags)]

    assert await found("eu") == [2, 1]
    assert await found("gold", "eu") == [1]
    assert await found("eu", "silver") == []
    assert await found('a"b%_') == [5]
    assert await found() == [5, 4, 3, 2, 1]


async def test_filters_and_pages_go_together(scene):
    await scene.submit(*(tagged(num, "eu", workflow="order" if num % 2 else "refund") for num in range(1, 7)))
    page = await scene.store.client.runs(
        "default", statuses=[RunState.SCHEDULED], workflow="order", tags=["eu"], before=(NOON, 5), limit=5
    )
    assert [run.num for run in page] == [3, 1]


async def test_ids_are_found_by_how_they_begin(scene):
    ids = ["a-1", "a-10", "a-2", "A-1", "b", "a~", "a"]
    await scene.submit(*(a_run(num, id) for num, id in enumerate(ids, 1)))
    beginning = scene.store.client.beginning
    assert sorted(await beginning("default", "a-1", 10)) == ["a-1", "a-10"]
    assert sorted(await beginning("default", "a", 10)) == ["a", "a-1", "a-10", "a-2", "a~"]
    assert len(await beginning("default", "a", 2)) == 2
    assert await beginning("default", "c", 10) == []
    assert await beginning("other", "a", 10) == []


# --- questions


async def a_question(scene: Scene, run: RunRow, call: str = "ask", body: bytes | None = None) -> int:
    asked = body or msgspec.json.encode(Question("ship it?", "team", {"type": "boolean"}))
    row = scene.a_row(run, AttemptState.PARKED, kind=RowKind.ASK, why="ask", step="ask", call=call, args=asked)
    await scene.turn(attempts=[row])
    return row.id


async def test_the_inbox_has_what_waits_for_a_person_oldest_first(scene):
    [one, two] = await scene.submit(a_run(1), a_run(2))
    first = await a_question(scene, one)
    scene.clock.pass_by(SECOND)
    large = msgspec.json.encode(Question("why? " + "x" * 300_000, "", {}))
    await a_question(scene, two, "ask.2", large)
    await scene.turn(attempts=[scene.a_row(one)])  # no question
    item, other = [inbox_item(asked) for asked in await scene.store.client.inbox("default", 10)]
    assert msgspec.structs.asdict(item) == {
        "id": f"{first:x}", "run": "o-1", "call": "ask", "question": "ship it?", "to": "team",
        "form": {"type": "boolean"}, "asked_at": to_datetime(NOON), "refused": None, "answered_by": None,
        "kind": "question", "actions": ("answer",), "incident": None, "claimed_by": None, "claimed_until": None,
        "due_at": None, "escalate_to": None,
    }  # fmt: skip
    assert (other.run, other.call, other.asked_at, len(other.question)) == (
        "o-2", "ask.2", to_datetime(NOON + SECOND), 300_005,
    )  # fmt: skip
    assert [item.run for item in await scene.store.client.inbox("default", 1)] == ["o-1"]
    assert await scene.store.client.inbox("other", 10) == []


async def test_an_answer_is_told_once_and_the_first_one_counts(scene):
    [run] = await scene.submit(a_run(1))
    question = await a_question(scene, run)
    answer = scene.store.client.answer
    assert await answer("default", question, "ada", b"true") is Told.TOLD
    assert await answer("default", question, "ada", b"true") is Told.TOLD, "it was sent again"
    assert await answer("default", question, "bob", b"true") is Told.ANSWERED
    assert await answer("default", question, "ada", b"false") is Told.ANSWERED
    [fact] = (await scene.store.client.record("default", "o-1")).told
    assert (fact.kind, fact.ref, fact.actor, fact.body) == (FactKind.ANSWER, f"{question:x}", "ada", b"true")
    [item] = await scene.store.client.inbox("default", 10)
    assert item.answered_by == "ada"


async def test_of_many_who_answer_at_once_one_is_heard(scene):
    [run] = await scene.submit(a_run(1))
    question = await a_question(scene, run)
    answers = (scene.store.client.answer("default", question, f"p-{n}", b"%d" % n) for n in range(10))
    told = await asyncio.gather(*answers)
    assert sorted(told) == [*(9 * [Told.ANSWERED]), Told.TOLD]
    [fact] = (await scene.store.client.record("default", "o-1")).told
    assert fact.actor == f"p-{told.index(Told.TOLD)}"


async def test_what_is_no_question_of_a_live_run_here_cannot_be_answered(scene):
    [run, ended] = await scene.submit(a_run(1), a_run(2))
    step = scene.a_row(run)
    await scene.turn(attempts=[step])
    question, withdrawn = await a_question(scene, run), await a_question(scene, run, "ask.2")
    of_ended = await a_question(scene, ended)
    await scene.turn(dropped=[withdrawn], runs=[a_change(ended, RunState.CANCELLED)])
    answer = scene.store.client.answer
    assert await answer("default", step.id, "ada", b"1") is Told.UNKNOWN
    assert await answer("default", withdrawn, "ada", b"1") is Told.UNKNOWN
    assert await answer("default", 404, "ada", b"1") is Told.UNKNOWN
    assert await answer("other", question, "ada", b"1") is Told.UNKNOWN
    assert await answer("default", of_ended, "ada", b"1") is Told.ENDED
    assert [item.run for item in await scene.store.client.inbox("default", 10)] == ["o-1"]


async def test_the_newest_refusal_is_with_its_question_and_not_one_of_an_earlier_question(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(decisions=[a_decision(1, "ask", n=1, message="of an earlier part")])
    scene.clock.pass_by(SECOND)
    await a_question(scene, run)
    assert (await scene.store.client.inbox("default", 10))[0].refused is None
    for n in (2, 3):
        await scene.turn(decisions=[a_decision(1, "ask", n=n, message=f"no {n}")])
    await scene.turn(decisions=[a_decision(1, "other", n=4, message="of another call")])
    [asked] = await scene.store.client.inbox("default", 10)
    assert inbox_item(asked).refused == "no 3"


# --- deleting


async def a_full_run(scene: Scene, run: RunRow, status: RunState = RunState.COMPLETED, entries: int = 3) -> None:
    """Give a run something of everything, and end it."""
    rows = [scene.a_row(run, call="ship"), scene.a_row(run, call="pack")]
    await scene.turn(attempts=rows)
    for row in await scene.lease():
        logged = Report(row.id, row.fence, Act.HAND_BACK, None, b"packed")
        await scene.store.agent.report(AGENT, [logged if row.call == "pack" else logged._replace(log=None)])
    await scene.turn(
        journal=[an_entry(run.num, seq, body=LARGE if seq == 1 else b"1") for seq in range(1, entries + 1)],
        decisions=[a_decision(run.num, n=n) for n in range(3)],
    )
    await scene.store.client.tell([NewFact("default", run.id, FactKind.PAUSE, "p", "ada", b"1")])
    end = JournalEntry(run.num, entries + 1, Kind.END, "", 0, 0, Outcome.OK, None, None, NOON, LARGE)
    await scene.turn(journal=[end], runs=[a_change(run, status)])


async def delete_all(store: Store, root: int, limit: int = 1_000) -> int:
    times = 1
    while (became := await store.client.delete(root, limit)) is Deleted.MORE:
        times += 1
    assert became is Deleted.GONE
    return times


async def test_a_run_that_has_ended_goes_with_all_that_belongs_to_it(scene):
    [run, other] = await scene.submit(a_run(1, input=LARGE), a_run(2, input=LARGE))
    await a_full_run(scene, run)
    await a_full_run(scene, other)
    kept = await scene.store.client.record("default", "o-2")
    logs = await scene.store.client.logs("default", "o-2")
    assert [log.call for log in logs] == ["pack"]
    assert await delete_all(scene.store, 1) == 1
    assert await scene.store.client.record("default", "o-1") is None
    after = await scene.store.client.record("default", "o-2")
    # What waits before its calls is not its own.
    assert msgspec.structs.replace(after, waits=()) == msgspec.structs.replace(kept, waits=())
    # All that was its own is gone: the same number can be used again, and nothing is found under it.
    [again] = await scene.store.client.submit([a_run(1, input=b'"other work"')])
    assert again.new
    record = await scene.store.client.record("default", "o-1")
    assert (record.journal, record.attempts, record.decisions, record.told) == ((), (), (), ())
    assert await scene.store.client.logs("default", "o-1") == []
    assert await scene.store.client.logs("default", "o-2") == logs


@pytest.mark.parametrize("limit", [1, 3, 4, 10])
async def test_it_goes_in_small_parts_and_has_its_result_until_it_is_gone(scene, limit):
    [run] = await scene.submit(a_run(1, input=LARGE))
    await a_full_run(scene, run, entries=20)
    parts = 0
    while (became := await scene.store.client.delete(1, limit)) is Deleted.MORE:
        parts += 1
        [ending] = await scene.store.client.endings([1])
        assert (ending.status, ending.body) == (RunState.COMPLETED, LARGE)
        record = await scene.store.client.record("default", "o-1")
        assert (record.journal[-1].body, record.run.input) == (LARGE, LARGE)
    assert became is Deleted.GONE
    assert parts >= 20 // limit
    assert await scene.store.client.find("default", "o-1") is None


async def test_a_tree_goes_whole_and_the_root_last(scene):
    [root] = await scene.submit(a_run(1))
    [child, grandchild, other] = await scene.submit(a_child(2, 1, 1), a_child(3, 2, 1), a_run(4))
    for run in (root, child, grandchild, other):
        await a_full_run(scene, run)
    await scene.store.client.delete(1, 12)
    assert await scene.store.client.find("default", "o-1") is not None
    await delete_all(scene.store, 1, 5)
    assert [run.num for run in await scene.store.client.runs("default")] == [4]


@pytest.mark.parametrize("status", [RunState.SCHEDULED, RunState.RUNNING, RunState.WAITING, RunState.DIVERGED])
async def test_nothing_goes_while_something_of_its_tree_lives(scene, status):
    root, live = await scene.run_in(RunState.COMPLETED, 1), await scene.run_in(status, 2)
    assert await scene.store.client.delete(live.num, 10) is Deleted.LIVE
    [child] = await scene.submit(a_child(3, 1, 1))
    if status is not RunState.SCHEDULED:
        await scene.turn(runs=[a_change(child, status)])
    assert await scene.store.client.delete(root.num, 10) is Deleted.LIVE
    assert len(await scene.store.client.runs("default")) == 3


async def test_a_child_does_not_go_without_its_root(scene):
    await scene.run_in(RunState.RUNNING, 1)
    [child] = await scene.submit(a_child(2, 1, 1))
    await scene.turn(runs=[a_change(child, RunState.COMPLETED)])
    assert await scene.store.client.delete(2, 10) is Deleted.GONE, "there is no such root"
    assert await scene.store.client.find("default", child.id) is not None


async def test_deleting_what_is_not_there_is_deleting_it_again(scene):
    assert await scene.store.client.delete(404, 10) is Deleted.GONE
    assert await scene.store.scheduler.delete(404, 10) is Deleted.GONE


async def test_many_who_delete_the_same_tree_harm_nobody(scene):
    [root, child] = await scene.submit(a_run(1), a_child(2, 1, 1))
    await a_full_run(scene, root, entries=20)
    await a_full_run(scene, child, entries=20)
    await asyncio.gather(*(delete_all(scene.store, 1, limit) for limit in (1, 2, 7, 1_000)))
    assert await scene.store.client.runs("default") == []


# --- retention

ORDER = ("order", 1)
START = (0, 0)


def of_code(num: int, workflow: str, version: int) -> NewRun:
    return msgspec.structs.replace(a_run(num, workflow=workflow), version=version)


async def nums(scene: Scene) -> list[int]:
    return sorted(run.num for run in await scene.store.client.runs("default"))


async def test_codes_of_ended_roots_are_found_with_their_oldest_end(scene):
    scheduler = scene.store.scheduler
    assert (await scheduler.ended_codes("default")).codes == ()
    for num, workflow, version in ((1, "order", 1), (2, "order", 1), (3, "order", 2), (4, "bill", 1), (5, "gone", 7)):
        [run] = await scene.submit(of_code(num, workflow, version))
        await scene.turn(runs=[a_change(run, RunState.COMPLETED)])
        scene.clock.pass_by(HOUR)
    await scene.submit(a_run(6, workflow="open"))
    [child] = await scene.submit(a_child(7, 6, 6))
    await scene.turn(runs=[a_change(child, RunState.COMPLETED)])
    await scheduler.attend(ME, "default", "", ["order@2", "bill@1"], b"{}", None)
    found = await scheduler.ended_codes("default")
    assert found.now == NOON + 5 * HOUR
    assert found.codes == (
        EndedCode("bill", 1, NOON + 3 * HOUR, True),
        EndedCode("gone", 7, NOON + 4 * HOUR, False),
        EndedCode("order", 1, NOON, False),
        EndedCode("order", 2, NOON + 2 * HOUR, True),
    )
    assert (await scheduler.ended_codes("other")).codes == ()


async def test_retention_is_recorded_by_code(scene):
    scheduler = scene.store.scheduler
    assert await scheduler.kept("default") == {}
    await scheduler.keep("default", {ORDER: HOUR, ("bill", 2): None})
    await scheduler.keep("default", {ORDER: None, ("bill", 2): 5, ("new", 1): 0})
    await scheduler.keep("other", {ORDER: 7})
    assert await scheduler.kept("default") == {ORDER: None, ("bill", 2): 5, ("new", 1): 0}


async def test_expired_runs_go_with_all_that_belongs_to_them(scene):
    runs = await scene.submit(*[a_run(num, input=LARGE) for num in range(1, 6)])
    children = await scene.submit(a_child(11, 1, 1), a_child(12, 11, 1))
    for run in (*children, *runs):
        if run.num == 5:
            scene.clock.pass_by(HOUR)
        await a_full_run(scene, run)
    kept = await scene.store.client.record("default", "o-5")
    swept = await scene.store.scheduler.sweep("default", ORDER, HOUR, START, 100)
    assert (swept.deleted, swept.large, swept.after) == (6, (), None)
    assert await nums(scene) == [5]
    after = await scene.store.client.record("default", "o-5")
    assert msgspec.structs.replace(after, waits=()) == msgspec.structs.replace(kept, waits=())
    assert (await scene.store.scheduler.sweep("default", ORDER, HOUR, START, 100)).deleted == 0
    # The same numbers can be used again, and nothing is found under them.
    for again in await scene.store.client.submit([a_run(num, input=b'"other work"') for num in range(1, 5)]):
        assert again.new
    for num in range(1, 5):
        record = await scene.store.client.record("default", f"o-{num}")
        assert (record.journal, record.attempts, record.decisions, record.told) == ((), (), (), ())
        assert await scene.store.client.logs("default", f"o-{num}") == []


async def test_sweep_takes_only_its_code_and_its_age(scene):
    for num, workflow, version in ((1, "order", 1), (2, "order", 2), (3, "bill", 1), (4, "order", 1)):
        [run] = await scene.submit(of_code(num, workflow, version))
        await scene.turn(runs=[a_change(run, RunState.FAILED)])
        scene.clock.pass_by(HOUR)
    sweep = scene.store.scheduler.sweep
    assert (await sweep("other", ORDER, 0, START, 10)).deleted == 0
    assert (await sweep("default", ORDER, 4 * HOUR + 1, START, 10)).deleted == 0
    assert (await sweep("default", ORDER, 2 * HOUR, START, 10)).deleted == 1
    assert await nums(scene) == [2, 3, 4]
    assert (await sweep("default", ORDER, HOUR, START, 10)).deleted == 1
    assert await nums(scene) == [2, 3]


async def test_sweep_goes_on_behind_its_last_root(scene):
    runs = await scene.submit(*[a_run(num) for num in range(1, 8)])
    for run in runs:
        await scene.turn(runs=[a_change(run, RunState.COMPLETED)])
    swept = await scene.store.scheduler.sweep("default", ORDER, 0, START, 3)
    assert (swept.deleted, swept.after is None) == (3, False)
    assert await nums(scene) == [4, 5, 6, 7]
    swept = await scene.store.scheduler.sweep("default", ORDER, 0, swept.after, 10)
    assert (swept.deleted, swept.after) == (4, None)


async def test_tree_with_an_open_run_stays_and_holds_nothing_up(scene):
    [first, second] = await scene.submit(a_run(1), a_run(2))
    [child] = await scene.submit(a_child(3, 1, 1))
    for run in (first, second):
        await scene.turn(runs=[a_change(run, RunState.COMPLETED)])
    swept = await scene.store.scheduler.sweep("default", ORDER, 0, START, 10)
    assert (swept.deleted, swept.large, swept.after) == (1, (), None)
    assert await nums(scene) == [1, 3]
    await scene.turn(runs=[a_change(child, RunState.COMPLETED)])
    assert (await scene.store.scheduler.sweep("default", ORDER, 0, START, 10)).deleted == 2


async def test_large_tree_is_left_to_delete(scene):
    [large, many, small] = await scene.submit(a_run(1), a_run(2), a_run(3))
    await scene.turn(journal=[an_entry(1, seq) for seq in range(1, 300)])
    children = await scene.submit(*[a_child(num, 2, 2) for num in range(1_000, 1_300)])
    await scene.turn(runs=[a_change(run, RunState.COMPLETED) for run in (*children, large, many, small)])
    swept = await scene.store.scheduler.sweep("default", ORDER, 0, START, 10)
    assert (swept.deleted, sorted(swept.large), swept.after) == (1, [1, 2], None)
    for root in swept.large:
        await delete_all(scene.store, root)
    assert await nums(scene) == []


async def test_many_who_sweep_delete_each_run_once(scene):
    runs = await scene.submit(*[a_run(num) for num in range(1, 60)])
    await scene.turn(
        journal=[an_entry(run.num, 1) for run in runs], runs=[a_change(run, RunState.COMPLETED) for run in runs]
    )

    async def one(limit: int) -> int:
        deleted = 0
        while await nums(scene):
            deleted += (await scene.store.scheduler.sweep("default", ORDER, 0, START, limit)).deleted
        return deleted

    assert sum(await asyncio.gather(*[one(limit) for limit in (1, 5, 20)])) == 59


async def test_incident_of_a_swept_run_loses_its_member(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.FAILED)], failed=[NewFailed(1, "charge", False, b"{}")])
    assert len((await scene.store.supervisor.muster(10)).failed) == 1
    assert (await scene.store.scheduler.sweep("default", ORDER, 0, START, 10)).deleted == 1
    assert (await scene.store.supervisor.muster(10)).failed == ()


# --- earlier parts

NOWHERE = (0, 0, 0)


async def a_run_of_parts(scene: Scene, num: int, status: RunState = RunState.RUNNING) -> None:
    """Make a run of three parts: entries 1 to 9, of which 3 says that its deadline has passed; 4 and 7 begin parts."""
    [run] = await scene.submit(a_run(num))
    kinds = {3: Kind.LATE, 4: Kind.CONTINUED, 7: Kind.CONTINUED}
    entries = [
        an_entry(num, seq, body=LARGE if seq in (2, 4, 5, 7) else b"1")._replace(
            kind=kinds.get(seq, Kind.STEP).value, at=NOON + seq * SECOND
        )
        for seq in range(1, 10)
    ]
    await scene.turn(journal=entries, runs=[a_change(run, status)._replace(part=2)])


async def seqs(scene: Scene, num: int) -> list[int]:
    record = await scene.store.client.record("default", f"o-{num}", earlier=True)
    assert record is not None
    return [entry.seq for entry in record.journal]


async def test_ends_of_parts_are_found_by_age_and_for_open_runs_alone(scene):
    await a_run_of_parts(scene, 1)
    await a_run_of_parts(scene, 2, RunState.COMPLETED)
    scene.clock.pass_by(HOUR)
    find = scene.store.scheduler.ended_parts
    page = await find("default", HOUR - 4 * SECOND, NOWHERE, 10)
    assert [(part.run, part.seq, part.workflow, part.version) for part in page.parts] == [(1, 4, "order", 1)]
    assert (page.after, page.more) == ((NOON + 4 * SECOND, 2, 4), False)
    page = await find("default", 0, page.after, 10)
    assert [(part.run, part.seq) for part in page.parts] == [(1, 7)]
    assert (await find("default", 0, page.after, 10)).after is None
    assert (await find("default", 0, NOWHERE, 1)).more
    assert (await find("other", 0, NOWHERE, 10)).parts == ()


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_trim_leaves_the_part_and_the_passed_deadline(scene, limit):
    await a_run_of_parts(scene, 1)
    await a_run_of_parts(scene, 2)
    while await scene.store.scheduler.trim([(1, 7), (2, 4)], limit):
        pass
    assert await seqs(scene, 1) == [3, 7, 8, 9]
    assert await seqs(scene, 2) == [3, 4, 5, 6, 7, 8, 9]
    record = await scene.store.client.record("default", "o-2", earlier=True)
    assert [entry.seq for entry in record.journal if entry.body == LARGE] == [4, 5, 7], "large bodies are whole"
    [loaded] = await scene.store.scheduler.load([1])
    assert [entry.seq for entry in loaded.journal] == [3, 7, 8, 9]
    await scene.turn(journal=[an_entry(1, 10)])
    assert await seqs(scene, 1) == [3, 7, 8, 9, 10]


# --- what is known about a run, and about all


async def test_a_record_names_the_parent_and_what_was_told(scene):
    await scene.submit(a_run(1), a_child(2, 1, 1))
    await scene.store.client.tell([NewFact("default", "o-1", FactKind.CANCEL, "r", "ada", b'"late"')])
    root = await scene.store.client.record("default", "o-1")
    child = await scene.store.client.record("default", "o-1/c-2")
    assert (root.parent, child.parent) == (None, "o-1")
    assert [(fact.kind, fact.actor, fact.body) for fact in root.told] == [(FactKind.CANCEL, "ada", b'"late"')]
    assert (root.cancelling, child.cancelling) == (True, False)


async def test_a_checkup_tells_who_attends_and_what_stands_still(scene):
    await scene.store.scheduler.attend(ME, "default", "", ["order@1"], b"{}", None)
    held, poisoned = await scene.submit(a_run(1), a_run(2))
    await scene.turn(runs=[a_change(held, RunState.RUNNING, held="it killed its process")])
    row = await scene.row_in(AttemptState.FAILED, poisoned)
    await scene.turn(runs=[a_change(poisoned, RunState.RUNNING)])
    assert await scene.judge(a_verdict(row, AttemptState.PARKED, why="quarantine"))
    await scene.run_in(RunState.WAITING, 3)
    await scene.run_in(RunState.COMPLETED, 4)
    await scene.run_in(RunState.DIVERGED, 5)
    await scene.submit(a_run(6, workflow="refund"))
    seen = await scene.store.client.checkup("default", 10)
    assert seen.now == NOON
    assert [(member.id, member.knows) for member in seen.schedulers] == [(ME, ("order@1",))]
    counts: dict[str, int] = {}
    for workflow, _, count in seen.code:
        counts[workflow] = counts.get(workflow, 0) + count
    assert counts == {"order": 4, "refund": 1}
    assert seen.held == (("o-1", "it killed its process"), ("o-5", None))
    assert seen.quarantined == (("o-2", "charge"),)
    assert len((await scene.store.client.checkup("default", 1)).held) == 1
    other = await scene.store.client.checkup("other", 10)
    assert (other.schedulers, other.code, other.held, other.quarantined) == ((), (), (), ())
