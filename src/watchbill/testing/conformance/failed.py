"""Failed: runs that have ended because a step failed for good are members of incidents, until somebody sees to them."""

import asyncio
from functools import partial

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import Decision
from watchbill.model.facts import FactKind, RetryAsked
from watchbill.model.failed import (
    NOT_SEEN_FOR,
    Copied,
    FailedGathering,
    FailedMember,
    FailedPage,
    FailedRun,
    NewFailed,
)
from watchbill.model.failure import Cause, FinalFailure, RunError
from watchbill.model.incident import IncidentState, NewIncident, Told
from watchbill.model.member import Attached, Muster, Order
from watchbill.model.resolution import Action, Resolution, Wanted
from watchbill.model.run import NewRun, RunRow
from watchbill.model.states import RunState
from watchbill.store.protocol import Hint, NewFact, Ordered
from watchbill.testing.conformance.scene import NOON, Scene, a_change, a_run

EVERY = 1_000
RETRY = msgspec.json.encode(Resolution(Action.RETRY, "mended"))
LEFT = msgspec.json.encode(Decision(rule="somebody leaves it as it is", chosen="skip", message="nobody wants it"))
WAY = {
    RunState.FAILED: (RunState.FAILED,),
    RunState.UNDONE: (RunState.UNDOING, RunState.UNDONE),
    RunState.UNDO_FAILED: (RunState.UNDOING, RunState.UNDO_FAILED),
}


def an_end(run: int) -> JournalEntry:
    body = msgspec.json.encode(RunError("ValueError", "no", step="charge", attempts=4))
    return JournalEntry(run, 1, Kind.END, "", 0, 0, Outcome.FAILED, None, None, NOON, body)


def a_failure(run: int, message: str = "no", *, step: str = "charge", undo: bool = False) -> NewFailed:
    body = msgspec.json.encode(FinalFailure(step, "ValueError", message, 4, Cause.RAISED))
    return NewFailed(run, step, undo, body)


async def failed(
    scene: Scene,
    *nums: int,
    state: RunState = RunState.FAILED,
    message: str = "no",
    step: str = "charge",
    read: bool = True,
) -> list[RunRow]:
    """Let runs end because a step failed for good."""
    runs = await scene.submit(*(a_run(num) for num in nums))
    *first, last = WAY[state]
    for status in first:
        await scene.turn(runs=[a_change(run, status) for run in runs])
    undo = state is RunState.UNDO_FAILED
    await scene.turn(
        journal=[an_end(run.num) for run in runs],
        runs=[a_change(run, last) for run in runs],
        failed=[a_failure(run.num, message, step=step, undo=undo) for run in runs],
    )
    return [await scene.run_row(run.id) for run in runs] if read else runs


def gathering(id: int, *nums: int, cause: str = "failure of charge", routes: tuple[str, ...] = ()) -> FailedGathering:
    body = msgspec.json.encode(Told("it failed", "decide"))
    return FailedGathering(NewIncident(id, "default", cause, len(nums), body, "", routes), nums)


async def muster(scene: Scene, limit: int = EVERY) -> Muster:
    return await scene.store.supervisor.muster(limit)


async def ordered(scene: Scene, incident: int, body: bytes = RETRY, per_second: int = 2) -> Order:
    done = await scene.store.client.order_incident("default", incident, "ada", body, per_second, failed=True)
    assert done is Ordered.DONE
    [order] = (await muster(scene)).orders
    return order


async def untold(scene: Scene, incident: int) -> int:
    """Say for how many runs of an incident nothing of what is wanted for all has been done: each says so itself."""
    client = scene.store.client
    [found] = [row for row in await client.incidents("default", EVERY) if row.id == incident]
    assert (found.ordered_by, found.ordered, found.per_second) == ("ada", RETRY, 2)
    records = [await client.record("default", f"o-{num}") for num in range(1, found.members + 1)]
    wanted = [record.wanted for record in records if record is not None and record.wanted is not None]
    assert set(wanted) == {Wanted("ada", NOON, 2, RETRY)}
    assert len(wanted) == found.untold
    return found.untold


