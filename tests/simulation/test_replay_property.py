"""Random programs: a crash after any journal entry changes nothing, and a key means one call in every order.

A failing seed prints the command that plays it alone. The planted bugs at the end show that the programs would notice.
"""

import gc
import json
import os
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
import pytest

from tests.simulation.programs import Play, Program, make_program, observed
from watchbill.errors import StepFailed
from watchbill.flow import replay
from watchbill.flow.branches import BranchTask
from watchbill.flow.futures import Promise
from watchbill.flow.replay import Call, WorkflowLoop, step_guard
from watchbill.model.call import Kind, Outcome
from watchbill.model.failure import Cause, FinalFailure

PROGRAMS = 600
PROGRAMS_PER_TEST = 50
PROGRAMS_PER_MUTANT = 200  # each planted bug must show within these
ORDERS = 4  # of outcomes, for the second property
MILLISECOND = 1_000
START = 1_800_000_000_000_000

alone = os.environ.get("WATCHBILL_SEED")
seeds = [int(alone)] if alone else list(range(PROGRAMS))
some_seeds = pytest.mark.parametrize(
    "seeds",
    [seeds[first : first + PROGRAMS_PER_TEST] for first in range(0, len(seeds), PROGRAMS_PER_TEST)],
    ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}",
)


class Difference(AssertionError):
    """Two playings of one program differ."""


class Entry(NamedTuple):
    """A row of the journal; a cancellation has no key."""

    key: str
    at: int
    outcome: Outcome
    body: bytes
    digest: int


class Rest(NamedTuple):
    """Everything that can be seen of a run between two outcomes."""

    now: int
    calls: list[tuple[str, int, int | None]]
    log: list[object]
    end: object


class Told(NamedTuple):
    """What a scheduler was told to start and to stop."""

    commands: list[str]
    cancels: list[str]


class Recording:
    """A straight run: what went in, and what could be seen after each entry."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.seen: dict[int, tuple[Told, Rest]] = {}
        self.meanings: dict[str, tuple[str, bytes]] = {}  # of keys: step and arguments


class World:
    """Answers calls: what, depends on the call alone; when, also on the order that is asked for."""

    def __init__(self, seed: int, order: int) -> None:
        self._name = f"{seed}/{order}"
        self._due: dict[str, int] = {}

    def start(self, call: Call, now: int) -> None:
        chance = random.Random(f"{self._name}/{call.key}/{call.digest}")
        self._due[call.key] = call.due or now + chance.randint(0, 60) * MILLISECOND

    def stop(self, call: Call) -> None:
        del self._due[call.key]

    def next_entries(self, loop: WorkflowLoop, count: int) -> list[Entry]:
        keys = sorted(self._due, key=lambda key: (self._due[key], key))[:count]
        return [self._answer(loop.calls[key], max(self._due.pop(key), loop.now)) for key in keys]

    def _answer(self, call: Call, at: int) -> Entry:
        if call.kind is Kind.TIMER:
            return Entry(call.key, at, Outcome.OK, b"", call.digest)
        fate = zlib.crc32(call.name.encode() + call.body)
        if fate % 6 == 0:
            failure = FinalFailure(call.name, "CardError", f"declined {fate}", fate % 3 + 1, Cause.RAISED)
            return Entry(call.key, at, Outcome.FAILED, msgspec.json.encode(failure), call.digest)
        return Entry(call.key, at, Outcome.OK, json.dumps(fate % 100).encode(), call.digest)


def feed_live(loop: WorkflowLoop, entries: list[Entry]) -> None:
    """Feed what has happened just now: values are at hand, nothing is decoded."""
    for entry in entries:
        if not entry.key:
            loop.cancel(entry.at, entry.body.decode())
        elif entry.outcome is Outcome.OK and entry.body:
            loop.feed(*entry, value=json.loads(entry.body))
        else:
            loop.feed(*entry)


def feed_recorded(loop: WorkflowLoop, entries: list[Entry]) -> None:
    """Feed what the journal holds, without taking commands: nobody would start them."""
    loop.replaying = True
    for entry in entries:
        if entry.key:
            loop.feed(*entry)
        else:
            loop.cancel(entry.at, entry.body.decode())
    loop.replaying = False


@contextmanager
def playing(program: Program) -> Iterator[tuple[WorkflowLoop, Play]]:
    """Play a program; whatever is left of it at the end is evicted."""
    play = Play(program)
    loop = WorkflowLoop(play.main, (), {})
    try:
        with step_guard():
            yield loop, play
    finally:
        with step_guard():
            said = len(play.log)
            loop.close()
    if play.blocks or len(play.log) != said:
        raise Difference(f"an evicted run left {play.blocks} blocks unfinished and said {play.log[said:]}")


def rest_of(loop: WorkflowLoop, play: Play) -> Rest:
    """See what can be seen."""
    calls = [(call.key, call.digest, call.due) for call in loop.calls.values()]
    end = loop.ended and (loop.ended.outcome, loop.ended.value, loop.ended.error and observed(loop.ended.error))
    return Rest(loop.now, calls, list(play.log), end)


def told_by(loop: WorkflowLoop) -> Told:
    """Take what a scheduler would take."""
    return Told([call.key for call in loop.take_commands()], [call.key for call in loop.take_cancels()])


def record(program: Program, order: int = 0, batch: int = 1) -> Recording:
    """Play a program straight through."""
    recording, world = Recording(), World(program.seed, order)
    with playing(program) as (loop, play):
        loop.begin(START)
        while True:
            commands, cancels = loop.take_commands(), loop.take_cancels()
            for call in cancels:
                world.stop(call)
            for call in commands:
                world.start(call, loop.now)
                recording.meanings[call.key] = (call.name, call.body)
            told = Told([call.key for call in commands], [call.key for call in cancels])
            recording.seen[len(recording.entries)] = told, rest_of(loop, play)
            if loop.ended is not None:
                break
            if len(recording.entries) == program.cancel_after:
                entries = [Entry("", loop.now + 1, Outcome.OK, b"enough", 0)]
            else:
                entries = world.next_entries(loop, batch)
            if not entries:
                break
            feed_live(loop, entries)
            recording.entries += entries
    return recording


def crash(program: Program, recording: Recording, after: int) -> None:
    """Play up to an entry, evict the run, replay it in a fresh loop, and go on with the same outcomes."""
    with playing(program) as (loop, _):
        loop.begin(START)
        for entry in recording.entries[:after]:
            loop.take_commands()
            feed_live(loop, [entry])
    del loop
    with playing(program) as (loop, play):
        # What is left of the dead run is collected in the middle of this one, wherever its code calls a step.
        play.before_step = gc.collect
        loop.begin(START)
        feed_recorded(loop, recording.entries[:after])
        play.before_step = None
        compare(recording, after, told_by(loop), rest_of(loop, play), replayed=True)
        for index, entry in enumerate(recording.entries[after:], after + 1):
            feed_live(loop, [entry])
            compare(recording, index, told_by(loop), rest_of(loop, play))


def compare(recording: Recording, index: int, told: Told, rest: Rest, *, replayed: bool = False) -> None:
    """Compare with the straight run after the same entry; a replay is told of all open calls, and of no cancels."""
    if index not in recording.seen:
        return  # in the middle of a batch: the straight run did not rest here
    straight_told, straight = recording.seen[index]
    if replayed:
        straight_told = Told([key for key, _, _ in straight.calls], [])
    if (told, rest) != (straight_told, straight):
        raise Difference(f"after entry {index}:\n{told}\n{rest}\ninstead of\n{straight_told}\n{straight}")


def crash_everywhere(seed: int, batch: int = 1) -> None:
    """Crash the program of a seed after each of its entries."""
    program = make_program(seed)
    recording = record(program, batch=batch)
    for after in range(len(recording.entries) + 1):
        crash(program, recording, after)


def reorder(seed: int) -> None:
    """Play the program of a seed under several orders of outcomes: each key must mean the same call in all of them."""
    program = make_program(seed, racy=False)
    meanings: dict[str, tuple[str, bytes]] = {}
    for order in range(ORDERS):
        for key, meaning in record(program, order).meanings.items():
            if meanings.setdefault(key, meaning) != meaning:
                raise Difference(f"key {key!r} means {meaning} and {meanings[key]}")


def check(property: Callable[[int], None], seeds: list[int]) -> None:
    for seed in seeds:
        try:
            property(seed)
        except Exception as error:
            pytest.fail(
                f"seed {seed}: {error!r}\n\nPlay it alone:\n    WATCHBILL_SEED={seed} python -m pytest "
                f"tests/simulation/test_replay_property.py -k {property.__name__}"
            )


@pytest.fixture(autouse=True)
def quick_collections() -> Iterator[None]:
    """Thousands of collections: each looks only at what a test has made."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@some_seeds
