"""Runs from outside: ids and duplicates, handles, status, rooms and clients without them."""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import (
    App,
    DuplicateRun,
    InvalidOptionError,
    Retry,
    RunFailed,
    RunHeld,
    RunNotFound,
    StoreError,
    WatchbillError,
    attempt,
    sleep,
)
from watchbill.app.hall import Hall
from watchbill.errors import RunLive
from watchbill.scheduler.advance import Advance


def a_shop(app: App) -> Any:
    """Give an App a step and a workflow."""

    @app.step
    def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def order(n: int, note: str = "") -> int:
        return await double(n)

    return order


# --- ids


async def test_the_same_id_with_the_same_work_is_the_same_run(app: App) -> None:
    ran = []

    @app.step
    async def charge(n: int) -> int:
        ran.append(n)
        return n

    @app.workflow
    async def order(n: int, note: str = "") -> int:
        return await charge(n)

    async with app.rooms():
        first = await app.start(order, 3, id="o-1")
        assert await ends(first) == 3
        again = await app.start(order, n=3, note="", id="o-1")
        assert (again.id, await ends(again)) == ("o-1", 3)
    assert ran == [3]


async def test_the_same_id_with_other_work_is_refused_and_names_both(app: App) -> None:
    order = a_shop(app)

    @app.workflow
    async def refund(n: int) -> int:
        return n

    async with app.rooms():
        first = await app.start(order, 3, id="o-1")
        with pytest.raises(DuplicateRun) as other:
            await app.start(order, 4, id="o-1")
        assert other.value.id == "o-1"
        assert other.value.existing == "'order' version 1"
        assert other.value.asked == "'order' version 1 with other arguments"
        assert "choose another id" in str(other.value)
        with pytest.raises(DuplicateRun) as other:
            await app.start(refund, 3, id="o-1")
        assert "order" in other.value.existing
        assert "refund" in other.value.asked
        assert await ends(first) == 6


async def test_without_an_id_each_start_is_a_run_of_its_own(app: App) -> None:
    order = a_shop(app)
    async with app.rooms():
        first, second = await app.start(order, 1), await app.start(order, 1)
        assert first.id != second.id
        assert first.id.startswith("order-")
        assert [await ends(first), await ends(second)] == [2, 2]


async def test_start_many_starts_all_in_order(app: App) -> None:
    order = a_shop(app)
    async with app.rooms():
        handles = await app.start_many(
            [(order, (n,), {"id": f"o-{n}", "note": "x"}) for n in range(5)] + [(order, (9,))]
        )
        assert [handle.id for handle in handles[:5]] == [f"o-{n}" for n in range(5)]
        assert [await ends(handle) for handle in handles] == [0, 2, 4, 6, 8, 18]
        assert await app.start_many([]) == []


async def test_start_many_starts_all_or_none(app: App) -> None:
    order = a_shop(app)
    async with app.rooms():
        await ends(await app.start(order, 1, id="taken"))
        with pytest.raises(DuplicateRun):
            await app.start_many([(order, (1,), {"id": "new"}), (order, (2,), {"id": "taken"})])
        with pytest.raises(TypeError, match="argument 'n' of workflow 'order' must be int"):
            await app.start_many([(order, (1,), {"id": "new"}), (order, ("two",), {"id": "newer"})])
        for id in ("new", "newer"):
            with pytest.raises(RunNotFound, match=id):
                await app.handle(id).status()


async def test_start_many_with_one_id_twice_is_one_run_if_the_work_is_equal(app: App) -> None:
    order = a_shop(app)
    async with app.rooms():
        same = await app.start_many([(order, (1,), {"id": "a"}), (order, (1,), {"id": "a"})])
        assert [await ends(handle) for handle in same] == [2, 2]
        with pytest.raises(DuplicateRun, match="'b'"):
            await app.start_many([(order, (1,), {"id": "b"}), (order, (2,), {"id": "b"})])


