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
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.simulation.programs import TOPICS, Play, Program, make_program, next_part, observed
from watchbill.errors import StepFailed
from watchbill.flow import replay, undo
from watchbill.flow.branches import BranchTask
from watchbill.flow.endings import Ending
from watchbill.flow.futures import Promise, Receive, UndoableCall
from watchbill.flow.mailbox import Mailbox
from watchbill.flow.parts import Part, beginning_of, current_part, following_part, message_body, message_of
from watchbill.flow.replay import Call, Message, WorkflowLoop, step_guard
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.failure import Cause, FinalFailure, RunError
from watchbill.model.run import NewRun, as_inserted
from watchbill.model.states import RunState
from watchbill.scheduler.residence import Resident
from watchbill.scheduler.resuming import replay_slowly as replay_journal

PROGRAMS = int(os.environ.get("WATCHBILL_PROGRAMS", "600"))
PROGRAMS_PER_TEST = 50
PROGRAMS_PER_MUTANT = 200  # each planted bug must show within these
ORDERS = 4  # of outcomes, for the second property
MOST_MESSAGES = 12
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
    """Two playings of one program differ, or one does what no program may."""


class Entry(NamedTuple):
    """A row of the journal."""

    kind: Kind
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
    published: object
    patches: list[str]
    unread: list[Message]


class Told(NamedTuple):
    """What a scheduler was told to start and to stop."""

    commands: list[str]
    cancels: list[str]


