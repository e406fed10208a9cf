"""Whatever is done through the doors, in whichever order: a file and PostgreSQL answer alike, and hold the same.

The statements are written twice, and what one of them makes of two changes to one row the other need not. So stories
are drawn by chance, told to both, and compared after every sentence.
"""

import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.store.postgres import by_hand, emptied
from watchbill.clock import SECOND
from watchbill.model.agent import Act, ProgressMark, Report, Room
from watchbill.model.attempt import AttemptRow, NewAttempt, RowKind
from watchbill.model.facts import FactKind
from watchbill.model.question import Patience, Question
from watchbill.model.run import RunRow
from watchbill.model.states import AttemptState, RunState
from watchbill.store.open import open_store
from watchbill.store.postgres.marks import RESCAN
from watchbill.store.protocol import AskedAgain, NewFact, Record, TurnFact
from watchbill.testing.conformance.people import FAILED, WHY, gathering
from watchbill.testing.conformance.scene import (
    KNOWN,
    LIMIT,
    STEPS,
    HandClock,
    HandEnv,
    Scene,
    a_change,
    a_decision,
    a_reason,
    a_run,
    a_verdict,
    an_entry,
)

A = AttemptState
STORIES = int(os.environ.get("WATCHBILL_STORIES", "12"))
SENTENCES = 60
AGENTS = (70, 71)
LASTING = 20 * SECOND
LIVE = (RunState.RUNNING, RunState.WAITING, RunState.UNDOING)
WHYS = ("escalate", "quarantine", "doubt", "settle", "backoff", "breaker", None)
MARK = b'{"done":%d,"total":9,"note":"","quiet_until":null,"label":""}'


class Twins:
    """Two stores with the same clock, to which the same is done."""

    def __init__(self, scenes: list[Scene], marks: HandClock, chance: random.Random) -> None:
        self.scenes = scenes
        self.marks = marks  # the time of PostgreSQL's marks
        self.chance = chance
        self.runs: list[RunRow] = []
        self.rows: dict[int, AttemptRow] = {}
        self.facts: list[int] = []
        self.seqs: dict[int, int] = {}
        self.told = 0
        self.let_go: set[int] = set()  # rows that applied turns were to delete, and did only if their state fitted

    async def both(self, act: Callable[[Scene], Awaitable[Any]]) -> Any:
        """Do something to both; their answers are the same."""
        one, other = [await _answer(act(scene)) for scene in self.scenes]
        assert one == other, f"{one} on a file, {other} on PostgreSQL"
        return one

    async def look(self) -> None:
        """Compare all that they hold, and remember it."""
        records = [await self._records(scene) for scene in self.scenes]
        for one, other in zip(*records, strict=True):
            assert _plain(one) == _plain(other)
        self.rows = {row.id: row for record in records[0] for row in record.attempts}
        self.facts = [fact.id for record in records[0] for fact in record.told]
        self.runs = [record.run for record in records[0]]

    async def _records(self, scene: Scene) -> list[Record]:
        found = [await scene.store.client.record("default", run.id) for run in self.runs]
        return [record for record in found if record is not None]

    def pass_by(self) -> None:
        span = self.chance.choice((1, 1, 1, SECOND, 5 * SECOND, LASTING))
        for scene in self.scenes:
            scene.clock.pass_by(span)

    def some(self, *states: A) -> list[AttemptRow]:
        """Give one or two rows, mostly in such a state."""
        fitting = [row for row in self.rows.values() if row.state in states]
        pool = fitting if fitting and self.chance.random() < 0.8 else list(self.rows.values())
        return self.chance.sample(pool, min(len(pool), self.chance.choice((1, 1, 2))))

    def new_id(self) -> int:
        self.told += 1
        return 10_000 + self.told


async def _answer(asked: Awaitable[Any]) -> Any:
    """Give what a door says; a refusal is an answer, too."""
    try:
        return await asked
    except ValueError as refused:
        return str(refused).partition(":")[0]


