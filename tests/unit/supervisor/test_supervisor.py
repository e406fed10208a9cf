"""The supervisor's patience: what it may judge at once, and what only after it has heard the store for long enough."""

from collections.abc import Sequence
from typing import cast

import msgspec
import pytest

from tests.unit.supervisor.rows import NOON, a_failure, a_row
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.events import PROCESS_BURIED, SUPERVISOR_LATE, Event, Events
from watchbill.model.attempt import AttemptRow
from watchbill.model.complement import Complement
from watchbill.model.doings import Roll
from watchbill.model.incident import IncidentRow
from watchbill.model.lost import Dead, Found, LostAgent
from watchbill.model.policy import Policy
from watchbill.model.states import AttemptState
from watchbill.model.verdict import Judgement
from watchbill.store.protocol import SupervisorStore, Watch
from watchbill.supervisor.supervisor import PROOF_EVERY, Supervisor

SECOND = 1_000_000
LASTING = 24 * SECOND


class HandClock:
    def __init__(self) -> None:
        self.boot_now = 100 * SECOND

    def wall(self) -> int:
        raise AssertionError("nobody but a store reads the wall clock")

    def boot(self) -> int:
        return self.boot_now


class Morgue(SystemEnv):
    """Knows by their names who is dead."""

    def __init__(self) -> None:
        super().__init__()
        self.dead = {b"dead"}

    def is_dead(self, identity: bytes) -> bool:
        return identity in self.dead


class Rows:
    """The doors for supervisors, answered from memory."""

    def __init__(self) -> None:
        self.due: tuple[AttemptRow, ...] = ()
        self.orphans: tuple[AttemptRow, ...] = ()
        self.away = False
        self.now = NOON
        self.expired: list[bool] = []
        self.judged: list[Judgement] = []
        self.there = [(1, b"alive"), (2, b"dead")]
        self.asked = 0
        self.quiet: list[int] = []
        self.quiet_at: int | None = None
        self.guests = False
        self.slow = lambda: None
        self.buried: list[int] = []
        self.unheard: list[int] = []

    async def watch(
        self, limit: int, *, expired: bool = True, shards: Sequence[int] | None = None, processes: bool = True
    ) -> Watch:
        if self.away:
            raise StoreUnreachableError("no answer")
        self.expired.append(expired)
        self.slow()
        dead = tuple([Dead(row.agent or 0, "", Found.EXPIRED) for row in self.orphans])
        watch = Watch(self.due, self.orphans, None, False, self.now, self.guests, dead=dead)
        if not processes:
            return watch
        self.asked += 1
        there, silent = tuple(self.there), tuple(self.quiet)
        return msgspec.structs.replace(watch, processes=there, silent=silent, silent_at=self.quiet_at)

    async def bury(self, processes: Sequence[int], *, unheard: bool = False) -> None:
        (self.unheard if unheard else self.buried).extend(processes)
        self.quiet = [who for who in self.quiet if who not in processes]
        self.there = [who for who in self.there if who[0] not in processes]

    async def miss(self, agents: Sequence[int]) -> list[LostAgent]:
        return []

    async def complement(self) -> Complement:
        return Complement((), False, self.now)

    async def doings(self) -> Roll:
        return Roll((), self.now)

    async def incidents(self) -> list[IncidentRow]:
        return []

    async def judge(self, judgements: Sequence[Judgement]) -> list[bool]:
        self.judged += judgements
        return [True for _ in judgements]


class Scene:
    def __init__(self, lasting: int | None) -> None:
        self.env, self.clock, self.rows, self.events = Morgue(), HandClock(), Rows(), Events()
        self.env.clock = self.clock
        self.room = Supervisor(self.env, self.events, store=cast(SupervisorStore, self.rows), lasting=lasting)

    async def turns(self, seconds: int) -> int | None:
        wish = None
        for _ in range(seconds):
            wish = await self.room.turn()
            self.clock.boot_now += SECOND
        return wish

    def judges(self, row: AttemptRow) -> None:
        self.rows.due, self.rows.judged = (row,), []