class Recording:
    """A straight run: what went in, and what could be seen whenever a turn was complete."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.seen: dict[int, tuple[Told, Rest]] = {}
        self.meanings: dict[str, tuple[str, bytes]] = {}  # of keys: step and arguments


class World:
    """Answers calls: what, depends on the call alone; when, also on the order that is asked for."""

    def __init__(self, seed: int, order: int) -> None:
        self._name = f"{seed}/{order}"
        self._due: dict[str, int] = {}
        self._stopped: set[str] = set()
        self.sent: list[int] = []  # messages, each once
        self._posts: list[tuple[int, str, int]] = []  # when, topic, which
        chance = random.Random(f"{self._name}/messages")
        for number in range(chance.randint(0, MOST_MESSAGES)):
            at = START + chance.choice((0, chance.randint(0, 200))) * MILLISECOND
            self._posts.append((at, chance.choice(TOPICS), number))
            if chance.random() < 0.3:  # sent twice
                self._posts.append((at + chance.randint(0, 200) * MILLISECOND, self._posts[-1][1], number))
        self._posts.sort()

    def start(self, call: Call, now: int) -> None:
        chance = random.Random(f"{self._name}/{call.key}/{call.digest}")
        self._due[call.key] = call.due or now + chance.randint(0, 60) * MILLISECOND

    def stop(self, loop: WorkflowLoop, call: Call) -> None:
        """Stop a call; one whose end is waited for all the same, because it may have to be undone, ends soon."""
        if loop.calls.get(call.key) is call:
            self._due[call.key] = loop.now + MILLISECOND
            self._stopped.add(call.key)
        else:
            self._due.pop(call.key, None)

    def forget(self) -> None:
        """Know nothing of the calls of a part that has ended."""
        self._due.clear()

    def next_entries(self, loop: WorkflowLoop, count: int) -> list[Entry]:
        keys = sorted(self._due, key=lambda key: (self._due[key], key))[:count]
        if self._posts and (not keys or self._posts[0][0] <= self._due[keys[0]]):
            return [self._post(loop, *self._posts.pop(0))]
        waiting = [call for call in loop.calls.values() if isinstance(call, Receive)]
        if not keys and waiting:  # somebody writes to it in the end
            return [self._post(loop, loop.now, waiting[0].topic, MOST_MESSAGES + len(self.sent))]
        return [self._answer(loop.calls[key], max(self._due.pop(key), loop.now)) for key in keys]

    def _post(self, loop: WorkflowLoop, at: int, topic: str, number: int) -> Entry:
        if number not in self.sent:
            self.sent.append(number)
        body = message_body(Message(topic, f"m-{number}", str(number).encode()))
        return Entry(Kind.MESSAGE, topic, max(at, loop.now), Outcome.OK, body, 0)

    def _answer(self, call: Call, at: int) -> Entry:
        fate = zlib.crc32(call.name.encode() + call.body)
        outcome, body = Outcome.OK, json.dumps(fate % 100).encode()
        if call.kind is Kind.TIMER:
            body = b""
        elif call.name == "unbook":
            body = b"null"
            if fate % 7 == 0:
                outcome, body = Outcome.FAILED, self._failure(call, fate, Cause.RAISED)
        elif call.kind is Kind.CHILD and fate % 3:
            state = RunState.FAILED if fate % 2 and call.key not in self._stopped else RunState.CANCELLED
            told = RunError("ValueError", f"no {fate}") if state is RunState.FAILED else f"stopped {fate}"
            outcome = Outcome.FAILED if state is RunState.FAILED else Outcome.CANCELLED
            body = msgspec.json.encode(Ending(f"r/{call.key}", state, msgspec.Raw(msgspec.json.encode(told))))
        elif call.kind is Kind.STEP and call.key in self._stopped and fate % 3:
            outcome, body = Outcome.FAILED, self._failure(call, fate, Cause.CANCELLED)
        elif call.kind is Kind.STEP and fate % 6 == 0:
            lost = isinstance(call, UndoableCall) and fate % 4 == 0
            outcome, body = Outcome.FAILED, self._failure(call, fate, Cause.LOST if lost else Cause.RAISED)
        return Entry(call.kind, call.key, at, outcome, body, call.digest)

    def _failure(self, call: Call, fate: int, cause: Cause) -> bytes:
        attempts = fate % 2 if cause is Cause.CANCELLED else fate % 3 + 1
        return msgspec.json.encode(FinalFailure(call.name, "CardError", f"declined {fate}", attempts, cause))


RUN = as_inserted(NewRun(1, "default", "r", next_part.name, 1, b"[0,0]"), 0, START)


def in_force(entries: list[Entry]) -> Part:
    """Read a journal as a scheduler does."""
    rows = [
        JournalEntry(1, seq, entry.kind, entry.key, entry.digest, 0, entry.outcome, None, None, entry.at, entry.body)
        for seq, entry in enumerate(entries, 1)
    ]
    return current_part(RUN, rows)


@contextmanager
def playing(program: Program, part: Part) -> Iterator[tuple[WorkflowLoop, Play]]:
    """Play a part of a program; whatever is left of it at the end is evicted."""
    (number, seen), _ = next_part.signature.decode_args(part.input)
    play = Play(program, number, seen)
    loop = WorkflowLoop(play.main, (), {})
    loop.undo = program.undo
    loop.seed = f"{program.seed}/{number}"
    loop.mailbox.take_over(part.unread, part.received)
    try:
        with step_guard():
            yield loop, play
    finally:
        with step_guard():
            said = len(play.log)
            loop.close()
    if play.blocks or len(play.log) != said:
        raise Difference(f"an evicted run left {play.blocks} blocks unfinished and said {play.log[said:]}")


def feed_live(loop: WorkflowLoop, entries: list[Entry]) -> None:
    """Feed what has happened just now: values are at hand, nothing is decoded."""
    for entry in entries:
        kind = entry.kind
        facts: tuple[Any, ...] = tuple(entry)[1:]
        if kind is Kind.CANCEL:
            loop.cancel(entry.at, json.loads(entry.body))
        elif kind is Kind.MESSAGE:
            loop.message(entry.at, message_of(in_force([entry]).entries[0]))
        elif kind is Kind.STEP and entry.outcome is Outcome.OK:
            key, at, outcome, body, digest = facts
            loop.feed(key, at, outcome, body, digest, json.loads(entry.body))
        elif kind is not Kind.PATCH:
            loop.feed(*facts)


def feed_recorded(loop: WorkflowLoop, part: Part) -> None:
    """Bring a run back as a scheduler does."""
    for _ in replay_journal(Resident(RUN, next_part, loop, term=1), part, part.begun_at or START, set()):
        pass


def rest_of(loop: WorkflowLoop, play: Play) -> Rest:
    """See what can be seen."""
    calls = [(call.key, call.digest, call.due) for call in loop.calls.values()]
    end = loop.ended and (loop.ended.outcome, loop.ended.value, loop.ended.error and observed(loop.ended.error))
    taken = sorted(name for name, is_taken in loop.patches.items() if is_taken)
    return Rest(loop.now, calls, list(play.log), end, dict(loop.published or {}), taken, loop.mailbox.unread())


def told_by(loop: WorkflowLoop) -> Told:
    """Take what a scheduler would take."""
    loop.news.clear()
    return Told([call.key for call in loop.take_commands()], [call.key for call in loop.take_cancels()])


def record(program: Program, order: int = 0, batch: int = 1) -> Recording:
    """Play a program straight through, part after part."""
    recording, world = Recording(), World(program.seed, order)
    received: list[int] = []
    while True:
        part = in_force(recording.entries)
        with playing(program, part) as (loop, play):
            loop.begin(part.begun_at or START)
            record_part(program, recording, world, loop, play, batch)
        received += play.received
        if play.wrong:
            raise Difference(play.wrong[0])
        if loop.continued is None:
            break
        world.forget()
        goes_on = following_part(loop.continued.workflow, 1, loop.continued.input, loop.now, loop.mailbox)
        recording.entries.append(Entry(Kind.CONTINUED, "", loop.now, Outcome.OK, beginning_of(goes_on), 0))
    kept = received + [json.loads(message.body) for message in loop.mailbox.unread()]
    if sorted(kept) != sorted(world.sent):
        raise Difference(f"messages {sorted(world.sent)} were sent, and {sorted(kept)} were received or kept")
    return recording


def record_part(
    program: Program, recording: Recording, world: World, loop: WorkflowLoop, play: Play, batch: int
) -> None:
    """Play one part, until it ends or waits for nothing."""
    undoable: dict[str, bool] = {}  # in order of start, with whether it may have taken effect
    undone: list[str] = []
    while True:
        for name in loop.news:
            if isinstance(name, str):  # else a wait that was in vain, of which the journal has the timer
                recording.entries.append(Entry(Kind.PATCH, name, loop.now, Outcome.OK, b"true", 0))
        loop.news.clear()
        commands, cancels = loop.take_commands(), loop.take_cancels()
        for call in cancels:
            world.stop(loop, call)
        for call in commands:
            world.start(call, loop.now)
            recording.meanings[call.key] = (call.name, call.body)
            if isinstance(call, UndoableCall):
                undoable[call.key] = True  # until it is known that it did not
            if call.key.startswith("undo:"):
                undone.append(call.key.removeprefix("undo:"))
        told = Told([call.key for call in commands], [call.key for call in cancels])
        recording.seen[len(recording.entries)] = told, rest_of(loop, play)
        if loop.ended is not None:
            break
        if len(recording.entries) == program.cancel_after:
            entries = [Entry(Kind.CANCEL, "", loop.now + 1, Outcome.OK, b'"enough"', 0)]
        else:
            entries = world.next_entries(loop, batch)
        if not entries:
            return
        feed_live(loop, entries)
        recording.entries += entries
        undoable.update({entry.key: took_effect(entry) for entry in entries if entry.key in undoable})
    if program.undo and loop.ended.outcome is not Outcome.OK:
        expected = [key for key, took in reversed(undoable.items()) if took]
        if undone != expected:
            raise Difference(f"undone was {undone}, and {expected} may have taken effect")


def took_effect(entry: Entry) -> bool:
    """Say what is known of a call's effect by its outcome."""
    if entry.outcome is Outcome.OK or entry.kind is not Kind.STEP:
        return entry.outcome is Outcome.OK
    failure = msgspec.json.decode(entry.body, type=FinalFailure)
    return failure.cause is not Cause.RAISED and failure.attempts > 0


