"""Departed: runs that have left memory lately, so that a scheduler notices if another server has lost what they did."""

from collections import deque
from typing import Final, NamedTuple

from watchbill.clock import SECOND, Micros
from watchbill.scheduler.residence import Resident

KEPT: Final[Micros] = 60 * SECOND  # as long as a process follows its newest entry (`store/newest.py`)
MOST: Final = 10_000  # runs: a few MB


class Left(NamedTuple):
    """A run as it was when it left memory."""

    at: Micros
    run: int
    seq: int
    ended: bool


class Departed:
    """The runs that have left memory in the last minute, and what the store must still know of them."""

    def __init__(self) -> None:
        self._left: deque[Left] = deque(maxlen=MOST)

    def add(self, resident: Resident, now: Micros) -> None:
        """Keep a run that leaves memory with a turn that was written; one that has not begun did nothing."""
        if resident.follows:
            self._left.append(Left(now, resident.num, resident.seq, resident.status.terminal))

    def entries(self, now: Micros) -> dict[int, int]:
        """Give the newest entries of those that were open, run -> number; 0: it had begun."""
        return {run: left.seq for run, left in self._lately(now).items() if not left.ended}

    def ended(self, now: Micros) -> list[int]:
        """Give those that had ended."""
        return [run for run, left in self._lately(now).items() if left.ended]

    def forget(self) -> None:
        """Forget all: memory is made anew from the store."""
        self._left.clear()

    def _lately(self, now: Micros) -> dict[int, Left]:
        return {left.run: left for left in self._left if left.at >= now - KEPT}
