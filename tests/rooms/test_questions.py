"""Questions with a deadline: who is asked when, who holds them, what becomes of those that nobody answers."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, ends
from tests.rooms.test_people import asked
from watchbill import (
    App,
    ClaimedByOther,
    Event,
    InboxItem,
    InvalidOptionError,
    QuestionNotFound,
    RunFailed,
    ask,
    sleep,
)
from watchbill.store.open import open_store
from watchbill.store.protocol import Told
from watchbill.testing.virtual import Life
from watchbill.testing.watch import Watch

virtual = App("sqlite:///:memory:")


@virtual.workflow
async def approves(within: str, escalate_to: str | None = None) -> str:
    try:
        return str(await ask("ship it?", form=str, to="team", within=within, escalate_to=escalate_to))
    except TimeoutError as late:
        return f"late: {late}"


@virtual.workflow
async def asks_later(wait: str, within: str = "1h") -> str:
    await sleep(wait)
    try:
        answer = await ask("now?", form=str, to="team", within=within, escalate_to="boss")
    except TimeoutError:
        answer = "nobody"
    await sleep(within)
    return str(answer)


@virtual.step
async def takes_ten_seconds(order: str) -> str:
    await asyncio.sleep(10)
    return order


@virtual.workflow
async def asks_then(order: str) -> str:
    await takes_ten_seconds(order)
    try:
        return str(await ask("may I?", form=str, to="team", within="1h"))
    except TimeoutError:
        return "nobody"


class Room:
    """The world of a test, with what the App's own client says about it."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.told: list[Event] = []

    def inbox(self) -> list[InboxItem]:
        found: list[InboxItem] = self.do(virtual.inbox)
        return found

    def do(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        [trial] = self.watch._trials.values()
        found: Any = trial.do("the question", ask)
        self.watch._settle()
        return found

    def heard(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.told)


@pytest.fixture
def room(watch: Watch) -> Iterator[Room]:
    room = Room(watch)
    unsubscribe = virtual.events.subscribe(room.told.extend)
    yield room
    unsubscribe()


# --- the deadline, in virtual time


def test_whoever_is_asked_is_reminded_half_way_and_the_question_expires(room: Room) -> None:
    run = room.watch.start(approves, "2d", id="r")
    room.watch.jump("1s")
    [item] = room.inbox()
    assert (item.to, item.escalate_to) == ("team", None)
    assert item.due_at == item.asked_at + timedelta(days=2)
    room.watch.jump("23h")
    assert room.heard("question.reminded") == 0
    room.watch.jump("1h")
    assert room.heard("question.reminded") == 1
    room.watch.jump("23h")
    assert len(room.inbox()) == 1
    room.watch.jump("1h")
    assert run.result() == "late: nobody of 'team' answered in time: ship it?"
    assert room.inbox() == []
    assert room.heard("question.reminded") == 1
    kinds = [event.kind for event in run.timeline()]
    assert [kind for kind in kinds if kind in ("asked", "remind", "withdrawn", "answered")] == [
        "asked",
        "remind",
        "withdrawn",
    ]


def test_a_question_that_nobody_answers_goes_to_the_next_group_for_as_long_again(room: Room) -> None:
    run = room.watch.start(approves, "1h", "boss", id="r")
    room.watch.jump("1s")
    [first] = room.inbox()
    assert (first.to, first.escalate_to) == ("team", "boss")
    room.watch.jump("1h")
    [second] = room.inbox()
    assert (second.to, second.escalate_to, second.id != first.id) == ("boss", None, True)
    assert second.due_at == second.asked_at + timedelta(hours=1)
    room.watch.jump("59m")
    room.do(lambda: virtual.answer(second.id, "yes", by="eve"))
    assert run.result() == "yes"
    notes = [(event.kind, event.note, event.actor) for event in run.timeline() if event.kind in ("asked", "answered")]
    assert notes == [
        ("asked", "team: ship it?", "workflow"),
        ("asked", "boss: ship it?", "workflow"),
        ("answered", "by eve", "eve"),
    ]
    assert room.heard("question.reminded") == 2


def test_when_the_next_group_does_not_answer_either_it_expires(room: Room) -> None:
    assert room.watch.run(approves, "1h", "boss") == "late: nobody of 'boss' answered in time: ship it?"


def test_a_question_that_is_answered_in_time_reminds_nobody_and_expires_never(room: Room) -> None:
    run = room.watch.start(asks_later, "1m", id="r")
    room.watch.jump("2m")
    [item] = room.inbox()
    room.do(lambda: virtual.answer(item.id, "yes", by="ada"))
    room.watch.jump("5h")
    assert run.result() == "yes"
    assert room.heard("question.reminded") == 0


def test_the_time_of_a_question_that_a_pause_puts_off_has_begun(room: Room) -> None:
    run = room.watch.start(asks_then, "a", id="r")
    room.watch.jump("2s")
    run.pause("wait")
    room.watch.jump("40m")
    run.resume()
    room.watch.jump("1s")
    [item] = room.inbox()
    assert item.due_at is not None
    until = f"{item.due_at:%Y-%m-%d %H:%M:%S}Z"
    assert f"wakes at {until}" in str(run.explain())
    assert f"There is time until {until}" in str(run.explain())
    room.watch.jump("21m")
    assert run.result() == "nobody"
    assert [event.kind for event in run.timeline()].count("remind") == 1


def test_crashes_anywhere_change_nothing_about_it(watch: Watch) -> None:
    results = []

    def check(result: str, _: Any) -> None:
        results.append(result)
        assert result == "nobody"

    # While an agent is missing somebody looks every few seconds: hours of that, after each crash, are many looks.
    watch.crash_everywhere(asks_later, ("10s", "3m"), check)
    assert len(results) > 5


def test_who_answers_too_late_and_was_told_that_it_is_heard_is_in_the_timeline(room: Room) -> None:
    """While the time ran out no process was there: then somebody answered, and only then it was seen to."""
    run = room.watch.start(approves, "1h", id="r")
    room.watch.jump("1m")
    [item] = room.inbox()
    [trial] = room.watch._trials.values()
    dead = trial._processes[-1]
    dead.leave()
    for _ in range(2):  # a death ends the first one early
        room.watch.jump("2h")

    async def answer() -> None:
        store = await open_store("sqlite:///:memory:", dead.hall._store_env, memory=trial._memory)
        assert await store.client.answer("default", int(item.id, 16), "ada", b'"yes"') is Told.TOLD

    trial._loop.play(Life("somebody", trial._loop), answer())
    trial.start_process()
    room.watch.jump("1s")
    assert run.result().startswith("late")
    assert any("an answer by ada came too late" in event.note for event in run.timeline())


# --- claims, on every store


def an_asker(app: App) -> Any:
    @app.workflow
    async def asks(question: str) -> bool:
        return bool(await ask(question, form=bool, to="team"))

    return asks


async def test_what_one_holds_no_other_answers(app: App) -> None:
    asks = an_asker(app)
    async with app.rooms():
        run = await app.start(asks, "ship it?", id="r")
        item = await asked(app)
        until = await app.claim(item.id, by="ada")
        [held] = await app.inbox()
        assert (held.claimed_by, held.claimed_until) == ("ada", until)
        with pytest.raises(ClaimedByOther, match="ada holds") as refused:
            await app.claim(item.id, by="bob")
        assert refused.value.by == "ada"
        assert str(refused.value).endswith(
            "or do without a claim: `inbox answer` and the decisions of `incidents` have --force (force=True)"
        )
        with pytest.raises(ClaimedByOther, match=r"ada holds.*, or use force \(--force\)$"):
            await app.answer(item.id, True, by="bob")
        assert await app.claim(item.id, by="ada") >= until
        await app.answer(item.id, True, by="ada")
        assert await ends(run) is True
        told = [(event.kind, event.actor) for event in await run.timeline()]
        assert [one for one in told if one[0] in ("asked", "claim", "answered")] == [
            ("asked", "workflow"),
            ("claim", "ada"),
            ("answered", "ada"),
        ]


async def test_whoever_insists_answers_all_the_same(app: App) -> None:
    asks = an_asker(app)
    async with app.rooms():
        run = await app.start(asks, "ship it?")
        item = await asked(app)
        await app.claim(item.id, by="ada")
        await app.answer(item.id, False, by="bob", force=True)
        assert await ends(run) is False


@pytest.mark.parametrize("id", ["", "xyz", "1f4", "f" * 17])
async def test_what_is_not_there_is_not_held(app: App, id: str) -> None:
    with pytest.raises(QuestionNotFound, match="inbox list"):
        await app.claim(id, by="ada")


async def test_who_holds_something_has_a_name(app: App) -> None:
    with pytest.raises(InvalidOptionError, match="by is a name"):
        await app.claim("1f", by="")


async def test_odd_deadlines_are_refused(app: App) -> None:
    @app.workflow
    async def odd(case: int) -> None:
        match case:
            case 0:
                await ask("?", within="soon")
            case 1:
                await ask("?", escalate_to="boss")

    async with app.rooms():
        for case, said in enumerate(("within of ask", "give within, too")):
            with pytest.raises(RunFailed, match=said):
                await ends(await app.start(odd, case))


@pytest.mark.parametrize(
    "given",
    [{"to": None}, {"to": 5}, {"to": ["a"]}, {"to": "a\0b"}, {"escalate_to": 5, "within": "1h"}, {"question": 5}],
    ids=str,
)
async def test_odd_groups_are_refused_where_they_are_given_and_stop_nobody_else(
    app: App, given: dict[str, Any]
) -> None:
    @app.workflow
    async def odd() -> Any:
        return await ask(**{"question": "how many?", "form": int, **given})

    @app.workflow
    async def other() -> str:
        return "there"

    async with app.rooms():
        run = await app.start(odd)
        assert await ends(await app.start(other)) == "there"
        with pytest.raises(RunFailed, match=r"ask\(\)"):
            await ends(run)
        assert await app.inbox() == []


async def test_each_answer_that_is_refused_is_told(app: App) -> None:
    @app.workflow
    async def counts() -> str:
        return str(await ask("how many?", form=Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]))

    async with app.rooms():
        run = await app.start(counts)
        item = await asked(app)
        said: list[str] = []
        for wrong in ("one", "two"):
            await app.answer(item.id, wrong, by="ada")
            said.append(await refused(app, but=said))
        await app.answer(item.id, "3", by="ada")
        assert await ends(run) == "3"
    assert '"one"' in said[0]
    assert '"two"' in said[1]


async def refused(app: App, but: list[str]) -> str:
    """Wait until an answer is refused for another reason than those."""
    async with asyncio.timeout(LONG):
        while (why := (await app.inbox())[0].refused) is None or why in but:
            await asyncio.sleep(LOOK_EVERY)
    return why


async def test_a_deadline_in_real_time_goes_to_the_next_group(app: App) -> None:
    @app.workflow
    async def hurries() -> str:
        try:
            return str(await ask("quick?", form=str, to="team", within="200ms", escalate_to="boss"))
        except TimeoutError:
            return "nobody"

    async with app.rooms():
        run = await app.start(hurries, id="r")
        assert await ends(run) == "nobody"
        asked_of = [event.note for event in await run.timeline() if event.kind == "asked"]
        assert asked_of == ["team: quick?", "boss: quick?"]
        assert await app.inbox() == []
