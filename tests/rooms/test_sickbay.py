"""An agent that fails where others succeed: found, kept from work, tried and let back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.rooms.watched import ROUTES
from watchbill import App, Retry
from watchbill.agent.agent import Agent
from watchbill.agent.inline import InlineCrew
from watchbill.app.agents import agent_status
from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.events import Event, Events
from watchbill.flow.execute import Executor
from watchbill.model.agent import Wish
from watchbill.model.alert import AlertKind, AlertState, SettledAlert
from watchbill.model.doings import SLOT, Doings, Suspending, Tally, Trial, Work, encode
from watchbill.model.lease import HOST_LEASE
from watchbill.model.states import AttemptState, RunState
from watchbill.model.suspension import CANARIES, FIRST_WAIT, LONGEST_WAIT, Suspension, read_suspension
from watchbill.model.suspension import encode as encode_suspension
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor.sickbay import LOOK_ANYWAY, LOOK_EVERY, Sickbay
from watchbill.supervisor.supervisor import Supervisor
from watchbill.testing.conformance.scene import HandClock, HandEnv, Scene, a_change, a_run

ILL, WELL, THIRD = 101, 102, 103
CHARGE = Work(1, "charge", 0)


@pytest.fixture
async def ward(kept: str) -> AsyncIterator["Ward"]:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock, lasting_leases=False)
    try:
        yield Ward(store, clock)
    finally:
        await store.close()


class Ward:
    """A store and its agents; time passes when a test says so."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.store, self.clock = store, clock
        self.env, self.events = HandEnv(clock), Events()
        self.work = CHARGE
        self.told: list[Event] = []
        self.events.subscribe(self.told.extend)
        self.sickbay = self.another()

    def another(self) -> Sickbay:
        return Sickbay(self.env, self.store.supervisor, ROUTES)

    @property
    def now(self) -> Micros:
        return self.clock.wall_now

    async def passes(self, span: Micros) -> None:
        """Let time pass; whoever looks looks when it is due, and the agents stay."""
        until = self.clock.boot_now + span
        while self.clock.boot_now < until:
            self.clock.pass_by(min(LOOK_EVERY, until - self.clock.boot_now))
            for agent in (ILL, WELL, THIRD):
                await self.store.agent.beat(agent, HOST_LEASE, [])
            await self.look()

    async def look(self) -> None:
        if self.sickbay.is_due:
            self.events.tell(await self.sickbay.tend())

    async def join(self, *agents: int) -> None:
        for agent in agents:
            await self.store.agent.join(agent, "default", "", f"a{agent}", b"{}", HOST_LEASE)

    async def says(self, agent: int, *, trial: Trial | None = None, **each: Any) -> None:
        """Let an agent say what it did, the same in each slot of the last half minute."""
        newest = (self.now - SECOND) // SLOT
        tallies = [Tally(slot, self.work, **each) for slot in range(newest - 6, newest)] if each else []
        body = encode(Doings(tuple(tallies), "OSError" if each.get("failed") else "", trial))
        await self.store.agent.beat(agent, HOST_LEASE, [], doings=body)

    async def suspended(self) -> Suspension:
        """Let one agent fail what the others do, until it is suspended."""
        await self.fail()
        return await self.suspension()

    async def fail(self) -> None:
        self.clock.pass_by(LOOK_ANYWAY - LOOK_EVERY)
        await self.join(ILL, WELL, THIRD)
        await self.says(ILL, failed=4, runs=("r1", "r2"))
        for agent in (WELL, THIRD):
            await self.says(agent, done=5, cured=2)
        self.clock.pass_by(LOOK_EVERY)
        await self.look()

    async def suspension(self) -> Suspension:
        bodies = [doer.suspension for doer in (await self.store.supervisor.doings()).doers if doer.id == ILL]
        found = read_suspension(bodies[0])
        assert found is not None
        return found

    async def tried(self, *, well: bool) -> None:
        suspension = await self.suspension()
        await self.says(ILL, trial=Trial(suspension.since, well, "" if well else "OSError"))
        self.clock.pass_by(LOOK_EVERY)
        await self.look()

    async def alerts(self) -> list[AlertKind]:
        """Send the alerts that are due."""
        doors = self.store.supervisor
        due = (await doors.take_alerts([route.mark for route in ROUTES], 20, SECOND)).alerts
        await doors.settle_alerts([SettledAlert(one.incident.id, one.kind, one.route, AlertState.SENT) for one in due])
        return [one.kind for one in due]

    def heard(self, kind: str) -> list[str]:
        return [event.note for event in self.told if event.kind == kind]


