"""Escalations and doubts with a deadline: who is asked when, and what becomes of those that nobody decides."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.rooms.listener import Listener
from tests.rooms.scene import LONG, Ear
from watchbill import (
    Ambiguous,
    App,
    Escalate,
    Event,
    InboxItem,
    InvalidOptionError,
    NotDone,
    Permanent,
    RunCancelled,
    RunUndone,
    StepFailed,
    Switch,
    Unknown,
    attempt,
    sleep,
)
from watchbill.testing.watch import Watch

virtual = App("sqlite:///:memory:")
tries: list[tuple[str, str]] = []
refunds: list[str | None] = []


def ladder(hour: int) -> list[Escalate | Switch]:
    """Give people their hours; `hour`: how many minutes that is."""
    return [
        Escalate("clerks", within=60 * hour),
        Escalate("boss", within=4 * 60 * hour),
        Switch(codec="safe"),
        Escalate("boss", within=60 * hour),
    ]


@virtual.step(retry=0, then=ladder(60))
async def encode(path: str, codec: str = "fast") -> str:
    tries.append((path, codec))
    if path != "good" or codec == "fast":
        raise ConnectionError("no line")
    return f"{path} {codec}"


hurried = virtual.step(name="hurried", retry=0, then=ladder(2))(encode.plain)


@virtual.workflow
async def release(path: str, *, soon: bool = False) -> str:
    try:
        return await (hurried if soon else encode)(path)
    except StepFailed as failed:
        return f"{failed.type}: {failed.message}"


@virtual.workflow
async def in_haste(path: str) -> str:
    return await release.plain(path, soon=True)


def ask_bank(order: str) -> Unknown:
    return Unknown("the books are closed")


@virtual.step(
    idempotent=False, retry=0, probe=ask_bank, then=[Escalate("clerks", within="1h"), Escalate("boss", within="1h")]
)
async def capture(order: str) -> str:
    tries.append((order, "capture"))
    raise Ambiguous("no answer")


@capture.undo
async def refund(receipt: str | None, order: str) -> None:
    refunds.append(receipt)


@virtual.workflow
async def pay(order: str) -> str:
    return await capture(order)


@virtual.step(idempotent=False, then=[Escalate("clerks", within="1s")], undo=refund)
async def hand_over(order: str) -> str:
    tries.append((order, "hand over"))
    raise ConnectionError("the line broke, before it or after")


@virtual.workflow
async def blindly(order: str) -> str:
    return await hand_over(order)


@virtual.step(retry=0)
async def fails(order: str) -> str:
    raise Permanent("no")


def broken_probe(order: str) -> Unknown:
    raise RuntimeError("the bank does not answer")


@virtual.step(undo=refund, probe=broken_probe, then=[Escalate("clerks")])
async def draw(order: str) -> str:
    tries.append((order, "draw"))
    raise Ambiguous("no answer")


@virtual.step(idempotent=False, undo=refund, then=[Escalate("clerks")])
async def send(order: str) -> str:
    tries.append((order, "send"))
    raise ConnectionError("the line broke, before it or after")


@virtual.workflow
async def beside(what: str, after: int) -> Any:
    async def late() -> None:
        await sleep(after)
        await fails("x")

    return await asyncio.gather(draw("o-1") if what == "draw" else send("o-1"), late())


async def nobody_saw(order: str) -> NotDone:
    tries.append((order, "probe"))
    return NotDone()


@virtual.step(idempotent=False, timeout="5s", probe=nobody_saw)
async def holds_on(order: str) -> str:
    tries.append((order, "hold on"))
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        await asyncio.sleep(8)  # it has been told, and still acts
        raise
    return "x"


@virtual.workflow
async def holding(order: str) -> str:
    return await holds_on(order)


class Room:
    """The world of a test, with what the App's own client says about it."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.told: list[Event] = []

    def item(self) -> InboxItem:
        [item] = self.do(virtual.inbox)
        assert isinstance(item, InboxItem)
        return item

    def do(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        [trial] = self.watch._trials.values()
        found: Any = trial.do("the item", ask)
        self.watch._settle()
        return found

    def heard(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.told)


@pytest.fixture
def room(watch: Watch) -> Iterator[Room]:
    tries.clear()
    refunds.clear()
    room = Room(watch)
    unsubscribe = virtual.events.subscribe(room.told.extend)
    yield room
    unsubscribe()


# --- in virtual time


def test_people_are_reminded_half_way_then_others_are_asked_then_it_is_tried_another_way(room: Room) -> None:
    run = room.watch.start(release, "good", id="r")
    room.watch.jump("1s")
    first = room.item()
    assert (first.to, first.kind, first.escalate_to) == ("clerks", "escalate", "boss")
    assert first.due_at is not None
    room.watch.jump("29m")
    assert room.heard("question.reminded") == 0
    room.watch.jump("2m")
    assert room.heard("question.reminded") == 1
    room.watch.jump("28m")
    assert room.item().to == "clerks"
    said = str(run.explain())
    assert "There is time until" in said
    assert "then somebody of 'boss' decides" in said
    room.watch.jump("2m")
    second = room.item()
    assert (second.to, second.id, second.escalate_to) == ("boss", first.id, None)
    assert second.due_at is not None
    assert abs(second.due_at - first.due_at - timedelta(hours=4)) < timedelta(minutes=1)
    assert "then it is tried another way (codec='safe')" in str(run.explain())
    assert tries == [("good", "fast")]
    room.watch.jump("4h")
    assert run.result() == "good safe"
    assert room.heard("question.reminded") == 2
    notes = [event.note for event in run.timeline()]
    assert any("'clerks' had 3600 s to decide, and nobody has" in note for note in notes)


def test_when_nobody_is_left_the_call_fails_as_it_had(room: Room) -> None:
    run = room.watch.start(release, "bad", id="r")
    room.watch.jump("5h")
    room.watch.jump("1m")
    assert (room.item().to, room.item().escalate_to) == ("boss", None)
    assert "then the call fails" in str(run.explain())
    room.watch.jump("1h")
    assert run.result() == "ConnectionError: no line"
    assert tries == [("bad", "fast"), ("bad", "safe")]


def test_a_doubt_goes_to_the_next_people_and_is_never_tried_blindly_but_undone(room: Room) -> None:
    run = room.watch.start(pay, "o-1", id="r")
    room.watch.jump("1m")
    assert (room.item().to, room.item().kind, room.item().escalate_to) == ("clerks", "doubt", "boss")
    room.watch.jump("1h")
    assert (room.item().to, room.item().kind, room.item().escalate_to) == ("boss", "doubt", None)
    room.watch.jump("1h")
    with pytest.raises(RunUndone, match="no answer"):
        run.result()
    assert tries == [("o-1", "capture")]
    assert refunds == [None], "nobody knows whether it took effect: so it is undone"


def test_what_raised_in_doubt_is_undone_when_nobody_decides(room: Room) -> None:
    run = room.watch.start(blindly, "o-1", id="r")
    room.watch.jump("1m")
    with pytest.raises(RunUndone, match="the line broke"):
        run.result()
    assert (tries, refunds) == ([("o-1", "hand over")], [None])


@pytest.mark.parametrize(("what", "after"), [("send", 60), ("draw", 3), ("draw", 60)])
def test_what_is_in_doubt_is_undone_when_something_else_in_its_run_fails(room: Room, what: str, after: int) -> None:
    run = room.watch.start(beside, what, after, id="r")
    room.watch.jump("3m")
    with pytest.raises(RunUndone):
        run.result()
    assert (tries, refunds) == ([("o-1", what)], [None])


def test_a_retry_of_the_run_does_not_try_blindly_what_may_still_act(room: Room) -> None:
    run = room.watch.start(holding, "o-1", id="r")
    room.watch.jump("7s")
    assert tries == [("o-1", "hold on")]
    run.retry()
    room.watch.jump("2s")
    assert tries == [("o-1", "hold on")]
    room.watch.jump("50s")
    assert tries[1] == ("o-1", "probe")


def test_who_decides_in_time_is_heard_and_a_decision_that_does_not_fit_gives_time_anew(room: Room) -> None:
    run = room.watch.start(pay, "o-1", id="r")
    room.watch.jump("59m")
    item = room.item()
    room.do(lambda: virtual.resolve(item.id, "provide", 7, by="ada", reason="it is on the statement"))
    room.watch.jump("58m")
    again = room.item()
    assert again.to == "clerks"
    assert "does not fit" in (again.refused or "")
    room.do(lambda: virtual.resolve(item.id, "provide", "r-7", by="ada", reason="it is on the statement"))
    room.watch.jump("5h")
    assert run.result() == "r-7"
    assert tries == [("o-1", "capture")]


def test_crashes_anywhere_change_nothing_about_it(watch: Watch) -> None:
    results = []

    def check(result: str, _: Any) -> None:
        results.append(result)

    # While an agent is missing somebody looks every few seconds: hours of that, after each crash, are many looks.
    watch.crash_everywhere(in_haste, ("bad",), check)
    assert set(results) == {"ConnectionError: no line"}
    assert len(results) > 5


# --- in real time, on every store


async def test_a_deadline_in_real_time_asks_others_and_tells_them(url: str, listener: Listener) -> None:
    app = App(url, alerts=[f"clerks={listener.url}", f"boss={listener.url}"])
    ear = Ear(app)

    @app.step(retry=0, then=[Escalate("clerks", within="1s"), Escalate("boss", within="1h")])
    async def charge(cents: int) -> str:
        if attempt().number == 1:
            raise ConnectionError("no line")
        return "paid"

    @app.workflow
    async def order(cents: int) -> str:
        return await charge(cents)

    async with app.rooms():
        run = await app.start(order, 5, id="o-1")
        async with asyncio.timeout(LONG):
            while not (items := [item for item in await app.inbox() if item.to == "boss" and item.incident]):
                await asyncio.sleep(0.01)
            while len(listener.heard) < 4:
                await asyncio.sleep(0.01)
        bodies = [json.loads(body) for _, body in listener.heard]
        heard = [(body["group"], body["event"]) for body in bodies]
        assert heard[0] == ("clerks", "opened")
        assert sorted(heard) == [
            ("boss", "opened"), ("clerks", "opened"), ("clerks", "reminded"), ("clerks", "resolved"),
        ]  # fmt: skip
        await app.resolve(items[0].id, "retry", by="eve", reason="the line is back")
        assert await run.result(timeout=LONG) == "paid"
        assert (await app.metrics()).undecided == 1
    ear.close()


@pytest.mark.parametrize("within", ["soon", 0, -1, True])
def test_odd_deadlines_are_refused(within: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"Escalate\(within\)"):
        Escalate("team", within=within)
    assert repr(Escalate("team", within="1m30s")) == "Escalate('team', within=90)"


@pytest.mark.parametrize("action", ["undo", "abort"])
async def test_what_raised_and_may_have_taken_effect_is_undone_when_a_person_stops_the_run(
    app: App, ear: Ear, action: str
) -> None:
    undone: list[tuple[str | None, int]] = []

    @app.step(idempotent=False)
    async def charge(cents: int) -> str:
        raise ConnectionError("the line broke, before it or after")

    @charge.undo
    async def take_back(receipt: str | None, cents: int) -> None:
        undone.append((receipt, cents))

    @app.workflow
    async def order(cents: int) -> str:
        return await charge(cents)

    async with app.rooms():
        run = await app.start(order, 5)
        await ear.hears("step.escalated", run.id)
        [item] = await app.inbox()
        await app.resolve(item.id, action, by="ada", reason="not any more")
        with pytest.raises((RunUndone, RunCancelled)):
            await run.result(timeout=LONG)
    assert undone == [(None, 5)]
