"""Large values: turns are bounded in bytes and shared between runs, and steps do not run ahead of what is written."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.rooms.scene import Ear, becomes, ends
from watchbill import App, attempt, receive
from watchbill.bounds import BOUNDS
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.scheduler.division import size_of
from watchbill.store.postgres.scheduler import PostgresScheduler
from watchbill.store.protocol import Turn, TurnAnswer
from watchbill.store.sqlite.scheduler import SqliteScheduler

KIB = 1 << 10
AT_ONCE, OF_A_RUN = 32 * KIB, 8 * KIB


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let kilobytes be what megabytes are else."""
    small = BOUNDS._replace(
        at_once=AT_ONCE, of_a_run=OF_A_RUN, large=KIB, kept=AT_ONCE, kept_of_a_run=2 * OF_A_RUN, divided_from=KIB
    )
    monkeypatch.setattr(SystemEnv, "bounds", small)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[Turn], None]]:
    """Call back before each turn is written, on whatever store."""
    heard: list[Callable[[Turn], None]] = []

    def watched(kind: Any) -> None:
        write = kind.turn

        async def turn(self: Any, turn: Turn, *, again: bool = False) -> TurnAnswer:
            for hear in heard:
                hear(turn)
            answer: TurnAnswer = await write(self, turn, again=again)
            return answer

        monkeypatch.setattr(kind, "turn", turn)

    watched(SqliteScheduler)
    watched(PostgresScheduler)
    return heard


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("threads", [False, True])
async def test_turns_are_bounded_and_steps_do_not_run_ahead(
    app: App, turns: list[Callable[[Turn], None]], *, threads: bool
) -> None:
    size, count, begun, written, ahead, sizes = 4 * KIB, 60, 0, 0, 0, []

    def body(n: int) -> str:
        nonlocal begun, ahead
        begun += 1
        ahead = max(ahead, begun - written)
        return f"{n}".ljust(size - 2)

    if threads:

        @app.step(name="large")
        def large(n: int) -> str:
            return body(n)

    else:

        @app.step(name="large")
        async def large(n: int) -> str:
            return body(n)

    @app.workflow
    async def gathers() -> int:
        return sum(map(len, await asyncio.gather(*(large(n) for n in range(count)))))

    def hear(turn: Turn) -> None:
        nonlocal written
        written += sum(entry[3].startswith("large") for entry in turn.journal)
        sizes.append(size_of(turn))

    turns.append(hear)
    async with app.rooms():
        assert await ends(await app.start(gathers)) == count * (size - 2)
    assert max(sizes) <= OF_A_RUN + KIB  # one run: its share, and its own small things
    assert written == begun == count
    # As many as may wait, those of the turn under way, and a thread each that had begun when the last one was full.
    most = 2 * OF_A_RUN // size + OF_A_RUN // size + (32 if threads else 0)
    assert ahead <= most < count


@pytest.mark.usefixtures("small_bounds")
async def test_rows_of_running_attempts_are_written_in_portions(app: App, turns: list[Callable[[Turn], None]]) -> None:
    """All of them have something to say at one moment, and their arguments are large."""
    count, rows, sizes, go = 20, set[str](), list[int](), asyncio.Event()

    @app.step
    async def lasting(n: int, given: str) -> int:
        attempt().progress(n, count)
        await go.wait()
        return n

    @app.workflow
    async def gathers() -> int:
        return len(await asyncio.gather(*(lasting(n, "x" * 4 * KIB) for n in range(count))))

    def hear(turn: Turn) -> None:
        rows.update(row.call for row in turn.attempts)
        sizes.append(size_of(turn))
        if len(rows) == count:
            go.set()

    turns.append(hear)
    async with app.rooms():
        assert await ends(await app.start(gathers)) == count
    assert max(sizes) <= OF_A_RUN


