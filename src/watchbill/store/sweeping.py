"""Sweeping: which expired runs are deleted in one transaction. Pure, for all stores."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from watchbill.clock import Micros
from watchbill.store.protocol import EndedPart, EndedParts, Swept

LARGE: Final = 200  # rows: a tree that has more is deleted by itself, in pieces


class ExpiredRoot(NamedTuple):
    """A root that ended long ago, and how many rows its tree has, as far as that was counted."""

    num: int
    ended_at: Micros
    size: int
    lives: bool  # a run in its tree is open


class Batch(NamedTuple):
    """The roots that are deleted now, and what the caller is told about the others."""

    roots: list[int]
    rest: Swept


def choose(found: Sequence[ExpiredRoot], limit: int, most_rows: int) -> Batch:
    """Choose the first roots that have no more than `most_rows` rows in all; of `limit` that were asked for."""
    roots: list[int] = []
    large: list[int] = []
    rows, after = 0, None
    for root in found:
        if root.lives:
            pass
        elif root.size > LARGE:
            large.append(root.num)
        elif roots and rows + root.size > most_rows:
            return Batch(roots, Swept(0, tuple(large), after))
        else:
            roots.append(root.num)
            rows += root.size
        after = root.ended_at, root.num
    return Batch(roots, Swept(0, tuple(large), after if len(found) >= limit else None))


def parts_of(rows: Sequence[tuple[Micros, int, int, str, str, int, bool]], namespace: str, limit: int) -> EndedParts:
    """Choose the parts of open runs of a namespace among those that were read."""
    found = [
        EndedPart(run, seq, workflow, version)
        for _, run, seq, home, workflow, version, is_open in rows
        if home == namespace and is_open
    ]
    return EndedParts(tuple(found), rows[-1][:3] if rows else None, len(rows) >= limit)
