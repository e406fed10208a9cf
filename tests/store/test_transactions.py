"""What is written through a user's own connection: the races around it, and the guards in its statements."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.rooms.users import connect_asyncpg, file_of, place_of
from tests.store.postgres import by_hand, emptied
from watchbill.borrowed import Finished, FinishPlan, borrow, finishing
from watchbill.env import SystemEnv
from watchbill.errors import DuplicateRun, RunInCreationError
from watchbill.model.agent import Act, Answer
from watchbill.model.attempt import AttemptRow
from watchbill.model.run import NewRun, RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import open_store
from watchbill.store.protocol import INLINE_LIMIT, Hint, Started, Store
from watchbill.testing.conformance.scene import AGENT, KNOWN, ME, HandClock, Scene, a_change, a_run, an_entry

A = AttemptState
SOON = 2.0  # seconds: of what must not wait for anybody
LONG = 120.0


@pytest.fixture(params=["sqlite file", "postgres"])
async def url(request: pytest.FixtureRequest, folder) -> str:
    if request.param == "sqlite file":
        return f"sqlite:///{folder}/store.db"
    address: str = request.getfixturevalue("postgres_url")
    await emptied(address)
    return address


@pytest.fixture
async def postgres_store(postgres_url: str) -> AsyncIterator[Store]:
    await emptied(postgres_url)
    store = await open_store(postgres_url, SystemEnv())
    yield store
    await store.close()


@pytest.fixture
async def lend(postgres_url: str) -> AsyncIterator[Callable[[], Any]]:
    """Connect users, each in an open transaction."""
    async with contextlib.AsyncExitStack() as users:

        async def connect() -> Any:
            connection = await connect_asyncpg(postgres_url)
            users.push_async_callback(connection.close)
            await connection.execute("BEGIN")
            return connection

        yield connect


async def start(store: Store, connection: Any, *runs: NewRun) -> list[Started]:
    return await borrow(connection).perform_async(await store.transactions.starting(runs))


async def blocked(url: str) -> None:
    """Wait until somebody waits for a lock, as long as that is shorter than the moment they do."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(LONG):
        while not await by_hand(url, waiting):
            pass


# --- the same id from elsewhere (interleaving 12)


async def test_who_wants_an_id_that_a_transaction_is_creating_gets_that_run_when_it_commits(
    postgres_store, postgres_url, lend, pace
):
    user = await lend()
    [created] = await start(postgres_store, user, a_run(1, "o-1"))
    assert created == ("o-1", 1, True)
    other = asyncio.ensure_future(postgres_store.client.submit([a_run(2, "o-1")]))
    await blocked(postgres_url)
    assert await postgres_store.client.find("default", "o-1") is None
    await user.execute("COMMIT")
    [found] = await other
    assert (found.run.num, found.new) == (1, False)


async def test_a_run_that_a_transaction_creates_lives_in_its_region(url):
    store = await open_store(url, SystemEnv())
    runs = [
        NewRun(num, "default", f"o-{num}", "order", 1, b"[]", region=region) for num, region in ((1, ""), (2, "eu"))
    ]
    work = await store.transactions.starting(runs)
    if url.startswith("sqlite"):
        connection = sqlite3.connect(file_of(url))
        borrow(connection).perform(work)
        connection.commit()
        connection.close()
    else:
        user = await connect_asyncpg(url)
        await borrow(user).perform_async(work)
        await user.close()
    for run in runs:
        row = await store.client.find("default", run.id)
        assert row is not None
        assert row.shard in await store.scheduler.shards("default", run.region)
    await store.close()


async def test_other_work_under_that_id_is_refused_when_it_commits(postgres_store, postgres_url, lend):
    user = await lend()
    await start(postgres_store, user, a_run(1, "o-1"))
    alone = asyncio.ensure_future(postgres_store.client.submit([a_run(2, "o-1", input=b"[7]")]))
    many = asyncio.ensure_future(postgres_store.client.submit([a_run(3, "o-1", input=b"[7]"), a_run(4, "o-4")]))
    await blocked(postgres_url)
    await user.execute("COMMIT")
    for refused in (alone, many):
        with pytest.raises(DuplicateRun):
            await refused
    assert await postgres_store.client.find("default", "o-4") is None


async def test_the_others_proceeds_when_it_rolls_back(postgres_store, postgres_url, lend):
    user = await lend()
    await start(postgres_store, user, a_run(1, "o-1"))
    other = asyncio.ensure_future(postgres_store.client.submit([a_run(2, "o-1", input=b"[7]")]))
    await blocked(postgres_url)
    await user.execute("ROLLBACK")
    [made] = await other
    assert (made.run.num, made.new) == (2, True)


