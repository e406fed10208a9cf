"""A thread that was abandoned runs on, and is named in an incident until it returns or its agent is gone."""

import threading
from collections.abc import Iterator

import msgspec
import pytest

from tests.rooms.scene import LONG, Ear, ends
from tests.rooms.watched import A_LEASE, OTHER, watching
from watchbill import App, Retry, attempt
from watchbill.clock import SECOND
from watchbill.model.alert import AlertKind
from watchbill.model.complement import Abandoned, Inline
from watchbill.model.incident import Incident
from watchbill.model.lease import HOST_LEASE
from watchbill.model.lost import as_inline
from watchbill.supervisor.missing import NAMED_AFTER


class Hung:
    """A step that hangs in its thread the first time, until it is let go."""

    def __init__(self, app: App) -> None:
        self.go, self.returned = threading.Event(), threading.Event()

        @app.step(stall="50ms", retry=Retry(1, backoff="1ms"))
        def encode() -> int:
            if attempt().number == 1:
                self.go.wait(LONG)
                self.returned.set()
            return attempt().number

        @app.workflow
        async def wf() -> int:
            return await encode()

        self.wf = wf


@pytest.fixture
def hung(app: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hung]:
    monkeypatch.setattr("watchbill.supervisor.missing.NAMED_AFTER", NAMED_AFTER // 100)
    monkeypatch.setattr("watchbill.supervisor.boatswain.LOOK_EVERY", NAMED_AFTER // 100)
    hung = Hung(app)
    yield hung
    hung.go.set()


async def the_incident(app: App) -> Incident:
    [incident] = [one for one in await app.incidents() if one.cause.startswith("abandoned threads")]
    return incident


async def test_it_is_named_once_and_resolved_when_it_returns(app: App, hung: Hung) -> None:
    ear = Ear(app)
    async with app.rooms():
        run = await app.start(hung.wf, id="r-1")
        assert await ends(run) == 2, "somebody else has its call"
        [opened] = await ear.hears("incident.opened")
        [agent] = await app.agents()
        assert opened.cause == f"abandoned threads of agent {agent.name!r}"
        assert (
            "a thread of it runs on that nobody waits for, and keeps its slot: step 'encode' of run 'r-1'"
            in opened.note
        )
        assert "restart that process" in opened.note
        incident = await the_incident(app)
        assert (incident.state, incident.members, incident.examples) == ("open", 1, ("r-1",))
        hung.go.set()
        await ear.hears("incident.resolved")
        assert hung.returned.is_set()
    assert await app.incidents() == []
    assert len(ear.of("incident.opened")) == 1
    await app.close()


@pytest.mark.parametrize("leaves", [True, False], ids=["in peace", "lost"])
async def test_when_its_agent_is_gone_nobody_is_asked_to_restart_it(kept: str, *, leaves: bool) -> None:
    async with watching(kept) as here:
        agent, cause = here.scene.store.agent, "abandoned threads of agent 'embedded-1'"
        await agent.join(OTHER, "default", "", "embedded-1", as_inline(b"{}"), HOST_LEASE)
        since = here.clock.wall_now
        thread = Abandoned("o-1", "charge", "charge", since - SECOND, since)
        said = msgspec.json.encode(Inline((thread,), 1))
        for second in range(NAMED_AFTER // SECOND + 2):
            await agent.beat(OTHER, HOST_LEASE, [], said=said)
            assert bool(here.sent) is (second >= NAMED_AFTER // SECOND), "it has time to return by itself"
            await here.passes(1)
        assert here.sent == [(AlertKind.OPENED, cause)]
        if leaves:
            await agent.leave(OTHER)
        await here.passes(2 * A_LEASE)
        assert here.sent == [(AlertKind.OPENED, cause), (AlertKind.RESOLVED, cause)]


async def test_one_that_returns_when_it_is_asked_to_is_no_incident(app: App, hung: Hung) -> None:
    ear = Ear(app)

    @app.step(stall="50ms", retry=Retry(1, backoff="1ms"))
    def listens() -> int:
        while attempt().number == 1 and not attempt().cancelled:
            threading.Event().wait(0.001)
        return attempt().number

    @app.workflow
    async def heeds() -> int:
        return await listens()

    async with app.rooms():
        assert await ends(await app.start(heeds)) == 2
        assert await ends(await app.start(hung.wf)) == 2
        [opened] = await ear.hears("incident.opened")  # of the other one, which came later
        assert "'encode'" in opened.note
        assert "'listens'" not in opened.note
        hung.go.set()
    await app.close()
