"""Builders of runs in memory: a workflow begins, a test is its world."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from watchbill.flow.replay import WorkflowLoop, current, step_guard
from watchbill.model.call import Outcome
from watchbill.model.failure import Cause, FinalFailure

NOON = 1_800_000_000_123_457
SECOND = 1_000_000

Begin = Callable[..., WorkflowLoop]


def step(name: str, *args: object, key: str | None = None) -> Any:
    loop = current()
    assert loop is not None
    return loop.step_call(None, name, json.dumps(args).encode(), args, json.loads, key)


def answer(loop: WorkflowLoop, key: str, value: object = None, *, after: int = 0) -> None:
    loop.feed(key, loop.now + after, Outcome.OK, json.dumps(value).encode(), loop.calls[key].digest)


def fail(loop: WorkflowLoop, key: str, message: str = "declined") -> None:
    failure = FinalFailure(loop.calls[key].name, "CardError", message, 3, Cause.RAISED, "Traceback ...")
    loop.feed(key, loop.now, Outcome.FAILED, msgspec.json.encode(failure), loop.calls[key].digest)


def fire(loop: WorkflowLoop, key: str) -> None:
    timer = loop.calls[key]
    assert timer.due is not None
    loop.feed(key, timer.due, Outcome.OK, b"", timer.digest)


def commanded(loop: WorkflowLoop) -> list[str]:
    return [call.key for call in loop.take_commands()]


def cancelled(loop: WorkflowLoop) -> list[str]:
    return [call.key for call in loop.take_cancels()]


def result(loop: WorkflowLoop) -> Any:
    assert loop.ended is not None, f"still asks for {list(loop.calls)}"
    assert loop.ended.outcome is Outcome.OK, loop.ended.error
    return loop.ended.value


def error(loop: WorkflowLoop) -> BaseException:
    assert loop.ended is not None, f"still asks for {list(loop.calls)}"
    assert loop.ended.error is not None
    return loop.ended.error


@contextmanager
def runs() -> Iterator[Begin]:
    """Begin runs, in one guarded turn; what is left of them is evicted."""
    loops = []

    def begin(function: Callable[..., Any], *args: object, **options: Any) -> WorkflowLoop:
        loop = WorkflowLoop(function, args, {}, **options)
        loops.append(loop)
        loop.begin(NOON)
        return loop

    with step_guard():
        yield begin
        for loop in loops:
            loop.close()