async def retried(scene: Scene, incident: int, source: RunRow, num: int, n: int = 2) -> Copied:
    new = NewRun(num, "default", f"{source.id}~{n}", source.workflow, source.version, source.input)
    told = NewFact("default", new.id, FactKind.RETRY, "1", "ada", msgspec.json.encode(RetryAsked(None, "mended")))
    return await scene.store.supervisor.retry_failed(incident, source.num, new, (), first=None, told=told)


# --- who belongs to an incident


@pytest.mark.parametrize("state", WAY)
async def test_a_run_that_ends_because_a_step_failed_for_good_is_told_of_until_it_belongs_to_an_incident(scene, state):
    [run] = await failed(scene, 1, state=state)
    found = (await muster(scene)).failed
    undo = state is RunState.UNDO_FAILED
    assert found == (FailedRun(1, "default", "o-1", "charge", undo, a_failure(1).body),)
    assert await scene.store.supervisor.attach_failed([gathering(7, 1)]) == [Attached(1, new=True)]
    seen = await muster(scene)
    assert (seen.failed, seen.healed, seen.next_at) == ((), (), NOON + NOT_SEEN_FOR + 1)
    assert await scene.run_row("o-1") == run  # what has ended never changes
    record = await scene.store.client.record("default", "o-1")
    assert record is not None
    assert record.incident == 7


async def test_a_run_that_ends_otherwise_is_nobodys_trouble(scene):
    runs = await scene.submit(a_run(1), a_run(2), a_run(3))
    ends = (RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED)
    await scene.turn(runs=[a_change(run, status) for run, status in zip(runs, ends, strict=True)])
    seen = await muster(scene)
    assert (seen.failed, seen.next_at) == ((), None)


async def test_a_turn_that_is_refused_tells_of_nothing_and_one_sent_again_tells_once(scene):
    [run] = await scene.submit(a_run(1))
    turn = scene.a_turn(journal=[an_end(1)], runs=[a_change(run, RunState.FAILED)], failed=[a_failure(1)])
    stale = msgspec.structs.replace(turn, terms={shard: term - 1 for shard, term in turn.terms.items()})
    assert not (await scene.store.scheduler.turn(stale)).applied
    assert (await muster(scene)).failed == ()
    assert (await scene.store.scheduler.turn(turn)).applied
    assert (await scene.store.scheduler.turn(turn, again=True)).applied
    assert len((await muster(scene)).failed) == 1


async def test_a_turn_in_which_a_run_fails_gives_supervisors_a_hint(scene):
    heard = []
    scene.store.listen(Hint.SUPERVISOR, lambda: heard.append(1))
    await failed(scene, 1)
    assert heard


async def test_those_that_failed_are_read_page_by_page(scene):
    await failed(scene, *range(1, 8))
    seen = []
    for incident in range(10, 20):
        page = (await muster(scene, 3)).failed
        assert len(page) <= 3
        if not page:
            break
        seen += [run.num for run in page]
        await scene.store.supervisor.attach_failed([gathering(incident, *(run.num for run in page))])
    assert seen == list(range(1, 8))
    [incident] = await scene.store.client.incidents("default", EVERY)
    assert (incident.id, incident.members, incident.waiting, incident.failed) == (10, 7, 7, True)


async def test_supervisors_that_see_the_same_open_it_once_and_count_each_run_once(scene):
    await failed(scene, 1, 2, 3)
    doors = scene.store.supervisor
    answers = await asyncio.gather(
        *(doors.attach_failed([gathering(id, 1, 2, 3, routes=("r",))]) for id in range(1, 9))
    )
    assert sorted(one for [one] in answers) == sorted([Attached(3, new=True), *[Attached(0, new=False)] * 7])
    [incident] = await scene.store.client.incidents("default", EVERY)
    assert (incident.members, incident.waiting) == (3, 3)
    assert len((await doors.take_alerts(["r"], EVERY, SECOND)).alerts) == 1


