"""Nothing is undone while an attempt may act that was taken from its agent, of whichever call, however the run ends."""

import asyncio
import base64
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from tests.store.postgres import emptied
from watchbill import (
    App,
    Busy,
    Escalate,
    Handle,
    Permanent,
    Retry,
    RunCancelled,
    RunUndone,
    continue_as,
    receive,
    sleep,
)
from watchbill.app.house import House
from watchbill.app.status import Because
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.model.call import Kind
from watchbill.store.open import open_store
from watchbill.store.protocol import Turn, TurnAnswer

WHILE = SECOND * 3 // 2


@pytest.fixture(autouse=True)
def acts_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever had an attempt act for a moment longer, and not for as long as leases last."""
    monkeypatch.setattr("watchbill.supervisor.acting.LONGEST_LEASE", 0)
    monkeypatch.setattr("watchbill.supervisor.acting.SILENCE", 0)
    monkeypatch.setattr("watchbill.supervisor.acting.STOPS_WITHIN", WHILE)


class Shop:
    """A step that can be undone, and one that is late the first time it is tried."""

    def __init__(self, app: App, *then: Exception, **options: Any) -> None:
        tries: Iterator[Exception | None] = iter(then)
        first = iter([True])

        @app.step
        async def book() -> int:
            return 1

        @book.undo
        async def unbook(booked: int) -> None: ...

        @app.step(timeout=0.3, **{"retry": Retry(1, backoff="1ms"), **options})
        async def charge() -> int:
            if next(first, False):
                await asyncio.sleep(60)
            if (error := next(tries, None)) is not None:
                raise error
            return 2

        self.app, self.book, self.charge = app, book, charge

    async def undoes_in_time(self, run: Handle[Any], stopped: type[Exception] = RunUndone) -> None:
        """Expect that a run is undone, and not before nobody can act any more."""
        acts_until = await self.says_why(run)
        with pytest.raises(stopped):
            await ends(run)
        await undone_since(run, acts_until)

    @staticmethod
    async def says_why(run: Handle[Any]) -> datetime:
        """Expect that it says why nothing is undone yet, and until when; gives that time."""
        await becomes(run, lambda status: status.state == "undoing")
        async with asyncio.timeout(LONG):
            # At first it may wait for the last row of what was cancelled.
            while "acts_until" not in (explained := await run.explain()).facts:
                await asyncio.sleep(LOOK_EVERY)
        assert Because.MAY_STILL_ACT in [one.because for one in explained.reasons]
        assert "may act on it until" in str(explained)
        acts_until = explained.facts["acts_until"]
        assert isinstance(acts_until, datetime)
        return acts_until


async def undone_since(run: Handle[Any], acts_until: datetime) -> None:
    [undo] = [step for step in (await run.status()).steps if step.key == "undo:book"]
    began = undo.attempts[0].started_at
    assert began is not None
    assert began >= acts_until
    assert [event.step for event in await run.timeline() if event.kind == "may_still_act"] != []


Plays = Callable[[Shop, App, Ear], Awaitable[Handle[Any]]]


async def fails_late(shop: Shop, app: App, ear: Ear) -> Handle[Any]:
    @app.workflow
    async def order() -> None:
        await shop.book()
        await shop.charge.options(retry=0)()

    return await app.start(order, id="r")


async def fails_by_a_later_attempt(shop: Shop, app: App, ear: Ear) -> Handle[Any]:
    @app.workflow
    async def order() -> None:
        await shop.book()
        await shop.charge()

    return await app.start(order, id="r")


async def fails_after_a_later_attempt_was_done(shop: Shop, app: App, ear: Ear) -> Handle[Any]:
    @app.workflow
    async def order() -> None:
        await shop.book()
        assert await shop.charge() == 2
        raise ValueError("enough")

    return await app.start(order, id="r")


async def fails_in_its_next_part(shop: Shop, app: App, ear: Ear) -> Handle[Any]:
    @app.workflow
    async def second() -> None:
        await shop.book()
        raise ValueError("enough")

    @app.workflow
    async def order() -> None:
        assert await shop.charge() == 2
        await continue_as(second)

    return await app.start(order, id="r")


async def fails_after_a_rewind(shop: Shop, app: App, ear: Ear) -> Handle[Any]:
    @app.workflow
    async def order() -> None:
        await shop.book()
        assert await shop.charge() == 2
        await receive("go on")
        raise ValueError("enough")

    run = await app.start(order, id="r")
    await ear.hears("step.completed", "r", times=2)
    await run.rewind("book")
    await ear.hears("step.completed", "r", times=4)
    await run.send("go on", None)
    return run


async def fails_with_a_child(shop: Shop, app: App, ear: Ear) -> Handle[Any]:
    @app.workflow
    async def charging() -> None:
        await shop.charge.options(retry=0)()

    @app.workflow
    async def order() -> None:
        await shop.book()
        await charging()

    return await app.start(order, id="r")


SOLD_OUT = Permanent("sold out")


@pytest.mark.parametrize(
    ("play", "then"),
    [
        (fails_late, ()),
        (fails_by_a_later_attempt, (SOLD_OUT,)),
        (fails_after_a_later_attempt_was_done, ()),
        (fails_in_its_next_part, ()),
        (fails_after_a_rewind, ()),
        (fails_with_a_child, ()),
    ],
)
async def test_a_run_that_fails_by_itself_waits_with_its_undo(
    app: App, ear: Ear, play: Plays, then: tuple[Exception, ...]
) -> None:
    shop = Shop(app, *then)
    async with app.rooms():
        await shop.undoes_in_time(await play(shop, app, ear))


@pytest.mark.parametrize("last", ["late", "raised"])
async def test_a_run_that_is_cancelled_waits_with_its_undo(app: App, ear: Ear, last: str) -> None:
    shop = Shop(
        app, ConnectionError("no line"), retry=Retry(2, backoff="30s" if last == "late" else "1ms", factor=1000)
    )

    @app.workflow
    async def order() -> None:
        await shop.book()
        await shop.charge()

    async with app.rooms():
        run = await app.start(order, id="r")
        await ear.hears("step.retried", "r", times=1 if last == "late" else 2)
        await run.cancel("enough")
        await shop.undoes_in_time(run, RunCancelled)


async def test_with_nothing_to_undo_nothing_is_waited_for(app: App, ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchbill.supervisor.acting.STOPS_WITHIN", 3_600 * SECOND)
    shop = Shop(app, retry=Retry(2, backoff="30s"))

    @app.workflow
    async def order() -> None:
        await shop.charge()

    async with app.rooms():
        run = await app.start(order, id="r")
        await ear.hears("step.retried", "r")
        await run.cancel("enough")
        with pytest.raises(RunCancelled):
            await ends(run)


async def test_what_a_person_gives_the_result_of_may_still_act(app: App, ear: Ear) -> None:
    shop = Shop(app, retry=0, then=[Escalate("clerks")])

    @app.workflow
    async def order() -> None:
        await shop.book()
        assert await shop.charge() == 7
        raise ValueError("enough")

    async with app.rooms():
        run = await app.start(order, id="r")
        await ear.hears("step.escalated", "r")
        [item] = await app.inbox()
        await app.resolve(item.id, "provide", value=7, by="ada", reason="I asked them")
        await shop.undoes_in_time(run)


async def test_what_a_person_gives_and_the_code_breaks_on_is_heard_when_that_is_mended(kept: str) -> None:
    """Also when the attempt that it is given for may still act, which is written down before it."""

    def program(*, broken: bool) -> tuple[App, Any]:
        app = App(kept)

        @app.step(timeout=0.3, retry=0, then=[Escalate("clerks")])
        async def charge() -> int:
            await asyncio.sleep(60)
            return 2

        @app.workflow
        async def order() -> int:
            charged: int = await charge()
            if broken:
                raise SystemExit("a mistake in the workflow")
            return charged

        return app, order

    app, order = program(broken=True)
    async with app.rooms():
        run = await app.start(order, id="r")
        async with asyncio.timeout(LONG):
            while not (items := await app.inbox()):
                await asyncio.sleep(LOOK_EVERY)
            await app.resolve(items[0].id, "provide", value=7, by="ada", reason="I asked them")
            while "a mistake" not in str(await run.explain()):
                await asyncio.sleep(LOOK_EVERY)
    await app.close()
    app, order = program(broken=False)
    async with app.rooms():
        assert await ends(await app.start(order, id="r")) == 7
    await app.close()


async def test_whoever_drives_the_run_next_waits_too(kept: str) -> None:
    def a_program() -> tuple[App, Shop, Ear]:
        app = App(kept)
        return app, Shop(app), Ear(app)

    app, shop, ear = a_program()
    async with app.rooms():
        run = await fails_late(shop, app, ear)
        acts_until = await shop.says_why(run)
    app, shop, ear = a_program()
    async with app.rooms():
        run = await fails_late(shop, app, ear)  # the same one
        with pytest.raises(RunUndone):
            await ends(run)
        await undone_since(run, acts_until)
    assert ear.of("step.lost") == [], "what was put off has not begun"


class Doors:
    """Those of a scheduler, which lead nowhere while its store is away."""

    def __init__(self, doors: object) -> None:
        self._doors = doors
        self.away = False

    def __getattr__(self, name: str) -> Any:
        if self.away:
            raise StoreUnreachableError("it is away")
        return getattr(self._doors, name)


async def test_what_runs_without_a_row_is_stopped_when_its_scheduler_was_not_heard_for_long(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else has the run by then, and may undo it. On a file nobody can."""
    await emptied(postgres_url)
    monkeypatch.setattr("watchbill.scheduler.scheduler.SILENCE", SECOND // 4)
    app, began, stopped = App(postgres_url), asyncio.Event(), asyncio.Event()

    @app.step
    async def charge() -> int:
        if not began.is_set():
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()
        return 1

    @app.workflow
    async def order() -> int:
        return await charge()

    store = await open_store(postgres_url, SystemEnv())
    doors = Doors(store.scheduler)
    monkeypatch.setattr(type(store), "scheduler", doors)
    house = House(SystemEnv(), store, app.registry, app.events, namespace="default", lease=SECOND)
    await house.start()
    try:
        run = await app.start(order, id="r")
        await asyncio.wait_for(began.wait(), LONG)
        doors.away = True
        await asyncio.wait_for(stopped.wait(), LONG)
        doors.away = False
        assert await ends(run) == 1, "it costs nothing, and is tried again"
    finally:
        await house.stop()
        await store.close()


async def test_what_a_person_lets_be_tried_again_may_still_act_when_its_run_is_cancelled(app: App, ear: Ear) -> None:
    """Who says that it did not take effect does not say that it no longer acts."""
    shop, first = Shop(app), iter([True])

    @app.step(timeout=0.3, idempotent=False, retry=Retry(3, backoff="30s"))
    async def pay() -> None:
        if next(first, False):
            await asyncio.sleep(60)
        raise Busy("30s")

    @app.workflow
    async def order() -> None:
        await shop.book()
        await pay()

    async with app.rooms():
        run = await app.start(order, id="r")
        await ear.hears("step.escalated", "r")
        [item] = await app.inbox()
        await app.resolve(item.id, "retry", by="ada", reason="it did not take effect")
        await ear.hears("step.retried", "r")
        await run.cancel("enough")
        await shop.undoes_in_time(run, RunCancelled)


class Slow:
    """A step that can be undone, and takes a moment to stop, however often it is asked to."""

    def __init__(self, app: App, stops_in: float = 0.2) -> None:
        self.did: list[str] = []
        self.stopped = asyncio.Event()

        @app.step
        async def slow() -> None:
            self.did.append("slow")
            try:
                await asyncio.sleep(60)
            finally:
                self.did.append("asked")
                end = asyncio.get_running_loop().time() + stops_in
                while (left := end - asyncio.get_running_loop().time()) > 0:
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.sleep(left)
                self.did.append("stopped")
                self.stopped.set()

        @slow.undo
        async def unslow(done: None) -> None:
            self.did.append("undo")

        self.slow = slow


async def test_what_a_workflow_gives_up_is_stopped_though_its_run_then_sleeps(app: App) -> None:
    slow = Slow(app)

    @app.workflow
    async def order() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.5):  # by then it has a row
                await slow.slow()
        await sleep("1h")

    async with app.rooms():
        run = await app.start(order, id="r")
        await becomes(run, lambda status: status.state == "waiting")
        await asyncio.wait_for(slow.stopped.wait(), LONG)
    assert slow.did == ["slow", "asked", "stopped"]


