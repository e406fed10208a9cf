"""Breakers: what happens to steps, agents and supervisors while a dependency is down, in virtual time."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, pairwise
from typing import Any, cast

import msgspec
import pytest

from tests.rooms.scene import Ear, becomes, ends
from watchbill import Ambiguous, App, Busy, Event, InvalidOptionError, Limit, NotDone, Permanent, Retry
from watchbill.agent.pace import Paces
from watchbill.app.hall import Hall
from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.events import Events
from watchbill.model.agent import Act, Report, Room
from watchbill.model.alert import AlertKind, AlertState, SettledAlert, read_routes
from watchbill.model.attempt import AttemptRow
from watchbill.model.breaker import CANARY
from watchbill.model.budget import FLOOR, SHARE, SLICE, WINDOW
from watchbill.model.gate import GateAct
from watchbill.model.policy import Policy
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor.supervisor import Supervisor
from watchbill.testing.conformance.scene import AGENT, HandClock, HandEnv, Scene, a_change, a_run
from watchbill.testing.watch import Watch

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
ROUTES = read_routes("http://127.0.0.1:9/nobody")

# --- what an author writes


@pytest.mark.parametrize("name", ["", "Stripe", "two words", 5, "-x", "x" * 64])
def test_a_dependency_has_a_name_like_a_capability(name: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"uses= of step 'charge' must name one dependency"):
        App().step(uses=name)(charge_nothing)


def charge_nothing() -> None: ...


charge_nothing.__name__ = "charge"


# --- the whole house, in virtual time

shop = App("sqlite:///:memory:")
world: dict[str, Any] = {}


class Service:
    """What a step uses; it is up or down, and remembers who called when."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.down = False
        self.calls: list[tuple[datetime, int]] = []

    def call(self, n: int) -> int:
        self.calls.append((self.watch.now, n))
        if self.down:
            raise ConnectionError("refused")
        return n

    @property
    def seconds(self) -> list[float]:
        return [(at - NOON).total_seconds() for at, _ in self.calls]


@shop.step(uses="stripe")
async def charge(n: int) -> int:
    called: int = world["stripe"].call(n)
    return called


@shop.step(uses="twilio")
async def text(n: int) -> int:
    called: int = world["twilio"].call(n)
    return called


@shop.step(uses="stripe", limit=Limit(at_once=1))
async def settle(n: int) -> int:
    called: int = world["stripe"].call(n)
    return called


@shop.step(uses="stripe")
async def answer(n: int) -> int:
    """Take some time, and be told no."""
    world["stripe"].call(n)
    await asyncio.sleep(2)
    raise world["no"]


@shop.workflow
async def answered(n: int) -> int:
    return await answer(n)


@shop.step(uses="stripe")
async def refuse(n: int) -> int:
    raise Permanent("the card is refused")


@shop.step(uses="stripe", idempotent=False)
async def transfer(n: int) -> int:
    called: int = world["stripe"].call(n)
    return called


async def was_sent(n: int) -> Any:
    """Ask the same service; it never has anything."""
    world["stripe"].call(n)
    return NotDone()


@shop.step(uses="stripe", idempotent=False, probe=was_sent)
async def send(n: int) -> int:
    called: int = world["stripe"].call(n)
    return called


@shop.workflow
async def sending(n: int) -> int:
    return await send(n)


@shop.workflow
async def order(n: int) -> int:
    return await charge(n)


@shop.workflow
async def notice(n: int) -> int:
    return await text(n)


@shop.workflow
async def settling(n: int) -> int:
    return await settle(n)


@shop.workflow
async def refused(n: int) -> int:
    return await refuse(n)


@shop.workflow
async def moving(n: int) -> int:
    return await transfer(n)


@pytest.fixture
def stripe(watch: Watch) -> Iterator[Service]:
    watch.at(NOON)
    world.update(stripe=Service(watch), twilio=Service(watch), told=[])
    unsubscribe = shop.events.subscribe(world["told"].extend)
    yield world["stripe"]
    unsubscribe()


def told(kind: str) -> list[Event]:
    return [event for event in world["told"] if event.kind == kind]