async def test_waiting_for_a_transaction_that_stays_open_is_bounded_and_keeps_nobody_else(
    postgres_store, postgres_url, lend, pace
):
    user = await lend()
    await start(postgres_store, user, a_run(1, "o-1"))
    began = time.monotonic()
    submitted = [asyncio.ensure_future(postgres_store.client.submit([a_run(n, f"o-{n}")])) for n in range(10, 20)]
    contended = asyncio.ensure_future(postgres_store.client.submit([a_run(2, "o-1")]))
    submitted += [asyncio.ensure_future(postgres_store.client.submit([a_run(n, f"o-{n}")])) for n in range(20, 30)]
    assert all(answer.new for answers in await asyncio.gather(*submitted) for answer in answers)
    assert time.monotonic() - began < pace.limit(SOON)
    await postgres_store.client.submit([a_run(30, "o-30")])  # while the other one still tries
    assert time.monotonic() - began < pace.limit(SOON)
    with pytest.raises(RunInCreationError, match="another open transaction is creating run 'o-1': nothing was done"):
        await contended
    assert 8 < time.monotonic() - began < pace.limit(15)
    await user.execute("COMMIT")
    [found] = await postgres_store.client.submit([a_run(2, "o-1")])
    assert found.run.num == 1


async def test_two_transactions_that_create_the_same_run(postgres_store, postgres_url, lend):
    first, second = await lend(), await lend()
    await start(postgres_store, first, a_run(1, "o-1"))
    await second.execute("SET LOCAL lock_timeout = '7s'")
    with pytest.raises(RunInCreationError, match="another open transaction is creating run 'o-1'"):
        await start(postgres_store, second, a_run(2, "o-1"))
    # It has lost nothing, and waits for locks as before.
    assert await second.fetchval("SHOW lock_timeout") == "7s"
    waiting = asyncio.ensure_future(start(postgres_store, second, a_run(2, "o-1")))
    await blocked(postgres_url)
    await first.execute("COMMIT")
    assert await waiting == [("o-1", 1, False)]
    assert await second.fetchval("SHOW lock_timeout") == "7s"
    await second.execute("COMMIT")


async def test_a_scheduler_finds_what_was_committed_late(postgres_store, lend):
    user = await lend()
    scene = Scene(postgres_store, HandClock())
    await scene.open()
    await start(postgres_store, user, a_run(1, "o-1"))
    shards = list(scene.terms)

    async def due() -> list[str]:
        look = await postgres_store.scheduler.look(shards, KNOWN, 100)
        return [run.id for run in look.due]

    later = await scene.submit(a_run(5, "o-5"))
    assert await due() == ["o-5"]
    await scene.turn(runs=[a_change(later[0], RunState.RUNNING)])
    assert await due() == []
    await user.execute("COMMIT")
    assert await due() == ["o-1"]  # older than what was seen before it


async def test_a_serializable_transaction_fails_as_its_driver_says(postgres_store, postgres_url):
    connection = await connect_asyncpg(postgres_url)
    await connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1 FROM pg_class LIMIT 1")
    await postgres_store.client.submit([a_run(1, "o-1")])
    with pytest.raises(asyncpg.SerializationError):
        await start(postgres_store, connection, a_run(2, "o-1"))
    await connection.close()


# --- finish: the guards


class Desk:
    """A scene with users of its store."""

    def __init__(self, scene: Scene, url: str) -> None:
        self.scene = scene
        self.url = url

    def connect(self) -> Any:
        """Connect a user."""
        if self.url.startswith("sqlite"):
            return sqlite3.connect(file_of(self.url))
        return psycopg.connect(**place_of(self.url))

    def finish(self, plan: FinishPlan, *, commit: bool = True) -> Finished:
        """Finish in a transaction of its own."""
        connection = self.connect()
        try:
            finished = borrow(connection).perform(finishing(plan))
            if commit:
                connection.commit()
        finally:
            connection.close()
        return finished

    def plan(self, row: AttemptRow, body: bytes = b"42", *, fence: int | None = None) -> FinishPlan:
        return self.scene.store.transactions.finishing(row.id, row.fence if fence is None else fence, body)


@pytest.fixture
async def desk(scene: Scene, url: str) -> Desk:
    return Desk(scene, url)


@pytest.mark.parametrize("before", list(A))
async def test_only_a_running_row_is_finished(desk, before):
    [run] = await desk.scene.submit(a_run(1))
    row = await desk.scene.row_in(before, run)
    finished = desk.finish(desk.plan(row))
    after = await desk.scene.row(row.id)
    if before is A.RUNNING:
        assert finished.recorded
        assert (after.state, after.result, after.losses, after.watch_at) == (A.DONE, b"42", row.losses - 1, None)
        assert await desk.scene.report(row, Act.DONE, b"7") is Answer.ALREADY
        assert await desk.scene.report(row, Act.FAILED, b"{}") is Answer.LATE
        assert (await desk.scene.row(row.id)).result == b"42"
    else:
        assert not finished.recorded
        assert after == row


