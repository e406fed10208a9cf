"""What people see of runs, and do with them: questions answered, runs found, explained, kept and forgotten."""

import asyncio
from collections.abc import Callable
from datetime import UTC
from typing import Annotated, Any

import msgspec
import pytest

from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import (
    AlreadyAnswered,
    App,
    Handle,
    InboxItem,
    InvalidOptionError,
    InvalidValueError,
    QuestionNotFound,
    Retry,
    RunCancelled,
    RunNotFound,
    ask,
    receive,
)
from watchbill.events import STEP_RETRIED


def an_asker(app: App) -> Any:
    @app.workflow
    async def asks(question: str) -> bool:
        return bool(await ask(question, form=bool, to="team"))

    return asks


def an_asker_for_a_word(app: App) -> Any:
    """Ask for what only the run can check: a form says which type an answer has, and no more."""

    @app.workflow
    async def asks_for_a_word(question: str) -> str:
        word: str = await ask(question, form=Annotated[str, msgspec.Meta(pattern="^(yes|no)$")], to="team")
        return word

    return asks_for_a_word


def a_child_maker(app: App) -> Any:
    @app.workflow
    async def child() -> int:
        return 1

    @app.workflow
    async def parent() -> int:
        return await child()

    return parent


async def asked(app: App, fits: Callable[[InboxItem], object] = lambda item: True) -> InboxItem:
    """Look into the inbox until there is such an item."""
    async with asyncio.timeout(LONG):
        while True:
            for item in await app.inbox():
                if fits(item):
                    return item
            await asyncio.sleep(0)


async def ids(app: App, **search: Any) -> list[str]:
    return [handle.id async for handle in app.runs(**search)]


# --- questions


async def test_a_question_is_in_the_inbox_until_somebody_answers_it(app: App) -> None:
    asks = an_asker(app)
    async with app.rooms():
        run = await app.start(asks, "ship it?", id="r")
        item = await asked(app)
        assert (item.run, item.question, item.to, item.form) == ("r", "ship it?", "team", {"type": "boolean"})
        assert (item.asked_at.tzinfo, item.due_at, item.claimed_until) == (UTC, None, None)
        await app.answer(item.id, True, by="ada")
        assert await ends(run) is True
        assert await app.inbox() == []
        with pytest.raises(QuestionNotFound, match="answered or withdrawn"):
            await app.answer(item.id, True, by="ada")


async def test_an_answer_that_does_not_fit_its_form_is_refused_and_changes_nothing(app: App) -> None:
    asks = an_asker(app)
    async with app.rooms():
        run = await app.start(asks, "ship it?")
        item = await asked(app)
        with pytest.raises(
            InvalidValueError,
            match=f"the answer to question '{item.id}' does not fit its form: it must be true or false, got 'perhaps'",
        ):
            await app.answer(item.id, "perhaps", by="ada")
        assert await app.inbox() == [item]
        await app.answer(item.id, False, by="bob")
        assert await ends(run) is False


async def test_an_answer_that_the_run_refuses_is_told_and_the_question_stays(app: App) -> None:
    asks = an_asker_for_a_word(app)
    async with app.rooms():
        run = await app.start(asks, "ship it?")
        item = await asked(app)
        await app.answer(item.id, "perhaps", by="ada")
        refused = await asked(app, lambda item: item.refused)
        assert refused.id == item.id
        assert "by ada was refused" in str(refused.refused)
        assert str(refused.refused).endswith('; it was "perhaps"')
        await app.answer(item.id, "no", by="bob")
        assert await ends(run) == "no"


async def test_of_a_long_answer_that_does_not_fit_the_beginning_is_shown_as_it_was_written(app: App) -> None:
    asks = an_asker_for_a_word(app)
    async with app.rooms():
        run = await app.start(asks, "ship it?")
        item = await asked(app)
        await app.answer(item.id, "ä" * 300, by="ada")
        refused = await asked(app, lambda item: item.refused)
        assert str(refused.refused).endswith('; it was "' + "ä" * 196 + "...")
        await app.answer(item.id, "no", by="bob")
        assert await ends(run) == "no"


async def test_the_first_answer_counts(app: App) -> None:
    asks = an_asker(app)
    async with app.rooms():
        run = await app.start(asks, "ship it?")
        item = await asked(app)
    # Nobody takes it in now.
    await app.answer(item.id, True, by="ada")
    [same] = await app.inbox()
    assert same.answered_by == "ada"
    with pytest.raises(AlreadyAnswered, match="the first answer counts"):
        await app.answer(item.id, False, by="bob")
    async with app.rooms():
        assert await ends(run) is True


@pytest.mark.parametrize(
    "id", ["", "xyz", "-1", "0x1", "f" * 17, "f" * 16, "8" + "0" * 15, "7" + "f" * 15, "1f4", "1\n"]
)
async def test_no_such_question(app: App, id: str) -> None:
    with pytest.raises(QuestionNotFound, match="inbox list"):
        await app.answer(id, 1)


@pytest.mark.parametrize("by", ["", "\x1b[2J", 5])
async def test_who_answers_has_a_name(app: App, by: Any) -> None:
    with pytest.raises(InvalidOptionError, match="by is a name"):
        await app.answer("1f", 1, by=by)


# --- finding runs