async def test_one_that_fails_later_belongs_to_the_incident_that_is_open(scene):
    await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1, routes=("r",))])
    await failed(scene, 2)
    assert await scene.store.supervisor.attach_failed([gathering(8, 2, routes=("r",))]) == [Attached(1, new=False)]
    [incident] = await scene.store.client.incidents("default", EVERY)
    assert (incident.id, incident.members, incident.waiting) == (7, 2, 2)
    assert len((await scene.store.supervisor.take_alerts(["r"], EVERY, SECOND)).alerts) == 1


async def test_for_runs_that_are_there_no_more_nothing_is_opened(scene):
    assert await scene.store.supervisor.attach_failed([gathering(7, 99)]) == [Attached(0, new=False)]
    assert await scene.store.client.incidents("default", EVERY) == []


async def test_an_order_about_runs_that_is_repeated_is_done_however_far_it_has_come(scene):
    [run] = await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1)])
    order = partial(scene.store.client.order_incident, "default", 7, "ada", RETRY, 2, failed=True)
    assert await order(number=5) is Ordered.DONE
    assert await retried(scene, 7, run, 3) is Copied.MADE
    assert await healed(scene) == [7]
    assert await order(number=5) is Ordered.DONE, "an answer was lost"
    assert await order(number=6) is Ordered.RESOLVED


# --- when it is over


async def healed(scene: Scene) -> list[int]:
    found = (await muster(scene)).healed
    done = await scene.store.supervisor.heal(found)
    return [row.id for row, so in zip(found, done, strict=True) if so]


async def test_it_is_over_when_each_was_gone_on_with_or_deleted(scene):
    one, two = await failed(scene, 1, 2)
    await scene.store.supervisor.attach_failed([gathering(7, 1, 2, routes=("r",))])
    copy = NewRun(3, "default", "o-1~2", "order", 1, b"[]")
    assert await scene.store.client.copy(copy, one.num, (), loose=False) is Copied.MADE
    assert await healed(scene) == []
    assert [row.waiting for row in await scene.store.client.incidents("default", EVERY)] == [1]
    await scene.store.client.delete(two.num, EVERY)
    assert await healed(scene) == [7]
    assert await healed(scene) == []
    [incident] = await scene.store.client.incidents("default", EVERY)
    assert (incident.state, incident.members) == (IncidentState.RESOLVED, 2)
    record = await scene.store.client.record("default", "o-1")
    assert record is not None
    assert record.incident is None


async def test_a_copy_that_is_not_made_leaves_the_run_where_it_is(scene):
    [one] = await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1)])
    await scene.submit(NewRun(2, "default", "o-1x", "order", 1, b"[]"))
    copy = NewRun(3, "default", "o-1x", "order", 1, b"[]")
    assert await scene.store.client.copy(copy, one.num, (), loose=False) is Copied.TAKEN
    assert await healed(scene) == []


async def test_what_is_to_belong_to_an_incident_is_gone_on_with_while_it_does(scene):
    one, two = await failed(scene, 1, 2)
    await scene.store.supervisor.attach_failed([gathering(7, 1, 2)])
    copy = scene.store.client.copy
    new = [NewRun(num, "default", f"o-{num}", "order", 1, b"[]") for num in (3, 4, 5)]
    assert await copy(new[0], one.num, (), loose=False, member=8) is Copied.GONE, "it belongs to another one"
    assert await copy(new[0], one.num, (), loose=False, member=7) is Copied.MADE
    assert await copy(new[0], one.num, (), loose=False, member=7) is Copied.MADE, "the answer was lost"
    assert await copy(new[1], one.num, (), loose=False, member=7) is Copied.GONE, "it is gone on with already"
    assert await retried(scene, 7, two, 9) is Copied.MADE
    assert await copy(new[1], two.num, (), loose=False, member=7) is Copied.GONE, "so is this one"
    assert await copy(new[2], two.num, (), loose=False) is Copied.MADE, "whoever wants another one has it"


