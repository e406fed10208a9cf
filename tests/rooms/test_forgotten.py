"""A store that has lost its newest entries: no journal gets a hole, and what was lost is done again."""

import asyncio
import contextlib
import sqlite3
from typing import cast

import pytest

from tests.rooms.scene import Ear, becomes, ends
from tests.store.postgres import by_hand, emptied
from watchbill import App, RunNotFound, receive
from watchbill.app.hall import Hall
from watchbill.flow.workflows import Workflow

STEPS = 5


async def forget(url: str, entries: str, table: str = "journal") -> None:
    """Delete rows by hand, of every run, as if they had never been committed."""
    sql = f"DELETE FROM watchbill.{table} WHERE {entries}"
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
