"""Workers in virtual time: whatever becomes of a child, its attempts are accounted for, and its slot comes back."""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.simulation import errands
from tests.unit.supervisor.rows import a_row
from watchbill.agent.workers import WorkerError, Workers
from watchbill.borrowed import FinishPlan, Place
from watchbill.clock import SECOND, Micros
from watchbill.flow.execute import CHILDREN
from watchbill.flow.messages import Finishes, Hello, Moved, Saved, Stop, decode_plan
from watchbill.flow.program import Program
from watchbill.model.agent import Room
from watchbill.model.failure import Cause, Failure
from watchbill.model.policy import Cures, Policy
from watchbill.model.profile import STOPS_WITHIN
from watchbill.testing.chance import Chance
from watchbill.testing.envs import Ids, SimClock, SimEnv
from watchbill.testing.virtual import Life, VirtualLoop, rest

HELLO = Hello(Program(errands.__name__, "", tuple(sys.path), tuple(sys.argv)), "app", "", threads=4)
STEPS = ("walk", "walk_on")
SLOTS = 4
GRACE = 5 * SECOND
LEASE = 8 * SECOND
PLAN = FinishPlan(Place("sqlite:///a.db", "sqlite", "", "a.db"), ("one",), (), "", {"id": 1})


class Agent:
    """Who hears of errands in these tests."""

    def __init__(self, env: SimEnv) -> None:
        self._env = env
        self.ended: dict[Any, Any] = {}
        self.trusted_until: Micros = env.clock.boot() + LEASE

    def finished(self, attempt):
        self.ended[attempt.row] = attempt

    def lasts(self, attempt):
        pass

    def moved(self, attempt):
        pass

    def refusal(self, attempt):
        if self._env.clock.boot() < self.trusted_until:
            return None
        return Failure("NotBegun", "it is not certain any more", cause=Cause.CANCELLED)


class Ship:
    """A host with its workers, and a hand on everything that happens to them."""

    def __init__(self, env: SimEnv, life: Life, workers: int, grace: Micros) -> None:
        self.env = env
        self.life = life
        self.children: list[Life] = []
        env.reads_within = (0.3, 0.3)
        env.born = lambda child, _: self.children.append(child)
        self.crew = Workers(env, HELLO, count=workers, slots=SLOTS, grace=grace)
        self.agent = Agent(env)
        self._rows = 0

    def start(
        self,
        seconds: float,
        *,
        step: str = "walk",
        alone: bool = False,
        once: bool = False,
        stall: Micros | None = None,
    ):
        self._rows += 1
        args = msgspec.json.encode([self._rows, seconds])
        row = a_row(id=self._rows, step=step, args=args, losses=1)
        attempt = self.crew.take(row, "tests", Policy(own=alone, stall=stall, cures=Cures(idempotent=not once)))
        self.crew.start(attempt, self.agent, at=0, boot=self.env.clock.boot())
        return attempt

    def cause_of(self, attempt) -> Cause | None:
        failure: Failure | None = self.agent.ended[attempt.row].failure
        return None if failure is None else failure.cause

    @property
    def whole(self) -> bool:
        return self.crew.room() == Room(SLOTS, CHILDREN, STEPS)


def play(story: Callable[[Ship], Awaitable[None]], *, workers: int = 1, grace: Micros = GRACE) -> None:
    loop = VirtualLoop(Chance(1))
    life = Life("host", loop)
    env = SimEnv(loop, SimClock(loop), Chance(2), Ids(loop))
    ships: list[Ship] = []

    async def tell() -> bool:
        ship = Ship(env, life, workers, grace)
        ships.append(ship)
        await ship.crew.open()
        await rest(1)  # all workers are there
        await story(ship)
        return True

    errands.BEGUN.clear()
    errands.STOPPED.clear()
    try:
        assert loop.play(life, tell())
    finally:
        loop.bury_all()
        loop.close()


def test_an_order_that_has_slept_longer_than_the_lease_is_not_begun():
    async def story(ship: Ship) -> None:
        [worker] = ship.children
        late = ship.start(1)
        worker.pause()  # and the host with it: its laptop was closed
        await rest(20)
        worker.resume()
        await rest(5)
        assert errands.BEGUN == []
        assert ship.cause_of(late) is Cause.CANCELLED, "handed back: it cost nothing"
        assert ship.whole

    play(story)