def crash(program: Program, recording: Recording, after: int) -> None:
    """Play up to an entry, evict the run, replay it in a fresh loop, and go on with the same outcomes."""
    part = in_force(recording.entries[:after])
    begun = after - len(part.entries)
    with playing(program, part) as (loop, _):
        loop.begin(part.begun_at or START)
        for entry in recording.entries[begun:after]:
            told_by(loop)
            feed_live(loop, [entry])
    del loop
    with playing(program, part) as (loop, play):
        # What is left of the dead run is collected in the middle of this one, wherever its code calls a step.
        play.before_step = gc.collect if after % 2 else None
        feed_recorded(loop, part)
        play.before_step = None
        told: Told | None = told_by(loop)
        compare(recording, after, None, rest_of(loop, play))
        for index, entry in enumerate(recording.entries[after:], after + 1):
            if entry.kind is Kind.CONTINUED:
                break
            feed_live(loop, [entry])
            if entry.kind is not Kind.PATCH:
                told = told_by(loop)
            compare(recording, index, told, rest_of(loop, play))


def compare(recording: Recording, index: int, told: Told | None, rest: Rest) -> None:
    """Compare with the straight run after the same entry; a replay tells nobody what to start and to stop."""
    if index not in recording.seen:
        return  # in the middle of a turn: the straight run did not rest here
    straight_told, straight = recording.seen[index]
    if rest != straight or (told is not None and told != straight_told):
        raise Difference(f"after entry {index}:\n{told}\n{rest}\ninstead of\n{straight_told}\n{straight}")


