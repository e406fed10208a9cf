"""The nasty interleavings of the protocol, forced step by step on PostgreSQL: nothing is left to luck.

Each is played on a Stage. test_mutants.py plays them again with a fault planted: then they must fail.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.store import freezing
from tests.store.stage import Pin, Stage, a_stage
from watchbill import App
from watchbill.app.house import House
from watchbill.app.wish import Wish
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreUnreachableError
from watchbill.events import RUN_COMPLETED, SHARDS_LOST
from watchbill.model.agent import Act, AgentState, Answer, ProgressMark, Report
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import Kind
from watchbill.model.decision import OF_A_REFUSAL
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import open_store
from watchbill.store.postgres.store import PostgresStore
from watchbill.store.protocol import Record, Store, Turn
from watchbill.testing.conformance.scene import AGENT, ME, NOON, Scene, a_run, a_verdict, an_entry

B = 8
X, Y = 71, 72  # agents
LEASE = 8 * SECOND
LARGE = b'"' + b"x" * 300_000 + b'"'


@pytest.fixture
async def stage(postgres_url: str) -> AsyncIterator[Stage]:
    async with a_stage(postgres_url) as stage:
        yield stage


# --- steps that many of them begin with


async def a_scheduler(stage: Stage, store: PostgresStore | None = None) -> Scene:
    """Let A hold every shard, for as long as a lease lasts."""
    a = await stage.scene(store)
    taken = (await a.store.scheduler.take(ME, list(a.terms), LEASE)).taken
    a.terms = {lease.shard: lease.term for lease in taken}
    return a


def a_turn(a: Scene, run: RunRow, *seqs: int) -> Turn:
    """A turn of A that appends to one run, and locks the lease of its shard alone."""
    return Turn(ME, {run.shard: a.terms[run.shard]}, journal=[an_entry(run.num, seq) for seq in seqs])


async def read_by(store: PostgresStore, *runs: int) -> list[int]:
    """Give the seqs that a new owner reads."""
    return [entry.seq for loaded in await store.scheduler.load(runs) for entry in loaded.journal]


async def keep_key(stage: Stage, run: int, seq: int) -> Pin:
    """Hold whoever wants to write this entry."""
    values = "VALUES ($1, $2, 0, 'nobody', 0, 0, '')"
    return await stage.pin(f"INSERT INTO watchbill.journal (run, seq, kind, key, outcome, at, body) {values}", run, seq)


async def keep_row(stage: Stage, id: int) -> Pin:
    """Hold whoever wants to change this row."""
    return await stage.pin("SELECT id FROM watchbill.attempt WHERE id = $1 FOR UPDATE", id)


async def running(stage: Stage, a: Scene, count: int) -> list[AttemptRow]:
    """Give rows that the agent of the scene runs, due for a look in five seconds, by id."""
    [run] = await a.submit(a_run(1))
    await a.turn(attempts=[a.a_row(run, call=f"charge.{n}", span=5_000) for n in range(count)])
    return sorted(await a.lease(), key=lambda row: row.id)


# --- 1


async def test_1_takeover_while_a_turn_is_in_flight(stage: Stage):
    a, b = await a_scheduler(stage), await stage.store()
    [run] = await a.submit(a_run(7))
    assert (await a.store.scheduler.turn(a_turn(a, run, 1, 2, 3))).applied

    # A's turn (run 7, seq 4) holds the lease FOR SHARE; A's lease expires.
    pin = await keep_key(stage, 7, 4)
    in_flight = stage.begin(a.store.scheduler.turn(a_turn(a, run, 4)))
    await stage.waits(in_flight)
    stage.clock.pass_by(LEASE + 1)

    # B `take`: SKIP LOCKED, gets nothing, and does not wait; nor could anybody else change whose lease it is.
    takes = await stage.goes_through(stage.begin(b.scheduler.take(B, [run.shard], LEASE)))
    assert takes.taken == ()
    with pytest.raises(asyncpg.LockNotAvailableError):
        await stage.sql("SELECT owner FROM watchbill.lease WHERE shard = $1 FOR NO KEY UPDATE NOWAIT", run.shard)

    # A commits; B takes, under a greater term, and reads seq 1..4.
    await pin.release()
    assert (await stage.ended(in_flight)).applied
    [taken] = (await b.scheduler.take(B, [run.shard], LEASE)).taken
    assert (taken.term > a.terms[run.shard], taken.unclean) == (True, True)
    assert await read_by(b, 7) == [1, 2, 3, 4]

    # A's next turn: mine=false, 0 rows. A drops its shard.
    next_turn = a_turn(a, run, 5)
    next_turn.attempts = [a.a_row(run)]
    late = await a.store.scheduler.turn(next_turn)
    assert (late.applied, late.held) == (False, frozenset())
    assert await read_by(b, 7) == [1, 2, 3, 4]
    assert await stage.sql("SELECT id FROM watchbill.attempt") == []


async def test_1_a_turn_behind_a_takeover_in_flight_writes_nothing(stage: Stage):
    a, b = await a_scheduler(stage), await stage.store()
    [run] = await a.submit(a_run(7))
    stage.clock.pass_by(LEASE + 1)

    # B's takeover is under way: it has A's lease, and cannot commit yet.
    takeover = await stage.pin(
        "UPDATE watchbill.lease SET owner = $1, term = nextval('watchbill.term') WHERE shard = $2", B, run.shard
    )
    in_flight = stage.begin(a.store.scheduler.turn(a_turn(a, run, 1)))
    await stage.waits(in_flight)
    await takeover.commit()

    # A sees whose lease it is now, not whose it was when it asked.
    late = await stage.ended(in_flight)
    assert (late.applied, late.held) == (False, frozenset())
    assert await read_by(b, run.num) == []


# --- 2


@pytest.fixture
async def frozen(stage: Stage, request: pytest.FixtureRequest) -> AsyncIterator["Frozen"]:
    """A has frozen at its moment; nothing else has happened yet."""
    await stage.sql("DROP TABLE IF EXISTS watchbill.sink")
    await stage.sql(freezing.SINK)
    app = freezing.a_program(stage.url)
    store = await open_store(stage.url, SystemEnv())
    [run] = await store.client.submit([app._new_run(app.registry.workflows["order"], (), {}, Wish("o-1"))[1]])
    a = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.store.freezing", stage.url, request.param),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(20):
            await asyncio.to_thread(os.waitid, os.P_PID, a.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        yield Frozen(stage, app, store, run.run, a)
        a.send_signal(signal.SIGCONT)  # it may stand still yet, after a test that failed
        async with asyncio.timeout(20):
            await a.communicate(b"")
    finally:
        if a.returncode is None:
            a.kill()
            await a.communicate(b"")
        await store.close()
        await stage.sql("DROP TABLE watchbill.sink")


class Frozen:
    """A, which is frozen, and B, which is not."""

    def __init__(self, stage: Stage, app: App, store: Store, run: RunRow, process: asyncio.subprocess.Process) -> None:
        self.stage, self.app, self.store, self.run, self.process = stage, app, store, run, process

    async def term(self) -> int:
        [(term,)] = await self.stage.sql("SELECT term FROM watchbill.lease WHERE shard = $1", self.run.shard)
        return int(term)

    async def sink(self) -> list[tuple[int, bool]]:
        """What the sink saw of the fifth step."""
        return [
            (fence, accepted)
            for fence, accepted in await self.stage.sql(
                "SELECT fence, accepted FROM watchbill.sink WHERE step = $1 ORDER BY n", freezing.STEPS
            )
        ]

    async def record(self) -> Record:
        record = await self.store.client.record("default", "o-1")
        assert record is not None
        return record

    async def driven_to_its_end_by_b(self) -> None:
        """B: its rooms, as in any process, until the run has ended."""
        ended = asyncio.Event()
        deaf = self.app.events.subscribe(
            lambda events: ended.set() if any(event.kind == RUN_COMPLETED for event in events) else None
        )
        b = House(
            SystemEnv(), self.store, self.app.registry, self.app.events, namespace="default", lease=freezing.LEASE
        )
        await b.start()
        async with asyncio.timeout(20):
            await ended.wait()
        deaf()
        await b.stop()

    async def wakes(self) -> list[str]:
        """Let A go on; gives what its rooms tell until they have let go of the shard."""
        assert self.process.stdout is not None
        os.kill(self.process.pid, signal.SIGCONT)
        told: list[str] = []
        async with asyncio.timeout(20):
            while not told or not told[-1].startswith(SHARDS_LOST):
                told.append((await self.process.stdout.readline()).decode().strip())
        return told


async def the_fifth_step_is_bs(frozen: Frozen, a_term: int) -> int:
    """B: unclean, replays 1..4; call s5 rowless: inserts row failed/lost; judged, leased, runs; gives its fence.

    The row has the first fence of the term, as a rowless attempt would; the lease adds one.
    """
    b_term = await frozen.term()
    assert b_term > a_term
    record = await frozen.record()
    assert record.run.status is RunState.COMPLETED
    steps = [entry for entry in record.journal if entry.kind == Kind.STEP]
    assert [entry.seq for entry in steps][:4] == [1, 2, 3, 4]
    assert [entry.fence for entry in steps][:5] == [*[a_term << 20 | 1] * 4, b_term << 20 | 2]
    [(decision, _), *_] = record.decisions
    assert (decision.actor, decision.fence) == ("supervisor", b_term << 20 | 1)
    assert b'"lost"' in decision.body
    return b_term << 20 | 2


@pytest.mark.parametrize("frozen", ["committed"], indirect=True)
async def test_2_frozen_after_the_commit_before_the_next_step(frozen: Frozen):
    a_term = await frozen.term()
    assert await frozen.sink() == []

    # A commits seq 4, SIGSTOP for longer than its lease. B drives the run to its end.
    await frozen.driven_to_its_end_by_b()
    fence = await the_fifth_step_is_bs(frozen, a_term)
    ended = await frozen.record()

    # A wakes: boottime() > trusted_until: starts nothing, renews, is refused, drops.
    told = await frozen.wakes()
    assert told[-1] == "shards.lost lost"
    assert [line for line in told if line.startswith("step.")] == ["step.completed"] * 4
    assert await frozen.sink() == [(fence, True)], "the body ran once"
    assert (await frozen.record()).journal == ended.journal


@pytest.mark.parametrize("frozen", ["inside"], indirect=True)
async def test_2_frozen_inside_a_step(frozen: Frozen):
    a_term = await frozen.term()
    late = a_term << 20 | 1
    assert await frozen.sink() == [(late, True)]
    await frozen.driven_to_its_end_by_b()
    fence = await the_fifth_step_is_bs(frozen, a_term)
    ended = await frozen.record()

    # Its turn is refused; the body ran twice; the sink saw A's fence, then B's: the late one is refused there.
    await frozen.wakes()
    await frozen.stage.becomes("SELECT 1 FROM watchbill.sink WHERE NOT accepted")
    assert await frozen.sink() == [(late, True), (fence, True), (late, False)]
    assert (await frozen.record()).journal == ended.journal
    assert (await frozen.record()).attempts == ()


# --- 3


async def test_3_frozen_with_a_turn_sent(stage: Stage):
    wire, b = await stage.wire(), await stage.store()
    a = await a_scheduler(stage, await stage.store(wire.url()))
    [run] = await a.submit(a_run(7))
    assert (await a.store.scheduler.turn(a_turn(a, run, 1))).applied

    # A turn is one message: A freezes as soon as it is sent, and the server finishes without A.
    wire.freeze_after(messages=1)
    stage.begin(a.store.scheduler.turn(a_turn(a, run, 2)))
    await wire.frozen()
    assert await stage.becomes(WRITTEN_OR_WAITING) == [(True,)]

    # B waits for nobody.
    stage.clock.pass_by(LEASE + 1)
    taken = (await stage.goes_through(stage.begin(b.scheduler.take(B, list(a.terms), LEASE)))).taken
    assert [lease.shard for lease in taken] == sorted(a.terms)
    assert await read_by(b, 7) == [1, 2]


async def test_3_frozen_inside_a_door_of_several_messages(stage: Stage):
    wire = await stage.wire()
    a, x = await stage.scene(), (await stage.store(wire.url())).agent
    [run] = await a.submit(a_run(1))
    await x.join(X, "default", "", "x", b"{}", LEASE)
    await a.turn(attempts=[a.a_row(run)])
    [row] = await a.lease(X)

    # X leaves, and freezes when it has locked itself and not yet handed back what it runs.
    wire.freeze_before(b"SELECT id, fence")
    leaving = stage.begin(x.leave(X))
    await wire.frozen()

    # Whoever needs X's row waits until the server has had enough of it, and no longer.
    burial = stage.begin(a.store.supervisor.bury([X]))
    await stage.waits(burial)
    await stage.ended(burial)
    assert await stage.sql("SELECT state FROM watchbill.agent WHERE id = $1", X) == [(AgentState.LOST,)]
    assert await a.state_of(row.id) is AttemptState.RUNNING, "nothing of it was done"
    wire.cut()
    with pytest.raises(StoreUnreachableError):
        await stage.ended(leaving)


async def test_3_frozen_inside_a_turn_behind_a_pooler(stage: Stage):
    wire, b = await stage.wire(), await stage.store()
    a = await a_scheduler(stage, await stage.store(wire.url(pooler="transaction")))
    [run] = await a.submit(a_run(7))

    # There a turn is several messages; A freezes before its COMMIT, with its lease locked.
    wire.freeze_before(b"COMMIT", after=b".journal")
    in_flight = stage.begin(a.store.scheduler.turn(a_turn(a, run, 1)))
    await wire.frozen()
    stage.clock.pass_by(LEASE + 1)
    assert (await b.scheduler.take(B, [run.shard], LEASE)).taken == ()

    # The server ends it: nothing was written, and B has the shard.
    await stage.becomes("SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE state LIKE 'idle in tr%')")
    [taken] = (await b.scheduler.take(B, [run.shard], LEASE)).taken
    assert await read_by(b, 7) == []
    wire.cut()
    with pytest.raises(StoreUnreachableError):
        await stage.ended(in_flight)
    late = await a.store.scheduler.turn(a_turn(a, run, 1), again=True)
    assert (late.applied, late.held) == (False, frozenset())
    assert taken.unclean


# Run 7 has the entry; or somebody is inside a transaction, and would have to say more.
WRITTEN_OR_WAITING = """
SELECT true FROM watchbill.journal WHERE run = 7 AND seq = 2
UNION ALL
SELECT false FROM pg_stat_activity WHERE application_name = 'watchbill' AND state LIKE 'idle in transaction%'
"""


# --- 4


async def a_lost_answer(stage: Stage) -> "LostAnswer":
    """Let A send a turn (run 7, seq 5; run 8, seq 1) whose answer is lost while the server is still at it."""
    wire, b = await stage.wire(), await stage.store()
    a = await a_scheduler(stage, await stage.store(wire.url()))
    await a.submit(a_run(7), a_run(8))
    await a.turn(journal=[an_entry(7, seq) for seq in (1, 2, 3, 4)])
    turn = a.a_turn(journal=[an_entry(7, 5), an_entry(8, 1)])
    pin = await keep_key(stage, 8, 1)  # (7, 5) is written, and the statement cannot end
    sent = stage.begin(a.store.scheduler.turn(turn))
    old = await stage.waits(sent)
    wire.cut()
    with pytest.raises(StoreUnreachableError):
        await stage.ended(sent)
    return LostAnswer(a, b, turn, pin, old)


class LostAnswer:
    def __init__(self, a: Scene, b: PostgresStore, turn: Turn, pin: Pin, old: int) -> None:
        self.a, self.b, self.turn, self.pin, self.old = a, b, turn, pin, old


async def test_4_answer_lost_and_the_old_backend_commits(stage: Stage):
    it = await a_lost_answer(stage)

    # A reconnects, resends: waits on key (7,5), then unique violation: applied.
    again = stage.begin(it.a.store.scheduler.turn(it.turn, again=True))
    new = await stage.waits(again)
    assert await stage.sql("SELECT pg_blocking_pids($1)", new) == [([it.old],)]
    await it.pin.release()
    answer = await stage.ended(again)

    # A reads the store's time and goes on.
    assert (answer.applied, answer.held, answer.now) == (True, frozenset(it.a.terms), NOON)
    assert (await it.a.turn(journal=[an_entry(7, 6)])).applied
    assert await read_by(it.b, 7, 8) == [1, 2, 3, 4, 5, 6, 1]


async def test_4_answer_lost_and_the_old_backend_rolls_back(stage: Stage):
    it = await a_lost_answer(stage)
    again = stage.begin(it.a.store.scheduler.turn(it.turn, again=True))
    await stage.waits(again)

    # Had the old one rolled back, the resend applies.
    await stage.kill(it.old)
    await it.pin.release()
    assert (await stage.ended(again)).applied
    assert await read_by(it.b, 7, 8) == [1, 2, 3, 4, 5, 1]


async def test_4_answer_lost_and_somebody_else_took_over(stage: Stage):
    it = await a_lost_answer(stage)
    stage.clock.pass_by(LEASE + 1)
    assert (await it.b.scheduler.take(B, list(it.a.terms), LEASE)).taken == (), "the old one is still at it"

    # Had B taken over meanwhile: mine=false; A drops; what did commit, B has read.
    await it.pin.release()
    await stage.becomes("SELECT 1 FROM watchbill.journal WHERE run = 8")
    assert len((await it.b.scheduler.take(B, list(it.a.terms), LEASE)).taken) == len(it.a.terms)
    assert await read_by(it.b, 7, 8) == [1, 2, 3, 4, 5, 1]
    answer = await it.a.store.scheduler.turn(it.turn, again=True)
    assert (answer.applied, answer.held) == (False, frozenset())
    assert await read_by(it.b, 7, 8) == [1, 2, 3, 4, 5, 1]


# --- 5


async def test_5_done_against_late_and_the_agent_is_first(stage: Stage):
    a, judges = await stage.scene(), await stage.store()
    row, other = await running(stage, a, 2)
    stage.clock.pass_by(6 * SECOND)

    # Both want id, fence f, state=1. The agent's report has the row, and cannot commit yet.
    pin = await keep_row(stage, other.id)
    done = stage.begin(a.store.agent.report(AGENT, [done_with(row), done_with(other)]))
    await stage.waits(done)
    late = stage.begin(judges.supervisor.judge([a_verdict(row, AttemptState.FAILED, why="late")]))
    await stage.waits(late)
    await pin.release()

    # Agent first: state 4; the supervisor's update: 0 rows, its decision is not inserted.
    assert await stage.ended(done) == [Answer.ACCEPTED, Answer.ACCEPTED]
    assert await stage.ended(late) == [False]
    assert await a.decisions("o-1") == []
    found = await a.row(row.id)
    assert (found.state, found.result, found.why) == (AttemptState.DONE, b"42", None)

    # The agent's repeated `done` after a lost reply: already.
    assert await a.store.agent.report(AGENT, [done_with(row)]) == [Answer.ALREADY]


async def test_5_done_against_late_and_the_supervisor_is_first(stage: Stage):
    a, judges = await stage.scene(), await stage.store()
    row, other = await running(stage, a, 2)
    stage.clock.pass_by(6 * SECOND)
    pin = await keep_row(stage, other.id)
    verdicts = [a_verdict(each, AttemptState.FAILED, failures=1, losses=-1, why="late") for each in (row, other)]
    late = stage.begin(judges.supervisor.judge(verdicts))
    await stage.waits(late)
    done = stage.begin(a.store.agent.report(AGENT, [done_with(row)]))
    await stage.waits(done)
    await pin.release()

    # Supervisor first: state 2; the agent hears *late*, and its result is not kept.
    assert await stage.ended(late) == [True, True]
    assert await stage.ended(done) == [Answer.LATE]
    *judged, refused = await a.decisions("o-1")
    assert [decision.actor for decision in judged] == ["supervisor"] * 2
    assert (refused.fence, refused.n, refused.actor) == (row.fence, OF_A_REFUSAL, "agent"), "and is counted"
    found = await a.row(row.id)
    assert (found.state, found.result, found.failures, found.losses) == (AttemptState.FAILED, None, 1, 0)
    orders = await a.store.agent.beat(AGENT, None, [], [(row.id, row.fence)])
    assert orders.lost == (row.id,), "and at its next beat it is told to let go"


def done_with(row: AttemptRow) -> Report:
    return Report(row.id, row.fence, Act.DONE, b"42")


# --- 6


async def test_6_zombie_supervisor(stage: Stage):
    a, s1, s2 = await stage.scene(), await stage.store(), await stage.store()
    row, other = await running(stage, a, 2)
    await a.store.agent.beat(AGENT, None, [a_mark(row)])

    # S1 reads progress_at = 10:00, and freezes.
    stage.clock.pass_by(6 * SECOND)
    seen = {found.id: found for found in (await s1.supervisor.watch(10)).due}[row.id]
    assert seen.progress_at == NOON

    # The step moves on, 10:05: its beat is under way when S1 wakes, and S1 waits for it.
    pin = await keep_row(stage, other.id)
    beat = stage.begin(a.store.agent.beat(AGENT, None, [a_mark(row), a_mark(other)]))
    await stage.waits(beat)
    verdict = stage.begin(s1.supervisor.judge([a_verdict(seen, AttemptState.FAILED, why="stalled")]))
    await stage.waits(verdict)
    await pin.release()
    await stage.ended(beat)

    # `... and progress_at is not distinct from 10:00`: 0 rows. No term needed.
    assert await stage.ended(verdict) == [False]
    again = await s1.supervisor.judge([a_verdict(seen, AttemptState.FAILED, why="stalled")])
    assert again == [False]
    assert await a.decisions("o-1") == []

    # S2 has seen what there is now: its verdict counts, and S1's is then older than the state, too.
    now = {found.id: found for found in (await s2.supervisor.watch(10)).due}[row.id]
    assert now.progress_at == NOON + 6 * SECOND
    assert await s2.supervisor.judge([a_verdict(now, AttemptState.FAILED, why="late")]) == [True]
    assert await s1.supervisor.judge([a_verdict(now, AttemptState.FAILED, why="late")]) == [False]
    assert len(await a.decisions("o-1")) == 1


def a_mark(row: AttemptRow) -> ProgressMark:
    return ProgressMark(row.id, row.fence, b"{}", increased=True)


# --- 7


async def agent_x(stage: Stage) -> tuple[Scene, PostgresStore, AttemptRow]:
    """Let X join for the time of a lease; there is one ready row, whose lease can be held inside by its old result."""
    a, x = await stage.scene(), await stage.store()
    await x.agent.join(X, "default", "", "x", b"{}", LEASE)
    [run] = await a.submit(a_run(1))
    failed = a.a_row(run, AttemptState.FAILED, result=LARGE)
    await a.turn(attempts=[failed])
    assert await a.judge(a_verdict(await a.row(failed.id), AttemptState.READY))
    return a, x, await a.row(failed.id)


async def keep_result(stage: Stage) -> Pin:
    """Hold whoever leases a row with a large result: the result goes with the lease."""
    return await stage.pin("SELECT n FROM watchbill.blob FOR UPDATE")


async def test_7_lost_agent_leasing_and_the_lease_is_first(stage: Stage):
    a, x, row = await agent_x(stage)
    leases = Scene(x, stage.clock)
    leases.queue = a.queue

    # Lease first: X's row is held FOR SHARE, the supervisor waits.
    pin = await keep_result(stage)
    leasing = stage.begin(leases.lease(X))
    await stage.waits(leasing)
    stage.clock.pass_by(LEASE + 1)
    burial = stage.begin(a.store.supervisor.bury([X]))
    await stage.waits(burial)
    await pin.release()
    [leased] = await stage.ended(leasing)
    await stage.ended(burial)

    # It marks X, and its sweep, a later statement, sees the new row: judged lost, the loss stands.
    [orphan] = (await a.store.supervisor.watch(10, expired=False)).orphans
    assert (orphan.id, orphan.fence, orphan.agent) == (row.id, leased.fence, X)
    assert await a.judge(a_verdict(orphan, AttemptState.FAILED, dead_agent=X))
    assert (await a.row(row.id)).losses == 1
    assert await leases.lease(X) == []
    assert not (await x.agent.beat(X, LEASE, [])).alive, "X learns that it must join anew"


async def test_7_lost_agent_leasing_and_the_mark_is_first(stage: Stage):
    a, x, row = await agent_x(stage)
    await a.store.agent.join(Y, "default", "", "y", b"{}", LEASE)
    leases = Scene(x, stage.clock)
    leases.queue = a.queue

    # Mark first, not yet committed: X's lease waits for it.
    pin = await stage.pin("SELECT id FROM watchbill.agent WHERE id = $1 FOR UPDATE", Y)
    burial = stage.begin(a.store.supervisor.bury([X, Y]))
    await stage.waits(burial)
    leasing = stage.begin(leases.lease(X))
    await stage.waits(leasing)
    await pin.release()
    await stage.ended(burial)

    # The predicate `alive` fails: 0 rows. No running row under a lost agent.
    assert await stage.ended(leasing) == []
    assert await a.state_of(row.id) is AttemptState.READY
    assert not (await x.agent.beat(X, LEASE, [])).alive


async def test_7_an_agent_out_of_time_leases_nothing_until_it_has_beaten(stage: Stage):
    a, x, row = await agent_x(stage)
    stage.clock.pass_by(LEASE)
    assert await a.lease(X) == []
    assert (await x.agent.beat(X, LEASE, [])).alive
    assert [leased.id for leased in await a.lease(X)] == [row.id]


# --- 8


async def a_lost_lease(stage: Stage) -> tuple[Scene, PostgresStore, list[tuple[int, int]]]:
    """Let X lease under number 9, and its answer be lost: gives the rows that it has without knowing."""
    wire, a = await stage.wire(), await stage.scene()
    x = await stage.store(wire.url())
    leases = Scene(x, stage.clock)
    leases.queue = a.queue
    await x.agent.join(X, "default", "", "x", b"{}", LEASE)
    assert await leases.lease(X, lease_no=8) == []
    [run] = await a.submit(a_run(1))
    await a.turn(attempts=[a.a_row(run, call=f"charge.{n}") for n in range(5)])
    wire.gag()
    lost = stage.begin(leases.lease(X, lease_no=9, limit=2))
    rows = await stage.becomes("SELECT id, fence FROM watchbill.attempt WHERE state = 1 AND lease_no = 9 ORDER BY id")
    wire.cut()
    with pytest.raises(StoreUnreachableError):
        await stage.ended(lost)
    return leases, x, [(id, fence) for id, fence in rows]


async def test_8_reply_of_lease_lost_and_asked_again(stage: Stage):
    leases, _, rows = await a_lost_lease(stage)

    # X asks again with 9: the same rows, and no others.
    again = await leases.lease(X, lease_no=9, limit=2)
    assert [(row.id, row.fence, row.losses) for row in again] == [(*row, 1) for row in rows]
    assert await stage.sql("SELECT count(*) FROM watchbill.attempt WHERE state = 1") == [(2,)]

    # With 10 it gets the next ones.
    more = await leases.lease(X, lease_no=10, limit=2)
    assert not {row.id for row in more} & {id for id, _ in rows}
    assert len(more) == 2


async def test_8_reply_of_lease_lost_and_the_agent_restarted(stage: Stage):
    leases, _, rows = await a_lost_lease(stage)
    a = await stage.store()

    # X was restarted instead: a new id, which gets the others; the old id expires.
    await a.agent.join(Y, "default", "", "x again", b"{}", None)
    assert len(await leases.lease(Y)) == 3
    stage.clock.pass_by(LEASE)

    # Its rows are lost, charged one loss, and moved at the next look.
    orphans = (await a.supervisor.watch(10)).orphans
    assert sorted((row.id, row.fence) for row in orphans) == rows
    assert (
        await a.supervisor.judge([a_verdict(row, AttemptState.FAILED, dead_agent=X) for row in orphans]) == [True] * 2
    )
    failed = (await a.supervisor.watch(10, expired=False)).orphans
    assert failed == ()
    for id, _ in rows:
        row = await leases.row(id)
        assert (row.state, row.losses, row.failures) == (AttemptState.FAILED, 1, 0)
        assert await leases.judge(a_verdict(row, AttemptState.READY))
    moved = await leases.lease(Y)
    assert sorted((row.id, row.fence) for row in moved) == [(id, fence + 1) for id, fence in rows]
