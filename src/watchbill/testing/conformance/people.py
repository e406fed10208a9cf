"""People: calls that wait for one belong to incidents and are decided about once; an item is held by one of them."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from watchbill.clock import SECOND, Micros
from watchbill.model.alert import AlertKind, AlertState, SettledAlert
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.facts import FactKind
from watchbill.model.incident import RESOLVED_KEPT_FOR, IncidentState, NewIncident, Told
from watchbill.model.member import Evidence, Gathering, Muster, Order, Reminder
from watchbill.model.question import CLAIM, Patience, Question, question_in
from watchbill.model.resolution import Wanted
from watchbill.model.states import AttemptState, RunState
from watchbill.store.protocol import GIVEN_UP_WITHIN, Hint, Ordered
from watchbill.store.protocol import Told as Became
from watchbill.testing.conformance.scene import NOON, Scene, a_change, a_reason, a_run, a_verdict

EVERY = 1_000
WHY = b'{"action":"retry","reason":"mended"}'
FAILED = b'{"type":"ValueError","message":"no"}'


async def waiting(scene: Scene, num: int, why: str = "quarantine") -> AttemptRow:
    """Bring a call to where it waits for a person."""
    [run] = await scene.submit(a_run(num))
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    row = await scene.row_in(AttemptState.FAILED, run)
    assert await scene.judge(a_verdict(row, AttemptState.PARKED, why=why, result=FAILED))
    return await scene.row(row.id)


async def a_question(scene: Scene, num: int, patience: Patience | None = None, *, id: int | None = None) -> int:
    """Let a run ask something; gives the item's number."""
    patience = patience or Patience()
    [run] = await scene.submit(a_run(num))
    body = msgspec.json.encode(Question("ship it?", "team", {}))
    row = scene.a_row(
        run, AttemptState.PARKED, kind=RowKind.ASK, why="ask", args=body, policy=msgspec.json.encode(patience),
        watch_in=patience.remind_in,
    )  # fmt: skip
    row = row if id is None else row._replace(id=id)
    await scene.turn(attempts=[row], runs=[a_change(run, RunState.WAITING)])
    return row.id


def gathering(
    id: int, rows: Sequence[AttemptRow], cause: str = "c", routes: tuple[str, ...] = (), within: Micros | None = None
) -> Gathering:
    body = msgspec.json.encode(Told("it died", "decide", ("o-1",)))
    calls = tuple([Evidence(row.id, row.fence, row.why or "", row.watch_at, within) for row in rows])
    return Gathering(NewIncident(id, "default", cause, len(rows), body, "team", routes), calls)


async def muster(scene: Scene) -> Muster:
    return await scene.store.supervisor.muster(EVERY)


async def facts(scene: Scene, id: str) -> list[tuple[FactKind, str, str]]:
    record = await scene.store.client.record("default", id)
    assert record is not None
    return [(fact.kind, fact.ref, fact.actor) for fact in record.told]


# --- members


async def test_calls_that_wait_for_a_person_are_seen_until_they_belong_to_an_incident(scene):
    rows = [await waiting(scene, num, why) for num, why in enumerate(("quarantine", "escalate", "doubt"), 1)]
    backoff = await scene.row_in(AttemptState.FAILED, (await scene.submit(a_run(9)))[0])
    assert await scene.judge(a_verdict(backoff, AttemptState.PARKED, why="backoff", watch_in=SECOND))
    await a_question(scene, 10)
    found = (await muster(scene)).waiting
    assert [(call.id, call.why, call.run, call.namespace) for call in found] == [
        (row.id, row.why, row.run_id, "default") for row in rows
    ]
    assert [(call.fence, call.call, call.step, call.result) for call in found] == [
        (row.fence, "charge", "charge", FAILED) for row in rows
    ]
    assert [tuple(one) for one in await scene.store.supervisor.attach([gathering(1, rows)])] == [(3, True)]
    assert (await muster(scene)).waiting == ()
    assert len((await scene.store.supervisor.muster(1)).waiting) == 0