# --- agents played by their doors


async def test_it_is_told_once_with_the_figures_and_what_to_do(ward: Ward) -> None:
    suspension = await ward.suspended()
    assert (suspension.wait, suspension.steps, suspension.runs) == (FIRST_WAIT, ("charge",), ("r1", "r2"))
    [note] = ward.heard("agent.suspended")
    assert note == f"{suspension.why}; it is tried again in 10 s"
    [incident] = ward.heard("incident.opened")
    assert incident.startswith(
        "ill agent 'a101' fails where others succeed, and gets only what nobody else can do, by its needs:"
        " of step 'charge' it failed "
    )
    assert (
        "`watchbill agents release a101` lets it work now, `watchbill agents quarantine a101` keeps it out" in incident
    )
    assert await ward.alerts() == [AlertKind.OPENED]
    other = ward.another()
    assert await other.tend() == [], "nobody else has anything to tell"
    await ward.passes(20 * SECOND)
    assert (len(ward.told), await ward.alerts()) == (2, [])
    [row] = [row for row in await ward.store.client.agents("default") if row.id == ILL]
    status = agent_status(row)
    assert status.state == "suspended"
    assert status.suspended.startswith(f"{suspension.why}; the next try is from ")


async def test_a_try_in_vain_doubles_the_wait_up_to_a_limit(ward: Ward) -> None:
    suspension = await ward.suspended()
    waits = [suspension.wait]
    for _ in range(6):
        await ward.join(WELL, THIRD)
        await ward.tried(well=False)
        waits.append((await ward.suspension()).wait)
    assert waits == [min(LONGEST_WAIT, FIRST_WAIT << n) for n in range(7)]
    assert (await ward.suspension()).tried == 6
    assert ward.heard("agent.suspended")[1] == "what it was tried with failed with OSError: it is tried again in 20 s"
    assert len(ward.heard("incident.opened")) == 1


async def test_who_passed_works_again_and_that_is_told(ward: Ward) -> None:
    await ward.suspended()
    await ward.tried(well=True)
    assert ward.heard("agent.reinstated") == ["what it was tried with was done; it was suspended for 2 s"]
    assert len(ward.heard("incident.resolved")) == 1
    assert await ward.alerts() == [AlertKind.OPENED]
    assert await ward.alerts() == [AlertKind.RESOLVED]
    await ward.fail()
    assert (await ward.suspension()).wait == 2 * FIRST_WAIT, "who falls ill again so soon is not trusted as quickly"


async def test_a_result_of_another_try_changes_nothing(ward: Ward) -> None:
    suspension = await ward.suspended()
    await ward.says(ILL, trial=Trial(suspension.since - 1, True))
    await ward.passes(2 * LOOK_EVERY)
    assert await ward.suspension() == suspension


@pytest.mark.parametrize("what", ["released", "quarantined", "gone"])
async def test_when_an_operator_has_seen_to_it_or_it_is_gone_the_incident_is_over(ward: Ward, what: str) -> None:
    await ward.suspended()
    if what == "gone":
        await ward.store.agent.leave(ILL)
    else:
        wish = Wish.NONE if what == "released" else Wish.QUARANTINE
        assert await ward.store.client.order_agent("default", ILL, wish)
    await ward.passes(2 * LOOK_EVERY)
    assert len(ward.heard("incident.resolved")) == 1
    assert len(ward.heard("agent.suspended")) == 1, "what it did before is forgiven"


