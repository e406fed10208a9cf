"""Undecided: the time that people have to decide about a call; when it is over, and nobody has, others are asked."""

from collections.abc import Sequence
from typing import Any

import pytest

from watchbill.clock import SECOND
from watchbill.model.agent import Act
from watchbill.model.alert import AlertKind, AlertState, SettledAlert
from watchbill.model.attempt import AttemptRow
from watchbill.model.member import Reminder
from watchbill.model.parked import UNTOLD
from watchbill.model.question import CLAIM, inbox_item
from watchbill.model.states import AttemptState, RunState
from watchbill.model.verdict import Judgement
from watchbill.store.protocol import AskedAgain
from watchbill.store.protocol import Told as Became
from watchbill.testing.conformance.people import EVERY, FAILED, WHY, gathering, muster, taken
from watchbill.testing.conformance.scene import NOON, Scene, a_change, a_reason, a_recast, a_run, a_verdict

WITHIN = 60 * SECOND
HALF = WITHIN // 2


async def untold(scene: Scene, num: int, why: str = "escalate") -> AttemptRow:
    """Bring a call to where people will have a minute to decide about it, when they are told."""
    [run] = await scene.submit(a_run(num))
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    row = await scene.row_in(AttemptState.FAILED, run)
    assert await scene.judge(a_verdict(row, AttemptState.PARKED, why=why, result=FAILED, watch_in=UNTOLD + WITHIN))
    return await scene.row(row.id)


async def told(scene: Scene, id: int, rows: Sequence[AttemptRow], **of_it: Any) -> list[AttemptRow]:
    """Open an incident about calls: their time begins."""
    await scene.store.supervisor.attach([gathering(id, rows, within=WITHIN, **of_it)])
    return [await scene.row(row.id) for row in rows]


async def asked(scene: Scene, num: int, why: str = "escalate") -> AttemptRow:
    """Bring a call to where people have a minute to decide about it."""
    [row] = await told(scene, 100 + num, [await untold(scene, num, why)], cause=f"c{num}")
    return row


def to_others(row: AttemptRow) -> Judgement:
    """Ask the people of the next rung, for as long again."""
    recast = a_recast(row, rung=row.rung + 1)
    return a_verdict(row, AttemptState.PARKED, why=row.why, watch_in=UNTOLD + WITHIN, recast=recast)


async def due(scene: Scene) -> list[int]:
    return [row.id for row in (await scene.store.supervisor.watch(EVERY)).due]


async def test_a_call_is_due_when_the_time_of_people_is_over_and_its_reminder_half_way(scene, clock):
    row = await asked(scene, 1)
    assert row.watch_at == NOON + WITHIN
    [item] = await scene.store.client.inbox("default", EVERY)
    assert (item.id, item.due_at) == (row.id, NOON + WITHIN)
    assert (await muster(scene)).next_at == NOON + HALF
    clock.pass_by(HALF)
    assert (await muster(scene)).reminders == (Reminder(row.id, NOON + HALF, "o-1", "charge"),)
    assert await due(scene) == []
    clock.pass_by(HALF)
    assert await due(scene) == [row.id]


async def test_their_time_begins_when_they_are_told_and_not_before(scene, clock):
    row = await untold(scene, 1)
    clock.pass_by(100 * WITHIN)
    found = await muster(scene)
    assert [call.watch_at for call in found.waiting] == [row.watch_at] == [NOON + UNTOLD + WITHIN]
    assert (await due(scene), found.reminders, found.next_at) == ([], (), None)
    assert (await scene.store.supervisor.watch(EVERY)).next_at is None, "nobody waits for that"
    for after in (AttemptState.READY, AttemptState.PARKED, AttemptState.GAVE_UP):
        assert not await scene.judge(a_verdict(row, after, why="escalate"))
    [row] = await told(scene, 1, [row])
    assert row.watch_at == NOON + 101 * WITHIN
    found = await muster(scene)
    assert (found.waiting, found.next_at) == ((), NOON + 100 * WITHIN + HALF)
    assert (await scene.store.supervisor.watch(EVERY)).next_at == NOON + 101 * WITHIN
    clock.pass_by(WITHIN)
    assert await due(scene) == [row.id]


async def test_their_time_ends_never_before_it_was_to_end_as_it_was_judged(scene, clock):
    row = await untold(scene, 1, "doubt")
    await scene.store.supervisor.attach([gathering(1, [row], within=SECOND)])
    clock.pass_by(SECOND)
    assert (await scene.row(row.id)).watch_at == NOON + WITHIN, "until then whoever had it may act"
    assert (await muster(scene)).next_at == NOON + HALF


