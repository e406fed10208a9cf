"""Portions: how many bytes one transaction writes, and one read takes into memory.

What is larger than a portion goes alone. All that is smaller is divided so that no run keeps the others waiting.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from watchbill.bounds import Bounds

T = TypeVar("T")


class Portion:
    """Takes items until it is full: each run up to its share, and at least one item in all."""

    def __init__(self, bounds: Bounds) -> None:
        self.size = 0
        self._bounds = bounds
        self._runs: dict[Hashable, int] = {}
        self._cut: set[Hashable] = set()

    @property
    def is_cut(self) -> bool:
        """True when something was left out."""
        return bool(self._cut)

    def takes(self, run: Hashable, size: int) -> bool:
        """Take an item of a run, if it fits; after one that does not fit, nothing more of that run is taken."""
        if run in self._cut:
            return False
        of_run = self._runs.get(run, 0)
        bounds = self._bounds
        if self.size and (self.size + size > bounds.at_once or (of_run and of_run + size > bounds.of_a_run)):
            self._cut.add(run)
            return False
        self.size += size
        self._runs[run] = of_run + size
        return True


class First(Generic[T]):
    """The first of some items, as many as fit."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self.is_cut = False  # there were more


def first_of(items: Iterable[tuple[T, int]], at_once: int) -> First[T]:
    """Take items with their sizes, in order, while they fit into so many bytes: at least one."""
    first: First[T] = First()
    left = at_once
    for item, size in items:
        if first.items and size > left:
            first.is_cut = True
            break
        first.items.append(item)
        left -= size
    return first