async def test_those_of_one_cause_are_one_incident_with_so_many_members(scene):
    doors, client = scene.store.supervisor, scene.store.client
    first, second, third = [await waiting(scene, num) for num in (1, 2, 3)]
    assert [one.new for one in await doors.attach([gathering(1, [first]), gathering(2, [second], "d")])] == [True, True]
    assert [tuple(one) for one in await doors.attach([gathering(3, [third])])] == [(1, False)]
    found = {row.id: row for row in await client.incidents("default", EVERY)}
    assert {id: (row.cause, row.members, row.waiting, row.calls) for id, row in found.items()} == {
        1: ("c", 2, 2, True),
        2: ("d", 1, 1, True),
    }
    assert (found[1].people, found[1].opened_at, found[1].ordered_by) == ("team", NOON, None)
    assert msgspec.json.decode(found[1].body, type=Told) == Told("it died", "decide", ("o-1",))


async def test_what_has_moved_on_is_not_attached_and_opens_nothing(scene):
    rows = [await waiting(scene, num) for num in (1, 2, 3, 4)]
    await scene.turn(released=[rows[0].id])
    await scene.turn(dropped=[rows[1].id])
    stale = [rows[2]]
    changed = gathering(1, [*rows[:2], *stale])
    evidence = [one._replace(fence=one.fence + 1) if one.id == rows[2].id else one for one in changed.calls]
    other = gathering(2, [rows[3]], "d")
    other = other._replace(calls=(other.calls[0]._replace(why="doubt"),))
    answers = await scene.store.supervisor.attach([changed._replace(calls=tuple(evidence)), other])
    assert [tuple(one) for one in answers] == [(0, False), (0, False)]
    assert await scene.store.client.incidents("default", EVERY) == []


async def test_supervisors_that_see_the_same_attach_each_call_once(scene):
    rows = [await waiting(scene, num) for num in range(1, 9)]
    answers = await asyncio.gather(*(scene.store.supervisor.attach([gathering(id, rows)]) for id in range(1, 9)))
    assert sum(one.calls for [one] in answers) == 8
    assert sum(one.new for [one] in answers) == 1
    [incident] = await scene.store.client.incidents("default", EVERY)
    assert (incident.members, incident.waiting) == (8, 8)


async def test_an_incident_is_healed_when_no_member_is_left_and_not_before(scene, clock):
    doors = scene.store.supervisor
    first, second = [await waiting(scene, num) for num in (1, 2)]
    await doors.attach([gathering(1, [first, second])])
    await scene.turn(released=[first.id])
    assert (await muster(scene)).healed == ()
    [seen] = await scene.store.client.incidents("default", EVERY)
    assert await doors.heal([seen]) == [False]
    await scene.turn(dropped=[second.id])
    clock.pass_by(SECOND)
    [healed] = (await muster(scene)).healed
    assert (healed.id, healed.members) == (1, 2)
    assert await doors.heal([healed]) == [True]
    assert await doors.heal([healed]) == [False]
    [row] = await scene.store.client.incidents("default", EVERY)
    assert (row.state, row.resolved_at, row.members, row.waiting) == (IncidentState.RESOLVED, NOON + SECOND, 2, 0)
    assert (await muster(scene)).healed == ()


async def test_an_incident_that_has_got_a_member_since_it_was_seen_is_not_healed(scene):
    doors = scene.store.supervisor
    first, second = [await waiting(scene, num) for num in (1, 2)]
    await doors.attach([gathering(1, [first])])
    await scene.turn(dropped=[first.id])
    [seen] = (await muster(scene)).healed
    await doors.attach([gathering(2, [second])])
    await scene.turn(dropped=[second.id])
    assert await doors.heal([seen]) == [False], "its evidence is old, whatever is so now"
    assert await doors.heal((await muster(scene)).healed) == [True]


async def test_what_waits_again_for_the_same_reason_is_a_member_again(scene):
    doors = scene.store.supervisor
    row = await waiting(scene, 1)
    await doors.attach([gathering(1, [row])])
    await scene.turn(released=[row.id])
    [leased] = await scene.lease()
    await scene.store.supervisor.judge([a_verdict(leased, AttemptState.FAILED)])
    failed = await scene.row(row.id)
    assert await scene.judge(a_verdict(failed, AttemptState.PARKED, why="quarantine", result=FAILED))
    [call] = (await muster(scene)).waiting
    assert call.id == row.id
    assert [tuple(one) for one in await doors.attach([gathering(2, [await scene.row(row.id)])])] == [(1, False)]