def test_while_a_dependency_is_down_only_canaries_call_it_and_nobody_fails(watch: Watch, stripe: Service) -> None:
    stripe.down = True
    handles = [watch.start(order, n) for n in range(2)]
    watch.jump("1s")
    handles += [watch.start(order, n) for n in range(2, 6)]
    opened = [event for event in told("gate.opened") if event.cause == "stripe"]
    assert len(opened) == 1
    assert opened[0].note.startswith(
        "5 failures in a row, the last with ConnectionError: refused; the next try is in 5 s"
    )
    # Those that ran at that moment ran on; from then on there is one in a while, for an hour.
    before = len(stripe.calls)
    watch.jump("10m")
    gaps = [round(later - earlier) for earlier, later in pairwise(stripe.seconds[before - 1 :])]
    assert gaps[:5] == [5, 10, 20, 40, 60]
    assert set(gaps[5:]) == {60}
    for handle in handles:
        status = handle.status()
        assert (status.state, status.health) == ("running", "waiting_for_dependency")
        assert len(status.steps[0].attempts) <= 3
    said = str(handles[-1].explain())
    assert "waits for dependency 'stripe': its breaker opened at 2026-06-01 12:00:01Z after 5 failures in a row" in said
    assert "; the next try is at 2026-06-01 12:1" in said
    [incident] = told("incident.opened")
    assert incident.cause == "dependency 'stripe' is down"
    assert "calls wait;" not in incident.note, "when it is written hardly anybody does"
    assert "`watchbill gates list` says how many calls wait" in incident.note
    stripe.down = False
    watch.jump("2m")
    assert [handle.result() for handle in handles] == list(range(6))
    assert [event.cause for event in told("incident.resolved")] == ["dependency 'stripe' is down"]
    assert len(told("incident.opened")) == 1
    assert len(told("gate.closed")) == 1
    assert len(told("gate.half_opened")) == len(told("gate.opened"))


def test_those_who_wait_leave_spread_over_some_seconds(watch: Watch, stripe: Service) -> None:
    for n in range(40):
        watch.start(order, n)
        watch.jump("100ms")  # ten in a second
    stripe.down = True
    for n in range(40, 90):
        watch.start(order, n)
        watch.jump("100ms")
    stripe.down = False
    before = len(stripe.calls)
    watch.jump("1m")
    canary, *others = stripe.seconds[before:]
    assert len(others) == 49
    assert others[0] - canary < 1
    assert 4 <= others[-1] - others[0] <= 7
    for begin in others:
        assert sum(begin <= at < begin + 1 for at in others) <= 20


def test_a_dependency_that_is_down_disturbs_no_other(watch: Watch, stripe: Service) -> None:
    stripe.down = True
    for n in range(8):
        watch.start(order, n)
    watch.jump("2s")
    assert told("gate.opened")
    assert watch.run(notice, 7) == 7
    assert [event.cause for event in told("gate.opened")] == ["stripe"]


def test_a_limit_and_a_dependency_on_one_step_are_both_kept(watch: Watch, stripe: Service) -> None:
    stripe.down = True
    handles = [watch.start(settling, n) for n in range(8)]
    assert len(stripe.calls) == 5  # one at a time: the fifth that fails is the last
    watch.jump("4s")
    assert len(stripe.calls) == 5
    assert {len(handle.status().steps[0].attempts) for handle in handles} == {0, 1}
    watch.jump("30s")
    assert len(stripe.calls) == 7  # after 5 and after 15 seconds
    stripe.down = False
    watch.jump("30s")
    assert [handle.result() for handle in handles] == list(range(8))


def test_an_answer_that_is_no_is_an_answer(watch: Watch, stripe: Service) -> None:
    handles = [watch.start(refused, n) for n in range(10)]
    assert {handle.status().state for handle in handles} == {"failed"}
    assert told("gate.opened") == []


def break_down(watch: Watch, stripe: Service) -> None:
    """Let five calls fail whose runs nobody wants any more: nobody waits behind the breaker."""
    stripe.down = True
    broken = [watch.start(order, n) for n in range(900, 905)]
    watch.jump("1s")
    for handle in broken:
        handle.cancel()
    watch.jump("100ms")
    stripe.calls.clear()


def test_a_canary_that_must_not_happen_twice_is_called_once_and_somebody_decides(watch: Watch, stripe: Service) -> None:
    break_down(watch, stripe)
    handle = watch.start(moving, 7)
    watch.jump("5m")
    assert [n for _, n in stripe.calls] == [7]  # the money may have left with the first, though nobody answered
    assert handle.status().health == "waiting_for_person"
    assert [event.note for event in told("gate.opened")][-1].endswith("the canary failed; the next try is in 10 s")


