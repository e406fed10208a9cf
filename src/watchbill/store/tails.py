"""Tails: the newest entries of journals that this process has appended. A turn need not look for them one by one."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final

from watchbill.model.states import RunState
from watchbill.store.protocol import Turn

MOST: Final = 20_000  # runs: beyond, all are forgotten and looked up again
_NOT_BEGUN: Final = RunState.SCHEDULED
_RUN: Final = itemgetter(0)
_SEQ: Final = itemgetter(1)
_ONE_MORE: Final = (1).__add__


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
        known, after, journal = self._next, turn.after, turn.journal
        if len(known) > MOST:
            known.clear()
        next_of = known.get
        needed: dict[int, int] = {}
        late = {run: next_of(run) for run, seq in after.items() if next_of(run) != seq + 1}
        begun = [change.num for change in turn.runs if change.status is not _NOT_BEGUN]
        for run in begun:
            if run not in late:
                known.setdefault(run, 1)
        runs, seqs = [*map(_RUN, journal)], [*map(_SEQ, journal)]
        if [*map(next_of, runs)] == seqs:  # mostly each run has one entry, which follows a known one
            known.update(zip(runs, map(_ONE_MORE, seqs), strict=True))
        else:
            needed = self._follow_each(runs, seqs, {run: after[run] for run in late})
        for run, before in late.items():
            if next_of(run) == before:  # the turn has no entry of it
                needed.setdefault(run, after[run])
        if late:
            for run in begun:
                known.setdefault(run, 1)
        return needed

    def _follow_each(self, runs: Sequence[int], seqs: Sequence[int], late: Mapping[int, int]) -> dict[int, int]:
        known, needed = self._next, dict[int, int]()
        for run, seq in zip(runs, seqs, strict=True):
            if known.get(run) != seq:
                if seq > 1:
                    needed.setdefault(run, seq - 1)
                elif run in late:
                    needed[run] = late[run]
            known[run] = seq + 1
        return needed

    def drop(self, runs: Iterable[int]) -> None:
        """Forget runs that have ended."""
        for run in runs:
            self._next.pop(run, None)

    def forget(self) -> None:
        """Forget all."""
        self._next.clear()
