"""Races with real connections: whatever comes first, nothing is written behind anybody's back and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.store.postgres import by_hand, emptied
from watchbill.env import SystemEnv
from watchbill.errors import DuplicateRun
from watchbill.model.agent import Act, Answer, Report
from watchbill.model.states import AttemptState
from watchbill.store.open import open_store
from watchbill.store.postgres.agent import report_values, summed_up
from watchbill.store.postgres.blobs import Blobs
from watchbill.store.postgres.statements import Statement, composed
from watchbill.store.postgres.store import PostgresStore
from watchbill.testing.conformance.scene import AGENT, ME, HandClock, Scene, a_run, a_verdict

OTHER = 8
CLAIMERS = 8
ATTEMPTS = 10_000


@pytest.fixture
async def url(postgres_url: str) -> str:
    await emptied(postgres_url)
    return postgres_url


@pytest.fixture
async def another(url: str, clock: HandClock) -> AsyncIterator[Callable[[], Awaitable[PostgresStore]]]:
    """Open the same store again, as another process would; before time passes, so that both agree on it."""
    opened: list[PostgresStore] = []

    async def open_one() -> PostgresStore:
        store = await open_store(url, SystemEnv(), clock=clock)
        assert isinstance(store, PostgresStore)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


class UnderWay:
    """A statement that has been carried out, and whose commit waits for us."""

    def __init__(self, store: PostgresStore, statement: str | Statement, values: dict[str, object]) -> None:
        self._done, self._may_end = asyncio.Event(), asyncio.Event()
        lines = store._lines

        async def work(db):
            rows = await db.rows(statement, values)
            self._done.set()
            await self._may_end.wait()
            return rows

        self._task = asyncio.ensure_future(lines.run(lines.others, work, "BEGIN"))

    async def begun(self) -> "UnderWay":
        await self._done.wait()
        return self

    async def commit(self) -> None:
        self._may_end.set()
        await self._task


async def blocked(url: str, door: "asyncio.Future[Any]") -> None:
    """Wait until this door waits for a lock; it must not be through without."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(120):
        while not await by_hand(url, waiting):
            assert not door.done(), f"it did not wait: {door!r}"


def a_report_under_way(store: PostgresStore, *reports: Report) -> UnderWay:
    values = report_values(summed_up(reports), Blobs(SystemEnv()))
    statement = composed(store._lines.address.schema, (("accepted", "report"),), "report_answer", ())
    return UnderWay(store, statement, values)


# --- claims


async def test_of_ten_thousand_rows_none_is_leased_twice_and_none_is_missed(scene, another):
    [run] = await scene.submit(a_run(1))
    rows = [scene.a_row(run) for _ in range(ATTEMPTS)]
    await scene.turn(attempts=rows)
    stores = [await another() for _ in range(CLAIMERS)]
    for n, store in enumerate(stores):
        await store.agent.join(100 + n, "default", "", "a", b"{}", None)

    async def claim(agent: int, store: PostgresStore) -> list[int]:
        mine = Scene(store, scene.clock)
        mine.queue = scene.queue
        got = [row.id for row in await mine.lease(agent, limit=97)]
        await everybody_has_asked.wait()  # who is slow to begin must not find all of it gone
        while leased := await mine.lease(agent, limit=97):
            got += [row.id for row in leased]
        return got

    everybody_has_asked = asyncio.Barrier(CLAIMERS)
    claimed = await asyncio.gather(*(claim(100 + n, store) for n, store in enumerate(stores)))
    assert sorted(id for got in claimed for id in got) == [row.id for row in rows]
    assert all(claimed), "every agent got some"


# --- takeovers


async def test_a_renewal_of_a_lost_shard_says_so_whoever_comes_first(scene, another, clock, url):
    store = await another()
    mine = {t.shard: t.term for t in (await scene.store.scheduler.take(ME, list(scene.terms), 5)).taken}
    clock.pass_by(6)
    values = {
        "owner": OTHER,
        "shards": sorted(mine)[:3],
        "lasting": None,
        "expired": True,
        "above": 0,
        "given_up": [0, 0, 0],
    }
    takeover = await UnderWay(store, "take", values).begun()
    renewal = asyncio.ensure_future(scene.store.scheduler.renew(ME, mine, 5))
    await blocked(url, renewal)
    await takeover.commit()
    assert (await renewal).held == set(sorted(mine)[3:])


# --- rows


