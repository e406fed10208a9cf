"""Policies: what operators change of them reaches every live row, once, and no verdict of before counts after it."""

from collections.abc import Sequence

import msgspec

from watchbill.clock import SECOND
from watchbill.model.agent import Act, Answer
from watchbill.model.alert import AlertKind, AlertState, SettledAlert
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.extension import extending, told_extension
from watchbill.model.facts import FactKind
from watchbill.model.incident import NewIncident, Told
from watchbill.model.overridden import PATCHED_AT_ONCE
from watchbill.model.override import Changes
from watchbill.model.policies import PolicyOrder
from watchbill.model.policy import Cures, Policy, Rung, decode_policy
from watchbill.model.question import Patience
from watchbill.model.resolution import Wanted
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.model.stuck import StuckEvidence, StuckGathering
from watchbill.store.protocol import NewFact, Ordered
from watchbill.testing.conformance.people import taken
from watchbill.testing.conformance.scene import KNOWN, NOON, Scene, a_change, a_reason, a_run, a_verdict

EVERY = 1_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
PLAIN = msgspec.json.encode(Policy())
LADDERED = msgspec.json.encode(Policy(cures=Cures((Rung(step="charge", policy=Policy()),))))
SHORTER = Changes(timeout=10 * MINUTE, retries=6)


def order(
    changes: Changes | None = SHORTER, step: str = "charge", by: str = "ann", reason: str = "slow"
) -> PolicyOrder:
    return PolicyOrder(step, by, reason, changes)


async def set_policy(scene: Scene, changes: Changes | None = SHORTER, **said: str) -> int | None:
    return await scene.store.client.set_policy("default", order(changes, **said))


async def revision(scene: Scene) -> int:
    return (await scene.store.scheduler.look(list(scene.terms), KNOWN, EVERY)).policies


async def policy_of(scene: Scene, row: AttemptRow) -> Policy:
    return decode_policy((await scene.row(row.id)).policy)


async def rows_in_all_states(scene: Scene) -> dict[AttemptState, AttemptRow]:
    rows = {}
    for num, state in enumerate(sorted(AttemptState, reverse=True), 1):  # what is ready last: nobody leases it
        [run] = await scene.submit(a_run(num))
        rows[state] = await scene.row_in(state, run, policy=PLAIN)
    return rows


# --- orders


async def test_what_is_changed_is_read_with_who_when_and_why_until_it_is_cleared(scene):
    assert await revision(scene) == 0
    await set_policy(scene)
    await set_policy(scene, Changes(stall=None), by="bob", reason="quiet")
    await set_policy(scene, Changes(retries=0), step="ship")
    for doors in (scene.store.client, scene.store.scheduler):
        charge, ship = (await doors.policies("default")).rows
        assert (charge.step, charge.by, charge.reason, charge.at) == ("charge", "bob", "quiet", NOON)
        assert charge.changes == Changes(timeout=10 * MINUTE, stall=None, retries=6)
        assert (ship.step, ship.revision) == ("ship", 3)
    assert await revision(scene) == 3
    await set_policy(scene, None, by="cid", reason="over")
    found = await scene.store.client.policies("default")
    assert list(found.overrides) == ["ship"]
    assert [(row.step, row.by) for row in found.rows] == [("charge", "cid"), ("ship", "ann")]
    assert await revision(scene) == found.revision == 4


async def test_to_clear_what_nobody_has_changed_is_no_order(scene):
    await set_policy(scene, None)
    assert (await scene.store.client.policies("default")).rows == ()


async def test_namespaces_have_policies_of_their_own(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.READY, run, policy=PLAIN)
    await scene.store.client.set_policy("other", order())
    assert await revision(scene) == 0
    assert (await scene.row(row.id)).policy == PLAIN


async def test_the_steps_that_the_store_has_met_are_known(scene):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, call=step, step=step) for step in ("charge", "ship")])
    assert await scene.store.client.steps("default") == ["charge", "ship"]
    assert await scene.store.client.steps("other") == []


# --- live rows


async def test_every_live_row_of_the_step_has_the_changed_policy_and_what_ended_keeps_its_own(scene):
    rows = await rows_in_all_states(scene)
    assert await set_policy(scene) is None
    for state, row in rows.items():
        policy = await policy_of(scene, row)
        if state >= AttemptState.DONE:
            assert policy == Policy()
        else:
            assert (policy.timeout, policy.retries) == (10 * MINUTE, 6)
            assert policy.override is not None
            assert (policy.override.by, policy.override.at) == ("ann", NOON)
    await set_policy(scene, None)
    assert {(await policy_of(scene, row)) for row in rows.values()} == {Policy()}


