"""Tails: the newest entries of journals that this process has appended. A turn need not look for them one by one."""

from collections.abc import Iterable
from typing import Final

from watchbill.model.states import RunState
from watchbill.store.protocol import Turn

MOST: Final = 20_000  # runs: beyond, all are forgotten and looked up again
_NOT_BEGUN: Final = RunState.SCHEDULED


class Tails:
    """The newest entry of each journal, by run.

    A store trusts them only as long as it knows that it has lost none of its commits. Else it calls `forget`.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[int, int] = {}  # run -> the number of the entry that comes next; 1: it has begun

    def unknown(self, turn: Turn) -> dict[int, int]:
        """Give the entries, run -> number, that a turn must follow and that are not known to be there.

        0: the run must have begun. The first entry of a run that begins with the turn follows none.
        """
        known = self._next
        first = {entry[0]: entry[1] for entry in reversed(turn.journal)}
        needed = {run: seq - 1 for run, seq in first.items() if seq > 1 and known.get(run) != seq}
        if after := turn.after:
            needed |= {run: seq for run, seq in after.items() if first.get(run, 1) == 1 and known.get(run) != seq + 1}
        return needed

    def appended(self, turn: Turn) -> None:
        """Know the entries of a turn, and the runs that have begun with it: they were written."""
        known = self._next
        if len(known) > MOST:
            known.clear()
        for change in turn.runs:
            if change.status is not _NOT_BEGUN:
                known.setdefault(change.num, 1)
        known.update({entry[0]: entry[1] + 1 for entry in turn.journal})

    def drop(self, runs: Iterable[int]) -> None:
        """Forget runs that have ended."""
        for run in runs:
            self._next.pop(run, None)

    def forget(self) -> None:
        """Forget all."""
        self._next.clear()