async def test_only_under_its_fence(desk):
    [run] = await desk.scene.submit(a_run(1))
    row = await desk.scene.row_in(A.RUNNING, run)
    assert not desk.finish(desk.plan(row, fence=row.fence + 1)).recorded
    assert not desk.finish(desk.plan(row, fence=row.fence - 1)).recorded
    assert await desk.scene.row(row.id) == row


async def test_what_is_not_committed_never_was(desk):
    [run] = await desk.scene.submit(a_run(1))
    row = await desk.scene.row_in(A.RUNNING, run)
    assert desk.finish(desk.plan(row), commit=False).recorded
    assert await desk.scene.row(row.id) == row
    assert await desk.scene.report(row, Act.DONE, b"7") is Answer.ACCEPTED


async def test_a_large_result_is_read_whole_and_goes_with_its_row(desk):
    [run] = await desk.scene.submit(a_run(1))
    row = await desk.scene.row_in(A.RUNNING, run)
    body = b'"' + b"x" * INLINE_LIMIT + b'"'
    assert desk.finish(desk.plan(row, body)).recorded
    assert (await desk.scene.row(row.id)).result == body
    assert blobs(desk) == 1
    await desk.scene.turn(finals_done=[row.id])
    assert blobs(desk) == 0


def blobs(desk: Desk) -> int:
    connection = desk.connect()
    try:
        table = "blob" if desk.url.startswith("sqlite") else "watchbill.blob"
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        connection.close()


async def test_on_postgres_an_attempt_needs_its_row_first(postgres_store):
    scene = Scene(postgres_store, HandClock())
    await scene.open()
    [run] = await scene.submit(a_run(1))
    row = scene.a_row(run, A.RUNNING)
    assert postgres_store.transactions.finishing_rowless(row, owner=ME, term=scene.terms[run.shard]) is None


async def test_rows_that_a_transaction_has_locked_are_undecided_until_it_ends(postgres_store, lend):
    scene = Scene(postgres_store, HandClock())
    await scene.open()
    runs = await scene.submit(*(a_run(n) for n in range(1, 4)))
    rows = [await scene.row_in(A.RUNNING, run) for run in runs]
    ids = [row.id for row in rows]
    committing, undoing = await lend(), await lend()
    for user, row in ((committing, rows[0]), (undoing, rows[1])):
        plan = postgres_store.transactions.finishing(row.id, row.fence, b"42")
        assert (await borrow(user).perform_async(finishing(plan))).recorded
    assert sorted(await postgres_store.agent.undecided(ids)) == ids[:2]
    heard = asyncio.Event()
    postgres_store.listen(Hint.SCHEDULER, heard.set)
    await committing.execute("COMMIT")
    assert await postgres_store.agent.undecided(ids) == [ids[1]]
    assert heard.is_set()
    await undoing.execute("ROLLBACK")
    assert await postgres_store.agent.undecided(ids) == []
    assert [await scene.state_of(id) for id in ids] == [A.DONE, A.RUNNING, A.RUNNING]


async def test_who_freezes_before_the_commit_is_not_waited_for(postgres_store, lend):
    scene = Scene(postgres_store, HandClock())
    await scene.open()
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(A.RUNNING, run)
    for own, bound in (("0", "10s"), ("1min", "10s"), ("3s", "3s")):
        user = await lend()
        await user.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{own}'")
        plan = postgres_store.transactions.finishing(row.id, row.fence, b"42")
        assert (await borrow(user).perform_async(finishing(plan))).recorded
        assert await user.fetchval("SHOW idle_in_transaction_session_timeout") == bound
        await user.execute("ROLLBACK")
        assert await user.fetchval("SHOW idle_in_transaction_session_timeout") == "0"


# --- finish without a row, on SQLite


class Rowless:
    """A call that runs without a row under the scheduler of the scene."""

    def __init__(self, desk: Desk, run: RunRow, **changes: object) -> None:
        self.desk = desk
        self.run = run
        self.row = desk.scene.a_row(run, A.DONE, agent=AGENT, started_ago=5, **changes)

    def plan(self, body: bytes = b"42", *, owner: int = ME, term: int | None = None) -> FinishPlan:
        term = self.desk.scene.terms[self.run.shard] if term is None else term
        row = self.row._replace(result=body)
        plan = self.desk.scene.store.transactions.finishing_rowless(row, owner=owner, term=term)
        assert plan is not None
        return plan


@pytest.fixture
async def file_desk(folder, clock: HandClock) -> AsyncIterator[Desk]:
    url = f"sqlite:///{folder}/store.db"
    store = await open_store(url, SystemEnv(), clock=clock)
    scene = Scene(store, clock)
    await scene.open()
    yield Desk(scene, url)
    await store.close()