async def test_what_runs_is_looked_at_now_and_what_waits_or_was_asked_to_stop_when_it_was_to_be(scene):
    [run] = await scene.submit(a_run(50))
    stopping = await scene.row_in(AttemptState.RUNNING, run, policy=PLAIN)
    await scene.turn(dropped=[stopping.id])
    rows = await rows_in_all_states(scene)
    before = await scene.rows()
    scene.clock.pass_by(SECOND)
    await set_policy(scene)
    after = await scene.rows()
    running = rows[AttemptState.RUNNING].id
    assert after[running].watch_at == NOON + SECOND
    others = set(after) - {running}
    assert {id: after[id].watch_at for id in others} == {id: before[id].watch_at for id in others}
    assert stopping.id in others
    assert after[stopping.id].watch_at is not None


async def test_whoever_leases_it_next_is_first_looked_at_by_the_changed_limits(scene):
    [run] = await scene.submit(a_run(1))
    await scene.row_in(AttemptState.READY, run, policy=PLAIN)
    await set_policy(scene)
    [row] = await scene.lease()
    assert row.watch_at == NOON + 10 * MINUTE
    assert decode_policy(row.policy).retries == 6


async def test_rungs_of_the_step_follow_and_questions_have_no_policy_of_a_step(scene):
    [run] = await scene.submit(a_run(1))
    patience = msgspec.json.encode(Patience())
    question = scene.a_row(run, AttemptState.PARKED, kind=RowKind.ASK, why="ask", policy=patience)
    elsewhere = scene.a_row(run, call="ship", step="ship", policy=LADDERED)
    await scene.turn(attempts=[question._replace(call="ask"), elsewhere])
    await set_policy(scene)
    rows = await scene.rows()
    assert rows[question.id].policy == patience
    changed = decode_policy(rows[elsewhere.id].policy)
    assert (changed.retries, changed.override) == (3, None)
    assert changed.ladder[0].policy is not None
    assert changed.ladder[0].policy.retries == 6
    await set_policy(scene, None)
    assert decode_policy((await scene.rows())[elsewhere.id].policy) == decode_policy(LADDERED)


async def test_a_row_of_a_scheduler_that_had_not_heard_of_it_follows_when_it_has(scene):
    await set_policy(scene)
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run, policy=PLAIN)
    scheduler, mine = scene.store.scheduler, list(scene.terms)
    assert await scheduler.patch("default", [shard for shard in mine if shard != run.shard], 0) is None
    assert (await scene.row(row.id)).policy == PLAIN
    scene.clock.pass_by(SECOND)
    assert await scheduler.patch("default", mine, 0) is None
    assert (await policy_of(scene, row)).retries == 6
    assert (await scene.row(row.id)).watch_at == NOON + SECOND


async def test_more_rows_than_one_commit_should_have_follow_page_by_page(scene):
    [run] = await scene.submit(a_run(1))
    rows = [scene.a_row(run, call=f"charge.{n}", policy=PLAIN) for n in range(PATCHED_AT_ONCE + 1)]
    await scene.turn(attempts=rows)
    place = await set_policy(scene)
    assert place == rows[-2].id
    assert (await scene.row(rows[-1].id)).policy == PLAIN
    assert await scene.store.client.patch("default", None, place) is None
    assert decode_policy((await scene.row(rows[-1].id)).policy).retries == 6


# --- races


async def test_a_verdict_by_a_policy_that_was_changed_meanwhile_is_refused(scene):
    [run] = await scene.submit(a_run(1))
    seen = await scene.row_in(AttemptState.RUNNING, run, policy=PLAIN)
    late = a_verdict(seen, AttemptState.FAILED, failures=1, losses=-1, watch_in=0)._replace(policy=seen.policy)
    await set_policy(scene, Changes(timeout=120 * MINUTE))
    assert await scene.judge(late) is False
    assert await scene.state_of(seen.id) is AttemptState.RUNNING
    again = await scene.row(seen.id)
    assert await scene.judge(late._replace(policy=again.policy))
    assert await scene.state_of(seen.id) is AttemptState.FAILED


async def test_a_change_after_the_end_of_an_attempt_changes_nothing_of_it(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run, policy=PLAIN)
    assert await scene.report(row, Act.DONE, b"42") is Answer.ACCEPTED
    await set_policy(scene)
    after = await scene.row(row.id)
    assert (after.state, after.result, after.policy, after.watch_at) == (AttemptState.DONE, b"42", PLAIN, None)


async def test_the_end_of_an_attempt_counts_also_after_a_change(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run, policy=PLAIN)
    await set_policy(scene, Changes(timeout=1))
    assert await scene.report(row, Act.DONE, b"42") is Answer.ACCEPTED
    assert await scene.state_of(row.id) is AttemptState.DONE


# --- more time


