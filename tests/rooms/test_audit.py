"""The self-audit: what cannot be, made by hand past all doors, is found, repaired, written down and counted."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.store.orphans import wrong_in_memory
from tests.store.postgres import by_hand
from watchbill import App
from watchbill.app.rollcall import supervision_of
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.events import Event, Events
from watchbill.model.attempt import RowKind
from watchbill.model.decision import Decision
from watchbill.model.orphan import REMEDIES, AuditPlace, OrphanKind, repair_of
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor.audit import AUDIT_EVERY, Audit
from watchbill.supervisor.supervisor import Supervisor
from watchbill.testing.conformance.scene import (
    KNOWN,
    ME,
    HandClock,
    HandEnv,
    Scene,
    a_change,
    a_recast,
    a_run,
    a_verdict,
)


class Office:
    """A store, an auditor, and somebody who changes the store by hand."""

    def __init__(self, url: str, store: Store, clock: HandClock) -> None:
        self.url = url
        self.scene = Scene(store, clock)
        self.clock = clock
        self.env = HandEnv(clock)
        self.events = Events()
        self.told: list[Event] = []
        self.events.subscribe(self.told.extend)
        self.auditor = Audit(self.env, self.events, store=store.supervisor, polls=True)

    async def by_hand(self, sql: str) -> None:
        if not self.url.startswith("sqlite"):
            await by_hand(self.url, sql)
            return
        with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)) as hand:
            hand.execute(sql.replace("watchbill.", ""))

    async def a_run(self, num: int = 1, state: RunState = RunState.RUNNING) -> RunRow:
        [run] = await self.scene.submit(a_run(num))
        if state is not RunState.SCHEDULED:
            await self.scene.turn(runs=[a_change(run, state)])
        return run

    async def audits(self) -> None:
        """Let the auditor look."""
        await self.auditor.turn()
        self.clock.pass_by(AUDIT_EVERY)
        await self.auditor.turn()

    async def found(self, kind: OrphanKind, run: RunRow, call: str = "") -> None:
        """See that one of a kind was repaired, told, decided and counted, and that nothing is left to repair."""
        told = [(event.run, event.call, event.cause) for event in self.told if event.kind == "orphan.repaired"]
        assert told == [(run.id, call, kind)]
        decisions = [msgspec.json.decode(one.body, type=Decision) for one in await self.scene.decisions(run.id)]
        [said] = [one for one in decisions if one.rule == f"self-audit: {kind}"]
        assert said.chosen == REMEDIES[kind]
        assert await self.counts() == {kind: 1}
        assert (await self.scene.store.supervisor.audit(AuditPlace(), 100)).orphans == ()

    async def counts(self) -> dict[str, int]:
        return supervision_of(await self.scene.store.client.checkup("default", 10)).orphans


@pytest.fixture
async def office(kept: str) -> AsyncIterator[Office]:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock)
    office = Office(kept, store, clock)
    await office.scene.open()
    yield office
    await store.close()


async def test_where_nothing_is_wrong_nothing_is_written(office: Office) -> None:
    await office.scene.row_in(AttemptState.RUNNING, await office.a_run())
    await office.audits()
    assert office.told == []
    assert await office.counts() == {}


@pytest.mark.plants_orphans
@pytest.mark.parametrize("state", [AttemptState.READY, AttemptState.RUNNING, AttemptState.FAILED])
async def test_a_row_of_a_run_that_has_ended_is_deleted(office: Office, state: AttemptState) -> None:
    run = await office.a_run()
    row = await office.scene.row_in(state, run, watch_in=0)
    await office.by_hand("UPDATE watchbill.run SET status = 10")
    await office.audits()
    assert await office.scene.state_of(row.id) is None
    await office.found(OrphanKind.ENDED, run, "charge")


async def test_a_probe_that_is_asked_after_the_run_has_ended_is_let_be(office: Office) -> None:
    """What a run wanted no more and may have taken effect is asked about; who leases that is not to stop it."""
    scene, run = office.scene, await office.a_run()
    row = await scene.row_in(AttemptState.PARKED, run)
    unsure = a_verdict(await scene.row(row.id), AttemptState.PARKED, why="escalate")._replace(unsure=True)
    assert await scene.judge(unsure)
    await scene.turn(dropped=[row.id], runs=[a_change(run, RunState.CANCELLED)])
    unwanted = await scene.row(row.id)
    assert await scene.judge(a_verdict(unwanted, AttemptState.READY, recast=a_recast(unwanted, kind=RowKind.PROBE)))
    await office.audits()
    [asked] = await scene.lease()
    await office.audits()
    assert await scene.state_of(asked.id) is AttemptState.RUNNING
    assert await office.counts() == {}
    assert office.told == []


@pytest.mark.plants_orphans
async def test_a_row_without_a_run_is_deleted_and_nothing_is_said_of_a_run_that_is_not_there(office: Office) -> None:
    await office.scene.row_in(AttemptState.READY, await office.a_run())
    await office.by_hand("DELETE FROM watchbill.run")
    await office.audits()
    assert (await office.scene.store.supervisor.audit(AuditPlace(), 100)).orphans == ()
    assert await office.counts() == {OrphanKind.ENDED: 1}


@pytest.mark.plants_orphans
@pytest.mark.parametrize("state", [AttemptState.RUNNING, AttemptState.FAILED])
async def test_a_row_that_nobody_would_look_at_is_looked_at_and_judged(office: Office, state: AttemptState) -> None:
    run = await office.a_run()
    row = await office.scene.row_in(state, run, watch_in=0)
    await office.by_hand("UPDATE watchbill.attempt SET watch_at = NULL")
    await office.audits()
    await office.found(OrphanKind.UNWATCHED, run, "charge")
    doors = office.scene.store.supervisor
    assert [due.id for due in (await doors.watch(10)).due] == [row.id]
    await Supervisor(office.env, Events(), store=doors, lasting=None).turn()
    assert (await doors.watch(10)).due == (), "it has the time of its next look again"


@pytest.mark.parametrize(
    "gone", ["agent = NULL", "agent = 4711", "agent = 70"], ids=["nobody", "never there", "left in peace"]
)
@pytest.mark.plants_orphans
async def test_what_runs_under_nobody_is_tried_again(office: Office, gone: str) -> None:
    run = await office.a_run()
    row = await office.scene.row_in(AttemptState.RUNNING, run)
    await office.by_hand(f"UPDATE watchbill.attempt SET {gone}")
    if gone.endswith("70"):
        await office.by_hand("UPDATE watchbill.agent SET state = 3")
    await office.audits()
    await office.found(OrphanKind.ABANDONED, run, "charge")
    await Supervisor(office.env, Events(), store=office.scene.store.supervisor, lasting=None).turn()
    assert await office.scene.state_of(row.id) is AttemptState.READY
    assert (await office.scene.row(row.id)).unsure


@pytest.mark.plants_orphans
async def test_what_runs_under_nobody_is_also_counted_if_the_supervisor_finds_it_first(office: Office) -> None:
    run = await office.a_run()
    row = await office.scene.row_in(AttemptState.RUNNING, run)
    await office.by_hand("UPDATE watchbill.attempt SET agent = 4711")
    room = Supervisor(office.env, Events(), store=office.scene.store.supervisor, lasting=None)
    await room.turn()
    await room.turn()
    assert await office.scene.state_of(row.id) is AttemptState.READY
    assert await office.counts() == {OrphanKind.ABANDONED: 1}
    decisions = [msgspec.json.decode(one.body, type=Decision) for one in await office.scene.decisions(run.id)]
    assert [one.chosen for one in decisions] == ["mark failed", "retry"]


@pytest.mark.plants_orphans
async def test_a_run_that_would_never_begin_begins(office: Office) -> None:
    run = await office.a_run(state=RunState.SCHEDULED)
    await office.by_hand("UPDATE watchbill.run SET wake_at = NULL")
    shards = sorted(office.scene.terms)
    assert (await office.scene.store.scheduler.look(shards, KNOWN, 10)).due == ()
    await office.audits()
    await office.found(OrphanKind.TIMELESS, run)
    [due] = (await office.scene.store.scheduler.look(shards, KNOWN, 10)).due
    assert due.id == run.id


@pytest.mark.plants_orphans
@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.WAITING])
async def test_a_run_whose_shard_nobody_can_take_is_taken(office: Office, state: RunState) -> None:
    run = await office.a_run(state=state)
    await office.by_hand("DELETE FROM watchbill.lease")
    shards = sorted(office.scene.terms)
    assert (await office.scene.store.scheduler.take(ME, shards, None)).taken == ()
    await office.audits()
    await office.found(OrphanKind.HOMELESS, run)
    assert [one.shard for one in (await office.scene.store.scheduler.take(ME, shards, None)).taken] == [run.shard]


@pytest.mark.plants_orphans
async def test_what_is_no_more_as_it_was_seen_is_left_alone(office: Office) -> None:
    run = await office.a_run()
    row = await office.scene.row_in(AttemptState.RUNNING, run)
    await office.by_hand("UPDATE watchbill.attempt SET watch_at = NULL")
    doors = office.scene.store.supervisor
    [orphan] = (await doors.audit(AuditPlace(), 10)).orphans
    repair = repair_of(orphan)
    assert await doors.repair([repair._replace(fence=row.fence + 1)]) == [False]
    assert await doors.repair([repair]) == [True]
    assert await doors.repair([repair]) == [False]
    assert await office.counts() == {OrphanKind.UNWATCHED: 1}


async def test_an_auditor_alone_on_its_store_looks_only_while_something_happens(office: Office) -> None:
    auditor = Audit(office.env, office.events, store=office.scene.store.supervisor, polls=False)
    assert await auditor.turn() == AUDIT_EVERY
    office.clock.pass_by(AUDIT_EVERY)
    assert await auditor.turn() is None
    auditor.hint()
    office.clock.pass_by(SECOND)
    assert await auditor.turn() == AUDIT_EVERY - SECOND


@pytest.mark.plants_orphans
async def test_what_was_repaired_in_memory_is_seen_by_those_who_look_at_the_end_of_every_test() -> None:
    app = App("sqlite:///:memory:")

    @app.workflow
    async def nothing() -> None: ...

    await app.start(nothing, id="n-1")
    assert await wrong_in_memory(app) == []
    store: Store = vars(app)["_made_hall"]._store
    await store.supervisor.count_orphans(OrphanKind.ENDED, 1)
    assert len(await wrong_in_memory(app)) == 1