# --- handles


async def test_a_handle_with_its_workflow_gives_typed_results_and_without_it_plain_ones(app: App) -> None:
    @app.workflow
    async def when() -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    async with app.rooms():
        await ends(await app.start(when, id="w"))
        assert await app.handle("w", when).result() == datetime(2026, 1, 2, tzinfo=UTC)
        assert await app.handle("w").result() == "2026-01-02T00:00:00Z"
    assert await app.handle("w", when).result() == datetime(2026, 1, 2, tzinfo=UTC)  # without rooms, too
    await app.close()


async def test_a_handle_on_nothing_says_so(app: App) -> None:
    a_shop(app)
    async with app.rooms():
        for ask in (app.handle("nobody").result, app.handle("nobody").status):
            with pytest.raises(RunNotFound, match="there is no run 'nobody'"):
                await ask()


async def test_the_timeout_of_a_result_leaves_the_run_alone(app: App) -> None:
    release = asyncio.Event()

    @app.step
    async def slow() -> int:
        await release.wait()
        return 1

    @app.workflow
    async def wf() -> int:
        return await slow()

    async with app.rooms():
        handle = await app.start(wf)
        with pytest.raises(TimeoutError):
            await handle.result(timeout=0.01)
        release.set()
        assert await ends(handle) == 1


async def test_many_may_wait_for_one_result(app: App) -> None:
    order = a_shop(app)
    async with app.rooms():
        handle = await app.start(order, 4, id="o")
        results = await asyncio.gather(*(app.handle("o").result() for _ in range(20)), handle.result())
    assert set(results) == {8}


async def test_somebody_who_waits_beyond_the_rooms_hears_of_the_end_in_the_next_ones(kept: str) -> None:
    app = App(kept)
    release = asyncio.Event()

    @app.step
    async def slow() -> int:
        await release.wait()
        return 7

    @app.workflow
    async def wf() -> int:
        return await slow()

    async with app.rooms():
        handle = await app.start(wf)
        waiting = asyncio.create_task(ends(handle))
        await becomes(handle, lambda status: status.state == "running")
    release.set()
    async with app.rooms():
        assert await waiting == 7


# --- status


async def test_the_status_of_a_run_from_its_start_to_its_end(app: App, ear: Ear) -> None:
    release = asyncio.Event()

    @app.step
    async def first(n: int) -> int:
        return n

    @app.step(retry=Retry(1, backoff="10s"))
    async def flaky() -> None:
        raise ConnectionError("bank is busy")

    @app.step
    async def slow() -> None:
        attempt().progress(1, total=2)
        await release.wait()

    @app.workflow
    async def wf() -> None:
        await first(1)
        await asyncio.gather(slow(), flaky())

    handle = await app.start(wf, id="r")
    status = await handle.status()
    assert (status.id, status.workflow, status.state, status.health) == ("r", "wf", "scheduled", "ok")
    assert (status.steps, status.progress, status.waiting_for) == ((), None, "its scheduler")
    async with app.rooms():
        await ear.hears("step.retried", "r")
        status = await becomes(handle, lambda status: len(status.steps) == 3)
        assert (status.state, status.health) == ("running", "retrying")
        assert status.waiting_for == "flaky, slow"
        done, *rest = status.steps
        assert (done.key, done.state, len(done.attempts)) == ("first", "completed", 1)
        by_key = {step.key: step for step in rest}
        assert by_key["slow"].state == "running"
        assert by_key["flaky"].state == "waiting"
        [attempted] = by_key["flaky"].attempts
        assert (attempted.number, attempted.cause, attempted.error) == (1, "raised", "ConnectionError: bank is busy")
        assert attempted.started_at is not None
        assert attempted.ended_at is not None
        assert attempted.started_at <= attempted.ended_at
        assert status.progress is not None
        assert (status.progress.done, status.progress.total) == (1, 3)
        release.set()
        await handle.cancel()
    await app.close()