async def test_whoever_comes_later_goes_on_with_it(ward: Ward) -> None:
    await ward.suspended()
    ward.sickbay = ward.another()
    await ward.passes(LOOK_ANYWAY)
    await ward.tried(well=True)
    assert len(ward.heard("agent.reinstated")) == len(ward.heard("incident.resolved")) == 1


async def test_while_nobody_fails_it_looks_once_a_minute(ward: Ward) -> None:
    await ward.join(ILL, WELL)
    await ward.look()
    looks = 0
    for _ in range(120):
        ward.clock.pass_by(SECOND)
        looks += ward.sickbay.is_due
        await ward.look()
    assert looks == 2


@pytest.mark.parametrize("left", ["nobody", "one who lacks what it needs", "one who is quarantined", "one elsewhere"])
async def test_who_is_the_last_that_could_do_it_works_again_and_that_is_told(ward: Ward, left: str) -> None:
    await ward.suspended()
    await ward.store.agent.leave(THIRD)
    await ward.passes(2 * LOOK_EVERY)
    assert ward.heard("agent.reinstated") == [], "somebody is left"
    if left == "one who is quarantined":
        assert await ward.store.client.order_agent("default", WELL, Wish.QUARANTINE)
    else:
        await ward.store.agent.leave(WELL)
    if left == "one elsewhere":
        await ward.store.agent.join(104, "default", "eu", "a104", b"{}", HOST_LEASE)
        await ward.store.agent.join(105, "other", "", "a105", b"{}", HOST_LEASE)
    if left == "one who lacks what it needs":
        seen = next(doer for doer in (await ward.store.supervisor.doings()).doers if doer.id == ILL)
        asking = replace(await ward.suspension(), needs=("gpu=2",))
        move = Suspending(ILL, seen.suspension, seen.doings, encode_suspension(asking))
        assert await ward.store.supervisor.suspend(move)
        await ward.store.agent.join(106, "default", "", "a106", b"{}", HOST_LEASE, needs=("gpu=1",))
    await ward.passes(LOOK_EVERY)
    [note] = ward.heard("agent.reinstated")
    what = " for gpu=2" if left == "one who lacks what it needs" else ""
    assert note.startswith(f"nobody else is left{what} who could do what it failed: it works again, ill as it may be, ")
    assert len(ward.heard("incident.resolved")) == 1
    assert await ward.another().tend() == [], "and stays so"


async def test_it_is_remembered_what_the_queue_asks_for(ward: Ward) -> None:
    queue = await ward.store.scheduler.queue("default", "", ("gpu",), "")
    ward.work = CHARGE._replace(queue=queue)
    assert (await ward.suspended()).needs == ("gpu",)
    await ward.passes(2 * LOOK_EVERY)
    assert len(ward.heard("agent.reinstated")) == 1, "those who are there cannot do it any more"


# --- real agents


class Host:
    """An agent that runs steps in this process, and may be broken."""

    def __init__(self, ward: Ward, number: int, needs: tuple[str, ...] = ()) -> None:
        app = App("sqlite:///:memory:")
        self.broken, self.calls = False, 0

        @app.step(retry=Retry(3))
        async def charge(n: int) -> int:
            self.calls += 1
            if self.broken:
                raise OSError("no space left on device")
            return n

        self.executor = Executor(ward.env, slots=3)
        self.agent = Agent(
            ward.env,
            ward.events,
            store=ward.store.agent,
            transactions=ward.store.transactions,
            crew=InlineCrew(app.registry, self.executor),
            namespace="default",
            region="",
            process=number,
            name=f"host-{number}",
            lasting=HOST_LEASE,
            beat=2 * SECOND,
            slots=3,
            needs=needs,
        )

    async def work(self) -> None:
        """Take what there is, end it and report it: a few times in a second."""
        for _ in range(3):
            self.agent.hint()
            await self.agent.turn()
            for _ in range(5):
                await asyncio.sleep(0)