async def test_what_a_workflow_gives_up_is_stopped_though_its_run_ends_at_once(app: App) -> None:
    slow = Slow(app)

    @app.workflow
    async def order() -> int:
        task = asyncio.ensure_future(slow.slow())
        await receive("a")
        task.cancel()
        await receive("b")
        return 1

    async with app.rooms():
        run = await app.start(order, id="r")
        await becomes(run, lambda status: any(step.state == "running" for step in status.steps))
        await asyncio.gather(run.send("a", None), run.send("b", None))
        assert await ends(run) == 1
        await asyncio.wait_for(slow.stopped.wait(), LONG)
    assert slow.did == ["slow", "asked", "stopped"]


@pytest.mark.parametrize("when", ["with the cancel", "after it"])
async def test_what_is_lost_and_given_up_at_once_is_waited_for(
    file: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A turn is refused, which unmakes memory: with the runs comes back what they were told."""
    app = App(file)
    slow = Slow(app, 1.2)  # longer than it takes until its shard is taken again

    @app.workflow
    async def order() -> None:
        if when == "with the cancel":
            await slow.slow()
        under_way = asyncio.ensure_future(slow.slow())
        await receive("never")
        await under_way

    @app.workflow
    async def other() -> None: ...

    async with app.rooms():
        doors: Any = app._hall._store.scheduler  # type: ignore[attr-defined]
        turn, refused, cancelled = doors.turn, list[Turn](), asyncio.Event()

        async def refuses_once(wanted: Turn, **options: Any) -> TurnAnswer:
            cancels = any(kind == Kind.CANCEL for _, _, kind, *_ in wanted.journal)
            if refused or not (cancels if when == "with the cancel" else cancelled.is_set() and wanted.journal):
                answer: TurnAnswer = await turn(wanted, **options)
                if cancels:
                    cancelled.set()
                return answer
            refused.append(wanted)
            answer = await turn(Turn(wanted.owner, wanted.terms), **options)
            return TurnAnswer(False, answer.held, answer.now)

        monkeypatch.setattr(doors, "turn", refuses_once)
        run = await app.start(order, id="r")
        await becomes(run, lambda status: slow.did)
        await run.cancel("enough")
        if when == "after it":
            await asyncio.wait_for(cancelled.wait(), LONG)
            await app.start(other, id="o")  # any turn will do
        with pytest.raises(RunCancelled):
            await ends(run)
    assert len(refused) == 1
    assert slow.did == ["slow", "asked", "stopped", "undo"]


async def test_a_thread_that_was_asked_to_stop_and_hangs_is_late_when_its_time_is_over(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can stop it: it is waited for as long as its author gives it, and not for ever."""
    for place in ("sqlite.scheduler", "postgres.turn"):
        monkeypatch.setattr(f"watchbill.store.{place}.CANCEL_GRACE", SECOND // 10)
    began, let_go, did = threading.Event(), threading.Event(), list[str]()

    @app.step
    async def book() -> int:
        return 1

    @book.undo
    async def unbook(booked: int) -> None:
        did.append("undo")

    @app.step(timeout="2s", retry=0)
    def hangs() -> None:
        began.set()
        let_go.wait(LONG)
        did.append("thread")

    @app.workflow
    async def order() -> None:
        await book()
        await hangs()

    async with app.rooms():
        run = await app.start(order, id="r")
        await becomes(run, lambda status: began.is_set())
        await run.cancel("enough")
        with pytest.raises(RunCancelled):
            await ends(run)
        let_go.set()
    assert did[0] == "undo"


async def test_of_what_is_sealed_it_is_said_as_far_as_it_can_be(file: str) -> None:
    app = App(file, keys=f"a:{base64.b64encode(bytes(32)).decode()}")
    shop = Shop(app)

    @app.workflow
    async def second(n: int) -> None:
        await shop.book()
        raise ValueError("enough")

    @app.workflow
    async def order() -> None:
        await shop.charge()
        await continue_as(second, 1)

    async with app.rooms():
        run = await app.start(order, id="r")
        await Shop.says_why(run)
        stranger = App(file, keys=f"b:{base64.b64encode(bytes([1] * 32)).decode()}")
        assert "what it did is undone, last first" in str(await stranger.handle("r").explain())
        said = [event.note for event in await stranger.handle("r").timeline() if event.kind == "may_still_act"]
        assert said
        assert all("1970" not in note for note in said)