async def test_a_call_gets_more_time_if_it_is_as_it_was_seen_and_it_is_written_down(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run, policy=PLAIN)
    scene.clock.pass_by(SECOND)
    client, body = scene.store.client, a_reason("30m more")
    assert await client.extend_call(extending(row, 30 * MINUTE), "ann", 77, body)
    assert await client.extend_call(extending(row, 30 * MINUTE), "ann", 78, body) is False
    after = await scene.row(row.id)
    assert (decode_policy(after.policy).extended, after.watch_at) == (30 * MINUTE, NOON + SECOND)
    [decision] = await scene.decisions(run.id)
    assert (decision.call, decision.fence, decision.actor, decision.body) == ("charge", 77, "ann", body)
    await set_policy(scene)
    assert (await policy_of(scene, row)).extended == 30 * MINUTE
    await scene.report(await scene.row(row.id), Act.DONE, b"1")
    assert await client.extend_call(extending(await scene.row(row.id), MINUTE), "ann", 79, body) is False


async def test_two_months_may_be_set_and_given_beside(scene):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.READY, run, policy=PLAIN)
    await set_policy(scene, Changes(timeout=60 * DAY))
    await scene.report((await scene.lease())[0], Act.HAND_BACK)
    assert await scene.store.client.extend_call(extending(await scene.row(row.id), 60 * DAY), "ann", 77, b"{}")
    assert (await policy_of(scene, row)).extended == 60 * DAY
    [leased] = await scene.lease()
    assert leased.watch_at == NOON + 120 * DAY


async def test_a_run_gets_a_later_deadline_and_is_told_so_once(scene):
    deadline = NOON + MINUTE
    new = msgspec.structs.replace(a_run(1), deadline=deadline)
    [run] = await scene.submit(new)
    body = told_extension(deadline + MINUTE, MINUTE, "late parts")
    fact = NewFact("default", run.id, FactKind.EXTEND, "1", "ann", body)
    client = scene.store.client
    assert await client.extend_run(deadline, deadline + MINUTE, fact)
    assert await client.extend_run(deadline, deadline + MINUTE, fact) is False
    assert (await scene.run_row(run.id)).deadline == deadline + MINUTE
    record = await client.record("default", run.id)
    assert record is not None
    assert [(told.kind, told.actor, told.body) for told in record.told] == [(FactKind.EXTEND, "ann", body)]
    ended = await scene.run_in(RunState.COMPLETED, 2)
    assert await client.extend_run(0, MINUTE, msgspec.structs.replace(fact, id=ended.id)) is False


# --- runs that nothing moves


async def stand_still(scene: Scene, num: int, held: str | None = "held: a reason") -> RunRow:
    """Let nothing move a run: it is held, or (None) it has diverged."""
    [run] = await scene.submit(a_run(num))
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    status = RunState.DIVERGED if held is None else RunState.RUNNING
    await scene.turn(runs=[a_change(run, status, held=held)])
    return await scene.run_row(run.id)


def standing(id: int, runs: Sequence[RunRow], cause: str = "c") -> StuckGathering:
    body = msgspec.json.encode(Told("they stand still", "resume", ("o-1",)))
    evidence = tuple([StuckEvidence(run.num, run.status, run.held) for run in runs])
    return StuckGathering(NewIncident(id, "default", cause, len(runs), body), evidence)


async def test_runs_that_nothing_moves_are_seen_until_they_belong_to_an_incident(scene):
    doors = scene.store.supervisor
    held, diverged = await stand_still(scene, 1), await stand_still(scene, 2, None)
    await stand_still(scene, 3, "waits for code: its process died")
    await scene.run_in(RunState.WAITING, 4)
    muster = await doors.muster(EVERY)
    assert [(run.num, run.id, run.workflow, run.status, run.held) for run in muster.stuck] == [
        (1, "o-1", "order", RunState.RUNNING, "held: a reason"),
        (2, "o-2", "order", RunState.DIVERGED, None),
    ]
    assert muster.watched is False
    assert [tuple(one) for one in await doors.attach_runs([standing(9, [held, diverged])])] == [(2, True)]
    muster = await doors.muster(EVERY)
    assert (muster.stuck, muster.healed, muster.watched) == ((), (), True)
    [incident] = await scene.store.client.incidents("default", EVERY)
    assert (incident.members, incident.waiting, incident.runs, incident.calls) == (2, 2, True, False)
    for id in ("o-1", "o-2"):
        record = await scene.store.client.record("default", id)
        assert record is not None
        assert record.incident == 9


