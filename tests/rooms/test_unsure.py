"""What an attempt may have done is known to its row, whatever happens to its run, arguments or scheduler."""

import asyncio
import contextlib
import itertools
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from tests.rooms.users import file_of
from watchbill import (
    Ambiguous,
    App,
    Busy,
    Escalate,
    Handle,
    NotDone,
    Permanent,
    Retry,
    RunCancelled,
    RunFailed,
    RunUndone,
    StepFailed,
    Switch,
    attempt,
    continue_as,
    receive,
    sleep,
)
from watchbill.clock import SECOND
from watchbill.model.run import shard_number
from watchbill.model.states import AttemptState
from watchbill.store.protocol import Turn, TurnAnswer

NO_LINE = ConnectionError("no line")
SOLD_OUT = Permanent("sold out")

# How long an undo waits for that is tried in test_acting.py.
pytestmark = pytest.mark.usefixtures("acts_no_longer")


async def hangs() -> None:
    await asyncio.sleep(60)


class Shop:
    """A step that can be undone, told what its tries do, one after the other, and a list of all that happened."""

    def __init__(self, app: App, *tries: Exception | Callable[[], Awaitable[None]] | None, **options: Any) -> None:
        self.did: list[str] = []
        coming = iter(tries)

        @app.step(**options)
        async def take(what: str) -> str:
            self.did.append(f"take {what}")
            does = next(coming, None)
            if isinstance(does, Exception):
                raise does
            if does is not None:
                await does()
            return what

        @take.undo
        async def give_back(taken: str | None, what: str) -> None:
            self.did.append(f"give back {what}: {taken}")

        @app.workflow
        async def shopping() -> str:
            return await take("x")

        self.take, self.shopping = take, shopping


async def is_undone(run: Handle[Any]) -> None:
    with pytest.raises(RunUndone):
        await ends(run)


# --- an attempt before the last one


FIRST = pytest.mark.parametrize("first", [pytest.param(hangs, id="late"), pytest.param(NO_LINE, id="raised")])
ONCE_MORE = Retry(1, backoff="1ms")


@FIRST
async def test_what_an_attempt_before_the_last_one_may_have_done_is_undone(app: App, first: Any) -> None:
    """The first try took effect, and nobody heard of it; the second one raises: there is something to undo."""
    late = first is hangs
    shop = Shop(app, first, SOLD_OUT, retry=ONCE_MORE, timeout=0.3)
    async with app.rooms():
        run = await app.start(shop.shopping)
        with pytest.raises(RunFailed, match="sold out") as failed:
            await ends(run)
        [step, *undo] = (await run.status()).steps
    assert isinstance(failed.value, RunUndone) is late
    assert (step.state, [one.key for one in undo]) == (("undone", ["undo:take"]) if late else ("failed", []))
    assert [one.cause for one in step.attempts] == ["late" if late else "raised", "raised"]
    assert shop.did == ["take x", "take x", *(["give back x: None"] if late else [])]


@FIRST
async def test_a_workflow_is_told_whether_a_call_that_failed_may_have_taken_effect(app: App, first: Any) -> None:
    shop = Shop(app, first, SOLD_OUT, retry=ONCE_MORE, timeout=0.3)

    @app.workflow
    async def tells() -> list[Any]:
        try:
            await shop.take("x")
        except StepFailed as failed:
            return [failed.cause, failed.unsure]
        return []

    async with app.rooms():
        assert await ends(await app.start(tells)) == ["raised", first is hangs]


@FIRST
@pytest.mark.parametrize("how", ["cancelled", "given up by the workflow"])
async def test_what_waits_for_its_next_try_when_its_run_is_stopped_is_undone_if_it_may_have_taken_effect(
    app: App, ear: Ear, first: Any, how: str
) -> None:
    shop = Shop(app, first, Busy("1h"), retry=ONCE_MORE, timeout=0.3)

    @app.workflow
    async def gives_up() -> None:
        taking = asyncio.ensure_future(shop.take("x"))
        await receive("enough")
        taking.cancel()
        raise ValueError("enough")

    async with app.rooms():
        run = await app.start(gives_up, id="r")
        await ear.hears("step.retried", "r", times=2)
        await (run.cancel("enough") if how == "cancelled" else run.send("enough", None))
        with pytest.raises((RunCancelled, RunFailed)) as stopped:
            await ends(run)
    assert isinstance(stopped.value, RunUndone) is (first is hangs and how != "cancelled")
    assert shop.did == ["take x", "take x", *(["give back x: None"] if first is hangs else [])]


# --- another part


