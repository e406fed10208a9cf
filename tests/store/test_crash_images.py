"""Power cuts at any moment: whatever the disk had not flushed is lost or torn, and no acknowledged commit is.

A workload runs on the real store, and notes what was acknowledged, and when. Then folders are built as a power cut at
any moment could have left them (`power`), and each is opened by the real store on the standard library's SQLite.
"""

import asyncio
import contextlib
import hashlib
import os
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.facts import report
from tests.store.power import Disk, Link, Module, Recorder, Sync
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.errors import StoreError
from watchbill.model.agent import Act, Answer, Report
from watchbill.model.attempt import AttemptRow
from watchbill.model.facts import FactKind
from watchbill.model.run import RunRow
from watchbill.model.stat import Lesson, Seen
from watchbill.model.states import RunState
from watchbill.store.group_commit import GroupCommit
from watchbill.store.open import open_store
from watchbill.store.protocol import NewFact
from watchbill.store.sqlite import database
from watchbill.store.sqlite.database import Database
from watchbill.store.sqlite.store import SqliteStore
from watchbill.testing.conformance.scene import AGENT, ME, HandClock, Scene, a_change, a_run, an_entry

IMAGES = int(os.environ.get("WATCHBILL_IMAGES", "1000"))
FIRST = int(os.environ.get("WATCHBILL_IMAGES_SEED", "1"))
OF_ONE_WORKLOAD = 250
AT_ONE_MOMENT = 3
ROUNDS = 60  # of a workload
CHECKED_WHOLE = 10  # of so many images one is read by PRAGMA integrity_check, page by page
LARGE = 300_000  # bytes, more than a row holds

Key = tuple[str, Any]


# --- what was acknowledged


@dataclass
class Claim:
    """A value that was acknowledged at this place of the log."""

    key: Key
    value: Any
    at: int


@dataclass
class Ledger:
    """What the store has acknowledged as durable, and what may have changed it since."""

    recorder: Recorder
    claims: list[Claim] = field(default_factory=list)
    changed: dict[Key, list[int]] = field(default_factory=dict)  # when a change of it was asked for
    commits: set[bytes] = field(default_factory=set)  # the content of the file after each of them

    @property
    def here(self) -> int:
        return len(self.recorder.log)

    def may_change(self, *keys: Key) -> None:
        for key in keys:
            self.changed.setdefault(key, []).append(self.here)

    def acknowledged(self, claims: dict[Key, Any]) -> None:
        self.claims += [Claim(key, value, self.here) for key, value in claims.items()]

    def holding(self, position: int) -> Iterator[Claim]:
        """Give what was acknowledged before a place of the log, and what nobody has asked to change since."""
        for claim in self.claims:
            if claim.at > position:
                break
            if not any(claim.at <= change < position for change in self.changed.get(claim.key, ())):
                yield claim


# --- the workload