# --- decisions


async def test_a_decision_reaches_its_run_once_and_the_first_counts(scene):
    client = scene.store.client
    row = await waiting(scene, 1)
    assert await client.resolve("default", row.id, "ada", WHY) is Became.TOLD
    assert await client.resolve("default", row.id, "ada", WHY) is Became.TOLD, "an answer was lost"
    assert await client.resolve("default", row.id, "bob", WHY) is Became.ANSWERED
    assert await facts(scene, row.run_id) == [(FactKind.RESOLVE, f"{row.id:x}", "ada")]
    [item] = await client.inbox("default", EVERY)
    assert (item.id, item.kind, item.why, item.step, item.answered_by) == (row.id, 0, "quarantine", "charge", "ada")
    assert item.result == FAILED


async def test_what_waits_for_nobody_is_not_decided_about(scene):
    client = scene.store.client
    row = await waiting(scene, 1)
    question = await a_question(scene, 2)
    assert await client.resolve("default", 99, "ada", WHY) is Became.UNKNOWN
    assert await client.resolve("other", row.id, "ada", WHY) is Became.UNKNOWN
    assert await client.resolve("default", question, "ada", WHY) is Became.UNKNOWN
    assert await client.answer("default", row.id, "ada", b"1") is Became.UNKNOWN
    await scene.turn(released=[row.id])
    assert await client.resolve("default", row.id, "ada", WHY) is Became.UNKNOWN
    assert await facts(scene, row.run_id) == []


