"""A million live runs, a running row for each: what it costs to look when nothing is due, and to judge what is."""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable

import msgspec

from benchmarks.server import the_server
from watchbill.env import SystemEnv
from watchbill.events import Events
from watchbill.model.policy import Policy
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.supervisor.supervisor import Supervisor

RUNS = 1_000_000
QUICK_RUNS = 20_000
DUE = 1_000
LOOKS = 2_000
LIMIT = 1_000
EMPTY_LOOKS = 50  # plans are kept from the first calls, on an empty store, as in every new installation
KNOWN = ("order@1",)

# Half of the runs wait for a timer, half run; nothing is due for an hour. A hundred living agents hold the rows.
FILL = """
INSERT INTO watchbill.agent (id, state, until, namespace, region, name, info)
SELECT n, 1, watchbill.at(NULL) + 36e8::bigint, 'default', '', 'agent-' || n, '' FROM generate_series(1, 100) n;
INSERT INTO watchbill.run (
    num, shard, namespace, id, workflow, version, status, wake_at, root, input, created_at, begun_at
)
SELECT
    n, (SELECT min(id) FROM watchbill.shard) + n % 16, 'default', 'order-' || n, 'order', 1, 1 + n % 2,
    CASE n % 2 WHEN 1 THEN watchbill.at(NULL) + 36e8::bigint + n END, n, '[1]', watchbill.at(NULL), watchbill.at(NULL)
FROM generate_series(1, {runs}) n;
INSERT INTO watchbill.attempt (
    id, run, run_id, part, shard, call, step, queue, rank, state, fence, agent, started_at, watch_at, policy, args
)
SELECT
    n, n, 'order-' || n, 0, (SELECT min(id) FROM watchbill.shard) + n % 16, 'charge', 'charge', 1,
    watchbill.at(NULL), 1, 1, 1 + n % 100, watchbill.at(NULL), watchbill.at(NULL) + 36e8::bigint + n,
    convert_to('{policy}', 'UTF8'), '[1]'
FROM generate_series(1, {runs}) n;
"""
# Spread over all of them: they are due for a look as late.
MAKE_DUE = """
UPDATE watchbill.attempt SET watch_at = watchbill.at(NULL) - 1 WHERE id % ({runs} / {due}) = 0
"""


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(QUICK_RUNS if quick else RUNS))


async def house(runs: int) -> dict[str, float]:
    store = await open_store(os.environ["WATCHBILL_STORE"], SystemEnv())
    try:
        shards = await store.scheduler.shards("default", "")

        async def look() -> None:
            if (found := await store.scheduler.look(shards, KNOWN, LIMIT)).due:
                raise RuntimeError(f"nothing should be due, but {len(found.due)} are: this figure would mean nothing")

        async def watch() -> None:
            if (found := await store.supervisor.watch(LIMIT)).due or found.orphans:
                raise RuntimeError("nothing should be due for judgement: this figure would mean nothing")

        for _ in range(EMPTY_LOOKS):
            await look()
            await watch()
        await judged(store)
        fill(runs)
        looks, watches = await timed("look", look), await timed("watch", watch)
        the_server().sql(MAKE_DUE.format(runs=runs, due=DUE))
        return {**looks, **watches, "judge_s": await judged(store)}
    finally:
        await store.close()


def fill(runs: int) -> None:
    policy = msgspec.json.encode(Policy()).decode()
    the_server().sql(FILL.format(runs=runs, policy=policy))
    for statement in ("VACUUM ANALYZE", "CHECKPOINT"):  # as after a while; not in the middle of what is measured
        the_server().sql(statement)


async def timed(name: str, look: Callable[[], Awaitable[None]]) -> dict[str, float]:
    """The p50 and the p99 of many calls, back to back."""
    took = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        await look()
        took.append(time.perf_counter() - began)
    percentiles = statistics.quantiles(took, n=100)
    return {f"{name}_p50_s": percentiles[49], f"{name}_p99_s": percentiles[98]}


async def judged(store: Store) -> float:
    """Let a supervisor judge what is due, until nothing is: late ones fail, and failed ones are tried again."""
    room = Supervisor(SystemEnv(), Events(), store=store.supervisor, lasting=None)
    began = time.perf_counter()
    while await room.turn() == 0:
        pass
    took = time.perf_counter() - began
    waiting = int(the_server().sql("SELECT count(*) FROM watchbill.attempt WHERE state = 3"))
    decided = int(the_server().sql("SELECT count(*) FROM watchbill.decision"))
    if decided and (waiting, decided) != (DUE, 2 * DUE):
        raise RuntimeError(f"{waiting} rows were judged in {decided} decisions: this figure would mean nothing")
    return took