class Workload:
    """Runs, turns, facts, attempts, retention, openings and closings of one store; several operations at a time."""

    def __init__(self, ledger: Ledger, url: str, chance: random.Random) -> None:
        self.ledger = ledger
        self.url = url
        self.chance = chance
        self.clock = HandClock()
        self.runs: dict[int, RunRow] = {}
        self.seqs: dict[int, int] = {}
        self.held: dict[int, AttemptRow] = {}  # attempts that the agent runs
        self.ended: dict[int, int] = {}  # run -> when
        self.next = 0
        self.scene: Scene

    async def play(self) -> None:
        await self.open()
        for n in range(ROUNDS):
            if n % 20 == 19:
                await self.close()
                await self.open()
            self.busy: set[int] = set()
            acts = [self.chance.choice(ACTS) for _ in range(self.chance.choice((1, 1, 2, 5)))]
            # Nobody knows before which attempts are leased; and turns under the old term are refused.
            alone = [act for act in acts if act in (lease, take)]
            await asyncio.gather(*(act(self) for act in alone[:1] or acts))
            self.clock.pass_by(SECOND)
        await self.close()

    async def open(self) -> None:
        self.scene = Scene(await open_store(self.url, SystemEnv(), clock=self.clock), self.clock)
        self.scene._ids = iter(range(1_000 + 1_000 * self.number(), 1_000_000))
        await self.scene.open()
        self.ledger.acknowledged({("term", shard): term for shard, term in self.scene.terms.items()})

    async def close(self) -> None:
        await self.scene.store.close()

    def number(self) -> int:
        self.next += 1
        return self.next

    def body(self) -> bytes:
        size = LARGE if self.chance.random() < 0.05 else self.chance.choice((3, 3, 300, 5_000))
        return b'"%s"' % self.chance.randbytes(size // 2).hex().encode()

    def pick(self, nums: list[int]) -> int | None:
        """Choose a run with which nothing else is done at the moment."""
        free = [num for num in nums if num not in self.busy]
        if not free:
            return None
        num = self.chance.choice(free)
        self.busy.add(num)
        return num

    @property
    def live(self) -> list[int]:
        return [num for num in self.runs if num not in self.ended]


async def start(work: Workload) -> None:
    num, body = work.number(), work.body()
    [run] = await work.scene.submit(msgspec.structs.replace(a_run(num), input=body))
    work.ledger.acknowledged({("run", num): body})
    work.runs[num] = run


async def advance(work: Workload) -> None:
    """Write a turn: an entry of the journal, and sometimes an attempt to be done."""
    num = work.pick(work.live)
    if num is None:
        return
    seq, body = work.seqs.get(num, 0) + 1, work.body()
    attempts = [work.scene.a_row(work.runs[num], call=f"charge.{seq}")] if work.chance.random() < 0.5 else []
    status = a_change(num, RunState.RUNNING)
    answer = await work.scene.turn(journal=[an_entry(num, seq, body=body)], attempts=attempts, runs=[status])
    assert answer.applied
    work.seqs[num] = seq
    work.ledger.acknowledged({("entry", (num, seq)): body} | {("fence", row.id): row.fence for row in attempts})


async def tell(work: Workload) -> None:
    num = work.pick(work.live)
    if num is None:
        return
    ref = f"f{work.number()}"
    await work.scene.store.client.tell([NewFact("default", work.runs[num].id, FactKind.SEND, ref, "ada", b'["t",1]')])
    work.ledger.acknowledged({("fact", (num, ref)): b'["t",1]'})


async def lease(work: Workload) -> None:
    rows = await work.scene.lease(limit=3)
    work.ledger.acknowledged({("fence", row.id): row.fence for row in rows})
    work.held |= {row.id: row for row in rows}


async def say(work: Workload) -> None:
    """Report a checkpoint or a result of an attempt."""
    num = work.pick(sorted({row.run for row in work.held.values()}))
    if num is None:
        return
    row = work.chance.choice([row for row in work.held.values() if row.run == num])
    act, body = work.chance.choice((Act.DONE, Act.CHECKPOINT)), work.body()
    work.ledger.may_change(("said", row.id))
    [answer] = await work.scene.store.agent.report(AGENT, [Report(row.id, row.fence, act, body)])
    assert answer is Answer.ACCEPTED
    work.ledger.acknowledged({("said", row.id): (act, body)})
    if act is Act.DONE:
        del work.held[row.id]


async def end(work: Workload) -> None:
    """End a run: nothing changes it from then on."""
    num = work.pick(work.live)
    if num is None:
        return
    seq, state = work.seqs.get(num, 0) + 1, work.chance.choice((RunState.COMPLETED, RunState.FAILED))
    record = await work.scene.store.client.record("default", work.runs[num].id)
    assert record is not None
    work.ledger.may_change(*(("fact", (num, fact.ref)) for fact in record.told))
    for row in record.attempts:
        work.ledger.may_change(("fence", row.id), ("said", row.id))
        work.held.pop(row.id, None)
    answer = await work.scene.turn(
        journal=[an_entry(num, seq)],
        runs=[a_change(num, state)],
        dropped=[row.id for row in record.attempts],
        facts_done=[fact.id for fact in record.told],
    )
    assert answer.applied
    work.ended[num] = work.clock.boot()
    work.ledger.acknowledged({("entry", (num, seq)): b"1", ("end", num): int(state)})


async def delete(work: Workload) -> None:
    num = work.pick(list(work.ended))
    if num is None or len(work.ended) < 3:
        return
    forget(work, num)
    await work.scene.store.scheduler.delete(num, 1_000)
    work.ledger.acknowledged({("gone", num): True})


async def sweep(work: Workload) -> None:
    """Let retention delete what has ended long ago; that may be lost with the machine."""
    if work.chance.random() < 0.7:
        return
    for num, at in list(work.ended.items()):
        if work.clock.boot() - at > 10 * SECOND:
            forget(work, num)
    await work.scene.store.scheduler.sweep("default", ("order", 1), 20 * SECOND, (0, 0), 100)


def forget(work: Workload, num: int) -> None:
    work.ledger.may_change(("run", num), ("end", num))
    work.ledger.may_change(*(("entry", (num, seq)) for seq in range(work.seqs.get(num, 0) + 2)))
    del work.ended[num], work.runs[num]


async def name(work: Workload) -> None:
    """Write what need not survive the machine: a mark of what is advanced next, and what was learned."""
    shard = work.chance.choice(list(work.scene.terms))
    await work.scene.turn(doing={shard: work.chance.choice((None, 1))})
    await work.scene.store.agent.learn("default", [Lesson("charge", 0, Seen(failed=1))])


async def take(work: Workload) -> None:
    """Take a shard again, under a higher term."""
    shard = work.chance.choice(list(work.scene.terms))
    taken = await work.scene.store.scheduler.take(ME, [shard], None)
    for one in taken.taken:
        work.scene.terms[one.shard] = one.term
        work.ledger.acknowledged({("term", one.shard): one.term})


ACTS: tuple[Callable[[Workload], Awaitable[None]], ...] = (
    *(start, start, start, advance, advance, advance, advance, tell, tell, lease, say, say, end, delete, sweep),
    *(name, take),
)  # fmt: skip


# --- what is left


def content(execute: Callable[[str], Any]) -> bytes:
    """Give a digest of all rows of all tables."""
    digest = hashlib.blake2b()
    for (table,) in list(execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")):
        digest.update(msgspec.msgpack.encode((table, list(execute(f"SELECT * FROM {table}")))))
    return digest.digest()


class Left(msgspec.Struct):
    """What the store finds after a power cut."""

    holes: list[int]
    values: dict[Key, Any]


def read(db: Database, claims: list[Claim]) -> Left:
    """Read what was claimed, as it is now."""

    def rows(sql: str) -> Any:
        return db._connection.execute(sql).fetchall()

    runs = {num: (status, body) for num, status, body in rows("SELECT num, status, input FROM run")}
    entries = {(run, seq): body for run, seq, body in rows("SELECT run, seq, body FROM journal")}
    facts = {(run, ref): body for run, ref, body in rows("SELECT run, ref, body FROM fact")}
    terms = dict(rows("SELECT shard, term FROM lease WHERE role = 'scheduler'"))
    attempts = {row[0]: row[1:] for row in rows("SELECT id, run, fence, state, result, checkpoint FROM attempt")}
    values: dict[Key, Any] = {}
    for claim in claims:
        value: Any = None
        match claim.key:
            case ("run", num) if num in runs:
                value = db.whole(num, runs[num][1])
            case ("end", num) if num in runs:
                value = runs[num][0]
            case ("gone", num):
                value = num not in runs
            case ("entry", (num, seq)) if (num, seq) in entries:
                value = db.whole(num, entries[num, seq])
            case ("fact", key):
                value = facts.get(key)
            case ("term", shard):
                value = terms.get(shard)
            case ("fence", id) if id in attempts:
                value = attempts[id][1]
            case ("said", id) if id in attempts:
                num, _, _, result, checkpoint = attempts[id]
                body = result if claim.value[0] is Act.DONE else checkpoint
                value = (claim.value[0], None if body is None else db.whole(num, body))
        values[claim.key] = value
    holes = rows("SELECT run FROM journal GROUP BY run HAVING count(*) <> max(seq)")
    return Left([run for (run,) in holes], values)


class Cut:
    """A power cut at a place of the log: builds a folder as it is left, and looks for what is lost."""

    def __init__(self, ledger: Ledger, folder: Path, clock: HandClock) -> None:
        self.ledger = ledger
        self.folder = folder
        self.url = f"sqlite:///{folder}/store.db"
        self.clock = clock

    async def wrong_in(self, image: dict[str, bytes], position: int, *, whole: bool) -> list[str]:
        """Say what is wrong; nothing if all is well."""
        for path in self.folder.iterdir():
            path.unlink()
        for name_, body in image.items():
            (self.folder / name_).write_bytes(body)
        claims = list(self.ledger.holding(position))
        try:
            return [*self._wrong_in_file(whole=whole), *await self._wrong_in_store(claims)]
        except (StoreError, sqlite3.Error) as error:
            return [f"it cannot be opened: {error!r}"]

    def _wrong_in_file(self, *, whole: bool) -> list[str]:
        """Look with SQLite alone, and without changing anything: it is as it was after a commit."""
        path = self.folder / "store.db"
        if not path.exists() or not path.stat().st_size or (self.folder / "store.db-journal").exists():
            return []  # the file is being made: only a writer can look at it
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            wrong = [] if content(connection.execute) in self.ledger.commits else ["it is as after no commit"]
            if whole:
                wrong += [word for (word,) in connection.execute("PRAGMA integrity_check") if word != "ok"]
        (self.folder / "store.db-shm").unlink(missing_ok=True)
        return wrong

    async def _wrong_in_store(self, claims: list[Claim]) -> list[str]:
        store = await open_store(self.url, SystemEnv(), clock=self.clock)
        assert isinstance(store, SqliteStore)
        try:
            left = await store._lanes.read(lambda db: read(db, claims))
            wrong = [f"the journal of run {run} has holes" for run in left.holes]
            for claim in claims:
                found = left.values[claim.key]
                at_least = claim.key[0] in ("term", "fence")
                if not (found is not None and found >= claim.value if at_least else found == claim.value):
                    wrong.append(f"{claim.key} was acknowledged as {claim.value!r:.40}, and is {found!r:.40}")
            await store.client.submit([a_run(999_999)])
            return wrong
        finally:
            await store.close()


def moments(chance: random.Random, ledger: Ledger, count: int) -> list[int]:
    """Choose places of the log: anywhere, and just before and after flushes and acknowledgements."""
    log = ledger.recorder.log
    flushes = [n for n, event in enumerate(log) if isinstance(event, Sync)]
    acknowledged = sorted({claim.at for claim in ledger.claims})
    places = (flushes, [n + 1 for n in flushes], acknowledged, acknowledged, range(len(log) + 1), range(len(log) + 1))
    return sorted(chance.choice(chance.choice(places)) for _ in range(count))


class Cuts(msgspec.Struct):
    """How it went."""

    images: int = 0
    acknowledged: int = 0
    wrong: list[str] = []


async def cut_everywhere(
    seed: int, images: int, monkeypatch: pytest.MonkeyPatch, folder: Path, *, until_wrong: bool = False
) -> Cuts:
    """Play a workload, and cut the power at many moments of it."""
    chance = random.Random(seed)
    recorder = Recorder(f"recorder-{seed}", checkpoint_every=chance.choice((5, 20, 100)))
    ledger = Ledger(recorder, commits={content(lambda _: ())})
    recorder.committed = lambda connection: ledger.commits.add(content(connection.execute))
    first, second = folder / "first", folder / "second"
    for place in (first, second):
        place.mkdir(exist_ok=True)
        for path in place.iterdir():
            path.unlink()
    work = Workload(ledger, f"sqlite:///{first}/store.db", chance)
    with monkeypatch.context() as patched:
        patched.setattr(database, "sqlite3", Module(recorder))
        await work.play()
    recorder.unregister()
    cuts, disk, cut = Cuts(), Disk(), Cut(ledger, second, work.clock)
    cuts.acknowledged = len(ledger.claims)
    for position in moments(chance, ledger, images // AT_ONE_MOMENT):
        disk.advance(recorder.log, position)
        for _ in range(AT_ONE_MOMENT):
            cuts.images += 1
            wrong = await cut.wrong_in(disk.image(chance), position, whole=cuts.images % CHECKED_WHOLE == 0)
            cuts.wrong += [f"seed {seed}, place {position}: {what}" for what in wrong]
            if wrong and until_wrong:
                return cuts
    return cuts


async def test_no_acknowledged_commit_is_lost_with_the_power(folder, monkeypatch):
    begun, seed, done = time.process_time(), FIRST, Cuts()
    while done.images < IMAGES:
        cuts = await cut_everywhere(seed, OF_ONE_WORKLOAD, monkeypatch, folder)
        assert not cuts.wrong, "\n".join(cuts.wrong[:20])
        done.images, done.acknowledged = done.images + cuts.images, done.acknowledged + cuts.acknowledged
        seed += 1
    report(
        f"power cuts: {done.images} images of {seed - FIRST} workloads (seeds {FIRST} to {seed - 1}),"
        f" {done.acknowledged} acknowledged values, 0 lost, {time.process_time() - begun:.0f} s of processor",
        images=done.images,
    )


async def test_store_opens_wherever_its_making_was_cut_off(folder, monkeypatch):
    recorder, chance, clock = Recorder("recorder-new"), random.Random(FIRST), HandClock()
    ledger = Ledger(recorder, commits={content(lambda _: ())})
    recorder.committed = lambda connection: ledger.commits.add(content(connection.execute))
    first, second = folder / "first", folder / "second"
    first.mkdir()
    second.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(database, "sqlite3", Module(recorder))
        store = await open_store(f"sqlite:///{first}/store.db", SystemEnv(), clock=clock)
        made = next(n for n, event in enumerate(recorder.log) if event == Link("store.db-wal", 3)) + 5
        await store.close()
    recorder.unregister()
    disk, cut = Disk(), Cut(ledger, second, clock)
    for position in (*range(made), len(recorder.log)):
        disk.advance(recorder.log, position)
        for _ in range(4):
            assert await cut.wrong_in(disk.image(chance), position, whole=False) == []


# --- mutants: what the test above must find


def flush_less(patched: pytest.MonkeyPatch, how: str) -> None:
    less = f"PRAGMA synchronous = {how}"
    patched.setattr(database, "_WRITER", (*database._WRITER, less))
    patched.setattr(database, "_DURABLE", less)


def acknowledge_before_commit(patched: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()

    async def settle(doors: list[Any]) -> None:
        for door in doors:
            door.committed = True
            door.settle(None)
        for _ in range(3):  # until its caller has noted it
            await asyncio.sleep(0)

    def transact(self: GroupCommit, doors: list[Any]) -> None:
        self._file.begin(durable=any(door.durable for door in doors))
        for door in doors:
            door.work()
        asyncio.run_coroutine_threadsafe(settle(doors), loop).result()
        self.commits += self._file.commit()

    patched.setattr(GroupCommit, "_transact", transact)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "synchronous is NORMAL": lambda patched: flush_less(patched, "NORMAL"),
    "synchronous is OFF": lambda patched: flush_less(patched, "OFF"),
    "acknowledged before the commit": acknowledge_before_commit,
}


@pytest.mark.parametrize("mutant", MUTANTS)
async def test_mutants_lose_what_was_acknowledged(mutant, folder, monkeypatch):
    MUTANTS[mutant](monkeypatch)
    for seed in range(1, 6):
        if (await cut_everywhere(seed, OF_ONE_WORKLOAD // 2, monkeypatch, folder, until_wrong=True)).wrong:
            return
    pytest.fail(f"{mutant}: no image shows it")