def _plain(record: Record) -> object:
    """Give what must be the same: not the numbers that each store gives to facts by itself."""
    facts = [msgspec.structs.replace(fact, id=0) for fact in record.told]
    decisions = sorted([(*decision[:2], decision.actor, decision.body, at) for decision, at in record.decisions])
    return record.run, record.journal, record.attempts, decisions, facts, record.desk, record.incident, record.waits


# --- sentences


async def submit(twins: Twins) -> None:
    num, chance = len(twins.runs) + 1, twins.chance
    new = msgspec.structs.replace(a_run(num), delay=chance.choice((0, 5 * SECOND)), priority=chance.randint(-3, 3))
    made = await twins.both(lambda scene: scene.submit(new))
    twins.runs += made


def _row(twins: Twins, scene: Scene, run: RunRow, state: A, id: int, *, held: bool) -> NewAttempt:
    row = scene.a_row(run, state, id=id, call=f"charge.{id}", held=held, rank_ahead=id)
    if state is A.RUNNING:
        return row._replace(agent=AGENTS[0], watch_in=60 * SECOND)
    if state is A.PARKED:
        question = msgspec.json.encode(Question("ship it?", "team", {}))
        patience = msgspec.json.encode(Patience())
        return row._replace(kind=RowKind.ASK, why="ask", args=question, policy=patience, step="ask")
    return row


async def turn(twins: Twins) -> None:
    """Write a turn of a few parts, of which several may name one row, or one run."""
    chance = twins.chance
    if not twins.runs:
        return
    parts: dict[str, Callable[[Scene], object]] = {}
    names = ("attempts", "finals_done", "dropped", "decided", "released", "asked_again", "holds", "runs", "journal")
    chosen = chance.sample((*names, "decisions", "facts_done", "facts"), chance.choice((1, 1, 2, 2, 3, 4)))
    run, other = chance.choice(twins.runs), chance.choice(twins.runs)
    if "attempts" in chosen:
        state, held = chance.choice((A.READY, A.READY, A.RUNNING, A.FAILED, A.PARKED)), chance.random() < 0.2
        id = twins.new_id()
        parts["attempts"] = lambda scene: [_row(twins, scene, run, state, id, held=held)]
    finals, moved = [row.id for row in twins.some(A.DONE, A.GAVE_UP)], twins.some(A.PARKED, A.RUNNING, A.READY)
    for name, ids in (("finals_done", finals), *((name, [row.id for row in moved]) for name in names[2:5])):
        if name in chosen and ids:
            parts[name] = partial(_given, ids)
    if "asked_again" in chosen and moved:
        parts["asked_again"] = lambda _: [AskedAgain(row.id, 30 * SECOND) for row in moved]
    if "holds" in chosen:
        runs = (run.num, other.num, *(row.run for row in moved))
        holds = [(chance.choice(runs), chance.random() < 0.5) for _ in range(chance.choice((1, 2, 3)))]
        parts["holds"] = lambda _: holds
    if "runs" in chosen:
        status, paused = chance.choice(LIVE if chance.random() < 0.9 else list(RunState)), chance.random() < 0.3
        parts["runs"] = lambda _: [a_change(run, status)._replace(paused=paused)]
    if "journal" in chosen:
        seq = twins.seqs[run.num] = twins.seqs.get(run.num, 0) + 1
        parts["journal"] = lambda scene: [an_entry(run.num, seq, at=scene.clock.wall())]
    if "decisions" in chosen:
        n = twins.new_id()
        parts["decisions"] = lambda _: [a_decision(run.num, n=n)]
    if "facts_done" in chosen and twins.facts:
        place = chance.randrange(len(twins.facts))
        done = [await _fact_at(scene, twins, place) for scene in twins.scenes]
        parts["facts_done"] = lambda scene: [done[twins.scenes.index(scene)]]
    if "facts" in chosen:
        ref = f"t{twins.new_id()}"
        parts["facts"] = lambda _: [TurnFact(other.num, "default", "", FactKind.CHILD, ref, "run", b"1")]
    answer = await twins.both(lambda scene: scene.turn(**{name: make(scene) for name, make in parts.items()}))
    if isinstance(answer, str) and "journal" in parts:
        twins.seqs[run.num] -= 1  # it was refused, whole
    if not isinstance(answer, str):
        twins.let_go.update(finals if "finals_done" in parts else ())
        twins.let_go.update([row.id for row in moved] if {"dropped", "decided"} & parts.keys() else ())