@pytest.mark.parametrize("no", [Permanent("refused"), Busy(retry_after="6h"), Ambiguous("who knows")])
def test_when_a_canary_ends_for_a_reason_of_its_own_the_next_one_tries_at_once(
    watch: Watch, stripe: Service, no: Exception
) -> None:
    break_down(watch, stripe)
    world["no"], stripe.down = no, False
    first = watch.start(answered, 100)
    others = [watch.start(order, n) for n in range(3)]
    watch.jump("1m")
    assert [handle.result() for handle in others] == [0, 1, 2]
    assert [n for _, n in stripe.calls] == [100, 0, 1, 2]
    assert first.status().state != "completed"
    assert len(told("gate.closed")) == 1


def test_a_probe_that_says_no_was_answered_so_its_dependency_is_up(watch: Watch, stripe: Service) -> None:
    stripe.down = True
    handles = [watch.start(sending, n) for n in range(3)]
    watch.jump("1s")
    assert told("gate.opened")
    stripe.down = False
    watch.jump("1m")
    assert [handle.result() for handle in handles] == [0, 1, 2]
    assert len(told("gate.opened")) == 1  # the first canary is a probe, and closes it


def test_whatever_dies_whenever_a_dependency_that_was_down_is_used_again(watch: Watch) -> None:
    world.update(stripe=Service(watch), told=[])

    def fresh() -> None:
        world["stripe"] = Flaky(watch)

    assert watch.crash_everywhere(both, (), lambda result, _: result == 10, fresh=fresh) > 10


class Flaky(Service):
    """A service that refuses the first six."""

    def call(self, n: int) -> int:
        self.down = len(self.calls) < 6
        return super().call(n)


@shop.workflow
async def both() -> int:
    return sum(await asyncio.gather(*(charge(n) for n in range(5))))


# --- agents and a supervisor on a real store, in time that a test lets pass


class Hand:
    """An agent that calls services and says how that went."""

    def __init__(self, yard: "Yard", id: int, lasting: Micros | None) -> None:
        self.yard = yard
        self.id = id
        self.lasting = lasting
        self.paces = Paces()
        self.dead = False
        self.asks_at: Micros | None = None

    async def ask(self) -> None:
        """Lease what there is room for."""
        yard = self.yard
        room = Room(100, 100, ("charge",))
        found = await yard.store.agent.lease_limited(self.id, next(yard.numbers), list(yard.queues.values()), room)
        boot = yard.clock.boot()
        self.asks_at = None if found.next_at is None else boot + max(1, found.next_at - found.now)
        for row in found.rows:
            uses = yard.uses[row.queue]
            self.paces.note(uses, boot, again=row.failures > 0)
            yard.starts[uses].append((boot, row))
            if row.id not in yard.hangs:
                heapq.heappush(yard.running, (boot + yard.takes, row.id, row, self))

    async def end(self, row: AttemptRow) -> None:
        """Report how an attempt went."""
        if self.dead:
            return
        uses, boot = self.yard.uses[row.queue], self.yard.clock.boot()
        firsts = self.paces.firsts(uses, boot)
        if self.yard.fails(uses):
            pace, error = self.paces.of(uses, boot), "ConnectionError: no"
            body = b'{"type":"ConnectionError","message":"no"}'
            report = Report(row.id, row.fence, Act.FAILED, body, uses=uses, error=error, pace=pace, firsts=firsts)
        else:
            report = Report(row.id, row.fence, Act.DONE, b"1", uses=uses, firsts=firsts if row.failures else None)
        await self.yard.store.agent.report(self.id, [report])


