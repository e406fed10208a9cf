"""Pace: how much an agent has started of late that uses a dependency. Should that break down, it is told with it.

How much of that was tried for the first time is told with what fails, and with retries: their budget is a share of it.
"""

from collections import deque
from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import WINDOW

SECONDS: Final = WINDOW // SECOND


class Paces:
    """The starts of the last seconds, by dependency."""

    def __init__(self) -> None:
        self._starts: dict[str, deque[tuple[int, int, int]]] = {}  # a second, how many there were, first tries

    def note(self, uses: str, boot: Micros, *, again: bool = False) -> None:
        """Take note of a start; `again`: the same has failed before."""
        starts = self._starts.setdefault(uses, deque(maxlen=SECONDS))
        second = boot // SECOND
        if starts and starts[-1][0] == second:
            starts[-1] = second, starts[-1][1] + 1, starts[-1][2] + (not again)
        else:
            starts.append((second, 1, int(not again)))

    def of(self, uses: str, boot: Micros) -> float:
        """Give how many were started in a second, on average since the first of late."""
        starts = self._of_late(uses, boot)
        if not starts:
            return 0.0
        return sum(count for _, count, _ in starts) / (1 + starts[-1][0] - starts[0][0])

    def firsts(self, uses: str, boot: Micros) -> int:
        """Give how many were started of late that had not failed before."""
        return sum(firsts for _, _, firsts in self._of_late(uses, boot))

    def _of_late(self, uses: str, boot: Micros) -> list[tuple[int, int, int]]:
        return [one for one in self._starts.get(uses, ()) if one[0] > boot // SECOND - SECONDS]
