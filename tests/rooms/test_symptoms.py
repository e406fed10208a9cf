"""What the supervisor finds without being told, when, what it calls it, and what follows: on every store."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.rooms.watched import A_LEASE, MANY, OTHER, Watched, watching
from watchbill.clock import SECOND, Micros
from watchbill.model.agent import Act, Answer, ProgressMark
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.complement import LOST_AGENTS
from watchbill.model.decision import Decision
from watchbill.model.failure import Cause, Failure, Remedy
from watchbill.model.policy import Cures, Policy, Rung
from watchbill.model.profile import PROFILES, SILENCE, STOPS_WITHIN
from watchbill.model.question import inbox_item
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.scene import AGENT

LOOK_EVERY = 2  # seconds; a supervisor that hears nobody for longer than three would not believe what it sees
STALL = 10 * SECOND


@pytest.fixture
async def here(kept: str) -> AsyncIterator[Watched]:
    async with watching(kept) as here:
        yield here


async def decisions(here: Watched, run: str = "o-1") -> list[Decision]:
    return [msgspec.json.decode(row.body, type=Decision) for row in await here.scene.decisions(run)]


def a_policy(**options: Any) -> dict[str, Any]:
    """What a row has that was made under a policy."""
    policy = Policy(**options)
    return {"policy": msgspec.json.encode(policy), "span": policy.first_look // 1_000}


async def leased(here: Watched, agent: int = AGENT) -> AttemptRow:
    [row] = await here.scene.lease(agent)
    return row


# --- silence and lateness


async def test_who_says_nothing_is_missed_when_the_lease_of_its_profile_is_over_and_not_before(here: Watched) -> None:
    missed: dict[str, Micros] = {}
    rows = {}
    for agent, (name, profile) in enumerate(PROFILES.items(), OTHER):
        await here.joins(agent, profile.lease)
        await here.ready(num=agent)
        rows[name] = (await leased(here, agent)).id
    began = here.clock.boot()
    for _ in range(0, PROFILES["batch"].lease // SECOND + LOOK_EVERY, LOOK_EVERY):
        here.clock.pass_by(LOOK_EVERY * SECOND)
        await here.looks()
        found = await here.scene.rows()
        for name, id in rows.items():
            if found[id].state is AttemptState.READY:
                missed.setdefault(name, here.clock.boot() - began)
    assert missed.keys() == PROFILES.keys()
    for name, profile in PROFILES.items():
        assert profile.lease <= missed[name] <= profile.lease + LOOK_EVERY * SECOND, name
    assert here.heard("step.lost") == len(PROFILES), "each once, and nobody has reported anything"


async def test_who_is_silent_and_who_takes_too_long_are_told_apart_in_the_history(here: Watched) -> None:
    await here.joins(OTHER)
    await here.ready(**a_policy(timeout=4 * SECOND))
    await leased(here)
    await here.ready(num=2)
    await leased(here, OTHER)
    await here.passes(A_LEASE)
    [late] = [one for one in await decisions(here, "o-1") if one.chosen == "mark failed"]
    [lost] = [one for one in await decisions(here, "o-2") if one.chosen == "mark failed"]
    assert (late.cause, late.agent) == (Cause.LATE, AGENT)
    assert "after its timeout of 4 s" in late.message
    assert (lost.cause, lost.agent) == (Cause.LOST, OTHER)
    assert lost.message == f"agent 'agent-{OTHER}' ({OTHER}) did not renew its lease"


# --- standing still


async def test_what_moves_however_slowly_goes_on_and_what_stands_still_is_found(here: Watched) -> None:
    [moving] = await here.ready(**a_policy(stall=STALL, timeout=3_600 * SECOND))
    slow = await leased(here)
    [standing] = await here.ready(num=2, **a_policy(stall=STALL, timeout=3_600 * SECOND))
    stuck = await leased(here)
    for done in range(1, MANY):
        mark = ProgressMark(slow.id, slow.fence, b'{"done":%d}' % done, increased=True)
        note = ProgressMark(stuck.id, stuck.fence, b'{"done":47,"note":"still at it: %d"}' % done, increased=False)
        assert await here.beats(AGENT, mark, note)
        await here.passes(STALL // SECOND - 1)
    assert await here.report(slow, Act.DONE, b"1") is Answer.ACCEPTED
    assert await here.report(stuck, Act.DONE, b"1") is Answer.LATE
    assert (await here.scene.row(moving)).failures == 0
    assert [one.cause for one in await decisions(here, "o-1")] == []
    [found] = [one for one in await decisions(here, "o-2") if one.chosen == "mark failed"]
    assert found.cause is Cause.STALLED
    assert (await here.scene.row(standing)).losses == 0


# --- nobody knows whether it took effect


@pytest.mark.parametrize("probe", [True, False], ids=["with a probe", "without"])
async def test_what_is_not_idempotent_and_was_lost_is_never_tried_again_blindly(here: Watched, probe: bool) -> None:
    await here.joins(OTHER)
    [id] = await here.ready(**a_policy(cures=Cures(idempotent=False, probe=probe)))
    await leased(here, OTHER)
    await here.passes(A_LEASE)
    row = await here.scene.row(id)
    if not probe:
        assert (row.state, row.why, row.watch_at) == (AttemptState.PARKED, "doubt", None)
        assert [kind.word for kind, cause in here.sent if cause != LOST_AGENTS] == ["opened"]
        return
    assert (row.state, row.why) == (AttemptState.PARKED, "settle")
    assert await here.scene.lease() == [], "whoever had it may still act"
    await here.passes(STOPS_WITHIN // SECOND + 1)
    asked = await leased(here)
    assert (asked.id, asked.kind, asked.number) == (id, RowKind.PROBE, row.number)


async def test_what_is_late_under_a_long_lease_is_not_asked_about_before_that_has_ended(here: Watched) -> None:
    batch = PROFILES["batch"].lease
    await here.joins(OTHER, batch)
    began = here.clock.boot()
    [id] = await here.ready(**a_policy(timeout=4 * SECOND, cures=Cures(idempotent=False, probe=True)))
    await leased(here, OTHER)
    await here.passes(5)
    row = await here.scene.row(id)
    assert (row.state, row.why) == (AttemptState.PARKED, "settle")
    assert row.watch_at is not None
    now = (await here.scene.store.supervisor.watch(1)).now
    asked_at = row.watch_at - now + here.clock.boot()
    assert asked_at == began + batch + STOPS_WITHIN, "it may have been cut off right after it came"
    [settled] = [one for one in await decisions(here) if one.chosen == "wait until it can be asked"]
    assert settled.rule.endswith("by the lease of its agent, and the time in which that stops it, for 96.0 s)")


@pytest.mark.parametrize("idempotent", [True, False])
async def test_of_what_a_stopped_run_lost_is_known_until_when_its_agent_may_act(
    here: Watched, idempotent: bool
) -> None:
    """Its connection went away, so it is buried early: the end of the call begins the undo, which waits for that."""
    batch = PROFILES["batch"].lease
    await here.joins(OTHER, batch)
    [id] = await here.ready(**a_policy(cures=Cures(idempotent=idempotent)))
    await leased(here, OTHER)
    began = here.clock.boot()
    await here.scene.turn(dropped=[id])
    await here.passes(31)
    await here.scene.store.supervisor.bury([OTHER], unheard=True)
    await here.looks()
    row = await here.scene.row(id)
    if row.state is AttemptState.RUNNING:
        pytest.skip("its connection cannot be missed on this store")
    assert (row.state, msgspec.json.decode(row.result or b"", type=Failure).cause) == (AttemptState.GAVE_UP, Cause.LOST)
    now = (await here.scene.store.supervisor.watch(1)).now
    assert row.acts_until is not None
    longer = SILENCE if idempotent else 0
    assert row.acts_until - now + here.clock.boot() == began + batch + longer + STOPS_WITHIN


# --- people


async def test_the_time_that_people_have_begins_when_they_are_told(here: Watched) -> None:
    await here.joins(OTHER)
    [id] = await here.ready(**a_policy(retries=0, cures=Cures((Rung(to="clerks", within=60 * SECOND),))))
    row = await leased(here)
    await here.report(row, Act.FAILED, msgspec.json.encode(Failure("ConnectionError", "no line")))
    here.supervisor.hint()
    while await here.supervisor.turn() == 0:
        pass
    here.clock.pass_by(3_600 * SECOND)  # all died before anybody was told, and are back now
    [item] = await here.scene.store.client.inbox("default", MANY)
    assert inbox_item(item).due_at is None
    await here.passes(40)
    assert [kind.word for kind, _ in here.sent] == ["opened", "reminded"]
    assert (await here.scene.row(id)).why == "escalate"
    await here.passes(22)
    assert (await here.scene.row(id)).state is AttemptState.GAVE_UP


# --- by class of error


async def test_each_class_of_error_has_its_own_cure(here: Watched) -> None:
    """A network error is tried again at once, too many requests when they said, and an unknown outcome by nobody."""
    failures = {
        "network": Failure("ConnectionError", "refused"),
        "busy": Failure("Busy", "429", remedy=Remedy.WAIT, retry_after=30 * SECOND),
        "ambiguous": Failure("Ambiguous", "no answer", cause=Cause.UNKNOWN),
        "invalid": Failure("Permanent", "no such region", remedy=Remedy.GIVE_UP),
    }
    ids = dict(zip(failures, await here.ready(rows=len(failures), **a_policy(backoff=0)), strict=True))
    for row in await here.scene.lease():
        [name] = [name for name, id in ids.items() if id == row.id]
        await here.report(row, Act.FAILED, msgspec.json.encode(failures[name]))
    await here.looks()
    [again] = await here.scene.lease()
    assert (again.id, again.failures) == (ids["network"], 1)
    rows = await here.scene.rows()
    now = (await here.scene.store.supervisor.watch(MANY)).now
    busy, ambiguous = rows[ids["busy"]], rows[ids["ambiguous"]]
    assert (busy.state, busy.failures) == (AttemptState.PARKED, 0)
    assert 30 * SECOND <= (busy.watch_at or 0) - now <= 37.5 * SECOND
    assert (ambiguous.state, ambiguous.why, ambiguous.watch_at) == (AttemptState.PARKED, "doubt", None)
    assert rows[ids["invalid"]].state is AttemptState.GAVE_UP
    await here.passes(40)
    assert [row.id for row in await here.scene.lease()] == [ids["busy"]]
