"""A run that cannot go on leaves many results or messages in the store: all other runs of its shard go on."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from tests.rooms.refusing import refusing
from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import App, Handle, Retry, RunCancelled, attempt, receive
from watchbill.model.run import SHARDS_PER_REGION, shard_number
from watchbill.scheduler.scheduler import LOOK_LIMIT

CROWD = 2 * LOOK_LIMIT // SHARDS_PER_REGION  # twice as many as a look reads of one shard


def neighbours(id: str) -> Iterator[str]:
    """Give ids of other runs that have the shard of this one."""
    return (one for n in itertools.count() if shard_number(one := f"n-{n}") == shard_number(id))


class Program:
    """Workflows whose steps are executed by agents, and get rows for that."""

    def __init__(self, app: App, first: str = "first", crowd: str = "crowd") -> None:
        self.done: list[int] = []
        self.failed: set[int] = set()

        @app.step(name=first)
        async def begin() -> None: ...

        @app.step(needs=["gpu"])
        async def render(n: int) -> int:
            self.done.append(n)
            return n

        @app.step(retry=Retry(2, backoff="1ms"))
        async def flaky(n: int) -> int:
            if n not in self.failed:
                self.failed.add(n)
                raise ConnectionError("once more")  # so the next attempt has a row
            return n

        @app.workflow(name=crowd)
        async def many() -> int:
            await begin()
            return sum(await asyncio.gather(*(render(n) for n in range(CROWD))))

        @app.workflow
        async def single(n: int) -> int:
            return await flaky(n)

        self.crowd, self.single = many, single

    async def rendered(self) -> None:
        """Wait until all steps of the crowd were executed."""
        async with asyncio.timeout(LONG):
            while len(self.done) < CROWD:
                await asyncio.sleep(LOOK_EVERY)


async def waits_for_agents(run: Handle[int]) -> None:
    """Wait until all steps of a crowd have their rows: one turn inserts them."""
    await becomes(run, lambda status: any(step.state == "ready" for step in status.steps))


async def test_results_of_a_diverged_run_hide_no_other_results_of_its_shard(kept: str) -> None:
    before, after, repaired = App(kept), App(kept), App(kept)
    program = Program(before)
    async with before.rooms():
        run = await before.start(program.crowd, id="r")
        await waits_for_agents(run)
    program, ear, others = Program(after, first="other"), Ear(after), neighbours("r")
    async with after.rooms(needs="gpu"):
        await ear.hears("run.diverged", "r")
        await program.rendered()
        for n in range(3):
            assert await ends(await after.start(program.single, n, id=next(others))) == n
    program = Program(repaired)
    async with repaired.rooms(needs="gpu"):
        run = repaired.handle("r")
        await run.retry()
        assert await ends(run) == sum(range(CROWD))
        assert program.done == []


async def test_results_of_a_run_whose_code_is_missing_hide_no_other_results_of_its_shard(kept: str) -> None:
    before, after, again = App(kept), App(kept), App(kept)
    program = Program(before)
    async with before.rooms():
        await waits_for_agents(await before.start(program.crowd, id="r"))
    program, others = Program(after, crowd="another"), neighbours("r")
    async with after.rooms(needs="gpu"):
        await program.rendered()
        for n in range(3):
            assert await ends(await after.start(program.single, n, id=next(others))) == n
    program = Program(again)
    async with again.rooms(needs="gpu"):
        assert await ends(again.handle("r")) == sum(range(CROWD))
        assert program.done == []


async def test_messages_to_a_run_whose_code_is_missing_hide_no_other_messages_of_its_shard(kept: str) -> None:
    before, after, again = App(kept), App(kept), App(kept)

    async def gather_all() -> list[int]:
        return [await receive("n", int) for _ in range(CROWD)]

    async with before.rooms():
        run = await before.start(before.workflow(name="gatherer")(gather_all), id="r")
        await becomes(run, lambda status: status.waiting_for)

    @after.workflow
    async def single() -> int:
        return await receive("n", int)

    others = neighbours("r")
    async with after.rooms():
        for n in range(CROWD):
            await after.handle("r").send("n", n)
        for n in range(3):
            other = await after.start(single, id=next(others))
            await becomes(other, lambda status: status.waiting_for)
            await other.send("n", n)
            assert await ends(other) == n
    again.workflow(name="gatherer")(gather_all)
    async with again.rooms():
        assert await ends(again.handle("r")) == list(range(CROWD))


async def test_cancelled_run_that_had_diverged_leaves_no_rows_behind(kept: str) -> None:
    before, after = App(kept), App(kept)
    program = Program(before)
    async with before.rooms():
        await waits_for_agents(await before.start(program.crowd, id="r"))
    program, ear = Program(after, first="other"), Ear(after)
    async with after.rooms(needs="gpu"):
        await ear.hears("run.diverged", "r")
        await program.rendered()
        run: Handle[int] = after.handle("r")
        await run.cancel("enough")
        with pytest.raises(RunCancelled):
            await ends(run)
        store = after._hall._store  # type: ignore[attr-defined]
        assert store is not None
        async with asyncio.timeout(LONG):
            while (record := await store.client.record("default", "r")) is not None and record.attempts:
                await asyncio.sleep(LOOK_EVERY)
        assert record is not None


async def test_results_of_a_run_that_cannot_even_be_held_hide_no_others(
    app: App, ear: Ear, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchbill.scheduler.refusals.WAITS_FOR", 50_000)
    program, others, go = Program(app), neighbours("r"), asyncio.Event()
    begun: list[int] = []

    @app.step(retry=Retry(2, backoff="1ms"))
    async def late(n: int) -> int:
        if attempt().number == 1:
            raise ConnectionError("once more")
        begun.append(n)
        await go.wait()
        return n

    @app.workflow
    async def many() -> int:
        return sum(await asyncio.gather(*(late(n) for n in range(CROWD))))

    async with app.rooms():
        run = await app.start(many, id="r")
        async with asyncio.timeout(LONG):
            while len(begun) < CROWD:
                await asyncio.sleep(LOOK_EVERY)
        async with (
            refusing(url, "run", "UPDATE", "NEW.id = 'r'"),  # lifted last: else the run could be held in between
            refusing(url, "journal", "INSERT", "NEW.key LIKE 'late%'"),
        ):
            go.set()
            await ear.hears("run.held", "r", times=2)
            for n in range(3):
                assert await ends(await app.start(program.single, n, id=next(others))) == n
        assert await ends(run) == sum(range(CROWD))


async def test_messages_to_a_run_that_breaks_when_it_is_loaded_hide_no_other_messages_of_its_shard(kept: str) -> None:
    before, after, again = App(kept), App(kept), App(kept)

    async def gather_all() -> list[int]:
        return [await receive("n", int) for _ in range(CROWD)]

    async with before.rooms():
        run = await before.start(before.workflow(name="gatherer")(gather_all), id="r")
        await becomes(run, lambda status: status.waiting_for)

    @after.workflow(name="gatherer")
    async def broken() -> list[int]:
        raise SystemExit("no")

    @after.workflow
    async def single() -> int:
        return await receive("n", int)

    others = neighbours("r")
    async with after.rooms():
        for n in range(CROWD):
            await after.handle("r").send("n", n)
        await becomes(after.handle("r"), lambda status: status.held)
        for n in range(3):
            other = await after.start(single, id=next(others))
            await becomes(other, lambda status: status.waiting_for)
            await other.send("n", n)
            assert await ends(other) == n
    again.workflow(name="gatherer")(gather_all)
    async with again.rooms():
        assert await ends(again.handle("r")) == list(range(CROWD))
