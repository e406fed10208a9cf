"""Recheck: runs a workflow again from its journal, and finds where it does something else.

A crash does the same to every run, some day. What makes a replay differ shows only then: the order of a set, a module's
own state, a clock that nobody saw. So tests, `dev` and `check` do it at once, to each run that has ended.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec

from watchbill.clock import Micros
from watchbill.errors import InvalidValueError
from watchbill.flow.divergence import Diverged, shown
from watchbill.flow.finish import LATE, end_of
from watchbill.flow.parts import Part, current_part, message_of, until_of
from watchbill.flow.replay import Broken, WorkflowLoop, step_guard
from watchbill.flow.values import plain
from watchbill.flow.workflows import Workflow
from watchbill.model.attempt import AttemptRow
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.failure import RunError
from watchbill.model.run import RunRow, identity_of

_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+\b")  # of an object, in an exception's message: never the same

_decode_error = msgspec.json.Decoder(RunError).decode


def open_loop(
    workflow: Workflow[..., Any], part: Part, run: RunRow, clock: Callable[[], Micros] | None = None
) -> WorkflowLoop:
    """Make the loop on which a run's code runs now. Raises InvalidValueError when its arguments cannot be read."""
    args, kwargs = workflow.signature.decode_args(part.input)
    loop = WorkflowLoop(workflow.plain, args, kwargs, clock=clock)
    loop.guarded = True
    loop.owner = workflow
    loop.undo = workflow.on_failure == "undo"
    loop.seed = f"{run.namespace}\0{run.id}\0{run.part}"
    loop.identity = identity_of(run, part.workflow, part.version)
    loop.copied = run.copied
    if part.unread or part.received:
        loop.mailbox.take_over(part.unread, part.received)
    return loop


def follow(loop: WorkflowLoop, part: Part, begun_at: Micros) -> Iterator[JournalEntry]:
    """Run a workflow against its journal; gives each entry once the workflow rests after it. Raises Diverged."""
    begin_replay(loop, part, begun_at)
    for entry in part.entries:
        if replay(loop, entry):
            yield entry
    loop.take_commands()
    loop.replaying = False


def begin_replay(loop: WorkflowLoop, part: Part, begun_at: Micros) -> None:
    """Run a workflow until it first rests, as it did when it began."""
    loop.replaying = True
    loop.patches = {entry.key: True for entry in part.entries if entry.kind == Kind.PATCH}
    loop.begin(begun_at)


def replay(loop: WorkflowLoop, entry: JournalEntry) -> bool:
    """Let a workflow see the next entry of its journal, and run until it rests; False: that is not for its code."""
    if entry.kind in (Kind.PATCH, Kind.ACTING):
        _note(loop, entry)
        return False
    loop.take_commands()
    if loop.ended is not None and entry.kind == Kind.MESSAGE:
        loop.mailbox.arrive(message_of(entry))  # a rewind keeps messages: the workflow need not wait for them
        return False
    if loop.ended is not None:
        raise Diverged(f"{entry.key!r} at {entry.seq}", "nothing more: the workflow has ended")
    if entry.kind == Kind.CANCEL:
        loop.cancel(entry.at, str(plain(entry.body)))
    elif entry.kind == Kind.LATE:
        loop.cancel(entry.at, LATE, late=True)
    elif entry.kind == Kind.STOPPED:
        loop.cancel(entry.at, str(plain(entry.body)), stopped=True)
    elif entry.kind == Kind.EDITED:
        loop.edit(entry.key, entry.body)
    elif entry.kind == Kind.SPARED:
        loop.spare(entry.at, entry.key)
    elif entry.kind == Kind.MESSAGE:
        loop.message(entry.at, message_of(entry))
    else:
        # Code that has read its run's id may have passed it on: a copy then has other arguments than the original.
        digest = None if loop.identified and entry.seq <= loop.copied else entry.digest
        loop.feed(entry.key, entry.at, Outcome(entry.outcome), entry.body, digest)
    return True


def _note(loop: WorkflowLoop, entry: JournalEntry) -> None:
    """Take note of what its code does not see."""
    if entry.kind == Kind.ACTING:
        loop.may_act(until_of(entry))