def _given(ids: list[int], _: Scene) -> list[int]:
    return ids


async def _fact_at(scene: Scene, twins: Twins, place: int) -> int:
    records = [await scene.store.client.record("default", run.id) for run in twins.runs]
    return [fact.id for record in records if record is not None for fact in record.told][place]


async def lease(twins: Twins) -> None:
    agent, number, limit = twins.chance.choice(AGENTS), twins.new_id(), twins.chance.randint(1, 4)
    await twins.both(lambda scene: scene.store.agent.lease(agent, number, [scene.queue], Room(limit, limit, STEPS)))


async def report(twins: Twins) -> None:
    acts = (Act.DONE, Act.DONE, Act.FAILED, Act.DIED, Act.HAND_BACK, Act.CHECKPOINT)
    reports = [
        Report(
            row.id, row.fence - (twins.chance.random() < 0.1), act, FAILED if act in (Act.FAILED, Act.DIED) else b"1"
        )
        for row in twins.some(A.RUNNING)
        for act in [twins.chance.choice(acts)]
    ]
    if reports:
        agent = twins.rows[reports[0].id].agent or AGENTS[0]
        await twins.both(lambda scene: scene.store.agent.report(agent, reports))


async def beat(twins: Twins) -> None:
    agent, chance = twins.chance.choice(AGENTS), twins.chance
    held = [row for row in twins.rows.values() if row.agent == agent and row.state is A.RUNNING]
    said = [row for row in held if chance.random() < 0.7]
    marks = [ProgressMark(row.id, row.fence, MARK % chance.randint(1, 9), chance.random() < 0.7) for row in said[:2]]
    starved = [(row.id, row.fence) for row in said if chance.random() < 0.2]
    number, known = twins.new_id(), [(row.id, row.fence) for row in said]

    async def beaten(scene: Scene) -> object:
        orders = await scene.store.agent.beat(agent, LASTING, marks, known, starved=starved, lease_no=number)
        # What it does not speak of is handed back: that it should stop may be said, or not.
        return msgspec.structs.replace(orders, cancel=tuple(id for id in orders.cancel if id in dict(known)))

    await twins.both(beaten)


async def judge(twins: Twins) -> None:
    chance = twins.chance
    verdicts = []
    for row in twins.some(A.FAILED, A.RUNNING, A.PARKED):
        after = chance.choice(list(A))
        parked = after is A.PARKED
        verdicts.append(
            a_verdict(
                row,
                after,
                failures=chance.choice((0, 0, 1)),
                watch_in=chance.choice((None, 0, 30 * SECOND)),
                why=chance.choice(WHYS[:-1]) if parked else None,
                result=chance.choice((None, FAILED)),
                dead_agent=row.agent if row.state is A.RUNNING and chance.random() < 0.3 else None,
                message=f"n{twins.new_id()}",
            )
        )
    if verdicts:
        await twins.both(lambda scene: scene.store.supervisor.judge(verdicts))


async def gather(twins: Twins) -> None:
    """Make an incident of some that wait for a person."""
    waiting = [row for row in twins.some(A.PARKED) if row.why in ("escalate", "quarantine", "doubt")]
    if waiting:
        one = gathering(
            twins.new_id(), waiting, twins.chance.choice("cd"), within=twins.chance.choice((None, 9 * SECOND))
        )
        await twins.both(lambda scene: scene.store.supervisor.attach([one]))


async def decide(twins: Twins) -> None:
    """Answer, hold, or decide about something that waits for a person."""
    chance, rows = twins.chance, twins.some(A.PARKED)
    if not rows:
        return
    id, number, mine = rows[0].id, twins.new_id(), a_reason("mine")
    match chance.choice(("answer", "resolve", "claim")):
        case "answer":
            await twins.both(lambda scene: scene.store.client.answer("default", id, "ada", b"true"))
        case "resolve":
            await twins.both(lambda scene: scene.store.client.resolve("default", id, "ada", WHY, force=True))
        case _:
            await twins.both(lambda scene: scene.store.client.claim("default", id, "bob", 60 * SECOND, number, mine))