async def test_a_row_that_ends_while_its_call_is_cancelled_does_not_slip_through(scene, another, url):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    report = await a_report_under_way(await another(), Report(row.id, row.fence, Act.FAILED, b"{}")).begun()
    turn = asyncio.ensure_future(scene.turn(dropped=[row.id]))
    await blocked(url, turn)
    await report.commit()
    assert (await turn).applied
    ended = await scene.row(row.id)
    assert (ended.state, ended.cancel) == (AttemptState.FAILED, True), "it would be tried again"


async def test_reports_and_verdicts_on_the_same_rows_exclude_each_other(scene, another):
    [run] = await scene.submit(a_run(1))
    await scene.turn(attempts=[scene.a_row(run, call=f"charge.{n}") for n in range(500)])
    rows = await scene.lease(limit=500)
    judges = await another()
    reports = [Report(row.id, row.fence, Act.DONE, b"1") for row in rows]
    verdicts = [a_verdict(row, AttemptState.FAILED) for row in reversed(rows)]
    answers, applied = await asyncio.gather(scene.store.agent.report(AGENT, reports), judges.supervisor.judge(verdicts))
    applied.reverse()
    assert all((answer is Answer.ACCEPTED) != judged for answer, judged in zip(answers, applied, strict=True))


async def test_a_late_fence_is_refused_after_another_agent_has_the_row(scene, another, clock):
    [run] = await scene.submit(a_run(1))
    row = await scene.row_in(AttemptState.RUNNING, run)
    await scene.report(row, Act.HAND_BACK)
    store = await another()
    await store.agent.join(71, "default", "", "b", b"{}", None)
    [theirs] = await scene.lease(71)
    answers = await asyncio.gather(
        store.agent.report(AGENT, [Report(row.id, row.fence, Act.DONE, b"mine")]),
        scene.store.agent.report(71, [Report(theirs.id, theirs.fence, Act.DONE, b"theirs")]),
    )
    assert list(answers) == [[Answer.LATE], [Answer.ACCEPTED]]
    assert (await scene.row(row.id)).result == b"theirs"


# --- clients


async def test_an_id_submitted_by_two_clients_is_one_run(scene, another):
    here, there = scene.store.client, (await another()).client
    asked = [
        [client.submit([a_run(base + n, f"same-{n}")]) for n in range(50)]
        for client, base in ((here, 100), (there, 200))
    ]
    answers = await asyncio.gather(*asked[0], *asked[1])
    assert sum(answer.new for [answer] in answers) == 50
    assert len({answer.run.num for [answer] in answers}) == 50


async def test_many_ids_submitted_by_two_clients_in_opposite_order_do_not_wait_for_ever(scene, another):
    here, there = scene.store.client, (await another()).client
    one = [a_run(1_000 + n, f"same-{n}") for n in range(300)]
    two = [a_run(2_000 + n, f"same-{n}") for n in reversed(range(300))]
    first, second = await asyncio.gather(here.submit(one), there.submit(two))
    assert {answer.new for answer in (*first, *second)} == {True, False}
    assert len({answer.run.num for answer in (*first, *second)}) == 300


async def test_of_submits_that_go_together_only_the_guilty_one_fails(scene):
    await scene.submit(a_run(1, "taken"))
    submit = scene.store.client.submit
    answers: list[Any] = await asyncio.gather(
        *(submit([a_run(100 + n)]) for n in range(20)),
        submit([a_run(50, "taken", workflow="other")]),
        submit([a_run(60), a_run(61, "taken", workflow="other")]),
        submit([a_run(70), a_run(71)]),
        submit([a_run(80), a_run(81, "taken")]),
        return_exceptions=True,
    )
    assert all(answer[0].new for answer in answers[:20])
    guilty, both, fine, equal = answers[20:]
    assert isinstance(guilty, DuplicateRun)
    assert isinstance(both, DuplicateRun)
    assert await scene.store.client.find("default", "o-60") is None
    assert [answer.new for answer in fine] == [True, True]
    assert [answer.new for answer in equal] == [True, False]


async def test_a_thousand_starts_are_few_commits(scene, url):
    commits = "SELECT pg_current_xact_id()::text::bigint"
    [(before,)] = await by_hand(url, commits)
    await asyncio.gather(*(scene.submit(a_run(num)) for num in range(1_000, 2_000)))
    [(after,)] = await by_hand(url, commits)
    assert after - before < 20
