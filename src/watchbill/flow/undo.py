"""Undo: what a run that failed has done is undone, in reverse order of start, one at a time.

It runs on the run's own loop, as the end of its main task: every undo is a call with a key, in the journal like any
other, so a crash in the middle goes on where it was.
"""

import asyncio
from typing import NamedTuple, Protocol

from watchbill.errors import StepFailed
from watchbill.flow.futures import UndoableCall
from watchbill.model.call import Outcome

UNDO = "undo:"  # how the key begins of a call that undoes another one


class Ended(NamedTuple):
    """How the workflow function ended."""

    outcome: Outcome
    value: object
    error: BaseException | None
    not_undone: tuple[str, ...] = ()  # why, for each call that could not be undone
    failed_undo: StepFailed | None = None  # the first of these


class Undoing(Protocol):
    """What is needed of the loop."""

    undoable: list[UndoableCall]
    spared: frozenset[str]  # keys of cancelled calls that took no effect: the journal says so


async def undo_all(loop: Undoing, ended: Ended) -> Ended:
    """Undo what took effect, or may have; gives how the run ends."""
    begun, trouble, undone = list(loop.undoable), [], 0
    first: StepFailed | None = None
    for call in begun:
        if not call.done():
            await asyncio.wait([call])  # its attempt has been asked to stop
    for call in reversed(begun):
        undo = call.target.undone_by
        if undo is None or call.key in loop.spared or not may_have_taken_effect(call):
            continue
        result = None if call.cancelled() or call.exception() is not None else call.result()
        try:
            await undo.ask_undo(loop, undo_key(call.key), result, call.args)
        except StepFailed as failed:
            trouble.append(f"{call.key!r} is not undone: {failed}")
            first = first or failed
        except asyncio.CancelledError:
            if call.key not in loop.spared:
                raise
            continue  # it was asked for, and is not needed: the last attempt has ended without an effect
        undone += 1
    if trouble:
        return Ended(Outcome.UNDO_FAILED, None, ended.error, tuple(trouble), first)
    return ended if not undone or ended.outcome is Outcome.CANCELLED else ended._replace(outcome=Outcome.UNDONE)


def undo_key(key: str) -> str:
    """Name the call that undoes another one."""
    return f"{UNDO}{key}"


def may_have_taken_effect(call: UndoableCall) -> bool:
    """Say whether a call that has ended needs to be undone."""
    if call.cancelled():
        return call.handed_out  # by the workflow itself, while it ran
    failure = call.exception()
    if failure is None:
        return True
    return isinstance(failure, StepFailed) and failure.unsure
