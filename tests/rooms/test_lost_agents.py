"""Somebody is told that an agent is lost, once: idle or busy, whoever found it, and until it is back or replaced."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.rooms.bridge import Bridge, Machine
from tests.rooms.scene import LONG, LOOK_EVERY
from tests.rooms.watched import A_LEASE, OTHER, ROUTES, Watched, watching
from watchbill import App
from watchbill.agent.agent import Agent
from watchbill.app.house import House
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.events import Event, Events
from watchbill.model.alert import AlertKind
from watchbill.model.complement import AWAY_FOR, LOST_AGENTS
from watchbill.model.decision import Decision
from watchbill.model.incident import IncidentState, told_by
from watchbill.model.lease import HOST_LEASE
from watchbill.model.lost import as_inline, is_inline
from watchbill.model.watcher import Supervision
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor import boatswain
from watchbill.supervisor.lookout import GRACE
from watchbill.supervisor.missing import STEADY_AFTER
from watchbill.testing.conformance.scene import AGENT, HandClock, HandEnv

ANOTHER = 72
OPENED, RESOLVED = (AlertKind.OPENED, LOST_AGENTS), (AlertKind.RESOLVED, LOST_AGENTS)
BACK = (STEADY_AFTER + boatswain.LOOK_EVERY) // SECOND + 1  # seconds after which one who came back has stayed


@pytest.fixture
async def here(kept: str) -> AsyncIterator[Watched]:
    async with watching(kept) as here:
        yield here


def store_in(app: App) -> Store:
    hall: Any = app._hall
    store: Store = hall._store
    return store


def lost_in(told: list[Event]) -> list[Event]:
    return [event for event in told if event.kind == "agent.lost"]


async def open_incidents(here: Watched) -> list[str]:
    return [row.cause for row in await here.scene.store.supervisor.incidents()]


# --- told once


async def test_an_idle_agent_that_says_nothing_any_more_is_told_of_once(here: Watched) -> None:
    await here.joins(OTHER)
    await here.passes(3 * A_LEASE)
    [event] = lost_in(here.told)
    assert (event.agent, event.cause) == (OTHER, "expired")
    assert event.note.startswith(f"'agent-{OTHER}': it did not renew its lease; last heard ")
    assert event.note.endswith("; it held nothing")
    assert here.sent == [OPENED]
    [incident] = await here.scene.store.supervisor.incidents()
    assert (incident.namespace, incident.cause, incident.members) == ("default", LOST_AGENTS, 1)
    assert f"an agent was lost: 'agent-{OTHER}' at " in told_by(incident).said


async def test_a_busy_one_is_told_of_once_with_how_many_attempts_were_moved(here: Watched) -> None:
    await here.joins(OTHER)
    await here.ready(rows=3)
    assert len(await here.scene.lease(OTHER)) == 3
    await here.passes(3 * A_LEASE)
    [event] = lost_in(here.told)
    assert event.note.endswith("; the 3 attempts that it held are moved")
    [incident] = await here.scene.store.supervisor.incidents()
    assert "the 3 attempts that it held are moved" in told_by(incident).said
    assert (here.heard("step.lost"), here.sent) == (3, [OPENED])


async def test_several_are_one_incident_and_one_alert_and_it_says_who_is_missed_now(here: Watched) -> None:
    await here.joins(OTHER)
    await here.passes(A_LEASE)
    await here.joins(ANOTHER)
    await here.passes(2 * A_LEASE)
    assert [event.agent for event in lost_in(here.told)] == [OTHER, ANOTHER]
    [incident] = await here.scene.store.supervisor.incidents()
    assert told_by(incident).said.startswith("2 agents were lost: ")
    assert (incident.members, here.sent) == (2, [OPENED])


async def test_each_namespace_has_an_incident_of_its_own(here: Watched) -> None:
    await here.joins(OTHER)
    await here.scene.store.agent.join(ANOTHER, "other", "", "b", b"{}", HOST_LEASE)
    await here.passes(A_LEASE + 5)
    found = await here.scene.store.supervisor.incidents()
    assert [(row.namespace, row.cause) for row in found] == [("default", LOST_AGENTS), ("other", LOST_AGENTS)]


async def test_who_leaves_in_peace_is_nobody_lost(here: Watched) -> None:
    await here.joins(OTHER)
    await here.passes(2)
    await here.scene.store.agent.leave(OTHER)
    await here.passes(3 * A_LEASE)
    assert (lost_in(here.told), here.sent, await open_incidents(here)) == ([], [], [])


async def test_a_room_that_runs_steps_itself_is_told_of_and_opens_no_incident(here: Watched) -> None:
    await here.scene.store.agent.join(OTHER, "default", "", "embedded-1", as_inline(b"{}"), HOST_LEASE)
    await here.passes(3 * A_LEASE)
    assert [event.cause for event in lost_in(here.told)] == ["expired"]
    assert (here.sent, await open_incidents(here)) == ([], [])


@pytest.mark.parametrize("way", list(Supervision))
async def test_of_three_supervisors_one_tells_of_a_proven_death_and_what_it_found_stands_in_the_decision(
    kept: str, way: Supervision
) -> None:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock)
    bridge = Bridge(store, clock, way)
    await bridge.scene.open()
    for _ in range(3):
        bridge.joins()
    row = await bridge.abandoned()
    await store.agent.join(ANOTHER, "default", "", "idle", b"idle", 3_600 * SECOND)
    await bridge.passes(2 * SECOND)
    bridge.dead |= {b"{}", b"idle"}
    await bridge.passes(3 * SECOND)
    told = lost_in([event for watchman in bridge.watchmen for event in watchman.told])
    assert sorted((event.agent or 0, event.cause) for event in told) == [
        (AGENT, "dead"),
        (71, "dead"),
        (ANOTHER, "dead"),
    ]
    decided = [msgspec.json.decode(one.body, type=Decision) for one in await bridge.scene.decisions(row.run_id)]
    assert decided[0].message == "the process of agent 'b' (71) is gone"
    [incident] = await store.supervisor.incidents()
    assert incident.members == 3
    assert await bridge.judged_twice() == []
    await store.close()


async def test_who_finds_it_may_die_before_it_tells_anybody_and_another_one_tells(kept: str) -> None:
    clock = HandClock()
    store = await open_store(kept, SystemEnv(), clock=clock)
    bridge = Bridge(store, clock, Supervision.EMBEDDED)
    await bridge.scene.open()
    await store.agent.join(OTHER, "default", "", "b", b"{}", HOST_LEASE)
    await store.supervisor.bury([OTHER])  # and it dies
    watchman = bridge.joins()
    await bridge.passes(2 * SECOND)
    assert [event.agent for event in watchman.heard("agent.lost")] == [OTHER]
    await store.close()


# --- until it is back, or replaced


async def test_who_is_heard_again_is_welcome_and_the_incident_is_resolved(here: Watched) -> None:
    await here.joins(OTHER)
    await here.passes(2 * A_LEASE)
    assert here.sent == [OPENED]
    for _ in range(BACK):
        assert await here.beats(OTHER)
        await here.passes(1)
    assert (here.sent, await open_incidents(here)) == ([OPENED, RESOLVED], [])
    await here.passes(2 * A_LEASE)
    assert here.sent == [OPENED, RESOLVED, OPENED], "it was lost anew"
    assert len(lost_in(here.told)) == 2


async def test_one_of_its_name_that_stays_resolves_it_and_one_that_ends_again_does_not(here: Watched) -> None:
    await here.joins(OTHER)
    await here.passes(2 * A_LEASE)
    join = here.scene.store.agent.join
    for id in (101, 102):  # it is started, and ends again, and so on
        await join(id, "default", "", f"agent-{OTHER}", b"{}", HOST_LEASE)
        await here.passes(A_LEASE)
    assert here.sent == [OPENED], "it is told once, though it loops"
    for n, name in enumerate((f"agent-{OTHER}", f"agent-{OTHER}", f"agent-{OTHER}"), 103):
        await join(n, "default", "", name, b"{}", 3_600 * SECOND)
    await here.passes(BACK)
    assert (here.sent, await open_incidents(here)) == ([OPENED, RESOLVED], [])


async def test_who_stays_away_is_missed_for_an_hour_and_not_for_ever(here: Watched) -> None:
    await here.joins(OTHER)
    await here.passes(2 * A_LEASE)
    here.clock.pass_by(AWAY_FOR - 4 * HOST_LEASE)
    await here.passes(A_LEASE)
    assert here.sent == [OPENED]
    here.clock.pass_by(4 * HOST_LEASE)
    await here.passes(A_LEASE)
    assert (here.sent, await open_incidents(here)) == ([OPENED, RESOLVED], [])
    assert len(lost_in(here.told)) == 1


async def test_whoever_goes_on_after_a_crash_resolves_what_another_one_opened(here: Watched, kept: str) -> None:
    await here.joins(OTHER)
    await here.passes(2 * A_LEASE)
    [incident] = await here.scene.store.supervisor.incidents()
    env, events, told = HandEnv(here.clock), Events(), list[Event]()
    events.subscribe(told.extend)
    here.supervisor = type(here.supervisor)(
        env, events, store=here.scene.store.supervisor, lasting=HOST_LEASE, routes=ROUTES
    )
    for _ in range(BACK):
        assert await here.beats(OTHER)
        await here.passes(1)
    assert await open_incidents(here) == []
    [row] = [one for one in await here.scene.store.client.incidents("default", 10) if one.id == incident.id]
    assert row.state is IncidentState.RESOLVED
    assert lost_in(told) == []


async def test_what_waits_for_one_who_was_lost_is_no_incident_of_its_own_until_nobody_misses_it(here: Watched) -> None:
    await here.scene.store.agent.leave(AGENT)
    await here.joins(OTHER)
    await here.ready()
    assert len(await here.scene.lease(OTHER)) == 1
    await here.passes(A_LEASE + 2 * GRACE // SECOND)
    assert here.sent == [OPENED]
    [incident] = await here.scene.store.supervisor.incidents()
    assert told_by(incident).said.endswith("; no agent is left")
    here.clock.pass_by(AWAY_FOR)
    await here.passes(2 * GRACE // SECOND)
    assert (here.sent, await open_incidents(here)) == ([OPENED, RESOLVED, (AlertKind.OPENED, "no agent")], ["no agent"])


# --- rooms that run steps themselves


async def test_an_agent_beside_other_rooms_says_that_it_is_no_host(app: App) -> None:
    async with app.rooms(scheduler=False, supervisor=False):
        async with asyncio.timeout(LONG):
            while not (rows := await store_in(app).client.agents("default")):
                await asyncio.sleep(LOOK_EVERY)
        [row] = rows
        assert is_inline(row.info)


async def test_a_program_that_was_killed_and_is_run_again_opens_no_incident(kept: str) -> None:
    clock, told, dead = HandClock(), list[Event](), set[bytes]()
    for life in ("p1", "p2"):
        env, events = Machine(f'{{"pid":"{life}"}}', clock, dead), Events()
        events.subscribe(told.extend)
        store = await open_store(kept, env, clock=clock)
        house = House(env, store, App(kept).registry, events, namespace="default", routes=ROUTES)
        agent = next(room for room in house.rooms if isinstance(room, Agent))
        supervisor = next(room for room in house.rooms if room.name == "supervisor")
        await agent.open()
        while await supervisor.turn() == 0:
            pass
        assert await store.supervisor.incidents() == []
        await store.close()  # nobody has said goodbye
        dead |= {as_inline(f'{{"pid":"{life}"}}'.encode())}
    assert [event.cause for event in lost_in(told)] == ["dead"]