def compare_rows(loop: WorkflowLoop, part: int, rows: Iterable[AttemptRow], cancelled: set[str]) -> None:
    """Find rows that the code did not ask for, or asks for with other arguments. Raises Diverged."""
    for row in rows:
        if row.part != part:
            continue  # of an attempt that a rewind has stopped
        call = loop.calls.get(row.call)
        if call is not None and crc32(call.body) != crc32(row.args):  # a person may have edited them
            raise Diverged(f"an attempt of {row.call!r} with {row.args[:200]!r}", f"{row.call!r} with other arguments")
        if call is None and not row.cancel and row.call not in cancelled and loop.ended is None:
            asked = ", ".join(sorted(loop.calls)) or "nothing"
            raise Diverged(f"an attempt of {row.call!r}", asked)


def recheck_live(
    workflow: Workflow[..., Any], run: RunRow, journal: Sequence[JournalEntry], rows: Iterable[AttemptRow]
) -> Diverged | None:
    """Replay a run that is open, up to where it is; gives where the code does not fit it, or None."""
    part = current_part(run, journal)
    if part.begun_at is None:
        return None  # its code has not run yet
    cancelled: set[str] = set()

    def play(loop: WorkflowLoop) -> None:
        for _ in follow(loop, part, part.begun_at or 0):
            cancelled.update(call.key for call in loop.take_cancels())
        compare_rows(loop, run.part, rows, cancelled)

    return _difference(workflow, part, run, play)


def recheck(workflow: Workflow[..., Any], run: RunRow, journal: Sequence[JournalEntry]) -> Diverged | None:
    """Replay a run that has ended, its last part; gives what the journal has and what the code asked for, or None."""
    part = current_part(run, journal[:-1])
    if part.begun_at is None:
        return None  # its code never ran

    def play(loop: WorkflowLoop) -> None:
        for _ in follow(loop, part, part.begun_at or 0):
            loop.take_cancels()
        _compare(workflow, loop, part, journal[-1])

    return _difference(workflow, part, run, play)


def _difference(
    workflow: Workflow[..., Any], part: Part, run: RunRow, play: Callable[[WorkflowLoop], None]
) -> Diverged | None:
    try:
        loop = open_loop(workflow, part, run)
    except InvalidValueError as error:
        return Diverged(f"input {shown(workflow.signature.shown_args(part.input))}", f"other arguments: {error}")
    with step_guard():
        try:
            play(loop)
        except Diverged as difference:
            return difference
        except Broken as broken:
            return Diverged("what could be replayed", f"something that no replay could repeat: {broken.reason}")
        finally:
            loop.close()
    return None


def _compare(workflow: Workflow[..., Any], loop: WorkflowLoop, part: Part, recorded: JournalEntry) -> None:
    """Hold the end of the replay against the recorded one. Raises Diverged."""
    outcome = Outcome(recorded.outcome)
    if outcome is Outcome.CANCELLED and all(entry.kind != Kind.CANCEL for entry in part.entries):
        return  # its code was not asked: it was held, and cancelled from outside
    if loop.ended is None:
        raise Diverged(f"the end of the run ({outcome.name.lower()})", "more: the workflow has not ended there")
    if loop.continued is not None:
        raise Diverged(_shown_end(workflow, outcome, recorded.body), f"to go on as {loop.continued.workflow!r}")
    ended = end_of(workflow, loop, loop.ended, "")
    if _end_in_words(outcome, recorded.body) != _end_in_words(*ended):
        raise Diverged(_shown_end(workflow, outcome, recorded.body), _shown_end(workflow, *ended))


def _shown_end(workflow: Workflow[..., Any], outcome: Outcome, body: bytes) -> str:
    """Say it without Secrets: what differs may be one, but is not to be read here."""
    return _end_in_words(outcome, workflow.signature.shown_result(body) if outcome is Outcome.OK else body)


def _end_in_words(outcome: Outcome, body: bytes) -> str:
    if outcome is Outcome.OK:
        return f"the result {shown(body)}"
    if outcome is Outcome.CANCELLED:
        return "the end of a cancelled run"
    error = _decode_error(body)
    how = "a failure" if outcome is Outcome.FAILED else outcome.name.lower().replace("_", " ")
    return f"{how} with {error.type}: {_ADDRESS.sub('0x...', error.message)}"
