"""What goes wrong in the pattern as textbooks print it, and what Watchbill does in the same situation on every store.

The pairs stand beside each other: first the defect, shown in `textbook.py`, then ours: the rooms are the real ones, the
clock is moved by hand, and agents are played through their doors.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.rooms import textbook
from tests.rooms.textbook import MINUTE, Book, Task, beats, completes, fails
from tests.rooms.watched import A_LEASE, MANY, OTHER, Watched, watching
from watchbill import App, InvalidOptionError
from watchbill.clock import SECOND, Micros
from watchbill.model.agent import Act, Answer
from watchbill.model.alert import AlertKind
from watchbill.model.failure import Cause, Failure
from watchbill.model.lease import HOST_LEASE
from watchbill.model.policy import DEFAULT_RETRIES, DEFAULT_TIMEOUT, QUARANTINE_AT, Cures, Policy, Rung
from watchbill.model.states import AttemptState
from watchbill.store.protocol import AVOID_FOR
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import judge
from watchbill.supervisor.judgement import judgement
from watchbill.testing.conformance.scene import AGENT, ME, a_verdict, to_judge

RAISED = msgspec.json.encode(Failure("ConnectionError", "no line"))
KILLED = msgspec.json.encode(Failure("Died", "its worker was killed", cause=Cause.KILLED))
ESCALATES = msgspec.json.encode(Policy(retries=0, cures=Cures(ladder=(Rung(to="team"),))))


@pytest.fixture
async def here(kept: str) -> AsyncIterator[Watched]:
    async with watching(kept) as here:
        yield here


def a_book(*, agents: int = 1, tasks: int = 1) -> Book:
    return Book(
        [Task(f"t-{n}", "encode") for n in range(1, tasks + 1)],
        [textbook.Agent(f"a-{n}", ("encode",)) for n in range(1, agents + 1)],
    )


# --- what is found and then changed was changed by another one in between


async def test_in_the_textbook_two_schedulers_assign_one_task_twice() -> None:
    book = a_book()
    schedulers = [textbook.Scheduler(book), textbook.Scheduler(book)]
    await asyncio.gather(*(scheduler.schedule() for scheduler in schedulers))
    assert [scheduler.assigned for scheduler in schedulers] == [[("t-1", "a-1")], [("t-1", "a-1")]]


async def test_here_one_scheduler_has_a_run_and_one_agent_gets_a_call(here: Watched) -> None:
    doors = here.scene.store.scheduler
    shards = await doors.shards("default", "")
    assert (await doors.take(ME + 1, shards, HOST_LEASE)).taken == ()
    run = await here.a_run()
    turn = msgspec.structs.replace(here.scene.a_turn(attempts=[here.scene.a_row(run)]), owner=ME + 1)
    assert not (await doors.turn(turn)).applied, "nor does a scheduler write for another one"
    await here.scene.turn(attempts=[here.scene.a_row(run, call=f"charge.{n}") for n in range(MANY)])
    await here.joins(OTHER)
    leased = await asyncio.gather(*(here.scene.lease(agent, limit=MANY) for agent in (AGENT, OTHER, AGENT, OTHER)))
    rows = [row.id for mine in leased for row in mine]
    assert len(rows) == len(set(rows)) == MANY


async def test_in_the_textbook_a_supervisor_puts_back_what_was_completed_while_it_looked() -> None:
    book = a_book()
    await textbook.Scheduler(book).schedule()
    await textbook.Supervisor(book).find_silent_agents(now=2 * MINUTE)
    await asyncio.gather(textbook.Supervisor(book).recover_tasks(), completes(book, await book.task("t-1"), "done"))
    assert book.results == {"t-1": "done"}
    assert (await book.task("t-1")).status == "pending", "it will be done once more"


async def test_here_a_verdict_on_what_has_changed_meanwhile_is_refused(here: Watched) -> None:
    await here.joins(OTHER)
    [id] = await here.ready()
    [seen] = await here.scene.lease(OTHER)
    here.clock.pass_by(HOST_LEASE)
    watch = await here.scene.store.supervisor.watch(MANY)
    [orphan], [dead] = watch.orphans, watch.dead
    assert orphan == to_judge(seen)
    symptom = diagnose(orphan, here.clock.wall(), dead=dead)
    assert symptom is not None
    assert await here.report(seen, Act.DONE, b"1", agent=OTHER) is Answer.ACCEPTED
    verdict = judgement(orphan, symptom, judge(symptom, orphan, Policy(), 0.0))
    assert await here.scene.store.supervisor.judge([verdict]) == [False]
    row = await here.scene.row(id)
    assert (row.state, row.result) == (AttemptState.DONE, b"1")
    assert await here.scene.decisions("o-1") == []


# --- who was given up comes back with a result


async def test_in_the_textbook_a_late_result_replaces_the_one_that_counts() -> None:
    book = a_book(agents=2)
    await textbook.Scheduler(book).schedule()
    frozen = await book.task("t-1")
    await beats(book, "a-2", now=2 * MINUTE)
    await textbook.Supervisor(book).tick(now=2 * MINUTE)
    await textbook.Scheduler(book).schedule()
    again = await book.task("t-1")
    assert (frozen.agent, again.agent) == ("a-1", "a-2")
    await completes(book, again, "of the second")
    await completes(book, frozen, "of the first")
    assert book.results == {"t-1": "of the first"}


async def test_here_a_late_result_is_refused_and_the_other_one_stands(here: Watched) -> None:
    await here.joins(OTHER)
    [id] = await here.ready()
    [frozen] = await here.scene.lease(OTHER)
    await here.passes(A_LEASE)
    [again] = await here.scene.lease(AGENT)
    assert (again.id, again.fence > frozen.fence) == (id, True)
    assert await here.report(frozen, Act.DONE, b'"of the first"', agent=OTHER) is Answer.LATE, (
        "also while the other runs"
    )
    assert await here.report(again, Act.DONE, b'"of the second"') is Answer.ACCEPTED
    assert await here.report(frozen, Act.DONE, b'"of the first"', agent=OTHER) is Answer.LATE
    assert (await here.scene.row(id)).result == b'"of the second"'


# --- who was silent is heard again


async def test_in_the_textbook_who_was_offline_once_stays_so() -> None:
    book = a_book()
    supervisor, scheduler = textbook.Supervisor(book), textbook.Scheduler(book)
    await supervisor.tick(now=2 * MINUTE)
    for minute in range(3, 9):
        await beats(book, "a-1", now=minute * MINUTE)
        await supervisor.tick(now=minute * MINUTE)
        await scheduler.schedule()
    [agent] = await book.agents()
    assert (agent.status, agent.last_beat, scheduler.assigned) == ("offline", 8 * MINUTE, [])


async def test_here_who_is_heard_again_gets_work_again(here: Watched) -> None:
    await here.joins(OTHER)
    [id] = await here.ready()
    assert len(await here.scene.lease(OTHER)) == 1
    await here.passes(A_LEASE)
    assert (await here.scene.row(id)).state is AttemptState.READY
    assert await here.scene.lease(OTHER) == [], "nobody gives it anything while it is silent"
    assert await here.beats(OTHER)
    new = here.scene.a_row(await here.a_run(2))
    await here.scene.turn(attempts=[new])
    assert [row.id for row in await here.scene.lease(OTHER)] == [new.id], "what it lost is for another one first"
    here.clock.pass_by(AVOID_FOR)
    assert await here.beats(OTHER)
    assert [row.id for row in await here.scene.lease(OTHER)] == [id], "if nobody takes that, it may have it again"


# --- what it works on kills whoever does


async def test_in_the_textbook_a_task_that_kills_every_agent_goes_on_for_ever() -> None:
    book = a_book(agents=MANY)
    scheduler, supervisor = textbook.Scheduler(book), textbook.Supervisor(book)
    for number in range(1, MANY + 1):
        await scheduler.schedule()
        for other in range(number + 1, MANY + 1):  # whoever was given it beats no more
            await beats(book, f"a-{other}", now=number * 2 * MINUTE)
        await supervisor.tick(now=number * 2 * MINUTE)
    task = await book.task("t-1")
    assert scheduler.assigned == [("t-1", f"a-{number}") for number in range(1, MANY + 1)]
    assert (task.status, task.retries) == ("pending", 0), "and so it goes on"


async def test_here_what_kills_five_times_waits_for_a_person(here: Watched) -> None:
    [id] = await here.ready()
    for loss in range(1, QUARANTINE_AT + 1):
        [row] = await here.scene.lease()
        assert (row.losses, row.failures) == (loss, 0), "the author's retries are another budget"
        assert await here.report(row, Act.DIED, KILLED) is Answer.ACCEPTED
        await here.looks()
    await here.passes(60)
    held = await here.scene.row(id)
    assert (held.state, held.why, held.watch_at) == (AttemptState.PARKED, "quarantine", None)
    assert await here.scene.lease() == []
    assert here.heard("step.quarantined") == 1


# --- somebody is told


async def test_in_the_textbook_everybody_is_told_everything_at_every_tick() -> None:
    book = a_book()
    supervisor = textbook.Supervisor(book)
    await book.update_task(Task("t-1", "encode", status="failed", retries=3))
    for _ in range(10):
        await supervisor.tick(now=2 * MINUTE)
    assert len(supervisor.alerts) == 20
    assert len(set(supervisor.alerts)) == 2


async def test_here_an_incident_is_told_once_and_its_end_once(here: Watched) -> None:
    queue = await here.scene.store.scheduler.queue("default", "", ("gpu",), "")
    ids = await here.ready(rows=MANY, policy=ESCALATES)
    await here.scene.turn(attempts=[here.scene.a_row(await here.a_run(2), queue=queue)])
    for row in await here.scene.lease():
        await here.report(row, Act.FAILED, RAISED)
    await here.passes(90)
    [(_, failed), (_, unserved)] = here.sent
    assert failed.startswith("escalate of charge ")
    assert unserved == "no agent for gpu"
    assert here.heard("incident.opened") == 2
    await here.scene.turn(released=ids)
    await here.scene.store.agent.join(OTHER, "default", "", "b", b"{}", None, needs=("gpu",))
    await here.passes(30)
    ends = {(AlertKind.RESOLVED, failed), (AlertKind.RESOLVED, unserved)}
    assert (len(here.sent), set(here.sent[2:])) == (4, ends)


# --- a state is a word


async def test_in_the_textbook_any_word_is_a_status_and_any_change_is_allowed() -> None:
    book = a_book(tasks=2)
    await book.update_task(Task("t-1", "encode", status="complete"))
    known = [len(await book.tasks(status)) for status in ("pending", "running", "completed", "failed")]
    assert sum(known) == 1, "nobody will ever find the other one"
    await completes(book, await book.task("t-2"), "done")
    await book.update_task(Task("t-2", "encode"))
    assert (await book.task("t-2")).status == "pending"


async def test_here_states_are_a_closed_list_and_the_store_refuses_what_is_not_in_the_table(
    here: Watched, kept: str
) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        AttemptState("complete")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="did you mean 'completed'"):
        async for _ in App(kept).runs(status="complete"):
            pass
    [id] = await here.ready()
    [row] = await here.scene.lease()
    assert await here.report(row, Act.DONE, b"1") is Answer.ACCEPTED
    done = await here.scene.row(id)
    for after in AttemptState:
        assert not await here.scene.judge(a_verdict(done, after))
    assert await here.report(row, Act.FAILED, RAISED) is not Answer.ACCEPTED
    with pytest.raises(ValueError, match="a row begins as ready, running or failed"):
        await here.scene.turn(attempts=[here.scene.a_row(await here.a_run(2), AttemptState.DONE)])
    assert await here.scene.row(id) == done


# --- again


async def test_in_the_textbook_all_retries_are_used_up_in_no_time_and_all_together() -> None:
    book = a_book(agents=MANY, tasks=MANY)
    scheduler, supervisor = textbook.Scheduler(book), textbook.Supervisor(book)
    for _ in range(4):
        await scheduler.schedule()
        for n in range(1, MANY + 1):
            await fails(book, f"t-{n}")
        await supervisor.tick(now=0.0)
    assert len(scheduler.assigned) == 4 * MANY
    assert len(supervisor.alerts) == MANY, "nothing is left, and no time has passed"


async def test_here_each_retry_waits_longer_than_the_one_before_and_not_with_all_the_others(here: Watched) -> None:
    await here.ready(rows=MANY)
    for retry in range(DEFAULT_RETRIES):
        for row in await here.scene.lease():
            await here.report(row, Act.FAILED, RAISED)
        failed_at = (await here.scene.store.supervisor.watch(MANY)).now
        await here.looks()
        assert await here.scene.lease() == []
        parked = (await here.scene.rows()).values()
        waits: set[Micros] = {(row.watch_at or 0) - failed_at for row in parked}
        assert SECOND << retry <= min(waits)
        assert max(waits) <= (SECOND << retry) * 1.25
        assert len(waits) > MANY // 2, "they are spread"
        await here.passes(2 << retry)
    for row in await here.scene.lease():
        await here.report(row, Act.FAILED, RAISED)
    await here.looks()
    assert {row.state for row in (await here.scene.rows()).values()} == {AttemptState.GAVE_UP}


# --- it hangs, and its agent beats


async def test_in_the_textbook_what_hangs_is_never_found_while_its_agent_beats() -> None:
    book = a_book()
    supervisor = textbook.Supervisor(book)
    await textbook.Scheduler(book).schedule()
    for hour in range(24):
        await beats(book, "a-1", now=hour * 60 * MINUTE)
        await supervisor.tick(now=hour * 60 * MINUTE)
    assert ((await book.task("t-1")).status, supervisor.alerts) == ("running", [])


async def test_here_every_step_has_a_timeout_although_its_agent_beats(here: Watched) -> None:
    span = DEFAULT_TIMEOUT // 1_000  # milliseconds
    [id] = await here.ready(span=span)
    [row] = await here.scene.lease()
    here.clock.pass_by(DEFAULT_TIMEOUT - A_LEASE * SECOND)
    await here.passes(A_LEASE - 1)
    assert await here.scene.row(id) == row, "its agent is alive, and it is in time"
    await here.passes(2)
    late = await here.scene.row(id)
    assert (late.state, late.failures, late.losses) == (AttemptState.PARKED, 1, 0)
    assert here.heard("step.late") == 1
    assert await here.report(row, Act.DONE, b"1") is Answer.LATE
