"""A store that has lost its newest entries: no journal gets a hole, and what was lost is done again."""

import asyncio
import contextlib
import itertools
import sqlite3
from typing import cast

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from tests.store.postgres import by_hand, emptied
from watchbill import App, Done, Handle, RunNotFound, RunStatus, RunUndone, publish, receive, sleep
from watchbill.app.hall import Hall
from watchbill.flow.workflows import Workflow
from watchbill.model.run import shard_number
from watchbill.model.states import RunState

STEPS = 5
OURS = "application_name = 'watchbill' AND pid <> pg_backend_pid()"


async def forget(url: str, entries: str, table: str = "journal") -> None:
    """Delete rows by hand, of every run, as if they had never been committed."""
    await change(url, f"DELETE FROM watchbill.{table} WHERE {entries}")


async def change(url: str, sql: str) -> None:
    """Run a statement beside the rooms."""
    if not url.startswith("sqlite"):
        await by_hand(url, sql)
        return
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as hand:
        hand.execute(sql.replace("watchbill.", ""))


def a_tally(url: str, done: list[int]) -> tuple[App, Workflow[[], str]]:
    app = App(url)

    @app.step
    async def note(n: int) -> int:
        done.append(n)
        return n

    @app.workflow
    async def tally() -> str:
        for n in range(STEPS):
            await note(n)
        said: str = await receive("go")
        await note(STEPS)
        return said

    return app, tally


def a_listener(app: App) -> Workflow[[], None]:
    """A workflow that does nothing but receive messages: by the next one it notices that the store has lost some."""

    @app.workflow
    async def listen() -> None:
        for n in itertools.count(1):
            await receive("next")
            publish("heard", n)

    return listen


async def has_heard(listening: Handle[None], messages: int) -> None:
    """Wait until a listener has received so many messages."""
    async with asyncio.timeout(LONG):
        while (await listening.published()).get("heard") != messages:
            await asyncio.sleep(LOOK_EVERY)


async def numbers(app: App, id: str) -> list[int]:
    record = await cast(Hall, app._hall).record(id)
    return [entry.seq for entry in record.journal]


async def test_a_living_scheduler_does_again_what_the_store_has_lost(kept: str) -> None:
    done: list[int] = []
    app, tally = a_tally(kept, done)
    ear = Ear(app)
    async with app.rooms():
        handles = [await app.start(tally, id=f"t-{n}") for n in range(3)]
        for handle in handles:
            await becomes(handle, lambda status: status.waiting_for and "go" in status.waiting_for)
        assert sorted(done) == sorted([*range(STEPS)] * 3)
        await forget(kept, "seq > 2")
        for handle in handles:
            await handle.send("go", "on")
        assert [await ends(handle) for handle in handles] == ["on"] * 3
        for handle in handles:
            seqs = await numbers(app, handle.id)
            assert seqs == [*range(1, len(seqs) + 1)], "the journal has a hole"
    assert sorted(done) == sorted([*range(STEPS), *range(2, STEPS), STEPS] * 3), "only what was lost is done again"
    assert [event.cause for event in ear.of("shards.lost")] == ["forgotten"]
    ear.close()


@pytest.mark.usefixtures("acts_no_longer")
async def test_an_attempt_whose_row_was_lost_after_its_call_was_cancelled_is_undone(kept: str) -> None:
    app = App(kept)
    ear = Ear(app)
    did: list[str] = []
    begun, asked_to_stop, stops = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.step
    async def book(what: str) -> str:
        did.append(f"book {what}")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            asked_to_stop.set()
            await stops.wait()
        return what

    @book.undo
    async def unbook(booked: str | None, what: str) -> None:
        did.append(f"unbook {what}")

    @app.workflow
    async def trip() -> None:
        booking = asyncio.create_task(book("train"))
        await receive("begun")
        await sleep(0.01)
        booking.cancel()
        await receive("go")
        raise ValueError("no hotel")

    assert shard_number("o-1") != shard_number("t-1")
    async with app.rooms():
        noticing = await app.start(a_listener(app), id="o-1")
        run = await app.start(trip, id="t-1")
        await begun.wait()
        await run.send("begun", None)
        await becomes(run, lambda status: status.waiting_for and "go" in status.waiting_for)
        await asked_to_stop.wait()
        for n in (1, 2):
            await noticing.send("next", n)
        await has_heard(noticing, 2)
        # The store loses that the call was cancelled, and the row of its attempt, which had begun before.
        await forget(kept, "seq > 1")
        await forget(kept, "true", "attempt")
        await change(kept, f"UPDATE watchbill.run SET status = {RunState.RUNNING:d} WHERE id = 't-1'")
        await noticing.send("next", 3)
        await ear.hears("shards.lost")
        stops.set()
        await run.send("go", None)
        with pytest.raises(RunUndone):
            await ends(run)
    assert did == ["book train", "unbook train"]
    ear.close()