async def test_who_decides_before_they_are_told_has_decided_in_time(scene, clock):
    row = await untold(scene, 1)
    seen = (await muster(scene)).waiting
    assert await scene.store.client.resolve("default", row.id, "ada", WHY) is Became.TOLD
    assert [tuple(one) for one in await scene.store.supervisor.attach([gathering(1, [row])])] == [(0, False)], seen
    [row] = await told(scene, 1, [await scene.row(row.id)])
    assert (row.watch_at, (await muster(scene)).next_at) == (None, None)
    clock.pass_by(100 * WITHIN)
    assert await due(scene) == []


@pytest.mark.parametrize("after", [AttemptState.READY, AttemptState.PARKED, AttemptState.GAVE_UP])
async def test_nobody_moves_it_before_its_time_is_over(scene, clock, after):
    row = await asked(scene, 1)
    clock.pass_by(WITHIN - 1)
    assert not await scene.judge(a_verdict(row, after, why="escalate"))
    clock.pass_by(1)
    assert await scene.judge(a_verdict(row, after, why="escalate"))
    assert await scene.state_of(row.id) is after


@pytest.mark.parametrize("after", [AttemptState.READY, AttemptState.PARKED, AttemptState.GAVE_UP])
async def test_what_people_have_all_the_time_for_nobody_moves(scene, clock, after):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.FAILED, run)
    assert await scene.judge(a_verdict(row, AttemptState.PARKED, why="quarantine", result=FAILED))
    clock.pass_by(1_000 * WITHIN)
    assert not await scene.judge(a_verdict(await scene.row(row.id), after, why="quarantine"))


async def test_whoever_is_asked_next_has_a_time_of_their_own_and_another_incident(scene, clock):
    client = scene.store.client
    [row] = await told(scene, 1, [await untold(scene, 1)])
    await client.claim("default", row.id, "ada", CLAIM, 5_000_000, a_reason("x"))
    clock.pass_by(WITHIN)
    assert await scene.judge(to_others(row))
    moved = await scene.row(row.id)
    assert (moved.state, moved.rung, moved.watch_at, moved.result) == (
        AttemptState.PARKED,
        1,
        NOON + UNTOLD + 2 * WITHIN,
        FAILED,
    )
    [item] = await client.inbox("default", EVERY)
    assert (item.incident, item.claimed_by, inbox_item(item).due_at) == (None, None, None)
    found = await muster(scene)
    assert [call.id for call in found.waiting] == [row.id]
    assert [incident.id for incident in found.healed] == [1]
    assert found.next_at is None
    await told(scene, 2, [moved], cause="d")
    assert (await muster(scene)).next_at == NOON + WITHIN + HALF
    [item] = await client.inbox("default", EVERY)
    assert (item.incident, item.due_at) == (2, NOON + 2 * WITHIN)


async def test_what_is_tried_another_way_or_given_up_has_left_its_incident(scene, clock):
    rows = await told(scene, 1, [await untold(scene, num) for num in (1, 2)])
    clock.pass_by(WITHIN)
    assert await scene.judge(a_verdict(rows[0], AttemptState.READY), a_verdict(rows[1], AttemptState.GAVE_UP))
    found = await muster(scene)
    assert ([incident.id for incident in found.healed], found.reminders, found.next_at) == ([1], (), None)
    [leased] = await scene.lease()
    await scene.report(leased, Act.FAILED, FAILED)
    assert await scene.judge(a_verdict(await scene.row(leased.id), AttemptState.PARKED, why="escalate"))
    assert [call.id for call in (await muster(scene)).waiting] == [leased.id]


async def test_once_somebody_has_decided_the_time_is_not_over_any_more(scene, clock):
    row = await asked(scene, 1)
    assert await scene.store.client.resolve("default", row.id, "ada", WHY) is Became.TOLD
    clock.pass_by(WITHIN)
    found = await muster(scene)
    assert (await due(scene), found.reminders, found.next_at) == ([], (), None)
    for after in (AttemptState.READY, AttemptState.PARKED, AttemptState.GAVE_UP):
        assert not await scene.judge(a_verdict(row, after, why="escalate"))
    [item] = await scene.store.client.inbox("default", EVERY)
    assert (item.answered_by, item.due_at) == ("ada", None)