async def test_the_status_of_what_has_ended_stays(app: App) -> None:
    @app.step(retry=0)
    def bad() -> None:
        raise ValueError("no")

    @app.workflow
    async def wf() -> None:
        await bad()

    async with app.rooms():
        with pytest.raises(RunFailed):
            await ends(await app.start(wf, id="r"))
    status = await app.handle("r").status()
    assert (status.state, status.health, status.waiting_for) == ("failed", "ok", None)
    [step] = status.steps
    assert (step.step, step.state) == ("bad", "failed")
    assert [(a.number, a.cause, a.error) for a in step.attempts] == [(1, "raised", "ValueError: no")]
    await app.close()


async def test_steps_are_told_in_the_order_in_which_they_first_began(app: App) -> None:
    @app.step(retry=Retry(1, backoff="300ms"))
    async def first() -> None:
        if attempt().number == 1:
            raise ValueError("no")

    @app.step
    async def second() -> None:
        pass

    @app.workflow
    async def wf() -> None:
        begun = asyncio.create_task(first())
        await sleep("10ms")
        await second()
        await begun

    async with app.rooms():
        await ends(await app.start(wf, id="r"))
    status = await app.handle("r").status()
    assert [step.step for step in status.steps] == ["first", "second"], "though the first was done last"
    await app.close()


# --- app.run


def test_run_gives_the_result_and_twice_with_one_id_runs_once(app: App) -> None:
    ran = []

    @app.step
    def charge(n: int) -> int:
        ran.append(n)
        return n

    @app.workflow
    async def order(n: int) -> int:
        return await charge(n)

    assert app.run(order, 5, id="o") == 5
    assert app.run(order, 5, id="o") == 5
    assert ran == [5]
    with pytest.raises(DuplicateRun):
        app.run(order, 6, id="o")


async def test_run_inside_a_running_loop_names_start(app: App) -> None:
    order = a_shop(app)
    with pytest.raises(WatchbillError, match=r"await app\.start"):
        app.run(order, 1)


def test_run_leaves_the_other_runs_open_and_drives_them_meanwhile(kept: str) -> None:
    app = App(kept)
    order = a_shop(app)

    @app.workflow
    async def nap() -> None:
        await sleep("1d")

    app.sync.start(nap, id="nap")
    app.sync.start(order, 4, id="other")
    assert app.run(order, 1) == 2
    assert app.sync.handle("nap").status().state in ("scheduled", "waiting")
    assert app.run(order, 4, id="other") == 8


# --- rooms