async def test_one_that_has_got_another_member_since_it_was_seen_is_not_over(scene):
    await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1)])
    await scene.store.client.delete(1, EVERY)
    found = (await muster(scene)).healed
    await failed(scene, 2)
    await scene.store.supervisor.attach_failed([gathering(8, 2)])
    assert await scene.store.supervisor.heal(found) == [False]


async def test_what_was_not_seen_again_for_long_is_over_and_a_new_incident_when_it_comes_back(scene, clock):
    await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1)])
    clock.pass_by(NOT_SEEN_FOR - SECOND)
    await failed(scene, 2)
    await scene.store.supervisor.attach_failed([gathering(8, 2)])
    clock.pass_by(2 * SECOND)
    assert await healed(scene) == []  # it was seen again
    clock.pass_by(NOT_SEEN_FOR)
    [row] = (await muster(scene)).healed
    assert row.waiting == 2
    assert await healed(scene) == [7]
    assert (await muster(scene)).failed == ()  # they are not told of again
    await failed(scene, 3)
    assert await scene.store.supervisor.attach_failed([gathering(9, 3)]) == [Attached(1, new=True)]


async def test_it_is_not_over_while_somebody_wants_something_for_its_runs(scene, clock):
    await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1)])
    clock.pass_by(NOT_SEEN_FOR + SECOND)
    await ordered(scene, 7)
    assert (await muster(scene)).healed == ()


async def test_whoever_goes_on_with_a_run_or_deletes_it_gives_supervisors_a_hint_that_it_may_be_over(scene):
    one, two = await failed(scene, 1, 2)
    await scene.store.supervisor.attach_failed([gathering(7, 1, 2)])
    heard = []
    scene.store.listen(Hint.SUPERVISOR, lambda: heard.append(1))
    await scene.store.client.copy(NewRun(3, "default", "o-1~2", "order", 1, b"[]"), one.num, (), loose=False)
    assert heard
    if scene.store.lasting_leases:
        heard.clear()
        await scene.store.client.delete(two.num, EVERY)
        assert heard  # where others share the store, supervisors look by themselves


# --- what somebody wants for all of them


async def test_runs_that_have_ended_are_told_nothing_that_is_for_calls_or_for_runs_that_stand_still(scene):
    await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1)])
    client = scene.store.client
    assert await client.order_incident("default", 7, "ada", RETRY, 2) is Ordered.FAILED
    assert await client.order_incident("default", 7, "ada", b"null", 2, kind=FactKind.CANCEL) is Ordered.FAILED
    assert (await muster(scene)).orders == ()
    await scene.store.supervisor.open_incidents([NewIncident(8, "default", "no code", 1, b"{}")])
    assert await client.order_incident("default", 8, "ada", RETRY, 2, failed=True) is Ordered.NO_CALLS
    assert await client.order_incident("default", 9, "ada", RETRY, 2, failed=True) is Ordered.UNKNOWN
    assert await client.order_incident("other", 7, "ada", RETRY, 2, failed=True) is Ordered.UNKNOWN


async def test_an_order_is_there_until_it_is_done_and_one_at_a_time(scene):
    await failed(scene, 1)
    await scene.store.supervisor.attach_failed([gathering(7, 1)])
    order = await ordered(scene, 7)
    assert order == Order(7, 2, None, False, True, RETRY, "ada")
    client = scene.store.client
    assert await client.order_incident("default", 7, "ada", RETRY, 2, failed=True) is Ordered.DONE  # an answer was lost
    assert await client.order_incident("default", 7, "bob", RETRY, 2, failed=True) is Ordered.BUSY