@pytest.fixture
async def rowless(file_desk: Desk) -> Rowless:
    [run] = await file_desk.scene.submit(a_run(1))
    return Rowless(file_desk, run)


async def test_the_row_is_inserted_as_done(rowless):
    desk = rowless.desk
    assert desk.finish(rowless.plan()).recorded
    row = await desk.scene.row(rowless.row.id)
    assert (row.state, row.result, row.fence, row.args) == (A.DONE, b"42", rowless.row.fence, b"[1]")
    assert (row.failures, row.losses, row.watch_at, row.agent) == (0, 0, None, AGENT)
    assert row.ended_at is not None
    assert row.started_at == row.ended_at - 5
    assert not desk.finish(rowless.plan()).recorded  # once


async def test_only_under_the_term_of_its_owner(rowless):
    term = rowless.desk.scene.terms[rowless.run.shard]
    assert not rowless.desk.finish(rowless.plan(term=term + 1)).recorded
    assert not rowless.desk.finish(rowless.plan(owner=ME + 1)).recorded
    assert await rowless.desk.scene.rows() == {}


async def test_not_once_the_call_is_in_the_journal(rowless):
    scene = rowless.desk.scene
    await scene.turn(journal=[an_entry(rowless.run.num, 1)._replace(key="charge")])
    assert not rowless.desk.finish(rowless.plan()).recorded
    assert await scene.rows() == {}


@pytest.mark.parametrize("state", [A.READY, A.FAILED, A.PARKED, A.GAVE_UP])
async def test_not_beside_a_row_of_the_call(rowless, state):
    row = await rowless.desk.scene.row_in(state, rowless.run)
    assert not rowless.desk.finish(rowless.plan()).recorded
    assert await rowless.desk.scene.rows() == {row.id: row}


async def test_a_row_that_was_made_meanwhile_is_the_one_that_is_done(rowless):
    scene = rowless.desk.scene
    visible = scene.a_row(rowless.run, A.RUNNING)
    await scene.turn(attempts=[visible])
    assert rowless.desk.finish(rowless.plan()).recorded
    rows = await scene.rows()
    assert {id: row.state for id, row in rows.items()} == {visible.id: A.DONE}


async def test_a_turn_makes_nothing_visible_that_has_finished_meanwhile(rowless):
    scene = rowless.desk.scene
    [other] = await scene.submit(a_run(2))
    visible = scene.a_row(rowless.run, A.RUNNING)
    beside = [scene.a_row(other, A.RUNNING), scene.a_row(other, A.READY, call="second")]
    assert rowless.desk.finish(rowless.plan()).recorded
    assert (await scene.turn(attempts=[visible, *beside])).applied
    assert set(await scene.rows()) == {rowless.row.id, *(row.id for row in beside)}
    # Any other row of that call is still refused if it does not fit.
    with pytest.raises(ValueError, match="a row begins as ready, running or failed"):
        await scene.turn(attempts=[scene.a_row(rowless.run, A.RUNNING), scene.a_row(other, A.PARKED)])
    later = scene.a_row(rowless.run, A.RUNNING, fence=rowless.row.fence + 1)
    assert (await scene.turn(attempts=[later])).applied
    assert later.id in await scene.rows()


async def test_large_arguments_and_results_go_with_the_row(file_desk):
    [run] = await file_desk.scene.submit(a_run(1))
    large = b'["' + b"x" * INLINE_LIMIT + b'"]'
    rowless = Rowless(file_desk, run, args=large)
    assert file_desk.finish(rowless.plan(large)).recorded
    row = await file_desk.scene.row(rowless.row.id)
    assert (row.args, row.result) == (large, large)
    assert blobs(file_desk) == 2
    await file_desk.scene.turn(finals_done=[row.id])
    assert blobs(file_desk) == 0


# --- the owner of a file hears of others' commits


async def test_a_commit_of_somebody_else_concerns_everybody_and_our_own_only_whom_they_do(folder, pace):
    store = await open_store(f"sqlite:///{folder}/store.db", SystemEnv())
    heard = {whom: asyncio.Event() for whom in Hint}
    for whom, event in heard.items():
        store.listen(whom, event.set)
    user = sqlite3.connect(folder / "store.db")
    await store.client.submit([a_run(1)])
    await asyncio.sleep(1.1)
    assert {whom for whom, event in heard.items() if event.is_set()} == {Hint.SCHEDULER}
    heard[Hint.SCHEDULER].clear()
    for n in range(2):
        began = time.monotonic()
        user.execute(f"CREATE TABLE mine_{n} (word)")
        user.commit()
        for event in heard.values():
            await asyncio.wait_for(event.wait(), LONG)
            event.clear()
        assert time.monotonic() - began < pace.limit(SOON)
    user.close()
    await store.close()
