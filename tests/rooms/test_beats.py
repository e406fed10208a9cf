"""An agent beats and reports while other answers take their time, and forgets nothing that a lost beat was to say."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import msgspec
import pytest

from watchbill.agent.agent import DRAIN, Agent
from watchbill.agent.inline import InlineCrew
from watchbill.agent.requests import Given, Requests
from watchbill.agent.vigil import TELL_AFTER
from watchbill.bounds import BOUNDS
from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.events import Events
from watchbill.flow.context import attempt
from watchbill.flow.execute import Executor
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.model.agent import Answer, Orders, Report, Wish
from watchbill.model.logbook import LogEntry
from watchbill.model.policy import Cures, Policy
from watchbill.model.profile import PROFILES
from watchbill.model.states import AttemptState
from watchbill.store.open import open_store
from watchbill.store.protocol import AgentStore, Store
from watchbill.testing.conformance.scene import AGENT, HandClock, Scene, a_run, a_verdict

LONG = 120  # seconds: reached only by a test that fails
ID = 700
BEAT, LEASE = PROFILES["critical"]
ONCE = Policy(cures=Cures(idempotent=False))


class HandEnv(SystemEnv):
    """Timers go off when a test lets time pass."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__()
        self.clock = clock
        self._hand = clock
        self._timers: list[tuple[Micros, asyncio.TimerHandle, Callable[[], None]]] = []

    def call_later(self, delay: Micros, callback: Callable[[], None]) -> asyncio.TimerHandle:
        timer = super().call_later(3_600 * SECOND, callback)
        self._timers.append((self.clock.boot() + delay, timer, callback))
        return timer

    def passes(self, span: Micros) -> None:
        self._hand.pass_by(span)
        due = [timer for timer in self._timers if timer[0] <= self.clock.boot()]
        self._timers = [timer for timer in self._timers if timer not in due]
        for _, timer, callback in due:
            if not timer.cancelled():
                timer.cancel()
                callback()


class Line:
    """The way to an agent's doors: each can be slow, or lead nowhere."""

    def __init__(self, doors: AgentStore) -> None:
        self._doors = doors
        self.slow: dict[str, asyncio.Event] = {}  # until when a door does not answer
        self.cut: set[str] = set()
        self.deaf: set[str] = set()  # what is asked there is done, and the answer lost
        self.late: dict[str, asyncio.Event] = {}  # likewise, but the answer comes then
        self.asked = {door: asyncio.Event() for door in ("report", "beat", "lease", "leave")}
        self.answered = asyncio.Event()  # a beat was
        self.leased = asyncio.Event()  # rows were, and nobody has heard of it
        self.told = asyncio.Event()  # a report was answered
        self.said: list[object] = []  # in order: how many were reported at once, and None for each beat
        self.lost: list[str] = []  # doors at which the next request is lost
        self.left = 0  # requests to leave

    def __getattr__(self, door: str) -> Any:
        return getattr(self._doors, door)

    async def report(self, agent: int, reports: Sequence[Report]) -> list[Answer]:
        self.said.append(len(reports))
        await self._pass("report")
        answers = await self._doors.report(agent, reports)
        self.told.set()
        return answers

    async def beat(self, *args: Any, **options: Any) -> Orders:
        self.said.append(None)
        await self._pass("beat")
        orders = await self._doors.beat(*args, **options)
        self.answered.set()
        return orders

    async def lease(self, *args: Any) -> Any:
        await self._pass("lease")
        rows = await self._doors.lease(*args)
        if "lease" in self.late:
            self.leased.set()
            await self.late["lease"].wait()
        if "lease" in self.deaf:
            raise StoreUnreachableError("the answer is lost")
        return rows

    async def leave(self, agent: int) -> None:
        self.left += 1
        await self._pass("leave")
        await self._doors.leave(agent)

    async def _pass(self, door: str) -> None:
        self.asked[door].set()
        if door in self.lost:
            self.lost.remove(door)
            raise StoreUnreachableError("the request was lost")
        if door in self.slow:
            await self.slow[door].wait()
        if door in self.cut:
            raise StoreUnreachableError("the line is cut")


