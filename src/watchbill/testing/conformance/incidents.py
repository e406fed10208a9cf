"""Incidents: of each cause one is open at most; and what tells whether somebody can do what waits."""

import asyncio

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.model.incident import (
    RESOLVED_KEPT_FOR,
    Able,
    Attending,
    IncidentState,
    NewIncident,
    OpenCode,
    Told,
)
from watchbill.model.run import NewRun
from watchbill.model.states import AttemptState, RunState
from watchbill.testing.conformance.scene import KNOWN, ME, NOON, a_change, a_run

EVERY = 1_000


def an_incident(
    id: int, cause: str = "no agent for gpu", *, namespace: str = "default", members: int = 3
) -> NewIncident:
    return NewIncident(id, namespace, cause, members, msgspec.json.encode(Told(f"{members} wait", "start one")))


# --- incidents


async def test_an_incident_is_open_until_it_is_resolved(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    assert await doors.open_incidents([an_incident(1)]) == [True]
    [open] = await doors.incidents()
    assert (open.id, open.namespace, open.cause, open.members) == (1, "default", "no agent for gpu", 3)
    assert (open.state, open.opened_at, open.resolved_at) == (IncidentState.OPEN, NOON, None)
    assert msgspec.json.decode(open.body, type=Told) == Told("3 wait", "start one")
    clock.pass_by(60 * SECOND)
    assert await doors.resolve_incidents([1]) == [True]
    assert await doors.incidents() == []
    [resolved] = await client.incidents("default", EVERY)
    assert (resolved.state, resolved.resolved_at) == (IncidentState.RESOLVED, NOON + 60 * SECOND)


async def test_of_each_cause_one_is_open_and_says_what_is_so_now(scene, clock):
    doors = scene.store.supervisor
    await doors.open_incidents([an_incident(1), an_incident(2, namespace="other"), an_incident(3, "no code")])
    clock.pass_by(SECOND)
    again = [an_incident(4, members=7), an_incident(5, "no scheduler")]
    assert await doors.open_incidents(again) == [False, True]
    found = {(row.namespace, row.cause): (row.id, row.members, row.opened_at) for row in await doors.incidents()}
    assert found == {
        ("default", "no agent for gpu"): (1, 7, NOON),
        ("default", "no code"): (3, 3, NOON),
        ("default", "no scheduler"): (5, 3, NOON + SECOND),
        ("other", "no agent for gpu"): (2, 3, NOON),
    }


async def test_what_comes_back_is_a_new_incident(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    await doors.open_incidents([an_incident(1)])
    await doors.resolve_incidents([1])
    clock.pass_by(SECOND)
    assert await doors.open_incidents([an_incident(2)]) == [True]
    assert [row.id for row in await client.incidents("default", EVERY)] == [2, 1]
    assert [row.id for row in await client.incidents("default", 1)] == [2]
    assert await client.incidents("other", EVERY) == []


async def test_an_incident_is_resolved_once(scene):
    doors = scene.store.supervisor
    await doors.open_incidents([an_incident(1)])
    assert await doors.resolve_incidents([1, 99]) == [True, False]
    assert await doors.resolve_incidents([1]) == [False]


async def test_those_that_are_open_are_read_without_the_others(scene):
    doors, client = scene.store.supervisor, scene.store.client
    await doors.open_incidents([an_incident(1), an_incident(2, "no code")])
    await doors.resolve_incidents([1])
    assert [row.id for row in await client.incidents("default", EVERY, resolved=False)] == [2]
    assert len(await client.incidents("default", EVERY, resolved=True)) == 2


async def test_those_resolved_long_ago_are_forgotten_some_at_a_time_and_no_open_one_ever(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    await doors.open_incidents([an_incident(id, f"no agent for {id}") for id in (1, 2, 3, 4)])
    await doors.resolve_incidents([1, 2])
    clock.pass_by(RESOLVED_KEPT_FOR)
    await doors.resolve_incidents([3])
    assert await doors.forget_incidents(1) == 0
    clock.pass_by(SECOND)
    assert await doors.forget_incidents(1) == 1
    assert await doors.forget_incidents(EVERY) == 1
    assert await doors.forget_incidents(EVERY) == 0
    assert {row.id for row in await client.incidents("default", EVERY)} == {3, 4}


async def test_supervisors_that_see_the_same_open_it_once(scene):
    doors = scene.store.supervisor
    answers = await asyncio.gather(
        *(doors.open_incidents([an_incident(id), an_incident(id + 50, "b")]) for id in range(1, 9))
    )
    assert sum(new for answer in answers for new in answer) == 2
    assert len(await doors.incidents()) == 2


# --- who is able


async def test_who_is_able_is_alive_in_time_and_wanted(scene, clock):
    agents, client = scene.store.agent, scene.store.client
    await agents.join(71, "default", "eu", "b", b"{}", 8 * SECOND, needs=("gpu=2",))
    await agents.join(72, "default", "eu", "c", b"{}", 20 * SECOND, needs=("cpu",))
    await agents.join(73, "other", "", "d", b"{}", None)
    await agents.join(74, "default", "", "e", b"{}", None, needs=("x",))
    assert await client.order_agent("default", 74, wish=1)
    await agents.leave(73)
    assert sorted(await scene.store.supervisor.able()) == [
        Able("default", "", ()),
        Able("default", "eu", ("cpu",)),
        Able("default", "eu", ("gpu=2",)),
    ]
    clock.pass_by(9 * SECOND)
    assert Able("default", "eu", ("gpu=2",)) not in await scene.store.supervisor.able()


async def test_a_record_says_whether_somebody_can_take_what_is_ready(scene):
    [run] = await scene.submit(a_run(1))
    queue = await scene.store.scheduler.queue("default", "", ("gpu=2",), "")
    row = scene.a_row(run, queue=queue)
    await scene.turn(attempts=[row, scene.a_row(run), scene.a_row(run, AttemptState.FAILED)])

    async def served() -> dict[tuple[str, ...], bool]:
        record = await scene.store.client.record("default", run.id)
        return {wait.needs: wait.served for wait in record.waits}

    assert await served() == {("gpu=2",): False, (): True}
    await scene.store.agent.join(71, "default", "", "b", b"{}", None, needs=("gpu=1",))
    assert await served() == {("gpu=2",): False, (): True}
    await scene.store.agent.join(72, "default", "", "c", b"{}", None, needs=("gpu=2",))
    assert await served() == {("gpu=2",): True, (): True}


# --- which code is asked for


async def codes(scene) -> tuple[OpenCode, ...]:
    return (await scene.store.supervisor.codes(None, EVERY)).codes


async def test_the_code_is_told_of_runs_that_are_due_or_live(scene, clock):
    await scene.submit(a_run(1), NewRun(2, "default", "later", "order", 2, b"[]", delay=60 * SECOND))
    [live, held, ended] = await scene.submit(*(a_run(n, workflow=f"w{n}") for n in (3, 4, 5)))
    await scene.turn(runs=[a_change(live, RunState.RUNNING), a_change(held, RunState.RUNNING, held="quarantined: x")])
    await scene.turn(runs=[a_change(ended, RunState.COMPLETED)])
    assert await codes(scene) == (
        OpenCode("default", "", "order", 1, 1, "o-1"),
        OpenCode("default", "", "w3", 1, 1, "o-3"),
    )
    clock.pass_by(60 * SECOND)
    assert OpenCode("default", "", "order", 2, 1, "later") in await codes(scene)


async def test_runs_that_are_held_because_their_code_is_not_here_ask_for_it(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(runs=[a_change(run, RunState.RUNNING, held="waits for code: its process died")])
    assert [code.run for code in await codes(scene)] == ["o-1"]


async def test_who_attends_says_what_it_knows(scene, clock):
    scheduler = scene.store.scheduler
    await scheduler.attend(ME, "default", "", KNOWN, b"{}", None)
    await scheduler.attend(ME + 1, "other", "eu", ("x@1",), b"{}", 8 * SECOND)
    look = await scene.store.supervisor.codes(None, EVERY)
    assert sorted(look.schedulers) == [Attending("default", "", KNOWN), Attending("other", "eu", ("x@1",))]
    clock.pass_by(9 * SECOND)
    look = await scene.store.supervisor.codes(None, EVERY)
    assert list(look.schedulers) == [Attending("default", "", KNOWN)]
    assert look.now == NOON + 9 * SECOND


@pytest.mark.parametrize("page", [1, 3, 100])
async def test_many_live_runs_are_looked_at_page_by_page(scene, page):
    runs = await scene.submit(*(a_run(n, workflow=f"w{n % 4}") for n in range(1, 12)))
    await scene.turn(runs=[a_change(run, RunState.RUNNING) for run in runs])
    place, seen, pages = None, 0, 0
    while True:
        look = await scene.store.supervisor.codes(place, page)
        seen += sum(code.runs for code in look.codes)
        pages += 1
        place = look.place
        if place is None:
            break
    assert seen == 11
    assert pages >= 11 // page