A_SECOND = msgspec.json.encode(Policy(timeout=SECOND))
LATE = a_row(AttemptState.RUNNING, watch_at=NOON, policy=A_SECOND)
STALLED = a_row(
    AttemptState.RUNNING,
    started_at=NOON - 2 * SECOND,
    watch_at=NOON,
    policy=msgspec.json.encode(Policy(stall=SECOND // 2)),
)
OVERDUE = a_row(AttemptState.RUNNING, watch_at=NOON, cancel=True)
FAILED = a_row(AttemptState.FAILED, a_failure())


def begun_since() -> AttemptRow:
    policy = msgspec.json.encode(Policy(timeout=30_000))
    return a_row(AttemptState.RUNNING, started_at=NOON + 10_000, watch_at=NOON + 40_000, policy=policy)


@pytest.fixture
def scene() -> Scene:
    return Scene(LASTING)


async def test_agents_out_of_time_are_left_alone_for_a_full_lease_period(scene):
    await scene.turns(26)
    assert scene.rows.expired == [False] * 24 + [True] * 2


async def test_after_an_outage_the_period_begins_again(scene):
    await scene.turns(30)
    scene.rows.away = True
    with pytest.raises(StoreUnreachableError):
        await scene.room.turn()
    scene.clock.boot_now += 60 * SECOND
    scene.rows.away, scene.rows.expired = False, []
    await scene.turns(26)
    assert scene.rows.expired == [False] * 24 + [True] * 2


@pytest.mark.parametrize("row", [LATE, STALLED, OVERDUE])
async def test_nobody_is_late_while_it_may_only_have_been_unable_to_say_so(scene, row):
    await scene.turns(30)
    scene.rows.away = True
    with pytest.raises(StoreUnreachableError):
        await scene.room.turn()
    scene.rows.away = False
    scene.judges(row)
    assert await scene.turns(8) == PROOF_EVERY, "it looks again, and does not spin"
    assert scene.rows.judged == []
    await scene.turns(2)
    assert scene.rows.judged != []


async def test_what_began_under_its_eyes_is_late_at_once(scene):
    """A supervisor that has just come, and a step that was begun since, with a timeout of milliseconds."""
    await scene.turns(1)
    scene.rows.now = NOON + 50_000
    scene.judges(begun_since())
    await scene.turns(1)
    assert scene.rows.judged != []


async def test_what_began_before_an_outage_is_not(scene):
    await scene.turns(1)
    scene.rows.now = NOON + 50_000
    scene.judges(begun_since())
    scene.rows.away = True
    with pytest.raises(StoreUnreachableError):
        await scene.room.turn()
    scene.rows.away = False
    await scene.turns(8)
    assert scene.rows.judged == []
    await scene.turns(2)
    assert scene.rows.judged != []


async def test_what_was_reported_is_judged_at_once(scene):
    scene.judges(FAILED)
    assert await scene.turns(1) == 0
    assert scene.rows.judged != []


async def test_the_dead_are_buried_once_and_looked_for_every_second(scene):
    await scene.turns(5)
    assert (scene.rows.buried, scene.rows.asked) == ([2], 5)
    for _ in range(3):
        await scene.room.turn()
    assert scene.rows.asked == 6


async def test_a_death_on_this_machine_is_found_without_asking_within_half_a_second(scene):
    await scene.turns(2)
    await scene.room.turn()
    looks, asked = len(scene.rows.expired), scene.rows.asked
    scene.clock.boot_now += PROOF_EVERY
    assert await scene.room.turn() == PROOF_EVERY
    assert (len(scene.rows.expired), scene.rows.asked) == (looks, asked), "who is alive costs nothing"
    scene.env.dead.add(b"alive")
    scene.clock.boot_now += PROOF_EVERY
    assert await scene.room.turn() == 0, "what it held is found at once"
    assert (scene.rows.buried, scene.rows.asked) == ([2, 1], asked + 1)
    assert PROOF_EVERY <= SECOND // 2


async def test_who_has_left_in_peace_is_not_buried_for_being_dead(scene):
    await scene.turns(2)
    await scene.room.turn()
    told: list[Event] = []
    scene.events.subscribe(told.extend)
    scene.env.dead.add(b"alive")
    scene.rows.there = []
    scene.clock.boot_now += PROOF_EVERY
    await scene.room.turn()
    assert (scene.rows.buried, told) == ([2], [])


async def test_a_hint_makes_it_look_at_once_and_not_ask_who_is_there(scene):
    await scene.turns(2)
    await scene.room.turn()
    looks, asked = len(scene.rows.expired), scene.rows.asked
    await scene.room.turn()
    assert len(scene.rows.expired) == looks
    scene.room.hint()
    await scene.room.turn()
    assert (len(scene.rows.expired), scene.rows.asked) == (looks + 1, asked)


async def test_however_often_it_is_hinted_at_the_dead_are_found_within_half_a_second(scene):
    await scene.turns(2)
    await scene.room.turn()
    scene.env.dead.add(b"alive")
    for _ in range(5):
        scene.clock.boot_now += PROOF_EVERY // 4
        scene.room.hint()
        await scene.room.turn()
    assert scene.rows.buried == [2, 1]


async def test_who_will_have_been_silent_for_a_beat_is_asked_for_exactly_then(scene):
    scene.rows.there, scene.rows.quiet_at = [], NOON + SECOND // 3
    assert await scene.room.turn() == SECOND // 3
    scene.clock.boot_now += SECOND // 3
    scene.rows.quiet, scene.rows.quiet_at = [7], None
    await scene.room.turn()
    assert scene.rows.unheard == [7]


async def test_the_silent_are_buried_as_such_and_it_is_told_why(scene):
    told: list[Event] = []
    scene.events.subscribe(told.extend)
    scene.rows.quiet = [7, 2]
    await scene.turns(1)
    assert (scene.rows.buried, scene.rows.unheard) == ([2], [7]), "proof comes before evidence"
    assert [(event.kind, event.cause) for event in told] == [(PROCESS_BURIED, "dead"), (PROCESS_BURIED, "silent")]
    assert told[1].note == "their connection is gone, and they were not heard for a beat: 7"


async def test_the_one_owner_has_no_neighbours_and_waits_for_nobody():
    scene = Scene(None)
    scene.judges(LATE)
    assert await scene.turns(1) == 0
    assert (scene.rows.asked, len(scene.rows.judged)) == (0, 1)
    scene.rows.due = ()
    assert await scene.turns(1) is None, "an idle store costs nothing"


async def test_what_is_well_is_looked_at_again_and_nobody_hears_of_it():
    scene, told = Scene(None), list[Event]()
    scene.events.subscribe(told.extend)
    scene.judges(a_row(AttemptState.RUNNING, watch_at=NOON, policy=msgspec.json.encode(Policy(timeout=5 * SECOND))))
    await scene.turns(1)
    [judgement] = scene.rows.judged
    assert (judgement.after, judgement.watch_in, judgement.body) == (AttemptState.RUNNING, 4 * SECOND, None)
    assert told == []


@pytest.fixture
def host() -> Scene:
    """The one owner of a store, with agents of other processes."""
    scene = Scene(None)
    scene.rows.guests = True
    return scene


async def test_while_there_are_guests_the_owner_looks_every_second_for_the_dead_and_the_silent(host):
    host.rows.quiet = [7]
    assert await host.turns(3) == PROOF_EVERY
    assert (host.rows.asked, host.rows.buried, host.rows.unheard) == (2, [2], [7])
    host.rows.guests = False
    assert await host.turns(1) is None
    await host.turns(5)
    assert host.rows.asked == 3


async def test_no_guest_dies_by_time_in_its_first_lease_period_at_a_new_owner(host):
    await host.turns(10)
    assert host.rows.expired == [False] * 8 + [True] * 2


async def test_no_guest_dies_by_time_after_its_owner_was_frozen(host):
    await host.turns(10)
    host.clock.boot_now += 60 * SECOND
    host.rows.expired = []
    await host.turns(10)
    assert host.rows.expired == [False] * 8 + [True] * 2


async def test_no_guest_dies_by_time_if_its_owner_freezes_while_it_looks(host):
    await host.turns(10)

    def freeze() -> None:
        host.clock.boot_now += 60 * SECOND
        host.rows.orphans = (a_row(AttemptState.RUNNING, agent=7),)

    host.rows.slow = freeze
    assert await host.turns(1) == 0
    assert host.rows.judged == []


async def test_no_guest_dies_by_time_while_nobody_can_write(host):
    await host.turns(10)
    host.rows.away, host.rows.expired = True, []
    for _ in range(5):
        with pytest.raises(StoreUnreachableError):
            await host.room.turn()
        host.clock.boot_now += SECOND
    host.rows.away = False
    await host.turns(10)
    assert host.rows.expired == [False] * 8 + [True] * 2


async def test_what_a_guest_could_not_report_to_the_owner_before_is_not_late_at_once(host):
    host.judges(LATE)
    assert await host.turns(3) == PROOF_EVERY
    assert host.rows.judged == []
    await host.turns(1)
    assert host.rows.judged != []


async def test_that_the_store_was_away_is_no_news_to_be_told_again_as_lateness(scene):
    told: list[Event] = []
    scene.events.subscribe(told.extend)
    await scene.turns(2)
    scene.rows.away = True
    for _ in range(3):
        scene.clock.boot_now += 20 * SECOND
        with pytest.raises(StoreUnreachableError):
            await scene.room.turn()
    scene.rows.away = False
    scene.judges(msgspec.structs.replace(FAILED, watch_at=NOON - 60 * SECOND))
    await scene.turns(2)
    assert [event for event in told if event.kind == SUPERVISOR_LATE] == []
