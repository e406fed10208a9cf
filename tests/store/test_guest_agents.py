"""Agents in other processes, on a file: through the socket of its owner, whoever that is at the moment; and hints."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.keys import FIRST
from watchbill.clock import SECOND
from watchbill.env import UNREAD, FramedWire, SystemEnv
from watchbill.errors import StoreError, StoreOwnedError, StoreUnreachableError, StoreUrlError
from watchbill.model.agent import Act, Answer, Report, Room
from watchbill.model.keys import parse_keys
from watchbill.model.lease import FOREVER
from watchbill.model.sealed import is_sealed
from watchbill.model.states import AttemptState
from watchbill.store import reception, wire
from watchbill.store.guest_store import GuestStore
from watchbill.store.open import Driven, open_for_agent, open_store, receiving_guests, visit_owner
from watchbill.store.owner import named_owner
from watchbill.store.protocol import AgentAccess, Hint
from watchbill.store.sealed import Seal
from watchbill.store.sqlite.store import SqliteStore
from watchbill.store.wire import Hello, Request
from watchbill.testing.conformance.scene import AGENT, STEPS, HandClock, Scene, a_run

LONG = 120  # seconds: reached only by a test that fails
GUEST = 700
LASTING = 8 * SECOND


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "store.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


class Mortal(SystemEnv):
    """Knows by their names who is dead."""

    def is_dead(self, identity: bytes) -> bool:
        return identity == b'"dead"'


class Hotel:
    """The owner of the file, which can close, and be followed by another one; `clock` is the time of all of them."""

    def __init__(self, url: str, clock: HandClock) -> None:
        self.url = url
        self.clock = clock
        self._inside = contextlib.AsyncExitStack()
        self.store: SqliteStore

    async def open(self) -> "Hotel":
        self.clock.wall_now += 1  # the store's time never stands still from owner to owner
        store = await open_store(self.url, Mortal(), clock=self.clock)
        assert isinstance(store, SqliteStore)
        self.store = store
        self._inside.push_async_callback(store.close)
        await self._inside.enter_async_context(
            receiving_guests(store, SystemEnv(), lambda: Driven("default", ("order",)))
        )
        return self

    async def close(self) -> None:
        await self._inside.aclose()

    async def scene(self) -> Scene:
        scene = Scene(self.store, self.clock)
        await scene.open()
        return scene

    async def until(self, agent: int) -> int:
        """Read when the lease of an agent ends."""
        connection = vars(vars(vars(self.store)["_lanes"])["_writer"])["_connection"]
        [(until,)] = connection.execute("SELECT until FROM agent WHERE id = ?", (agent,)).fetchall()
        return int(until)


@pytest.fixture
async def hotel(url: str, clock: HandClock) -> AsyncIterator[Hotel]:
    hotel = await Hotel(url, clock).open()
    yield hotel
    await hotel.close()


@pytest.fixture
async def access(hotel: Hotel) -> AsyncIterator[AgentAccess]:
    access = await open_for_agent(hotel.url, SystemEnv())
    yield access
    await access.close()


async def join(access: AgentAccess, agent: int = GUEST, info: bytes = b"{}") -> None:
    await access.agent.join(agent, "default", "", "guest", info, LASTING)


async def lease(access: AgentAccess, scene: Scene) -> Any:
    [row] = await access.agent.lease(GUEST, 1, [scene.queue], Room(1, 1, STEPS))
    return row


class Ear:
    """Waits for a hint."""

    def __init__(self, listen: Callable[[Hint, Callable[[], None]], object], whom: Hint) -> None:
        self.count = 0
        self._heard = asyncio.Event()
        listen(whom, self._hear)

    def _hear(self) -> None:
        self.count += 1
        self._heard.set()

    async def hears(self) -> None:
        async with asyncio.timeout(LONG):
            await self._heard.wait()
        self._heard.clear()


async def becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not condition():
            await asyncio.sleep(0.005)


# --- hints


async def test_a_guest_hears_the_hints_it_asked_for_and_no_others(hotel):
    guest = await visit_owner(hotel.url, SystemEnv())
    assert guest is not None
    agents, clients = Ear(guest.listen, Hint.AGENT), Ear(guest.listen, Hint.CLIENT)
    await guest.client.find("default", "o")  # asked after the hints, so they are listened for by now
    for whom in (Hint.SCHEDULER, Hint.SUPERVISOR, Hint.AGENT):
        hotel.store._lanes.hints.give(whom)
    await agents.hears()
    await guest.client.find("default", "o")
    assert (agents.count, clients.count) == (1, 0)
    await guest.close()


async def test_hints_of_one_kind_that_come_at_once_are_one(hotel):
    guest = await visit_owner(hotel.url, SystemEnv())
    assert guest is not None
    ear = Ear(guest.listen, Hint.AGENT)
    await guest.client.find("default", "o")
    for _ in range(10_000):
        hotel.store._lanes.hints.give(Hint.AGENT)
    await becomes(lambda: ear.count == 2)  # the first at once, all others together
    await guest.client.find("default", "o")
    assert ear.count == 2
    await guest.close()


async def test_who_has_hung_up_is_not_sent_anything(hotel):
    guest = await visit_owner(hotel.url, SystemEnv())
    assert guest is not None
    Ear(guest.listen, Hint.AGENT)
    await guest.client.find("default", "o")
    hints = hotel.store._lanes.hints
    assert hints.heard
    await guest.close()
    await becomes(lambda: not hints.heard)


async def test_work_wakes_an_agent_in_another_process(hotel, access):
    scene = await hotel.scene()
    ear = Ear(access.listen, Hint.AGENT)
    await join(access)
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run)])
    await ear.hears()
    row = await lease(access, scene)
    assert await access.agent.report(GUEST, [Report(row.id, row.fence, Act.DONE, b"42")]) == [Answer.ACCEPTED]
    assert await scene.state_of(row.id) is AttemptState.DONE


# --- guests that do not read


@contextlib.asynccontextmanager
async def a_deaf_guest(path: Path) -> AsyncIterator[FramedWire]:
    """A guest that asks and never reads an answer, but for the first one."""
    address = named_owner(path).address
    assert address is not None
    reader, writer = await asyncio.open_unix_connection(address, limit=1_000)
    line = FramedWire(reader, writer)
    await line.send(wire.encode(Hello(wire.PROTOCOL, wire.our_version())))
    assert await line.receive() is not None
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    try:
        yield line
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def a_request(number: int, door: str, **arguments: Any) -> bytes:
    return wire.encode(Request(number, door, msgspec.Raw(wire.encode(arguments))))


async def test_pushes_to_a_guest_that_does_not_read_are_dropped_and_others_are_served(hotel, path, access, monkeypatch):
    posted: list[bool] = []
    post = FramedWire.post

    def count(line: FramedWire, message: bytes) -> bool:
        posted.append(post(line, message))
        assert line._writer.transport.get_write_buffer_size() <= UNREAD + 1_000
        return posted[-1]

    monkeypatch.setattr(FramedWire, "post", count)
    monkeypatch.setattr("watchbill.store.visitor.APART", 0)
    async with a_deaf_guest(path) as deaf:
        await deaf.send(a_request(1, "hints.listen", whom=Hint.CLIENT))
        await becomes(lambda: hotel.store._lanes.hints.heard)
        async with asyncio.timeout(LONG):
            while all(posted):
                hotel.store._lanes.hints.give(Hint.CLIENT)
                await asyncio.sleep(0)
        assert False in posted
        await join(access)
        assert (await access.agent.beat(GUEST, LASTING, ())).alive


async def test_a_guest_that_does_not_read_its_answers_is_not_listened_to(hotel, path, access, monkeypatch):
    monkeypatch.setattr(reception, "AT_ONCE", 10)
    await hotel.store.client.submit([a_run(1, input=b"x" * 200_000)])
    opened = 0
    find = hotel.store.client.find

    async def counted(namespace: str, id: str) -> Any:
        nonlocal opened
        opened += 1
        return await find(namespace, id)

    monkeypatch.setattr(hotel.store.client, "find", counted)
    async with a_deaf_guest(path) as deaf:
        for n in range(3_000):
            deaf._writer.write(_framed(a_request(n, "client.find", namespace="default", id="o-1")))
        await becomes(lambda: opened > 2)
        await join(access)
        for _ in range(50):
            assert (await access.agent.beat(GUEST, LASTING, ())).alive
        assert opened < 30  # some answers fit into the buffers of the kernel


def _framed(message: bytes) -> bytes:
    return len(message).to_bytes(8, "big") + message


# --- whoever owns the file


async def test_a_store_in_memory_is_refused():
    with pytest.raises(StoreUrlError, match="a store in memory has its agent in its own process"):
        await open_for_agent("sqlite:///:memory:", SystemEnv())


async def test_opening_waits_for_an_owner_and_says_so_once(url, clock, caplog):
    caplog.set_level(logging.INFO)
    opening = asyncio.ensure_future(open_for_agent(url, SystemEnv()))
    says = f"waits for a process that has the rooms of store {url!r} open: watchbill up or watchbill dev"
    await becomes(lambda: says in caplog.text)
    await asyncio.sleep(0.1)
    assert not opening.done()
    assert caplog.text.count(says) == 1
    hotel = await Hotel(url, clock).open()
    access = await asyncio.wait_for(opening, LONG)
    await join(access)
    assert access.lasting_leases is False
    await access.close()
    await hotel.close()


async def test_opening_can_be_given_up(url):
    opening = asyncio.ensure_future(open_for_agent(url, SystemEnv()))
    await asyncio.sleep(0.05)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not [task for task in asyncio.all_tasks() if "keep_connected" in repr(task)]


async def test_a_client_that_owns_the_file_for_one_door_is_no_owner_to_wait_for(url, path, clock):
    opening = asyncio.ensure_future(open_for_agent(url, SystemEnv()))
    store = await open_store(url, SystemEnv(), clock=clock)
    await asyncio.sleep(0.1)
    assert not opening.done()
    await store.close()
    opening.cancel()


async def test_while_nobody_owns_the_file_doors_say_so_and_nobody_becomes_the_owner(hotel, access, path):
    await join(access)
    await hotel.close()
    await becomes(lambda: access._guest is None)
    with pytest.raises(StoreUnreachableError, match="nobody has the rooms of store"):
        await access.agent.beat(GUEST, LASTING, ())
    assert named_owner(path).pid is None


async def test_the_next_owner_is_found_the_agents_beat_and_all_who_listen_are_woken(hotel, access, clock):
    await join(access)
    ear = Ear(access.listen, Hint.AGENT)
    await hotel.close()
    await becomes(lambda: access._guest is None)
    clock.pass_by(60 * SECOND)
    await hotel.open()
    await ear.hears()
    assert await hotel.until(GUEST) == hotel.store._lanes.now() + LASTING
    scene = await hotel.scene()
    [run] = await scene.submit(a_run(1))
    before = ear.count
    await scene.turn(attempts=[scene.a_row(run)])
    await becomes(lambda: ear.count > before)
    assert (await lease(access, scene)).run == run.num


async def test_who_has_left_or_was_lost_does_not_beat_at_the_next_owners(hotel, access, clock):
    await join(access)
    await join(access, GUEST + 1)
    await join(access, GUEST + 2)
    await access.agent.leave(GUEST)
    await hotel.store.supervisor.bury([GUEST + 1])
    assert not (await access.agent.beat(GUEST + 1, LASTING, ())).alive
    assert isinstance(access, GuestStore)
    assert access._joined == {GUEST + 2: LASTING}


async def test_an_owner_of_another_version_is_refused_at_opening_and_later(hotel, access, monkeypatch):
    ear = Ear(access.listen, Hint.AGENT)
    await hotel.close()
    monkeypatch.setattr(wire, "PROTOCOL", 99)
    monkeypatch.setattr("watchbill.store.reception.wire.PROTOCOL", 99)
    real = Hello
    monkeypatch.setattr("watchbill.store.guest.Hello", lambda protocol, version: real(2, version))
    await hotel.open()
    await ear.hears()
    for _ in range(2):
        with pytest.raises(StoreOwnedError, match="both must be the same to work together"):
            await access.agent.beat(GUEST, LASTING, ())
    with pytest.raises(StoreOwnedError, match="both must be the same to work together"):
        await open_for_agent(hotel.url, SystemEnv())


async def test_an_owner_of_another_user_is_refused(hotel, monkeypatch):
    monkeypatch.setattr(reception, "peer_user", lambda writer: os.geteuid() + 1)
    with pytest.raises(StoreOwnedError, match="serves processes of its own user"):
        await open_for_agent(hotel.url, SystemEnv())


async def test_what_is_closed_is_closed(hotel):
    access = await open_for_agent(hotel.url, SystemEnv())
    await access.close()
    with pytest.raises(StoreError, match="is closed"):
        await access.agent.beat(GUEST, LASTING, ())


async def test_a_users_own_transaction_leads_to_the_same_file(hotel, access):
    assert access.transactions.place == hotel.store.transactions.place


async def test_with_keys_arguments_are_opened_here_and_results_sealed_before_they_leave(hotel):
    seal = Seal(parse_keys(FIRST, "keys"))
    sealed = Scene(seal.store(hotel.store), hotel.clock)
    await sealed.open()
    [run] = await sealed.submit(a_run(1))
    await sealed.turn(attempts=[sealed.a_row(run, args=b'["secret"]')])
    access = seal.access(await open_for_agent(hotel.url, SystemEnv()))
    await join(access)
    row = await lease(access, sealed)
    assert row.args == b'["secret"]'
    await access.agent.report(GUEST, [Report(row.id, row.fence, Act.DONE, b'"hidden"')])
    stored = (await hotel.store.client.record("default", "o-1")).attempts[0]
    assert is_sealed(stored.args)
    assert is_sealed(stored.result or b"")
    assert (await sealed.row(row.id)).result == b'"hidden"'
    await access.close()


# --- what a new owner makes of those who were there


async def test_a_new_owner_buries_the_old_one_and_the_dead_and_spares_who_may_be_alive(hotel, clock):
    scene = await hotel.scene()  # its agent is for ever: the owner's own
    for agent, info in ((GUEST, b"{}"), (GUEST + 1, b'"dead"')):
        await hotel.store.agent.join(agent, "default", "", "guest", info, LASTING)
    assert await hotel.until(AGENT) == FOREVER
    rows = []
    for n, agent in enumerate((AGENT, GUEST, GUEST + 1)):
        [run] = await scene.submit(a_run(n + 1))
        await scene.turn(attempts=[scene.a_row(run)])
        [row] = await scene.lease(agent)
        rows.append(row)
    await hotel.close()
    clock.pass_by(60 * SECOND)
    await hotel.open()
    watch = await hotel.store.supervisor.watch(10, expired=False)
    assert {row.agent for row in watch.orphans} == {AGENT, GUEST + 1}
    assert watch.guests
    [answer] = await hotel.store.agent.report(GUEST, [Report(rows[1].id, rows[1].fence, Act.DONE, b"1")])
    assert answer is Answer.ACCEPTED
    assert [row.losses for row in (await Scene(hotel.store, clock).rows()).values() if row.agent == GUEST] == [0]


async def test_a_client_that_owns_the_file_for_one_door_spares_guests_too(hotel, access, clock):
    scene = await hotel.scene()
    await join(access)
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run)])
    row = await lease(access, scene)
    await hotel.close()
    for _ in range(3):
        await (await open_store(hotel.url, SystemEnv(), clock=clock)).close()
    await hotel.open()
    await becomes(lambda: access._guest is not None)
    assert await access.agent.report(GUEST, [Report(row.id, row.fence, Act.DONE, b"1")]) == [Answer.ACCEPTED]


async def test_guests_are_watched_while_they_are_in_time_or_have_something_or_nobody_has_missed_them(hotel, clock):
    scene = await hotel.scene()
    supervisor, agents = hotel.store.supervisor, hotel.store.agent
    assert not (await supervisor.watch(10)).guests
    hinted = Ear(hotel.store.listen, Hint.SUPERVISOR)
    await agents.join(GUEST, "default", "", "guest", b"{}", LASTING)
    assert hinted.count == 1
    assert (await supervisor.watch(10)).guests
    clock.pass_by(LASTING)
    assert (await supervisor.watch(10)).guests, "somebody is to be told of it"
    assert len(await supervisor.miss([GUEST])) == 1
    assert not (await supervisor.watch(10)).guests
    await agents.beat(GUEST, LASTING, ())
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run)])
    await scene.lease(GUEST)
    clock.pass_by(2 * LASTING)
    assert (await supervisor.watch(10, expired=False)).guests
    await agents.leave(GUEST)
    assert not (await supervisor.watch(10)).guests