class Charging:
    """What the step of these tests does: it waits until it is told what to return, and says when it was stopped."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[Any] = asyncio.Queue()
        self.returns: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.stopped = asyncio.Event()

    async def charge(self, n: int) -> str:
        self.begun.put_nowait(attempt())
        try:
            return await asyncio.shield(self.returns)
        except asyncio.CancelledError:
            self.stopped.set()
            raise


class Ship:
    """One real agent on a real store, a line between them, and a hand on the clock."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.store = store
        self.scene = Scene(store, clock)
        self.env = HandEnv(clock)
        self.line = Line(store.agent)
        self.step = Charging()
        registry = Registry()
        registry.add_step(Step(self.step.charge, name="charge"))
        self.agent = Agent(
            self.env,
            Events(),
            store=cast(AgentStore, self.line),
            transactions=store.transactions,
            crew=InlineCrew(registry, Executor(self.env, slots=9, threads=1)),
            namespace="default",
            region="",
            process=ID,
            name="a",
            lasting=LEASE,
            beat=BEAT,
        )

    async def begins(self, rows: int = 1, policy: Policy | None = None) -> list[Any]:
        """Have the agent begin so many attempts; gives what `attempt()` is in each."""
        await self.scene.open()
        await self.agent.open()
        [run] = await self.scene.submit(a_run(1))
        calls = [self.scene.a_row(run, call=f"charge.{n}") for n in range(rows)]
        if policy is not None:
            calls = [call._replace(policy=msgspec.json.encode(policy)) for call in calls]
        await self.scene.turn(attempts=calls)
        async with asyncio.timeout(LONG):
            await self.agent.turn()
            return [await self.step.begun.get() for _ in calls]

    async def ends(self, result: str) -> None:
        """Let every attempt return that."""
        self.step.returns.set_result(result)
        async with asyncio.timeout(LONG):
            held = vars(self.agent)["_held"]
            while len(vars(held)["_ended"]) < len(held.running):
                await asyncio.sleep(0)

    async def moves(self, running: Any, done: int) -> None:
        """Let an attempt say how far it is, and its agent hear of it."""
        running.progress(done, total=100)
        async with asyncio.timeout(LONG):
            while not vars(self.agent)["_held"].has_moved:
                await asyncio.sleep(0)

    async def waits_for(self, door: str) -> "asyncio.Task[Any]":
        """Begin a turn that waits for the answer of that door."""
        self.line.slow[door] = asyncio.Event()
        self.line.asked[door].clear()
        turn = asyncio.get_running_loop().create_task(self.agent.turn())
        async with asyncio.timeout(LONG):
            await self.line.asked[door].wait()
        return turn

    async def is_alive_after(self, spans: int) -> None:
        """Let so many leases pass, and see that the agent is heard in each of them."""
        for _ in range(spans * LEASE // BEAT):
            self.line.answered.clear()
            for _ in range(2):
                self.env.passes(BEAT)
            async with asyncio.timeout(LONG):
                await self.line.answered.wait()
            watch = await self.store.supervisor.watch(10)
            assert watch.orphans == (), "a living agent is called dead"


@pytest.fixture
async def ship(kept: str) -> AsyncIterator[Ship]:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock)
    yield Ship(store, clock)
    await store.close()


async def test_who_has_much_to_report_is_not_called_dead(ship: Ship) -> None:
    await ship.begins()
    await ship.ends("paid")
    turn = await ship.waits_for("report")
    await ship.is_alive_after(3)
    ship.line.slow.pop("report").set()
    await turn
    [row] = (await ship.scene.rows()).values()
    assert (row.state, row.result) == (AttemptState.DONE, b'"paid"'), "nobody else has it"