def test_threads_that_use_an_app_for_the_first_time_at_once_share_its_store() -> None:
    for _ in range(20):
        app = App("sqlite:///:memory:")
        together = threading.Barrier(8)
        clients: set[int] = set()

        def use(app: App, together: threading.Barrier, clients: set[int]) -> None:
            together.wait(LONG)
            clients.add(id(app._hall))

        threads = [threading.Thread(target=use, args=(app, together, clients)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert len(clients) == 1


async def test_rooms_can_be_opened_once_at_a_time(app: App) -> None:
    order = a_shop(app)
    async with app.rooms():
        with pytest.raises(WatchbillError, match="open already"):
            async with app.rooms():
                pass
        assert await ends(await app.start(order, 1)) == 2
    async with app.rooms():
        assert await ends(await app.start(order, 2)) == 4


async def test_of_two_apps_on_one_file_in_one_process_one_has_the_rooms(file: str) -> None:
    first, second = App(file), App(file)
    order, other = a_shop(first), a_shop(second)
    async with first.rooms():
        with pytest.raises(StoreError, match="is owned by process"):
            async with second.rooms():
                pass
        assert await ends(await second.start(other, 3)) == 6  # through the first
        assert await ends(await first.start(order, 1, id="o")) == 2
        assert await second.handle("o").result() == 2  # reading is for everybody
    async with second.rooms():
        assert await ends(await second.start(other, 2)) == 4


@pytest.mark.parametrize("options", [{"slots": 0}, {"threads": -1}, {"slots": 1.5}, {"slots": "3"}, {"threads": True}])
async def test_rooms_need_room(app: App, options: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError, match="must be above zero"):
        async with app.rooms(**options):  # type: ignore[arg-type]
            pass


async def test_what_is_started_without_rooms_runs_in_the_next_ones(app: App) -> None:
    order = a_shop(app)
    handle = await app.start(order, 21, id="o")
    assert (await handle.status()).state == "scheduled"
    with pytest.raises(TimeoutError):
        await handle.result(timeout=0.01)
    async with app.rooms():
        assert await ends(handle) == 42
    await app.close()


async def test_runs_that_this_code_does_not_know_are_left_untouched(kept: str) -> None:
    first, second = App(kept), App(kept)

    @first.workflow
    async def known(n: int) -> int:
        return n

    order = a_shop(second)
    foreign = await first.start(known, 3, id="k")
    async with second.rooms():
        assert await ends(await second.start(order, 1)) == 2
        assert (await second.handle("k").status()).state == "scheduled"
    async with first.rooms():
        assert await ends(foreign) == 3


async def test_a_run_waits_without_an_agent_room_and_goes_on_with_one(kept: str) -> None:
    app = App(kept)
    order = a_shop(app)
    handle = await app.start(order, 1)
    async with app.rooms(agent=False):
        status = await becomes(handle, lambda status: status.steps)
        assert (status.state, status.health, status.steps[0].state) == ("running", "waiting_for_agent", "ready")
    async with app.rooms():
        assert await ends(handle) == 2


async def test_closing_the_rooms_in_the_middle_of_steps_costs_no_attempt(app: App) -> None:
    begun = asyncio.Event()
    numbers: list[int] = []

    @app.step(retry=0)
    async def slow() -> int:
        numbers.append(attempt().number)
        begun.set()
        if len(numbers) < 3:
            await asyncio.Event().wait()
        return attempt().number

    @app.step(retry=0)
    async def visible() -> int:
        attempt().progress(1)
        return await slow.plain()

    @app.workflow
    async def hidden_one() -> int:
        return await slow()

    @app.workflow
    async def visible_one() -> int:
        return await visible()

    for wf in (hidden_one, visible_one):
        numbers.clear()
        handle = await app.start(wf)
        for _ in range(2):
            begun.clear()
            async with app.rooms():
                await asyncio.wait_for(begun.wait(), LONG)
                if wf is visible_one:
                    await becomes(handle, lambda status: status.steps and status.steps[0].progress)
        async with app.rooms():
            assert await ends(handle) == 1
        assert numbers == [1, 1, 1]
    await app.close()


async def test_namespaces_do_not_see_each_other(kept: str) -> None:
    first, second = App(kept, namespace="first"), App(kept, namespace="second")
    for app, n in ((first, 1), (second, 2)):
        order = a_shop(app)
        async with app.rooms():
            assert await ends(await app.start(order, n, id="o")) == 2 * n
    assert [await first.handle("o").result(), await second.handle("o").result()] == [2, 4]


async def test_a_step_that_lasts_becomes_visible_after_a_second(kept: str) -> None:
    app = App(kept)
    release = asyncio.Event()

    @app.step
    async def slow() -> int:
        await release.wait()
        return attempt().number

    @app.workflow
    async def wf() -> int:
        return await slow()

    async with app.rooms():
        handle = await app.start(wf)
        status = await becomes(handle, lambda status: status.steps)
        assert (status.steps[0].state, status.health, status.waiting_for) == ("running", "ok", "slow")
        release.set()
        assert await ends(handle) == 1


async def test_a_turn_that_fails_half_way_is_made_again_from_the_store(
    app: App, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.step
    async def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def wf(n: int) -> int:
        for _ in range(3):
            n = await double(n)
        return n

    outcome = Advance.outcome
    planted = iter([False, False, True])

    def fails_once(self: Advance, attempt: Any, batch: Any) -> None:
        outcome(self, attempt, batch)
        if next(planted, False):
            raise RuntimeError("a planted defect")

    monkeypatch.setattr(Advance, "outcome", fails_once)
    async with app.rooms():
        handles = await app.start_many([(wf, (n,)) for n in range(5)])
        assert [await ends(handle) for handle in handles] == [8 * n for n in range(5)]
    assert [event.note for event in ear.of("turn.failed")] == ["RuntimeError: a planted defect"]


async def test_rooms_that_close_while_steps_are_being_started_wait_for_none_of_them(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in ("agent.agent", "scheduler.scheduler"):
        monkeypatch.setattr(f"watchbill.{room}.DRAIN", 3600 * 1_000_000)

    @app.step
    async def forever() -> None:
        await asyncio.Event().wait()

    @app.workflow
    async def wf() -> None:
        await asyncio.gather(*(forever() for _ in range(20)))

    async with asyncio.timeout(LONG * 3):  # one forgotten task would cost an hour
        for n in range(20):
            async with app.rooms():
                await app.start(wf, id=f"r-{n}")
                for _ in range(n):
                    await asyncio.sleep(0)
    await app.close()


# --- app.sync


def test_sync_works_without_rooms(kept: str) -> None:
    app = App(kept)
    order = a_shop(app)
    handle = app.sync.start(order, 4, id="o")
    assert handle.id == "o"
    assert handle.status().state == "scheduled"
    assert [other.id for other in app.sync.start_many([(order, (1,), {"id": "p"})])] == ["p"]
    assert app.run(order, 4, id="o") == 8
    assert handle.result() == 8
    app.sync.close()


def test_sync_in_memory_starts_what_run_finishes() -> None:
    app = App("sqlite:///:memory:")
    order = a_shop(app)
    app.sync.start(order, 4, id="o")
    assert app.run(order, 4, id="o") == 8
    assert app.sync.handle("o", order).result() == 8
    app.sync.close()


async def test_sync_works_from_other_threads_while_the_rooms_are_open(app: App) -> None:
    order = a_shop(app)

    def from_a_thread() -> int:
        handle = app.sync.start(order, 5)
        with pytest.raises(RunNotFound):
            app.sync.handle("nobody").status()
        result: int = handle.result()
        return result

    async with app.rooms():
        assert await asyncio.to_thread(from_a_thread) == 10
        with pytest.raises(WatchbillError, match="cannot wait on the event loop it needs"):
            app.sync.start(order, 5)


async def test_another_event_loop_is_sent_to_sync(app: App) -> None:
    order = a_shop(app)

    def with_a_loop_of_its_own() -> None:
        asyncio.run(app.start(order, 1))

    async with app.rooms():
        with pytest.raises(WatchbillError, match=r"open on another event loop: use app\.sync"):
            await asyncio.to_thread(with_a_loop_of_its_own)
        assert await ends(await app.start(order, 1)) == 2


async def test_steps_may_start_runs_and_wait_for_them(app: App) -> None:
    order = a_shop(app)

    @app.step
    async def delegate(n: int) -> int:
        handle = await app.start(order, n, id="inner")
        result: int = await handle.result()
        return result

    @app.step
    def delegate_sync(n: int) -> int:
        result: int = app.sync.start(order, n, id="inner-sync").result()
        return result

    @app.workflow
    async def wf() -> int:
        return await delegate(1) + await delegate_sync(2)

    async with app.rooms():
        assert await ends(await app.start(wf)) == 6


@pytest.mark.parametrize("how", ["start", "result", "sync", "run"])
async def test_an_app_inside_a_workflow_says_put_it_in_a_step_and_nothing_stops(app: App, how: str) -> None:
    order = a_shop(app)

    @app.workflow
    async def wf() -> None:
        if how == "start":
            await app.start(order, 1)
        elif how == "result":
            await handle.result()
        elif how == "sync":
            app.sync.start(order, 1)
        else:
            app.run(order, 1)

    async with app.rooms():
        handle = await app.start(order, 1)
        says = "event loop is running here" if how == "run" else "put it in a step"
        with pytest.raises(RunFailed, match=says):
            await ends(await app.start(wf))
        assert await ends(await app.start(order, 2)) == 4


# --- held


async def test_a_run_that_waits_for_nothing_is_held_and_told_once(app: App, ear: Ear) -> None:
    @app.workflow
    async def stuck() -> None:
        await asyncio.Event().wait()

    order = a_shop(app)
    async with app.rooms():
        handle = await app.start(stuck, id="s")
        [event] = await ear.hears("run.held", "s")
        assert event.cause == "waits for nothing"
        status = await handle.status()
        assert status.held is not None
        assert status.held.startswith("waits for nothing")
        assert status.health == "waiting_for_person"
        with pytest.raises(TimeoutError):
            await handle.result(timeout=0.02)  # result() waits
        assert await ends(await app.start(order, 1)) == 2  # and everything else goes on
    assert len(ear.of("run.held")) == 1


def test_run_raises_for_what_waits_for_nothing(app: App) -> None:
    @app.workflow
    async def stuck() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RunHeld, match="waits for nothing") as held:
        app.run(stuck, id="s")
    assert held.value.id == "s"
    with pytest.raises(RunHeld, match="waits for nothing"):
        app.run(stuck, id="s")


async def test_waiting_for_a_held_run_costs_nothing(app: App, ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.workflow
    async def stuck() -> None:
        await asyncio.Event().wait()

    order = a_shop(app)
    async with app.rooms():
        handle = await app.start(stuck, id="s")
        await ear.hears("run.held", "s")
        waiting = asyncio.create_task(handle.result())
        reads = []
        client = app._hall._store.client  # type: ignore[attr-defined]
        endings = client.endings

        async def counted(nums: Any) -> Any:
            reads.append(nums)
            return await endings(nums)

        monkeypatch.setattr(client, "endings", counted)
        await ends(await app.start(order, 1))
        await handle.cancel()
        with pytest.raises(WatchbillError):
            await waiting
        assert len(reads) < 10


# --- deleting


async def test_deletion_of_a_run_is_logged_and_kept_in_the_logbook(
    app: App, ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    @app.workflow
    async def sleeps() -> None:
        await sleep("1h")

    hall = cast(Hall, app._hall)
    async with app.rooms():
        handle = await app.start(a_shop(app), 1, id="r")
        await ends(handle)
        live = await app.start(sleeps, id="live")
        with pytest.raises(RunLive):
            await hall.delete("live", "too slow", by="ada")
        await hall.delete("r", "wrong prices", by="ada")
        with pytest.raises(RunNotFound):
            await handle.status()
        with pytest.raises(RunNotFound):
            await hall.delete("r", "once more", by="ada")
        assert [(event.run, event.actor, event.cause, event.note) for event in ear.of("run.deleted")] == [
            ("r", "ada", "ada", "wrong prices")
        ]
        [kept] = await app.logbook()
        assert (kept.by, kept.kind, kept.name, kept.act, kept.detail) == ("ada", "run", "r", "delete", "order")
        assert kept.reason == "wrong prices"
        await live.cancel()
    assert "run.deleted r (ada): wrong prices" in [record.getMessage() for record in caplog.records]


# --- addresses


def test_an_empty_variable_is_no_address(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WATCHBILL_STORE", "")
    app = App()
    assert app.run(a_shop(app), 1) == 2
    assert (folder / "watchbill.db").exists()


def test_an_empty_address_is_refused() -> None:
    app = App("")
    with pytest.raises(StoreError, match="store '': it names no kind of store; use sqlite:///"):
        app.run(a_shop(app), 1)