@pytest.mark.usefixtures("small_bounds")
async def test_messages_to_one_run_are_journalled_in_portions(app: App, turns: list[Callable[[Turn], None]]) -> None:
    """All of them are there when the run begins."""
    count, sizes = 20, list[int]()

    @app.workflow
    async def reads() -> int:
        return sum([len(await receive("post", str)) for _ in range(count)])

    turns.append(lambda turn: sizes.append(size_of(turn)))
    run = await app.start(reads)
    for n in range(count):
        await run.send("post", f"{n}".ljust(3 * KIB))
    async with app.rooms():
        assert await ends(run) == count * 3 * KIB
    assert max(sizes) <= OF_A_RUN


@pytest.mark.usefixtures("small_bounds")
async def test_small_run_beside_large_ones_needs_a_few_turns(app: App, turns: list[Callable[[Turn], None]]) -> None:
    written: list[Turn] = []

    @app.step
    async def large(n: int) -> str:
        return "x" * 6 * KIB

    @app.step
    async def small(n: int) -> int:
        return n

    @app.workflow
    async def gathers() -> int:
        return len(await asyncio.gather(*(large(n) for n in range(40))))

    @app.workflow
    async def beside() -> int:
        return await small(1) + await small(2)

    turns.append(written.append)
    async with app.rooms():
        runs = await app.start_many([(gathers,) for _ in range(3)])
        await becomes(runs[0], lambda status: status.state == "running")
        began = len(written)
        assert await ends(await app.start(beside)) == 3
        assert len(written) - began < 40  # the large ones need at least as many
        assert [await ends(run) for run in runs] == [40, 40, 40]
    assert max(map(size_of, written)) <= AT_ONCE


@pytest.mark.usefixtures("small_bounds")
async def test_turn_that_is_not_answered_is_divided_and_a_run_that_is_too_much_is_held(
    app: App, ear: Ear, turns: list[Callable[[Turn], None]]
) -> None:
    """The server hangs up at turns that are too large for it, and answers to all others."""
    at_most, both, sent = 6 * KIB, asyncio.Barrier(2), 0

    @app.step
    async def large(size: int) -> str:
        if size < at_most:
            await both.wait()  # so that the results of two runs come in one turn
        return "x" * size

    @app.workflow
    async def makes(size: int) -> int:
        return len(await large(size))

    def hear(turn: Turn) -> None:
        nonlocal sent
        if size_of(turn) > at_most:
            sent += 1
            raise StoreUnreachableError("store 'here' did not answer: the server hung up")

    turns.append(hear)
    async with app.rooms():
        pair = await app.start_many([(makes, (4 * KIB,)), (makes, (4 * KIB,))])
        assert [await ends(run) for run in pair] == [4 * KIB, 4 * KIB]
        assert sent % 3 == 0  # each of them was sent three times
        run = await app.start(makes, 7 * KIB, id="too-large")
        status = await becomes(run, lambda status: status.held)
        assert "the store refuses what it would write" in (status.held or "")
        assert "7,174 bytes were sent 3 times: store 'here' did not answer: the server hung up" in (status.held or "")
        pair = await app.start_many([(makes, (4 * KIB,)), (makes, (4 * KIB,))])
        assert [await ends(run) for run in pair] == [4 * KIB, 4 * KIB]
        turns.clear()
        await run.retry()
        assert await ends(run) == 7 * KIB
    assert ear.of("shards.lost") == []


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("size", [6 * KIB, 300 * KIB])
async def test_runs_with_large_values_are_brought_back_in_portions(kept: str, size: int) -> None:
    """By whoever takes their shards next, and by what wakes them: their arguments, journals and messages are large."""

    def program() -> tuple[App, Any]:
        app = App(kept)

        @app.step
        async def large(size: int) -> str:
            return "x" * size

        @app.workflow
        async def waits(given: str) -> int:
            before = sum([len(await large(size)) for _ in range(3)])
            return before + len(given) + len(await receive("go", str))

        return app, waits

    app, waits = program()
    async with app.rooms():
        runs = [await app.start(waits, "y" * size, id=f"r-{n}") for n in range(8)]
        for run in runs:
            await becomes(run, lambda status: status.state == "waiting")
    await app.close()
    app, waits = program()
    for n in range(8):
        await app.handle(f"r-{n}").send("go", "z" * size)
    async with app.rooms():
        for n in range(8):
            assert await ends(app.handle(f"r-{n}")) == 5 * size
