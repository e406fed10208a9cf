"""Alerts: who is told of incidents, once when they open and once when they are resolved, whatever happens meanwhile."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import msgspec
import pytest

from tests.keys import FIRST
from tests.rooms.listener import Listener
from tests.rooms.scene import LONG, LOOK_EVERY, Ear
from tests.rooms.test_decisions import Shop
from watchbill import App, InvalidOptionError, ask
from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.events import Event, Events
from watchbill.model.alert import Route, read_routes
from watchbill.model.incident import NewIncident, Told
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor import wardroom
from watchbill.supervisor.herald import TAKEN_FOR, Herald
from watchbill.testing.conformance.scene import HandClock, HandEnv

BODY = msgspec.json.encode(Told("it died", "decide", ("o-1",)))


async def until(fits: Callable[[], object]) -> None:
    async with asyncio.timeout(LONG):
        while not fits():
            await asyncio.sleep(LOOK_EVERY)


class Post:
    """A herald on a store, and who listens to it."""

    def __init__(self, store: Store, clock: HandClock, listener: Listener) -> None:
        self.store = store
        self.clock = clock
        self.listener = listener
        self.told: list[Event] = []
        self.routes = read_routes(listener.url)

    def herald(self, routes: tuple[Route, ...] | None = None) -> Herald:
        env, events = HandEnv(self.clock), Events()
        events.subscribe(self.told.extend)
        chosen = self.routes if routes is None else routes
        return Herald(env, events, store=self.store.supervisor, routes=chosen, polls=False)

    async def open(self, id: int, cause: str = "c") -> None:
        marks = tuple(route.mark for route in self.routes)
        new = NewIncident(id, "default", cause, 3, BODY, "team", marks)
        assert await self.store.supervisor.open_incidents([new]) == [True]

    async def sends(self, herald: Herald, *, after: Micros = 0) -> None:
        """Let it send what is due, and write down what became of it."""
        self.clock.pass_by(after)
        for _ in range(3):
            await herald.turn()
            await until(lambda: not herald._under_way)
        await herald.turn()

    def heard(self) -> list[tuple[str, str]]:
        return [(json.loads(body)["incident"], json.loads(body)["event"]) for _, body in self.listener.heard]


@pytest.fixture
async def post(url: str, listener: Listener) -> AsyncIterator[Post]:
    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    yield Post(store, clock, listener)
    await store.close()


async def test_an_incident_is_told_once_when_it_opens_and_once_when_it_is_resolved(
    post: Post, monkeypatch: Any
) -> None:
    monkeypatch.setenv("WATCHBILL_SECRET", "s3cret")
    herald = post.herald()
    await post.open(31)
    await post.sends(herald)
    await post.sends(herald, after=3_600 * SECOND)
    assert post.heard() == [("1f", "opened")]
    [(headers, body)] = post.listener.heard
    assert json.loads(body) == {
        "incident": "1f", "event": "opened", "namespace": "default", "cause": "c", "group": "team", "members": 3,
        "said": "it died", "remedy": "decide", "examples": ["o-1"], "opened_at": 1_800_000_000_000_000,
        "resolved_at": None,
    }  # fmt: skip
    assert headers["Webhook-Id"] == "1f-opened"
    assert headers["Webhook-Signature"].startswith("v1,")
    await post.store.supervisor.resolve_incidents([31])
    await post.sends(herald)
    await post.sends(herald, after=3_600 * SECOND)
    assert post.heard() == [("1f", "opened"), ("1f", "resolved")]
    await herald.close()


async def test_what_opened_and_healed_before_anybody_could_be_told_is_told_in_order(post: Post) -> None:
    await post.open(1)
    await post.store.supervisor.resolve_incidents([1])
    await post.open(2)
    herald = post.herald()
    await post.sends(herald)
    assert post.heard().index(("1", "opened")) < post.heard().index(("1", "resolved"))
    assert sorted(post.heard()) == [("1", "opened"), ("1", "resolved"), ("2", "opened")]
    await herald.close()


async def test_who_takes_long_keeps_nobody_else_waiting_however_much_there_is_to_tell_it(post: Post) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes what is sent, and never answers
        host, port = silent.getsockname()
        post.routes = read_routes(f"{post.listener.url},http://{host}:{port}/")
        for id in range(1, 9):
            await post.open(id, f"c{id}")
        herald = post.herald()
        for heard in range(1, 9):
            await herald.turn()
            while len(post.heard()) < heard or len(herald._under_way) != 1:
                await asyncio.sleep(LOOK_EVERY)
        await herald.turn()
        assert sorted(post.heard()) == [(str(id), "opened") for id in range(1, 9)]
        assert len(herald._under_way) == 1, "one, however many there are"
    await until(lambda: not herald._under_way)
    await herald.close()


async def test_who_does_not_answer_is_told_later_and_the_end_waits_for_it(post: Post) -> None:
    post.listener.answers = [503, 404]
    herald = post.herald()
    await post.open(1)
    await post.store.supervisor.resolve_incidents([1])
    await post.sends(herald)
    assert post.heard() == []
    [failed] = [event for event in post.told if event.kind == "alert.failed"]
    assert failed.note == (
        "that incident 1 is opened could not be told: http://127.0.0.1/... answered 503; it is tried again"
    )
    await post.sends(herald, after=SECOND)
    await post.sends(herald, after=2 * SECOND)
    assert post.heard() == [("1", "opened"), ("1", "resolved")]
    assert len(post.told) == 1, "that it is tried again and again is told once"
    await herald.close()


async def test_who_refuses_it_is_told_a_few_times_and_is_not_told_of_the_end(post: Post) -> None:
    post.listener.answers = [404] * 50
    herald = post.herald()
    await post.open(1)
    for _ in range(12):
        await post.sends(herald, after=600 * SECOND)
    first, last = [event.note for event in post.told if event.kind == "alert.failed"]
    assert first == (
        "that incident 1 is opened could not be told: http://127.0.0.1/... answered 404; it is tried again, 10 times"
        " in all: check the address and the server that answers there"
    )
    assert last.endswith("answered 404; given up after 10 tries")
    assert len(post.listener.answers) == 40
    post.listener.answers = []
    await post.store.supervisor.resolve_incidents([1])
    await post.sends(herald, after=600 * SECOND)
    assert post.heard() == [], "who did not hear of the beginning does not hear of the end"
    await herald.close()


async def test_a_herald_that_dies_while_it_sends_is_followed_by_another(post: Post) -> None:
    await post.open(1)
    marks = [route.mark for route in post.routes]
    assert len((await post.store.supervisor.take_alerts(marks, 5, TAKEN_FOR)).alerts) == 1  # and it dies
    other = post.herald()
    await post.sends(other)
    assert post.heard() == []
    await post.sends(other, after=TAKEN_FOR)
    assert post.heard() == [("1", "opened")]
    await other.close()


async def test_several_heralds_tell_it_once(post: Post) -> None:
    for id in range(1, 9):
        await post.open(id, f"c{id}")
    heralds = [post.herald() for _ in range(3)]
    for herald in heralds:
        await herald.turn()
    for herald in heralds:
        await post.sends(herald)
    assert len(post.heard()) == len(set(post.heard())) == 8
    for herald in heralds:
        await herald.close()


async def test_a_route_that_is_not_ours_is_left_to_who_has_it(post: Post) -> None:
    await post.open(1)
    other = post.herald(read_routes("http://127.0.0.1:9/other"))
    await post.sends(other)
    assert post.heard() == []
    await other.close()


async def test_nobody_is_sent_elsewhere(post: Post) -> None:
    post.listener.answers = [302]
    herald = post.herald()
    await post.open(1)
    await post.sends(herald)
    assert post.heard() == []
    assert len(post.told) == 1
    await herald.close()


# --- the whole house


async def test_a_program_tells_its_routes(url: str, listener: Listener) -> None:
    quiet = Listener()
    app = App(url, alerts=f"{listener.url}, others={quiet.url}")
    shop = Shop(app)
    try:
        runs = await shop.stuck(shop.order, "o-1", "o-2")
        async with app.rooms():
            incident = await shop.incident()
            await until(lambda: len(listener.heard) == 1)
            await app.resolve(incident.id, "abort", by="ada", reason="enough")
            await until(lambda: len(listener.heard) == 2)
        told = [json.loads(body) for _, body in listener.heard]
        assert [(one["incident"], one["event"]) for one in told] == [
            (incident.id, "opened"),
            (incident.id, "resolved"),
        ]
        assert told[0]["said"].endswith("no line to the bank for o-1")
        assert quiet.heard == []
        assert len(runs) == 2
    finally:
        shop.ear.close()
        quiet.server.shutdown()
        quiet.server.server_close()


async def test_who_is_asked_is_told_reminded_and_told_when_it_goes_to_the_next(url: str, listener: Listener) -> None:
    boss = Listener()
    app = App(url, alerts=f"clerks={listener.url},boss={boss.url}")

    @app.workflow
    async def refund(order: str) -> bool:
        return await ask(f"Refund {order}?", form=bool, to="clerks", within="2s", escalate_to="boss")

    def told(whom: Listener) -> list[tuple[str, str]]:
        return [(json.loads(body)["question"], json.loads(body)["event"]) for _, body in whom.heard]

    try:
        async with app.rooms():
            run = await app.start(refund, "o-1", id="r")
            await until(lambda: len(listener.heard) == 1)
            [(headers, body)] = listener.heard
            [item] = await app.inbox()
            text = json.loads(body)
            assert (text["question"], text["incident"], text["event"]) == (item.id, item.id, "asked")
            assert (text["group"], text["said"]) == ("clerks", "run 'r' asks 'clerks': Refund o-1?")
            assert text["remedy"] == f"answer: watchbill inbox answer {item.id} JSON"
            assert headers["Webhook-Id"] == f"{item.id}-asked"
            assert await app.incidents() == []
            await until(lambda: len(boss.heard) == 1)
            [next_one] = await app.inbox()
            await app.answer(next_one.id, True, by="eve")
            assert await run.result(timeout=LONG) is True
            await until(lambda: len(boss.heard) >= 2 and len(listener.heard) == 3)
        assert told(listener) == [(item.id, "asked"), (item.id, "reminded"), (item.id, "resolved")]
        assert told(boss) == [(next_one.id, "asked"), (next_one.id, "resolved")]
        assert await app.incidents(resolved=True) == []
    finally:
        boss.server.shutdown()
        boss.server.server_close()


async def test_what_was_told_of_a_question_is_over_also_when_nobody_is_told_any_more(
    url: str, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wardroom, "UNTOLD_APART", 0)

    def program(app: App) -> Any:
        @app.workflow
        async def refund(order: str) -> bool:
            return await ask(f"Refund {order}?", form=bool)

        return refund

    before, after = App(url, alerts=listener.url), App(url)
    program(after)
    async with before.rooms():
        await before.start(program(before), "o-1", id="r")
        await until(lambda: len(listener.heard) == 1)
    async with after.rooms():
        doors = after._hall._store.supervisor  # type: ignore[attr-defined]
        [item] = await after.inbox()
        await after.answer(item.id, True)
        assert await after.handle("r").result(timeout=LONG) is True

        async def open_ones() -> int:
            seen = await doors.muster(10, asks=True)
            return len(seen.healed) + len(seen.asking)

        async with asyncio.timeout(LONG):
            while await open_ones():
                await asyncio.sleep(LOOK_EVERY)


async def test_what_is_asked_under_keys_does_not_leave_the_house(url: str, listener: Listener) -> None:
    app = App(url, alerts=listener.url, keys=FIRST)

    @app.workflow
    async def asks() -> bool:
        return await ask("is the code 4711?", form=bool, to="clerks")

    async with app.rooms():
        await app.start(asks, id="r")
        await until(lambda: listener.heard)
    [(_, body)] = listener.heard
    assert b"4711" not in body
    assert json.loads(body)["said"].startswith("(sealed with key")


async def test_what_is_under_keys_does_not_leave_the_house(url: str, listener: Listener) -> None:
    app = App(url, alerts=listener.url, keys=FIRST)
    shop = Shop(app)
    await shop.stuck(shop.order, "o-1")
    async with app.rooms():
        incident = await shop.incident()
        assert incident.said.endswith("no line to the bank for o-1")
        await until(lambda: listener.heard)
    [(_, body)] = listener.heard
    assert b"bank" not in body
    assert json.loads(body)["said"].startswith("(sealed with key")
    assert json.loads(body)["cause"].startswith("escalate of charge ")
    shop.ear.close()


async def test_routes_come_from_the_environment_too(listener: Listener, monkeypatch: Any) -> None:
    monkeypatch.setenv("WATCHBILL_ALERTS", f"team={listener.url}")
    [route] = App("sqlite:///:memory:").routes
    assert (route.group, route.url) == ("team", listener.url)
    [other] = App("sqlite:///:memory:", alerts="https://x.example/y").routes
    assert other.group is None
    monkeypatch.setenv("WATCHBILL_ALERTS", "")
    assert App("sqlite:///:memory:").routes == ()


def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(InvalidOptionError, match="takes addresses"):
        App("sqlite:///:memory:", alerts="tokens and so on")


# --- apprise


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise imports it
async def test_an_alert_really_goes_out_by_apprise_when_it_opens_and_when_it_is_resolved(
    url: str, listener: Listener
) -> None:
    app = App(url, alerts=listener.url.replace("http://", "json://"))
    shop = Shop(app)
    [run] = await shop.stuck(shop.order, "o-1")
    async with app.rooms():
        item = await shop.item()
        await until(lambda: len(listener.heard) == 1)
        await app.resolve(item.id, "provide", "in cash", reason="the bank is closed")
        assert await run.result(LONG) == "in cash"
        await until(lambda: len(listener.heard) == 2)
    opened, resolved = [json.loads(body) for _, body in listener.heard]
    assert opened["title"].startswith("Watchbill: incident opened: escalate of charge")
    assert "no line to the bank" in opened["message"]
    assert f"watchbill incidents retry {item.incident} --reason WHY" in opened["message"]
    assert resolved["title"].startswith("Watchbill: incident resolved: escalate of charge")
    shop.ear.close()


async def test_without_apprise_the_rooms_say_how_to_install_it(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    app = App("sqlite:///:memory:", alerts="slack://secret/token")
    with pytest.raises(InvalidOptionError, match=r"pip install 'watchbill\[alerts\]'") as refused:
        async with app.rooms():
            pass
    assert "secret" not in str(refused.value)
    async with app.rooms(supervisor=False):
        pass  # who tells nobody needs nothing for it


async def test_other_addresses_go_through_apprise(monkeypatch: Any, url: str, listener: Listener) -> None:
    sent: list[tuple[str, str, str]] = []
    works = [True]

    class Apprise:
        def __init__(self) -> None:
            self.url = ""

        def add(self, url: str) -> bool:
            self.url = url
            return not url.startswith("odd")

        def notify(self, *, title: str, body: str) -> bool:
            sent.append((self.url, title, body))
            return works[0]

    module = ModuleType("apprise")
    module.Apprise = Apprise  # type: ignore[attr-defined]
    module.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "apprise", module)
    app = App(url, alerts="slack://secret/token,odd://x")
    ear, shop = Ear(app), Shop(app)
    await shop.stuck(shop.order, "o-1")
    async with app.rooms():
        await until(lambda: sent)
        [failed] = await ear.hears("alert.failed")
    [(address, title, body)] = sent
    assert address == "slack://secret/token"
    assert title.startswith("Watchbill: incident opened: escalate of charge")
    assert "watchbill incidents retry" in body
    assert "odd://...: apprise does not know such an address" in failed.note
    assert "secret" not in failed.note
    ear.close()
    shop.ear.close()