async def test_who_waits_for_its_lease_is_not_called_dead_and_its_steps_are_seen_to_move(ship: Ship) -> None:
    [running] = await ship.begins()
    ship.agent.hint()
    turn = await ship.waits_for("lease")
    await ship.moves(running, 47)
    await ship.is_alive_after(2)
    [row] = (await ship.scene.rows()).values()
    assert row.progress is not None
    assert msgspec.json.decode(row.progress)["done"] == 47
    ship.line.slow.pop("lease").set()
    await turn


async def test_who_beats_beside_a_door_that_hangs_hears_what_was_taken_from_it(ship: Ship) -> None:
    await ship.begins(policy=ONCE)
    ship.agent.hint()
    turn = await ship.waits_for("lease")
    [row] = (await ship.scene.rows()).values()
    assert await ship.scene.judge(a_verdict(row, AttemptState.FAILED, failures=1, losses=-1, watch_in=0))
    await ship.is_alive_after(1)
    async with asyncio.timeout(LONG):
        await ship.step.stopped.wait()
    ship.line.slow.pop("lease").set()
    await turn


async def test_who_beats_beside_a_door_that_hangs_hears_what_is_to_stop(ship: Ship) -> None:
    await ship.begins()
    ship.agent.hint()
    turn = await ship.waits_for("lease")
    await ship.scene.turn(dropped=list(await ship.scene.rows()))
    await ship.is_alive_after(1)
    async with asyncio.timeout(LONG):
        await ship.step.stopped.wait()
    ship.line.slow.pop("lease").set()
    await turn


async def test_what_was_taken_from_it_before_it_heard_that_it_had_it_is_not_begun_though_a_beat_was_heard_since(
    ship: Ship,
) -> None:
    await ship.begins()
    [run] = await ship.scene.submit(a_run(2))
    await ship.scene.turn(attempts=[ship.scene.a_row(run, call="late")])
    ship.agent.hint()
    ship.line.late["lease"] = asyncio.Event()
    turn = asyncio.get_running_loop().create_task(ship.agent.turn())
    async with asyncio.timeout(LONG):
        await ship.line.leased.wait()
    ship.line.cut.add("beat")
    ship.env.passes(LEASE)
    assert len((await ship.store.supervisor.watch(10)).orphans) == 2, "nobody has heard of it in time"
    [late] = [row for row in (await ship.scene.rows()).values() if row.call == "late"]
    assert await ship.scene.judge(a_verdict(late, AttemptState.FAILED, watch_in=0))
    ship.line.cut.clear()
    await ship.is_alive_after(1)
    ship.line.late.pop("lease").set()
    async with asyncio.timeout(LONG):
        await turn
        await ship.agent.turn()
    assert ship.step.begun.empty()
    assert (await ship.scene.rows())[late.id].state is AttemptState.FAILED, "nor is it handed back: it is not its own"


