"""A million sleeping runs, of which a thousand wake every second: how late, and how much memory they cost."""

import asyncio
import time

from benchmarks.server import resident_bytes, the_server
from watchbill import App

SLEEPING = 1_000_000
QUICK_SLEEPING = 10_000
WAKING = 1_000  # a second
SECONDS = 30
QUICK_SECONDS = 3
IN_ADVANCE = 5  # seconds before the first wakes

app = App()


@app.workflow
async def nap(seconds: int) -> int:
    await asyncio.sleep(seconds)
    return seconds


# As a scheduler leaves them: begun, nothing in the journal yet, waiting for the timer of their first call.
FILL = """
INSERT INTO watchbill.run (
    num, shard, namespace, id, workflow, version, status, wake_at, root, input, created_at, begun_at
)
SELECT
    {first} + n, (SELECT min(id) FROM watchbill.shard) + n % 16, 'default', 'nap-' || ({first} + n), 'nap', 1, 2,
    wake_at, {first} + n, '[3600]', wake_at - 36e8::bigint, wake_at - 36e8::bigint
FROM (
    SELECT n, watchbill.at(NULL) + ({after} * 1e6)::bigint + n * {apart} AS wake_at FROM generate_series(1, {count}) n
) AS sleeping
"""
LATENESS = """
SELECT
    percentile_cont({part}) WITHIN GROUP (ORDER BY journal.at - run.wake_at),
    percentile_cont({part}) WITHIN GROUP (ORDER BY ended.at - run.wake_at)
FROM (SELECT num, begun_at + 36e8::bigint AS wake_at FROM watchbill.run WHERE status = 10) AS run
JOIN watchbill.journal ON journal.run = run.num AND journal.seq = 1
JOIN (SELECT num, ended_at AS at FROM watchbill.run) AS ended ON ended.num = run.num
"""


def measure(quick: bool) -> dict[str, float]:
    return asyncio.run(house(QUICK_SLEEPING if quick else SLEEPING, QUICK_SECONDS if quick else SECONDS))


async def house(sleeping: int, seconds: int) -> dict[str, float]:
    waking = WAKING * seconds
    async with app.rooms():  # the plans of its statements are made on an empty store
        await (await app.start(nap, 0)).result()
        fill(first=0, count=sleeping - waking, after=3_600, apart=1)
        for statement in ("DELETE FROM watchbill.run WHERE status = 10", "VACUUM ANALYZE", "CHECKPOINT"):
            the_server().sql(statement)
        fill(first=sleeping, count=waking, after=IN_ADVANCE, apart=1_000_000 // WAKING)
        await asyncio.sleep(IN_ADVANCE + 2)
        before, cpu = resident_bytes(), time.process_time()
        await asyncio.sleep(seconds - 2)
        after, cpu = resident_bytes(), time.process_time() - cpu
        await until_awake(waking)
    # Microseconds from the time a run was to wake at: to what the workflow saw, and to the commit of its end.
    seen, committed = map(float, the_server().sql(LATENESS.format(part=0.99)).split("|"))
    return {
        "seen_p99_s": seen / 1e6,
        "ended_p99_s": committed / 1e6,
        "grown_bytes": after - before,
        "resident_bytes": after,
        "cpu_us_per_run": cpu / (seconds - 2) / WAKING * 1e6,
    }


def fill(*, first: int, count: int, after: int, apart: int) -> None:
    the_server().sql(FILL.format(first=first, count=count, after=after, apart=apart))


async def until_awake(waking: int) -> None:
    for _ in range(600):
        if int(the_server().sql("SELECT count(*) FROM watchbill.run WHERE status = 10")) >= waking:
            return
        await asyncio.sleep(0.1)
    raise RuntimeError("a minute later they were not all awake: this figure would mean nothing")