async def test_the_next_ones_are_given_to_one_supervisor_and_again_to_whoever_goes_on_after_its_death(scene, clock):
    doors = scene.store.supervisor
    await failed(scene, *range(1, 6))
    await doors.attach_failed([gathering(7, *range(1, 6))])
    order = await ordered(scene, 7)
    page = await doors.next_failed(order, 2)
    assert page == FailedPage((FailedMember(1, "default", "o-1"), FailedMember(2, "default", "o-2")), NOON)
    assert await doors.next_failed(order, 2) is None
    clock.pass_by(SECOND)
    [again] = (await muster(scene)).orders
    assert again.fed_at == NOON
    page = await doors.next_failed(again, 2)
    assert page is not None
    assert [member.num for member in page.members] == [1, 2]
    assert not await doors.fed_failed(again, 2, done=False)  # whoever was before has nothing to say any more
    assert await doors.fed_failed(again._replace(fed_at=page.fed_at), 2, done=False)
    clock.pass_by(SECOND)
    [last] = (await muster(scene)).orders
    page = await doors.next_failed(last, 9)
    assert page is not None
    assert [member.num for member in page.members] == [3, 4, 5]
    assert await doors.fed_failed(last._replace(fed_at=page.fed_at), 5, done=True)
    assert (await muster(scene)).orders == ()


async def test_meant_are_those_that_had_failed_when_it_was_wanted(scene, clock):
    doors = scene.store.supervisor
    await failed(scene, 1)
    await doors.attach_failed([gathering(7, 1)])
    order = await ordered(scene, 7)
    clock.pass_by(SECOND)
    await failed(scene, 2)
    await doors.attach_failed([gathering(8, 2)])
    page = await doors.next_failed(order, 9)
    assert page is not None
    assert [member.num for member in page.members] == [1]


async def test_each_goes_on_once_and_is_told_why(scene):
    doors = scene.store.supervisor
    one, two = await failed(scene, 1, 2)
    await doors.attach_failed([gathering(7, 1, 2)])
    await ordered(scene, 7)
    became = await asyncio.gather(*(retried(scene, 7, one, 100 + n, n) for n in range(2, 8)))
    assert sorted(became) == [Copied.GONE] * 5 + [Copied.MADE]
    [copy] = [run for run in await scene.store.client.runs("default") if "~" in run.id]
    record = await scene.store.client.record("default", copy.id)
    assert record is not None
    assert [(fact.kind, fact.actor) for fact in record.told] == [(FactKind.RETRY, "ada")]
    assert msgspec.json.decode(record.told[0].body)["reason"] == "mended"
    assert await retried(scene, 8, two, 200) is Copied.GONE  # of another incident
    await scene.submit(NewRun(300, "default", "o-2~2", "order", 1, b"[]"))
    assert await retried(scene, 7, two, 301) is Copied.TAKEN
    assert await retried(scene, 7, two, 301, 3) is Copied.MADE
    assert [row.waiting for row in await scene.store.client.incidents("default", EVERY)] == [0]


async def test_those_that_are_left_as_they_are_leave_it_page_by_page_and_it_is_written_down_who_wants_that(
    scene, clock
):
    doors = scene.store.supervisor
    await failed(scene, *range(1, 6))
    await doors.attach_failed([gathering(7, *range(1, 6))])
    order = await ordered(scene, 7)
    assert await untold(scene, 7) == 5
    assert await doors.leave_failed(order, 3, LEFT) == 3
    assert await doors.leave_failed(order, 3, LEFT) == 0  # somebody did, since it was seen
    clock.pass_by(SECOND)
    assert await untold(scene, 7) == 2
    [order] = (await muster(scene)).orders
    assert await doors.leave_failed(order, 3, LEFT) == 2
    assert (await muster(scene)).orders == ()
    assert await healed(scene) == [7]
    for num in range(1, 6):
        assert (await scene.run_row(f"o-{num}")).status is RunState.FAILED
        [said] = await scene.decisions(f"o-{num}")
        assert (said.actor, msgspec.json.decode(said.body)["chosen"]) == ("ada", "skip")


async def test_a_run_that_is_deleted_leaves_nothing_of_this(scene):
    await failed(scene, 1)
    await scene.store.client.delete(1, EVERY)
    assert (await muster(scene)).failed == ()