async def test_an_increase_that_a_lost_beat_was_to_say_is_said_by_the_next_one(ship: Ship) -> None:
    [running] = await ship.begins()
    await ship.moves(running, 1)
    ship.env.passes(BEAT)
    await ship.agent.turn()
    [before] = (await ship.scene.rows()).values()
    await ship.moves(running, 2)
    ship.line.cut.add("beat")
    for _ in range(2):
        ship.env.passes(BEAT // 2)
        with pytest.raises(StoreUnreachableError):
            await ship.agent.turn()
    ship.line.cut.clear()
    await ship.agent.turn()
    [after] = (await ship.scene.rows()).values()
    assert before.progress_at is not None
    assert after.progress_at == before.progress_at + BEAT, "it has moved: nobody may call it stalled"


async def test_what_must_not_happen_twice_is_stopped_when_the_lease_has_ended_though_no_answer_comes(
    ship: Ship,
) -> None:
    await ship.begins(policy=ONCE)
    ship.env.passes(BEAT)
    turn = await ship.waits_for("beat")
    ship.env.passes(LEASE - BEAT - 2 * SECOND)
    await asyncio.sleep(0)
    assert not ship.step.stopped.is_set()
    ship.env.passes(SECOND)
    async with asyncio.timeout(LONG):
        await ship.step.stopped.wait()
    ship.line.slow.pop("beat").set()
    await turn


async def test_what_is_much_is_reported_in_portions_with_beats_between_them(ship: Ship) -> None:
    await ship.begins(rows=3)
    await ship.ends("x" * (BOUNDS.reported * 2 // 5))
    ship.line.said.clear()
    ship.env.passes(BEAT)
    await ship.agent.turn()
    await ship.agent.turn()
    assert ship.line.said == [2, None, 1]
    assert {row.state for row in (await ship.scene.rows()).values()} == {AttemptState.DONE}


async def test_a_drain_whose_grace_is_over_hands_back_the_others_and_owns_up_to_what_must_not_be_repeated(
    ship: Ship,
) -> None:
    async def never_listens(n: int) -> str:
        ship.step.begun.put_nowait(attempt())
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                return await asyncio.shield(ship.step.returns)

    registry = Registry()
    registry.add_step(Step(never_listens, name="charge"))
    vars(ship.agent)["_crew"].__init__(registry, Executor(ship.env, slots=9, threads=1))
    await ship.scene.open()
    await ship.agent.open()
    [run] = await ship.scene.submit(a_run(1))
    once = ship.scene.a_row(run, call="charge.0")._replace(policy=msgspec.json.encode(ONCE))
    await ship.scene.turn(attempts=[once, ship.scene.a_row(run, call="charge.1")])
    await ship.agent.turn()
    for _ in range(2):
        await ship.step.begun.get()
    vars(ship.agent)["_stopping"] = True
    closing = asyncio.get_running_loop().create_task(ship.agent.close())
    for _ in range(3):
        await asyncio.sleep(0.01)
        ship.env.passes(DRAIN // 2)
        ship.agent.wake()
    async with asyncio.timeout(LONG):
        await closing
    ship.step.returns.set_result("")
    await asyncio.sleep(0)
    rows = {row.call: row for row in (await ship.scene.rows()).values()}
    assert (rows["charge.1"].state, rows["charge.1"].losses) == (AttemptState.READY, 0), "a drain costs nothing"
    assert rows["charge.0"].state is AttemptState.FAILED


async def test_what_was_refused_is_said_before_a_beat_would_hand_it_back(ship: Ship) -> None:
    await ship.begins(rows=3)
    [run] = await ship.scene.submit(a_run(2))
    await ship.scene.turn(attempts=[ship.scene.a_row(run, call="charge.bad")._replace(args=b'[["x"],{}]')])
    await ship.ends("x" * BOUNDS.reported)  # each is a portion
    ship.agent.hint()
    await ship.agent.turn()
    [before] = [row for row in (await ship.scene.rows()).values() if row.call == "charge.bad"]
    for _ in range(3):
        ship.env.passes(BEAT)
        await ship.agent.turn()
    [after] = [row for row in (await ship.scene.rows()).values() if row.call == "charge.bad"]
    assert (after.state, after.fence) == (AttemptState.FAILED, before.fence)


@pytest.mark.parametrize("door", ["lease", "beat"])
async def test_what_ends_while_another_answer_is_waited_for_is_reported_beside_it(ship: Ship, door: str) -> None:
    await ship.begins(policy=ONCE)
    ship.env.passes(BEAT)
    ship.agent.hint()
    turn = await ship.waits_for(door)
    await ship.ends("paid")
    ship.env.passes(TELL_AFTER)
    async with asyncio.timeout(LONG):
        await ship.line.told.wait()
    [row] = (await ship.scene.rows()).values()
    assert (row.state, row.result) == (AttemptState.DONE, b'"paid"'), "though the other answer is not there"
    ship.line.slow.pop(door).set()
    await turn
    assert ship.line.said.count(1) == 1, "it was reported once"


async def test_what_ends_while_a_report_is_under_way_is_reported_beside_it(ship: Ship) -> None:
    first, _ = await ship.begins(rows=2)
    saved = first.checkpoint("half")
    async with asyncio.timeout(LONG):
        while not vars(ship.agent)["_reports"]:
            await asyncio.sleep(0)
    turn = await ship.waits_for("report")
    hung = ship.line.slow.pop("report")
    await ship.ends("paid")
    ship.env.passes(TELL_AFTER)
    async with asyncio.timeout(LONG):
        await ship.line.told.wait()
    states = sorted(row.state for row in (await ship.scene.rows()).values())
    assert states == [AttemptState.RUNNING, AttemptState.DONE], "an end never overtakes a checkpoint of its row"
    hung.set()
    await turn
    await saved
    await ship.agent.turn()
    assert {row.state for row in (await ship.scene.rows()).values()} == {AttemptState.DONE}


@pytest.fixture
def small_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemEnv, "bounds", BOUNDS._replace(unreported=10))


@pytest.mark.usefixtures("small_reports")
async def test_agent_with_too_much_to_report_waits_until_its_report_is_answered(ship: Ship) -> None:
    await ship.begins()
    ship.agent.hint()
    turn = await ship.waits_for("lease")
    await ship.ends("x" * 20)
    ship.line.slow["report"] = asyncio.Event()
    ship.env.passes(TELL_AFTER)
    async with asyncio.timeout(LONG):
        await ship.line.asked["report"].wait()
    ship.line.slow.pop("lease").set()
    await turn
    ship.line.asked["lease"].clear()
    ship.agent.hint()
    assert await ship.agent.turn() != 0, "turn after turn it could only see the same"
    assert not ship.line.asked["lease"].is_set(), "it leases nothing more"
    ship.line.slow.pop("report").set()
    async with asyncio.timeout(LONG):
        await ship.line.told.wait()
    await ship.agent.turn()
    assert ship.line.asked["lease"].is_set()


async def test_a_beat_while_a_report_is_under_way_takes_nothing_from_anybody(ship: Ship) -> None:
    await ship.begins()
    ship.agent.hint()
    turn = await ship.waits_for("lease")
    await ship.ends("paid")
    ship.line.slow["report"] = asyncio.Event()
    ship.env.passes(TELL_AFTER)
    async with asyncio.timeout(LONG):
        await ship.line.asked["report"].wait()
    ship.line.slow.pop("lease").set()
    await turn
    ship.env.passes(BEAT)
    await ship.agent.turn()  # beats, while its report has not arrived
    [row] = (await ship.scene.rows()).values()
    assert row.state == AttemptState.RUNNING, "what has ended is held until its report was answered"
    ship.line.slow.pop("report").set()
    async with asyncio.timeout(LONG):
        await ship.line.told.wait()
    [row] = (await ship.scene.rows()).values()
    assert (row.state, row.losses, row.result) == (AttemptState.DONE, 0, b'"paid"')


async def test_what_nobody_heard_is_said_again_by_a_turn_and_not_beside_it(ship: Ship) -> None:
    await ship.begins()
    ship.agent.hint()
    turn = await ship.waits_for("lease")
    await ship.ends("paid")
    ship.line.cut.add("report")
    ship.line.said.clear()
    for _ in range(20):
        ship.env.passes(TELL_AFTER)
        for _ in range(9):
            await asyncio.sleep(0)
    assert ship.line.said == [1], "a store that does not answer is not asked all the time"
    ship.line.cut.clear()
    ship.line.slow.pop("lease").set()
    await turn
    await ship.agent.turn()
    assert ship.line.said == [1, 1]
    assert {row.state for row in (await ship.scene.rows()).values()} == {AttemptState.DONE}


async def test_who_leaves_waits_for_the_report_that_is_under_way(ship: Ship) -> None:
    await ship.begins(policy=ONCE)
    ship.agent.hint()
    turn = await ship.waits_for("lease")
    await ship.ends("paid")
    ship.line.slow["report"] = asyncio.Event()
    ship.env.passes(TELL_AFTER)
    async with asyncio.timeout(LONG):
        await ship.line.asked["report"].wait()
    ship.line.slow.pop("lease").set()
    await turn
    ship.agent.hurry()
    leaving = asyncio.get_running_loop().create_task(ship.agent.close())
    for _ in range(9):
        await asyncio.sleep(0)
    assert not leaving.done()
    ship.line.slow.pop("report").set()
    await leaving
    [row] = (await ship.scene.rows()).values()
    assert (row.state, row.result) == (AttemptState.DONE, b'"paid"'), "it was not handed back"


async def test_who_gets_the_answer_to_an_earlier_request_asks_for_what_has_become_ready_since(ship: Ship) -> None:
    await ship.begins()
    [run] = await ship.scene.submit(a_run(2))
    await ship.scene.turn(attempts=[ship.scene.a_row(run, call="first")])
    ship.line.deaf.add("lease")
    ship.agent.hint()
    with pytest.raises(StoreUnreachableError):
        await ship.agent.turn()
    ship.line.deaf.clear()
    await ship.scene.turn(attempts=[ship.scene.a_row(run, call="second")])
    async with asyncio.timeout(LONG):
        assert await ship.agent.turn() == 0
        await ship.agent.turn()
        assert {(await ship.step.begun.get()).call for _ in range(2)} == {"first", "second"}


async def test_who_takes_the_old_answer_for_all_there_is_would_be_seen_to(
    ship: Ship, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = Requests.lease

    async def content(self: Requests, *args: Any) -> Given:
        return (await lease(self, *args))._replace(again=False)

    monkeypatch.setattr(Requests, "lease", content)
    with pytest.raises(AssertionError):
        await test_who_gets_the_answer_to_an_earlier_request_asks_for_what_has_become_ready_since(ship)


async def test_what_ends_when_the_time_to_leave_is_just_over_is_reported_all_the_same(ship: Ship) -> None:
    await ship.begins()
    vars(ship.agent)["_drain"] = 0
    await ship.ends("paid")
    await ship.agent.close()
    [row] = (await ship.scene.rows()).values()
    assert (row.state, row.result) == (AttemptState.DONE, b'"paid"'), "it was not handed back"


async def test_who_leaves_does_not_wait_for_a_store_that_is_away_when_the_time_is_over(ship: Ship) -> None:
    await ship.begins()
    vars(ship.agent)["_drain"] = 0
    await ship.ends("paid")
    ship.line.cut.add("report")
    ship.line.said.clear()
    async with asyncio.timeout(LONG):
        await ship.agent.close()
    assert ship.line.said == [1, 1], "it is said once more, and no longer waited for"
    [row] = (await ship.scene.rows()).values()
    assert row.state is AttemptState.READY, "it was handed back"


async def test_agent_that_gets_no_answer_when_it_leaves_asks_once_more(ship: Ship) -> None:
    await ship.begins()
    vars(ship.agent)["_drain"] = 0
    ship.line.lost.append("leave")
    async with asyncio.timeout(LONG):
        await ship.agent.close()
    [row] = (await ship.scene.rows()).values()
    assert row.state is AttemptState.READY, "it was handed back"
    assert {agent.id for agent in await ship.store.client.agents("default") if agent.state == "alive"} == {AGENT}


async def test_outcome_that_must_not_be_repeated_is_reported_again_when_the_time_to_leave_is_over(ship: Ship) -> None:
    await ship.begins(policy=ONCE)
    vars(ship.agent)["_drain"] = 0
    await ship.ends("paid")
    ship.line.lost.append("report")
    async with asyncio.timeout(LONG):
        await ship.agent.close()
    [row] = (await ship.scene.rows()).values()
    assert (row.state, row.result) == (AttemptState.DONE, b'"paid"')
    assert {agent.id for agent in await ship.store.client.agents("default") if agent.state == "alive"} == {AGENT}


@pytest.mark.parametrize(("hurried", "asked"), [(False, 2), (True, 1)])
async def test_agent_that_leaves_does_not_wait_for_a_store_that_stays_away(
    ship: Ship, *, hurried: bool, asked: int
) -> None:
    await ship.begins()
    vars(ship.agent)["_drain"] = 0
    if hurried:
        ship.agent.hurry()
    ship.line.cut.add("leave")
    async with asyncio.timeout(LONG):
        with pytest.raises(StoreUnreachableError):
            await ship.agent.close()
    assert ship.line.left == asked


async def test_agent_that_is_no_longer_known_stops_what_it_had_and_comes_back_under_a_new_id(ship: Ship) -> None:
    await ship.begins()
    await ship.store.agent.leave(ID)  # as if somebody had pronounced it lost
    ship.env.passes(BEAT)
    async with asyncio.timeout(LONG):
        await ship.agent.turn()
        await ship.step.stopped.wait()
    alive = {agent.id for agent in await ship.store.client.agents("default") if agent.state == "alive"}
    assert len(alive - {AGENT, ID}) == 1
    assert ID not in alive
    [row] = (await ship.scene.rows()).values()
    assert row.state is AttemptState.READY, "it was handed back"


async def test_agent_that_is_no_longer_known_when_it_drains_loses_what_it_had(ship: Ship) -> None:
    await ship.begins()
    vars(ship.agent)["_stopping"] = True
    await ship.store.agent.leave(ID)
    ship.env.passes(BEAT)
    async with asyncio.timeout(LONG):
        await ship.agent.close()
        await ship.step.stopped.wait()
    [row] = (await ship.scene.rows()).values()
    assert row.state is AttemptState.READY
    assert {agent.id for agent in await ship.store.client.agents("default") if agent.state == "alive"} == {AGENT}


async def test_agent_serves_what_an_operator_says_that_it_has(ship: Ship) -> None:
    await ship.scene.open()
    queue = await ship.store.scheduler.queue("default", "", ("gpu=1",), "")
    await ship.agent.open()
    [run] = await ship.scene.submit(a_run(1))
    await ship.scene.turn(attempts=[ship.scene.a_row(run, queue=queue)])
    await ship.agent.turn()
    assert ship.step.begun.empty(), "it has no gpu"
    entry = LogEntry("agent", "a", "needs", "ada", "a card was added", "gpu=2")
    assert await ship.store.client.order_agent("default", ID, None, ("gpu=2",), entry)
    ship.env.passes(BEAT)
    async with asyncio.timeout(LONG):
        await ship.agent.turn()
        await ship.agent.turn()
        assert (await ship.step.begun.get()).call == "charge"


async def test_drain_tries_again_while_the_store_does_not_answer_until_all_is_reported(ship: Ship) -> None:
    await ship.begins()
    await ship.ends("paid")
    ship.line.cut.add("report")
    vars(ship.agent)["_stopping"] = True
    closing = asyncio.get_running_loop().create_task(ship.agent.close())
    async with asyncio.timeout(LONG):
        while ship.line.said.count(1) < 2:
            await asyncio.sleep(0.01)
        ship.line.cut.clear()
        await closing
    [row] = (await ship.scene.rows()).values()
    assert (row.state, row.result) == (AttemptState.DONE, b'"paid"')


async def test_agent_that_an_operator_drains_is_dismissed_by_its_next_beat(ship: Ship) -> None:
    await ship.scene.open()
    await ship.agent.open()
    assert not ship.agent.dismissed.is_set()
    entry = LogEntry("agent", "a", "drain", "ada", "a new kernel", "")
    assert await ship.store.client.order_agent("default", ID, Wish.DRAIN, None, entry)
    ship.env.passes(BEAT)
    await ship.agent.turn()
    assert ship.agent.dismissed.is_set()