async def tell(twins: Twins) -> None:
    if twins.runs:
        run, kind = (
            twins.chance.choice(twins.runs),
            twins.chance.choice((FactKind.SEND, FactKind.PAUSE, FactKind.CANCEL)),
        )
        fact = NewFact("default", run.id, kind, f"f{twins.new_id()}", "ada", b'["t",1]')
        await twins.both(lambda scene: scene.store.client.tell([fact]))


async def watch(twins: Twins) -> None:
    """Let everybody look for what there is to do; in which order they find it is not promised."""
    await twins.both(_watched)
    await twins.both(_mustered)
    one, other = [await _looked(scene) for scene in twins.scenes]
    missed = set(one.finals) - set(other.finals)
    if missed and other.finals and missed <= twins.let_go:
        # The only difference that is promised. PostgreSQL reads from the first row that its scheduler has inserted and
        # no turn was to delete. A row that a turn named too early stays, and may become final before that place. It is
        # found when no other row is final, or when all rows are read again after RESCAN (`store/postgres/marks.py`).
        # A cancelled call has such a row. A scheduler names one as `finals_done` only if its store has lost commits.
        twins.marks.pass_by(RESCAN)
        other = await _looked(twins.scenes[1])
    assert one == other


async def _watched(scene: Scene) -> object:
    watch = await scene.store.supervisor.watch(LIMIT)
    return sorted(row.id for row in watch.due), sorted(row.id for row in watch.orphans)


async def _mustered(scene: Scene) -> object:
    muster = await scene.store.supervisor.muster(LIMIT)
    return sorted(call.id for call in muster.waiting), sorted(row.id for row in muster.healed), len(muster.reminders)


class Looked(NamedTuple):
    """What a look has found, sorted."""

    due: list[int]
    finals: list[int]
    facts: list[tuple[int, str]]


async def _looked(scene: Scene) -> Looked:
    look = await scene.store.scheduler.look(list(scene.terms), KNOWN, LIMIT)
    facts = sorted((fact.run, fact.ref) for fact in look.facts)
    return Looked(sorted(run.num for run in look.due), sorted(row.id for row in look.finals), facts)


SAID = (submit, turn, turn, turn, turn, lease, lease, report, report, beat, judge, judge, gather, decide, tell, watch)


@pytest.fixture
def marks() -> HandClock:
    """The clock of both processes. It stands still, so the marks of PostgreSQL count however slow the machine is."""
    return HandClock()


@pytest.fixture
async def scenes(postgres_url: str, marks: HandClock) -> AsyncIterator[list[Scene]]:
    await emptied(postgres_url)
    scenes = []
    for url in ("sqlite:///:memory:", postgres_url):
        clock = HandClock()
        scenes.append(Scene(await open_store(url, HandEnv(marks), clock=clock), clock))
    for (name,) in await by_hand(postgres_url, "SELECT sequencename FROM pg_sequences WHERE schemaname = 'watchbill'"):
        await by_hand(postgres_url, f"SELECT setval('watchbill.{name}', 1, false)")  # else it counts on
    for scene in scenes:
        await scene.open()
        for agent in AGENTS:
            await scene.store.agent.join(agent, "default", "", f"a{agent}", b"{}", LASTING)
    yield scenes
    for scene in scenes:
        await scene.store.close()


@pytest.mark.parametrize("story", range(STORIES))
async def test_whatever_is_done_a_file_and_postgresql_are_alike(
    scenes: list[Scene], marks: HandClock, story: int
) -> None:
    twins = Twins(scenes, marks, random.Random(story))
    await submit(twins)
    for n in range(SENTENCES):
        sentence = twins.chance.choice(SAID)
        try:
            await sentence(twins)
            await twins.look()
        except AssertionError as error:
            error.add_note(f"in sentence {n} of story {story}: {sentence.__name__}")
            raise
        twins.pass_by()
