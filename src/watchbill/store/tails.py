"""Tails: the newest entries of journals that this process has appended. A turn need not look for them one by one."""

from collections.abc import Iterable, Sequence
from typing import Final

from watchbill.model.call import JournalRow

MOST: Final = 20_000  # runs: beyond, all are forgotten and looked up again


class Tails:
    """The newest entry of each journal, by run.

    A store trusts them only as long as it knows that it has lost none of its commits. Else it calls `forget`.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[int, int] = {}  # run -> the number of the entry that comes next

    def unknown(self, journal: Sequence[JournalRow]) -> dict[int, int]:
        """Give the entries, run -> number, that these must follow and that are not known to be there.

        A first entry follows none.
        """
        known = self._next
        first = {entry[0]: entry[1] for entry in reversed(journal)}
        return {run: seq - 1 for run, seq in first.items() if seq > 1 and (run not in known or known[run] != seq)}

    def appended(self, journal: Sequence[JournalRow]) -> None:
        """Know these entries: they were written."""
        if len(self._next) > MOST:
            self._next.clear()
        self._next.update({entry[0]: entry[1] + 1 for entry in journal})

    def drop(self, runs: Iterable[int]) -> None:
        """Forget runs that have ended."""
        for run in runs:
            self._next.pop(run, None)

    def forget(self) -> None:
        """Forget all."""
        self._next.clear()