class Yard:
    """Agents, supervisors, and dependencies that break down."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.scene = Scene(store, clock)
        self.store = store
        self.clock = clock
        self.numbers = count(1)
        self.queues: dict[str, int] = {}
        self.uses: dict[int, str] = {}
        self.down: set[str] = set()
        self.flaky: Iterator[bool] | None = None  # which calls fail, as they end
        self.starts: dict[str, list[tuple[Micros, AttemptRow]]] = {}
        self.running: list[tuple[Micros, int, AttemptRow, Hand]] = []
        self.takes: Micros = SECOND // 10
        self.hangs: set[int] = set()  # rows that never end
        self.told: list[Event] = []
        self.hands: list[Hand] = []
        self.supervisors = [self._supervisor() for _ in range(2)]
        self.run: RunRow | None = None

    async def open(self) -> None:
        await self.scene.open()
        [self.run] = await self.scene.submit(a_run(1))
        await self.scene.turn(runs=[a_change(self.run, RunState.RUNNING)])
        for uses in ("stripe", "twilio"):
            queue = self.queues[uses] = await self.store.scheduler.queue("default", "", (), uses)
            self.uses[queue], self.starts[uses] = uses, []

    async def hire(self, lasting: Micros | None = None) -> Hand:
        hand = Hand(self, 80 + len(self.hands), lasting)
        await self.store.agent.join(hand.id, "default", "", f"h{hand.id}", b"{}", lasting)
        self.hands.append(hand)
        return hand

    async def put(self, number: int, uses: str = "stripe") -> None:
        assert self.run is not None
        policy = msgspec.json.encode(Policy(uses=uses, retries=2))
        rows = [self.scene.a_row(self.run, queue=self.queues[uses], policy=policy) for _ in range(number)]
        await self.scene.turn(attempts=rows)

    async def passes(self, span: Micros, *, every: Micros | None = None, uses: tuple[str, ...] = ("stripe",)) -> None:
        """Let time pass, with everything that happens in it; `every` so often there is another call."""
        until = self.clock.boot() + span
        next_call = self.clock.boot()
        while True:
            if every is not None and self.clock.boot() >= next_call:
                next_call += every
                for one in uses:
                    await self.put(1, one)
            wishes = await self._happen()
            left = until - self.clock.boot()
            if left <= 0:
                return
            times = [*wishes, left] + ([next_call - self.clock.boot()] if every is not None else [])
            self.clock.pass_by(max(1, min(times)))

    async def _happen(self) -> list[Micros]:
        boot = self.clock.boot()
        while self.running and self.running[0][0] <= boot:
            _, _, row, hand = heapq.heappop(self.running)
            await hand.end(row)
        for hand in self.hands:
            if not hand.dead and hand.lasting is not None:
                await self.store.agent.beat(hand.id, hand.lasting, ())
        wishes = []
        for supervisor in self.supervisors:
            while (wish := await supervisor.turn()) == 0:
                pass
            wishes.append(wish)
        for hand in self.hands:
            if not hand.dead:
                await hand.ask()
                wishes.append(None if hand.asks_at is None else hand.asks_at - boot)
        if self.running:
            wishes.append(self.running[0][0] - boot)
        return [wish for wish in wishes if wish is not None]

    def _supervisor(self) -> Supervisor:
        env, events = HandEnv(self.clock), Events()
        events.subscribe(self.told.extend)
        return Supervisor(env, events, store=self.store.supervisor, lasting=8 * SECOND, routes=ROUTES)

    def fails(self, uses: str) -> bool:
        """Say whether a call that ends now fails."""
        return uses in self.down or (self.flaky is not None and next(self.flaky))

    async def alerts(self) -> list[AlertKind]:
        """Send the alerts that are due."""
        doors = self.store.supervisor
        due = (await doors.take_alerts([route.mark for route in ROUTES], 20, SECOND)).alerts
        await doors.settle_alerts([SettledAlert(one.incident.id, one.kind, one.route, AlertState.SENT) for one in due])
        return [one.kind for one in due]

    def heard(self, kind: str) -> list[Event]:
        return [event for event in self.told if event.kind == kind]

    def started(self, uses: str = "stripe", *, since: Micros = 0) -> list[Micros]:
        return [at for at, _ in self.starts[uses] if at >= since]


@pytest.fixture
async def yard(url: str) -> AsyncIterator[Yard]:
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    yard = Yard(store, clock)
    await yard.open()
    yield yard
    await store.close()


async def test_at_most_twice_as_many_start_in_any_second_after_it_is_up_again(yard: Yard) -> None:
    for _ in range(2):
        await yard.hire()
    yard.supervisors.pop()
    await yard.passes(4 * SECOND, every=SECOND // 4)
    steady = len(yard.started(since=yard.clock.boot() - SECOND))
    yard.down = {"stripe"}
    began = yard.clock.boot()
    await yard.passes(12 * SECOND, every=SECOND // 4)
    tried = yard.started(since=began)
    assert len(tried) <= 5 + 2 + 1  # those under way, and a canary
    yard.down = set()
    up = yard.clock.boot()
    await yard.passes(30 * SECOND, every=SECOND // 4)
    after = yard.started(since=up)
    assert len(after) > 120 + 40  # all that had waited are through, beside those that came
    for begin in after:
        assert sum(begin <= at < begin + SECOND for at in after) <= 2 * (steady + 1)
    assert len(yard.heard("gate.closed")) == 1
    rows = (await yard.scene.rows()).values()
    assert all(row.failures <= 1 for row in rows)


async def test_it_is_closed_though_some_wait_behind_it_that_nobody_can_start(yard: Yard) -> None:
    await yard.hire()
    await yard.passes(4 * SECOND, every=SECOND // 4)
    yard.down = {"stripe"}
    await yard.passes(4 * SECOND, every=SECOND // 4)
    assert yard.run is not None
    policy = msgspec.json.encode(Policy(uses="stripe"))
    nobodys = [yard.scene.a_row(yard.run, queue=yard.queues["stripe"], policy=policy, step="encode") for _ in range(50)]
    await yard.scene.turn(attempts=nobodys)
    yard.down = set()
    await yard.passes(60 * SECOND, every=SECOND // 4)
    [gate] = [gate for gate in await yard.store.client.gates("default") if gate.name == "uses:stripe"]
    assert (gate.breaker, gate.waiting) == ("closed", 50)
    assert len(yard.heard("gate.closed")) == 1


async def test_when_its_canary_dies_a_breaker_opens_again_for_longer_and_another_tries(yard: Yard) -> None:
    mortal = await yard.hire(8 * SECOND)
    yard.down = {"stripe"}
    await yard.put(5)
    await yard.passes(SECOND)
    assert len(yard.heard("gate.opened")) == 1
    await yard.put(3)
    yard.takes = 3_600 * SECOND
    await yard.passes(6 * SECOND)
    [canary] = [row for _, row in yard.starts["stripe"] if row.why == CANARY]
    mortal.dead = True
    await yard.hire()
    yard.takes, yard.down = SECOND // 10, set()
    await yard.passes(30 * SECOND)
    tries = [row for _, row in yard.starts["stripe"] if row.why == CANARY]
    assert len(tries) == 2
    assert tries[1].fence >= canary.fence
    assert len(yard.heard("gate.closed")) == 1
    again = yard.heard("gate.opened")[1]
    assert again.note.endswith(
        "the last with Lost: agent 'h80' (80) did not renew its lease; the canary failed; the next try is in 10 s"
    )
    [_, half_opened] = yard.heard("gate.half_opened")
    assert half_opened.at >= again.at + 10 * SECOND
    assert (await yard.scene.row(canary.id)).failures == 0
    states = [row.state for row in (await yard.scene.rows()).values()]
    assert states == [AttemptState.DONE] * 8


async def test_two_dependencies_have_nothing_to_do_with_each_other(yard: Yard) -> None:
    await yard.hire()
    yard.down = {"stripe"}
    await yard.passes(30 * SECOND, every=SECOND // 2, uses=("stripe", "twilio"))
    assert [event.cause for event in yard.heard("gate.opened") if event.cause != "stripe"] == []
    assert len(yard.started("twilio")) == 61  # one at the beginning, and two in each second
    assert len(yard.started("stripe")) < 15


async def test_what_two_supervisors_see_is_told_once(yard: Yard) -> None:
    await yard.hire()
    yard.down = {"stripe"}
    await yard.put(5)
    await yard.passes(20 * SECOND)
    yard.down = set()
    await yard.passes(60 * SECOND)
    assert [event.cause for event in yard.heard("incident.opened")] == ["dependency 'stripe' is down"]
    assert [event.cause for event in yard.heard("incident.resolved")] == ["dependency 'stripe' is down"]
    assert len(yard.heard("gate.closed")) == 1
    assert len(yard.heard("gate.half_opened")) == len(yard.heard("gate.opened"))


async def test_whoever_wants_alerts_hears_once_that_a_dependency_is_down_and_once_that_it_is_up(yard: Yard) -> None:
    await yard.hire()
    yard.down = {"stripe"}
    await yard.put(5)
    await yard.passes(20 * SECOND)
    assert await yard.alerts() == [AlertKind.OPENED]
    await yard.passes(40 * SECOND)
    assert await yard.alerts() == []
    yard.down = set()
    await yard.passes(60 * SECOND)
    assert (await yard.alerts(), await yard.alerts()) == ([AlertKind.RESOLVED], [])


async def test_of_what_fails_every_third_call_retries_wait_so_that_first_tries_pass_and_all_get_through(
    yard: Yard,
) -> None:
    for _ in range(2):
        await yard.hire()
    yard.supervisors.pop()
    yard.flaky = cycle((True, False, False))
    await yard.passes(40 * SECOND, every=SECOND // 12)
    starts = yard.starts["stripe"]
    retries = [at for at, row in starts if row.failures]
    firsts = [at for at, row in starts if not row.failures]
    assert len(firsts) >= 40 * 12  # none of them waits
    [gate] = [gate for gate in await yard.store.client.gates("default") if gate.name == "uses:stripe"]
    assert (gate.breaker, gate.retries, gate.waiting >= 10) == ("closed", gate.budget, True)
    assert not yard.heard("gate.opened")
    for at in retries:
        within = sum(at - WINDOW < one <= at for one in retries)
        assert within <= FLOOR + SHARE * sum(at - 2 * WINDOW - SLICE < one <= at for one in firsts)
    waiting = [row for row in (await yard.scene.rows()).values() if row.state is AttemptState.READY]
    assert {row.losses for row in waiting} == {0}  # nobody was charged for waiting
    yard.flaky, up = None, yard.clock.boot()
    still = sum(row.state < AttemptState.DONE for row in (await yard.scene.rows()).values())
    await yard.passes((WINDOW + SLICE) * (1 + still // FLOOR + 1))  # in each window as many leave as always may
    after = [at for at, row in starts if row.failures and at >= up]
    states = {row.state for row in (await yard.scene.rows()).values()}
    assert len(after) >= 10
    assert states <= {AttemptState.DONE, AttemptState.GAVE_UP}
    for begin in after:
        assert sum(begin <= at < begin + SECOND for at in after) <= 2 * 12


async def test_a_canary_that_is_late_is_charged_nothing_and_opens_it_again(yard: Yard) -> None:
    await yard.hire()
    yard.down = {"stripe"}
    await yard.put(5)
    await yard.passes(2 * SECOND)
    assert yard.run is not None
    policy = msgspec.json.encode(Policy(uses="stripe", timeout=2 * SECOND))
    row = yard.scene.a_row(yard.run, queue=yard.queues["stripe"], policy=policy, span=2_000, rank_ahead=600 * SECOND)
    await yard.scene.turn(attempts=[row])
    yard.takes = 3_600 * SECOND
    await yard.passes(20 * SECOND)
    late = await yard.scene.row(row.id)
    assert yard.heard("step.late")
    assert late.failures == 0
    assert len(yard.heard("gate.opened")) >= 2


async def test_a_canary_that_hangs_for_a_reason_of_its_own_is_not_the_canary_for_ever(yard: Yard) -> None:
    await yard.store.agent.leave(AGENT)  # of one agent alone nothing is kept because it had it before
    await yard.hire()
    yard.down = {"stripe"}
    await yard.put(5)
    await yard.passes(2 * SECOND)
    assert yard.run is not None
    policy = msgspec.json.encode(Policy(uses="stripe", timeout=2 * SECOND))
    hung = yard.scene.a_row(yard.run, queue=yard.queues["stripe"], policy=policy, span=2_000, rank_ahead=600 * SECOND)
    await yard.scene.turn(attempts=[hung])
    yard.hangs, yard.down = {hung.id}, set()
    await yard.passes(60 * SECOND)
    first, second, *_ = [row for _, row in yard.starts["stripe"] if row.why == CANARY]
    assert first.id == hung.id != second.id
    rows = await yard.scene.rows()
    assert {row.state for row in rows.values() if row.id != hung.id} == {AttemptState.DONE}


# --- by hand, in real time, on every store


def hall_of(app: App) -> Hall:
    return cast(Hall, app._hall)


async def test_somebody_can_say_that_a_dependency_is_down_and_up(app: App, ear: Ear) -> None:
    @app.step(uses="stripe", retry=Retry(0))
    async def pay(n: int) -> int:
        return n

    @app.workflow
    async def paying(n: int) -> int:
        return await pay(n)

    async with app.rooms():
        assert await ends(await app.start(paying, 1)) == 1
        await hall_of(app).order_gate("uses:stripe", GateAct.CLOSE, by="ann", reason="maintenance")
        await ear.hears("gate.opened")
        handle = await app.start(paying, 2)
        status = await becomes(handle, lambda status: status.health == "waiting_for_dependency")
        assert status.state == "running"
        assert "its breaker opened at" in str(await handle.explain())
        assert "closed by ann (maintenance)" in str(await handle.explain())
        [gate] = [gate for gate in await app.gates() if gate.name == "uses:stripe"]
        assert (gate.breaker, gate.waiting) == ("open", 1)
        assert gate.opened_at is not None
        assert gate.next_try_at == gate.opened_at + timedelta(seconds=5)
        await hall_of(app).order_gate("uses:stripe", GateAct.OPEN, by="ann")
        assert await ends(handle) == 2
        await ear.hears("gate.closed")
