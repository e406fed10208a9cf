"""The dead-man's switch: somebody outside hears of supervision as long as it is on time, and then no more."""

import asyncio
import threading
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.rooms.scene import LONG
from watchbill import App, InvalidOptionError
from watchbill.events import Event, Events
from watchbill.supervisor.ping import FIRST_LOOK, PING_EVERY, Ping
from watchbill.supervisor.pulse import Pulse
from watchbill.testing.conformance.scene import HandClock, HandEnv


class Monitor:
    """Somebody outside, who hears pings; it may refuse them."""

    def __init__(self) -> None:
        self.pings = 0
        self.status = 200
        self._loop = asyncio.get_running_loop()
        self._more = asyncio.Event()
        monitor = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(monitor.status)
                self.end_headers()
                monitor._loop.call_soon_threadsafe(monitor._hear)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/secret-token"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def _hear(self) -> None:
        self.pings += 1
        self._more.set()

    async def hears(self, times: int) -> None:
        """Wait until it has heard so many."""
        async with asyncio.timeout(LONG):
            while self.pings < times:
                self._more.clear()
                await self._more.wait()


class Switch:
    """A ping, on a clock that is moved by hand, and the pulse that it counts."""

    def __init__(self, url: str) -> None:
        self.clock = HandClock()
        env, events = HandEnv(self.clock), Events()
        self.told: list[Event] = []
        self._more = asyncio.Event()
        events.subscribe(self._hear)
        self.pulse = Pulse()
        self.room = Ping(env, events, url=url, pulse=self.pulse)

    def _hear(self, events: object) -> None:
        self.told.extend(events)  # type: ignore[arg-type]
        self._more.set()

    async def tells(self) -> Event:
        """Wait for an event."""
        async with asyncio.timeout(LONG):
            while not self.told:
                self._more.clear()
                await self._more.wait()
        return self.told[-1]

    async def answered(self) -> None:
        """Wait until nothing is under way any more."""
        async with asyncio.timeout(LONG):
            while self.room._under_way:
                await asyncio.sleep(0)

    def looks(self) -> None:
        """Let the supervisor look, and want to again after an interval."""
        self.pulse.begin(self.clock.boot())
        self.pulse.end(self.clock.boot(), PING_EVERY)


@pytest.fixture
async def monitor() -> AsyncIterator[Monitor]:
    monitor = Monitor()
    yield monitor
    await asyncio.to_thread(monitor.server.shutdown)
    monitor.server.server_close()


async def test_a_supervisor_on_time_is_heard_of_and_a_late_one_is_not(monitor: Monitor) -> None:
    switch = Switch(monitor.url)
    assert await switch.room.turn() == FIRST_LOOK
    assert not switch.room._under_way, "it has not looked yet"
    for times in (1, 2):
        switch.looks()
        assert await switch.room.turn() == PING_EVERY
        await monitor.hears(times)
        await switch.answered()
        switch.clock.pass_by(PING_EVERY)
    switch.clock.pass_by(2 * PING_EVERY)  # it wanted to look just now, and then two intervals ago
    await switch.room.turn()
    await monitor.hears(3)
    await switch.answered()
    switch.clock.pass_by(1)
    await switch.room.turn()
    await switch.room.turn()
    assert not switch.room._under_way
    assert [(event.kind, event.note) for event in switch.told] == [
        ("ping.withheld", "supervision is 20.0 s late: no ping is sent until it is on time again")
    ]
    switch.looks()
    await switch.room.turn()
    await monitor.hears(4)
    await switch.room.close()


async def test_that_nobody_hears_it_is_told_once_and_without_the_secret_in_the_address(monitor: Monitor) -> None:
    switch = Switch(monitor.url)
    monitor.status = 503
    for times in (1, 2, 3):
        switch.looks()
        await switch.room.turn()
        await monitor.hears(times)
        await switch.answered()
    assert [event.note for event in switch.told] == [
        "127.0.0.1 is not reached: it answered 503; it is tried again, and not told again"
    ]
    monitor.status = 200
    switch.looks()
    await switch.room.turn()
    await monitor.hears(4)
    await switch.answered()
    monitor.status = 500
    switch.looks()
    await switch.room.turn()
    await monitor.hears(5)
    await switch.answered()
    assert [event.kind for event in switch.told] == ["ping.failed"] * 2, "it had been reached in between"
    await switch.room.close()


async def test_one_who_does_not_answer_delays_nobody(monitor: Monitor) -> None:
    monitor.server.shutdown()
    monitor.server.server_close()
    switch = Switch(monitor.url)
    switch.looks()
    assert await switch.room.turn() == PING_EVERY
    assert (await switch.tells()).note.startswith("127.0.0.1 is not reached: URLError")
    monitor.server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=monitor.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    await switch.room.close()


async def test_an_app_with_a_ping_is_heard_of_although_nothing_is_due(url: str, monitor: Monitor) -> None:
    app = App(url, ping=monitor.url)
    async with app.rooms():
        await monitor.hears(1)


def test_where_pings_go_is_checked_and_never_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOptionError, match="ping takes an address, as https://host/path; one of 12 characters"):
        App("sqlite:///:memory:", ping="secret-token")
    monkeypatch.setenv("WATCHBILL_PING", "https://hc.example/abc")
    assert App("sqlite:///:memory:").ping == "https://hc.example/abc"
    monkeypatch.delenv("WATCHBILL_PING")
    assert App("sqlite:///:memory:").ping is None
