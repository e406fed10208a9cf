"""Pace: how much an agent has started of late that uses a dependency. Should that break down, it is told with it."""

from collections import deque
from typing import Final

from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import WINDOW

SECONDS: Final = WINDOW // SECOND


class Paces:
    """The starts of the last seconds, by dependency."""

    def __init__(self) -> None:
        self._starts: dict[str, deque[tuple[int, int]]] = {}  # a second, and how many there were in it

    def note(self, uses: str, boot: Micros) -> None:
        """Take note of a start."""
        starts = self._starts.setdefault(uses, deque(maxlen=SECONDS))
        second = boot // SECOND
        if starts and starts[-1][0] == second:
            starts[-1] = second, starts[-1][1] + 1
        else:
            starts.append((second, 1))

    def of(self, uses: str, boot: Micros) -> float:
        """Give how many were started in a second, on average since the first of late."""
        second = boot // SECOND
        starts = [one for one in self._starts.get(uses, ()) if one[0] > second - SECONDS]
        if not starts:
            return 0.0
        return sum(count for _, count in starts) / (1 + starts[-1][0] - starts[0][0])
