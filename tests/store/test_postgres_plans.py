"""Every hot statement finds its rows by the index made for it, also by a plan that was made when nothing was stored."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from tests.store.postgres import address_of, by_hand, emptied
from watchbill.env import SystemEnv
from watchbill.model.agent import Act, ProgressMark
from watchbill.model.attempt import AttemptRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import open_store
from watchbill.store.postgres.connections import HOT, Connection, connect
from watchbill.store.postgres.statements import Statement, composed, statements
from watchbill.store.postgres.turn import turn_statement
from watchbill.store.protocol import Turn
from watchbill.testing.conformance.scene import AGENT, KNOWN, HandClock, Scene, a_change, a_run, a_verdict, an_entry

SCHEMA = "watchbill"
ROWS = 20_000
FIRST_CALLS = 50

# Of the tables that grow with work; the others have a few rows for each process or namespace.
LARGE = {"run", "journal", "attempt", "fact", "decision", "blob", "agent"}
PARTS = ("journal", "attempts", "runs", "facts_done", "finals_done", "dropped", "decisions", "doing")
EVERYTHING = Turn(1, {1: 1}, **{part: [1] for part in PARTS})  # type: ignore[arg-type]
TEXTS: Mapping[str, Statement] = {
    **statements(SCHEMA),
    "turn": turn_statement(SCHEMA, EVERYTHING, large=True),
    "report": composed(SCHEMA, (("accepted", "report"), ("kept", "report_blobs")), "report_answer", ()),
}
INDEXES = {
    "submit": set(),
    "runs_by_id": {"run_namespace_id_key"},
    "tell": {"run_namespace_id_key", "run_pkey"},
    "endings": {"run_pkey", "journal_pkey", "attempt_run", "decision_pkey"},
    "find_run": {"run_namespace_id_key"},
    "runs": {"run_list"},
    "look": {"run_due", "fact_shard", "attempt_final"},
    "look_due": {"run_pkey"},
    "look_facts": {"fact_pkey"},
    "look_finals": {"attempt_pkey"},
    "live_runs": {"run_live"},
    "load_runs": {"run_pkey"},
    "load_journal": {"journal_pkey"},
    "load_attempts": {"attempt_run"},
    "load_facts": {"fact_run_kind_ref_key"},
    "decisions_of_run": {"decision_pkey"},
    "turn": {"run_pkey", "fact_pkey", "attempt_pkey"},
    "turn_is_there": {"journal_pkey", "attempt_pkey"},
    "join_agent": set(),
    "beat": {"agent_alive", "attempt_pkey", "attempt_agent"},
    "lease": {"agent_alive", "attempt_ready", "attempt_pkey"},
    "lock_agent": {"agent_alive"},
    "leased_rows": {"attempt_agent"},
    "report": {"attempt_pkey"},
    "report_rows": {"attempt_pkey"},
    "finish": {"attempt_pkey"},
    "undecided": {"attempt_pkey"},
    "leave_agent": {"agent_alive"},
    "rows_of_agent": {"attempt_agent"},
    "watch": {"attempt_watch", "attempt_agent", "agent_alive"},
    "attempts_by_id": {"attempt_pkey"},
    "judge": {"agent_pkey", "attempt_pkey", "decision_pkey"},
    "bury": {"agent_pkey"},
    "processes": {"all of agent_alive"},  # has those who may hold something, and nobody else
}


@pytest.fixture
async def url(postgres_url: str) -> str:
    await emptied(postgres_url)
    return postgres_url


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    """A connection as the doors have it, with every statement prepared and planned while nothing is stored."""
    schema = address_of(url).schema
    connection = await connect(address_of(url), HOT)
    for name in INDEXES:
        await connection.execute(f"PREPARE {name} AS {TEXTS[name].text.replace(SCHEMA, schema)}")
        await connection.execute(explained(name))
    yield connection
    await connection.close()


def explained(name: str) -> str:
    values = ", ".join(["NULL"] * len(TEXTS[name].names))
    return f"EXPLAIN (FORMAT JSON) EXECUTE {name}" + (f" ({values})" if values else "")


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


async def used(connection: Connection, name: str) -> set[str]:
    """Give the indexes by which a statement finds rows, and the large tables that it reads whole."""
    [(text,)] = await connection.fetch(explained(name))
    found = set()
    for node in nodes(json.loads(str(text))[0]["Plan"]):
        if "Index Name" in node:
            whole = "Index Cond" not in node
            found.add(f"all of {node['Index Name']}" if whole else node["Index Name"])
        elif node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE:
            found.add(f"all of {node['Relation Name']}")
    return {index for index in found if index.removeprefix("all of ") not in {"lease_pkey", "scheduler_pkey"}}


LOAD = """
INSERT INTO watchbill.run (num, shard, namespace, id, workflow, version, status, wake_at, root, input, created_at)
SELECT n, n % 16, 'default', 'l-' || n, 'order', 1, 2, $1::bigint + n, n, '[]', n FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.attempt (
    id, run, run_id, part, shard, call, step, queue, rank, state, fence, agent, watch_at, policy, args
)
SELECT
    1000000 + n, n, 'l-' || n, 0, n % 16, 'charge', 'charge', $3::int, $1::bigint + n, n % 6, 1,
    CASE WHEN n % 6 = 1 THEN 100000 + n % 7 END, CASE WHEN n % 6 = 1 THEN $1 END, '{}', '[]'
FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.journal (run, seq, kind, key, outcome, at, body)
SELECT n, 1, 0, 'k', 0, 1, '1' FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
SELECT n % 16, n, 'cancel', 'r', 'a', '', 1 FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
SELECT n, 'c', 1, 1, 1, 'a', '' FROM generate_series(1, $2::int) n;

INSERT INTO watchbill.agent (id, state, until, namespace, region, name, info)
SELECT 100000 + n, 3, 0, 'default', '', 'a', '' FROM generate_series(1, $2::int) n
"""


async def load(url: str, queue: int = 1) -> None:
    """Fill the tables: many runs that wait, many rows in each state, and no statistics of it."""
    for statement in LOAD.split(";"):
        values = [4_000_000_000_000_000, ROWS, queue]
        script = statement
        for place, value in enumerate(values, start=1):
            script = script.replace(f"${place}", str(value))
        await by_hand(url, script)


def test_every_statement_is_looked_at():
    parts = {name for name in TEXTS if name.startswith(("turn_", "report_")) and name not in INDEXES}
    small = {
        "attend", "retire", "take", "renew", "release", "held_leases", "record_context", "shards_of_region",
        "shards_of_namespace", "make_shards", "find_queue", "make_queue", "queues_of_agent", "notify",
        "find_schema", "store_schema", "set_schema", "make_schema", "lock_migrations", "place", "isolation",
    }  # fmt: skip
    assert set(TEXTS) - parts - small == set(INDEXES)


async def test_plans_made_on_an_empty_store_are_good_for_a_full_one(url, connection):
    await load(url)
    assert {name: await used(connection, name) for name in INDEXES} == INDEXES


async def test_plans_made_on_a_full_store_are_the_same(url):
    await load(url)
    await by_hand(url, "ANALYZE")
    connection = await connect(address_of(url), HOT)
    try:
        for name in INDEXES:
            await connection.execute(f"PREPARE {name} AS {TEXTS[name].text.replace(SCHEMA, address_of(url).schema)}")
        assert {name: await used(connection, name) for name in INDEXES} == INDEXES
    finally:
        await connection.close()


async def a_life(scene: Scene, num: int) -> None:
    """Lead one run through every door: submitted, begun, leased, beaten, failed, judged, retried, done, ended."""
    doors, shards = scene.store, list(scene.terms)
    [run] = await scene.submit(a_run(num))
    await doors.scheduler.look(shards, KNOWN, 100)
    await doors.scheduler.live(shards, KNOWN, num - 1, 5, due=True)
    await doors.scheduler.load([num])
    row = scene.a_row(run)
    await scene.turn(attempts=[row], runs=[a_change(run, RunState.RUNNING)])
    [leased] = await scene.lease(limit=1)
    await doors.agent.beat(AGENT, None, [ProgressMark(leased.id, leased.fence, b"{}", increased=True)])
    await scene.report(leased, Act.FAILED, b"{}")
    await doors.supervisor.watch(10)
    assert await scene.judge(a_verdict(await newest_row(scene), AttemptState.READY))
    [again] = await scene.lease(limit=1)
    await scene.report(again, Act.DONE, b"1")
    await doors.client.endings([num])
    await doors.client.record("default", run.id)
    await doors.client.runs("default", limit=3)
    await scene.turn(journal=[an_entry(num, 1)], finals_done=[row.id], runs=[a_change(run, RunState.COMPLETED)])


async def newest_row(scene: Scene) -> AttemptRow:
    [run] = await scene.store.client.runs("default", limit=1)
    record = await scene.store.client.record("default", run.id)
    assert record is not None
    return record.attempts[0]


async def test_doors_first_used_on_an_empty_store_read_little_of_a_full_one(url):
    store = await open_store(url, SystemEnv())
    scene = Scene(store, HandClock())
    await scene.open()
    await by_hand(url, "SELECT pg_stat_reset()")
    for num in range(FIRST_CALLS):
        await a_life(scene, 10_000_000 + num)
    await load(url, scene.queue)
    await a_life(scene, 20_000_000)
    await store.close()  # now the server counts what its connections have read
    counted = (
        "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = ANY ($1)"
    )
    read = await by_hand(url, counted, LARGE)
    assert all(rows < ROWS // 4 for _, rows in read), read
