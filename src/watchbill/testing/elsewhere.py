"""Elsewhere: a process with another hash seed that replays runs: there the sets of a workflow have another order.

It is started when it is first needed, reads the user's program as a child process of a step does, and is kept: a replay
then costs a millisecond. A workflow that cannot be read there, because it was made inside a function, is not replayed.
A difference may also come from what the test has changed in its own process, a patched helper for one. So it counts
only when a third process, with a third seed, differs from the second.
"""

import os
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from watchbill.env import Companion, answer_questions
from watchbill.flow.divergence import Diverged
from watchbill.flow.guard import GUARD
from watchbill.flow.program import Program, locate, read_workflow
from watchbill.flow.recheck import recheck
from watchbill.flow.workflows import Workflow
from watchbill.model.call import JournalEntry
from watchbill.model.run import RunRow

SEEDS: Final = ("0", "1", "2", "3", "4")  # the first is asked, the others only about a difference
PATIENCE: Final = 30.0  # seconds, most of them for reading the user's program: one that waits for ever is not replayed


class Question(msgspec.Struct, frozen=True):
    """A run that has ended."""

    program: Program
    workflow: str
    run: RunRow
    journal: tuple[JournalEntry, ...]


class Verdict(msgspec.Struct, frozen=True):
    """What its replay did otherwise, if anything."""

    difference: tuple[str, str] | None = None


class Elsewhere:
    """The other processes."""

    def __init__(self) -> None:
        here = os.environ.get("PYTHONHASHSEED")
        self._seeds = [seed for seed in SEEDS if seed != here]
        self._companions: dict[str, Companion] = {}

    def recheck(self, workflow: Workflow[..., Any], run: RunRow, journal: Sequence[JournalEntry]) -> Diverged | None:
        """Replay a run over there; None when it did the same again, or could not be replayed at all."""
        if "<locals>" in workflow.plain.__qualname__:
            return None
        question = msgspec.msgpack.encode(Question(locate(workflow), workflow.name, run, tuple(journal)))
        first = self._ask(self._seeds[0], question)
        if first is None or all(self._ask(seed, question) == first for seed in self._seeds[1:]):
            return None
        return Diverged(*first)

    def close(self) -> None:
        """End the other processes."""
        while self._companions:
            self._companions.popitem()[1].close()

    def _ask(self, seed: str, question: bytes) -> tuple[str, str] | None:
        companion = self._companions.get(seed)
        if companion is None:
            environment = {"PYTHONHASHSEED": seed}
            companion = self._companions[seed] = Companion("watchbill.testing.elsewhere", environment)
        answer = companion.ask(question, patience=PATIENCE)
        if answer is None:
            self._companions.pop(seed).close()
            return None
        return msgspec.msgpack.decode(answer, type=Verdict).difference


def _answer(message: bytes) -> bytes:
    question = msgspec.msgpack.decode(message, type=Question)
    try:
        workflow = read_workflow(question.program, question.workflow)
    except Exception:
        workflow = None  # a program that only its tests can read
    if workflow is None:
        return msgspec.msgpack.encode(Verdict())
    with GUARD.on():
        difference = recheck(workflow, question.run, question.journal)
    return msgspec.msgpack.encode(Verdict(None if difference is None else (difference.recorded, difference.asked)))


if __name__ == "__main__":
    answer_questions(_answer)
