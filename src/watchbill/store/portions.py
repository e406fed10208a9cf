"""Portions: how many bytes one transaction writes, and one read takes into memory.

What is larger than a portion goes alone. All that is smaller is divided so that no run keeps the others waiting.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

BYTES_AT_ONCE = 32 << 20  # of a turn, a read or a submit: well within the time that a statement has on a slow disk
BYTES_OF_A_RUN = 8 << 20  # of these for one run, so that small runs never wait for more than some of a large one
UPLOADED_FROM = 4 << 20  # a larger result is written before its turn, in chunks
CHUNK = 1 << 20  # bytes that one transaction of an upload writes: tens of milliseconds on a slow disk
LARGE = 64 << 10  # bodies below this are not counted: a thousand of them are less than two portions


class Portion:
    """Takes items until it is full: each run up to its share, and at least one item in all."""

    def __init__(self) -> None:
        self.size = 0
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
        if self.size and (self.size + size > BYTES_AT_ONCE or (of_run and of_run + size > BYTES_OF_A_RUN)):
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


def first_of(items: Iterable[tuple[T, int]]) -> First[T]:
    """Take items with their sizes, in order, while they fit: at least one."""
    first: First[T] = First()
    left = BYTES_AT_ONCE
    for item, size in items:
        if first.items and size > left:
            first.is_cut = True
            break
        first.items.append(item)
        left -= size
    return first
