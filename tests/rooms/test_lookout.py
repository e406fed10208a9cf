"""The lookout on a real store: what it sees, when it speaks, and that it speaks once."""

from collections.abc import AsyncIterator

import pytest

from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.events import Event, Events
from watchbill.model.alert import AlertKind, AlertState, Route, SettledAlert, read_routes
from watchbill.model.incident import RESOLVED_KEPT_FOR
from watchbill.model.run import SHARDS_PER_REGION, RunRow, shard_number
from watchbill.model.states import RunState
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor.lookout import GRACE, LOOK_EVERY, Lookout
from watchbill.testing.conformance.scene import KNOWN, ME, HandClock, HandEnv, Scene, a_change, a_run


class Post:
    """A lookout, and the world that it looks at."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.scene = Scene(store, clock)
        self.clock = clock
        self.told: list[Event] = []
        self.lookouts = [self.another()]

    def another(self, *, polls: bool = False, routes: tuple[Route, ...] = ()) -> Lookout:
        env, events = HandEnv(self.clock), Events()
        events.subscribe(self.told.extend)
        return Lookout(env, events, store=self.scene.store.supervisor, polls=polls, routes=routes)

    async def passes(self, span: Micros) -> None:
        """Let time pass, with every turn that the lookouts wish for."""
        until = self.clock.boot() + span
        while True:
            wishes = [wish for lookout in self.lookouts if (wish := await lookout.turn()) is not None]
            left = until - self.clock.boot()
            if left <= 0:
                return
            self.clock.pass_by(min([left, *wishes]))

    def heard(self, kind: str) -> list[str]:
        return [event.cause for event in self.told if event.kind == kind]

    async def put(self, *needs: str) -> RunRow:
        """Let a call wait."""
        queue = await self.scene.store.scheduler.queue("default", "", needs, "")
        [run] = await self.scene.submit(a_run(self.scene.env.new_id()))
        await self.scene.turn(attempts=[self.scene.a_row(run, queue=queue)], runs=[a_change(run, RunState.RUNNING)])
        for lookout in self.lookouts:
            lookout.hint()
        return run


@pytest.fixture
async def post(url: str) -> AsyncIterator[Post]:
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    post = Post(store, clock)
    await post.scene.open()
    await store.scheduler.attend(ME, "default", "", KNOWN, b"{}", None)
    yield post
    await store.close()


async def test_who_cannot_be_served_is_told_after_a_minute_and_healed_by_whoever_can(post: Post) -> None:
    await post.put("gpu=2")
    await post.passes(GRACE - 1)
    assert post.told == []
    await post.passes(LOOK_EVERY)
    assert post.heard("incident.opened") == ["no agent for gpu=2"]
    await post.scene.store.agent.join(71, "default", "", "b", b"{}", None, needs=("gpu=1",))  # too little of it
    await post.passes(5 * LOOK_EVERY)
    assert post.heard("incident.resolved") == []
    await post.scene.store.agent.join(72, "default", "", "c", b"{}", None, needs=("gpu=2",))
    await post.passes(LOOK_EVERY)
    assert post.heard("incident.resolved") == ["no agent for gpu=2"]
    assert len(post.heard("incident.opened")) == 1


async def test_whoever_wants_alerts_is_to_be_told_of_it_and_of_its_end(post: Post) -> None:
    routes = read_routes("https://all.example,team=https://team.example")
    post.lookouts = [post.another(routes=routes)]
    await post.put("gpu")
    await post.passes(GRACE + LOOK_EVERY)
    marks, doors = [route.mark for route in routes], post.scene.store.supervisor
    [opened] = (await doors.take_alerts(marks, 10, SECOND)).alerts
    assert (opened.kind, opened.route, opened.incident.cause) == (AlertKind.OPENED, marks[0], "no agent for gpu")
    await doors.settle_alerts([SettledAlert(opened.incident.id, opened.kind, opened.route, AlertState.SENT)])
    await post.scene.store.agent.join(71, "default", "", "b", b"{}", None, needs=("gpu",))
    await post.passes(LOOK_EVERY)
    [resolved] = (await doors.take_alerts(marks, 10, SECOND)).alerts
    assert (resolved.kind, resolved.incident.id) == (AlertKind.RESOLVED, opened.incident.id)


async def test_an_agent_that_comes_back_within_the_minute_is_no_incident_however_old_the_work_is(post: Post) -> None:
    agents = post.scene.store.agent
    await agents.join(71, "default", "", "b", b"{}", None, needs=("gpu",))
    await post.put("gpu")
    await post.passes(600 * SECOND)
    await agents.leave(71)
    await post.passes(30 * SECOND)
    await agents.join(72, "default", "", "c", b"{}", None, needs=("gpu",))
    await post.passes(60 * SECOND)
    assert post.told == []


async def test_several_who_look_open_one_incident_and_tell_it_once(post: Post) -> None:
    post.lookouts += [post.another(), post.another(polls=True)]
    await post.put("gpu")
    await post.passes(2 * GRACE)
    assert post.heard("incident.opened") == ["no agent for gpu"]
    assert len(await post.scene.store.supervisor.incidents()) == 1
    await post.scene.store.agent.join(71, "default", "", "b", b"{}", None, needs=("gpu",))
    await post.passes(2 * LOOK_EVERY)
    assert post.heard("incident.resolved") == ["no agent for gpu"]


async def test_one_that_comes_anew_does_not_open_what_is_open(post: Post) -> None:
    await post.put("gpu")
    await post.passes(2 * GRACE)
    post.lookouts = [post.another()]
    await post.passes(2 * GRACE)
    assert len(post.heard("incident.opened")) == 1
    assert post.heard("incident.resolved") == []


async def test_runs_whose_code_nobody_has_are_told_after_a_minute_and_healed_when_it_comes(post: Post) -> None:
    [run] = await post.scene.submit(a_run(5, workflow="unheard_of"))
    await post.passes(GRACE - LOOK_EVERY)
    assert post.told == []
    await post.passes(2 * LOOK_EVERY)
    assert post.heard("incident.opened") == ["no code for workflow 'unheard_of' version 1"]
    [incident] = await post.scene.store.client.incidents("default", 10)
    assert run.id.encode() in incident.body
    await post.scene.store.scheduler.attend(ME + 1, "default", "", ("unheard_of@1",), b"{}", None)
    await post.passes(LOOK_EVERY)
    assert post.heard("incident.resolved") == ["no code for workflow 'unheard_of' version 1"]


async def test_where_no_scheduler_attends_any_more_that_is_told(post: Post) -> None:
    await post.scene.submit(a_run(5))
    await post.scene.store.scheduler.retire(ME)
    await post.passes(GRACE + LOOK_EVERY)
    assert post.heard("incident.opened") == ["no scheduler"]


async def test_who_finds_nothing_has_no_timer_until_it_is_asked_to_look(post: Post) -> None:
    [lookout] = post.lookouts
    assert await lookout.turn() == LOOK_EVERY
    post.clock.pass_by(LOOK_EVERY)
    assert await lookout.turn() is None
    post.clock.pass_by(SECOND)
    lookout.hint()
    assert await lookout.turn() == LOOK_EVERY - SECOND
    post.clock.pass_by(LOOK_EVERY)
    assert await lookout.turn() is None


async def test_where_others_write_too_it_looks_by_itself(post: Post) -> None:
    lookout = post.another(polls=True)
    for _ in range(3):
        assert await lookout.turn() == LOOK_EVERY
        post.clock.pass_by(LOOK_EVERY)


async def test_one_that_comes_anew_resolves_nothing_about_code_before_it_has_looked_at_every_run(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchbill.supervisor.lookout.CODES", 1)
    last = next(id for id in map(str, range(1_000)) if shard_number(id) == SHARDS_PER_REGION - 1)
    first = next(id for id in map(str, range(1_000)) if shard_number(id) == 0)
    runs = await post.scene.submit(
        *(a_run(n, f"{first}" if n == 1 else None) for n in range(1, 4)), a_run(9, last, workflow="unheard_of")
    )
    assert runs[-1].shard >= max(run.shard for run in runs)
    await post.scene.turn(runs=[a_change(run, RunState.RUNNING) for run in runs])
    await post.passes(2 * GRACE)
    assert post.heard("incident.opened") == ["no code for workflow 'unheard_of' version 1"]
    post.lookouts = [post.another()]
    await post.passes(2 * GRACE)
    assert post.heard("incident.resolved") == []
    await post.scene.store.scheduler.attend(ME + 1, "default", "", ("unheard_of@1",), b"{}", None)
    await post.passes(2 * GRACE)
    assert post.heard("incident.resolved") == ["no code for workflow 'unheard_of' version 1"]


async def test_what_was_resolved_a_month_ago_is_forgotten(post: Post) -> None:
    await post.put("gpu")
    await post.passes(2 * GRACE)
    await post.scene.store.agent.join(71, "default", "", "b", b"{}", None, needs=("gpu",))
    await post.passes(LOOK_EVERY)
    assert len(await post.scene.store.client.incidents("default", 10)) == 1
    post.clock.pass_by(RESOLVED_KEPT_FOR + SECOND)
    post.lookouts[0].hint()
    await post.passes(2 * LOOK_EVERY)
    assert await post.scene.store.client.incidents("default", 10) == []
