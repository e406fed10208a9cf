"""Portions: how many bytes one transaction writes, and one read takes into memory.

What is larger than a portion goes alone. All that is smaller is divided so that no run keeps the others waiting.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from watchbill.bounds import Bounds

T = TypeVar("T")


class Portion:
    """Takes items until it is full, and of each run up to its share. A quarter is for small items.

    One item that is larger than all that fits is taken beside the others: else it could wait behind small items for
    ever, or they behind it. What an item leads to is added when it is known, whatever its size.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.size = 0  # without an item that was taken beside the others
        self._has_largest = False
        self._at_once, self._of_a_run, self._large = bounds.at_once, bounds.of_a_run, bounds.large
        self._for_large = for_large(bounds.at_once)
        # Up to this size no run can have more than its share, so an item fits without a look at its run.
        self._surely = min(self._of_a_run, self._for_large)
        self._unsorted: list[Iterable[tuple[Hashable, int]]] = []  # what `_runs` is without
        self._runs: defaultdict[Hashable, int] = defaultdict(int)
        self._cut: set[Hashable] = set()

    @property
    def is_cut(self) -> bool:
        """True when something was left out."""
        return bool(self._cut)

    @property
    def is_full(self) -> bool:
        """True when nothing fits, of whatever run."""
        return self.size >= self._at_once

    def fits(self, run: Hashable, size: int) -> bool:
        """Say whether an item of a run fits; after one that does not fit, nothing more of that run does."""
        if run in self._cut:
            return False
        if self._unsorted:
            self._sort()
        most = self._at_once if size <= self._large else self._for_large
        of_run, share = self._runs.get(run, 0), self._of_a_run
        too_much = self._has_largest or self.is_full if size > most else self.size + size > most
        if too_much or (of_run and of_run + size > share and (size <= share or of_run > share)):
            self._cut.add(run)
            return False
        return True

    def takes(self, run: Hashable, size: int) -> bool:
        """Take an item of a run, if it fits."""
        if self.size + size <= self._surely and not self._cut:
            self.size += size
            self._runs[run] += size
            return True
        if not self.fits(run, size):
            return False
        self.add(run, size)
        if size > self._for_large:
            self.size -= size
        return True

    @property
    def room(self) -> int:
        """Give how many bytes surely fit, in items of whatever runs."""
        return -1 if self._cut else self._surely - self.size

    def add_together(self, size: int, items: Iterable[tuple[Hashable, int]]) -> None:
        """Add items for which there was room; `items`, their runs and sizes, is read if the share of a run matters."""
        self.size += size
        self._unsorted.append(items)

    def _sort(self) -> None:
        for items in self._unsorted:
            for run, size in items:
                self._runs[run] += size
        self._unsorted.clear()

    def add(self, run: Hashable, size: int) -> None:
        """Add what an item of a run has led to."""
        self.size += size
        self._runs[run] += size
        if size > self._for_large:
            self._has_largest = True
            self._surely = -1  # `size` is without this item, and the share of its run is with it


def for_large(most: int) -> int:
    """Give how much of a portion large items may have; one that is larger than that goes beside others."""
    return most - most // 4


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