def test_a_crash_after_any_entry_changes_nothing__crash_everywhere(seeds):
    check(crash_everywhere, seeds)


@some_seeds
def test_a_key_means_the_same_call_in_every_order__reorder(seeds):
    check(reorder, seeds)


# Planted bugs: each is caught.


def is_caught(property: Callable[[int], None]) -> bool:
    for seed in range(PROGRAMS_PER_MUTANT):
        try:
            property(seed)
        except (Difference, replay.Diverged):
            return True
    return False


def test_feeding_two_outcomes_before_draining_is_caught(monkeypatch):
    def feed_together(loop: WorkflowLoop, entries: list[Entry]) -> None:
        with monkeypatch.context() as planted:
            planted.setattr(WorkflowLoop, "_drain", lambda loop: None)
            one_by_one(loop, entries[:-1])
        one_by_one(loop, entries[-1:])

    one_by_one = feed_live
    monkeypatch.setattr(sys.modules[__name__], "feed_live", feed_together)
    assert is_caught(lambda seed: crash_everywhere(seed, batch=2))


def test_the_default_hash_is_caught(monkeypatch):
    for future in (Call, BranchTask, Promise):
        monkeypatch.setattr(future, "__hash__", object.__hash__)
    assert is_caught(crash_everywhere)


def test_dropping_a_run_without_closing_it_is_caught(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # what the collector then finds complains
    monkeypatch.setattr(WorkflowLoop, "close", lambda loop: None)
    assert is_caught(crash_everywhere)
    gc.collect()


def test_handing_out_the_original_exception_is_caught(monkeypatch):
    class CardError(StepFailed):
        """What the step itself raised: caught by the same clauses, and still another type."""

    def original(body: bytes) -> StepFailed:
        rebuilt = rebuild(body)
        return CardError(**vars(rebuilt))

    def feed_original(loop: WorkflowLoop, entries: list[Entry]) -> None:
        with monkeypatch.context() as planted:
            planted.setitem(replay.REBUILD, Kind.STEP, original)
            live(loop, entries)

    rebuild, live = replay.rebuild_failure, feed_live
    monkeypatch.setattr(sys.modules[__name__], "feed_live", feed_original)
    assert is_caught(crash_everywhere)


def test_counting_keys_per_run_is_caught(monkeypatch):
    monkeypatch.setattr(WorkflowLoop, "_branch", lambda loop: loop._root)
    assert is_caught(reorder)