async def test_an_order_is_told_to_all_members_a_few_at_a_time_and_once(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    rows = [await waiting(scene, num) for num in range(1, 6)]
    await doors.attach([gathering(1, rows)])
    assert await client.order_incident("default", 1, "ada", WHY, 2) is Ordered.DONE
    [order] = (await muster(scene)).orders
    assert order == Order(1, 2, None)
    assert await doors.feed(order, 2) == 2
    assert await doors.feed(order, 2) == 0, "others were told since it was seen"
    clock.pass_by(SECOND)
    [order] = (await muster(scene)).orders
    assert order == Order(1, 2, NOON)
    assert await doors.feed(order, 2) == 2
    [order] = (await muster(scene)).orders
    assert await doors.feed(order, 2) == 1
    assert (await muster(scene)).orders == (), "all have been told"
    for row in rows:
        assert await facts(scene, row.run_id) == [(FactKind.RESOLVE, f"{row.id:x}", "ada")]


async def test_until_it_is_told_a_member_says_what_is_wanted_and_the_incident_how_many_have_not_heard(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    rows = [await waiting(scene, num) for num in range(1, 6)]
    await doors.attach([gathering(1, rows)])
    clock.pass_by(SECOND)
    await client.order_incident("default", 1, "ada", WHY, 2)
    clock.pass_by(SECOND)
    later = await waiting(scene, 9)
    await doors.attach([gathering(2, [later])])

    async def untold() -> tuple[list[int], int]:
        wanted = Wanted("ada", NOON + SECOND, 2, WHY)
        found = []
        for row in [*rows, later]:
            record = await client.record("default", row.run_id)
            [item] = record.desk
            assert item.wanted in (None, wanted)
            found += [row.id] if item.wanted else []
        [incident] = await client.incidents("default", EVERY)
        if found:
            said = incident.ordered, incident.ordered_as, incident.ordered_at, incident.per_second
            assert said == (WHY, "resolve", NOON + SECOND, 2)
        return found, incident.untold

    async def decided() -> list[int]:
        return [item.id for item in await client.inbox("default", EVERY) if item.answered_by == "ada"]

    ids = [row.id for row in rows]
    assert await untold() == (ids, 5)
    assert await decided() == ids
    [order] = (await muster(scene)).orders
    await doors.feed(order, 2)
    assert await untold() == (ids[2:], 3)
    assert await decided() == ids, "those who were told have it on their way"
    await scene.turn(facts_done=[fact.id for row in rows for fact in (await client.record("default", row.run_id)).told])
    assert await decided() == ids[2:]
    while orders := (await muster(scene)).orders:
        clock.pass_by(SECOND)
        await doors.feed(orders[0], 2)
    assert await untold() == ([], 0)
    [incident] = await client.incidents("default", EVERY)
    assert (incident.ordered_by, incident.ordered) == ("ada", None)


async def test_who_was_told_and_still_waits_is_not_told_again(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    rows = [await waiting(scene, num) for num in range(1, 6)]
    await doors.attach([gathering(1, rows)])
    await client.order_incident("default", 1, "ada", WHY, 2)
    told = 0
    while orders := (await muster(scene)).orders:
        told += await doors.feed(orders[0], 2)
        for row in rows:  # each refuses: it does not fit
            record = await client.record("default", row.run_id)
            await scene.turn(facts_done=[fact.id for fact in record.told])
        clock.pass_by(SECOND)
    assert told == 5


async def test_one_order_at_a_time(scene):
    doors, client = scene.store.supervisor, scene.store.client
    row = await waiting(scene, 1)
    await doors.attach([gathering(1, [row])])
    await doors.open_incidents([NewIncident(2, "default", "no agent", 1, msgspec.json.encode(Told("x")))])
    assert await client.order_incident("default", 1, "ada", WHY, 50) is Ordered.DONE
    assert await client.order_incident("default", 1, "ada", WHY, 50) is Ordered.DONE, "an answer was lost"
    assert await client.order_incident("default", 1, "bob", WHY, 50) is Ordered.BUSY
    assert await client.order_incident("default", 2, "bob", WHY, 50) is Ordered.NO_CALLS
    assert await client.order_incident("default", 9, "bob", WHY, 50) is Ordered.UNKNOWN
    assert await client.order_incident("other", 1, "bob", WHY, 50) is Ordered.UNKNOWN
    assert [row.ordered_by for row in await client.incidents("default", EVERY) if row.id == 1] == ["ada"]
    [order] = (await muster(scene)).orders
    await doors.feed(order, 50)
    assert await client.order_incident("default", 1, "bob", WHY, 50) is Ordered.DONE, "the first is done"
    await scene.turn(dropped=[row.id])
    await doors.heal((await muster(scene)).healed)
    assert await client.order_incident("default", 1, "bob", WHY, 50) is Ordered.RESOLVED


async def test_an_order_that_is_repeated_is_done_however_far_it_has_come(scene):
    doors, client = scene.store.supervisor, scene.store.client
    rows = [await waiting(scene, num) for num in (1, 2)]
    await doors.attach([gathering(1, rows)])
    assert await client.order_incident("default", 1, "ada", WHY, 50, number=7) is Ordered.DONE
    assert await client.order_incident("default", 1, "ada", WHY, 50, number=7) is Ordered.DONE, "it is being done"
    [order] = (await muster(scene)).orders
    assert await doors.feed(order, 50) == 2
    assert await client.order_incident("default", 1, "ada", WHY, 50, number=7) is Ordered.DONE, "all were told"
    assert (await muster(scene)).orders == (), "and are not told again"
    await scene.turn(dropped=[row.id for row in rows])
    await doors.heal((await muster(scene)).healed)
    assert await client.order_incident("default", 1, "ada", WHY, 50, number=7) is Ordered.DONE, "it is over"
    assert await client.order_incident("default", 1, "ada", WHY, 50, number=8) is Ordered.RESOLVED, "this is another"
    assert await client.order_incident("default", 1, "ada", WHY, 50) is Ordered.RESOLVED


async def test_who_has_failed_after_the_order_is_not_meant(scene, clock):
    doors, client = scene.store.supervisor, scene.store.client
    await doors.attach([gathering(1, [await waiting(scene, 1)])])
    assert await client.order_incident("default", 1, "ada", WHY, 50) is Ordered.DONE
    clock.pass_by(SECOND)
    later = await waiting(scene, 2)
    await doors.attach([gathering(2, [later])])
    [order] = (await muster(scene)).orders
    assert await doors.feed(order, 50) == 1
    assert await facts(scene, later.run_id) == []


async def test_supervisors_that_see_the_same_order_tell_it_once(scene):
    doors, client = scene.store.supervisor, scene.store.client
    rows = [await waiting(scene, num) for num in range(1, 9)]
    await doors.attach([gathering(1, rows)])
    await client.order_incident("default", 1, "ada", WHY, 3)
    [order] = (await muster(scene)).orders
    assert sum(await asyncio.gather(*(doors.feed(order, 3) for _ in range(8)))) == 3


# --- who is told that they are asked


def asking(*ids: int, routes: tuple[str, ...] = ("r",)) -> list[NewIncident]:
    body = msgspec.json.encode(Told("ship it?", "answer", ("o-1",)))
    return [NewIncident(id, "default", f"question {id:x}", 1, body, "team", routes) for id in ids]


async def alerts(scene: Scene) -> list[tuple[int, AlertKind]]:
    """Take what is to be told, and let it have been told."""
    due = (await scene.store.supervisor.take_alerts(["r"], EVERY, SECOND)).alerts
    await scene.store.supervisor.settle_alerts(
        [SettledAlert(one.incident.id, one.kind, one.route, AlertState.SENT) for one in due]
    )
    assert all(one.incident.asks for one in due)
    return [(one.incident.id, one.kind) for one in due]


async def test_who_is_asked_is_told_once_reminded_once_and_told_when_it_is_over(scene, clock):
    doors = scene.store.supervisor
    one, two = await a_question(scene, 1, Patience(60 * SECOND)), await a_question(scene, 2)
    assert (await muster(scene)).asking == (), "nobody is to be told of them"
    found = (await doors.muster(EVERY, asks=True)).asking
    assert [(one.id, one.namespace, one.run, one.call) for one in found] == [
        (one, "default", "o-1", "charge"),
        (two, "default", "o-2", "charge"),
    ]
    assert question_in(found[0].body).question == "ship it?"
    assert [one.id for one in (await doors.muster(1, asks=True)).asking] == [one]
    made = await asyncio.gather(*(doors.attach_questions(asking(one, two)) for _ in range(4)))
    assert sorted(made) == [[False, False]] * 3 + [[True, True]], "by one of those who look"
    assert (await doors.muster(EVERY, asks=True)).asking == ()
    assert sorted(await alerts(scene)) == [(one, AlertKind.OPENED), (two, AlertKind.OPENED)]
    clock.pass_by(30 * SECOND)
    [due] = (await muster(scene)).reminders
    assert await doors.remind([due], [(77, b"{}")]) == [True]
    assert await alerts(scene) == [(one, AlertKind.REMINDED)]
    assert (await doors.muster(EVERY, asks=True)).healed == ()
    await scene.turn(dropped=[one])
    assert (await muster(scene)).healed == (), "nobody has looked at questions"
    over = (await doors.muster(EVERY, asks=True)).healed
    assert [(row.id, row.asks) for row in over] == [(one, True)]
    assert await doors.heal(over) == [True]
    assert await alerts(scene) == [(one, AlertKind.RESOLVED)]
    assert (await doors.muster(EVERY, asks=True)).healed == ()


async def test_what_tells_of_a_question_is_in_no_list_and_nothing_is_ordered_of_it(scene):
    question = await a_question(scene, 1)
    doors, client = scene.store.supervisor, scene.store.client
    assert await doors.attach_questions(asking(question, 999)) == [True, False], "there is no other one"
    assert await client.incidents("default", EVERY) == []
    assert await doors.incidents() == []
    assert await client.order_incident("default", question, "ada", WHY, 50) is Ordered.UNKNOWN
    [item] = await client.inbox("default", EVERY)
    assert (item.id, item.incident) == (question, None)
    record = await client.record("default", "o-1")
    assert [(one.row, one.incident) for one in record.desk] == [(question, None)]
    assert await client.answer("default", question, "ada", b"true") is Became.TOLD


async def test_a_question_that_was_answered_before_anybody_was_told_is_told_to_nobody(scene):
    question = await a_question(scene, 1)
    await scene.turn(dropped=[question])
    assert await scene.store.supervisor.attach_questions(asking(question)) == [False]
    assert await alerts(scene) == []


async def test_a_question_and_its_end_give_supervisors_a_hint(scene):
    heard = []
    scene.store.listen(Hint.SUPERVISOR, lambda: heard.append(1))
    question = await a_question(scene, 1)
    assert heard
    heard.clear()
    await scene.turn(dropped=[question])
    assert heard


# --- claims


async def test_who_holds_an_item_is_shown_until_it_ends(scene, clock):
    client = scene.store.client
    question, row = await a_question(scene, 1), await waiting(scene, 2)
    for item in (question, row.id):
        claim = await client.claim("default", item, "ada", CLAIM, item + 5_000_000, a_reason("x"))
        assert claim == ("ada", NOON + CLAIM)
        assert await client.claim("default", item, "bob", CLAIM, item + 6_000_000, a_reason("x")) == claim
    found = {item.id: (item.claimed_by, item.claimed_until) for item in await client.inbox("default", EVERY)}
    assert found == {question: ("ada", NOON + CLAIM), row.id: ("ada", NOON + CLAIM)}
    clock.pass_by(SECOND)
    assert (
        await client.claim("default", question, "ada", CLAIM, 7_000_000, a_reason("x"))
    ).until == NOON + SECOND + CLAIM
    [decision] = [one for one in await scene.decisions("o-1") if one.actor == "ada"]
    assert decision.call == "charge", "it is written down once, however often it is prolonged"
    clock.pass_by(CLAIM)
    assert [item.claimed_by for item in await client.inbox("default", EVERY)] == [None, None]
    assert (await client.claim("default", question, "bob", CLAIM, 8_000_000, a_reason("x"))).by == "bob"


async def test_what_was_told_is_told_though_somebody_holds_the_item_by_now(scene):
    client, item = scene.store.client, await a_question(scene, 1)
    assert await client.answer("default", item, "ada", b"true") is Became.TOLD
    await client.claim("default", item, "bob", CLAIM, 7_000_000, a_reason("x"))
    assert await client.answer("default", item, "ada", b"true") is Became.TOLD, "its answer may have been lost"
    assert await client.answer("default", item, "ada", b"false") is Became.CLAIMED


async def test_only_who_holds_an_item_answers_it_or_who_insists(scene, clock):
    client = scene.store.client
    for num, (item, say) in enumerate(
        [(await a_question(scene, 1), client.answer), ((await waiting(scene, 2)).id, client.resolve)]
    ):
        await client.claim("default", item, "ada", CLAIM, 5_000_000 + num, a_reason("x"))
        assert await say("default", item, "bob", WHY) is Became.CLAIMED
        assert await say("default", item, "ada", WHY) is Became.TOLD
    other = await a_question(scene, 3)
    await client.claim("default", other, "ada", CLAIM, 6_000_000, a_reason("x"))
    assert await client.answer("default", other, "bob", b"1", force=True) is Became.TOLD
    last = await a_question(scene, 4)
    await client.claim("default", last, "ada", CLAIM, 7_000_000, a_reason("x"))
    clock.pass_by(CLAIM)
    assert await client.answer("default", last, "bob", b"1") is Became.TOLD


async def test_what_is_no_item_is_not_held(scene):
    client = scene.store.client
    [run] = await scene.submit(a_run(1))
    ready = await scene.row_in(AttemptState.READY, run)
    question = await a_question(scene, 2)
    for namespace, item in (("default", 99), ("default", ready.id), ("other", question)):
        assert await client.claim(namespace, item, "ada", CLAIM, 5_000_000, a_reason("x")) is None


async def test_people_who_want_the_same_item_at_the_same_time(scene):
    question = await a_question(scene, 1)
    claims = await asyncio.gather(
        *(scene.store.client.claim("default", question, f"p{n}", CLAIM, 5_000_000 + n, a_reason("x")) for n in range(8))
    )
    assert len({claim.by for claim in claims}) == 1
    assert len([one for one in await scene.decisions("o-1") if one.actor.startswith("p")]) == 1


# --- reminders


async def test_whoever_is_asked_is_reminded_half_way_and_once(scene, clock):
    doors = scene.store.supervisor
    question = await a_question(scene, 1, Patience(60 * SECOND, "boss"))
    await a_question(scene, 2)
    found = await muster(scene)
    assert (found.reminders, found.next_at) == ((), NOON + 30 * SECOND)
    watch = await doors.watch(EVERY)
    assert (watch.due, watch.next_at) == ((), None), "that is not for whoever cures steps"
    clock.pass_by(30 * SECOND)
    found = await muster(scene)
    [reminder] = found.reminders
    assert (reminder, found.next_at) == (Reminder(question, NOON + 30 * SECOND, "o-1", "charge"), None)
    assert await doors.remind([reminder], [(5_000_000, a_reason("half way"))]) == [True]
    assert await doors.remind([reminder], [(5_000_001, a_reason("half way"))]) == [False]
    assert (await muster(scene)).reminders == ()
    assert [one.actor for one in await scene.decisions("o-1")] == ["wardroom"]
    [first, _] = await scene.store.client.inbox("default", EVERY)
    assert msgspec.json.decode(first.policy, type=Patience) == Patience(60 * SECOND, "boss")
    assert first.refused is None


# --- alerts


async def taken(scene: Scene, *routes: str, limit: int = EVERY) -> list[tuple[int, AlertKind, str, int]]:
    due = await scene.store.supervisor.take_alerts(routes, limit, 60 * SECOND)
    return [(alert.incident.id, alert.kind, alert.route, alert.tries) for alert in due.alerts]


async def test_whom_to_tell_of_an_incident_is_written_with_it(scene):
    doors = scene.store.supervisor
    row = await waiting(scene, 1)
    await doors.attach([gathering(1, [row], routes=("a", "b"))])
    new = NewIncident(2, "default", "no agent", 1, msgspec.json.encode(Told("x")), "", ("a",))
    await doors.open_incidents([new])
    await doors.open_incidents([new._replace(id=3)])
    await doors.attach([gathering(4, [await waiting(scene, 2)], routes=("a", "b"))])
    assert await taken(scene, "a") == [(1, AlertKind.OPENED, "a", 1), (2, AlertKind.OPENED, "a", 1)]
    assert await taken(scene, "a", "b", "c") == [(1, AlertKind.OPENED, "b", 1)], "the others are being sent"


async def test_that_it_is_resolved_is_told_to_whoever_was_told_of_it_and_after_that(scene, clock):
    doors = scene.store.supervisor
    row = await waiting(scene, 1)
    await doors.attach([gathering(1, [row], routes=("a",))])
    await scene.turn(dropped=[row.id])
    await doors.heal((await muster(scene)).healed)
    await doors.open_incidents([NewIncident(2, "default", "no agent", 1, msgspec.json.encode(Told("x")), "", ("a",))])
    await doors.resolve_incidents([2])
    assert await taken(scene, "a") == [(1, AlertKind.OPENED, "a", 1), (2, AlertKind.OPENED, "a", 1)]
    await doors.settle_alerts(
        [
            SettledAlert(1, AlertKind.OPENED, "a", AlertState.SENT),
            SettledAlert(2, AlertKind.OPENED, "a", AlertState.DUE, 5 * SECOND),
        ]
    )
    assert await taken(scene, "a") == [(1, AlertKind.RESOLVED, "a", 1)]
    due = await doors.take_alerts(("a",), EVERY, 60 * SECOND)
    assert (due.alerts, due.next_at, due.now) == ((), NOON + 5 * SECOND, NOON)
    clock.pass_by(5 * SECOND)
    assert await taken(scene, "a") == [(2, AlertKind.OPENED, "a", 2)]
    await doors.settle_alerts([SettledAlert(2, AlertKind.OPENED, "a", AlertState.SENT)])
    assert await taken(scene, "a") == [(2, AlertKind.RESOLVED, "a", 1)]


@pytest.mark.parametrize("resolved", ["before", "after"])
async def test_who_could_not_be_told_of_the_beginning_is_not_told_of_the_end(scene, clock, resolved):
    doors = scene.store.supervisor
    body = msgspec.json.encode(Told("x"))
    await doors.open_incidents([NewIncident(2, "default", "no agent", 1, body, "", ("a", "b"))])
    assert len(await taken(scene, "a", "b")) == 2
    given_up = [
        SettledAlert(2, AlertKind.OPENED, "a", AlertState.GIVEN_UP),
        SettledAlert(2, AlertKind.OPENED, "b", AlertState.SENT),
    ]
    if resolved == "after":
        await doors.settle_alerts(given_up)
    await doors.resolve_incidents([2])
    if resolved == "before":
        await doors.settle_alerts(given_up)
    assert await taken(scene, "a", "b") == [(2, AlertKind.RESOLVED, "b", 1)], "only whoever was told that it is open"
    due = await doors.take_alerts(["a"], EVERY, SECOND)
    assert (due.alerts, due.next_at) == ((), None)


async def test_a_doctor_hears_of_alerts_that_are_tried_again_and_of_those_that_nobody_took_of_late(scene, clock):
    doors, body = scene.store.supervisor, msgspec.json.encode(Told("x"))
    await doors.open_incidents([NewIncident(2, "default", "no agent", 1, body, "", ("a", "b", "c"))])

    async def heard(namespace: str = "default") -> tuple[int, int]:
        seen = await scene.store.client.checkup(namespace, 1)
        return seen.unsent, seen.given_up

    assert await heard() == (0, 0), "none was tried yet"
    assert len(await taken(scene, "a", "b", "c")) == 3
    settled = [
        SettledAlert(2, AlertKind.OPENED, "a", AlertState.DUE, 5 * SECOND),
        SettledAlert(2, AlertKind.OPENED, "b", AlertState.GIVEN_UP),
        SettledAlert(2, AlertKind.OPENED, "c", AlertState.SENT),
    ]
    await doors.settle_alerts(settled)
    assert await heard() == (1, 1)
    assert await heard("other") == (0, 0)
    clock.pass_by(GIVEN_UP_WITHIN)
    assert await heard() == (1, 0)


async def test_whoever_says_too_late_that_nobody_could_be_told_keeps_nobody_from_hearing_the_end(scene):
    doors = scene.store.supervisor
    await doors.open_incidents([NewIncident(2, "default", "no agent", 1, msgspec.json.encode(Told("x")), "", ("a",))])
    assert len(await taken(scene, "a")) == 1
    await doors.settle_alerts([SettledAlert(2, AlertKind.OPENED, "a", AlertState.SENT)])
    await doors.resolve_incidents([2])
    await doors.settle_alerts([SettledAlert(2, AlertKind.OPENED, "a", AlertState.GIVEN_UP)])
    assert await taken(scene, "a") == [(2, AlertKind.RESOLVED, "a", 1)]


async def test_who_could_not_be_told_of_a_call_is_not_reminded_of_it(scene, clock):
    doors = scene.store.supervisor
    question = await a_question(scene, 1, Patience(60 * SECOND))
    assert await doors.attach_questions(asking(question)) == [True]
    assert len(await taken(scene, "r")) == 1
    await doors.settle_alerts([SettledAlert(question, AlertKind.OPENED, "r", AlertState.GIVEN_UP)])
    clock.pass_by(30 * SECOND)
    [due] = (await muster(scene)).reminders
    assert await doors.remind([due], [(77, b"{}")]) == [True]
    assert await taken(scene, "r") == []


async def test_what_is_forgotten_is_not_told_any_more(scene, clock):
    doors = scene.store.supervisor
    new = NewIncident(1, "default", "no agent", 1, msgspec.json.encode(Told("x")), "", ("a",))
    await doors.open_incidents([new])
    await doors.resolve_incidents([1])
    clock.pass_by(RESOLVED_KEPT_FOR + SECOND)
    assert await doors.forget_incidents(EVERY) == 1
    assert await taken(scene, "a") == []


async def test_an_alert_whose_sender_has_died_is_due_again(scene, clock):
    doors = scene.store.supervisor
    await doors.attach([gathering(1, [await waiting(scene, 1)], routes=("a",))])
    assert await taken(scene, "a") == [(1, AlertKind.OPENED, "a", 1)]
    clock.pass_by(59 * SECOND)
    assert await taken(scene, "a") == []
    clock.pass_by(SECOND)
    assert await taken(scene, "a") == [(1, AlertKind.OPENED, "a", 2)]


@pytest.mark.parametrize("limit", [1, 3])
async def test_heralds_that_look_at_the_same_time_take_each_alert_once(scene, limit):
    doors = scene.store.supervisor
    body = msgspec.json.encode(Told("x"))
    await doors.open_incidents([NewIncident(id, "default", f"c{id}", 1, body, "", ("a", "b")) for id in range(1, 7)])
    found = await asyncio.gather(*(taken(scene, "a", "b", limit=limit) for _ in range(12)))
    assert all(len(some) <= limit for some in found)
    while more := await taken(scene, "a", "b", limit=limit):  # who looks at the same time passes over some
        found.append(more)
    told = [alert for some in found for alert in some]
    told += await taken(scene, "a", "b")  # who looked while others took may have found less than there was
    assert len(told) == len(set(told)) == 12