class Yard(Ward):
    """Calls come, hosts do them, and a supervisor watches."""

    async def open(self, *needs: tuple[str, ...]) -> None:
        self.scene = Scene(self.store, self.clock)
        await self.scene.open()
        await self.store.agent.leave(70)
        self.supervisor = Supervisor(
            self.env, self.events, store=self.store.supervisor, lasting=HOST_LEASE, routes=ROUTES
        )
        self.hosts = [Host(self, 101 + n, asked) for n, asked in enumerate(needs or ((), (), ()))]
        for host in self.hosts:
            await host.agent.open()
        self.made = 0

    async def second(self, calls: int = 4, queue: int | None = None) -> None:
        self.made += 1
        [run] = await self.scene.submit(a_run(self.made))
        where = self.scene.queue if queue is None else queue
        rows = [self.scene.a_row(run, call=f"charge.{n}", queue=where) for n in range(calls)]
        await self.scene.turn(runs=[a_change(run, RunState.RUNNING)], attempts=rows)
        for host in self.hosts:
            await host.work()
        while await self.supervisor.turn() == 0:
            pass
        self.clock.pass_by(SECOND)

    async def until(self, kind: str, times: int = 1, *, within: int = 45) -> int:
        for seconds in range(within):
            if len(self.heard(kind)) >= times:
                return seconds
            await self.second()
        raise AssertionError(f"no {kind} within {within} s; told: {self.told[-5:]}")


async def test_a_broken_host_is_found_gets_nothing_is_tried_and_comes_back(kept: str) -> None:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock, lasting_leases=False)
    yard = Yard(store, clock)
    await yard.open()
    broken = yard.hosts[0]
    broken.broken = True
    assert await yard.until("agent.suspended") < 30
    assert len(yard.heard("incident.opened")) == 1
    for _ in range(3):
        await yard.second()
    calls = broken.calls
    await yard.until("agent.suspended", 2)
    assert broken.calls == calls + 1, "one attempt tries, and no other is given to it"
    broken.broken = False
    await yard.until("agent.reinstated")
    assert broken.calls == calls + 1 + CANARIES
    assert len(yard.heard("incident.resolved")) == 1
    for _ in range(20):
        await yard.second(calls=2)
    assert broken.calls > calls + 1 + CANARIES
    rows = await yard.scene.rows()
    assert {row.state for row in rows.values()} == {AttemptState.DONE}
    assert max(row.failures for row in rows.values()) < 3, "nobody's retries were used up"
    await store.close()


async def test_who_is_suspended_goes_on_with_what_only_it_can_do_and_with_all_when_nobody_else_is_left(
    kept: str,
) -> None:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock, lasting_leases=False)
    yard = Yard(store, clock)
    await yard.open(("gpu",), ())
    ill, well = yard.hosts
    gpu = await store.scheduler.queue("default", "", ("gpu",), "")
    for _ in range(3):
        await yard.second(calls=0)
    roll = await store.supervisor.doings()
    [seen] = [doer for doer in roll.doers if doer.id == ILL]
    suspension = Suspension(roll.now, roll.now, LONGEST_WAIT, "it fails", ("charge",))
    assert await store.supervisor.suspend(Suspending(ILL, None, seen.doings, encode_suspension(suspension), (WELL,)))
    for _ in range(3):
        await yard.second(calls=0)
    before = ill.calls
    for _ in range(4):
        await yard.second(calls=2)
    assert (ill.calls, well.calls) == (before, 8), "what others can do it does not get"
    for _ in range(8):
        await yard.second(calls=2, queue=gpu)
    for _ in range(4):
        await yard.second(calls=0)
    assert (ill.calls, well.calls) == (before + 16, 8), "what only it can do it does"
    yard.hosts.remove(well)
    await well.agent.close()
    ill.broken = True
    await yard.until("agent.reinstated", within=70)
    assert ill.calls > before + 16
    await store.close()