def waits_for_begin(status: RunStatus) -> bool:
    return status.waiting_for is not None and "begin" in status.waiting_for


class Till:
    """A payment that must not happen twice, and what was done about it."""

    def __init__(self, app: App) -> None:
        self.did: list[str] = []

        async def was_paid(what: str) -> Done:
            self.did.append(f"asked about {what}")
            return Done(what)

        @app.step(idempotent=False, probe=was_paid)
        async def pay(what: str) -> str:
            self.did.append(f"paid {what}")
            return what

        @app.workflow
        async def buy(what: str) -> str:
            await receive("begin")
            paid = await pay(what)
            return f"{paid} {await receive('go')}"

        @app.workflow
        async def buy_at_once(what: str) -> str:
            await receive("begin")
            return await pay(what)

        @app.workflow
        async def buy_and_sleep(what: str) -> str:
            await receive("begin")
            paid = await pay(what)
            await sleep(3600)
            return paid

        @app.workflow
        async def buy_now(order: int) -> None:
            await pay(str(order))
            await sleep(3600)

        self.buy, self.buy_at_once, self.buy_and_sleep, self.buy_now = buy, buy_at_once, buy_and_sleep, buy_now

    async def sell(self, app: App, workflow: Workflow[[str], str], id: str) -> Handle[str]:
        """Start a run that pays, and wait until it goes on no further."""
        run = await app.start(workflow, "train", id=id)
        await run.send("begin", None)
        await becomes(run, lambda status: status.state in ("waiting", "completed") and not waits_for_begin(status))
        return run

    async def lose(self, url: str, id: str, *, all_of_it: bool = False) -> None:
        """Have the store lose that a run has paid; `all_of_it`: every entry of its journal."""
        before = f"UPDATE watchbill.run SET status = {RunState.RUNNING:d}, wake_at = NULL WHERE id = '{id}'"
        await forget(url, "seq > 0" if all_of_it else "seq > 1")
        if url.startswith("sqlite"):
            await change(url, before)
        else:  # a trigger keeps what has ended as it is
            await change(url, f"DO $$ BEGIN SET LOCAL session_replication_role = replica; {before}; END $$")


@pytest.mark.usefixtures("acts_no_longer")
async def test_a_payment_that_was_lost_with_the_newest_entries_is_asked_about(kept: str) -> None:
    app = App(kept)
    ear, till, listen = Ear(app), Till(app), a_listener(app)
    assert shard_number("o-1") != shard_number("t-1")
    async with app.rooms():
        noticing = await app.start(listen, id="o-1")
        for n in (1, 2):
            await noticing.send("next", n)
        await has_heard(noticing, 2)
        run = await till.sell(app, till.buy, "t-1")
        await till.lose(kept, "t-1")
        await noticing.send("next", 3)  # the turn of another run is the one that the store refuses
        await ear.hears("shards.lost")
        await run.send("go", "ticket")
        assert await ends(run) == "train ticket"
    assert till.did == ["paid train", "asked about train"]
    ear.close()


def forgetful(url: str) -> str:
    """The address of a server that may lose commits in any crash: so each new connection counts as another server."""
    return f"{url}{'&' if '?' in url else '?'}synchronous_commit=off"


async def fail_over(url: str) -> None:
    await change(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}")