def test_an_order_that_has_waited_until_it_may_be_somebody_elses_is_not_begun():
    """Its worker was busy for longer than its stall: by then it is judged, and the next one has it."""

    async def story(ship: Ship) -> None:
        [worker] = ship.children
        late, patient = ship.start(1, stall=2 * SECOND), ship.start(1)
        worker.pause()
        await rest(5)  # the lease lasts longer
        worker.resume()
        await rest(3)
        assert [patient.row] == errands.BEGUN
        assert ship.cause_of(late) is Cause.CANCELLED, "handed back: it cost nothing"
        assert ship.whole

    play(story)


def test_a_process_of_its_own_that_was_made_too_late_is_not_given_its_attempt():
    async def story(ship: Ship) -> None:
        ship.agent.trusted_until = ship.env.clock.boot()
        alone = ship.start(1, alone=True)
        await rest(5)
        assert errands.BEGUN == []
        assert ship.cause_of(alone) is Cause.CANCELLED
        assert ship.whole

    play(story)


@pytest.mark.parametrize("moment", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
def test_what_is_cancelled_while_its_process_is_being_made_does_not_run(moment):
    async def story(ship: Ship) -> None:
        alone = ship.start(30, alone=True)
        await rest(moment)
        ship.crew.cancel(alone)
        begun = list(errands.BEGUN)
        await rest(2)
        assert begun == errands.BEGUN, "it did not begin after that"
        assert begun == errands.STOPPED
        assert ship.cause_of(alone) is Cause.CANCELLED
        assert ship.whole

    play(story)


@pytest.mark.parametrize("moment", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
def test_what_is_abandoned_while_its_process_is_being_made_does_not_run_on(moment):
    async def story(ship: Ship) -> None:
        alone = ship.start(30, alone=True)
        await rest(moment)
        ship.crew.abandon(alone)
        begun = list(errands.BEGUN)
        await rest(2)
        assert begun == errands.BEGUN == errands.STOPPED
        assert ship.agent.ended == {}
        assert ship.whole

    play(story)


def test_what_no_process_can_be_made_for_is_handed_back_and_not_asked_for_again_at_once():
    async def story(ship: Ship) -> None:
        ship.env.barren = True
        alone = ship.start(1, alone=True)
        await rest(0.5)
        assert ship.cause_of(alone) is Cause.CANCELLED
        assert ship.crew.room() == Room(SLOTS, 0, STEPS), "or it would go round in circles"
        ship.env.barren = False
        await rest(2)
        assert ship.whole

    play(story)


def test_a_worker_that_cannot_be_started_is_tried_again_later():
    async def story(ship: Ship) -> None:
        ship.env.barren = True
        for child in ship.children:
            child.die()
        await rest(10)
        assert ship.crew.room().slots == 0
        ship.env.barren = False
        await rest(30)
        assert ship.whole
        assert len([child for child in ship.children if not child.dead]) == 2

    play(story, workers=2)


def test_a_host_that_gets_no_process_at_all_says_so():
    loop = VirtualLoop(Chance(1))
    life = Life("host", loop)
    env = SimEnv(loop, SimClock(loop), Chance(2), Ids(loop))
    env.barren = True

    async def tell() -> str:
        crew = Workers(env, HELLO, count=2, slots=SLOTS, grace=GRACE)
        with pytest.raises(WorkerError) as caught:
            await crew.open()
        await crew.close()
        return str(caught.value)

    assert "temporarily unavailable" in str(loop.play(life, tell()))
    loop.bury_all()
    loop.close()


def test_a_retired_worker_that_is_stuck_does_not_stay_for_ever():
    async def story(ship: Ship) -> None:
        [stuck] = ship.children
        stuck.pause()
        await rest(20)  # retired after 5 s of silence; another one is there; and the grace is over
        assert stuck.dead
        assert ship.whole

    play(story)


def test_neighbours_of_somebody_who_stops_late_are_not_killed_for_that():
    async def story(ship: Ship) -> None:
        late, innocent = ship.start(7, step="walk_on"), ship.start(12)
        await rest(0.1)
        ship.crew.cancel(late)  # it is condemned after 5 s, and ends by itself after 7
        await rest(13)
        assert ship.cause_of(innocent) is None
        assert errands.STOPPED == []
        await rest(2)
        assert ship.whole

    play(story)


def test_neighbours_of_somebody_who_does_not_stop_get_the_grace_and_are_handed_back():
    async def story(ship: Ship) -> None:
        deaf, slow, quick = ship.start(60, step="walk_on"), ship.start(60), ship.start(8)
        await rest(0.1)
        ship.crew.cancel(deaf)
        await rest(12)
        assert ship.cause_of(quick) is None, "there was time for it"
        assert ship.cause_of(slow) is Cause.CANCELLED
        assert not slow.cancelled, "nobody had asked it to stop: it is handed back"
        assert ship.cause_of(deaf) is Cause.CANCELLED
        await rest(2)
        assert ship.whole

    play(story)


@pytest.mark.parametrize("silent", [True, False], ids=["its lease has ended", "it was taken away"])
def test_what_must_not_happen_twice_is_over_before_others_ask_about_it_whatever_the_grace(silent):
    async def story(ship: Ship) -> None:
        deaf, slow = ship.start(90, step="walk_on", once=True), ship.start(90)
        [worker] = ship.children
        await rest(0.1)
        (ship.crew.halt if silent else ship.crew.abandon)(deaf)
        await rest(STOPS_WITHIN / SECOND - 1.5)
        assert not worker.dead, "its neighbours have what time there is"
        await rest(1.5)
        assert worker.dead
        await rest(0.1)
        assert ship.cause_of(slow) is Cause.CANCELLED
        assert not slow.cancelled, "it is handed back"

    play(story, grace=60 * SECOND)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1, 0.3, 0.5, 5.0])
