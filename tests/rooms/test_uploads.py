"""Very large results: written in chunks before their turn, beside the turns of others, and nothing is left behind."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tests.keys import FIRST
from tests.rooms.refusing import refusing
from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from tests.store.postgres import by_hand
from watchbill import App, RunCancelled, receive
from watchbill.bounds import BOUNDS
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.model.upload import Upload, Uploaded
from watchbill.scheduler.division import size_of
from watchbill.store.open import open_store
from watchbill.store.postgres.scheduler import PostgresScheduler
from watchbill.store.protocol import Turn, TurnAnswer
from watchbill.store.sqlite.scheduler import SqliteScheduler
from watchbill.testing.envs import SimEnv
from watchbill.testing.watch import Watch

KIB = 1 << 10
SIZE = 100 * KIB
SMALL = BOUNDS._replace(uploaded_from=4 * KIB, chunk=KIB, large=KIB, kept=32 * KIB, kept_of_a_run=16 * KIB)
Wait = Callable[[Upload], Awaitable[None]]


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let kilobytes be what megabytes are else."""
    monkeypatch.setattr(SystemEnv, "bounds", SMALL)


class Doors:
    """What went through the doors of the store; a test may wait at them."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.uploads: list[Upload] = []
        self.discards: list[Upload] = []
        self.before: Wait | None = None  # called before an upload
        self.after: Wait | None = None  # called after it


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> Doors:
    """Look at what schedulers write, on whatever store."""
    doors = Doors()

    def watched(kind: Any) -> None:
        write, send, delete = kind.turn, kind.upload, kind.discard

        async def turn(self: Any, turn: Turn, *, again: bool = False) -> TurnAnswer:
            doors.turns.append(turn)
            answer: TurnAnswer = await write(self, turn, again=again)
            return answer

        async def upload(self: Any, upload: Upload, body: bytes) -> Uploaded | None:
            doors.uploads.append(upload)
            if doors.before is not None:
                await doors.before(upload)
            answer: Uploaded | None = await send(self, upload, body)
            if doors.after is not None:
                await doors.after(upload)
            return answer

        async def discard(self: Any, upload: Upload) -> None:
            await delete(self, upload)
            doors.discards.append(upload)

        monkeypatch.setattr(kind, "turn", turn)
        monkeypatch.setattr(kind, "upload", upload)
        monkeypatch.setattr(kind, "discard", discard)

    watched(SqliteScheduler)
    watched(PostgresScheduler)
    return doors


async def left(url: str) -> dict[str, int]:
    """Count what is left of large bodies."""
    counts = {}
    for table in ("blob", "chunk", "upload"):
        sql = f"SELECT count(*) FROM watchbill.{table}"
        if url.startswith("postgresql"):
            [(counts[table],)] = await by_hand(url, sql)
        else:
            with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
                [(counts[table],)] = file.execute(sql.replace("watchbill.", ""))
    return counts


async def becomes_true(asks: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LONG):
        while not await asks():
            await asyncio.sleep(LOOK_EVERY)


def gathering(app: App) -> Any:
    @app.step
    async def large(n: int) -> str:
        return chr(97 + n) * SIZE

    @app.workflow
    async def gathers(count: int) -> list[int]:
        return [len(text) + ord(text[0]) for text in await asyncio.gather(*(large(n) for n in range(count)))]

    return gathers


@pytest.mark.parametrize("keys", [None, FIRST])
@pytest.mark.parametrize("threads", [False, True])
async def test_large_results_are_uploaded_and_their_turns_are_small(
    kept: str, doors: Doors, keys: str | None, *, threads: bool
) -> None:
    def program() -> tuple[App, Any]:
        app = App(kept, keys=keys)

        if threads:

            @app.step(name="large")
            def large(n: int) -> str:
                return chr(97 + n) * SIZE

        else:

            @app.step(name="large")
            async def large(n: int) -> str:
                return chr(97 + n) * SIZE

        @app.workflow
        async def gathers() -> list[str]:
            found = await asyncio.gather(*(large(n) for n in range(5)))
            await receive("go")
            return [text[0] + str(len(text)) for text in found]

        return app, gathers

    app, gathers = program()
    async with app.rooms():
        run = await app.start(gathers, id="one")
        await becomes(run, lambda status: status.state == "waiting")
    assert await left(kept) == {"blob": 5, "chunk": 5 * 101, "upload": 0}
    assert max(map(size_of, doors.turns)) < 8 * KIB
    assert sum(isinstance(entry[-1], Uploaded) for turn in doors.turns for entry in turn.journal) == 5
    await app.close()
    app, gathers = program()  # replayed, by what was uploaded
    async with app.rooms():
        await app.handle("one").send("go", None)
        assert await ends(app.handle("one")) == [f"{chr(97 + n)}{SIZE}" for n in range(5)]
    assert len(doors.uploads) == 5


async def test_runs_beside_an_upload_are_written_meanwhile(app: App, doors: Doors) -> None:
    gathers, goes_on = gathering(app), asyncio.Event()

    @app.step
    async def small(n: int) -> int:
        return n + 1

    @app.workflow
    async def beside(n: int) -> int:
        return await small(await small(n))

    async def waits(upload: Upload) -> None:
        await goes_on.wait()

    doors.before = waits
    async with app.rooms():
        run = await app.start(gathers, 3)
        await becomes_true(lambda: _true(doors.uploads))
        for n in range(5):
            assert await ends(await app.start(beside, n)) == n + 2
        assert len(doors.uploads) == 1  # and its run begins nothing more: one result is in memory
        goes_on.set()
        assert await ends(run) == [SIZE + 97, SIZE + 98, SIZE + 99]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_upload_of_a_cancelled_run_is_discarded(app: App, url: str, doors: Doors, when: str) -> None:
    gathers, goes_on = gathering(app), asyncio.Event()

    async def waits(upload: Upload) -> None:
        await goes_on.wait()

    setattr(doors, when, waits)
    async with app.rooms():
        run = await app.start(gathers, 1)
        await becomes_true(lambda: _true(doors.uploads))
        await run.cancel()
        with pytest.raises(RunCancelled):
            await ends(run)
        goes_on.set()
        await becomes_true(lambda: _true(doors.discards))
        assert await left(url) == {"blob": 0, "chunk": 0, "upload": 0}


async def test_stop_during_an_upload_keeps_the_result_and_leaves_no_garbage(kept: str, doors: Doors) -> None:
    app = App(kept)
    gathers, never = gathering(app), asyncio.Event()

    async def waits(upload: Upload) -> None:
        await never.wait()

    doors.after = waits
    async with app.rooms():
        run = await app.start(gathers, 1, id="one")
        await becomes_true(lambda: _true(doors.uploads))
    await app.close()
    assert await left(kept) == {"blob": 0, "chunk": 0, "upload": 0}  # it is small enough for its row
    again = App(kept)
    gathering(again)
    async with again.rooms():
        assert await ends(again.handle("one")) == [SIZE + 97]
    assert len(doors.uploads) == 1
    assert run.id == "one"


@pytest.mark.parametrize("times", [1, 5])
async def test_upload_without_an_answer_is_sent_again_and_then_its_turn_writes_all(
    app: App, url: str, doors: Doors, times: int
) -> None:
    gathers = gathering(app)

    async def fails(upload: Upload) -> None:
        if len(doors.uploads) <= times:
            raise StoreUnreachableError("store 'here' did not answer")

    doors.after = fails  # all chunks are there, and the answer is lost
    async with app.rooms():
        assert await ends(await app.start(gathers, 1)) == [SIZE + 97]
        assert len({upload.id for upload in doors.uploads}) == 1
        assert len(doors.uploads) == min(times + 1, 3)
        if times > 1:
            await becomes_true(lambda: _true(doors.discards))
    found = await left(url)
    assert found == {"blob": 1, "chunk": 101, "upload": 0} if times == 1 else {"blob": 0, "chunk": 0, "upload": 0}


async def test_store_that_refuses_chunks_gets_the_result_with_its_turn(kept: str, doors: Doors) -> None:
    app = App(kept)
    gathers = gathering(app)
    async with refusing(kept, "chunk", "INSERT", "NEW.n = 7"), app.rooms():
        assert await ends(await app.start(gathers, 2)) == [SIZE + 97, SIZE + 98]
        await becomes_true(lambda: _true(len(doors.discards) == 2))
        assert await left(kept) == {"blob": 0, "chunk": 0, "upload": 0}


async def test_upload_that_the_store_has_lost_makes_the_step_run_again(app: App, url: str, doors: Doors) -> None:
    ran = 0

    @app.step
    async def large() -> str:
        nonlocal ran
        ran += 1
        return "x" * SIZE

    @app.workflow
    async def asks() -> int:
        return len(await large())

    async def loses(upload: Upload) -> None:
        if url.startswith("postgresql"):
            await by_hand(url, "DELETE FROM watchbill.chunk WHERE n = 50")
        else:
            with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as file:
                file.execute("DELETE FROM chunk WHERE n = 50")

    doors.after = loses
    async with app.rooms():
        assert await ends(await app.start(asks)) == SIZE
        assert ran == 2
        assert len(doors.uploads) == 1  # the second attempt has a row: its agent reports it
        await becomes_true(lambda: _true(doors.discards))
        assert await left(url) == {"blob": 0, "chunk": 0, "upload": 0}


@pytest.mark.parametrize("unanswered", [0, 2])
async def test_next_owner_discards_what_a_dead_one_has_uploaded(
    kept: str, doors: Doors, monkeypatch: pytest.MonkeyPatch, unanswered: int
) -> None:
    """Chunks without their turn, as a process leaves them that dies in between; the step runs again."""
    asked = 0

    def slow(kind: Any) -> None:
        read = kind.stale_uploads

        async def stale_uploads(self: Any, shards: Sequence[int]) -> list[Upload]:
            nonlocal asked
            asked += 1
            if asked <= unanswered:
                raise StoreUnreachableError("store 'here' did not answer")
            found: list[Upload] = await read(self, shards)
            return found

        monkeypatch.setattr(kind, "stale_uploads", stale_uploads)

    slow(SqliteScheduler)
    slow(PostgresScheduler)
    app = App(kept)
    gathers = gathering(app)
    run = await app.start(gathers, 1, id="one")
    await app.close()
    store = await open_store(kept, SystemEnv())
    scheduler = store.scheduler
    shards = await scheduler.shards("default", "")
    taken = (await scheduler.take(1, shards, 60 * SECOND)).taken
    row = await store.client.find("default", "one")
    assert row is not None
    term = {lease.shard: lease.term for lease in taken}[row.shard]
    for id in (901, 902):
        assert await scheduler.upload(Upload(row.num, id, row.shard, 1, term), b"x" * SIZE) is not None
    await scheduler.bury([1])
    await store.close()
    assert await left(kept) == {"blob": 0, "chunk": 200, "upload": 2}
    again = App(kept)
    gathering(again)
    async with again.rooms():
        assert await ends(again.handle("one")) == [SIZE + 97]
        await becomes_true(lambda: _true(len(doors.discards) == 2))
        assert await left(kept) == {"blob": 1, "chunk": 101, "upload": 0}
    assert run.id == "one"


def test_run_with_uploads_comes_to_its_end_whenever_its_process_dies(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    larger = SMALL._replace(chunk=16 * KIB, kept=1_000 * KIB, kept_of_a_run=1_000 * KIB)
    monkeypatch.setattr(SimEnv, "bounds", larger)
    app = App("sqlite:////nowhere/at/all.db")
    gathers = gathering(app)
    seen: list[tuple[Any, str | None]] = []
    points = watch.crash_everywhere(gathers, (2,), lambda result, run: seen.append((result, run.crash)))
    assert len(seen) == points + 1
    assert all(result == [SIZE + 97, SIZE + 98] for result, _ in seen)


async def _true(value: object) -> bool:
    return bool(value)


async def test_events_tell_nothing_of_uploads(app: App, ear: Ear, doors: Doors) -> None:
    gathers = gathering(app)
    async with app.rooms():
        assert await ends(await app.start(gathers, 2)) == [SIZE + 97, SIZE + 98]
    assert len(doors.uploads) == 2
    assert ear.of("turn.failed") == []
    assert ear.of("shards.lost") == []