@pytest.mark.usefixtures("acts_no_longer")
@pytest.mark.parametrize("kind", ["buy", "buy_at_once", "buy_and_sleep"])  # in memory; ended; has left memory
async def test_a_scheduler_with_nothing_to_write_notices_what_another_server_has_lost(
    postgres_url: str, kind: str
) -> None:
    await emptied(postgres_url)
    app = App(forgetful(postgres_url))
    ear, till = Ear(app), Till(app)
    async with app.rooms():
        await till.sell(app, getattr(till, kind), "t-1")
        await till.lose(postgres_url, "t-1")
        await fail_over(postgres_url)
        assert [event.cause for event in await ear.hears("shards.lost")] == ["forgotten"]
        async with asyncio.timeout(LONG):
            while len(till.did) < 2:
                await asyncio.sleep(LOOK_EVERY)
    assert till.did == ["paid train", "asked about train"]
    ear.close()


@pytest.mark.parametrize("kind", ["buy", "buy_at_once", "buy_and_sleep"])
async def test_nothing_is_lost_with_a_server_that_has_lost_nothing(postgres_url: str, kind: str) -> None:
    await emptied(postgres_url)
    app = App(forgetful(postgres_url))
    ear, till = Ear(app), Till(app)
    async with app.rooms():
        await till.sell(app, getattr(till, kind), "t-1")
        await fail_over(postgres_url)
        assert [event.cause for event in await ear.hears("shards.lost")] == ["moved"]
        await till.sell(app, till.buy_at_once, "t-2")
    assert till.did == ["paid train"] * 2
    assert not ear.of("step.lost")
    ear.close()


async def test_a_rewind_repairs_a_journal_with_a_hole(kept: str) -> None:
    done: list[int] = []
    app, tally = a_tally(kept, done)
    async with app.rooms():
        handle = await app.start(tally, id="t-1")
        await becomes(handle, lambda status: status.waiting_for and "go" in status.waiting_for)
    await forget(kept, "seq IN (3, 4)")
    async with app.rooms():
        await handle.send("go", "on")
        status = await becomes(handle, lambda status: status.state == "diverged")
        assert status.held is not None
        assert "the journal lacks entries 3 to 4" in status.held
        said = " ".join((await handle.explain()).sentences)
        assert "`watchbill run rewind t-1 note.2`" in said, said
        assert "fitting code" not in said
        await handle.rewind("note.2")
        assert await ends(handle) == "on"
        seqs = await numbers(app, "t-1")
        assert seqs == [1, 2, *range(5, seqs[-1] + 1)]
    assert done == [*range(STEPS), *range(1, STEPS + 1)]


async def test_a_run_with_a_hole_at_its_first_entry_can_be_cancelled(kept: str) -> None:
    app, tally = a_tally(kept, [])
    async with app.rooms():
        handle = await app.start(tally, id="t-1")
        await becomes(handle, lambda status: status.waiting_for and "go" in status.waiting_for)
    await forget(kept, "seq IN (1, 2)")
    async with app.rooms():
        await handle.send("go", "on")
        await becomes(handle, lambda status: status.state == "diverged")
        assert "`watchbill run cancel t-1`" in " ".join((await handle.explain()).sentences)
        await handle.cancel()
        await becomes(handle, lambda status: status.state == "cancelled")


async def test_a_client_that_waits_for_a_run_that_was_lost_is_told(postgres_url: str) -> None:
    """A file cannot lose a run under its owner: nobody promotes a standby of it."""
    kept = postgres_url
    await emptied(kept)
    app, tally = a_tally(kept, [])
    async with app.rooms():
        handle = await app.start(tally, id="t-1")
        await becomes(handle, lambda status: status.waiting_for and "go" in status.waiting_for)
        waits = asyncio.create_task(ends(handle))
        await forget(kept, "seq > 0")
        await forget(kept, "true", "run")
        with pytest.raises(RunNotFound):
            await waits
        with pytest.raises(RunNotFound):
            await handle.status()
        again = await app.start(tally, id="t-1")
        await becomes(again, lambda status: status.waiting_for and "go" in status.waiting_for)
        await again.send("go", "on")
        assert await ends(again) == "on"