def test_whatever_happens_a_crew_can_be_closed(moment):
    async def story(ship: Ship) -> None:
        attempts = [ship.start(60), ship.start(60, alone=True), ship.start(60, step="walk_on")]
        ship.children[0].die()
        await rest(moment)
        await ship.crew.close()
        assert set(ship.agent.ended) == {attempt.row for attempt in attempts}
        assert all(child.dead for child in ship.children)
        await rest(60)
        assert all(child.dead for child in ship.children), "nobody was employed after that"

    play(story, workers=3)


def test_worker_that_starves_several_for_long_is_killed_and_all_of_them_are_told_so():
    async def story(ship: Ship) -> None:
        [stuck] = ship.children
        starved = [ship.start(60), ship.start(60)]
        await rest(0.1)
        stuck.pause()
        await rest(60)
        assert not stuck.dead, "a minute of one long computation is no crime"
        assert {remote.row for remote in ship.crew.starved} == {attempt.row for attempt in starved}
        await rest(40)
        assert stuck.dead
        assert [ship.cause_of(attempt) for attempt in starved] == [Cause.STARVED, Cause.STARVED]
        assert ship.whole

    play(story)


def test_word_of_a_worker_about_what_it_no_longer_has_is_ignored():
    async def story(ship: Ship) -> None:
        attempt = ship.start(1)
        await rest(3)
        assert ship.cause_of(attempt) is None
        [worker] = ship.crew._workers
        ship.crew._hear(worker, Moved(attempt.order.errand, b"{}", increased=True))
        ship.crew._hear(worker, Stop(attempt.order.errand))  # no word of a worker
        assert ship.whole

    play(story)


def test_step_that_finishes_in_a_worker_gets_its_plan_or_hears_that_it_is_lost():
    async def story(ship: Ship) -> None:
        attempt, abandoned = ship.start(5), ship.start(5)
        [worker] = ship.crew._workers
        await rest(0.1)
        ship.crew._hear(worker, Finishes(attempt.order.errand, b"7"))
        assert attempt.finishing is not None
        attempt.finishing.settle(PLAN)
        abandoned.agent = None
        ship.crew._hear(worker, Finishes(abandoned.order.errand, b"8"))
        ship.crew._hear(worker, Saved(abandoned.order.errand, 1, b"half"))
        said: list[Any] = worker._outbox._messages  # on their way to the child
        assert [type(one).__name__ for one in said] == ["Planned", "Planned", "Written"]
        assert decode_plan(said[0].plan) == PLAN
        assert said[1].plan is None
        assert said[2].lost

    play(story)


def test_host_whose_program_cannot_be_read_says_why():
    loop = VirtualLoop(Chance(1))
    life = Life("host", loop)
    env = SimEnv(loop, SimClock(loop), Chance(2), Ids(loop))
    nowhere = msgspec.structs.replace(HELLO, program=Program("nowhere_at_all", "", tuple(sys.path), ()))

    async def tell() -> bool:
        crew = Workers(env, nowhere, count=1, slots=SLOTS, grace=GRACE)
        with pytest.raises(WorkerError, match="no worker can start: ModuleNotFoundError"):
            await crew.open()
        await crew.close()
        return True

    try:
        assert loop.play(life, tell())
    finally:
        loop.bury_all()
        loop.close()
