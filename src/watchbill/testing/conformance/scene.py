"""What the store's tests are made of: a clock that stands still, builders, and a scheduler, an agent, a supervisor."""

from collections.abc import Sequence
from typing import Any

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.env import SystemEnv
from watchbill.model.agent import Act, Answer, Report, Room
from watchbill.model.attempt import AttemptRow, NewAttempt, first_fence
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.decision import Decision, DecisionRow
from watchbill.model.run import NewRun, RunChange, RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.model.verdict import Judgement, Recast
from watchbill.store.protocol import Store, Turn, TurnAnswer

NOON: Micros = 1_800_000_000 * SECOND
LIMIT = 100
STEPS = ("charge",)
KNOWN = ("order@1",)
ME = 7
AGENT = 70


class HandClock:
    """Time passes only when a test says so."""

    def __init__(self, wall: Micros = NOON, boot: Micros = 5 * SECOND) -> None:
        self.wall_now = wall
        self.boot_now = boot

    def wall(self) -> Micros:
        return self.wall_now

    def boot(self) -> Micros:
        return self.boot_now

    def pass_by(self, span: Micros) -> None:
        self.boot_now += span
        self.wall_now += span


class HandEnv(SystemEnv):
    """A process of which there may be several on one clock that stands still: their ids are of the real time."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__()
        self._real = SystemEnv()
        self.clock = clock

    def new_id(self) -> int:
        return self._real.new_id()

    def renumber(self, number: int | None = None) -> None:
        self._real.renumber(number)


def a_run(num: int = 1, id: str | None = None, *, workflow: str = "order", input: bytes = b"[]") -> NewRun:
    return NewRun(num, "default", id or f"o-{num}", workflow, 1, input)


def an_entry(run: int, seq: int, *, body: bytes = b"1", fence: int = 0, at: Micros = NOON) -> JournalEntry:
    return JournalEntry(run, seq, Kind.STEP, f"charge.{seq}", 99, fence, Outcome.OK, None, None, at, body)


def a_decision(
    run: int, call: str = "charge", *, n: int = 1, actor: str = "scheduler", message: str = ""
) -> DecisionRow:
    return DecisionRow(run, call, 0, n, actor, a_reason(message))


def a_reason(message: str) -> bytes:
    return msgspec.json.encode(Decision(rule="a rule", chosen="held", message=message))


def a_change(
    run: RunRow | int, status: RunState, *, wake_at: Micros | None = None, losses: int = 0, held: str | None = None
) -> RunChange:
    return RunChange(run if isinstance(run, int) else run.num, status, wake_at, losses, held, None)


def to_judge(row: AttemptRow) -> AttemptRow:
    """Give a row as supervisors read it."""
    return msgspec.structs.replace(row, args=b"", checkpoint=None)


def a_verdict(
    row: AttemptRow,
    after: AttemptState,
    *,
    failures: int = 0,
    losses: int = 0,
    watch_in: Micros | None = None,
    why: str | None = None,
    result: bytes | None = None,
    dead_agent: int | None = None,
    message: str | None = "",
    unmoved: bool = False,
    recast: Recast | None = None,
) -> Judgement:
    return Judgement(
        row.id, row.fence, row.state, row.progress_at, dead_agent, after, failures, losses, watch_in, why, result,
        row.run, row.call, None if message is None else a_reason(message), unmoved, row.progress, recast,
        watch_at=row.watch_at, cancel=row.cancel,
    )  # fmt: skip


def a_recast(row: AttemptRow, **changes: Any) -> Recast:
    same = Recast(row.kind, row.step, row.rung, row.policy, None, alone=False, earlier=0, doubt=row.doubt)
    return same._replace(**changes)


class Scene:
    """One store with a scheduler that holds every shard, one agent, and rows brought into any state."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.store = store
        self.clock = clock
        self.env = SystemEnv()
        self.terms: dict[int, int] = {}
        self.queue = 0
        self._ids = iter(range(1_000, 1_000_000))

    async def open(self) -> None:
        scheduler = self.store.scheduler
        shards = await scheduler.shards("default", "")
        taken = (await scheduler.take(ME, shards, None)).taken
        self.terms = {shard.shard: shard.term for shard in taken}
        self.queue = await scheduler.queue("default", "", (), "")
        await self.store.agent.join(AGENT, "default", "", "a", b"{}", None)

    # --- runs

    async def submit(self, *runs: NewRun) -> list[RunRow]:
        return [answer.run for answer in await self.store.client.submit(runs)]

    async def turn(self, **parts: object) -> TurnAnswer:
        return await self.store.scheduler.turn(self.a_turn(**parts))

    def a_turn(self, **parts: object) -> Turn:
        return msgspec.structs.replace(Turn(ME, dict(self.terms)), **parts)

    async def run_in(self, state: RunState, num: int) -> RunRow:
        """Bring a new run into a state by the shortest way."""
        [run] = await self.submit(a_run(num))
        way = {
            RunState.SCHEDULED: (),
            RunState.UNDONE: (RunState.UNDOING, state),
            RunState.UNDO_FAILED: (RunState.UNDOING, state),
        }.get(state, (state,))
        for status in way:
            await self.turn(runs=[a_change(run, status)])
        return await self.run_row(run.id)

    async def run_row(self, id: str) -> RunRow:
        run = await self.store.client.find("default", id)
        assert run is not None
        return run

    # --- rows

    def a_row(self, run: RunRow, state: AttemptState = AttemptState.READY, **changes: object) -> NewAttempt:
        row = NewAttempt(
            id=next(self._ids),
            run=run.num,
            run_id=run.id,
            part=run.part,
            shard=run.shard,
            call="charge",
            step="charge",
            queue=self.queue,
            state=state,
            fence=first_fence(self.terms[run.shard]),
            agent=AGENT if state is AttemptState.RUNNING else None,
            failures=1 if state is AttemptState.FAILED else 0,
            losses=1 if state is AttemptState.RUNNING else 0,
            alone=False,
            span=60_000,
            started_ago=None,
            watch_in=None,
            progress=None,
            policy=b"{}",
            args=b"[1]",
            result=b'{"type":"ValueError","message":"no"}' if state is AttemptState.FAILED else None,
        )
        return row._replace(**changes)  # type: ignore[arg-type]

    async def row_in(self, state: AttemptState, run: RunRow, **changes: object) -> AttemptRow:
        """Bring a new row into a state through the doors."""
        to_be_leased = state in (AttemptState.READY, AttemptState.RUNNING, AttemptState.DONE)
        new = self.a_row(run, AttemptState.READY if to_be_leased else AttemptState.FAILED, **changes)
        await self.turn(attempts=[new])
        if state in (AttemptState.RUNNING, AttemptState.DONE):
            [row] = await self.lease()
            if state is AttemptState.DONE:
                await self.report(row, Act.DONE, b"42")
        elif state is AttemptState.PARKED:
            # For people whose time is over at once: of what is parked, that may go everywhere.
            assert await self.judge(a_verdict(await self.row(new.id), state, watch_in=0, why="escalate"))
        elif state is AttemptState.GAVE_UP:
            assert await self.judge(a_verdict(await self.row(new.id), state))
        return await self.row(new.id)

    async def rows(self) -> dict[int, AttemptRow]:
        found = {}
        for run in await self.store.client.runs("default", limit=100_000):
            record = await self.store.client.record("default", run.id)
            assert record is not None
            found.update({row.id: row for row in record.attempts})
        return found

    async def row(self, id: int) -> AttemptRow:
        return (await self.rows())[id]

    async def state_of(self, id: int) -> AttemptState | None:
        row = (await self.rows()).get(id)
        return row.state if row is not None else None

    async def lease(
        self, agent: int = AGENT, *, lease_no: int | None = None, limit: int = LIMIT, alone: int = LIMIT
    ) -> list[AttemptRow]:
        lease_no = next(self._ids) if lease_no is None else lease_no
        return await self.store.agent.lease(agent, lease_no, [self.queue], Room(limit, alone, STEPS))

    async def report(self, row: AttemptRow, act: Act, body: bytes | None = None) -> Answer:
        [answer] = await self.store.agent.report(AGENT, [Report(row.id, row.fence, act, body)])
        return answer

    async def judge(self, *verdicts: Judgement) -> bool:
        return all(await self.store.supervisor.judge(verdicts))

    async def decisions(self, id: str) -> Sequence[DecisionRow]:
        record = await self.store.client.record("default", id)
        assert record is not None
        return [decision for decision, _ in record.decisions]
