"""Departed: runs that have left memory lately, so that a scheduler notices if another server has lost what they did."""

from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.scheduler.residence import Resident

KEPT: Final[Micros] = 60 * SECOND  # at least: as long as a process follows its newest entry (`store/newest.py`)
MOST: Final = 10_000  # runs in each half: a few MB
_ENDED: Final = -1


class Departed:
    """What the store must still know of the runs that have left memory in the last minute.

    Only numbers are kept, and the older half is dropped as a whole: an object per run would make the garbage collector
    work more often.
    """

    def __init__(self) -> None:
        self._newer: dict[int, int] = {}  # run -> the number of its newest entry, or _ENDED
        self._older: dict[int, int] = {}
        self._until: Micros = 0  # from then on the newer half is the older one

    def add(self, resident: Resident, now: Micros) -> None:
        """Keep a run that leaves memory with a turn that was written; one that has not begun did nothing."""
        if resident.follows:
            self._grow_old(now)
            self._newer[resident.num] = _ENDED if resident.status.terminal else resident.seq

    def entries(self, now: Micros) -> dict[int, int]:
        """Give the newest entries of those that were open, run -> number; 0: it had begun."""
        return {run: seq for run, seq in self._lately(now).items() if seq != _ENDED}

    def ended(self, now: Micros) -> list[int]:
        """Give those that had ended."""
        return [run for run, seq in self._lately(now).items() if seq == _ENDED]

    def forget(self) -> None:
        """Forget all: memory is made anew from the store."""
        self._newer, self._older = {}, {}

    def _lately(self, now: Micros) -> dict[int, int]:
        self._grow_old(now)
        return self._older | self._newer

    def _grow_old(self, now: Micros) -> None:
        if now >= self._until or len(self._newer) >= MOST:
            self._older = self._newer if now < self._until + KEPT else {}
            self._newer, self._until = {}, now + KEPT