async def test_runs_are_found_newest_first_by_what_they_are(app: App) -> None:
    @app.workflow
    async def good() -> None: ...

    @app.workflow
    async def bad() -> None:
        raise ValueError("no")

    @app.workflow
    async def waits() -> None:
        await receive("go", int)

    async with app.rooms():
        runs = [
            await app.start(good, id="g", tags=["eu", "gold"]),
            await app.start(bad, id="b", tags=["eu"]),
            await app.start(waits, id="w"),
        ]
        await becomes(runs[0], lambda status: status.state == "completed")
        await becomes(runs[1], lambda status: status.state == "failed")
        await becomes(runs[2], lambda status: status.state == "waiting")
        assert await ids(app) == ["w", "b", "g"]
        assert await ids(app, status="failed") == ["b"]
        assert await ids(app, status="waiting") == ["w"]
        assert await ids(app, status="running") == []
        assert await ids(app, workflow="good") == ["g"]
        assert await ids(app, tags=["eu"]) == ["b", "g"]
        assert await ids(app, tags=["eu", "gold"], health="ok") == ["g"]
        assert await ids(app, health="retrying") == []
        [found] = [handle async for handle in app.runs(workflow="good")]
        assert found.workflow is good
        await runs[2].cancel()


async def test_many_runs_are_found_page_by_page(app: App) -> None:
    @app.workflow
    async def one() -> None: ...

    started = await app.start_many([(one, (), {"id": f"r-{n}"}) for n in range(250)])
    found = await ids(app)
    assert (len(found), set(found)) == (250, {handle.id for handle in started})
    assert (await ids(app, status="scheduled")) == found


def test_synchronous_programs_find_them_too(app: App) -> None:
    @app.workflow
    async def one() -> None: ...

    app.sync.start(one, id="r")
    [found] = app.sync.runs(workflow="one")
    assert (found.id, found.status().state) == ("r", "scheduled")
    assert app.sync.inbox() == []
    app.sync.close()


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"status": "compleated"}, "did you mean 'completed'"),
        ({"health": "sick"}, "health must be one of"),
        ({"tags": "eu"}, "tags are a list"),
    ],
)
async def test_a_search_for_what_cannot_be_is_refused(app: App, search: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        await ids(app, **search)


# --- explained


async def test_a_run_explains_itself_and_tells_its_story(app: App, ear: Ear) -> None:
    @app.step(retry=Retry(1, backoff="1h"))
    async def fails() -> None:
        raise ValueError("not yet")

    @app.workflow
    async def tries() -> None:
        await fails()

    async with app.rooms():
        run = await app.start(tries, id="r")
        await ear.hears(STEP_RETRIED)
        explained = await run.explain()
        assert "Call 'fails' failed once with ValueError: not yet. Attempt 2" in str(explained)
        assert [event.kind for event in await run.timeline()] == [
            "run_created",
            "run_started",
            "step_started",
            "step_failed",
            "retry_later",
        ]
        run.by = "ada"
        await run.pause("stock-taking")
        await becomes(run, lambda status: status.paused)
        assert "paused by ada" in str(await run.explain())
        await run.resume()
        await becomes(run, lambda status: not status.paused)
        await run.retry()
        await ear.hears(STEP_RETRIED, times=2)
        asked_for = [(event.kind, event.note) for event in await run.timeline() if event.note.startswith("by ada")]
        assert asked_for == [("pause", "by ada: stock-taking"), ("resume", "by ada"), ("retry", "by ada")]
        await run.cancel("enough")
    with pytest.raises(RunNotFound):
        await app.handle("nobody").explain()
    with pytest.raises(RunNotFound):
        await app.handle("nobody").timeline()


# --- forgotten


async def gone(handle: Handle[Any]) -> None:
    async with asyncio.timeout(LONG):
        while True:
            try:
                await handle.status()
            except RunNotFound:
                return
            await asyncio.sleep(0)


async def test_what_ended_long_ago_is_forgotten_with_its_children(url: str) -> None:
    app = App(url, retention="50ms")
    parent = a_child_maker(app)

    @app.workflow(retention="1h")
    async def dear() -> None: ...

    @app.workflow
    async def lives() -> None:
        await receive("go", int)

    async with app.rooms():
        kept, live = await app.start(dear, id="dear"), await app.start(lives, id="lives")
        run = await app.start(parent, id="p")
        await ends(kept)
        assert await ends(run) == 1
        await gone(run)
        await gone(app.handle("p/child"))
        assert await ids(app) == ["lives", "dear"]
        again = await app.start(parent, id="p")
        assert await ends(again) == 1, "its id is free"
        await live.cancel()


async def test_runs_of_code_that_is_gone_are_kept_as_their_program_wanted(kept: str) -> None:
    other = App(kept)

    @other.workflow
    async def theirs() -> None: ...

    @other.workflow(retention="50ms")
    async def brief() -> None:
        await receive("end", int)

    async with other.rooms():
        await ends(await other.start(theirs, id="theirs"))
        run = await other.start(brief, id="brief")
        await run.cancel()
        with pytest.raises(RunCancelled):
            await ends(run)
    await other.close()
    app = App(kept, retention=0)

    @app.workflow
    async def ours() -> None: ...

    async with app.rooms():
        await gone(await app.start(ours, id="ours"))
        await gone(app.handle("brief"))
        assert await ids(app) == ["theirs"]


@pytest.mark.parametrize("retention", ["soon", -1, True])
def test_a_retention_is_a_span(retention: Any) -> None:
    with pytest.raises(InvalidOptionError, match="retention"):
        App(retention=retention)
    app = App()
    with pytest.raises(InvalidOptionError, match="retention of workflow 'w'"):

        @app.workflow(retention=retention)
        async def w() -> None: ...
