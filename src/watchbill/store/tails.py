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

    def follow(self, turn: Turn) -> dict[int, int]:
        """Give the entries, run -> number, that a turn must follow and that are not known to be there.

        0: the run must have begun. The first entry of a run that begins with the turn follows none. From now on the
        entries of the turn itself are known, and the runs that begin with it: call `forget` if it is not written.
        """
        known, after = self._next, turn.after
        if len(known) > MOST:
            known.clear()
        needed: dict[int, int] = {}
        late = {run: known.get(run) for run, seq in after.items() if known.get(run) != seq + 1}
        for entry in turn.journal:
            run, seq = entry[0], entry[1]
            if known.get(run) != seq:
                if seq > 1:
                    needed.setdefault(run, seq - 1)
                elif run in late:
                    needed[run] = after[run]
            known[run] = seq + 1
        for run, before in late.items():
            if known.get(run) == before:  # the turn has no entry of it
                needed.setdefault(run, after[run])
        for change in turn.runs:
            if change.status is not _NOT_BEGUN:
                known.setdefault(change.num, 1)
        return needed

    def drop(self, runs: Iterable[int]) -> None:
        """Forget runs that have ended."""
        for run in runs:
            self._next.pop(run, None)

    def forget(self) -> None:
        """Forget all."""
        self._next.clear()