async def test_who_decides_for_all_members_of_an_incident_decides_in_time_for_each(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    rows = await told(scene, 1, [await untold(scene, num) for num in (1, 2, 3)])
    await client.order_incident("default", 1, "ada", WHY, 2)
    [later] = await told(scene, 2, [await untold(scene, 4)])
    [order] = (await muster(scene)).orders
    assert await doors.feed(order, 2) == 2, "the third one is told in a second"
    clock.pass_by(WITHIN)
    assert await due(scene) == [later.id], "of that one nobody has spoken"
    verdicts = [a_verdict(row, AttemptState.GAVE_UP) for row in (*rows, later)]
    assert await doors.judge(verdicts) == [False, False, False, True]
    [order] = (await muster(scene)).orders
    assert await doors.feed(order, 2) == 1


async def test_what_goes_to_others_meanwhile_is_attached_to_their_incident_alone(scene, clock):
    doors = scene.store.supervisor
    before = await untold(scene, 1)  # as a wardroom saw it that slept since
    [row] = await told(scene, 1, [before])
    clock.pass_by(WITHIN)
    assert await scene.judge(to_others(row))
    assert [tuple(one) for one in await doors.attach([gathering(2, [before], "d")])] == [(0, False)]
    assert [tuple(one) for one in await doors.attach([gathering(2, [await scene.row(row.id)], "d")])] == [(1, True)]


async def test_a_verdict_that_is_older_than_what_came_after_gives_a_call_to_nobody(scene, clock):
    """A supervisor froze after it had decided; others did so, and those who were asked then had their time, too."""
    first = await asked(scene, 1)
    clock.pass_by(WITHIN)
    frozen = to_others(first)
    assert await scene.judge(frozen)
    [second] = await told(scene, 2, [await scene.row(first.id)], cause="d")
    clock.pass_by(WITHIN)
    assert await scene.judge(to_others(second))
    [third] = await told(scene, 3, [await scene.row(first.id)], cause="e")
    clock.pass_by(WITHIN)
    assert not await scene.judge(frozen)
    assert (await scene.row(first.id)).rung == third.rung == 2


async def test_after_a_decision_that_does_not_fit_there_is_time_anew(scene, clock):
    row = await asked(scene, 1)
    await scene.store.client.resolve("default", row.id, "ada", WHY)
    clock.pass_by(SECOND)
    record = await scene.store.client.record("default", row.run_id)
    await scene.turn(facts_done=[record.told[0].id], asked_again=[AskedAgain(row.id, WITHIN)])
    assert (await scene.row(row.id)).watch_at == NOON + SECOND + WITHIN
    assert (await muster(scene)).next_at == NOON + SECOND + HALF
    clock.pass_by(WITHIN)
    assert await scene.judge(a_verdict(await scene.row(row.id), AttemptState.GAVE_UP))
    await scene.turn(asked_again=[AskedAgain(row.id, WITHIN)])
    assert (await scene.row(row.id)).watch_at is None, "what has been given up waits for nobody"


async def test_after_one_that_does_not_fit_and_that_came_before_they_were_told_it_begins_when_they_are(scene, clock):
    row = await untold(scene, 1)
    await scene.store.client.resolve("default", row.id, "ada", WHY)
    record = await scene.store.client.record("default", row.run_id)
    await scene.turn(facts_done=[record.told[0].id], asked_again=[AskedAgain(row.id, 2 * WITHIN)])
    row = await scene.row(row.id)
    assert (row.watch_at, (await muster(scene)).next_at) == (NOON + UNTOLD + 2 * WITHIN, None)
    [row] = await told(scene, 1, [row])
    assert (row.watch_at, (await muster(scene)).next_at) == (NOON + 2 * WITHIN, NOON + WITHIN), "it was asked for more"


async def test_what_is_let_go_is_forgotten_by_the_reminder_too(scene):
    row = await asked(scene, 1)
    await scene.turn(released=[row.id])
    assert (await muster(scene)).next_at is None
    assert (await scene.row(row.id)).watch_at is None


async def test_whoever_was_told_of_the_incident_is_reminded_once_for_all_members(scene, clock):
    doors = scene.store.supervisor
    rows = [await untold(scene, num) for num in (1, 2, 3)]
    await doors.attach([gathering(1, rows[:2], routes=("a", "b")), gathering(2, rows[2:], "d")])
    await doors.settle_alerts([SettledAlert(1, AlertKind.OPENED, route, AlertState.SENT) for route in "ab"])
    clock.pass_by(HALF)
    reminders = (await muster(scene)).reminders
    decisions = [(5_000_000 + n, a_reason("half way")) for n in range(3)]
    assert await doors.remind(reminders, decisions) == [True, True, True]
    assert await taken(scene, "a", "b", "c") == [(1, AlertKind.REMINDED, "a", 1), (1, AlertKind.REMINDED, "b", 1)]
