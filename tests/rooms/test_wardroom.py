"""The wardroom on a real store: when calls become an incident, when it is over, and at which pace people are obeyed."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.events import Event, Events
from watchbill.flow.copies import successor
from watchbill.model.alert import Route
from watchbill.model.attempt import AttemptRow
from watchbill.model.question import Patience
from watchbill.model.resolution import Action, Resolution
from watchbill.model.states import AttemptState
from watchbill.store.open import open_store
from watchbill.store.protocol import Ordered, Store
from watchbill.supervisor.wardroom import LOOKS_APART, POLL, Wardroom
from watchbill.testing.conformance.people import a_question, waiting
from watchbill.testing.conformance.scene import HandClock, HandEnv, Scene, a_run, a_verdict

EVERY = 1_000
RETRY = msgspec.json.encode(Resolution(Action.RETRY, "mended"))


class Post:
    """A wardroom, and the world that it looks at."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.scene = Scene(store, clock)
        self.clock = clock
        self.told: list[Event] = []
        self.rooms = [self.another()]

    def another(self, *, polls: bool = False, routes: tuple[Route, ...] = ()) -> Wardroom:
        env, events = HandEnv(self.clock), Events()
        events.subscribe(self.told.extend)
        return Wardroom(
            env, events, store=self.scene.store.supervisor, polls=polls, routes=routes, successors=successor
        )

    async def passes(self, span: Micros) -> None:
        """Let time pass, with every turn that the rooms wish for; each is hinted at first."""
        for room in self.rooms:
            room.hint()
        until = self.clock.boot() + span
        while True:
            wishes = [wish for room in self.rooms if (wish := await room.turn()) is not None]
            left = until - self.clock.boot()
            if left <= 0:
                return
            self.clock.pass_by(min([left, *wishes]))

    def heard(self, kind: str) -> list[str]:
        return [event.cause or event.call for event in self.told if event.kind == kind]

    async def told_facts(self, rows: list[AttemptRow]) -> int:
        records = [await self.scene.store.client.record("default", row.run_id) for row in rows]
        return sum(len(record.told) for record in records if record is not None)


@pytest.fixture
async def post(url: str) -> AsyncIterator[Post]:
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    post = Post(store, clock)
    await post.scene.open()
    yield post
    await store.close()


async def test_many_that_fail_alike_are_one_incident_which_is_opened_and_resolved_once(post: Post) -> None:
    rows = [await waiting(post.scene, num) for num in range(1, 13)]
    await post.passes(SECOND)
    [cause] = post.heard("incident.opened")
    assert cause.startswith("quarantine of charge ")
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    assert (incident.members, incident.waiting) == (12, 12)
    more = await waiting(post.scene, 20)
    await post.passes(SECOND)
    assert len(post.heard("incident.opened")) == 1
    await post.scene.turn(released=[row.id for row in rows])
    await post.passes(SECOND)
    assert post.heard("incident.resolved") == []
    await post.scene.turn(dropped=[more.id])
    await post.passes(SECOND)
    assert post.heard("incident.resolved") == [cause]
    assert post.heard("incident.opened") == [cause]


async def test_what_comes_back_after_it_was_healed_is_a_new_incident(post: Post) -> None:
    first = await waiting(post.scene, 1)
    await post.passes(SECOND)
    await post.scene.turn(dropped=[first.id])
    await post.passes(SECOND)
    await waiting(post.scene, 2)
    await post.passes(SECOND)
    assert len(set(post.heard("incident.opened"))) == 1
    assert len(post.heard("incident.opened")) == 2
    assert [row.state.word for row in await post.scene.store.client.incidents("default", EVERY)] == ["open", "resolved"]


async def test_several_who_look_open_it_once_and_obey_once(post: Post) -> None:
    post.rooms += [post.another(), post.another(polls=True)]
    rows = [await waiting(post.scene, num) for num in range(1, 8)]
    await post.passes(SECOND)
    assert len(post.heard("incident.opened")) == 1
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 2)
    await post.passes(SECOND // 2)
    assert await post.told_facts(rows) == 2
    await post.passes(SECOND)
    assert await post.told_facts(rows) == 4


async def test_all_of_an_incident_go_on_a_few_in_each_second_whoever_dies_meanwhile(post: Post) -> None:
    rows = [await waiting(post.scene, num) for num in range(1, 13)]
    await post.passes(SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    assert await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 5) is Ordered.DONE
    seen = []
    for _ in range(4):
        await post.passes(SECOND // 2)
        seen.append(await post.told_facts(rows))
        post.rooms = [post.another()]  # the one before is gone, and has left nothing half done
        await post.passes(SECOND // 2)
        seen.append(await post.told_facts(rows))
    assert seen == [5, 10, 10, 12, 12, 12, 12, 12] or seen == [5, 5, 10, 10, 12, 12, 12, 12]
    assert (await post.scene.store.supervisor.muster(EVERY)).orders == ()


async def test_who_fails_again_is_not_tried_for_ever(post: Post) -> None:
    row = await waiting(post.scene, 1)
    await post.passes(SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 1)
    await post.passes(SECOND)
    record = await post.scene.store.client.record("default", row.run_id)
    assert record is not None
    await post.scene.turn(released=[row.id], facts_done=[fact.id for fact in record.told])
    post.clock.pass_by(SECOND)
    [leased] = await post.scene.lease()
    await post.scene.judge(a_verdict(leased, AttemptState.FAILED))
    failed = await post.scene.row(row.id)
    await post.scene.judge(a_verdict(failed, AttemptState.PARKED, why="quarantine", result=row.result))
    await post.passes(5 * SECOND)
    assert await post.told_facts([row]) == 0
    [still] = await post.scene.store.client.incidents("default", EVERY)
    assert (still.id, still.waiting) == (incident.id, 1)


async def test_whoever_is_asked_is_reminded_half_way(post: Post) -> None:
    await a_question(post.scene, 1, Patience(60 * SECOND))
    await post.passes(29 * SECOND)
    assert post.heard("question.reminded") == []
    await post.passes(2 * SECOND)
    assert post.heard("question.reminded") == ["charge"]
    await post.passes(60 * SECOND)
    assert post.heard("question.reminded") == ["charge"]


async def test_who_finds_nothing_has_no_timer_and_who_finds_much_does_not_turn_in_circles(post: Post) -> None:
    [room] = post.rooms
    assert await room.turn() is None
    room.hint()
    assert await room.turn() == LOOKS_APART
    post.clock.pass_by(LOOKS_APART)
    assert await room.turn() is None
    assert await room.turn() is None
    polling = post.another(polls=True)
    assert await polling.turn() == POLL
    post.clock.pass_by(POLL // 2)
    assert await polling.turn() == POLL // 2


async def test_a_call_between_two_tries_is_no_incident(post: Post) -> None:
    [run] = await post.scene.submit(a_run(1))
    row = await post.scene.row_in(AttemptState.FAILED, run)
    await post.scene.judge(a_verdict(row, AttemptState.PARKED, why="backoff", watch_in=SECOND))
    await post.passes(SECOND)
    assert post.told == []