@pytest.mark.parametrize("goes_on", [True, False], ids=["with such a call", "without"])
async def test_that_a_call_took_no_effect_says_nothing_of_the_calls_of_the_next_part(
    app: App, ear: Ear, *, goes_on: bool
) -> None:
    shop = Shop(app, NO_LINE, retry=Retry(1, backoff="1h"))

    @app.step
    async def quick() -> None: ...

    @app.workflow
    async def second() -> None:
        if goes_on:
            await shop.take("y")
        await sleep(0.3)  # the row of the first one goes meanwhile
        raise ValueError("enough")

    @app.workflow
    async def first() -> None:
        taking = asyncio.ensure_future(shop.take("x"))
        await receive("go on")
        taking.cancel()
        await quick()
        await continue_as(second)

    async with app.rooms():
        run = await app.start(first, id="r")
        await ear.hears("step.retried", "r")
        await run.send("go on", None)
        with pytest.raises(RunFailed, match="enough") as failed:
            await ends(run)
    assert isinstance(failed.value, RunUndone) is goes_on
    assert shop.did == (["take x", "take y", "give back y: y"] if goes_on else ["take x"])
    assert ear.of("turn.failed") == []


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "later"])
async def test_what_still_runs_when_the_next_part_begins_is_stopped_and_leaves_nothing_behind(
    app: App, ear: Ear, *, at_once: bool
) -> None:
    ended = asyncio.Event()

    async def until_stopped() -> None:
        try:
            await hangs()
        finally:
            ended.set()

    shop = Shop(app, until_stopped)

    @app.step
    async def quick() -> None: ...

    @app.workflow
    async def second() -> str:
        return await shop.take("y")

    @app.workflow
    async def first() -> str:
        taking = asyncio.ensure_future(shop.take("x"))
        await receive("go on")
        taking.cancel()
        if not at_once:
            await quick()
        await continue_as(second)
        return ""

    async with app.rooms():
        run = await app.start(first, id="r")
        await becomes(run, lambda status: shop.did)
        await run.send("go on", None)
        assert await ends(run) == "y"
        async with asyncio.timeout(LONG):
            await ended.wait()
            while any(agent.running for agent in await app.agents()):
                await asyncio.sleep(LOOK_EVERY)
    assert ear.of("turn.failed") == []


async def test_what_is_tried_again_by_a_rewind_is_undone(app: App, ear: Ear) -> None:
    shop = Shop(app, NO_LINE, retry=Retry(1, backoff="1h"))

    @app.step
    async def pack() -> None: ...

    @app.workflow
    async def order() -> None:
        taking = asyncio.ensure_future(shop.take("x"))
        await pack()
        await receive("go on")
        await taking
        raise ValueError("enough")

    async with app.rooms():
        run = await app.start(order, id="r")
        await ear.hears("step.retried", "r")
        await ear.hears("step.completed", "r")
        await run.rewind("pack")
        await ear.hears("step.completed", "r", times=3)  # packed twice, and taken
        await run.send("go on", None)
        await is_undone(run)
    assert shop.did == ["take x", "take x", "give back x: x"]
    assert ear.of("turn.failed") == []


# --- its own transaction


@pytest.mark.parametrize("how", ["given up by the workflow", "cancelled", "sibling"])
async def test_what_has_finished_in_its_own_transaction_is_undone_however_it_is_stopped(file: str, how: str) -> None:
    app, committed = App(file), asyncio.Event()
    ear = Ear(app)

    async def finishes() -> None:
        with contextlib.closing(sqlite3.connect(file_of(file))) as connection:
            await attempt().finish("mine", tx=connection)
            connection.commit()
        committed.set()
        await hangs()

    shop = Shop(app, finishes, retry=0)

    @app.step(retry=0)
    async def other() -> None:
        await committed.wait()
        if how == "sibling":
            raise SOLD_OUT

    @app.workflow
    async def order() -> None:
        taking = asyncio.ensure_future(shop.take("x"))
        await other()
        if how == "cancelled":
            await taking
        taking.cancel()
        await sleep(0.3)  # whether it has a row is seen meanwhile
        raise ValueError("enough")

    async with app.rooms():
        run = await app.start(order, id="r")
        if how == "cancelled":
            await asyncio.wait_for(committed.wait(), LONG)
            await run.cancel("enough")
        with pytest.raises(RunCancelled if how == "cancelled" else RunUndone):
            await ends(run)
    assert shop.did in (["take x", "give back x: mine"], ["take x", "give back x: None"])
    assert ear.of("turn.failed") == []


# --- other arguments