async def test_who_waits_to_be_tried_goes_on_with_what_only_it_can_do_though_no_hint_comes(kept: str) -> None:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock, lasting_leases=False)
    yard = Yard(store, clock)
    await yard.open(("gpu",), ())
    ill, _ = yard.hosts
    gpu = await store.scheduler.queue("default", "", ("gpu",), "")
    await yard.second(calls=0)
    roll = await store.supervisor.doings()
    [seen] = [doer for doer in roll.doers if doer.id == ILL]
    suspension = Suspension(roll.now, roll.now, LONGEST_WAIT, "it fails", ("charge",))
    assert await store.supervisor.suspend(Suspending(ILL, None, seen.doings, encode_suspension(suspension), (WELL,)))
    hosts, yard.hosts = yard.hosts, []
    await yard.second(calls=2, queue=gpu)
    for _ in range(20):  # beats, and nothing else: hints may be lost
        clock.pass_by(SECOND)
        for host in hosts:
            await host.agent.turn()
            for _ in range(5):
                await asyncio.sleep(0)
    assert ill.calls == 2
    await store.close()


async def test_on_a_file_the_incident_is_over_when_all_guests_are_gone_at_once(file: str) -> None:
    clock = HandClock()
    store = await open_store(file, SystemEnv(), clock=clock)
    ward = Ward(store, clock)
    supervisor = Supervisor(ward.env, ward.events, store=store.supervisor, lasting=None, routes=ROUTES)
    await ward.join(ILL, WELL, THIRD)
    await supervisor.turn()
    clock.pass_by(LOOK_ANYWAY)
    for agent in (ILL, WELL, THIRD):
        await store.agent.beat(agent, HOST_LEASE, [])
    await ward.says(ILL, failed=4, runs=("r1", "r2"))
    for agent in (WELL, THIRD):
        await ward.says(agent, done=5, cured=2)
    for _ in range(3):
        clock.pass_by(SECOND)
        supervisor.hint()
        await supervisor.turn()
    assert len(ward.heard("incident.opened")) == 1
    for agent in (ILL, WELL, THIRD):
        await store.agent.leave(agent)
    for _ in range(200):
        clock.pass_by(SECOND)
        supervisor.hint()
        await supervisor.turn()
    assert [row.cause for row in await store.supervisor.incidents()] == []
    await store.close()


class Deaf:
    """The doors of an agent that loses the answer to its next lease."""

    def __init__(self, doors: Any) -> None:
        self._doors, self.deaf = doors, True

    def __getattr__(self, door: str) -> Any:
        return getattr(self._doors, door)

    async def lease(self, *args: Any) -> Any:
        rows = await self._doors.lease(*args)
        if rows and self.deaf:
            self.deaf = False
            raise StoreUnreachableError("the answer was lost")
        return rows


async def test_a_try_whose_answer_was_lost_costs_nobody_a_retry(kept: str) -> None:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock, lasting_leases=False)
    yard = Yard(store, clock)
    await yard.open((), ())
    ill, _ = yard.hosts
    ill.broken = True
    vars(vars(ill.agent)["_requests"])["_store"] = Deaf(store.agent)
    await yard.second(calls=0)
    roll = await store.supervisor.doings()
    [seen] = [doer for doer in roll.doers if doer.id == ILL]
    suspension = encode_suspension(Suspension(roll.now, roll.now, 0, "it fails", ("charge",)))
    assert await store.supervisor.suspend(Suspending(ILL, None, seen.doings, suspension, (WELL,)))
    yard.hosts = []
    await yard.second(calls=1)
    for _ in range(20):
        clock.pass_by(2 * SECOND)
        with contextlib.suppress(StoreUnreachableError):
            await ill.agent.turn()
        for _ in range(5):
            await asyncio.sleep(0)
        await store.agent.beat(WELL, HOST_LEASE, [])
    [row] = (await yard.scene.rows()).values()
    assert (ill.calls, row.state, row.failures) == (1, AttemptState.READY, 0)
    await store.close()
