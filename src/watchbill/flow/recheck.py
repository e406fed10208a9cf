"""Recheck: runs a workflow again from its journal, and finds where it does something else.

A crash does the same to every run, some day. What makes a replay differ shows only then: the order of a set, a module's
own state, a clock that nobody saw. So tests, `dev` and `check` do it at once, to each run that has ended.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from watchbill.clock import Micros
from watchbill.errors import InvalidValueError
from watchbill.flow.divergence import Diverged, shown
from watchbill.flow.failures import run_error_of
from watchbill.flow.replay import Broken, Ended, WorkflowLoop, step_guard
from watchbill.flow.values import plain
from watchbill.flow.workflows import Workflow
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.failure import RunError

_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+\b")  # of an object, in an exception's message: never the same

_decode_error = msgspec.json.Decoder(RunError).decode


def follow(loop: WorkflowLoop, journal: Sequence[JournalEntry], begun_at: Micros) -> Iterator[JournalEntry]:
    """Run a workflow against its journal; gives each entry once the workflow rests after it. Raises Diverged."""
    loop.replaying = True
    loop.begin(begun_at)
    for entry in journal:
        loop.take_commands()
        if loop.ended is not None:
            raise Diverged(f"{entry.key!r} at {entry.seq}", "nothing more: the workflow has ended")
        if entry.kind == Kind.CANCEL:
            loop.cancel(entry.at, str(plain(entry.body)))
        else:
            loop.feed(entry.key, entry.at, Outcome(entry.outcome), entry.body, entry.digest)
        yield entry
    loop.take_commands()
    loop.replaying = False


def recheck(
    workflow: Workflow[..., Any], input: bytes, begun_at: Micros, journal: Sequence[JournalEntry]
) -> Diverged | None:
    """Replay a run that has ended; gives what the journal has and what the code asked for instead, or None."""
    try:
        args, kwargs = workflow.signature.decode_args(input)
    except InvalidValueError as error:
        return Diverged(f"input {shown(input)}", f"other arguments: {error}")
    loop = WorkflowLoop(workflow.plain, args, kwargs)
    with step_guard():
        loop.guarded = True
        loop.owner = workflow
        try:
            for _ in follow(loop, journal[:-1], begun_at):
                loop.take_cancels()
            return _compare(workflow, loop.ended, journal)
        except Diverged as difference:
            return difference
        except Broken as broken:
            return Diverged("a run that ended", f"something that no replay could repeat: {broken.reason}")
        finally:
            loop.close()


def _compare(workflow: Workflow[..., Any], ended: Ended | None, journal: Sequence[JournalEntry]) -> Diverged | None:
    """Hold the end of the replay against the recorded one."""
    recorded = journal[-1]
    outcome = Outcome(recorded.outcome)
    if outcome is Outcome.CANCELLED and all(entry.kind != Kind.CANCEL for entry in journal):
        return None  # its code was not asked: it was held, and cancelled from outside
    if ended is None:
        return Diverged(f"the end of the run ({outcome.name.lower()})", "more: the workflow has not ended there")
    before = _end_in_words(outcome, recorded.body)
    now = _end_in_words(ended.outcome, _body(workflow, ended))
    return None if before == now else Diverged(before, now)


def _body(workflow: Workflow[..., Any], ended: Ended) -> bytes:
    if ended.outcome is Outcome.CANCELLED:
        return b""
    if ended.error is not None:
        return msgspec.json.encode(run_error_of(ended.error))
    try:
        return workflow.signature.encode_result(ended.value)[0]
    except InvalidValueError as error:
        return msgspec.json.encode(run_error_of(error))


def _end_in_words(outcome: Outcome, body: bytes) -> str:
    match outcome:
        case Outcome.OK:
            return f"the result {shown(body)}"
        case Outcome.FAILED:
            error = _decode_error(body)
            return f"a failure with {error.type}: {_ADDRESS.sub('0x...', error.message)}"
        case Outcome.CANCELLED:
            return "the end of a cancelled run"