@pytest.mark.parametrize(
    ("args", "then"),
    [({}, SOLD_OUT), ({"what": "y"}, SOLD_OUT), ({"what": "y"}, Busy("1h"))],
    ids=["as it was, raises", "edited, raises", "edited, given up while it waits"],
)
async def test_what_a_person_lets_be_tried_again_is_undone_for_the_sake_of_its_first_try(
    app: App, ear: Ear, args: dict[str, str], then: Exception
) -> None:
    shop = Shop(app, hangs, then, retry=0, timeout=0.3, then=[Escalate("clerks")])

    @app.workflow
    async def order() -> None:
        taking = asyncio.ensure_future(shop.take("x"))
        if isinstance(then, Busy):
            await receive("enough")
            taking.cancel()
            raise ValueError("enough")
        await taking

    async with app.rooms():
        run = await app.start(order, id="r")
        await ear.hears("step.escalated", "r")
        [item] = await app.inbox()
        await app.resolve(item.id, "retry", args=args, by="ada", reason="a slip of the pen")
        if isinstance(then, Busy):
            await ear.hears("step.retried", "r")
            await run.send("enough", None)
        await is_undone(run)
    what = args.get("what", "x")
    assert shop.did == ["take x", f"take {what}", f"give back {what}: None"]


# --- another way


def not_done(asked: list[str]) -> Callable[[str], Awaitable[NotDone]]:
    """Make a probe that says so, and notes what it was asked about."""

    async def probe(what: str) -> NotDone:
        asked.append(what)
        return NotDone()

    return probe


async def test_a_probe_knows_nothing_of_what_was_tried_another_way_before(app: App) -> None:
    asked: list[str] = []

    @app.step(retry=0, idempotent=False, probe=not_done(asked))
    async def by_post(what: str) -> str:
        raise NO_LINE

    shop = Shop(app, hangs, retry=0, timeout=0.3, then=[Switch(step=by_post)])
    async with app.rooms():
        await is_undone(await app.start(shop.shopping))
    assert asked == ["x"]
    assert shop.did == ["take x", "give back x: None"]


async def test_what_its_own_probe_says_did_not_take_effect_is_not_undone(app: App) -> None:
    asked: list[str] = []
    shop = Shop(app, Ambiguous("no answer"), retry=0, probe=not_done(asked))
    async with app.rooms():
        with pytest.raises(RunFailed, match="no answer") as failed:
            await ends(await app.start(shop.shopping))
    assert type(failed.value) is RunFailed
    assert asked == ["x"]
    assert shop.did == ["take x"]


# --- another scheduler


@pytest.mark.parametrize("first", [None, Ambiguous("no answer")], ids=["done", "ambiguous"])
async def test_what_was_done_in_a_turn_that_is_refused_is_undone(
    file: str, monkeypatch: pytest.MonkeyPatch, first: Exception | None
) -> None:
    """Nobody knows any more that it was; it is tried again, and raises: the first time may have taken effect."""
    app = App(file)
    shop = Shop(app, first, SOLD_OUT, retry=0)
    async with app.rooms():
        doors: Any = app._hall._store.scheduler  # type: ignore[attr-defined]
        turn, refused = doors.turn, list[Turn]()

        async def refuses_once(wanted: Turn, **options: Any) -> TurnAnswer:
            tells = any(key == "take" for _, _, _, key, *_ in wanted.journal)
            tells = tells or any(row.state == AttemptState.FAILED for row in wanted.attempts)
            if refused or not tells:
                answer: TurnAnswer = await turn(wanted, **options)
                return answer
            refused.append(wanted)
            answer = await turn(Turn(wanted.owner, wanted.terms), **options)
            return TurnAnswer(False, answer.held, answer.now)

        monkeypatch.setattr(doors, "turn", refuses_once)
        await is_undone(await app.start(shop.shopping))
    assert len(refused) == 1
    assert shop.did == ["take x", "take x", "give back x: None"]


async def test_a_thread_that_outlasts_the_drain_charges_nobody(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scheduler leaves without it; its agent waits until it has returned."""
    monkeypatch.setattr("watchbill.scheduler.scheduler.DRAIN", SECOND * 3 // 10)
    neighbour = next(id for n in itertools.count() if shard_number(id := f"n-{n}") == shard_number("stuck"))
    sticking, taking = threading.Event(), asyncio.Event()
    did: list[str] = []

    def a_program() -> tuple[App, Any, Any]:
        app = App(file)

        @app.step(retry=0)
        def stick() -> None:
            did.append("stick")
            sticking.set()
            time.sleep(0.8)

        @app.step(retry=0)
        async def take() -> None:
            did.append("take")
            if not taking.is_set():
                taking.set()
                await hangs()
            raise SOLD_OUT

        @app.workflow
        async def stuck() -> None:
            await stick()

        @app.workflow
        async def shopping() -> None:
            await take()

        return app, stuck, shopping

    before, stuck, shopping = a_program()
    async with before.rooms():
        await before.start(shopping, id=neighbour)
        await asyncio.wait_for(taking.wait(), LONG)
        await before.start(stuck, id="stuck")
        assert await asyncio.to_thread(sticking.wait, LONG)
    after, _, _ = a_program()
    ear = Ear(after)
    async with after.rooms():
        await ends(after.handle("stuck"))
        with pytest.raises(RunFailed, match="sold out"):
            await ends(after.handle(neighbour))
    assert ear.of("step.lost") == []
    assert did == ["take", "stick", "take"]