async def test_a_run_that_moves_again_belongs_to_no_incident_and_one_without_members_is_resolved(scene):
    doors = scene.store.supervisor
    runs = [await stand_still(scene, 1), await stand_still(scene, 2, None)]
    await doors.attach_runs([standing(9, runs)])
    await scene.turn(runs=[a_change(runs[0], RunState.RUNNING)])
    assert (await doors.muster(EVERY)).healed == ()
    await scene.turn(runs=[a_change(runs[1], RunState.CANCELLED)])
    healed = (await doors.muster(EVERY)).healed
    assert [row.id for row in healed] == [9]
    assert await doors.heal(healed) == [True]
    assert await doors.heal(healed) == [False]
    muster = await doors.muster(EVERY)
    assert (muster.healed, muster.watched) == ((), False)
    again = await stand_still(scene, 3)
    await scene.turn(runs=[a_change(runs[0], RunState.RUNNING, held="held: again")])
    assert [run.num for run in (await doors.muster(EVERY)).stuck] == [1, again.num]


async def test_a_run_that_has_moved_on_is_not_attached_and_one_more_keeps_an_incident_open(scene):
    doors = scene.store.supervisor
    first, second = await stand_still(scene, 1), await stand_still(scene, 2)
    await scene.turn(runs=[a_change(first, RunState.RUNNING)])
    assert [tuple(one) for one in await doors.attach_runs([standing(9, [first])])] == [(0, False)]
    assert await scene.store.client.incidents("default", EVERY) == []
    await doors.attach_runs([standing(9, [second])])
    await scene.turn(runs=[a_change(second, RunState.RUNNING)])
    healed = (await doors.muster(EVERY)).healed
    third = await stand_still(scene, 3)
    assert [tuple(one) for one in await doors.attach_runs([standing(10, [third])])] == [(1, False)]
    assert await doors.heal(healed) == [False]


async def test_what_is_wanted_for_all_runs_of_an_incident_is_told_to_each_once_at_a_pace(scene):
    doors, client = scene.store.supervisor, scene.store.client
    runs = [await stand_still(scene, num) for num in (1, 2, 3)]
    await doors.attach_runs([standing(9, runs)])
    assert await client.order_incident("default", 9, "ann", b"{}", 2) is Ordered.RUNS
    asked = await client.order_incident("default", 9, "ann", b"{}", 2, kind=FactKind.RETRY)
    assert asked is Ordered.DONE
    assert await client.order_incident("default", 9, "bob", b"1", 2, kind=FactKind.CANCEL) is Ordered.BUSY
    told, untold = [], []
    while orders := (await doors.muster(EVERY)).orders:
        assert orders[0].runs
        records = [await client.record("default", run.id) for run in runs]
        assert {record.wanted for record in records} - {None} == {Wanted("ann", NOON, 2, b"{}", "retry")}
        [incident] = await client.incidents("default", EVERY)
        untold.append((len([record for record in records if record.wanted]), incident.untold))
        told.append(await doors.feed(orders[0], 2))
        scene.clock.pass_by(SECOND)
    assert (told, untold) == ([2, 1], [(3, 3), (1, 1)])
    for run in runs:
        record = await client.record("default", run.id)
        assert record is not None
        assert [(fact.kind, fact.actor, fact.body) for fact in record.told] == [(FactKind.RETRY, "ann", b"{}")]
    assert await client.order_incident("default", 9, "bob", b'"no"', 2, kind=FactKind.CANCEL) is Ordered.DONE


async def test_whoever_is_to_be_told_of_runs_that_stand_still_is_told_when_they_move_again(scene):
    doors = scene.store.supervisor
    run = await stand_still(scene, 1)
    one = standing(9, [run])
    await doors.attach_runs([one._replace(incident=one.incident._replace(routes=("a",)))])
    assert await taken(scene, "a") == [(9, AlertKind.OPENED, "a", 1)]
    await doors.settle_alerts([SettledAlert(9, AlertKind.OPENED, "a", AlertState.SENT)])
    await scene.turn(runs=[a_change(run, RunState.RUNNING)])
    assert await doors.heal((await doors.muster(EVERY)).healed) == [True]
    assert await taken(scene, "a") == [(9, AlertKind.RESOLVED, "a", 1)]


# --- a long wait


async def test_a_wait_of_an_hour_is_over_after_an_hour_whoever_looks(scene):
    [run] = await scene.submit(a_run(1))
    failed = await scene.row_in(AttemptState.FAILED, run, policy=PLAIN)
    assert await scene.judge(a_verdict(failed, AttemptState.PARKED, watch_in=60 * MINUTE, why="backoff"))
    watch = scene.store.supervisor.watch
    assert ((await watch(EVERY)).due, (await watch(EVERY)).next_at) == ((), NOON + 60 * MINUTE)
    scene.clock.pass_by(60 * MINUTE - 1)
    assert (await watch(EVERY)).due == ()
    scene.clock.pass_by(1)
    assert [row.id for row in (await watch(EVERY)).due] == [failed.id]