def crash_everywhere(seed: int, batch: int = 1) -> None:
    """Crash the program of a seed after each of its entries."""
    program = make_program(seed)
    recording = record(program, batch=batch)
    for after in recording.seen:
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
def quick_collections() -> None:
    """Thousands of collections: each looks only at what a test has made; what was there before stays out of them."""
    gc.collect()
    gc.freeze()


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


def test_giving_the_newest_message_first_is_caught(monkeypatch):
    def take_newest(mailbox: Mailbox, call: Receive) -> bool:
        for messages in mailbox._unread.values():
            messages.reverse()
        took = take(mailbox, call)
        for messages in mailbox._unread.values():
            messages.reverse()
        return took

    take = Mailbox.take
    monkeypatch.setattr(Mailbox, "take", take_newest)
    assert is_caught(crash_everywhere)


def test_losing_the_message_of_somebody_who_is_cancelled_is_caught(monkeypatch):
    monkeypatch.setattr(Receive, "give_back", lambda call: None)
    assert is_caught(crash_everywhere)


def test_losing_unread_messages_at_the_end_of_a_part_is_caught(monkeypatch):
    take_over = Mailbox.take_over
    monkeypatch.setattr(Mailbox, "take_over", lambda mailbox, _, received: take_over(mailbox, (), received))
    assert is_caught(crash_everywhere)


def test_forgetting_at_the_end_of_a_part_what_was_received_is_caught(monkeypatch):
    take_over = Mailbox.take_over
    monkeypatch.setattr(Mailbox, "take_over", lambda mailbox, unread, _: take_over(mailbox, unread, ()))
    assert is_caught(crash_everywhere)


def test_asking_again_which_way_to_take_is_caught(monkeypatch):
    def not_memoised(loop: WorkflowLoop, name: str) -> bool:
        if not loop.replaying:
            loop.news.append(name)
        return not loop.replaying

    monkeypatch.setattr(WorkflowLoop, "patched", not_memoised)
    assert is_caught(crash_everywhere)


def test_drawing_chance_per_run_and_not_per_branch_is_caught(monkeypatch):
    def per_run(loop: WorkflowLoop) -> bytes:
        return random.Random(loop._root.key("random")).randbytes(16)

    monkeypatch.setattr(WorkflowLoop, "chance", per_run)
    assert is_caught(reorder)


def test_undoing_in_the_order_of_start_is_caught(monkeypatch):
    monkeypatch.setattr(undo, "reversed", list, raising=False)
    assert is_caught(crash_everywhere)
